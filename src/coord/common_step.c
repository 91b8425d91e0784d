#include "coord/common_step.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "control/limits.h"
#include "util/scan.h"

struct common_step_seat {
    bool spoken, absent;
    struct common_step_taken t;
    el_usec came; /* when it came to its last step */
    uint64_t told_conn;
    struct common_step_word told;
};

int common_step_init(struct common_step *c, unsigned room, struct el_mem *mem)
{
    *c = (struct common_step){.room = room, .seat = el_alloc(mem, room * sizeof *c->seat)};
    common_step_round(c, 0);
    return c->seat ? 0 : -1;
}

void common_step_free(struct common_step *c, struct el_mem *mem)
{
    el_free(mem, c->seat);
    c->seat = NULL;
}

void common_step_round(struct common_step *c, unsigned seats)
{
    assert(seats <= c->room);
    c->seats = seats;
    if (seats)
        memset(c->seat, 0, seats * sizeof *c->seat);
    c->ahead = 0;
    common_step_restart(c);
}

void common_step_restart(struct common_step *c)
{
    c->step = (struct slot_pin_step){SLOT_PIN_NO_STEP, -1, 0, 0};
    c->from = 0;
    c->stuck = EL_NEVER;
    c->gone_next = 0;
    memset(c->gone, 0, sizeof c->gone);
}

void common_step_take(struct common_step *c, unsigned seat, const struct common_step_taken *t, el_usec now)
{
    if (seat >= c->seats)
        return;
    struct common_step_seat *s = &c->seat[seat];
    bool came = !s->spoken || s->t.told.begun != t->told.begun || s->t.told.era != t->told.era;
    c->from = t->told.era > s->t.told.era ? 0 : c->from; /* its numbers begin anew */
    s->came = came ? now : s->came;
    s->absent = s->absent && !came;
    s->spoken = true;
    s->t = *t;
}

/* --- what is held --- */

static bool common_step_same(struct slot_pin_step a, struct slot_pin_step b)
{
    return a.step == b.step && a.lineage == b.lineage;
}

static bool common_step_is_later(struct slot_pin_step a, struct slot_pin_step b)
{
    if (a.step == SLOT_PIN_NO_STEP || b.step == SLOT_PIN_NO_STEP)
        return a.step != SLOT_PIN_NO_STEP;
    return a.era != b.era ? a.era > b.era : a.step > b.step;
}

static bool common_step_has(const struct slot_pin_step *v, unsigned n, struct slot_pin_step of)
{
    for (unsigned i = 0; i < n; i++)
        if (common_step_same(v[i], of))
            return true;
    return false;
}

static bool common_step_holds(const struct common_step_seat *s, struct slot_pin_step of)
{
    return s->spoken && (s->t.elsewhere || common_step_has(s->t.told.is_whole, s->t.told.whole, of));
}

static bool never(const struct common_step_seat *s, struct slot_pin_step of)
{
    const struct slot_pin_told *t = &s->t.told;
    if (common_step_holds(s, of) || (s->spoken && common_step_has(t->is_coming, t->coming, of)))
        return false;
    return s->absent || (s->spoken && (of.era < t->era || (of.era == t->era && of.step <= t->passed)));
}

/* The last that was trained of those which all hold; who needs none of his own speaks where nobody else does. */
static struct slot_pin_step newest(const struct common_step *c)
{
    struct slot_pin_step best = {SLOT_PIN_NO_STEP, -1, 0, 0};
    for (unsigned k = 0; k < c->seats; k++)
        for (unsigned i = 0; i < c->seat[k].t.told.whole; i++) {
            struct slot_pin_step of = c->seat[k].t.told.is_whole[i];
            bool all = common_step_is_later(of, best);
            for (unsigned x = 0; x < c->seats && all; x++)
                all = common_step_holds(&c->seat[x], of);
            best = all ? of : best;
        }
    return best;
}

/* Of one step that was taken twice the nodes know the order: each tells the later take first. */
static bool goes_beyond(const struct common_step *c, struct slot_pin_step of)
{
    if (of.step != c->step.step || of.era != c->step.era || of.step == SLOT_PIN_NO_STEP ||
        common_step_same(of, c->step))
        return common_step_is_later(of, c->step) && !common_step_same(of, c->step);
    for (unsigned k = 0; k < c->seats; k++) {
        const struct slot_pin_told *t = &c->seat[k].t.told;
        for (unsigned i = 0; i < t->whole && !common_step_same(t->is_whole[i], c->step); i++)
            if (common_step_same(t->is_whole[i], of))
                return true;
    }
    return false;
}

