#include "probe/plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "probe/plan_private.h"
#include "util/sort.h"

static const char *const outcome_names[] = {
#define OUTCOME_NAME(id, name) [id] = name,
    RAIL_OUTCOME_LIST(OUTCOME_NAME)
#undef OUTCOME_NAME
};

const char *rail_outcome_name(enum rail_outcome o)
{
    assert((unsigned)o < RAIL_OUTCOME_COUNT);
    return outcome_names[o];
}

enum rail_outcome rail_outcome_find(const char *name)
{
    for (unsigned o = 0; o < RAIL_OUTCOME_COUNT; o++)
        if (strcmp(outcome_names[o], name) == 0)
            return (enum rail_outcome)o;
    return RAIL_OUTCOME_COUNT;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

struct plan *plan_new(unsigned nodes, const struct plan_conf *conf, struct el_mem *mem)
{
    assert(nodes > 0 && nodes <= PLAN_NODES_MAX && conf->rails > 0 && conf->rails <= PLAN_RAILS_MAX);
    struct plan *p = el_alloc(mem, sizeof *p);
    if (!p)
        return NULL;
    p->conf = *conf;
    p->mem = mem;
    p->nodes = nodes;
    p->words = (nodes + 63) / 64;
    p->stale = true;
    p->node = el_alloc(mem, nodes * sizeof *p->node);
    p->order = el_alloc(mem, nodes * sizeof *p->order);
    p->met = el_alloc(mem, nodes * p->words * sizeof *p->met);
    p->charge = el_alloc(mem, (size_t)nodes * conf->rails * sizeof *p->charge);
    p->pair = el_alloc(mem, (nodes / 2 + 1) * sizeof *p->pair);
    p->local_value =
        el_alloc(mem, (size_t)nodes * conf->rails * (METRIC_COUNT - METRIC_PAIR_COUNT) * sizeof *p->local_value);
    p->best = el_alloc(mem, (size_t)nodes * conf->rails * METRIC_PAIR_COUNT * sizeof *p->best);
    p->fast = el_alloc(mem, (size_t)nodes * conf->rails * sizeof *p->fast);
    p->group = el_alloc(mem, METRIC_COUNT * (size_t)conf->rails * sizeof *p->group);
    p->pair_group = el_alloc(mem, METRIC_PAIR_COUNT * (size_t)conf->rails * sizeof *p->pair_group);
    p->scratch = el_alloc(mem, nodes * sizeof *p->scratch);
    p->scratch_room = nodes;
    if (!p->node || !p->order || !p->met || !p->charge || !p->pair || !p->local_value || !p->best || !p->fast ||
        !p->group || !p->pair_group || !p->scratch) {
        plan_free(p);
        return NULL;
    }
    for (unsigned n = 0; n < nodes; n++)
        p->node[n].rails = (1u << conf->rails) - 1;
    return p;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->records; i++)
        el_free(p->mem, p->record[i].reason);
    for (unsigned n = 0; p->node && n < p->nodes; n++) {
        el_free(p->mem, p->node[n].name);
        el_free(p->mem, p->node[n].label);
        el_free(p->mem, p->node[n].reason);
    }
    el_free(p->mem, p->node);
    el_free(p->mem, p->order);
    el_free(p->mem, p->met);
    el_free(p->mem, p->charge);
    el_free(p->mem, p->pair);
    el_free(p->mem, p->record);
    el_free(p->mem, p->value);
    el_free(p->mem, p->local_value);
    el_free(p->mem, p->best);
    el_free(p->mem, p->fast);
    el_free(p->mem, p->group);
    el_free(p->mem, p->pair_group);
    el_free(p->mem, p->scratch);
    el_free(p->mem, p);
}

/* --- what is told about nodes ------------------------------------------------------------------------------------- */

static void plan_keep_name(struct plan *p, char **to, const char *name)
{
    el_free(p->mem, *to);
    *to = *name ? el_strndup(p->mem, name, strnlen(name, PLAN_NAME_MAX - 1)) : NULL;
}

void plan_name(struct plan *p, unsigned node, const char *name)
{
    assert(node < p->nodes);
    plan_keep_name(p, &p->node[node].name, name);
}

void plan_domain_label(struct plan *p, unsigned node, const char *label)
{
    assert(node < p->nodes);
    plan_keep_name(p, &p->node[node].label, label);
}

