/* Saving steps in the simulated cluster: what each node holds, a disk that all share with its stages, writes and
 * publications that fail or are cut in two by kill -9, and what must hold of each checkpoint: it has everything, and
 * all of one history. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/rdzv_private.h" /* looks into the coordinator */
#include "sim/cluster.h"

#define SAVES_SOON                                                                                                     \
    EL_SEC(25) /* three steps of 2.3 s at most, and the second that it takes to write: three times that */

static uint64_t below(struct cluster *c, uint64_t n)
{
    return el_rng_below(&c->stores, n);
}

/* --- messages on their way --- */

static void pack(struct cluster_item *it, unsigned i, const char **text)
{
    snprintf(it->words[i], sizeof it->words[i], "%s", *text ? *text : "");
    *text = "";
}

/* Each string of these messages, and where it is kept meanwhile; the rest is not looked at. */
static void each_word(struct cluster_item *it, bool in)
{
    struct msg *m = &it->msg;
    const char **w[4] = {NULL};
    switch ((unsigned)m->type) {
    case MSG_CKPT_PART: w[0] = &m->u.ckpt_part.part, w[1] = &m->u.ckpt_part.shard; break;
    case MSG_CKPT_STATE:
        w[0] = &m->u.ckpt_state.steps;
        w[1] = &m->u.ckpt_state.text;
        w[2] = &m->u.ckpt_state.layout;
        w[3] = &m->u.ckpt_state.wishes;
        break;
    case MSG_CKPT_FILE:
        w[0] = &m->u.ckpt_file.part;
        w[1] = &m->u.ckpt_file.shard;
        w[2] = &m->u.ckpt_file.name;
        w[3] = &m->u.ckpt_file.sums;
        break;
    case MSG_CKPT_WRITE: w[0] = &m->u.ckpt_write.nonce, w[1] = &m->u.ckpt_write.parts; break;
    case MSG_CKPT_PUBLISH: w[0] = &m->u.ckpt_publish.nonce, w[1] = &m->u.ckpt_publish.layout; break;
    case MSG_CKPT_OVER: w[0] = &m->u.ckpt_over.text; break;
    case MSG_CKPT_TAKEN: w[0] = &m->u.ckpt_taken.whole, w[1] = &m->u.ckpt_taken.coming; break;
    case MSG_CKPT_COMMON: w[0] = &m->u.ckpt_common.useless; break;
    case MSG_EMERGENCY_STATE: w[0] = &m->u.emergency_state.steps, w[1] = &m->u.emergency_state.text; break;
    default: break;
    }
    for (unsigned i = 0; i < 4 && w[i]; i++)
        if (in)
            pack(it, i, w[i]);
        else
            *w[i] = it->words[i];
}

void saves_pack(struct cluster_item *it)
{
    each_word(it, true);
}

void saves_unpack(struct cluster_item *it)
{
    each_word(it, false);
}

/* --- the disk --- */

static struct cluster_dir *find_stage(struct cluster *c, const char *nonce)
{
    for (unsigned i = 0; i < CLUSTER_STAGE_MAX; i++)
        if (*c->stage[i].nonce && strcmp(c->stage[i].nonce, nonce) == 0)
            return &c->stage[i];
    return NULL;
}

static struct cluster_dir *make_stage(struct cluster *c, const char *nonce, int64_t step)
{
    struct cluster_dir *d = find_stage(c, nonce);
    if (d)
        return d;
    d = &c->stage[c->stage_next++ % CLUSTER_STAGE_MAX];
    *d = (struct cluster_dir){.step = step};
    snprintf(d->nonce, sizeof d->nonce, "%s", nonce);
    return d;
}

#define OWN 32u /* from this number on: parts that are of one rank alone, and may be missing */

/* A checkpoint has everything that its round had declared, and nothing of another history. */
static void judge_dir(struct cluster *c, const struct cluster_dir *d)
{
    uint64_t seen = 0;
    unsigned shards = d->n ? d->file[0].shards : 0;
    for (unsigned i = 0; i < d->n; i++) {
        if (d->file[i].shards != shards || d->file[i].origin != d->file[0].origin || d->file[i].made != d->file[0].made)
            cluster_fail(c, "step %lld on disk is of two histories: rounds %llu and %llu", (long long)d->step,
                         (unsigned long long)d->file[0].origin, (unsigned long long)d->file[i].origin);
        if (seen >> d->file[i].shard & 1)
            cluster_fail(c, "step %lld on disk has shard %u twice", (long long)d->step, d->file[i].shard);
        seen |= (uint64_t)1 << d->file[i].shard;
    }
    if (!shards || (seen & (((uint64_t)1 << OWN) - 1)) != ((uint64_t)1 << (shards + 1)) - 1)
        cluster_fail(c, "step %lld on disk is half a checkpoint: shards %llx of %u", (long long)d->step,
                     (unsigned long long)seen, shards);
}

