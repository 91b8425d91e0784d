#include "coord/restore.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "control/limits.h"
#include "util/scan.h"
#include "util/snip.h"

enum { NAMED_MAX = 4 }; /* nodes, in a text */

struct restore_seat {
    bool spoken;
    enum restore_at at;
    unsigned n;
    uint64_t attempt, since;
    int64_t newest;
    bool whole, on_disk, elsewhere;
    int64_t step[RESTORE_STEPS_MAX];
    uint64_t lineage[RESTORE_STEPS_MAX];
};

/* What is chosen. */
struct choice {
    int64_t step;
    uint64_t lineage;
};

static_assert(RESTORE_LIST_MAX >= RESTORE_STEPS_MAX * 37, "19 digits, 16 digits, @ and a blank for each");

int restore_init(struct restore *r, const struct restore_conf *conf, struct el_mem *mem)
{
    *r = (struct restore){.conf = *conf, .step = RESTORE_NO_STEP, .until = EL_NEVER, .say_at = EL_NEVER};
    r->seat = el_alloc(mem, conf->room * sizeof *r->seat);
    return r->seat ? 0 : -1;
}

void restore_free(struct restore *r, struct el_mem *mem)
{
    el_free(mem, r->seat);
    r->seat = NULL;
}

void restore_begin(struct restore *r, unsigned seats)
{
    assert(seats <= r->conf.room);
    memset(r->seat, 0, seats * sizeof *r->seat);
    r->seats = seats;
    r->state = RESTORE_IDLE;
    r->attempt = 0;
    r->step = RESTORE_NO_STEP;
    r->below = INT64_MAX;
    r->fails = 0;
    r->fresh = r->misfit = false;
    r->until = r->say_at = EL_NEVER;
    r->why[0] = r->text[0] = 0;
}

void restore_forget(struct restore *r, unsigned seat)
{
    if (seat < r->seats)
        r->seat[seat].spoken = false;
}

/* --- the decision --- */

/* Lives until the next call. */
static const char *seat_name(const struct restore *r, unsigned seat)
{
    return r->conf.name ? r->conf.name(r->conf.ctx, seat) : "this node";
}

static bool restore_has(const struct restore_seat *s, int64_t step, uint64_t lineage)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->step[i] == step && s->lineage[i] == lineage)
            return true;
    return false;
}

/* That anybody here took part in. */
static uint64_t last_agreement(const struct restore *r)
{
    uint64_t last = 0;
    for (unsigned k = 0; k < r->seats; k++)
        last = r->seat[k].since > last ? r->seat[k].since : last;
    return last;
}

static struct choice newest_since(const struct restore *r, uint64_t since)
{
    struct choice newest = {RESTORE_NO_STEP, 0};
    for (unsigned k = 0; k < r->seats; k++)
        for (unsigned i = 0; i < r->seat[k].n && r->seat[k].since >= since; i++) {
            int64_t step = r->seat[k].step[i];
            if (step < r->below && step > newest.step)
                newest = (struct choice){step, r->seat[k].lineage[i]};
        }
    return newest;
}

/* Where nobody needs a step of his own: one node that has it will do.  But what a node has that was not in the last
 * agreement may be of a history that the others have given up, however high its number: only if they have nothing. */
static struct choice newest_of_any(const struct restore *r)
{
    struct choice newest = newest_since(r, last_agreement(r));
    return newest.step != RESTORE_NO_STEP ? newest : newest_since(r, 0);
}

/* Each list has the newest first, so the first step of one that all others have is the newest that all have. */
static struct choice newest_of_all(const struct restore *r)
{
    unsigned one = 0;
    while (one < r->seats && r->seat[one].elsewhere)
        one++;
    if (one == r->seats)
        return newest_of_any(r);
    const struct restore_seat *first = &r->seat[one];
    for (unsigned i = 0; i < first->n; i++) {
        bool all = first->step[i] < r->below;
        for (unsigned k = 0; k < r->seats && all; k++)
            all = r->seat[k].elsewhere || restore_has(&r->seat[k], first->step[i], first->lineage[i]);
        if (all)
            return (struct choice){first->step[i], first->lineage[i]};
    }
    return (struct choice){RESTORE_NO_STEP, 0};
}

