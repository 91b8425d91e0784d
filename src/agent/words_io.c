/* Last words of workers that live (snapshot/capture.h): a second socket, at which a thread of each worker listens while
 * its script may stand in a collective; and what is done between a failure and the signal that stops the others.  Among
 * several nodes the coordinator decides which step it is (coord/lastwords.h), and when it is over. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "snapshot/capture.h"
#include "snapshot/page.h"
#include "snapshot/wsock.h"
#include "util/log.h"
#include "coord/lastwords.h"

#define CORE_LIMIT ((size_t)1 << 20)

struct words {
    struct node *node;
    struct el_mem mem;
    struct wsock *sock;
    struct capture *core;
    struct capture_stand *stand;
    el_usec *failing; /* when each worker has said so; 0: it has not */
    struct loop_timer *timer;
    bool running; /* since DO_CAPTURE */
    bool noted;   /* it is said who has failed; and then: */
    struct {
        unsigned n;
        char line[2][CKPT_PATH_MAX + 800]; /* "last words: …", "checkpoint: …" */
    } later;
    unsigned attempt;
    el_usec began, took;

    /* one of several nodes */
    struct member_stand said;
    char *steps, why[MSG_TEXT_MAX + 1];
    uint64_t seen;  /* digest of what `said` was made from */
    int64_t limit;  /* no later step is begun */
    bool lost;      /* the coordinator is gone: what is being copied is the last */
    bool over_told; /* it has said that this is over */
};

static void pump(struct words *w);

bool words_wanted(const struct node *n)
{
    bool keeps = n->conf->ckpt_mem_bytes || n->conf->ckpt_mem_percent;
    return keeps && n->conf->lastwords_timeout;
}

/* Whoever waits to end badly need not wait any more. */
static void release(struct words *w)
{
    const struct wmsg done = {.type = WMSG_DONE, .u.done = {.text = ""}};
    for (unsigned i = 0; i < w->node->nproc; i++)
        if (wsock_is_open(w->sock, i))
            wsock_send(w->sock, i, &done, NULL, 0);
}

/* A worker has failed, or is about to, and nobody has been told: that comes first. */
static bool has_news(const struct words *w)
{
    enum agent_cause cause = w->node->core.cause;
    bool news = cause == AGENT_WORKER_FAILED;
    for (unsigned i = 0; i < w->node->nproc && cause == AGENT_NO_CAUSE; i++)
        news |= w->failing[i] != 0;
    return news && !w->noted;
}

void words_say(struct node *n, const char *format, ...)
{
    struct words *w = n->words;
    char now[sizeof w->later.line[0]];
    bool waits = w && has_news(w) && w->later.n < sizeof w->later.line / sizeof w->later.line[0];
    va_list ap;
    va_start(ap, format);
    vsnprintf(waits ? w->later.line[w->later.n++] : now, sizeof now, format, ap);
    va_end(ap);
    if (!waits) {
        report_announce(n);
        el_log(EL_INFO, "%s", now);
    }
}

static void say_all(struct words *w)
{
    if (w->later.n)
        report_announce(w->node);
    for (unsigned i = 0; i < w->later.n; i++)
        el_log(EL_INFO, "%s", w->later.line[i]);
    w->later.n = 0;
}

void words_noted(struct node *n)
{
    if (!n->words)
        return;
    n->words->noted = true;
    say_all(n->words);
}

static void say(const struct words *w)
{
    struct capture_end end = capture_end(w->core);
    double took = (double)w->took / EL_SEC(1);
    char instead[64] = "no snapshot is in memory";
    /* Of a script that has gone back, and has nothing of what it trained since, what it has left counts. */
    int64_t common = keeper_common(snapshots_keeper(w->node->snapshots)).step;
    int64_t counts = end.instead != KEEPER_NO_STEP ? end.instead : common;
    if (counts != KEEPER_NO_STEP)
        snprintf(instead, sizeof instead, "the snapshot of step %lld counts", (long long)counts);
    if (end.step != KEEPER_NO_STEP && end.copies)
        words_say(w->node, "last words: step %lld is captured from %u live worker%s: %.1f MiB in %.3f s",
                  (long long)end.step, end.copies, end.copies == 1 ? "" : "s", (double)end.bytes / (1 << 20), took);
    else if (end.step == KEEPER_NO_STEP && *end.why)
        words_say(w->node, "last words: nothing newer is captured, %s: %s", instead, end.why);
}

