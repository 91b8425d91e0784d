/* Whether ranks of other nodes hold the same as those of this one in parts that they share (coord/comparing.h): digests
 * are told, and the tensors behind them when they are asked for. */
#include <string.h>

#include "agent/node.h"
#include "snapshot/alike_table.h"
#include "snapshot/keeper.h"
#include "snapshot/replicas.h"
#include "control/comparing_msg.h"

int alike_init(struct node *n, struct el_err *e)
{
    n->replicas = replicas_new();
    n->digests_text = el_alloc(NULL, COMPARING_DIGESTS_TEXT + 1);
    return n->replicas && n->digests_text ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void alike_free(struct node *n)
{
    replicas_free(n->replicas);
    el_free(NULL, n->digests_text);
}

void alike_round(struct node *n)
{
    replicas_forget(n->replicas);
    n->digests.number = 0;
}

static void tell(struct node *n)
{
    const struct msg_world *w = membership_world(n->membership);
    struct member_digests now = {.number = w->number, .coord = w->coord, .text = n->digests_text};
    char text[COMPARING_DIGESTS_TEXT + 1];
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
void alike_digested(struct node *n, const struct keeper_event *ev)
{
    const struct keeper *k = snapshots_keeper(n->snapshots);
    const struct keeper_slot *of = keeper_slot(k, ev->worker, ev->slot);
    if (!n->membership || of->gen != ev->gen || of->state != KEEPER_COMMITTED || !of->digested)
        return;
    for (unsigned i = 0; i < keeper_parts(k, ev->worker); i++) {
        const struct keeper_part *p = keeper_part(k, ev->worker, i);
        if (p->own || !ev->part_digest[i])
            continue;
        const struct replica x = {.step = of->step,
                                  .lineage = of->lineage,
                                  .digest = ev->part_digest[i],
                                  .rank = keeper_rank(k, ev->worker),
                                  .part = p->name,
                                  .shard_id = p->shard_id};
        replicas_add(n->replicas, &x, ev->part_table[i]);
        ev->part_table[i] = NULL;
    }
    tell(n);
}

void alike_asked(struct node *n, const struct msg_ckpt_differ *ask)
{
    struct msg m = {.type = MSG_CKPT_TENSORS};
    struct msg_ckpt_tensors *to = &m.u.ckpt_tensors;
    const struct replica *x = replicas_find(n->replicas, ask->key, ask->step, ask->lineage);
    char *lines = x && x->table ? el_alloc(NULL, COMPARING_LINES_TEXT + 1) : NULL;
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
        to->lines = alike_table_lines(x->table, ask->after, lines, COMPARING_LINES_TEXT + 1, &to->more);
    }
    membership_logs(n->membership, &m);
    el_free(NULL, lines);
}