/* Is nothing what there should be?  The last agreement is what the nodes that took part in it say; one of them which
 * has held no whole step since proves that the job has not.  A node that is new proves nothing. */
static bool never_was_any(const struct restore *r)
{
    uint64_t last = last_agreement(r);
    for (unsigned k = 0; k < r->seats; k++)
        if (r->seat[k].on_disk)
            return false;
    bool proved = !last;
    for (unsigned k = 0; k < r->seats && !proved; k++)
        proved = r->seat[k].since == last && !r->seat[k].whole;
    return proved;
}

/* A node that was not in the last agreement may have got further in a history that the others have given up. */
static bool goes_too_far(const struct restore *r, int64_t *lost)
{
    int64_t newest = RESTORE_NO_STEP;
    uint64_t last = last_agreement(r);
    for (unsigned k = 0; k < r->seats; k++)
        if (r->seat[k].since == last && r->seat[k].newest > newest)
            newest = r->seat[k].newest;
    *lost = newest > r->step ? newest - r->step : 0;
    return r->conf.max_rollback && (uint64_t)*lost >= r->conf.max_rollback;
}

/* The lineage of that number on this seat is another one, and only that. */
static bool has_other(const struct restore_seat *s, int64_t step, uint64_t lineage)
{
    bool any = false;
    for (unsigned i = 0; i < s->n; i++)
        any |= s->step[i] == step;
    return any && !restore_has(s, step, lineage);
}

/* A step that was passed over though the first node and another one say its number: people would not know why. */
static void note_histories(struct restore *r, int64_t chosen, char text[RESTORE_WHY_MAX])
{
    char a[72], b[72];
    *text = 0;
    for (unsigned i = 0; r->seats && i < r->seat[0].n && r->seat[0].step[i] > chosen; i++)
        for (unsigned k = 1; k < r->seats; k++) {
            if (!has_other(&r->seat[k], r->seat[0].step[i], r->seat[0].lineage[i]))
                continue;
            snprintf(a, sizeof a, "%.64s", seat_name(r, 0));
            snprintf(b, sizeof b, "%.64s", seat_name(r, k));
            snprintf(text, RESTORE_WHY_MAX, "step %lld is of one history on %s, of another on %s",
                     (long long)r->seat[0].step[i], a, b);
            return;
        }
}

/* A node without any, where others have some: it alone is why there is nothing for all. */
static void note_empty(struct restore *r)
{
    unsigned none = r->seats, some = 0;
    for (unsigned k = 0; k < r->seats; k++) {
        some += r->seat[k].n != 0;
        none = r->seat[k].n || r->seat[k].elsewhere || none != r->seats ? none : k;
    }
    if (some && none != r->seats)
        snprintf(r->why, sizeof r->why, "%.64s %s", seat_name(r, none),
                 r->seat[none].since
                     ? "has none"
                     : "is new and has none; where all parts are alike restore(share=...) sends it one");
}

/* "steps 4 to 9": those that it tells. */
static void put_range(const struct restore_seat *s, char to[64])
{
    if (s->n > 1)
        snprintf(to, 64, "steps %lld to %lld", (long long)s->step[s->n - 1], (long long)s->step[0]);
    else
        snprintf(to, 64, "step %lld", (long long)s->step[0]);
}

/* Each has some, and none is on all of them: one was away for long, as a rule, and has what the others deleted, or told
 * no more. */
static void note_apart(struct restore *r)
{
    unsigned newest = r->seats, oldest = r->seats;
    char name[72], first[64], second[64];
    for (unsigned k = 0; k < r->seats; k++) {
        if (r->seat[k].elsewhere)
            continue;
        if (!r->seat[k].n)
            return;
        newest = newest == r->seats || r->seat[k].step[0] > r->seat[newest].step[0] ? k : newest;
        oldest = oldest == r->seats || r->seat[k].step[0] < r->seat[oldest].step[0] ? k : oldest;
    }
    if (newest == oldest)
        return;
    const struct restore_seat *a = &r->seat[newest], *b = &r->seat[oldest];
    put_range(a, first);
    put_range(b, second);
    snprintf(name, sizeof name, "%.64s", seat_name(r, newest));
    size_t n = (size_t)snprintf(r->why, sizeof r->why, "%s has %s, %.64s ", name, first, seat_name(r, oldest));
    if (a->step[a->n - 1] > b->step[0])
        n += (size_t)snprintf(r->why + n, sizeof r->why - n, "has none beyond %lld", (long long)b->step[0]);
    else
        n += (size_t)snprintf(r->why + n, sizeof r->why - n, "%s, and none is on all nodes", second);
    snprintf(r->why + n, sizeof r->why - n,
             "; where all parts are alike restore(share=...) gives a node the state of the others");
}

