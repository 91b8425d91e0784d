/* Emergency checkpoint of workers that live (snapshot/emergency.h): a second socket, at which a thread of each worker
 * listens while its script may stand in a collective; and what is done between a failure and the signal that stops the
 * others. Among several nodes the coordinator decides which step it is (coord/emergency_ckpt.h), and when it is over.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "snapshot/emergency.h"
#include "snapshot/worker_status.h"
#include "snapshot/worker_sock.h"
#include "util/log.h"
#include "coord/emergency_ckpt.h"

#define CORE_LIMIT ((size_t)1 << 20)

struct emergency_io {
    struct node *node;
    struct el_mem mem;
    struct worker_sock *sock;
    struct emergency *core;
    struct emergency_stand *stand;
    el_usec *failing; /* when each worker has said so; 0: it has not */
    struct loop_timer *timer;
    bool running; /* since DO_CAPTURE */
    bool noted;   /* it is said who has failed; and then: */
    struct {
        unsigned n;
        char line[2][CKPT_PATH_MAX + 800]; /* "emergency checkpoint: …", "checkpoint: …" */
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

static void emergency_pump(struct emergency_io *w);

bool emergency_io_wanted(const struct node *n)
{
    bool keeps = n->conf->ckpt_mem_bytes || n->conf->ckpt_mem_percent;
    return keeps && n->conf->emergency_timeout;
}

/* Whoever waits to end badly need not wait any more. */
static void emergency_release(struct emergency_io *w)
{
    const struct worker_msg done = {.type = WORKER_MSG_DONE, .u.done = {.text = ""}};
    for (unsigned i = 0; i < w->node->nproc; i++)
        if (worker_sock_is_open(w->sock, i))
            worker_sock_send(w->sock, i, &done, NULL, 0);
}

/* A worker has failed, or is about to, and nobody has been told: that comes first. */
static bool has_news(const struct emergency_io *w)
{
    enum agent_cause cause = w->node->core.cause;
    bool news = cause == AGENT_WORKER_FAILED;
    for (unsigned i = 0; i < w->node->nproc && cause == AGENT_NO_CAUSE; i++)
        news |= w->failing[i] != 0;
    return news && !w->noted;
}

void emergency_io_say(struct node *n, const char *format, ...)
{
    struct emergency_io *w = n->words;
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

static void say_all(struct emergency_io *w)
{
    if (w->later.n)
        report_announce(w->node);
    for (unsigned i = 0; i < w->later.n; i++)
        el_log(EL_INFO, "%s", w->later.line[i]);
    w->later.n = 0;
}

void emergency_io_noted(struct node *n)
{
    if (!n->words)
        return;
    n->words->noted = true;
    say_all(n->words);
}

static void emergency_say(const struct emergency_io *w)
{
    struct emergency_end end = emergency_end(w->core);
    double took = (double)w->took / EL_SEC(1);
    char instead[64] = "no snapshot is in memory";
    /* Of a script that has gone back, and has nothing of what it trained since, what it has left counts. */
    int64_t common = slot_table_common(snapshot_service_keeper(w->node->snapshots)).step;
    int64_t counts = end.instead != SLOT_TABLE_NO_STEP ? end.instead : common;
    if (counts != SLOT_TABLE_NO_STEP)
        snprintf(instead, sizeof instead, "the snapshot of step %lld counts", (long long)counts);
    if (end.step != SLOT_TABLE_NO_STEP && end.copies)
        emergency_io_say(
            w->node, "emergency checkpoint: step %lld is captured from %u live worker%s: %.1f MiB in %.3f s",
            (long long)end.step, end.copies, end.copies == 1 ? "" : "s", (double)end.bytes / (1 << 20), took);
    else if (end.step == SLOT_TABLE_NO_STEP && *end.why)
        emergency_io_say(w->node, "emergency checkpoint: nothing newer is captured, %s: %s", instead, end.why);
}

/* --- one of several nodes: where its workers stand --- */

static void emergency_digest(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * 0x100000001b3u;
    *h ^= *h >> 29;
}

/* Of all that the message is made from; signs of life are not in it. */
static uint64_t see(const struct emergency_io *w)
{
    const struct slot_table *k = snapshot_service_keeper(w->node->snapshots);
    const struct slot_table_source *piece;
    unsigned pieces;
    uint64_t h = 0xcbf29ce484222325u;
    emergency_digest(&h, ckpt_writer_list(w->node, &piece, &pieces));
    emergency_digest(&h, (uint64_t)w->running | (uint64_t)emergency_has_copied(w->core) << 1);
    emergency_digest(&h, (uint64_t)emergency_told_step(w->core));
    emergency_digest(&h, (uint64_t)w->limit);
    for (unsigned i = 0; i < w->node->nproc; i++) {
        const struct emergency_stand *s = &w->stand[i];
        emergency_digest(&h, (uint64_t)s->answers | (uint64_t)s->ends << 1 | (uint64_t)s->page.listens << 2 |
                                 (uint64_t)s->page.stable << 3 | (uint64_t)emergency_is_out(w->core, i) << 4);
        emergency_digest(&h, (uint64_t)s->page.live);
        emergency_digest(&h, (uint64_t)s->page.begun);
        for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++) {
            const struct slot_table_slot *slot = slot_table_slot(k, i, x);
            emergency_digest(&h, (uint64_t)slot->state | (uint64_t)(slot->readers > 0) << 8);
            emergency_digest(&h, (uint64_t)slot->step);
        }
    }
    return h;
}

static enum emergency_ckpt_level emergency_level_of(enum slot_table_cover found, bool copies)
{
    return found == SLOT_TABLE_HOPELESS     ? EMERGENCY_CKPT_NO
           : found == SLOT_TABLE_INCOMPLETE ? EMERGENCY_CKPT_MAY
           : copies                         ? EMERGENCY_CKPT_CAN
                                            : EMERGENCY_CKPT_HAS;
}

static enum emergency_ckpt_level piece_level(const struct slot_table *k, const struct slot_table_source *piece,
                                             int64_t step, uint64_t lineage, const enum slot_table_live *live)
{
    struct slot_table_source from;
    if (slot_table_piece(k, piece, step, lineage, &from))
        return EMERGENCY_CKPT_HAS;
    enum slot_table_live best = slot_table_live_piece(k, piece, live);
    return best == SLOT_TABLE_LIVE_IS    ? EMERGENCY_CKPT_CAN
           : best == SLOT_TABLE_LIVE_MAY ? EMERGENCY_CKPT_MAY
                                         : EMERGENCY_CKPT_NO;
}

/* "12:c,h0-3,c5" */
static size_t emergency_put_step(struct emergency_io *w, int64_t step, char *to, size_t size)
{
    const struct slot_table *k = snapshot_service_keeper(w->node->snapshots);
    const struct slot_table_source *piece;
    const enum slot_table_live *live;
    unsigned pieces;
    bool copies;
    enum slot_table_cover found = emergency_level(w->core, w->stand, step, &copies, &live);
    size_t n = (size_t)snprintf(to, size, "%lld:%c", (long long)step,
                                emergency_ckpt_letter(emergency_level_of(found, copies)));
    uint64_t lineage = slot_table_lineage(k, step);
    ckpt_writer_list(w->node, &piece, &pieces);
    for (unsigned i = 0, last; i < pieces && n < size; i = last + 1) {
        enum emergency_ckpt_level level = piece_level(k, &piece[i], step, lineage, live);
        for (last = i; last + 1 < pieces && piece_level(k, &piece[last + 1], step, lineage, live) == level;)
            last++;
        if (level != EMERGENCY_CKPT_NO)
            n += (size_t)snprintf(to + n, size - n, ",%c%u-%u", emergency_ckpt_letter(level), i, last);
    }
    return n < size ? n : 0;
}

static void emergency_put_steps(struct emergency_io *w)
{
    int64_t step[EMERGENCY_CKPT_STEPS_MAX];
    unsigned steps = emergency_steps(w->core, w->stand, w->limit, step, EMERGENCY_CKPT_STEPS_MAX);
    size_t n = 0;
    for (unsigned i = 0; i < steps; i++) {
        size_t more = emergency_put_step(w, step[i], w->steps + n + (n > 0), CKPT_COMMIT_STEPS_TEXT - n - (n > 0));
        if (more && n)
            w->steps[n++] = ' ';
        n += more;
    }
    w->steps[n] = 0;
}

/* A snapshot is being committed. */
static bool is_committing(const struct slot_table *k)
{
    for (unsigned i = 0; i < slot_table_workers(k); i++)
        for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++)
            if (slot_table_slot(k, i, x)->state == SLOT_TABLE_WRITING ||
                slot_table_slot(k, i, x)->state == SLOT_TABLE_SUMMING)
                return true;
    return false;
}

