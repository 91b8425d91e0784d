#include "rdzv/restore.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

enum { NAMED_MAX = 4 }; /* nodes, in a text */

struct restore_seat {
    bool spoken;
    enum restore_at at;
    unsigned n;
    uint64_t attempt, since;
    int64_t newest;
    bool whole, on_disk, elsewhere;
    int64_t keep; /* what counts of its steps, as the agreements are that it took part in */
    int64_t step[RESTORE_STEPS_MAX];
};

static_assert(RESTORE_LIST_MAX >= RESTORE_STEPS_MAX * 20, "19 digits and a blank for each");

int restore_init(struct restore *r, const struct restore_conf *conf, struct el_mem *mem)
{
    *r = (struct restore){.conf = *conf, .step = RESTORE_NO_STEP, .until = EL_NEVER};
    r->seat = el_alloc(mem, conf->room * sizeof *r->seat);
    return r->seat ? 0 : -1;
}

void restore_free(struct restore *r, struct el_mem *mem)
{
    el_free(mem, r->seat);
    r->seat = NULL;
}

void restore_begin(struct restore *r, uint64_t number, unsigned seats)
{
    assert(seats <= r->conf.room);
    r->from = !r->number && number ? number - 1 : r->from;
    r->number = number;
    r->purges = 0;
    memset(r->seat, 0, seats * sizeof *r->seat);
    r->seats = seats;
    r->state = RESTORE_IDLE;
    r->attempt = 0;
    r->step = RESTORE_NO_STEP;
    r->below = INT64_MAX;
    r->fails = 0;
    r->fresh = false;
    r->until = EL_NEVER;
    r->why[0] = r->text[0] = 0;
}

void restore_adopt(struct restore *r, uint64_t number, unsigned seats)
{
    restore_begin(r, number, seats);
    r->from = number;
    r->gone_n = 0;
}

void restore_forget(struct restore *r, unsigned seat)
{
    if (seat < r->seats)
        r->seat[seat].spoken = false;
}

/* --- the history --- */

static void note_gone(struct restore *r)
{
    if (!r->number)
        return;
    if (r->gone_n && r->gone[r->gone_n - 1].number == r->number) { /* asked once more in the same round */
        struct restore_gone *last = &r->gone[r->gone_n - 1];
        last->step = r->step < last->step ? r->step : last->step;
        return;
    }
    if (r->gone_n == RESTORE_GONE_MAX) {
        r->from = r->gone[0].number;
        memmove(r->gone, r->gone + 1, --r->gone_n * sizeof r->gone[0]);
    }
    r->gone[r->gone_n++] = (struct restore_gone){r->number, r->step};
}

/* Of the last agreement that this coordinator knows, else anybody here.  A node that has made a later one with another
 * coordinator is told the former: of that it would say for ever what nobody here knows. */
static uint64_t last_agreement(const struct restore *r)
{
    uint64_t last = r->gone_n ? r->gone[r->gone_n - 1].number : 0;
    for (unsigned k = 0; k < r->seats && !r->gone_n; k++)
        if (r->seat[k].spoken && r->seat[k].since > last)
            last = r->seat[k].since;
    return last;
}

/* Up to which step what was held after the agreement of round `since` is of the job's history still.  Whoever was there
 * when all went back to a step has forgotten what was beyond it; who was not may still hold that, and says a number
 * that others have given to what they trained instead.  Of what another coordinator has agreed upon with others nothing
 * is known: then nothing counts, unless it is the last that anybody here has heard of. */
static int64_t keep_since(const struct restore *r, uint64_t since, uint64_t last)
{
    int64_t keep = INT64_MAX;
    if (!r->gone_n)
        return since == last ? keep : RESTORE_NO_STEP;
    bool known = since == r->from;
    for (unsigned i = 0; i < r->gone_n; i++) {
        known |= r->gone[i].number == since;
        if (r->gone[i].number > since && r->gone[i].step < keep)
            keep = r->gone[i].step;
    }
    return known ? keep : RESTORE_NO_STEP;
}

/* A node that has never taken part holds nothing but what it finds on disk. */
static void find_keeps(struct restore *r, uint64_t last)
{
    for (unsigned k = 0; k < r->seats; k++)
        r->seat[k].keep = r->seat[k].since ? keep_since(r, r->seat[k].since, last) : INT64_MAX;
}