/* Nothing that all can have: is that as it should be? */
static void decide_nothing(struct restore *r)
{
    bool never = never_was_any(r);
    r->fresh = never || r->conf.allow_fresh;
    if (!never && !*r->why)
        note_empty(r);
    if (!never && !*r->why)
        note_apart(r);
    snprintf(r->text, sizeof r->text, "%s%s%.330s%s",
             never ? "no snapshot was ever complete: beginning at the beginning"
                   : "no snapshot is left that every rank can have",
             !never && *r->why ? " (" : "", never ? "" : r->why, !never && *r->why ? ")" : "");
    size_t n = strlen(r->text);
    if (!never)
        snprintf(r->text + n, sizeof r->text - n, "%s",
                 r->fresh ? ": beginning at the beginning (--allow-fresh)"
                          : "; --allow-fresh would begin at the beginning");
}

static void restore_decide(struct restore *r, el_usec now)
{
    int64_t before = r->step, lost;
    struct choice newest = r->misfit ? (struct choice){RESTORE_NO_STEP, 0} : newest_of_all(r);
    char histories[RESTORE_WHY_MAX];
    note_histories(r, newest.step, histories);
    if (!*r->why)
        snprintf(r->why, sizeof r->why, "%s", histories);
    r->step = newest.step;
    r->lineage = newest.lineage;
    r->fails = r->step == before ? r->fails : 0;
    r->fresh = false;
    snprintf(r->text, sizeof r->text, "%s", r->misfit ? r->why : histories);
    if (r->step == RESTORE_NO_STEP && !r->misfit) {
        decide_nothing(r);
    } else if (r->step != RESTORE_NO_STEP && goes_too_far(r, &lost)) {
        el_snip(
            r->text, sizeof r->text,
            "the newest step that every rank can have is %lld, and step %lld was reached: %lld steps would be lost, "
            "more than --ckpt-max-rollback=%llu%s%.280s",
            (long long)r->step, (long long)(r->step + lost), (long long)lost,
            (unsigned long long)r->conf.max_rollback - 1, *r->why ? "; " : "", r->why);
        r->step = RESTORE_NO_STEP;
    }
    r->state = RESTORE_READING;
    r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
    r->say_at = EL_NEVER;
}

/* --- what is heard --- */

static unsigned restore_count(const struct restore *r, enum restore_at least)
{
    unsigned n = 0;
    for (unsigned k = 0; k < r->seats; k++)
        n += r->seat[k].spoken && r->seat[k].attempt == r->attempt && r->seat[k].at >= least;
    return n;
}

/* A higher attempt: somebody could not read what was decided, or asks once more. */
static void begin_attempt(struct restore *r, uint64_t attempt, el_usec now)
{
    if (r->state == RESTORE_READING && r->step != RESTORE_NO_STEP && ++r->fails >= RESTORE_FAILS_MAX)
        r->below = r->step < r->below ? r->step : r->below;
    if (r->state == RESTORE_OVER || r->state == RESTORE_IDLE) {
        r->below = INT64_MAX;
        r->fails = 0;
        r->step = RESTORE_NO_STEP;
    }
    r->attempt = attempt;
    r->state = RESTORE_HEARING;
    r->misfit = false;
    r->why[0] = 0;
    r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
    r->say_at = now + RESTORE_SAY;
}