bool saves_came(const struct cluster *c, int64_t step, el_usec since)
{
    for (unsigned i = 0; i < c->saved_n; i++)
        if (c->saved[i].step == step && c->saved[i].at >= since)
            return true;
    return false;
}

const struct cluster_dir *saves_find(const struct cluster *c, int64_t step, unsigned shards)
{
    int64_t limit = INT64_MAX;
    for (unsigned i = c->saved_n; i-- > 0; limit = c->saved[i].step)
        if (c->saved[i].step == step)
            return step < limit && c->saved[i].file[0].shards == shards ? &c->saved[i] : NULL;
        else if (c->saved[i].step > limit)
            return NULL; /* whatever is older is looked at by its number alone: enough for here */
    return NULL;
}

void saves_set_aside(struct cluster *c, int64_t step)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->saved_n; i++)
        if (c->saved[i].step <= step)
            c->saved[n++] = c->saved[i];
    c->saved_n = n;
}

static bool publish(struct cluster *c, struct cluster_agent *a)
{
    struct cluster_save *x = &a->save;
    struct cluster_dir *stage = find_stage(c, x->nonce);
    if (!stage)
        return false;
    for (unsigned i = 0; i < x->files.n; i++) {
        bool there = false;
        for (unsigned k = 0; k < stage->n && !there; k++)
            there = memcmp(&stage->file[k], &x->files.file[i], sizeof stage->file[k]) == 0;
        if (!there)
            cluster_fail(c, "step %lld is published without shard %u", (long long)x->step, x->files.file[i].shard);
    }
    struct cluster_dir d = x->files;
    d.step = x->step;
    d.at = c->now;
    judge_dir(c, &d);
    unsigned n = 0;
    for (unsigned i = 0; i < c->saved_n; i++)
        if (c->saved[i].step != d.step)
            c->saved[n++] = c->saved[i];
    if (n == CLUSTER_DISK_MAX)
        memmove(c->saved, c->saved + 1, --n * sizeof c->saved[0]);
    c->saved[n++] = d;
    c->saved_n = n;
    *stage->nonce = 0;
    c->brought[c->saves_done % CLUSTER_BROUGHT_MAX] = (struct cluster_order){x->giver, x->order};
    c->saves_done++;
    c->saved_at = c->now;
    cluster_note(c, CLUSTER_COORD, "step %lld is on disk", (long long)d.step);
    return true;
}

/* --- what a node holds --- */

