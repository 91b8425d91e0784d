/* Whether ranks of other nodes hold the same as those of this one in parts that they share (coord/replica_check.h):
 * digests are told, and the tensors behind them when they are asked for. */
#include <string.h>

#include "agent/node.h"
#include "snapshot/replica_table.h"
#include "snapshot/slot_table.h"
#include "snapshot/replicas.h"
#include "control/replica_msg.h"

int replica_tables_init(struct node *n, struct el_err *e)
{
    n->replicas = replicas_new();
    n->digests_text = el_alloc(NULL, REPLICA_CHECK_DIGESTS_TEXT + 1);
    return n->replicas && n->digests_text ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void replica_tables_free(struct node *n)
{
    replicas_free(n->replicas);
    el_free(NULL, n->digests_text);
}

void replica_tables_round(struct node *n)
{
    replicas_forget(n->replicas);
    n->digests.number = 0;
}

static void replica_tables_tell(struct node *n)
{
    const struct msg_world *w = membership_world(n->membership);
    struct member_digests now = {.number = w->number, .coord = w->coord, .text = n->digests_text};
    char text[REPLICA_CHECK_DIGESTS_TEXT + 1];
    if (!replicas_text(n->replicas, &now.step, &now.lineage, text))
        return;
    const struct member_digests *was = &n->digests;
    if (was->number == now.number && was->coord == now.coord && was->step == now.step && was->lineage == now.lineage &&
        strcmp(n->digests_text, text) == 0)
        return;
    memcpy(n->digests_text, text, strlen(text) + 1);
    n->digests = now;
    membership_digests(n->membership, &n->digests);
}

/* It is in the slot still, unless all have gone back behind it. */
void replica_tables_digested(struct node *n, const struct slot_table_event *ev)
{
    const struct slot_table *k = snapshot_service_keeper(n->snapshots);
    const struct slot_table_slot *of = slot_table_slot(k, ev->worker, ev->slot);
    if (!n->membership || of->gen != ev->gen || of->state != SLOT_TABLE_COMMITTED || !of->digested)
        return;
    for (unsigned i = 0; i < slot_table_parts(k, ev->worker); i++) {
        const struct slot_table_part *p = slot_table_part(k, ev->worker, i);
        if (p->own || !ev->part_digest[i])
            continue;
        const struct replica x = {.step = of->step,
                                  .lineage = of->lineage,
                                  .digest = ev->part_digest[i],
                                  .rank = slot_table_rank(k, ev->worker),
                                  .part = p->name,
                                  .shard_id = p->shard_id};
        replicas_add(n->replicas, &x, ev->part_table[i]);
        ev->part_table[i] = NULL;
    }
    replica_tables_tell(n);
}

void replica_tables_asked(struct node *n, const struct msg_ckpt_differ *ask)
{
    struct msg m = {.type = MSG_CKPT_TENSORS};
    struct msg_ckpt_tensors *to = &m.u.ckpt_tensors;
    const struct replica *x = replicas_find(n->replicas, ask->key, ask->step, ask->lineage);
    char *lines = x && x->table ? el_alloc(NULL, REPLICA_CHECK_LINES_TEXT + 1) : NULL;
    *to = (struct msg_ckpt_tensors){.number = ask->number,
                                    .coord = ask->coord,
                                    .step = ask->step,
                                    .lineage = ask->lineage,
                                    .key = ask->key,
                                    .after = ask->after};
    if (x) {
        to->held = true;
        to->part = x->part;
        to->shard = x->shard_id;
        to->rank = x->rank;
    }
    if (lines) {
        to->named = true;
        to->lines = replica_table_lines(x->table, ask->after, lines, REPLICA_CHECK_LINES_TEXT + 1, &to->more);
    }
    membership_logs(n->membership, &m);
    el_free(NULL, lines);
}