static void restore_keep(struct restore *r, unsigned seat, const struct restore_stock *s)
{
    struct restore_seat *to = &r->seat[seat];
    bool decided = r->state == RESTORE_READING || r->state == RESTORE_OVER;
    bool same = s->told == r->step && (s->told_lineage == r->lineage || r->step == RESTORE_NO_STEP);
    bool other = decided && s->attempt == r->attempt && s->at >= RESTORE_AT_TOLD && !same;
    *to = (struct restore_seat){.spoken = true,
                                .at = other ? RESTORE_AT_STOCK : s->at,
                                .n = s->n,
                                .attempt = s->attempt,
                                .since = s->since,
                                .newest = s->newest,
                                .whole = s->whole,
                                .on_disk = s->on_disk,
                                .elsewhere = s->elsewhere};
    memcpy(to->step, s->step, s->n * sizeof s->step[0]);
    memcpy(to->lineage, s->lineage, s->n * sizeof s->lineage[0]);
    bool first = s->misfit && s->attempt == r->attempt && !r->misfit;
    r->misfit |= first;
    if (*s->why && (first || !*r->why))
        snprintf(r->why, sizeof r->why, "%s%s%s", r->conf.name ? r->conf.name(r->conf.ctx, seat) : "",
                 r->conf.name ? ": " : "", s->why);
}

/* Who says once more that it reads does so because bytes come: it looks by itself for ranks that do not read. */
static void restore_put_off(struct restore *r, unsigned seat, const struct restore_stock *s, el_usec now)
{
    const struct restore_seat *before = &r->seat[seat];
    bool reads = r->state == RESTORE_READING && before->spoken && before->attempt == r->attempt &&
                 before->at == RESTORE_AT_TOLD && s->attempt == r->attempt && s->at == RESTORE_AT_TOLD;
    if (reads && r->until != EL_NEVER)
        r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
}

enum restore_news restore_take(struct restore *r, unsigned seat, const struct restore_stock *s, el_usec now)
{
    assert(s->n <= RESTORE_STEPS_MAX);
    if (seat >= r->seats || !s->attempt)
        return RESTORE_NO_NEWS;
    struct restore_word word;
    bool again = s->attempt > r->attempt;
    if (again)
        begin_attempt(r, s->attempt, now);
    restore_put_off(r, seat, s, now);
    restore_keep(r, seat, s);
    if (s->attempt < r->attempt)
        return RESTORE_NEWS_ONE;                                   /* that a later one is on */
    if (r->state == RESTORE_HEARING && s->at >= RESTORE_AT_TOLD) { /* decided by a coordinator that is no more */
        r->state = RESTORE_READING;
        r->step = s->told;
        r->lineage = s->told_lineage;
        r->fresh = s->fresh;
        snprintf(r->text, sizeof r->text, "as it was decided before");
        r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
        again = true;
    }
    if (r->state == RESTORE_HEARING && restore_count(r, RESTORE_AT_STOCK) == r->seats) {
        restore_decide(r, now);
        return RESTORE_NEWS_ALL;
    }
    if (r->state == RESTORE_READING && restore_count(r, RESTORE_AT_READ) == r->seats) {
        r->state = RESTORE_OVER;
        r->until = EL_NEVER;
        return RESTORE_NEWS_ALL;
    }
    for (unsigned k = 0; k < r->seats && again; k++)
        if (k != seat && restore_word(r, k, &word))
            return RESTORE_NEWS_ALL;
    return restore_word(r, seat, &word) ? RESTORE_NEWS_ONE : RESTORE_NO_NEWS;
}

/* "h1, h2, …", who has not got so far. */
static void name_missing(const struct restore *r, enum restore_at least, char *to, size_t size)
{
    unsigned named = 0;
    size_t n = 0;
    *to = 0;
    for (unsigned k = 0; k < r->seats && n < size; k++) {
        const struct restore_seat *s = &r->seat[k];
        if ((s->spoken && s->attempt == r->attempt && s->at >= least) || named > NAMED_MAX)
            continue;
        const char *name = named++ == NAMED_MAX ? "..." : seat_name(r, k);
        n += (size_t)snprintf(to + n, size - n, "%s%.64s", n ? ", " : "", name);
    }
}