/* Somebody says steps that do not count: all say anew what they have when it has forgotten them. */
static bool is_to_purge(struct restore *r)
{
    bool due = false;
    find_keeps(r, last_agreement(r));
    for (unsigned k = 0; k < r->seats; k++)
        due |= r->seat[k].n && r->seat[k].step[0] > r->seat[k].keep;
    return due && r->purges++ < RESTORE_PURGES_MAX;
}

/* --- the decision --- */

static bool has(const struct restore_seat *s, int64_t step)
{
    for (unsigned i = 0; i < s->n && step <= s->keep; i++)
        if (s->step[i] == step)
            return true;
    return false;
}

/* Where nobody needs a step of his own: one node that has it will do. */
static int64_t newest_of_any(const struct restore *r)
{
    int64_t newest = RESTORE_NO_STEP;
    for (unsigned k = 0; k < r->seats; k++)
        for (unsigned i = 0; i < r->seat[k].n; i++)
            if (r->seat[k].step[i] < r->below && r->seat[k].step[i] > newest && has(&r->seat[k], r->seat[k].step[i]))
                newest = r->seat[k].step[i];
    return newest;
}

/* Each list has the newest first, so the first step of one that all others have is the newest that all have. */
static int64_t newest_of_all(const struct restore *r)
{
    unsigned one = 0;
    while (one < r->seats && r->seat[one].elsewhere)
        one++;
    if (one == r->seats)
        return newest_of_any(r);
    const struct restore_seat *first = &r->seat[one];
    for (unsigned i = 0; i < first->n; i++) {
        bool all = first->step[i] < r->below && first->step[i] <= first->keep;
        for (unsigned k = 0; k < r->seats && all; k++)
            all = r->seat[k].elsewhere || has(&r->seat[k], first->step[i]);
        if (all)
            return first->step[i];
    }
    return RESTORE_NO_STEP;
}

/* Is nothing what there should be?  The last agreement is what the nodes that took part in it say; one of them which
 * has held no whole step since proves that the job has not.  A node that is new proves nothing. */
static bool never_was_any(const struct restore *r)
{
    uint64_t last = 0;
    for (unsigned k = 0; k < r->seats; k++) {
        last = r->seat[k].since > last ? r->seat[k].since : last;
        if (r->seat[k].on_disk)
            return false;
    }
    bool proved = !last;
    for (unsigned k = 0; k < r->seats && !proved; k++)
        proved = r->seat[k].since == last && !r->seat[k].whole;
    return proved;
}

static bool goes_too_far(const struct restore *r, int64_t *lost)
{
    int64_t newest = RESTORE_NO_STEP;
    for (unsigned k = 0; k < r->seats; k++)
        newest = r->seat[k].newest > newest ? r->seat[k].newest : newest;
    *lost = newest > r->step ? newest - r->step : 0;
    return r->conf.max_rollback && (uint64_t)*lost >= r->conf.max_rollback;
}

static void decide(struct restore *r, el_usec now)
{
    int64_t before = r->step, lost;
    r->step = newest_of_all(r);
    r->fails = r->step == before ? r->fails : 0;
    r->fresh = false;
    r->text[0] = 0;
    if (r->step == RESTORE_NO_STEP) {
        bool never = never_was_any(r);
        r->fresh = never || r->conf.allow_fresh;
        snprintf(r->text, sizeof r->text, "%s%s%s%s",
                 never ? "no snapshot was ever complete: beginning at the beginning"
                       : "no snapshot is left that every rank can have",
                 !never && *r->why ? " (" : "", never ? "" : r->why, !never && *r->why ? ")" : "");
        size_t n = strlen(r->text);
        if (!never)
            snprintf(r->text + n, sizeof r->text - n, "%s",
                     r->fresh ? ": beginning at the beginning (--allow-fresh)"
                              : "; --allow-fresh would begin at the beginning");
    } else if (goes_too_far(r, &lost)) {
        snprintf(
            r->text, sizeof r->text,
            "the newest step that every rank can have is %lld, and step %lld was reached: %lld steps would be lost, "
            "more than --ckpt-max-rollback=%llu%s%s",
            (long long)r->step, (long long)(r->step + lost), (long long)lost,
            (unsigned long long)r->conf.max_rollback - 1, *r->why ? "; " : "", r->why);
        r->step = RESTORE_NO_STEP;
    }
    r->state = RESTORE_READING;
    r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
}