const char *plan_name_of(const struct plan *p, unsigned node, char to[PLAN_NAME_MAX])
{
    assert(node < p->nodes);
    if (p->node[node].name)
        snprintf(to, PLAN_NAME_MAX, "%s", p->node[node].name);
    else
        snprintf(to, PLAN_NAME_MAX, "node %u", node);
    return to;
}

void plan_domain(struct plan *p, unsigned node, unsigned domain)
{
    assert(node < p->nodes && p->rounds == 0);
    p->node[node].domain = domain;
}

void plan_host(struct plan *p, unsigned node, uint64_t host)
{
    assert(node < p->nodes && p->rounds == 0);
    p->node[node].host = host;
}

void plan_rails(struct plan *p, unsigned node, unsigned rails)
{
    assert(node < p->nodes && p->rounds == 0 && rails > 0 && rails <= p->conf.rails);
    p->node[node].rails = (1u << rails) - 1;
}

/* A reason that cannot be kept for want of memory is none: the verdict stays what it is. */
static void keep_reason(struct plan *p, char **to, const char *reason)
{
    el_free(p->mem, *to);
    *to = reason && *reason ? el_strndup(p->mem, reason, strnlen(reason, PLAN_REASON_MAX - 1)) : NULL;
}

void plan_local(struct plan *p, unsigned node, bool good, const char *reason)
{
    assert(node < p->nodes && (p->rounds == 0 || !good));
    p->node[node].local = good ? LOCAL_GOOD : LOCAL_BAD;
    keep_reason(p, &p->node[node].reason, good ? NULL : reason);
    p->stale = true;
}

void plan_metric(struct plan *p, unsigned node, unsigned rail, enum metric m, uint32_t milli)
{
    assert(node < p->nodes && rail < p->conf.rails && m >= METRIC_PAIR_COUNT && m < METRIC_COUNT);
    unsigned kinds = METRIC_COUNT - METRIC_PAIR_COUNT;
    p->local_value[plan_cell(p, node, rail) * kinds + (m - METRIC_PAIR_COUNT)] = milli;
    p->stale = true;
}

void plan_reference(struct plan *p, enum metric m, uint32_t milli)
{
    assert((unsigned)m < METRIC_COUNT);
    p->reference[m] = milli;
    p->stale = true;
}

/* What was found first is the better reason; but whoever was only not heard may turn out to have gone. */
static void goes(struct plan *p, unsigned node, bool *how, const char *reason)
{
    const struct plan_node *x = &p->node[node];
    if (x->local == LOCAL_BAD || x->left || x->absent || *how)
        return;
    *how = true;
    keep_reason(p, &p->node[node].reason, reason);
    p->stale = true;
}

void plan_left(struct plan *p, unsigned node)
{
    assert(node < p->nodes);
    goes(p, node, &p->node[node].left, "left");
}

void plan_absent(struct plan *p, unsigned node)
{
    assert(node < p->nodes);
    goes(p, node, &p->node[node].absent, "it went before it was judged");
}

void plan_lost(struct plan *p, unsigned node, const char *reason)
{
    assert(node < p->nodes);
    goes(p, node, &p->node[node].lost, reason);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

void pair_result_init(struct pair_result *r)
{
    memset(r, 0, sizeof *r); /* RAIL_BROKEN is 0 */
}

static uint32_t worse_value(enum metric m, uint32_t a, uint32_t b)
{
    if (!a || !b)
        return a | b;
    return metric_worse(m, a, b) ? a : b;
}

static void join_rail(struct rail_result *to, const struct rail_result *a, const struct rail_result *b)
{
    static const enum rail_outcome worst_first[] = {RAIL_BROKEN, RAIL_FAILED, RAIL_NO_REPORT, RAIL_OK};
    struct rail_result out = *a;
    unsigned i = 0;
    while (a->outcome != worst_first[i] && b->outcome != worst_first[i])
        i++;
    out.outcome = worst_first[i];
    if (a->outcome != out.outcome || !*a->reason)
        memcpy(out.reason, b->reason, sizeof out.reason);
    for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
        out.value[m] = worse_value((enum metric)m, a->value[m], b->value[m]);
        /* Of the end whose value it is: the other direction may be fast, and go up and down by more than that. */
        bool both = a->value[m] == b->value[m];
        uint32_t most = a->spread[m] > b->spread[m] ? a->spread[m] : b->spread[m];
        out.spread[m] = both ? most : out.value[m] == a->value[m] ? a->spread[m] : b->spread[m];
    }
    *to = out;
}

void pair_result_join(struct pair_result *to, const struct pair_result *a, const struct pair_result *b)
{
    for (unsigned r = 0; r < PLAN_RAILS_MAX; r++)
        join_rail(&to->rail[r], &a->rail[r], &b->rail[r]);
}