/* Newer than the common one, as the node itself sees it: behind that in its list nothing is. */
static unsigned common_step_newer(const struct common_step *c, const struct slot_pin_told *t)
{
    unsigned n = 0;
    while (n < t->whole && !common_step_same(t->is_whole[n], c->step))
        n++;
    return n;
}

enum waits { WAITS_FOR_NOTHING, WAITS_IN_VAIN, WAITS_FOR_NODES };

static enum waits waits_of(const struct common_step *c, struct slot_pin_step of)
{
    for (unsigned k = 0; k < c->seats; k++)
        if (never(&c->seat[k], of))
            return WAITS_IN_VAIN;
    return WAITS_FOR_NODES;
}

/* Of all steps beyond the common one.  Each is looked at once for each node that tells it, but most tell the same. */
static enum waits common_step_look(const struct common_step *c)
{
    struct slot_pin_step last[2] = {{SLOT_PIN_NO_STEP, -1, 0, 0}, {SLOT_PIN_NO_STEP, -1, 0, 0}};
    enum waits most = WAITS_FOR_NOTHING;
    for (unsigned k = 0; k < c->seats && most != WAITS_FOR_NODES; k++) {
        const struct slot_pin_told *t = &c->seat[k].t.told;
        unsigned whole = common_step_newer(c, t);
        for (unsigned i = 0; i < whole + t->coming && most != WAITS_FOR_NODES; i++) {
            struct slot_pin_step of = i < whole ? t->is_whole[i] : t->is_coming[i - whole];
            if (common_step_same(of, last[0]) || common_step_same(of, last[1]))
                continue;
            enum waits one = waits_of(c, of);
            most = one > most ? one : most;
            last[1] = last[0];
            last[0] = of;
        }
    }
    return most;
}

/* --- what follows --- */

static void common_step_set_common(struct common_step *c, struct slot_pin_step to)
{
    int64_t begun = SLOT_PIN_NO_STEP;
    for (unsigned k = 0; k < c->seats; k++)
        begun = c->seat[k].t.told.begun > begun ? c->seat[k].t.told.begun : begun;
    c->step = to;
    c->ahead /= 2;
    c->from = begun + 1 + c->ahead;
    c->stuck = EL_NEVER;
}

static bool common_step_give_up(struct common_step *c, struct slot_pin_step of)
{
    if (common_step_has(c->gone, sizeof c->gone / sizeof c->gone[0], of))
        return false;
    c->gone[c->gone_next++ % (sizeof c->gone / sizeof c->gone[0])] = of;
    return true;
}

/* True: there was one that nobody has been told of. */
static bool give_up_all(struct common_step *c)
{
    bool news = false;
    for (unsigned k = 0; k < c->seats; k++) {
        const struct slot_pin_told *t = &c->seat[k].t.told;
        unsigned whole = common_step_newer(c, t);
        for (unsigned i = 0; i < whole + t->coming; i++) {
            struct slot_pin_step of = i < whole ? t->is_whole[i] : t->is_coming[i - whole];
            news |= waits_of(c, of) == WAITS_IN_VAIN && common_step_give_up(c, of);
        }
    }
    return news;
}

static bool all_ready(const struct common_step *c)
{
    for (unsigned k = 0; k < c->seats; k++)
        if (!c->seat[k].absent && !(c->seat[k].spoken && c->seat[k].t.told.ready))
            return false;
    return true;
}

/* Who finds no slot either does come. */
static bool is_absent(const struct common_step *c, const struct common_step_seat *s)
{
    return s->came <= c->stuck && !s->t.told.stuck;
}

static bool any_is_stuck(const struct common_step *c)
{
    for (unsigned k = 0; k < c->seats; k++)
        if (c->seat[k].t.told.stuck)
            return true;
    return false;
}

/* Nothing that is held will be common: all take the same step next. */
static void begin_anew(struct common_step *c)
{
    int64_t begun = SLOT_PIN_NO_STEP;
    for (unsigned k = 0; k < c->seats; k++)
        begun = c->seat[k].t.told.begun > begun ? c->seat[k].t.told.begun : begun;
    c->ahead = c->ahead ? 2 * c->ahead : 1;
    c->ahead = c->ahead < COMMON_STEP_AHEAD_MAX ? c->ahead : COMMON_STEP_AHEAD_MAX;
    c->from = begun + 1 + c->ahead;
    c->stuck = EL_NEVER;
}