static void tell(struct cluster *c, uint32_t who)
{
    struct cluster_item *it = cluster_push(c, c->now + 1 + below(c, EL_MS(5)), CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->event = MEMBER_EV_HELD;
}

/* A part of a step may turn out to be broken. */
bool saves_is_broken(const struct cluster *c, uint32_t who, int64_t step)
{
    struct el_rng rng = {c->seed ^ (uint64_t)step << 20 ^ (uint64_t)who << 50};
    return c->now < c->faults_until && el_rng_below(&rng, 20) == 0;
}

/* Its workers' own part is empty in every other step. */
static bool has_own(uint32_t who, int64_t step)
{
    return ((uint64_t)step + who) % 2;
}

bool saves_wished(const struct cluster_agent *a, int64_t step)
{
    for (unsigned i = 0; i < a->save.wishes; i++)
        if (a->save.wish[i] == step)
            return true;
    return false;
}

static void wish(const struct cluster *c, struct cluster_agent *a, int64_t step, uint64_t line)
{
    struct cluster_save *x = &a->save;
    if (saves_wished(a, step) || x->wishes == 2)
        return;
    unsigned at = x->wishes && step < x->wish[0] ? 0 : x->wishes;
    if (!at && x->wishes)
        x->wish[1] = x->wish[0], x->wish_line[1] = x->wish_line[0];
    if (!at)
        x->wished_at = c->now;
    x->wish[at] = step;
    x->wish_line[at] = line;
    x->wishes++;
}

static bool forget_wish(const struct cluster *c, struct cluster_save *x, int64_t step, uint64_t line)
{
    unsigned n = 0, had = x->wishes;
    for (unsigned i = 0; i < had; i++)
        if (x->wish[i] != step || x->wish_line[i] != line)
            x->wish[n] = x->wish[i], x->wish_line[n++] = x->wish_line[i];
    x->wishes = n;
    x->wished_at = n < had ? c->now : x->wished_at;
    return n < had;
}

static void make_held(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_save *x = &a->save;
    size_t n = 0;
    x->steps[0] = 0;
    x->held.least = -1;
    for (unsigned i = a->restore.n; i-- > 0;) {
        if (a->restore.origin[i] != x->held.number || x->held.parts < 0)
            continue;
        x->held.least = a->restore.held[i] > x->held.least ? a->restore.held[i] : x->held.least;
        int64_t step = a->restore.held[i];
        n += (size_t)snprintf(x->steps + n, sizeof x->steps - n, "%s%lld@%llx:%s%s", n ? " " : "", (long long)step,
                              (unsigned long long)a->restore.line[i], saves_is_broken(c, who, step) ? "1" : "0-1",
                              has_own(who, step) ? ",2" : "");
    }
    x->held.steps = x->steps;
    x->held.layout = "l";
    x->held.list = x->list;
    n = 0;
    x->wished[0] = 0;
    for (unsigned i = 0; i < x->wishes; i++)
        n += (size_t)snprintf(x->wished + n, sizeof x->wished - n, "%s%lld@%llx", n ? " " : "", (long long)x->wish[i],
                              (unsigned long long)x->wish_line[i]);
    x->held.wishes = x->wished;
}

void saves_boot(struct cluster *c, uint32_t who)
{
    uint64_t serial = c->agent[who].save.serial;
    c->agent[who].save = (struct cluster_save){.serial = serial + 1, .held = {.parts = -1, .least = -1, .wishes = ""}};
}

void saves_round(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_save *x = &a->save;
    if (!c->saves)
        return;
    x->held = (struct member_held){.number = a->number, .coord = a->coord, .parts = -1};
    x->wishes = 0;
    tell(c, who);
}

/* The last word, before CLOSED. */
void saves_closed(struct cluster *c, uint32_t who)
{
    struct cluster_save *x = &c->agent[who].save;
    if (!c->saves || !x->held.number)
        return;
    x->held.quiet = true;
    make_held(c, who);
    cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_HELD, .held = &x->held});
}

void saves_went(struct cluster *c, uint32_t who, int64_t step, uint64_t made, uint64_t line)
{
    struct cluster_agent *a = &c->agent[who];
    if (!c->saves)
        return;
    if (step >= 0) {
        bool had = a->restore.n && a->restore.held[a->restore.n - 1] == step;
        if (!had)
            restores_hold(&a->restore, step, a->number, made, line);
        a->restore.origin[a->restore.n - 1] = a->number;
    }
    a->save.list++;
    a->save.held.parts = 3;
    tell(c, who);
}

void saves_committed(struct cluster *c, uint32_t who, int64_t step)
{
    if (!c->saves)
        return;
    if (step > 0 && step % 3 == 0)
        wish(c, &c->agent[who], step, c->agent[who].restore.trains);
    tell(c, who);
}

/* --- what it is ordered --- */

static void answer(struct cluster *c, uint32_t who, el_usec after, bool good)
{
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->event = MEMBER_EV_SAVED;
    it->ok = good;
    it->serial = c->agent[who].save.serial;
}

static bool faulty(struct cluster *c, uint64_t n)
{
    return c->now < c->faults_until && below(c, n) == 0;
}

static void on_write(struct cluster *c, uint32_t who, const struct msg_ckpt_write *w)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_save *x = &a->save;
    bool held = false;
    x->serial++;
    x->giver = w->giver;
    x->order = w->order;
    x->step = w->step;
    x->stop = false;
    x->busy = true;
    x->files.n = 0;
    x->origin = w->number;
    x->rank = a->rank;
    x->size = (unsigned)a->m.world.group_size;
    snprintf(x->nonce, sizeof x->nonce, "%s", w->nonce);
    for (unsigned p = 0; p < 3; p++) {
        char at[8];
        snprintf(at, sizeof at, " %u=", p);
        x->part[p] = strncmp(w->parts, at + 1, 2) == 0 || strstr(w->parts, at);
    }
    if (x->part[0] && x->part[2] != has_own(who, w->step))
        cluster_fail(c, "agent %u is%s to write its own part of step %lld, which it %s", who, x->part[2] ? "" : " not",
                     (long long)w->step, x->part[2] ? "does not hold" : "holds");
    for (unsigned i = 0; i < a->restore.n; i++)
        if (a->restore.held[i] == w->step && a->restore.line[i] == w->lineage && a->restore.origin[i] == w->number &&
            w->number == x->held.number) {
            held = true;
            x->made = a->restore.made[i];
            x->line = w->lineage;
        }
    answer(c, who, EL_MS(1) + below(c, EL_MS(900)), held && w->list == x->list && !faulty(c, 12));
}