static void count_copies(struct emergency_io *w)
{
    const struct slot_table *k = snapshot_service_keeper(w->node->snapshots);
    w->said.copies = 0;
    w->said.bytes = 0;
    for (unsigned i = 0; i < w->node->nproc; i++)
        for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++) {
            const struct slot_table_slot *s = slot_table_slot(k, i, x);
            bool counts = s->captured && s->state == SLOT_TABLE_COMMITTED && s->step == w->said.step;
            w->said.copies += counts;
            w->said.bytes += counts ? s->bytes : 0;
        }
}

/* All that there is to say, made anew if anything has changed. */
static void emergency_tell(struct emergency_io *w)
{
    struct node *n = w->node;
    const struct slot_table *k = snapshot_service_keeper(n->snapshots);
    const struct msg_world *world = membership_world(n->membership);
    const struct slot_table_source *piece;
    unsigned pieces;
    uint64_t seen = see(w);
    if (seen == w->seen && w->said.serial)
        return;
    w->seen = seen;
    emergency_put_steps(w);
    snprintf(w->why, sizeof w->why, "%s", emergency_why(w->core));
    w->said.number = world->number;
    w->said.coord = world->coord;
    w->said.serial++;
    w->said.list = ckpt_writer_list(n, &piece, &pieces);
    w->said.steps = w->steps;
    w->said.why = w->why;
    w->said.limit = w->limit;
    w->said.step = emergency_told_step(w->core);
    w->said.copied = emergency_has_copied(w->core);
    w->said.busy = is_committing(k);
    w->said.ends = !w->running;
    w->said.elsewhere = slot_table_takes_elsewhere(k);
    count_copies(w);
    membership_stand(n->membership, &w->said);
}