/* --- one of several nodes: where its workers stand --- */

static void digest(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * 0x100000001b3u;
    *h ^= *h >> 29;
}

/* Of all that the message is made from; signs of life are not in it. */
static uint64_t see(const struct words *w)
{
    const struct keeper *k = snapshots_keeper(w->node->snapshots);
    const struct keeper_source *piece;
    unsigned pieces;
    uint64_t h = 0xcbf29ce484222325u;
    digest(&h, saver_list(w->node, &piece, &pieces));
    digest(&h, (uint64_t)w->running | (uint64_t)capture_has_copied(w->core) << 1);
    digest(&h, (uint64_t)capture_told_step(w->core));
    digest(&h, (uint64_t)w->limit);
    for (unsigned i = 0; i < w->node->nproc; i++) {
        const struct capture_stand *s = &w->stand[i];
        digest(&h, (uint64_t)s->answers | (uint64_t)s->ends << 1 | (uint64_t)s->page.listens << 2 |
                       (uint64_t)s->page.stable << 3 | (uint64_t)capture_is_out(w->core, i) << 4);
        digest(&h, (uint64_t)s->page.live);
        digest(&h, (uint64_t)s->page.begun);
        for (unsigned x = 0; x < KEEPER_SLOTS; x++) {
            const struct keeper_slot *slot = keeper_slot(k, i, x);
            digest(&h, (uint64_t)slot->state | (uint64_t)(slot->readers > 0) << 8);
            digest(&h, (uint64_t)slot->step);
        }
    }
    return h;
}

static enum lastwords_level level_of(enum keeper_cover found, bool copies)
{
    return found == KEEPER_HOPELESS     ? LASTWORDS_NO
           : found == KEEPER_INCOMPLETE ? LASTWORDS_MAY
           : copies                     ? LASTWORDS_CAN
                                        : LASTWORDS_HAS;
}

static enum lastwords_level piece_level(const struct keeper *k, const struct keeper_source *piece, int64_t step,
                                        uint64_t lineage, const enum keeper_live *live)
{
    struct keeper_source from;
    if (keeper_piece(k, piece, step, lineage, &from))
        return LASTWORDS_HAS;
    enum keeper_live best = keeper_live_piece(k, piece, live);
    return best == KEEPER_LIVE_IS ? LASTWORDS_CAN : best == KEEPER_LIVE_MAY ? LASTWORDS_MAY : LASTWORDS_NO;
}

/* "12:c,h0-3,c5" */
static size_t put_step(struct words *w, int64_t step, char *to, size_t size)
{
    const struct keeper *k = snapshots_keeper(w->node->snapshots);
    const struct keeper_source *piece;
    const enum keeper_live *live;
    unsigned pieces;
    bool copies;
    enum keeper_cover found = capture_level(w->core, w->stand, step, &copies, &live);
    size_t n = (size_t)snprintf(to, size, "%lld:%c", (long long)step, lastwords_letter(level_of(found, copies)));
    uint64_t lineage = keeper_lineage(k, step);
    saver_list(w->node, &piece, &pieces);
    for (unsigned i = 0, last; i < pieces && n < size; i = last + 1) {
        enum lastwords_level level = piece_level(k, &piece[i], step, lineage, live);
        for (last = i; last + 1 < pieces && piece_level(k, &piece[last + 1], step, lineage, live) == level;)
            last++;
        if (level != LASTWORDS_NO)
            n += (size_t)snprintf(to + n, size - n, ",%c%u-%u", lastwords_letter(level), i, last);
    }
    return n < size ? n : 0;
}