static unsigned shard_of(const struct cluster_save *x, unsigned part)
{
    return part == 1 ? 0 : part ? OWN + x->rank : x->rank + 1;
}

static void on_written(struct cluster *c, struct cluster_agent *a)
{
    struct cluster_save *x = &a->save;
    struct cluster_dir *d = make_stage(c, x->nonce, x->step);
    for (unsigned p = 0; p < 3; p++) {
        if (!x->part[p] || d->n == 64)
            continue;
        memset(&d->file[d->n], 0, sizeof d->file[0]);
        d->file[d->n].shard = shard_of(x, p);
        d->file[d->n].shards = x->size;
        d->file[d->n].made = x->made;
        d->file[d->n].line = x->line;
        d->file[d->n++].origin = x->origin;
    }
}

static void tell_parts(struct cluster *c, struct cluster_agent *a)
{
    char shard[16];
    struct cluster_save *x = &a->save;
    static const char *const name[] = {"m", "a", "a@rank"};
    for (unsigned p = 0; p < 3 && x->held.parts == 3; p++) {
        struct msg m = {.type = MSG_CKPT_PART};
        snprintf(shard, sizeof shard, p == 1 ? "all" : "r%u", a->rank);
        m.u.ckpt_part = (struct msg_ckpt_part){x->held.number, x->held.coord, x->list, p, name[p], shard, p == 2};
        net_send(c, a->link, true, &m);
    }
}

static void tell_files(struct cluster *c, struct cluster_agent *a)
{
    char sums[72];
    struct cluster_save *x = &a->save;
    for (unsigned p = 0; p < 3; p++) {
        if (!x->part[p])
            continue;
        struct msg m = {.type = MSG_CKPT_FILE};
        snprintf(sums, sizeof sums, "%u.%u.%llu.%llx.%llx", shard_of(x, p), x->size, (unsigned long long)x->origin,
                 (unsigned long long)x->made, (unsigned long long)x->line);
        m.u.ckpt_file = (struct msg_ckpt_file){
            .giver = x->giver, .order = x->order, .index = p, .name = "f", .size = 1, .sums = sums};
        net_send(c, a->link, true, &m);
    }
}

static void on_file(struct cluster_save *x, const struct msg_ckpt_file *f)
{
    unsigned shard = 0, shards = 0;
    unsigned long long origin = 0, made = 0, line = 0;
    if (!f->index)
        x->files.n = 0;
    if (x->files.n == 64 || sscanf(f->sums, "%u.%u.%llu.%llx.%llx", &shard, &shards, &origin, &made, &line) != 5)
        return;
    memset(&x->files.file[x->files.n], 0, sizeof x->files.file[0]);
    x->files.file[x->files.n].shard = shard;
    x->files.file[x->files.n].shards = shards;
    x->files.file[x->files.n].made = made;
    x->files.file[x->files.n].line = line;
    x->files.file[x->files.n++].origin = origin;
}

/* Somebody has published for the order that it had.  Who stands still hears so late, when the job may have gone back
 * behind that step, and set it aside. */
static bool was_brought(const struct cluster *c, const struct cluster_save *x)
{
    for (unsigned i = 0; i < CLUSTER_BROUGHT_MAX; i++)
        if (c->brought[i].giver == x->giver && c->brought[i].order == x->order)
            return true;
    return false;
}

/* Whether all nodes of the round that runs have trained in it for so long. */
static bool trains_since(struct cluster *c, el_usec since)
{
    struct msg job;
    unsigned nodes = 0;
    rdzv_status_job(c->r, c->now, &job);
    const struct msg_status_job *j = &job.u.status_job;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *a = &c->agent[i];
        nodes += a->up && a->alive && !a->told && !a->succeeded && !a->m.leaves && a->number == j->number &&
                 a->coord == j->coord && a->restore.gone && a->restore.gone <= since;
    }
    return rdzv_state(c->r) == RDZV_RUNNING && nodes == j->group_size;
}

