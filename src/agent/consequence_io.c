/* A worker has failed: by itself, or only because a peer was gone?  Its last output is read at once, before the others
 * are stopped; who made the peer go away may still be tearing down, and has not said why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "failure/exiting.h"

enum { TICK = EL_MS(250), SAY_AFTER = EL_MS(500), LOOK_TIME = EL_SEC(1) };

/* One look.  It owns what its thread uses: a file system that stands still may keep it beyond its attempt. */
struct consequence_look {
    struct node *node; /* NULL: nobody waits for it any more */
    unsigned slot, attempt;
    el_usec since;
    struct failure words;
    struct pool_job job;
    struct errfile file;
    char path[PATH_MAX]; /* of the error file */
    bool reading, tailing, tailed;
    struct handled handled;
    el_usec err_at, out_at; /* when the last bytes of its streams were read */
};

struct consequence {
    struct consequence_look **look; /* nproc; NULL: none is under way */
    struct loop_timer *timer;
    el_usec since; /* of the first one of this attempt */
    bool said;
    int ending;           /* a slot that is waited for, since it had raised what follows before; -1: none is */
    uint64_t ending_read; /* bytes of it when that was seen */
    size_t ending_stack;  /* ... and of the traceback */
    char exiting_text[CLASSIFY_SIGN_MAX];
};

static void consequence_on_tick(void *ctx);

int consequence_init(struct node *n, struct el_err *e)
{
    struct consequence *c = n->consequence = calloc(1, sizeof *c);
    if (c)
        c->look = calloc(n->nproc, sizeof(struct consequence_look *));
    if (!c || !c->look || !(c->timer = loop_timer_new(n->loop, consequence_on_tick, n)))
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    c->ending = -1;
    return 0;
}

static void consequence_look_free(struct consequence_look *l)
{
    failure_free(&l->words, NULL);
    free(l);
}

/* True if nobody waits for it any more. */
static bool is_forgotten(struct consequence_look *l)
{
    if (l->node)
        return false;
    if (!l->reading && !l->tailing && !l->handled.reading)
        consequence_look_free(l);
    return true;
}

static void consequence_io_forget(struct node *n, unsigned slot)
{
    struct consequence_look *l = n->consequence->look[slot];
    n->consequence->look[slot] = NULL;
    if (!l)
        return;
    l->node = NULL;
    is_forgotten(l);
}

void consequence_forget(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++)
        consequence_io_forget(n, i);
    loop_timer_at(n->consequence->timer, EL_NEVER);
    n->consequence->said = false;
    n->consequence->ending = -1;
}

bool consequence_is_late(const struct node *n)
{
    bool late = false;
    for (unsigned i = 0; i < n->nproc; i++) {
        if (n->worker[i].ended && !n->worker[i].bad)
            return false;
        late |= n->worker[i].late;
    }
    return n->core.follows && late;
}

void consequence_free(struct node *n)
{
    struct consequence *c = n->consequence;
    if (!c)
        return;
    for (unsigned i = 0; c->look && i < n->nproc; i++)
        if (c->look[i])
            consequence_look_free(c->look[i]); /* the pool and the output are done with it, or never come back to it */
    loop_timer_free(c->timer);
    free(c->look);
    free(c);
}

static void consequence_answer(struct consequence_look *l, bool follows, bool waits)
{
    struct node *n = l->node;
    unsigned slot = l->slot, attempt = l->attempt;
    consequence_io_forget(n, slot);
    node_feed(n, &(struct agent_event){
                     .type = AGENT_EV_LOOKED, .slot = slot, .attempt = attempt, .follows = follows, .waits = waits});
}

/* Had this one, which runs, raised an error shortly before that moment, and said nothing since?  again: it was so, and
 * more has come since; a line that continues the traceback would be a message's, if it had come with it. */