/* --- what is heard --- */

static unsigned count(const struct restore *r, enum restore_at least)
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
    r->why[0] = 0;
    r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
}

static void keep(struct restore *r, unsigned seat, const struct restore_stock *s)
{
    struct restore_seat *to = &r->seat[seat];
    bool decided = r->state == RESTORE_READING || r->state == RESTORE_OVER;
    bool other = decided && s->attempt == r->attempt && s->at >= RESTORE_AT_TOLD && s->told != r->step;
    *to = (struct restore_seat){.spoken = true,
                                .keep = s->attempt < r->attempt ? to->keep : INT64_MAX,
                                .at = other ? RESTORE_AT_STOCK : s->at,
                                .n = s->n,
                                .attempt = s->attempt,
                                .since = s->since,
                                .newest = s->newest,
                                .whole = s->whole,
                                .on_disk = s->on_disk,
                                .elsewhere = s->elsewhere};
    memcpy(to->step, s->step, s->n * sizeof s->step[0]);
    if (*s->why && !*r->why)
        snprintf(r->why, sizeof r->why, "%s%s%s", r->conf.name ? r->conf.name(r->conf.ctx, seat) : "",
                 r->conf.name ? ": " : "", s->why);
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
    keep(r, seat, s);
    if (s->attempt < r->attempt)
        return RESTORE_NEWS_ONE;                                   /* that a later one is on */
    if (r->state == RESTORE_HEARING && s->at >= RESTORE_AT_TOLD) { /* decided by a coordinator that is no more */
        r->state = RESTORE_READING;
        r->step = s->told;
        r->fresh = s->fresh;
        snprintf(r->text, sizeof r->text, "as it was decided before");
        r->until = now + (r->conf.timeout ? r->conf.timeout : RESTORE_TIMEOUT);
        again = true;
    }
    if (r->state == RESTORE_HEARING && count(r, RESTORE_AT_STOCK) == r->seats) {
        if (is_to_purge(r))
            begin_attempt(r, r->attempt + 1, now);
        else
            decide(r, now);
        return RESTORE_NEWS_ALL;
    }
    if (r->state == RESTORE_READING && count(r, RESTORE_AT_READ) == r->seats) {
        r->state = RESTORE_OVER;
        r->until = EL_NEVER;
        note_gone(r);
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
        const char *name = named++ == NAMED_MAX ? "..." : r->conf.name ? r->conf.name(r->conf.ctx, k) : "this node";
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
    unsigned missing = r->seats - count(r, RESTORE_AT_STOCK);
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
    return r->state == RESTORE_HEARING || r->state == RESTORE_READING ? r->until : EL_NEVER;
}

bool restore_word(const struct restore *r, unsigned seat, struct restore_word *out)
{
    if (seat >= r->seats || !r->seat[seat].spoken || r->state == RESTORE_IDLE)
        return false;
    const struct restore_seat *s = &r->seat[seat];
    bool behind = s->attempt < r->attempt;
    *out = (struct restore_word){.attempt = r->attempt, .step = r->step, .fresh = r->fresh, .text = r->text};
    if (behind && s->keep < INT64_MAX && s->since) {
        out->since = last_agreement(r);
        out->keep = s->keep;
    }
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
    assert(r->state != RESTORE_OVER || count(r, RESTORE_AT_READ) <= r->seats);
    assert((r->state == RESTORE_IDLE) == (r->attempt == 0));
}

/* --- lists --- */

void restore_list_put(const struct restore_stock *s, char to[RESTORE_LIST_MAX + 1])
{
    size_t n = 0;
    *to = 0;
    for (unsigned i = 0; i < s->n; i++)
        n += (size_t)snprintf(to + n, RESTORE_LIST_MAX + 1 - n, "%s%lld", n ? " " : "", (long long)s->step[i]);
}

void restore_list_get(struct restore_stock *s, const char *list)
{
    uint64_t step;
    s->n = 0;
    for (scan_blanks(&list); s->n < RESTORE_STEPS_MAX && scan_u64(&list, &step); scan_blanks(&list))
        if (step <= INT64_MAX && (!s->n || (int64_t)step < s->step[s->n - 1]))
            s->step[s->n++] = (int64_t)step;
}