bool common_step_advance(struct common_step *c, el_usec now)
{
    struct slot_pin_step best = newest(c);
    bool news = goes_beyond(c, best);
    if (news) /* and the steps beyond it are looked at at once: who has told them already does not do so again */
        common_step_set_common(c, best);
    if (c->stuck != EL_NEVER && c->stuck + COMMON_STEP_PATIENCE <= now)
        for (unsigned k = 0; k < c->seats; k++)
            c->seat[k].absent |= is_absent(c, &c->seat[k]);
    enum waits waits = common_step_look(c);
    if (waits == WAITS_FOR_NOTHING || !any_is_stuck(c))
        c->stuck = EL_NEVER;
    else if (c->stuck == EL_NEVER)
        c->stuck = now;
    bool ready = waits == WAITS_IN_VAIN && all_ready(c);
    if (!(waits == WAITS_FOR_NODES || ready) || !give_up_all(c))
        return news;
    if (ready)
        begin_anew(c);
    return true;
}

el_usec common_step_deadline(const struct common_step *c)
{
    bool all = true;
    for (unsigned k = 0; k < c->seats && all; k++)
        all = c->seat[k].absent || !is_absent(c, &c->seat[k]);
    return c->stuck == EL_NEVER || all ? EL_NEVER : c->stuck + COMMON_STEP_PATIENCE;
}

/* --- who is told --- */

static void make_word(const struct common_step *c, const struct common_step_seat *s, struct common_step_word *out)
{
    const struct slot_pin_told *t = &s->t.told;
    memset(out, 0, sizeof *out);
    out->step = c->step;
    out->from = c->from;
    for (unsigned i = 0; i < t->whole + t->coming; i++) {
        struct slot_pin_step of = i < t->whole ? t->is_whole[i] : t->is_coming[i - t->whole];
        if (!common_step_same(of, c->step) && common_step_has(c->gone, sizeof c->gone / sizeof c->gone[0], of))
            out->useless[out->n++] = of;
    }
}

static bool common_step_is_told(const struct common_step_seat *s, uint64_t conn, const struct common_step_word *w)
{
    if (!s->spoken)
        return true;
    bool useless = false;
    for (unsigned i = 0; i < w->n; i++)
        useless |= !common_step_has(s->told.useless, s->told.n, w->useless[i]);
    return s->told_conn == conn && common_step_same(s->told.step, w->step) && s->told.from == w->from && !useless;
}

bool common_step_has_word(const struct common_step *c, unsigned seat, uint64_t conn)
{
    struct common_step_word w;
    if (seat >= c->seats)
        return false;
    make_word(c, &c->seat[seat], &w);
    return !common_step_is_told(&c->seat[seat], conn, &w);
}

bool common_step_word(struct common_step *c, unsigned seat, uint64_t conn, struct common_step_word *out)
{
    if (!common_step_has_word(c, seat, conn))
        return false;
    make_word(c, &c->seat[seat], out);
    c->seat[seat].told = *out;
    c->seat[seat].told_conn = conn;
    return true;
}

bool common_step_went_back(const struct common_step *c, struct slot_pin_step was, int64_t *step)
{
    struct slot_pin_step to = c->step;
    *step = to.step - 1;
    return to.step != SLOT_PIN_NO_STEP && to.era > 0 && to.era > was.era;
}

void common_step_check(const struct common_step *c)
{
    for (unsigned k = 0; k < c->seats; k++) {
        const struct slot_pin_told *t = &c->seat[k].t.told;
        assert(t->whole <= SLOT_PIN_TOLD && t->coming <= SLOT_PIN_TOLD);
        assert(c->seat[k].spoken || (!t->whole && !t->coming));
    }
    assert(c->ahead >= 0 && c->ahead <= COMMON_STEP_AHEAD_MAX);
}

/* --- lists --- */

void common_step_list_put(const struct slot_pin_step *v, unsigned n, char *to, size_t size)
{
    size_t at = 0;
    *to = 0;
    for (unsigned i = 0; i < n && at < size; i++) {
        at += (size_t)snprintf(to + at, size - at, "%s%lld@%llx", i ? " " : "", (long long)v[i].step,
                               (unsigned long long)v[i].lineage);
        if (v[i].era >= 0 && at < size)
            at += (size_t)snprintf(to + at, size - at, ":%lld", (long long)v[i].era);
    }
}

unsigned common_step_list_get(const char *list, struct slot_pin_step *v, unsigned max)
{
    unsigned n = 0;
    uint64_t step, era;
    for (scan_blanks(&list); n < max && scan_u64(&list, &step) && step <= MSG_STEP_MAX; scan_blanks(&list)) {
        struct slot_pin_step of = {(int64_t)step, -1, 0, 0};
        if (*list == '@' && (list++, !scan_hex(&list, &of.lineage)))
            break;
        if (*list == ':') {
            list++;
            if (!scan_u64(&list, &era) || era > INT64_MAX)
                break;
            of.era = (int64_t)era;
        }
        v[n++] = of;
    }
    return n;
}
