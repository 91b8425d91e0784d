/* What people ask about the snapshots of this node: how they stand, and that the newest be on disk.  Whoever wants a
 * save is told how far it is, and then what has become of it; nothing else waits for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/control_socket.h"
#include "agent/node.h"
#include "snapshot/slot_table.h"
#include "ckpt/ckpt.h"

#define TELL_EVERY EL_MS(500) /* how far a save is: also a sign of life */

struct ckpt_control_held {
    int64_t step; /* that was committed into this slot last; SLOT_TABLE_NO_STEP: none was */
    el_usec at;
};

struct waiting {
    struct asker *who; /* NULL: nobody */
    int64_t step;
    uint64_t ask; /* 0: what becomes of the step is the answer */
};

struct ckpt_asks {
    struct node *node;
    struct control_socket *asks;
    struct loop_timer *tick;
    struct ckpt_control_held *held; /* workers x SLOT_TABLE_SLOTS */
    struct waiting waiting[CONTROL_SOCKET_MAX];
};

/* --- rows --------------------------------------------------------------------------------------------------------- */

static int64_t age_ms(el_usec since)
{
    return since ? (int64_t)((loop_clock() - since) / EL_MS(1)) : -1;
}

/* When that slot came to hold what it holds; 0: not known, it was read from disk. */
static el_usec held_since(const struct ckpt_asks *c, unsigned worker, unsigned slot)
{
    const struct slot_table_slot *s = slot_table_slot(snapshot_service_keeper(c->node->snapshots), worker, slot);
    const struct ckpt_control_held *h = &c->held[worker * SLOT_TABLE_SLOTS + slot];
    return s->state == SLOT_TABLE_COMMITTED && s->step == h->step ? h->at : 0;
}

static el_usec covered_since(const struct ckpt_asks *c, int64_t step)
{
    const struct slot_table *k = snapshot_service_keeper(c->node->snapshots);
    el_usec last = 0;
    for (unsigned w = 0; w < c->node->nproc; w++)
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
            if (slot_table_slot(k, w, i)->step == step && held_since(c, w, i) > last)
                last = held_since(c, w, i);
    return last;
}

static void fill_node(const struct ckpt_asks *c, struct msg_ckpt_node *m)
{
    const struct node *n = c->node;
    const struct slot_table *k = snapshot_service_keeper(n->snapshots);
    struct flush_io_view disk;
    flush_io_view(n, &disk);
    int64_t step = slot_table_covered(k);
    *m = (struct msg_ckpt_node){.run_id = workers_run_id(n),
                                .host = n->host,
                                .pid = (uint64_t)getpid(),
                                .group_rank = n->membership ? membership_world(n->membership)->group_rank : 0,
                                .workers = n->nproc,
                                .budget_bytes = slot_table_budget_bytes(k),
                                .used_bytes = slot_table_used_bytes(k),
                                .step = step,
                                .age_ms = step == SLOT_TABLE_NO_STEP ? -1 : age_ms(covered_since(c, step)),
                                .dir = n->conf->ckpt_dir,
                                .disk_step = disk.on_disk,
                                .disk_age_ms = age_ms(disk.on_disk_at),
                                .writing = disk.writing,
                                .done_bytes = disk.done_bytes,
                                .all_bytes = disk.all_bytes,
                                .failed = disk.failed,
                                .why = disk.failed == SLOT_TABLE_NO_STEP ? "" : disk.why,
                                .more = true};
}

static void fill_worker(const struct ckpt_asks *c, unsigned worker, struct msg_ckpt_worker *m)
{
    const struct node *n = c->node;
    const struct slot_table *k = snapshot_service_keeper(n->snapshots);
    const struct slot_table_slot *first = slot_table_slot(k, worker, 0), *second = slot_table_slot(k, worker, 1);
    bool slots = slot_table_parts(k, worker) > 0;
    int newest = slot_table_newest(k, worker);
    *m = (struct msg_ckpt_worker){.rank = workers_rank(n, worker),
                                  .local_rank = worker,
                                  .step = newest < 0 ? SLOT_TABLE_NO_STEP
                                                     : slot_table_slot(k, worker, (unsigned)newest)->step,
                                  .age_ms = newest < 0 ? -1 : age_ms(held_since(c, worker, (unsigned)newest)),
                                  .slot_bytes = slot_table_slot_bytes(k, worker),
                                  .slot0 = slots ? slot_table_state_name(first->state) : "",
                                  .step0 = first->step,
                                  .slot1 = slots ? slot_table_state_name(second->state) : "",
                                  .step1 = second->step,
                                  .more = worker + 1 < n->nproc};
    m->here = step_boundary_view(snapshot_service_stops(n->snapshots), worker, &m->phase, &m->live_step);
}

static void send_all(const struct ckpt_asks *c, struct asker *who)
{
    struct msg m = {.type = MSG_CKPT_NODE};
    fill_node(c, &m.u.ckpt_node);
    asker_send(who, &m);
    for (unsigned w = 0; w < c->node->nproc; w++) {
        m = (struct msg){.type = MSG_CKPT_WORKER};
        fill_worker(c, w, &m.u.ckpt_worker);
        asker_send(who, &m);
    }
    asker_end(who);
}

/* --- a save ------------------------------------------------------------------------------------------------------- */

