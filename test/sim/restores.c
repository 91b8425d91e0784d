/* Going back to a step in the simulated cluster: what nodes hold in memory and find on the disk that they share, reads
 * that fail, and what must hold whenever a node is told a step. */
#include "sim/cluster.h"

#include <string.h>

#include "ckpt/lineage.h"

static uint64_t below(struct cluster *c, uint64_t n)
{
    return el_rng_below(&c->stocks, n);
}

/* Of a step that it holds in memory: which of the two; 2: it does not. */
static unsigned slot_of(const struct cluster_agent *a, int64_t step)
{
    for (unsigned i = a->restore.n; i-- > 0;)
        if (a->restore.held[i] == step)
            return i;
    return 2;
}

/* A step on the disk that it can read: its lineage, and in which round it was trained. */
static bool on_disk(const struct cluster *c, const struct cluster_agent *a, int64_t step, uint64_t *line,
                    uint64_t *made)
{
    const struct cluster_dir *d = c->saves ? saves_find(c, step, (unsigned)a->m.world.group_size) : NULL;
    if (d)
        *line = d->file[0].line, *made = d->file[0].made;
    for (unsigned i = 0; i < c->disk_n && !c->saves; i++)
        if (c->disk[i] == step)
            return *line = c->disk_line[i], *made = c->disk_made[i], step != a->restore.bad;
    return d && step != a->restore.bad;
}

/* Whether it can read that step of that lineage; *made: in which round what it would read was trained. */
static bool can_read(const struct cluster *c, const struct cluster_agent *a, int64_t step, uint64_t line,
                     uint64_t *made)
{
    unsigned i = slot_of(a, step);
    uint64_t its;
    if (i < 2 && a->restore.line[i] == line)
        return *made = a->restore.made[i], true;
    return on_disk(c, a, step, &its, made) && its == line;
}

static int64_t newest_below(const struct cluster *c, const struct cluster_agent *a, int64_t limit)
{
    int64_t best = RESTORE_NO_STEP;
    uint64_t line, made;
    for (unsigned i = 0; i < a->restore.n; i++)
        if (a->restore.held[i] < limit && a->restore.held[i] > best)
            best = a->restore.held[i];
    for (unsigned i = 0; i < c->disk_n; i++)
        if (c->disk[i] < limit && c->disk[i] > best && c->disk[i] != a->restore.bad)
            best = c->disk[i];
    for (unsigned i = 0; i < c->saved_n; i++)
        if (c->saved[i].step < limit && c->saved[i].step > best && on_disk(c, a, c->saved[i].step, &line, &made))
            best = c->saved[i].step;
    return best;
}

static void move(struct cluster_restore *x, unsigned to, unsigned from)
{
    x->held[to] = x->held[from];
    x->origin[to] = x->origin[from];
    x->made[to] = x->made[from];
    x->line[to] = x->line[from];
}

/* What its workers will have to say, once: they ask or they read, and an order to ask again ends both. */
static void say_after(struct cluster *c, uint32_t who, el_usec after, enum member_event_type event)
{
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->attempt = c->agent[who].attempt;
    it->event = event;
    it->serial = ++c->agent[who].restore.said;
}

bool restores_says(const struct cluster *c, const struct cluster_item *it)
{
    return it->serial == c->agent[it->who].restore.said;
}

void restores_boot(struct cluster *c, uint32_t who)
{
    uint64_t said = c->agent[who].restore.said;
    commons_boot(c, who);
    c->agent[who].restore = (struct cluster_restore){.said = said, .bad = RESTORE_NO_STEP, .newest = RESTORE_NO_STEP};
}

/* Its workers run, and will ask. */
void restores_started(struct cluster *c, uint32_t who)
{
    struct cluster_restore *x = &c->agent[who].restore;
    if (!c->restores)
        return;
    const struct member_restore *said = &c->agent[who].m.restore;
    if (said->stocked || said->stock.attempt)
        cluster_fail(c, "agent %u begins a round with what its workers said in the one before", who);
    x->trains = lineage_begin(c->agent[who].number, c->agent[who].coord, 0);
    x->started = c->now;
    x->gone = 0;
    commons_begin(c, who, RESTORE_NO_STEP, 0);
    x->misfit = false;
    say_after(c, who, EL_MS(1) + below(c, EL_MS(900)), MEMBER_EV_STOCK);
}

void restores_stock(struct cluster *c, uint32_t who, struct restore_stock *out)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_round *r = judge_round(c, a->number, a->coord);
    *out = (struct restore_stock){.since = a->restore.since,
                                  .whole = a->restore.whole,
                                  .newest = a->restore.newest,
                                  .misfit = a->restore.misfit,
                                  .on_disk = c->disk_n + c->saved_n > 0};
    int64_t step = newest_below(c, a, INT64_MAX);
    for (; step != RESTORE_NO_STEP && out->n + 1 < RESTORE_STEPS_MAX; step = newest_below(c, a, step)) {
        unsigned i = slot_of(a, step);
        uint64_t line, made;
        if (i < 2)
            out->lineage[out->n] = a->restore.line[i], out->step[out->n++] = step;
        if (on_disk(c, a, step, &line, &made) && (i == 2 || line != a->restore.line[i]))
            out->lineage[out->n] = line, out->step[out->n++] = step;
    }
    if (r && a->rank < r->size)
        r->read[a->rank] = 0;
}