static void put_steps(struct words *w)
{
    int64_t step[LASTWORDS_STEPS_MAX];
    unsigned steps = capture_steps(w->core, w->stand, w->limit, step, LASTWORDS_STEPS_MAX);
    size_t n = 0;
    for (unsigned i = 0; i < steps; i++) {
        size_t more = put_step(w, step[i], w->steps + n + (n > 0), SAVING_STEPS_TEXT - n - (n > 0));
        if (more && n)
            w->steps[n++] = ' ';
        n += more;
    }
    w->steps[n] = 0;
}

/* A snapshot is being committed. */
static bool is_committing(const struct keeper *k)
{
    for (unsigned i = 0; i < keeper_workers(k); i++)
        for (unsigned x = 0; x < KEEPER_SLOTS; x++)
            if (keeper_slot(k, i, x)->state == KEEPER_WRITING || keeper_slot(k, i, x)->state == KEEPER_SUMMING)
                return true;
    return false;
}

static void count_copies(struct words *w)
{
    const struct keeper *k = snapshots_keeper(w->node->snapshots);
    w->said.copies = 0;
    w->said.bytes = 0;
    for (unsigned i = 0; i < w->node->nproc; i++)
        for (unsigned x = 0; x < KEEPER_SLOTS; x++) {
            const struct keeper_slot *s = keeper_slot(k, i, x);
            bool counts = s->captured && s->state == KEEPER_COMMITTED && s->step == w->said.step;
            w->said.copies += counts;
            w->said.bytes += counts ? s->bytes : 0;
        }
}

/* All that there is to say, made anew if anything has changed. */
static void tell(struct words *w)
{
    struct node *n = w->node;
    const struct keeper *k = snapshots_keeper(n->snapshots);
    const struct msg_world *world = membership_world(n->membership);
    const struct keeper_source *piece;
    unsigned pieces;
    uint64_t seen = see(w);
    if (seen == w->seen && w->said.serial)
        return;
    w->seen = seen;
    put_steps(w);
    snprintf(w->why, sizeof w->why, "%s", capture_why(w->core));
    w->said.number = world->number;
    w->said.coord = world->coord;
    w->said.serial++;
    w->said.list = saver_list(n, &piece, &pieces);
    w->said.steps = w->steps;
    w->said.why = w->why;
    w->said.limit = w->limit;
    w->said.step = capture_told_step(w->core);
    w->said.copied = capture_has_copied(w->core);
    w->said.busy = is_committing(k);
    w->said.ends = !w->running;
    w->said.elsewhere = keeper_takes_elsewhere(k);
    count_copies(w);
    membership_stand(n->membership, &w->said);
}

void words_pass(struct node *n)
{
    struct words *w = n->words;
    if (!w || !n->membership || w->running || w->over_told)
        return;
    for (unsigned i = 0; i < n->nproc; i++)
        w->stand[i] = (struct capture_stand){.page = {.live = -1, .begun = -1}};
    tell(w);
}

/* --- from beginning to end --- */

static void finish(struct words *w)
{
    struct node *n = w->node;
    w->running = false;
    w->took = loop_clock() - w->began;
    loop_timer_at(w->timer, EL_NEVER);
    if (!n->membership)
        say(w);
    else if (w->lost)
        el_log(EL_INFO, "last words: the coordinator is away, so nothing more is captured on this node");
    stops_thaw(snapshots_stops(n->snapshots)); /* who is signalled may want to end its step, and say so */
    release(w);
    w->said.ends = true;
    words_pass(n);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_CAPTURED, .attempt = w->attempt});
}

static void look(struct words *w)
{
    for (unsigned i = 0; i < w->node->nproc; i++) {
        w->stand[i].answers = wsock_is_open(w->sock, i);
        w->stand[i].ends = w->failing[i] != 0;
        stops_stand(snapshots_stops(w->node->snapshots), i, &w->stand[i].page);
    }
}