void emergency_io_pass(struct node *n)
{
    struct emergency_io *w = n->words;
    if (!w || !n->membership || w->running || w->over_told)
        return;
    for (unsigned i = 0; i < n->nproc; i++)
        w->stand[i] = (struct emergency_stand){.page = {.live = -1, .begun = -1}};
    emergency_tell(w);
}

/* --- from beginning to end --- */

static void emergency_finish(struct emergency_io *w)
{
    struct node *n = w->node;
    w->running = false;
    w->took = loop_clock() - w->began;
    loop_timer_at(w->timer, EL_NEVER);
    if (!n->membership)
        emergency_say(w);
    else if (w->lost)
        el_log(EL_INFO, "emergency checkpoint: the coordinator is away, so nothing more is captured on this node");
    step_boundary_thaw(
        snapshot_service_stops(n->snapshots)); /* who is signalled may want to end its step, and say so */
    emergency_release(w);
    w->said.ends = true;
    emergency_io_pass(n);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_CAPTURED, .attempt = w->attempt});
}

static void emergency_look(struct emergency_io *w)
{
    for (unsigned i = 0; i < w->node->nproc; i++) {
        w->stand[i].answers = worker_sock_is_open(w->sock, i);
        w->stand[i].ends = w->failing[i] != 0;
        step_boundary_stand(snapshot_service_stops(w->node->snapshots), i, &w->stand[i].page);
    }
}