static bool is_ending(struct node *n, unsigned slot, el_usec before, bool again)
{
    char path[PATH_MAX];
    struct failure words;
    size_t len;
    const el_usec at = output_said_at(n->output, slot, 2);
    char *bytes = at && at <= before && before - at < n->core.conf.consequence ? malloc(OUTPUT_KEPT_BYTES) : NULL;
    if (!bytes)
        return false;
    failure_init(&words);
    output_kept(n->output, slot, 2, path, sizeof path, bytes, &len);
    failure_add_stderr(&words, bytes, len, NULL);
    size_t stack = words.stack ? strlen(words.stack) : 0;
    bool raised = exiting_raised(&words) && (!again || stack == n->consequence->ending_stack);
    n->consequence->ending_stack = stack;
    if (raised)
        exiting_text(&words, n->consequence->exiting_text, sizeof n->consequence->exiting_text);
    failure_free(&words, NULL);
    free(bytes);
    return raised;
}

/* A rank that raised, and clears up: what it leaves behind ends others, who need not know why.  They are quicker. */
static bool find_ending(struct node *n, el_usec before)
{
    struct consequence *c = n->consequence;
    bool held;
    c->ending = -1;
    for (unsigned i = 0; i < n->nproc && c->ending < 0; i++)
        if (n->worker[i].started && !n->worker[i].ended && is_ending(n, i, before, false))
            c->ending = (int)i;
    if (c->ending >= 0)
        c->ending_read = output_read_bytes(n->output, (unsigned)c->ending, &held);
    return c->ending >= 0;
}

int consequence_halting(struct node *n)
{
    struct consequence *c = n->consequence;
    if (n->core.state != AGENT_RUNNING || n->core.cause != AGENT_NO_CAUSE || !find_ending(n, loop_clock()))
        return -1;
    c->since = loop_clock();
    loop_timer_at(c->timer, c->since + TICK);
    return c->ending;
}

/* It has printed more: is it still to be waited for? */
static void watch_ending(struct node *n)
{
    struct consequence *c = n->consequence;
    bool held;
    if ((!n->core.waits && n->core.ending < 0) || c->ending < 0 || n->worker[c->ending].ended ||
        output_read_bytes(n->output, (unsigned)c->ending, &held) == c->ending_read)
        return;
    if (!is_ending(n, (unsigned)c->ending, loop_clock(), true))
        node_feed(n, &(struct agent_event){.type = AGENT_EV_NONE_ENDS});
    else
        c->ending_read = output_read_bytes(n->output, (unsigned)c->ending, &held);
}

static void consequence_decide(struct consequence_look *l)
{
    const struct failure *f = &l->node->worker[l->slot].failure;
    l->words.end = f->end;
    l->words.code = f->code;
    l->words.at = f->at;
    l->words.elapsed = f->elapsed;
    failure_add_times(&l->words, l->err_at, l->out_at);
    failure_judge(&l->words, false, false);
    l->node->worker[l->slot].in_vain = l->words.class == FAILURE_CLASS_HANG;
    l->node->worker[l->slot].late = l->words.follower && !l->words.private_link && classify_is_late(l->words.rule);
    bool bare = l->words.end == FAILURE_EXIT && l->words.found.kind == TRACEBACK_NONE && !l->words.follower;
    consequence_answer(l, l->words.follower, bare && find_ending(l->node, f->at));
}

static void maybe_answer(struct consequence_look *l)
{
    if (!l->reading && l->tailed && !l->handled.reading)
        consequence_decide(l);
}

/* It has taken too long: if only its source is missing, its words count without; else it cannot be known, and nobody
 * waits for it. */
static void consequence_late(struct consequence_look *l)
{
    if (!l->reading && l->tailed)
        consequence_decide(l);
    else
        consequence_answer(l, false, false);
}

static void consequence_source_read(void *ctx)
{
    struct consequence_look *l = ctx;
    if (is_forgotten(l))
        return;
    handled_tell(&l->handled, &l->words);
    maybe_answer(l);
}

static void consequence_read_file(void *ctx)
{
    struct consequence_look *l = ctx;
    evidence_read_errfile(l->path, &l->file);
}

static void consequence_file_read(void *ctx)
{
    struct consequence_look *l = ctx;
    l->reading = false;
    if (is_forgotten(l))
        return;
    failure_add_file(&l->words, &l->file, NULL);
    maybe_answer(l);
}

