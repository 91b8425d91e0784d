/* Last words: which parts of a step are in slots, or could be when live workers have copied theirs. */
#include <string.h>

#include "coord/saving_private.h"
#include "util/scan.h"
#include "coord/lastwords.h"

void saving_forget_live(struct saving *s, struct saving_node *n)
{
    for (unsigned i = 0; i < n->lives; i++)
        el_free(&s->mem, n->live[i].level);
    n->lives = 0;
    n->stands = false;
}

/* ",h0-3,c5": behind the step and its letter. */
static void take_parts(const struct saving_node *n, uint8_t *level, const char **at)
{
    uint64_t from, to;
    while (**at == ',') {
        enum lastwords_level of = lastwords_level_of(*++*at);
        *at += **at != 0;
        if (!scan_span(at, &from, &to))
            return;
        for (uint64_t i = from; i <= to && i < n->parts; i++)
            level[i] = (uint8_t)of;
    }
}

void saving_stand(struct saving *s, unsigned node, const struct msg_ckpt_stand *stand)
{
    uint64_t step;
    if (node >= s->used || !s->node[node].known || s->node[node].list != stand->list)
        return; /* its parts are not known: what it has said of its slots counts */
    struct saving_node *n = &s->node[node];
    const char *at = stand->steps;
    saving_forget_live(s, n);
    n->stands = true;
    for (scan_blanks(&at); n->lives < LASTWORDS_STEPS_MAX && scan_u64(&at, &step) && step <= MSG_STEP_MAX && *at == ':';
         scan_blanks(&at)) {
        struct saving_live *live = &n->live[n->lives++];
        *live = (struct saving_live){(int64_t)step, el_alloc(&s->mem, n->parts + 1)};
        at += at[1] ? 2 : 1;
        if (live->level)
            take_parts(n, live->level, &at);
        while (*at && *at != ' ')
            at++;
        for (unsigned i = 0; live->level && stand->ends && i < n->parts; i++)
            live->level[i] = live->level[i] == LASTWORDS_HAS ? LASTWORDS_HAS : LASTWORDS_NO;
    }
}

static enum lastwords_level part_level(const struct saving_node *n, int64_t step, unsigned part)
{
    if (!n->stands)
        return saving_holds(n, saving_find(n, step), part) ? LASTWORDS_HAS : LASTWORDS_NO;
    for (unsigned i = 0; i < n->lives; i++)
        if (n->live[i].step == step)
            return n->live[i].level ? (enum lastwords_level)n->live[i].level[part] : LASTWORDS_NO;
    return LASTWORDS_NO;
}

/* With a directory of its own each node needs all that its workers have declared. */
static enum lastwords_level of_each(const struct saving *s, int64_t step)
{
    enum lastwords_level least = LASTWORDS_HAS;
    unsigned there = 0, parts = 0;
    for (unsigned i = 0; i < s->used; i++) {
        const struct saving_node *n = &s->node[i];
        if (!n->here || !n->known)
            continue;
        there++;
        for (unsigned p = 0; p < n->parts; p++) {
            if (s->class[n->cls[p]].own)
                continue;
            enum lastwords_level one = part_level(n, step, p);
            parts++;
            least = one < least ? one : least;
        }
    }
    return parts && there == s->size ? least : LASTWORDS_NO;
}

static enum lastwords_level of_any(struct saving *s, int64_t step)
{
    enum lastwords_level least = LASTWORDS_HAS;
    for (uint32_t i = 0; i < s->classes; i++)
        s->class[i].best = LASTWORDS_NO;
    for (unsigned i = 0; i < s->used; i++) {
        const struct saving_node *n = &s->node[i];
        for (unsigned p = 0; n->here && n->known && p < n->parts; p++) {
            struct saving_class *c = &s->class[n->cls[p]];
            enum lastwords_level one = part_level(n, step, p);
            c->best = one > c->best ? one : c->best;
        }
    }
    unsigned needed = 0;
    for (uint32_t i = 0; i < s->classes; i++) {
        const struct saving_class *c = &s->class[i];
        needed += !c->own;
        least = !c->own && c->best < least ? c->best : least;
    }
    return needed ? least : LASTWORDS_NO;
}

enum lastwords_level saving_live_level(struct saving *s, int64_t step)
{
    if (s->full || !s->size || s->declared < s->size)
        return LASTWORDS_NO;
    return s->conf.store == SAVING_LOCAL ? of_each(s, step) : of_any(s, step);
}