static void pump(struct words *w)
{
    const struct capture_order *order;
    if (!w->running)
        return;
    look(w);
    unsigned n = capture_step(w->core, w->stand, loop_clock(), &order);
    capture_check(w->core);
    for (unsigned i = 0; i < n; i++) {
        const struct keeper_slot *to =
            keeper_slot(snapshots_keeper(w->node->snapshots), order[i].worker, order[i].slot);
        const struct wmsg m = {
            .type = WMSG_LASTWORDS,
            .u.lastwords = {.slot = order[i].slot, .step = order[i].step, .slot_bytes = to->capacity}};
        wsock_send(w->sock, order[i].worker, &m, NULL, 0);
    }
    if (w->lost && (capture_told_step(w->core) == KEEPER_NO_STEP || capture_has_copied(w->core)))
        capture_over(w->core, capture_told_step(w->core));
    if (capture_is_busy(w->core) && w->node->membership)
        tell(w);
    if (!w->running)
        return; /* what was told had its answer at once */
    if (!capture_is_busy(w->core))
        finish(w);
    else
        loop_timer_at(w->timer, loop_clock() + CAPTURE_LOOK);
}

static void on_look(void *ctx)
{
    pump(ctx);
}

/* --lastwords-timeout is for the disk, too: that has half of it at least. */
static el_usec time_limit(const struct node *n)
{
    return n->conf->ckpt_dir ? n->conf->lastwords_timeout / 2 : n->conf->lastwords_timeout;
}

el_usec words_took(const struct node *n)
{
    const struct words *w = n->words;
    el_usec took = w && !w->running && w->attempt == n->core.attempts ? w->took : 0, most = time_limit(n);
    return took < most ? took : most;
}

void words_begin(struct node *n)
{
    struct words *w = n->words;
    w->running = true;
    w->lost = false;
    w->attempt = n->core.attempts;
    w->began = loop_clock();
    w->took = 0;
    if (!stops_freeze(snapshots_stops(n->snapshots), &w->limit))
        capture_rest(w->core);
    else if (n->membership)
        capture_begin_shared(w->core, w->began, w->began + time_limit(n));
    else
        capture_begin(w->core, w->began, w->began + time_limit(n));
    pump(w);
}

static void carry_out(struct words *w, const struct msg_ckpt_capture *o)
{
    if (o->limit > w->limit) {
        w->limit = o->limit;
        stops_allow(snapshots_stops(w->node->snapshots), o->limit);
    }
    if (o->what == LASTWORDS_COPY && o->heard == w->said.serial && o->step != capture_told_step(w->core))
        capture_told(w->core, o->step, o->kept);
    if (o->what == LASTWORDS_OVER) {
        w->over_told = true;
        capture_over(w->core, o->step);
    }
    pump(w);
}

void words_order(struct node *n, const struct msg_ckpt_capture *o)
{
    struct words *w = n->words;
    if (!w)
        return;
    if (!o) {
        w->lost = w->running;
        pump(w);
        return;
    }
    if (!w->running && o->what == LASTWORDS_FREEZE)
        node_feed(n, &(struct agent_event){.type = AGENT_EV_FAILING});
    if (w->running)
        carry_out(w, o);
    else
        words_pass(n);
}

/* --- who speaks --- */

static int whose(void *ctx, pid_t pid)
{
    const struct words *w = ctx;
    return snapshots_whose(w->node->snapshots, pid);
}

static void on_captured(struct words *w, unsigned worker, const struct wmsg_captured *c)
{
    if (!c->ok)
        el_log(EL_DEBUG, "local rank %u: step %lld is not captured: %s", worker, (long long)c->step, c->why);
    capture_said(w->core, worker, c->ok, c->why);
    snapshots_captured(w->node->snapshots, worker, c);
    pump(w);
}

static void on_failing(struct words *w, unsigned worker)
{
    el_log(EL_DEBUG, "local rank %u: its script has failed, and waits for last words", worker);
    w->failing[worker] = loop_clock();
    node_feed(w->node, &(struct agent_event){.type = AGENT_EV_FAILING, .slot = worker});
    if (!w->running)
        release(w);
}