static void consequence_on_tails(void *ctx, unsigned slot, const struct output_tail *out, const struct output_tail *err)
{
    (void)slot;
    struct consequence_look *l = ctx;
    l->tailing = false;
    if (is_forgotten(l))
        return;
    l->tailed = true;
    l->err_at = err->at;
    l->out_at = out->at;
    if (err->len)
        failure_add_stderr(&l->words, err->bytes, err->len, NULL);
    if (out->len)
        failure_add_stdout(&l->words, out->bytes, out->len, NULL);
    if (l->words.words_private) /* a service that it can do without? */
        handled_ask(l->node, &l->handled, &l->words, consequence_source_read, l);
    maybe_answer(l);
}

static void consequence_ask_tails(struct node *n, struct consequence_look *l)
{
    if (l->tailing || l->tailed)
        return;
    l->tailing = output_tails_collect(n->output, l->slot, loop_clock() + LOOK_TIME, consequence_on_tails, l) == 0;
    l->tailed = !l->tailing;
}

void consequence_drained(struct node *n, unsigned slot)
{
    if (n->consequence->look[slot])
        consequence_ask_tails(n, n->consequence->look[slot]);
}

void consequence_look(struct node *n, unsigned slot)
{
    struct consequence *c = n->consequence;
    struct el_err e = {0};
    consequence_io_forget(n, slot);
    struct consequence_look *l = c->look[slot] = calloc(1, sizeof *l);
    if (!l) {
        node_feed(n, &(struct agent_event){.type = AGENT_EV_LOOKED, .slot = slot, .attempt = n->core.attempts});
        return;
    }
    *l = (struct consequence_look){.node = n, .slot = slot, .attempt = n->core.attempts, .since = loop_clock()};
    failure_init(&l->words);
    c->since = c->said ? c->since : loop_clock();
    loop_timer_at(c->timer, loop_clock() + TICK);
    if (n->worker[slot].failure.error_file) {
        snprintf(l->path, sizeof l->path, "%s", n->worker[slot].failure.error_file);
        l->job = (struct pool_job){.work = consequence_read_file, .done = consequence_file_read, .ctx = l};
        l->reading = pool_run(n->pool, &l->job, &e) == 0;
    }
    if (output_rank_drained(n->output, slot))
        consequence_ask_tails(n, l);
    maybe_answer(l);
}

/* Some wait begins to be felt: for whom? */
static void consequence_say(struct node *n)
{
    const struct consequence *c = n->consequence;
    const struct failure *f = &n->worker[n->core.cause_slot].failure;
    n->consequence->said = true;
    if (n->core.ending >= 0) {
        el_log(EL_INFO, "rank %u had raised %s before: waiting up to %u s for its end",
               workers_rank(n, (unsigned)n->core.ending), c->exiting_text,
               (unsigned)(n->core.conf.consequence / EL_SEC(1)));
        return;
    }
    if (n->core.waits && c->ending >= 0) {
        el_log(EL_INFO,
               "rank %u (pid %d) failed with exit code %d, but rank %u had raised %s before: waiting up to %u s for "
               "its end",
               f->rank, f->pid, f->code, workers_rank(n, (unsigned)c->ending), c->exiting_text,
               (unsigned)(n->core.conf.consequence / EL_SEC(1)));
        return;
    }
    el_log(EL_INFO,
           "rank %u (pid %d) failed, but its last output only says that %s: waiting up to %u s for the rank that made "
           "it so",
           f->rank, f->pid, n->worker[n->core.cause_slot].in_vain ? "it waited for a peer in vain" : "a peer is gone",
           (unsigned)(n->core.conf.consequence / EL_SEC(1)));
}

static void consequence_on_tick(void *ctx)
{
    struct node *n = ctx;
    struct consequence *c = n->consequence;
    el_usec now = loop_clock();
    for (unsigned i = 0; i < n->nproc; i++)
        if (c->look[i] && now - c->look[i]->since > LOOK_TIME)
            consequence_late(c->look[i]);
    watch_ending(n);
    if (n->core.judge_until == EL_NEVER && n->core.ending < 0)
        return;
    if (!c->said && (n->core.follows || n->core.waits || n->core.ending >= 0) && now - c->since >= SAY_AFTER)
        consequence_say(n);
    loop_timer_at(c->timer, now + TICK);
}