static void on_over(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    const struct member_save *m = &a->m.save;
    if (m->over_good && m->over_ours && !was_brought(c, &a->save))
        cluster_fail(c, "agent %u is told that step %lld is on disk", who, (long long)m->over_step);
    if (m->over_unknown) { /* it is wanted still, if it is held still */
        forget_wish(c, &a->save, m->over_step, a->save.line);
        for (unsigned i = 0; i < a->restore.n; i++)
            if (a->restore.held[i] == m->over_step && a->restore.line[i] == a->save.line &&
                a->restore.origin[i] == a->save.held.number)
                wish(c, a, m->over_step, a->save.line);
        tell(c, who);
        return;
    }
    if (forget_wish(c, &a->save, m->over_step, m->over_lineage)) {
        if (!m->over_good && c->now > c->faults_until + EL_SEC(60) && trains_since(c, c->now - SAVES_SOON))
            cluster_fail(c, "agent %u is told without any fault that step %lld is not on disk: %s", who,
                         (long long)m->over_step, m->over_text);
        tell(c, who);
    }
    c->saves_failed += !m->over_good;
}

void saves_act(struct cluster *c, uint32_t who, enum member_action_type what)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_save *x = &a->save;
    struct cluster_dir *stage;
    switch ((unsigned)what) {
    case MEMBER_DO_PARTS: tell_parts(c, a); break;
    case MEMBER_DO_FILES: tell_files(c, a); break;
    case MEMBER_DO_WRITE: on_write(c, who, &c->save_order->u.ckpt_write); break;
    case MEMBER_DO_FILE: on_file(x, &c->save_order->u.ckpt_file); break;
    case MEMBER_DO_PUBLISH: {
        /* The rename, and later the answer: kill -9 may come between. */
        el_usec half = EL_MS(1) + below(c, EL_MS(200));
        struct cluster_item *it = cluster_push(c, c->now + half, CLUSTER_LOCAL, who);
        x->serial++;
        it->life = a->life;
        it->event = MEMBER_EV_MOVED;
        it->serial = x->serial;
        it->ok = !faulty(c, 12);
        break;
    }
    case MEMBER_DO_UNSAVE:
        stage = find_stage(c, x->nonce);
        if (x->busy) {
            x->stop = true;
        } else if (stage) {
            *stage->nonce = 0;
        }
        break;
    case MEMBER_DO_SAVED: on_over(c, who); break;
    default: break;
    }
}

/* An event of this file's for the core; false: not for it. */
bool saves_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_save *x = &a->save;
    if (it->event == MEMBER_EV_HELD) {
        make_held(c, it->who);
        ev->held = &x->held;
        return x->held.number != 0;
    }
    if (it->event == MEMBER_EV_MOVED) { /* the rename */
        if (it->serial == x->serial)
            answer(c, it->who, 1 + below(c, EL_MS(100)), it->ok && publish(c, a));
        return false;
    }
    if (it->event != MEMBER_EV_SAVED)
        return true;
    if (it->serial != x->serial)
        return false;
    if (x->busy && it->ok && !x->stop)
        on_written(c, a);
    ev->ok = it->ok && !x->stop;
    ev->text = "no space";
    x->busy = x->stop = false;
    return true;
}

/* Long after the last fault no order hangs, and what is wanted every third step comes to disk. */
void saves_all_is_well(struct cluster *c)
{
    bool due = c->saves && c->now > SAVES_SOON && trains_since(c, c->now - SAVES_SOON);
    c->saves_due += due;
    if (due && c->saved_at + SAVES_SOON < c->now)
        cluster_fail(c, "all nodes train, and no step has come to disk for %u s", (unsigned)(SAVES_SOON / EL_SEC(1)));
    for (uint32_t i = 0; i < c->n && c->saves; i++) {
        const struct cluster_agent *a = &c->agent[i];
        bool trains = due && a->up && a->alive && a->number == c->r->number && a->coord == c->r->coord;
        if (trains && a->save.wishes && a->save.wished_at + SAVES_SOON < c->now)
            cluster_fail(c, "agent %u has wanted step %lld on disk for %u s, and nothing is said", i,
                         (long long)a->save.wish[0], (unsigned)(SAVES_SOON / EL_SEC(1)));
        if (a->up && a->m.save.order && a->m.link == MEMBER_LINK_UP && c->judge_at - c->faults_until > EL_SEC(30) &&
            a->m.save.step < a->m.save.done - 40)
            cluster_fail(c, "agent %u still has the order to write step %lld", i, (long long)a->m.save.step);
    }
}