enum restore_news restore_timeout(struct restore *r, el_usec now)
{
    char who[300];
    if (r->until > now)
        return RESTORE_NO_NEWS;
    el_usec limit = r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT;
    if (r->state == RESTORE_READING) { /* perhaps they can when they are asked again; else the next time-out comes */
        begin_attempt(r, r->attempt + 1, now);
        return RESTORE_NEWS_ALL;
    }
    unsigned missing = r->seats - restore_count(r, RESTORE_AT_STOCK);
    name_missing(r, RESTORE_AT_STOCK, who, sizeof who);
    snprintf(
        r->text, sizeof r->text,
        "%u of %u nodes have not said within %.6g s what they can go back to (--ckpt-restore-timeout): not every rank "
        "there has called restore(): %s",
        missing, r->seats, (double)limit / (double)EL_SEC(1), who);
    r->step = RESTORE_NO_STEP;
    r->fresh = false;
    r->state = RESTORE_READING;
    r->until = EL_NEVER; /* nobody goes on from here: their workers end */
    return RESTORE_NEWS_ALL;
}

el_usec restore_deadline(const struct restore *r)
{
    el_usec say_at = r->state == RESTORE_HEARING ? r->say_at : EL_NEVER;
    el_usec until = r->state == RESTORE_HEARING || r->state == RESTORE_READING ? r->until : EL_NEVER;
    return say_at < until ? say_at : until;
}

bool restore_waits(struct restore *r, el_usec now, char to[RESTORE_TEXT_MAX + 1])
{
    char who[300];
    unsigned spoken = restore_count(r, RESTORE_AT_STOCK), missing = r->seats - spoken;
    if (r->state != RESTORE_HEARING || now < r->say_at)
        return false;
    r->say_at = EL_NEVER;
    name_missing(r, RESTORE_AT_STOCK, who, sizeof who);
    snprintf(to, RESTORE_TEXT_MAX + 1,
             "not every rank on %s has called restore() yet, and %u other node%s wait%s for %s", who, spoken,
             spoken == 1 ? "" : "s", spoken == 1 ? "s" : "", missing == 1 ? "it" : "them");
    return true;
}

bool restore_word(const struct restore *r, unsigned seat, struct restore_word *out)
{
    if (seat >= r->seats || !r->seat[seat].spoken || r->state == RESTORE_IDLE)
        return false;
    const struct restore_seat *s = &r->seat[seat];
    bool behind = s->attempt < r->attempt;
    *out = (struct restore_word){
        .attempt = r->attempt, .step = r->step, .lineage = r->lineage, .fresh = r->fresh, .text = r->text};
    if (r->state == RESTORE_HEARING) {
        out->what = RESTORE_TELL;
        return behind;
    }
    /* A step is for those who could read it: who has not spoken of this attempt is told to, or that there is none. */
    out->what = behind && r->step != RESTORE_NO_STEP ? RESTORE_TELL : RESTORE_READ;
    if (behind || s->at == RESTORE_AT_STOCK)
        return true;
    out->what = RESTORE_GO;
    return r->state == RESTORE_OVER && s->at == RESTORE_AT_READ;
}

void restore_check(const struct restore *r)
{
    for (unsigned k = 0; k < r->seats; k++)
        assert(!r->seat[k].spoken || r->seat[k].attempt <= r->attempt);
    assert(r->state != RESTORE_OVER || restore_count(r, RESTORE_AT_READ) <= r->seats);
    assert((r->state == RESTORE_IDLE) == (r->attempt == 0));
}

/* --- lists --- */

void restore_list_put(const struct restore_stock *s, char to[RESTORE_LIST_MAX + 1])
{
    size_t n = 0;
    *to = 0;
    for (unsigned i = 0; i < s->n; i++)
        n += (size_t)snprintf(to + n, RESTORE_LIST_MAX + 1 - n, "%s%lld@%llx", n ? " " : "", (long long)s->step[i],
                              (unsigned long long)s->lineage[i]);
}

void restore_list_get(struct restore_stock *s, const char *list)
{
    uint64_t step, lineage;
    s->n = 0;
    for (scan_blanks(&list); s->n < RESTORE_STEPS_MAX && scan_u64(&list, &step); scan_blanks(&list)) {
        lineage = 0;
        if (*list == '@' && (list++, !scan_hex(&list, &lineage)))
            return;
        int64_t last = s->n ? s->step[s->n - 1] : INT64_MAX;
        if (step > MSG_STEP_MAX || (int64_t)step > last ||
            (s->n && (int64_t)step == last && lineage == s->lineage[s->n - 1]))
            continue;
        s->lineage[s->n] = lineage;
        s->step[s->n++] = (int64_t)step;
    }
}
