#include "failure/restart_policy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- digests --- */

void restart_passed(struct restart_digest *d)
{
    d->passed = true;
}

static bool restart_policy_same(const struct restart_digest *a, const struct restart_digest *b)
{
    return a->kind == b->kind && strcmp(a->what, b->what) == 0 && strcmp(a->place, b->place) == 0;
}

static void merge_kind(struct restart_digest *d, const struct restart_digest *other)
{
    if (d->kind == RESTART_SILENT) {
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
    if (restart_policy_same(d, other))
        return;
    d->kind = RESTART_OTHER;
    d->what[0] = d->place[0] = 0;
}

void restart_merge(struct restart_digest *d, const struct restart_digest *other)
{
    d->passed |= other->passed;
    d->steps_known |= other->steps_known;
    d->steps += other->steps;
    if (other->hardware && !d->hardware) {
        d->hardware = true;
        memcpy(d->evidence, other->evidence, sizeof d->evidence);
    }
    if (other->kind != RESTART_SILENT)
        merge_kind(d, other);
}

bool restart_says(const struct restart_digest *d)
{
    return d->kind != RESTART_SILENT || d->passed || d->hardware || d->steps_known;
}

/* --- what follows --- */

static el_usec twice(el_usec t)
{
    return 2 * t + RESTART_SLACK;
}

/* Rule 2. */
static bool cannot_start(const struct restart_round *round, const struct restart_digest *d,
                         const struct restart_history *h)
{
    bool seen = d->kind == RESTART_TEXT || (d->kind == RESTART_CALL && (d->witnesses > 1 || round->workers == 1));
    return seen && !d->passed && d->elapsed <= RESTART_START && h->longest <= twice(d->elapsed);
}

/* Rule 3. */
static bool comes_again(const struct restart_round *round, const struct restart_digest *d,
                        const struct restart_digest *last)
{
    bool code = d->kind == RESTART_CODE || d->kind == RESTART_CALL || d->kind == RESTART_TEXT;
    bool located = d->place[0] || d->kind == RESTART_TEXT || strchr(d->what, ' '); /* a clause has no place */
    bool everywhere = round->nodes == 1 || d->several_nodes || last->several_nodes || d->node != last->node;
    return code && located && restart_policy_same(d, last) && everywhere && d->elapsed <= twice(last->elapsed);
}

static void put_place(const struct restart_digest *d, char *to, size_t size)
{
    const char *slash = strrchr(d->place, '/');
    snprintf(to, size, "%s%s", d->place[0] ? " at " : "", slash ? slash + 1 : d->place);
}

static double restart_policy_seconds(el_usec t)
{
    return (double)t / (double)EL_SEC(1);
}

/* Twice as long each time: all ranks ask at once, and must not be the reason why the service refuses. */
static el_usec back_off(unsigned before)
{
    el_usec wait = RESTART_BACK_OFF;
    while (before-- && wait < RESTART_BACK_OFF_MAX)
        wait *= 2;
    return wait < RESTART_BACK_OFF_MAX ? wait : RESTART_BACK_OFF_MAX;
}

#define OVERRIDE "(--restart-policy=always restarts all the same)"

static void restart_smart(const struct restart_round *round, const struct restart_digest *d,
                          const struct restart_history *h, struct restart_verdict *out)
{
    char place[RESTART_PLACE_MAX + 8];
    put_place(d, place, sizeof place);
    if (d->hardware) {
        out->next = RESTART_SET_ASIDE;
    } else if (d->kind == RESTART_PASSING) {
        out->wait = back_off(h->passing);
    } else if (cannot_start(round, d, h)) {
        out->next = RESTART_STOP;
        snprintf(out->why, sizeof out->why,
                 "no restart: %s%s after %.1f s: a fault of the program or its command line, which would come "
                 "again " OVERRIDE,
                 d->what, place, restart_policy_seconds(d->elapsed));
    } else if (comes_again(round, d, &h->last)) {
        out->next = RESTART_STOP;
        snprintf(out->why, sizeof out->why,
                 "no restart: two rounds in a row ended so: %s%s, after %.1f s and after %.1f s " OVERRIDE, d->what,
                 place, restart_policy_seconds(h->last.elapsed), restart_policy_seconds(d->elapsed));
    }
}

void restart_next(const struct restart_round *round, const struct restart_digest *d, struct restart_history *h,
                  struct restart_verdict *out)
{
    *out = (struct restart_verdict){.next = RESTART_RESTART};
    switch (round->policy) {
    case RESTART_SMART: restart_smart(round, d, h, out); break;
    case RESTART_NEVER:
        out->next = RESTART_STOP;
        snprintf(out->why, sizeof out->why, "no restart: --restart-policy=never");
        break;
    case RESTART_ALWAYS:
    case RESTART_POLICY_COUNT: break;
    }
    unsigned passing = d->kind == RESTART_PASSING ? h->passing + 1 : 0;
    restart_other_end(h, round->lasted);
    h->last = *d;
    h->passing = passing;
}

void restart_other_end(struct restart_history *h, el_usec lasted)
{
    h->longest = lasted > h->longest ? lasted : h->longest;
    h->last = (struct restart_digest){.kind = RESTART_SILENT};
    h->passing = 0;
}

const char *restart_policy_name(enum restart_policy p)
{
    static const char *const names[] = {
#define X(NAME, name) name,
        RESTART_POLICIES(X)
#undef X
    };
    assert(p < RESTART_POLICY_COUNT);
    return names[p];
}