/* It is told what to read. */
void restores_offer(struct cluster *c, uint32_t who, int64_t step, uint64_t line)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_round *r = judge_round(c, a->number, a->coord);
    uint64_t made;
    if (step != RESTORE_NO_STEP && !can_read(c, a, step, line, &made))
        cluster_fail(c, "agent %u is to read step %lld, which it cannot", who, (long long)step);
    if (step != RESTORE_NO_STEP && a->restore.misfit)
        cluster_fail(c, "agent %u is to read step %lld, though its workers did not take what came before", who,
                     (long long)step);
    a->restore.misfit = false;
    a->restore.offered = step;
    a->restore.offered_line = line;
    if (step != RESTORE_NO_STEP && c->now < c->faults_until && below(c, 8) == 0) {
        if (r)
            r->unread = true;
        a->restore.misfit = step % 4 == 3;
        if (a->restore.misfit)
            ;
        else if (a->restore.n && below(c, 2))
            a->restore.n--;
        else
            a->restore.n = 0;
        a->restore.bad = a->restore.misfit ? a->restore.bad : step;
        say_after(c, who, EL_MS(1) + below(c, EL_MS(300)), MEMBER_EV_STOCK);
        return;
    }
    say_after(c, who, EL_MS(1) + below(c, EL_MS(500)), MEMBER_EV_READ);
}

void restores_read(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_round *r = judge_round(c, a->number, a->coord);
    if (r && a->rank < r->size)
        r->read[a->rank] = (uint64_t)(a->restore.offered + 2);
}

void restores_again(struct cluster *c, uint32_t who)
{
    say_after(c, who, EL_MS(1) + below(c, EL_MS(200)), MEMBER_EV_STOCK);
}

/* What is on the disk that all share beyond the step that they go on from. */
static void set_aside(struct cluster *c, int64_t step)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->disk_n; i++)
        if (c->disk[i] <= step)
            c->disk_line[n] = c->disk_line[i], c->disk_made[n] = c->disk_made[i], c->disk[n++] = c->disk[i];
    c->disk_n = n;
    saves_set_aside(c, step);
}

static void train(struct cluster *c, uint32_t who, int64_t step)
{
    struct cluster_item *it = cluster_push(c, c->now + EL_MS(300) + below(c, EL_SEC(2)), CLUSTER_COMMIT, who);
    it->life = c->agent[who].life;
    it->attempt = c->agent[who].attempt;
    it->serial = (uint64_t)step;
}

/* It goes on: the same step as everybody, that everybody has read, and none that is newer would have done. */
void restores_go(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    int64_t step = a->m.restore.stock.told;
    struct cluster_round *r = judge_round(c, a->number, a->coord);
    if (!r)
        return;
    if (r->went && r->went != (uint64_t)(step + 2))
        cluster_fail(c, "agent %u goes on from step %lld, others of round %llu from %lld", who, (long long)step,
                     (unsigned long long)r->number, (long long)r->went - 2);
    bool first = !r->went; /* later ones may have trained since */
    uint64_t line = a->restore.offered_line, made = 0;
    if (step >= 0)
        can_read(c, a, step, line, &made);
    if (!first && r->made != made)
        cluster_fail(c, "agent %u goes on from step %lld as trained in round %llu, others from that of round %llu", who,
                     (long long)step, (unsigned long long)made >> 32, (unsigned long long)r->made >> 32);
    r->went = (uint64_t)(step + 2);
    r->made = made;
    if (first) {
        r->life = c->coord_life;
        set_aside(c, step);
    }
    for (unsigned k = 0; k < r->size; k++)
        if (r->read[k] != r->went)
            cluster_fail(c, "agent %u goes on from step %lld, which group rank %u has not read", who, (long long)step,
                         k);
    for (int64_t t = newest_below(c, a, INT64_MAX); t > step && first && !r->unread; t = newest_below(c, a, t)) {
        unsigned others = 0, i = slot_of(a, t);
        uint64_t its = i < 2 ? a->restore.line[i] : 0, ignored;
        if (i == 2)
            on_disk(c, a, t, &its, &ignored);
        for (uint32_t k = 0; k < c->n; k++)
            others += c->agent[k].alive && c->agent[k].number == r->number && c->agent[k].coord == r->coord &&
                      can_read(c, &c->agent[k], t, its, &ignored);
        if (others == r->size && !saves_came(c, t, a->restore.started)) /* else perhaps behind the decision */
            cluster_fail(c, "all go back to step %lld, and all could read %lld", (long long)step, (long long)t);
    }
    struct cluster_restore *x = &a->restore;
    x->since = a->number;
    x->whole = step != RESTORE_NO_STEP;
    x->newest = step;
    x->gone = c->now;
    unsigned n = 0;
    for (unsigned i = 0; i < x->n; i++)
        if (x->held[i] < step || (x->held[i] == step && x->line[i] == line))
            move(x, n++, i);
    x->n = n;
    x->trains = lineage_begin(a->number, a->coord, a->m.restore.stock.attempt);
    commons_begin(c, who, step, line);
    saves_went(c, who, step, made, line);
    captures_went(c, who, step);
    train(c, who, step + 1);
}