static void on_message(void *ctx, unsigned worker, const struct wmsg *m)
{
    struct words *w = ctx;
    if (m->type == WMSG_CAPTURED)
        on_captured(w, worker, &m->u.captured);
    else if (m->type == WMSG_FAILING)
        on_failing(w, worker);
    else
        wsock_close(w->sock, worker);
}

static void on_gone(void *ctx, unsigned worker)
{
    (void)worker;
    pump(ctx);
}

void words_ended(struct node *n, unsigned slot)
{
    if (n->words)
        wsock_finish(n->words->sock, slot);
}

bool words_has_failed(const struct node *n, unsigned slot)
{
    return n->words && n->words->failing[slot];
}

/* Of several that fail at once the first to say so comes first, in whichever order they end; and Python's status for an
 * exception that nobody catches is 1, though another one's end brought a signal meanwhile. */
void words_amend(const struct node *n, unsigned slot, struct failure *f)
{
    if (!words_has_failed(n, slot) || report_was_signalled(n, slot))
        return; /* it failed by that signal */
    el_usec ago = f->at - n->words->failing[slot];
    f->at -= ago;
    f->wall_usec -= (int64_t)ago;
    f->elapsed -= ago;
    if (n->core.group.slot[slot].signalled && f->end == FAILURE_SIGNAL && (f->code == SIGTERM || f->code == SIGKILL)) {
        f->end = FAILURE_EXIT;
        f->code = 1;
    }
}

void words_round(struct node *n)
{
    struct words *w = n->words;
    if (!w)
        return;
    w->running = w->lost = w->over_told = w->noted = false;
    say_all(w);
    w->limit = KEEPER_NO_STEP;
    w->said = (struct member_stand){.step = KEEPER_NO_STEP, .steps = "", .why = ""};
    capture_rest(w->core);
    loop_timer_at(w->timer, EL_NEVER);
    for (unsigned i = 0; i < n->nproc; i++) {
        wsock_close(w->sock, i);
        w->failing[i] = 0;
    }
}

/* --- life --- */

int words_init(struct node *n, struct el_err *e)
{
    static const struct wsock_ops ops = {whose, on_message, on_gone};
    bool alone = n->place.kind == ENDPOINT_ALONE;
    char path[108];
    if (!words_wanted(n))
        return 0;
    struct words *w = n->words = calloc(1, sizeof *w);
    if (!w)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    w->node = n;
    w->mem = EL_MEM_INIT(CORE_LIMIT);
    /* What is captured is tensors: who has files is not asked. */
    bool disk = alone && n->conf->ckpt_dir && n->conf->ckpt_layout != CKPT_LAYOUT_MEGATRON;
    w->core = capture_new(snapshots_keeper(n->snapshots), disk, &w->mem);
    w->stand = calloc(n->nproc, sizeof *w->stand);
    w->failing = calloc(n->nproc, sizeof *w->failing);
    w->steps = alone ? NULL : calloc(1, SAVING_STEPS_TEXT + 1);
    w->timer = loop_timer_new(n->loop, on_look, w);
    if (!w->core || !w->stand || !w->failing || !w->timer || (!alone && !w->steps))
        return el_fail(e, EL_EXIT_OSERR, "out of memory for last words of %u workers", n->nproc);
    snprintf(path, sizeof path, "%.100s.live", snapshots_socket(n->snapshots));
    w->sock = wsock_new(n->loop, path, n->nproc, &ops, w, e);
    return w->sock ? 0 : -1;
}

void words_free(struct node *n)
{
    struct words *w = n->words;
    if (!w)
        return;
    if (w->sock)
        wsock_free(w->sock);
    capture_free(w->core);
    loop_timer_free(w->timer);
    free(w->stand);
    free(w->failing);
    free(w->steps);
    free(w);
    n->words = NULL;
}