static void ckpt_control_answer(const struct ckpt_asks *c, struct asker *who, unsigned status, const char *text)
{
    struct msg m = {.type = MSG_CKPT_NODE};
    fill_node(c, &m.u.ckpt_node);
    m.u.ckpt_node.more = false;
    m.u.ckpt_node.status = status;
    m.u.ckpt_node.text = text;
    asker_send(who, &m);
    asker_end(who);
}

/* How far it is, or what became of it.  A step that was passed over for a newer one is waited for as that. */
static void ckpt_control_look_at(struct ckpt_asks *c, struct waiting *w)
{
    struct flush_io_view disk;
    struct asker *who = w->who;
    char text[MSG_TEXT_MAX + 1];
    flush_io_view(c->node, &disk);
    if (w->ask ? disk.answered < w->ask : disk.on_disk < w->step && !disk.idle) {
        struct msg m = {.type = MSG_CKPT_NODE};
        fill_node(c, &m.u.ckpt_node);
        if (!asker_is_behind(who))
            asker_send(who, &m);
        return;
    }
    w->who = NULL;
    if (w->ask) {
        ckpt_control_answer(c, who, (unsigned)disk.answer_status, disk.answer);
        return;
    }
    if (disk.on_disk >= w->step) {
        ckpt_control_answer(c, who, 0, disk.said);
        return;
    }
    snprintf(text, sizeof text, "step %lld is not on disk: %.400s",
             (long long)(disk.failed == SLOT_TABLE_NO_STEP ? w->step : disk.failed),
             disk.failed == SLOT_TABLE_NO_STEP ? "it is not held any more" : disk.why);
    ckpt_control_answer(c, who, EL_EXIT_CANTCREAT, text);
}

static void ckpt_control_on_tick(void *ctx)
{
    struct ckpt_asks *c = ctx;
    bool any = false;
    for (unsigned i = 0; i < CONTROL_SOCKET_MAX; i++) {
        if (c->waiting[i].who)
            ckpt_control_look_at(c, &c->waiting[i]);
        any |= c->waiting[i].who != NULL;
    }
    if (any)
        loop_timer_at(c->tick, loop_clock() + TELL_EVERY);
}

static void save(struct ckpt_asks *c, struct asker *who)
{
    struct node *n = c->node;
    struct waiting *w = c->waiting;
    if (!slot_table_budget_bytes(snapshot_service_keeper(n->snapshots))) {
        ckpt_control_answer(c, who, CKPT_UNSUPPORTED,
                            "snapshots are off: this job was started without --ckpt-mem and --ckpt-dir");
        return;
    }
    if (!n->persisting) {
        ckpt_control_answer(c, who, CKPT_UNSUPPORTED,
                            "snapshots of this job stay in memory: it was started without --ckpt-dir");
        return;
    }
    uint64_t ask = 0;
    int64_t step = flush_io_save(n, &ask);
    if (!ask && step == SLOT_TABLE_NO_STEP) {
        ckpt_control_answer(c, who, CKPT_INCOMPLETE, "nothing is in memory yet: no step that every rank has committed");
        return;
    }
    while (w->who)
        w++; /* there are as many as can ask */
    *w = (struct waiting){who, step, ask};
    loop_timer_at(c->tick, loop_clock());
}

static void on_ask(void *ctx, struct asker *who, const struct msg *m)
{
    if (m->u.ckpt_query.save)
        save(ctx, who);
    else
        send_all(ctx, who);
}

static void ckpt_control_on_gone(void *ctx, struct asker *who)
{
    struct ckpt_asks *c = ctx;
    for (unsigned i = 0; i < CONTROL_SOCKET_MAX; i++)
        if (c->waiting[i].who == who)
            c->waiting[i].who = NULL;
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

void ckpt_asks_committed(struct node *n, unsigned worker, unsigned slot)
{
    const struct slot_table_slot *s = slot_table_slot(snapshot_service_keeper(n->snapshots), worker, slot);
    if (n->asks && s->state == SLOT_TABLE_COMMITTED)
        n->asks->held[worker * SLOT_TABLE_SLOTS + slot] = (struct ckpt_control_held){s->step, loop_clock()};
}

/* Looked at in a later turn, when all that follows has been done. */
void ckpt_news(struct node *n)
{
    if (n->asks)
        loop_timer_at(n->asks->tick, loop_clock());
}

int ckpt_asks_init(struct node *n, struct el_err *e)
{
    static const struct control_socket_ops ops = {on_ask, ckpt_control_on_gone};
    char path[128];
    struct ckpt_asks *c = n->asks = calloc(1, sizeof *c);
    if (!c)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    c->node = n;
    c->tick = loop_timer_new(n->loop, ckpt_control_on_tick, c);
    c->held = calloc((size_t)n->nproc * SLOT_TABLE_SLOTS, sizeof *c->held);
    if (!c->tick || !c->held)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (unsigned i = 0; i < n->nproc * SLOT_TABLE_SLOTS; i++)
        c->held[i].step = SLOT_TABLE_NO_STEP;
    snprintf(path, sizeof path, "%s/" CONTROL_SOCKET_NAME, run_folder_path(n->folder));
    c->asks = control_socket_new(n->loop, path, &ops, c, e);
    return c->asks ? 0 : -1;
}

void ckpt_asks_free(struct node *n)
{
    struct ckpt_asks *c = n->asks;
    if (!c)
        return;
    control_socket_free(c->asks);
    loop_timer_free(c->tick);
    free(c->held);
    free(c);
    n->asks = NULL;
}
