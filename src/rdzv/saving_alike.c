/* Whether nodes that hold the same part hold the same in it.  Each says digests of the last step that it has some of,
 * again and again, so it is enough to remember one of each part: who comes to that step later is compared with it. */
#include "rdzv/saving_private.h"
#include "util/scan.h"

static void compare(struct saving *s, struct saving_alike *a, const struct saving_alike *now)
{
    bool same = a->digest && a->step == now->step && a->lineage == now->lineage;
    if (same && a->digest != now->digest && !a->differs) {
        a->differs = true;
        a->other = now->node;
        s->differences++;
    }
    if (!a->differs && (!a->digest || a->lineage != now->lineage || a->step < now->step))
        *a = *now;
}

/* "12@9f3a:0=5c1,3=77" */
void saving_take_alike(struct saving *s, unsigned node, const char *text)
{
    const struct saving_node *n = &s->node[node];
    struct saving_alike now = {.node = node};
    uint64_t step, part;
    if (!n->known || !scan_u64(&text, &step) || step > MSG_STEP_MAX || *text++ != '@' ||
        !scan_hex(&text, &now.lineage) || *text != ':')
        return;
    now.step = (int64_t)step;
    do {
        text++;
        if (!scan_u64(&text, &part) || part >= n->parts || *text++ != '=' || !scan_hex(&text, &now.digest))
            return;
        if (now.digest)
            compare(s, &s->class[n->cls[part]].alike, &now);
    } while (*text == ',');
}

void saving_forget_alike(struct saving *s, unsigned node)
{
    for (uint32_t i = 0; i < s->classes; i++) {
        struct saving_alike *a = &s->class[i].alike;
        if (!a->differs && a->digest && a->node == node)
            a->digest = 0;
    }
}

unsigned saving_differences(const struct saving *s)
{
    return s->differences;
}

bool saving_next_difference(struct saving *s, struct saving_difference *to)
{
    for (uint32_t i = 0; i < s->classes && s->differences; i++) {
        struct saving_class *c = &s->class[i];
        if (!c->alike.differs || c->alike.told)
            continue;
        c->alike.told = true;
        s->differences--;
        *to = (struct saving_difference){c->part, c->shard, {c->alike.node, c->alike.other}, c->alike.step};
        return true;
    }
    return false;
}