static void emergency_pump(struct emergency_io *w)
{
    const struct emergency_order *order;
    if (!w->running)
        return;
    emergency_look(w);
    unsigned n = emergency_step(w->core, w->stand, loop_clock(), &order);
    emergency_check(w->core);
    for (unsigned i = 0; i < n; i++) {
        const struct slot_table_slot *to =
            slot_table_slot(snapshot_service_keeper(w->node->snapshots), order[i].worker, order[i].slot);
        const struct worker_msg m = {
            .type = WORKER_MSG_EMERGENCY,
            .u.emergency = {.slot = order[i].slot, .step = order[i].step, .slot_bytes = to->capacity}};
        worker_sock_send(w->sock, order[i].worker, &m, NULL, 0);
    }
    if (w->lost && (emergency_told_step(w->core) == SLOT_TABLE_NO_STEP || emergency_has_copied(w->core)))
        emergency_over(w->core, emergency_told_step(w->core));
    if (emergency_is_busy(w->core) && w->node->membership)
        emergency_tell(w);
    if (!w->running)
        return; /* what was told had its answer at once */
    if (!emergency_is_busy(w->core))
        emergency_finish(w);
    else
        loop_timer_at(w->timer, loop_clock() + EMERGENCY_LOOK);
}

static void emergency_on_look(void *ctx)
{
    emergency_pump(ctx);
}

/* --emergency-timeout is for the disk, too: that has half of it at least. */
static el_usec time_limit(const struct node *n)
{
    return n->conf->ckpt_dir ? n->conf->emergency_timeout / 2 : n->conf->emergency_timeout;
}

el_usec emergency_io_took(const struct node *n)
{
    const struct emergency_io *w = n->words;
    el_usec took = w && !w->running && w->attempt == n->core.attempts ? w->took : 0, most = time_limit(n);
    return took < most ? took : most;
}

void emergency_io_begin(struct node *n)
{
    struct emergency_io *w = n->words;
    w->running = true;
    w->lost = false;
    w->attempt = n->core.attempts;
    w->began = loop_clock();
    w->took = 0;
    if (!step_boundary_freeze(snapshot_service_stops(n->snapshots), &w->limit))
        emergency_rest(w->core);
    else if (n->membership)
        emergency_begin_shared(w->core, w->began, w->began + time_limit(n));
    else
        emergency_begin(w->core, w->began, w->began + time_limit(n));
    emergency_pump(w);
}

static void carry_out(struct emergency_io *w, const struct msg_ckpt_capture *o)
{
    if (o->limit > w->limit) {
        w->limit = o->limit;
        step_boundary_allow(snapshot_service_stops(w->node->snapshots), o->limit);
    }
    if (o->what == EMERGENCY_CKPT_COPY && o->heard == w->said.serial && o->step != emergency_told_step(w->core))
        emergency_told(w->core, o->step, o->kept);
    if (o->what == EMERGENCY_CKPT_OVER) {
        w->over_told = true;
        emergency_over(w->core, o->step);
    }
    emergency_pump(w);
}

void emergency_io_order(struct node *n, const struct msg_ckpt_capture *o)
{
    struct emergency_io *w = n->words;
    if (!w)
        return;
    if (!o) {
        w->lost = w->running;
        emergency_pump(w);
        return;
    }
    if (!w->running && o->what == EMERGENCY_CKPT_FREEZE)
        node_feed(n, &(struct agent_event){.type = AGENT_EV_FAILING});
    if (w->running)
        carry_out(w, o);
    else
        emergency_io_pass(n);
}

/* --- who speaks --- */

static int emergency_whose(void *ctx, pid_t pid)
{
    const struct emergency_io *w = ctx;
    return snapshot_service_whose(w->node->snapshots, pid);
}

static void emergency_on_captured(struct emergency_io *w, unsigned worker, const struct wmsg_captured *c)
{
    if (!c->ok)
        el_log(EL_DEBUG, "local rank %u: step %lld is not captured: %s", worker, (long long)c->step, c->why);
    emergency_said(w->core, worker, c->ok, c->why);
    snapshot_service_captured(w->node->snapshots, worker, c);
    emergency_pump(w);
}