/* In which round, and in whose time, what is trained now is trained. */
uint64_t restores_makes(struct cluster *c, uint32_t who)
{
    const struct cluster_round *r = judge_round(c, c->agent[who].number, c->agent[who].coord);
    return c->agent[who].number << 32 | (r ? r->life : 0);
}

/* It is the newest; the last two are held. */
void restores_hold(struct cluster_restore *x, int64_t step, uint64_t origin, uint64_t made, uint64_t line)
{
    if (x->n == 2) {
        move(x, 0, 1);
        x->n = 1;
    }
    x->origin[x->n] = origin;
    x->made[x->n] = made;
    x->line[x->n] = line;
    x->held[x->n++] = step;
}

static bool all_hold(struct cluster *c, const struct cluster_round *r, int64_t step)
{
    unsigned hold = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *a = &c->agent[i];
        bool member = a->alive && a->number == r->number && a->coord == r->coord;
        hold += member && a->restore.n && a->restore.held[a->restore.n - 1] == step;
    }
    return hold == r->size;
}

/* Once there are no faults any more the ranks train in step, or some of them a little ahead of others. */
static bool is_ahead(const struct cluster *c, uint32_t who)
{
    const struct cluster_agent *a = &c->agent[who];
    int64_t slack = c->saves && c->seed % 4 < 2 ? 4 : 0;
    bool ahead = false;
    for (uint32_t i = 0; c->now > c->faults_until && i < c->n && !ahead; i++) {
        const struct cluster_agent *o = &c->agent[i];
        ahead = o->up && o->alive && o->number == a->number && o->coord == a->coord &&
                o->restore.newest + slack < a->restore.newest;
    }
    return ahead;
}

/* A step is trained and held; the last two are. */
void restores_commit(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_restore *x = &a->restore;
    int64_t step = (int64_t)it->serial;
    if (!a->up || a->life != it->life || a->attempt != it->attempt || !a->alive || a->told)
        return;
    if (is_ahead(c, it->who)) { /* the others are waited for, as in every collective */
        cluster_again_at(c, it, c->now + EL_MS(50));
        return;
    }
    if (c->captures && !captures_trained(c, it))
        return;
    int slot = commons_slot(c, it->who, step);
    if (slot == -2) {
        cluster_again_at(c, it, c->now + EL_MS(50));
        return;
    }
    x->newest = step;
    if (slot < 0) {
        train(c, it->who, step + 1);
        return;
    }
    if (slot == 0 && x->n == 2)
        move(x, 0, 1);
    x->n -= slot < 2;
    restores_hold(x, step, a->number, restores_makes(c, it->who), x->trains);
    x->whole = true;
    x->since = x->since ? x->since : a->number;
    if (x->bad == step)
        x->bad = RESTORE_NO_STEP;
    saves_committed(c, it->who, step);
    commons_committed(c, it->who, step, x->trains);
    commons_check(c, it->who);
    const struct cluster_round *r = judge_round(c, a->number, a->coord);
    if (r && !c->saves && step % 3 == 0 &&
        all_hold(c, r, step)) { /* on the disk that all share; old ones are removed */
        if (c->disk_n == 4)
            memmove(c->disk, c->disk + 1, 3 * sizeof c->disk[0]),
                memmove(c->disk_made, c->disk_made + 1, 3 * sizeof c->disk_made[0]),
                memmove(c->disk_line, c->disk_line + 1, 3 * sizeof c->disk_line[0]), c->disk_n = 3;
        c->disk_made[c->disk_n] = x->made[x->n - 1];
        c->disk_line[c->disk_n] = x->line[x->n - 1];
        c->disk[c->disk_n++] = step;
    }
    train(c, it->who, step + 1);
}

/* Long after the last fault nobody waits in restore(). */
void restores_all_is_well(struct cluster *c)
{
    for (uint32_t i = 0; i < c->n && c->restores; i++) {
        const struct cluster_agent *a = &c->agent[i];
        if (a->up && a->alive && a->m.place == MEMBER_RUNNING && a->restore.started + EL_SEC(25) < c->now &&
            a->m.restore.stock.at != RESTORE_AT_GONE)
            cluster_fail(c, "agent %u still waits for the step to go back to, attempt %llu", i,
                         (unsigned long long)a->m.restore.stock.attempt);
    }
}
