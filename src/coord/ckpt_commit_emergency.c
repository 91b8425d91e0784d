/* Emergency checkpoint: which parts of a step are in slots, or could be when live workers have copied theirs. */
#include <string.h>

#include "coord/ckpt_commit_private.h"
#include "util/scan.h"
#include "coord/emergency_ckpt.h"

void ckpt_commit_forget_live(struct ckpt_commit *s, struct ckpt_commit_node *n)
{
    for (unsigned i = 0; i < n->lives; i++)
        el_free(&s->mem, n->live[i].level);
    n->lives = 0;
    n->stands = false;
}

/* ",h0-3,c5": behind the step and its letter. */
static void take_parts(const struct ckpt_commit_node *n, uint8_t *level, const char **at)
{
    uint64_t from, to;
    while (**at == ',') {
        enum emergency_ckpt_level of = emergency_ckpt_level_of(*++*at);
        *at += **at != 0;
        if (!scan_span(at, &from, &to))
            return;
        for (uint64_t i = from; i <= to && i < n->parts; i++)
            level[i] = (uint8_t)of;
    }
}

void ckpt_commit_stand(struct ckpt_commit *s, unsigned node, const struct msg_emergency_state *stand)
{
    uint64_t step;
    if (node >= s->used || !s->node[node].known || s->node[node].list != stand->list)
        return; /* its parts are not known: what it has said of its slots counts */
    struct ckpt_commit_node *n = &s->node[node];
    const char *at = stand->steps;
    ckpt_commit_forget_live(s, n);
    n->stands = true;
    for (scan_blanks(&at);
         n->lives < EMERGENCY_CKPT_STEPS_MAX && scan_u64(&at, &step) && step <= MSG_STEP_MAX && *at == ':';
         scan_blanks(&at)) {
        struct ckpt_commit_live *live = &n->live[n->lives++];
        *live = (struct ckpt_commit_live){(int64_t)step, el_alloc(&s->mem, n->parts + 1)};
        at += at[1] ? 2 : 1;
        if (live->level)
            take_parts(n, live->level, &at);
        while (*at && *at != ' ')
            at++;
        for (unsigned i = 0; live->level && stand->ends && i < n->parts; i++)
            live->level[i] = live->level[i] == EMERGENCY_CKPT_HAS ? EMERGENCY_CKPT_HAS : EMERGENCY_CKPT_NO;
    }
}

static enum emergency_ckpt_level part_level(const struct ckpt_commit_node *n, int64_t step, unsigned part)
{
    if (!n->stands)
        return ckpt_commit_holds(n, ckpt_commit_find(n, step), part) ? EMERGENCY_CKPT_HAS : EMERGENCY_CKPT_NO;
    for (unsigned i = 0; i < n->lives; i++)
        if (n->live[i].step == step)
            return n->live[i].level ? (enum emergency_ckpt_level)n->live[i].level[part] : EMERGENCY_CKPT_NO;
    return EMERGENCY_CKPT_NO;
}

/* With a directory of its own each node needs all that its workers have declared. */
static enum emergency_ckpt_level of_each(const struct ckpt_commit *s, int64_t step)
{
    enum emergency_ckpt_level least = EMERGENCY_CKPT_HAS;
    unsigned there = 0, parts = 0;
    for (unsigned i = 0; i < s->used; i++) {
        const struct ckpt_commit_node *n = &s->node[i];
        if (!n->here || !n->known)
            continue;
        there++;
        for (unsigned p = 0; p < n->parts; p++) {
            if (s->class[n->cls[p]].own)
                continue;
            enum emergency_ckpt_level one = part_level(n, step, p);
            parts++;
            least = one < least ? one : least;
        }
    }
    return parts && there == s->size ? least : EMERGENCY_CKPT_NO;
}

static enum emergency_ckpt_level of_any(struct ckpt_commit *s, int64_t step)
{
    enum emergency_ckpt_level least = EMERGENCY_CKPT_HAS;
    for (uint32_t i = 0; i < s->classes; i++)
        s->class[i].best = EMERGENCY_CKPT_NO;
    for (unsigned i = 0; i < s->used; i++) {
        const struct ckpt_commit_node *n = &s->node[i];
        for (unsigned p = 0; n->here && n->known && p < n->parts; p++) {
            struct ckpt_commit_class *c = &s->class[n->cls[p]];
            enum emergency_ckpt_level one = part_level(n, step, p);
            c->best = one > c->best ? one : c->best;
        }
    }
    unsigned needed = 0;
    for (uint32_t i = 0; i < s->classes; i++) {
        const struct ckpt_commit_class *c = &s->class[i];
        needed += !c->own;
        least = !c->own && c->best < least ? c->best : least;
    }
    return needed ? least : EMERGENCY_CKPT_NO;
}

enum emergency_ckpt_level ckpt_commit_live_level(struct ckpt_commit *s, int64_t step)
{
    if (s->full || !s->size || s->declared < s->size)
        return EMERGENCY_CKPT_NO;
    return s->conf.store == CKPT_COMMIT_LOCAL ? of_each(s, step) : of_any(s, step);
}
