#include "failure/decide.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- digests --- */

void decide_passed(struct decide_digest *d)
{
    d->passed = true;
}

static bool same(const struct decide_digest *a, const struct decide_digest *b)
{
    return a->kind == b->kind && strcmp(a->what, b->what) == 0 && strcmp(a->place, b->place) == 0;
}

static void merge_kind(struct decide_digest *d, const struct decide_digest *other)
{
    if (d->kind == DECIDE_SILENT) {
        d->kind = other->kind;
        d->witnesses = other->witnesses;
        d->several_nodes = other->several_nodes;
        d->node = other->node;
        d->elapsed = other->elapsed;
        memcpy(d->what, other->what, sizeof d->what);
        memcpy(d->place, other->place, sizeof d->place);
        return;
    }
    d->witnesses += other->witnesses;
    d->several_nodes |= other->several_nodes || d->node != other->node;
    d->elapsed = other->elapsed < d->elapsed ? other->elapsed : d->elapsed;
    if (same(d, other))
        return;
    d->kind = DECIDE_OTHER;
    d->what[0] = d->place[0] = 0;
}

void decide_merge(struct decide_digest *d, const struct decide_digest *other)
{
    d->passed |= other->passed;
    d->steps_known |= other->steps_known;
    d->steps += other->steps;
    if (other->hardware && !d->hardware) {
        d->hardware = true;
        memcpy(d->evidence, other->evidence, sizeof d->evidence);
    }
    if (other->kind != DECIDE_SILENT)
        merge_kind(d, other);
}

bool decide_says(const struct decide_digest *d)
{
    return d->kind != DECIDE_SILENT || d->passed || d->hardware || d->steps_known;
}

/* --- what follows --- */

static el_usec twice(el_usec t)
{
    return 2 * t + DECIDE_SLACK;
}

/* Rule 2. */
static bool cannot_start(const struct decide_round *round, const struct decide_digest *d,
                         const struct decide_history *h)
{
    bool seen = d->kind == DECIDE_TEXT || (d->kind == DECIDE_CALL && (d->witnesses > 1 || round->workers == 1));
    return seen && !d->passed && d->elapsed <= DECIDE_START && h->longest <= twice(d->elapsed);
}

/* Rule 3. */
static bool comes_again(const struct decide_round *round, const struct decide_digest *d,
                        const struct decide_digest *last)
{
    bool code = d->kind == DECIDE_CODE || d->kind == DECIDE_CALL || d->kind == DECIDE_TEXT;
    bool located = d->place[0] || d->kind == DECIDE_TEXT || strchr(d->what, ' '); /* a clause has no place */
    bool everywhere = round->nodes == 1 || d->several_nodes || last->several_nodes || d->node != last->node;
    return code && located && same(d, last) && everywhere && d->elapsed <= twice(last->elapsed);
}

static void put_place(const struct decide_digest *d, char *to, size_t size)
{
    const char *slash = strrchr(d->place, '/');
    snprintf(to, size, "%s%s", d->place[0] ? " at " : "", slash ? slash + 1 : d->place);
}

static double seconds(el_usec t)
{
    return (double)t / (double)EL_SEC(1);
}

/* Twice as long each time: all ranks ask at once, and must not be the reason why the service refuses. */
static el_usec back_off(unsigned before)
{
    el_usec wait = DECIDE_BACK_OFF;
    while (before-- && wait < DECIDE_BACK_OFF_MAX)
        wait *= 2;
    return wait < DECIDE_BACK_OFF_MAX ? wait : DECIDE_BACK_OFF_MAX;
}

#define OVERRIDE "(--restart-policy=always restarts all the same)"

static void decide_smart(const struct decide_round *round, const struct decide_digest *d,
                         const struct decide_history *h, struct decide_verdict *out)
{
    char place[DECIDE_PLACE_MAX + 8];
    put_place(d, place, sizeof place);
    if (d->hardware) {
        out->next = DECIDE_SET_ASIDE;
    } else if (d->kind == DECIDE_PASSING) {
        out->wait = back_off(h->passing);
    } else if (cannot_start(round, d, h)) {
        out->next = DECIDE_STOP;
        snprintf(out->why, sizeof out->why,
                 "no restart: %s%s after %.1f s: a fault of the program or its command line, which would come "
                 "again " OVERRIDE,
                 d->what, place, seconds(d->elapsed));
    } else if (comes_again(round, d, &h->last)) {
        out->next = DECIDE_STOP;
        snprintf(out->why, sizeof out->why,
                 "no restart: two rounds in a row ended so: %s%s, after %.1f s and after %.1f s " OVERRIDE, d->what,
                 place, seconds(h->last.elapsed), seconds(d->elapsed));
    }
}

void decide_next(const struct decide_round *round, const struct decide_digest *d, struct decide_history *h,
                 struct decide_verdict *out)
{
    *out = (struct decide_verdict){.next = DECIDE_RESTART};
    switch (round->policy) {
    case DECIDE_SMART: decide_smart(round, d, h, out); break;
    case DECIDE_NEVER:
        out->next = DECIDE_STOP;
        snprintf(out->why, sizeof out->why, "no restart: --restart-policy=never");
        break;
    case DECIDE_ALWAYS:
    case DECIDE_POLICY_COUNT: break;
    }
    unsigned passing = d->kind == DECIDE_PASSING ? h->passing + 1 : 0;
    decide_other_end(h, round->lasted);
    h->last = *d;
    h->passing = passing;
}

void decide_other_end(struct decide_history *h, el_usec lasted)
{
    h->longest = lasted > h->longest ? lasted : h->longest;
    h->last = (struct decide_digest){.kind = DECIDE_SILENT};
    h->passing = 0;
}

const char *decide_policy_name(enum decide_policy p)
{
    static const char *const names[] = {
#define X(NAME, name) name,
        DECIDE_POLICIES(X)
#undef X
    };
    assert(p < DECIDE_POLICY_COUNT);
    return names[p];
}