static void emergency_on_failing(struct emergency_io *w, unsigned worker)
{
    el_log(EL_DEBUG, "local rank %u: its script has failed, and waits for an emergency checkpoint", worker);
    w->failing[worker] = loop_clock();
    node_feed(w->node, &(struct agent_event){.type = AGENT_EV_FAILING, .slot = worker});
    if (!w->running)
        emergency_release(w);
}

static void emergency_on_message(void *ctx, unsigned worker, const struct worker_msg *m)
{
    struct emergency_io *w = ctx;
    if (m->type == WORKER_MSG_CAPTURED)
        emergency_on_captured(w, worker, &m->u.captured);
    else if (m->type == WORKER_MSG_FAILING)
        emergency_on_failing(w, worker);
    else
        worker_sock_close(w->sock, worker);
}

static void emergency_on_gone(void *ctx, unsigned worker)
{
    (void)worker;
    emergency_pump(ctx);
}

void emergency_io_ended(struct node *n, unsigned slot)
{
    if (n->words)
        worker_sock_finish(n->words->sock, slot);
}

bool emergency_io_has_failed(const struct node *n, unsigned slot)
{
    return n->words && n->words->failing[slot];
}

/* Of several that fail at once the first to say so comes first, in whichever order they end; and Python's status for an
 * exception that nobody catches is 1, though another one's end brought a signal meanwhile. */
void emergency_io_amend(const struct node *n, unsigned slot, struct failure *f)
{
    if (!emergency_io_has_failed(n, slot) || report_was_signalled(n, slot))
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

void emergency_io_round(struct node *n)
{
    struct emergency_io *w = n->words;
    if (!w)
        return;
    w->running = w->lost = w->over_told = w->noted = false;
    say_all(w);
    w->limit = SLOT_TABLE_NO_STEP;
    w->said = (struct member_stand){.step = SLOT_TABLE_NO_STEP, .steps = "", .why = ""};
    emergency_rest(w->core);
    loop_timer_at(w->timer, EL_NEVER);
    for (unsigned i = 0; i < n->nproc; i++) {
        worker_sock_close(w->sock, i);
        w->failing[i] = 0;
    }
}

/* --- life --- */

int emergency_io_init(struct node *n, struct el_err *e)
{
    static const struct worker_sock_ops ops = {emergency_whose, emergency_on_message, emergency_on_gone};
    bool alone = n->place.kind == ENDPOINT_ALONE;
    char path[108];
    if (!emergency_io_wanted(n))
        return 0;
    struct emergency_io *w = n->words = calloc(1, sizeof *w);
    if (!w)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    w->node = n;
    w->mem = EL_MEM_INIT(CORE_LIMIT);
    /* What is captured is tensors: who has files is not asked. */
    bool disk = alone && n->conf->ckpt_dir && n->conf->ckpt_layout != CKPT_LAYOUT_MEGATRON;
    w->core = emergency_new(snapshot_service_keeper(n->snapshots), disk, &w->mem);
    w->stand = calloc(n->nproc, sizeof *w->stand);
    w->failing = calloc(n->nproc, sizeof *w->failing);
    w->steps = alone ? NULL : calloc(1, CKPT_COMMIT_STEPS_TEXT + 1);
    w->timer = loop_timer_new(n->loop, emergency_on_look, w);
    if (!w->core || !w->stand || !w->failing || !w->timer || (!alone && !w->steps))
        return el_fail(e, EL_EXIT_OSERR, "out of memory for an emergency checkpoint of %u workers", n->nproc);
    snprintf(path, sizeof path, "%.100s.live", snapshot_service_socket(n->snapshots));
    w->sock = worker_sock_new(n->loop, path, n->nproc, &ops, w, e);
    return w->sock ? 0 : -1;
}

void emergency_io_free(struct node *n)
{
    struct emergency_io *w = n->words;
    if (!w)
        return;
    if (w->sock)
        worker_sock_free(w->sock);
    emergency_free(w->core);
    loop_timer_free(w->timer);
    free(w->stand);
    free(w->failing);
    free(w->steps);
    free(w);
    n->words = NULL;
}