static bool was_measured(const struct pair_result *r, uint32_t rails, unsigned rail, unsigned metric)
{
    return rails >> rail & 1 && r->rail[rail].outcome == RAIL_OK && r->rail[rail].value[metric];
}

void pair_result_even(struct pair_result *r, uint32_t rails)
{
    for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
        uint64_t value = 0, spread = 0;
        unsigned n = 0;
        for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
            if (was_measured(r, rails, i, m)) {
                value += r->rail[i].value[m];
                spread += r->rail[i].spread[m];
                n++;
            }
        for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
            if (was_measured(r, rails, i, m)) {
                r->rail[i].value[m] = (uint32_t)(value / n);
                r->rail[i].spread[m] = (uint32_t)(spread / n);
            }
    }
}

void plan_result(struct plan *p, unsigned pair, const struct pair_result *r)
{
    assert(pair < p->pairs);
    unsigned at = p->records - p->pairs + pair;
    struct plan_record *rec = &p->record[at];
    if (rec->told)
        return;
    rec->told = true;
    p->stale = true;
    size_t block = (size_t)p->conf.rails * METRIC_PAIR_COUNT;
    for (unsigned i = 0; i < p->conf.rails; i++) {
        if (!(rec->rails >> i & 1))
            continue;
        const struct rail_result *x = &r->rail[i];
        uint32_t *to = p->value + 2 * block * at + i * METRIC_PAIR_COUNT;
        if (x->outcome == RAIL_OK) {
            rec->ok |= 1u << i;
            memcpy(to, x->value, sizeof x->value);
            memcpy(to + block, x->spread, sizeof x->spread);
        } else if (x->outcome == RAIL_FAILED || x->outcome == RAIL_NO_REPORT) {
            if (!rec->failed)
                keep_reason(p, &rec->reason, *x->reason ? x->reason : rail_outcome_name(x->outcome));
            rec->failed |= 1u << i;
        } else if (!rec->failed && !rec->reason) {
            keep_reason(p, &rec->reason, x->reason); /* nobody's fault, but worth to be known: versions that differ */
        }
    }
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static int plan_compare_places(const void *a, const void *b)
{
    const struct plan_place *x = a, *y = b;
    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    return x->node < y->node ? -1 : 1;
}

static void plan_put_in_order(struct plan *p)
{
    for (unsigned n = 0; n < p->nodes; n++)
        p->order[n] = (struct plan_place){p->node[n].domain, n};
    el_sort(p->order, p->nodes, sizeof *p->order, plan_compare_places);
    for (unsigned i = 0; i < p->nodes; i++)
        p->node[p->order[i].node].domain_at =
            i && p->order[i - 1].domain == p->order[i].domain ? p->node[p->order[i - 1].node].domain_at : i;
}

/* A rail that only one node has cannot be tested, and is not held against that node. */
static void find_shared(struct plan *p)
{
    uint32_t once = 0;
    p->shared = 0;
    for (unsigned n = 0; n < p->nodes; n++) {
        if (!plan_present(&p->node[n]))
            continue;
        p->shared |= once & p->node[n].rails;
        once |= p->node[n].rails;
    }
}

static void plan_meet(struct plan *p, unsigned a, unsigned b, bool yes)
{
    uint64_t *x = &p->met[a * p->words + b / 64], *y = &p->met[b * p->words + a / 64];
    *x = yes ? *x | 1ull << (b % 64) : *x & ~(1ull << (b % 64));
    *y = yes ? *y | 1ull << (a % 64) : *y & ~(1ull << (a % 64));
}

/* A pair that was broken off may come again, but a node that always breaks off must not keep the plan from ending. */
static void close_round(struct plan *p)
{
    for (unsigned i = p->records - p->pairs; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        struct plan_node *a = &p->node[rec->a], *b = &p->node[rec->b];
        if ((rec->ok | rec->failed) == rec->rails)
            continue;
        bool again = a->broken < PLAN_BROKEN_MAX && b->broken < PLAN_BROKEN_MAX;
        a->broken++;
        b->broken++;
        if (again)
            plan_meet(p, rec->a, rec->b, false);
    }
    p->pairs = 0;
}

static bool plan_make_room(struct plan *p, unsigned more)
{
    if (p->records + more <= p->records_room)
        return true;
    unsigned room = p->records + more > 2 * p->records_room ? p->records + more : 2 * p->records_room;
    size_t block = 2 * (size_t)p->conf.rails * METRIC_PAIR_COUNT * sizeof *p->value;
    struct plan_record *record = el_realloc(p->mem, p->record, room * sizeof *record);
    if (!record)
        return false;
    p->record = record;
    uint32_t *value = el_realloc(p->mem, p->value, room * block);
    if (!value)
        return false;
    p->value = value;
    if (room > p->scratch_room) {
        uint32_t *scratch = el_realloc(p->mem, p->scratch, room * sizeof *scratch);
        if (!scratch)
            return false;
        p->scratch = scratch;
        p->scratch_room = room;
    }
    p->records_room = room;
    return true;
}

static void record_round(struct plan *p)
{
    size_t block = 2 * (size_t)p->conf.rails * METRIC_PAIR_COUNT;
    for (unsigned i = 0; i < p->pairs; i++) {
        const struct plan_pair *pair = &p->pair[i];
        memset(p->value + block * p->records, 0, block * sizeof *p->value);
        p->record[p->records++] = (struct plan_record){
            .a = pair->a, .b = pair->b, .round = p->rounds, .rails = pair->rails, .purpose = pair->purpose};
        plan_meet(p, pair->a, pair->b, true);
    }
}

static unsigned plan_stop(struct plan *p, enum plan_stop why)
{
    p->stop = why;
    p->pairs = 0;
    p->stale = true;
    return 0;
}

static bool anyone_open(const struct plan *p)
{
    for (unsigned n = 0; n < p->nodes; n++)
        if (plan_open(&p->node[n]) || p->node[n].slow_open)
            return true;
    return false;
}

static void plan_begin_round(struct plan *p)
{
    if (p->rounds == 0) {
        plan_put_in_order(p);
        find_shared(p);
    }
    close_round(p);
    p->stale = true;
    plan_judge(p);
}

unsigned plan_given(struct plan *p, const struct plan_pair *pairs, unsigned n)
{
    plan_begin_round(p);
    for (unsigned i = 0; i < n; i++)
        if (p->pairs < p->nodes / 2 && !plan_met(p, pairs[i].a, pairs[i].b))
            p->pair[p->pairs++] = pairs[i];
    if (p->stop || !plan_make_room(p, p->pairs))
        return plan_stop(p, p->stop ? p->stop : PLAN_STOP_MEMORY);
    p->rounds++;
    record_round(p);
    return p->pairs;
}

unsigned plan_round(struct plan *p, const struct plan_pair **pairs)
{
    *pairs = p->pair;
    plan_begin_round(p);
    if (p->stop)
        return 0;
    plan_match(p);
    if (!p->pairs)
        return plan_stop(p, anyone_open(p) ? PLAN_STOP_PAIRS : PLAN_STOP_KNOWN);
    if (p->conf.rounds_max && p->rounds >= p->conf.rounds_max)
        return plan_stop(p, anyone_open(p) ? PLAN_STOP_ROUNDS : PLAN_STOP_KNOWN);
    if (!plan_make_room(p, p->pairs))
        return plan_stop(p, PLAN_STOP_MEMORY);
    p->rounds++;
    record_round(p);
    return p->pairs;
}

void plan_end(struct plan *p)
{
    if (!p->stop)
        p->stop = PLAN_STOP_TIME;
    p->stale = true;
}

void plan_again(struct plan *p)
{
    if (p->stop == PLAN_STOP_KNOWN || p->stop == PLAN_STOP_PAIRS)
        p->stop = PLAN_GOING;
    p->stale = true;
}

enum plan_stop plan_stopped(const struct plan *p)
{
    return p->stop;
}

unsigned plan_rounds(const struct plan *p)
{
    return p->rounds;
}

unsigned plan_nodes(const struct plan *p)
{
    return p->nodes;
}

unsigned plan_rail_count(const struct plan *p)
{
    return p->conf.rails;
}

unsigned plan_domain_of(const struct plan *p, unsigned node)
{
    assert(node < p->nodes);
    return p->node[node].domain;
}

bool plan_has_label(const struct plan *p, unsigned node)
{
    assert(node < p->nodes);
    return p->node[node].label != NULL;
}

const char *plan_domain_text(const struct plan *p, unsigned node, char to[PLAN_NAME_MAX])
{
    if (plan_has_label(p, node))
        snprintf(to, PLAN_NAME_MAX, "%s", p->node[node].label);
    else
        snprintf(to, PLAN_NAME_MAX, "%u", p->node[node].domain);
    return to;
}
