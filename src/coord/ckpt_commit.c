#include "coord/ckpt_commit.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coord/ckpt_commit_private.h"
#include "util/rng.h"
#include "util/sort.h"

#define CKPT_COMMIT_WENT_BACK "the job has gone back behind it"

struct ckpt_commit *ckpt_commit_new(const struct ckpt_commit_conf *conf)
{
    struct ckpt_commit *s = el_alloc(conf->mem, sizeof *s);
    if (!s)
        return NULL;
    s->conf = *conf;
    s->mem = EL_MEM_INIT(CKPT_COMMIT_MEM_BYTES);
    s->mem.parent = conf->mem;
    s->node = el_alloc(conf->mem, conf->room * sizeof *s->node);
    s->bucket = el_alloc(conf->mem, CKPT_COMMIT_BUCKETS * sizeof *s->bucket);
    s->seat_known = el_alloc(conf->mem, conf->room);
    s->result = el_alloc(conf->mem, CKPT_COMMIT_RESULTS_MAX * sizeof *s->result);
    s->step = s->done = s->again = CKPT_COMMIT_NO_STEP;
    s->settle_until = s->until = EL_NEVER;
    if (!s->node || !s->bucket || !s->seat_known || !s->result) {
        el_free(conf->mem, s->result);
        el_free(conf->mem, s->node);
        el_free(conf->mem, s->bucket);
        el_free(conf->mem, s->seat_known);
        el_free(conf->mem, s);
        return NULL;
    }
    s->used = conf->room;
    ckpt_commit_forget_held(s);
    s->used = 0;
    return s;
}

static void forget_order(struct ckpt_commit *s)
{
    for (uint32_t i = 0; i < s->files; i++) {
        el_free(&s->mem, s->file[i].part);
        el_free(&s->mem, s->file[i].shard);
        el_free(&s->mem, s->file[i].name);
        el_free(&s->mem, s->file[i].sums);
    }
    el_free(&s->mem, s->file);
    s->file = NULL;
    s->files = s->written = 0;
    for (unsigned i = 0; i < s->used; i++)
        s->node[i].files = s->node[i].left = 0;
    s->phase = CKPT_COMMIT_RESTING;
    s->until = EL_NEVER;
}

void ckpt_commit_free(struct ckpt_commit *s)
{
    if (!s)
        return;
    struct el_mem *mem = s->conf.mem;
    forget_order(s);
    ckpt_commit_forget_held(s);
    el_free(&s->mem, s->class);
    el_free(&s->mem, s->words);
    el_free(mem, s->result);
    el_free(mem, s->node);
    el_free(mem, s->bucket);
    el_free(mem, s->seat_known);
    el_free(mem, s);
}

/* --- what became of a step --- */

/* Of the order, of one that came to nothing before, or of a step for which none was given. */
static void __attribute__((format(printf, 5, 6)))
resolve(struct ckpt_commit *s, int64_t step, bool good, el_usec now, const char *format, ...)
{
    bool ordered = s->phase != CKPT_COMMIT_RESTING, again = s->again == step;
    struct ckpt_commit_result *x = ckpt_commit_over(s, step, ordered || again ? s->lineage : s->covered, good, now);
    va_list ap;
    x->order = ordered || again ? s->order : 0;
    x->existed = good && s->existed;
    x->emergency = (ordered || again) && s->op_emergency;
    x->took = ordered ? now - s->began : 0;
    for (uint32_t i = 0; i < s->files; i++)
        x->bytes += s->file[i].size;
    va_start(ap, format);
    vsnprintf(x->text, sizeof x->text, format, ap);
    va_end(ap);
    s->again = CKPT_COMMIT_NO_STEP;
    s->why[0] = 0;
    forget_order(s);
}

/* The order comes to nothing; perhaps others can do it. */
static void __attribute__((format(printf, 2, 3))) fall(struct ckpt_commit *s, const char *format, ...)
{
    if (!*s->why) {
        va_list ap;
        va_start(ap, format);
        vsnprintf(s->why, sizeof s->why, format, ap);
        va_end(ap);
    }
    s->again = s->step;
    s->tell = true;
    forget_order(s);
}

/* --- what is heard --- */

void ckpt_commit_round(struct ckpt_commit *s, uint64_t number, uint64_t coord, unsigned size)
{
    assert(size <= s->conf.room);
    ckpt_commit_forget_held(s);
    s->number = number;
    s->coord = coord;
    s->size = size;
    s->world = 0;
    s->again = CKPT_COMMIT_NO_STEP;
    s->settle_until = EL_NEVER;
    ckpt_commit_forgive(s);
    s->settling = s->emergency = false;
}

void ckpt_commit_world(struct ckpt_commit *s, uint64_t ranks)
{
    s->world = ranks;
}

static void ckpt_commit_take_order(struct ckpt_commit *s, unsigned node, const struct msg_ckpt_state *h, el_usec now)
{
    struct ckpt_commit_node *n = &s->node[node];
    bool moved = h->moved != n->moved || (enum ckpt_commit_at)h->at != n->at || h->got != n->got;
    n->giver = h->giver;
    n->order = h->order;
    n->at = (enum ckpt_commit_at)h->at;
    n->moved = h->moved;
    n->got = h->got;
    if (!ckpt_commit_is_of_order(s, h->giver, h->order))
        return;
    s->until = moved ? now + CKPT_COMMIT_STALL : s->until;
    if (n->at == CKPT_COMMIT_AT_FAILED) {
        n->failed = s->step;
        fall(s, "%.64s: %.380s", ckpt_commit_name(s, node), h->text);
    } else if (n->at == CKPT_COMMIT_AT_WRITTEN && n->left) { /* they are said before */
        n->failed = s->step;
        fall(s, "%.64s has not told all of its files", ckpt_commit_name(s, node));
    } else if (n->at == CKPT_COMMIT_AT_PUBLISHED && s->phase == CKPT_COMMIT_PUBLISHING) {
        n->published = true;
        s->existed |= h->existed;
    }
}

static void take_held(struct ckpt_commit *s, unsigned node, unsigned seat, const struct msg_ckpt_state *h, el_usec now)
{
    struct ckpt_commit_node *n = &s->node[node];
    ckpt_commit_take_order(s, node, h, now);
    if (seat == CKPT_COMMIT_NO_SEAT || h->number != s->number || h->coord != s->coord)
        return;
    n->here = true;
    n->seat = seat;
    n->quiet = h->quiet;
    n->least = h->least;
    ckpt_commit_take_steps(s, n, h);
    const struct ckpt_commit_result *x = ckpt_commit_result_of(s, h->done, 0);
    bool left = x && x->given_up; /* it has not heard that the job has gone back behind it */
    s->done = h->done > s->done && !left ? h->done : s->done;
    ckpt_commit_take_wishes(s, n, h->wishes, now);
    ckpt_commit_take_ask(s, n, h->ask);
}

static void take_file(struct ckpt_commit *s, unsigned node, const struct msg_ckpt_file *f, el_usec now)
{
    if (!ckpt_commit_is_of_order(s, f->giver, f->order) || s->phase != CKPT_COMMIT_WRITING)
        return;
    for (uint32_t i = 0; i < s->files; i++) {
        struct ckpt_commit_file *to = &s->file[i];
        if (to->node != node || to->index != f->index || to->written)
            continue;
        to->name = el_strndup(&s->mem, f->name, strlen(f->name));
        to->sums = el_strndup(&s->mem, f->sums, strlen(f->sums));
        to->size = f->size;
        to->samples = f->samples;
        to->written = to->name && to->sums;
        s->written += to->written;
        s->node[node].left -= to->written;
        s->until = now + CKPT_COMMIT_STALL;
        if (!to->written)
            resolve(s, s->step, false, now, "there is no memory for the list of its files");
        return;
    }
}

void ckpt_commit_take(struct ckpt_commit *s, unsigned node, unsigned seat, const struct msg *msg, el_usec now)
{
    assert(node < s->conf.room && (seat == CKPT_COMMIT_NO_SEAT || seat < s->conf.room));
    s->used = node < s->used ? s->used : node + 1;
    switch ((unsigned)msg->type) {
    case MSG_CKPT_PART:
        if (seat == CKPT_COMMIT_NO_SEAT || msg->u.ckpt_part.number != s->number || msg->u.ckpt_part.coord != s->coord)
            break;
        s->node[node].seat = seat;
        ckpt_commit_take_part(s, &s->node[node], &msg->u.ckpt_part);
        break;
    case MSG_CKPT_STATE: take_held(s, node, seat, &msg->u.ckpt_state, now); break;
    case MSG_CKPT_FILE: take_file(s, node, &msg->u.ckpt_file, now); break;
    default: break;
    }
}

static bool ckpt_commit_is_needed(const struct ckpt_commit *s, unsigned node)
{
    if (s->phase == CKPT_COMMIT_PUBLISHING)
        return s->conf.store == CKPT_COMMIT_LOCAL ? s->node[node].files && !s->node[node].published
                                                  : s->publisher == node;
    return s->conf.store == CKPT_COMMIT_LOCAL ? s->node[node].files : s->node[node].left;
}

void ckpt_commit_lost(struct ckpt_commit *s, unsigned node)
{
    if (node >= s->used)
        return;
    struct ckpt_commit_node *n = &s->node[node];
    n->here = n->quiet = n->published = false;
    n->order = n->giver = n->told_conn = 0;
    n->at = CKPT_COMMIT_AT_REST;
    n->failed = CKPT_COMMIT_NO_STEP;
    n->wishes = 0;
    n->ask = 0;
    n->ask_at = CKPT_COMMIT_ASK_NONE;
    if (s->phase != CKPT_COMMIT_RESTING && ckpt_commit_is_needed(s, node))
        fall(s, "%.64s was lost", ckpt_commit_name(s, node));
    ckpt_commit_forget_node(s, n);
}

void ckpt_commit_settle(struct ckpt_commit *s, bool emergency, el_usec until, el_usec now)
{
    s->settling = true;
    s->emergency = emergency;
    s->settle_until = until;
    s->quiet_until = now + CKPT_COMMIT_QUIET;
}

bool ckpt_commit_is_settled(const struct ckpt_commit *s)
{
    return !s->settling;
}

void ckpt_commit_give_up(struct ckpt_commit *s, el_usec now, const char *why)
{
    if (s->phase != CKPT_COMMIT_RESTING || s->again != CKPT_COMMIT_NO_STEP)
        resolve(s, s->step, false, now, "%s", why);
    ckpt_commit_deny_targets(s, CKPT_COMMIT_NO_STEP, 0, why, now);
}

/* Who took part in their orders may be cut off, and come back when what it has brought is set aside. */
static void give_up_results(struct ckpt_commit *s, int64_t beyond, uint64_t lineage)
{
    for (unsigned i = 0; i < CKPT_COMMIT_RESULTS_MAX; i++) {
        struct ckpt_commit_result *x = &s->result[i];
        if (!x->serial || x->step <= beyond || (lineage && x->lineage == lineage))
            continue;
        x->good = x->existed = false;
        x->given_up = true;
        snprintf(x->text, sizeof x->text, CKPT_COMMIT_WENT_BACK);
    }
}

void ckpt_commit_went_back(struct ckpt_commit *s, int64_t step, uint64_t lineage, el_usec now)
{
    bool under_way = s->phase != CKPT_COMMIT_RESTING || s->again != CKPT_COMMIT_NO_STEP;
    if (under_way && s->step > step && (!lineage || s->lineage != lineage))
        resolve(s, s->step, false, now, CKPT_COMMIT_WENT_BACK);
    ckpt_commit_deny_targets(s, step, lineage, CKPT_COMMIT_WENT_BACK, now);
    give_up_results(s, step, lineage);
    s->done = s->done > step ? CKPT_COMMIT_NO_STEP : s->done; /* what of the steps before it is on disk is not known */
}

/* --- orders --- */

static void ckpt_commit_draw_nonce(struct ckpt_commit *s)
{
    struct el_rng rng = {s->conf.giver ^ s->order << 32};
    snprintf(s->nonce, sizeof s->nonce, "%016llx", (unsigned long long)el_rng_next(&rng));
}

static bool add_file(struct ckpt_commit *s, unsigned node, unsigned index)
{
    const struct ckpt_commit_class *c = &s->class[s->node[node].cls[index]];
    struct ckpt_commit_file *f = &s->file[s->files];
    *f = (struct ckpt_commit_file){.part = el_strndup(&s->mem, c->part, strlen(c->part)),
                                   .shard = el_strndup(&s->mem, c->shard, strlen(c->shard)),
                                   .node = node,
                                   .index = index};
    s->files++;
    s->node[node].files++;
    s->node[node].left++;
    return f->part && f->shard;
}

/* Who writes what: of those that hold it the one that has least to do, beginning with another one for each step. */
static void deal(struct ckpt_commit *s, int64_t step)
{
    for (uint32_t i = 0; i < s->classes; i++)
        s->class[i].owner = CKPT_COMMIT_NONE;
    for (unsigned k = 0; k < s->used; k++) {
        unsigned i = (unsigned)(((uint64_t)step + k) % s->used);
        struct ckpt_commit_node *n = &s->node[i];
        n->load = 0;
        bool writes = n->here && n->known && n->failed != step;
        const struct ckpt_commit_step *st = writes ? ckpt_commit_find_of(n, step, s->lineage) : NULL;
        for (unsigned p = 0; st && p < n->parts; p++) {
            struct ckpt_commit_class *c = &s->class[n->cls[p]];
            if (!ckpt_commit_holds(n, st, p) || (c->owner != CKPT_COMMIT_NONE && s->node[c->owner].load <= n->load + 1))
                continue;
            if (c->owner != CKPT_COMMIT_NONE)
                s->node[c->owner].load--;
            c->owner = i;
            c->index = p;
            n->load++;
        }
    }
}

/* The same step gets the same names of files whoever gives the order. */
static int ckpt_commit_by_name(const void *a, const void *b)
{
    const struct ckpt_commit_file *x = a, *y = b;
    int order = strcmp(x->part, y->part);
    return order ? order : strcmp(x->shard, y->shard);
}

static bool make_files(struct ckpt_commit *s, int64_t step)
{
    bool good = true;
    uint64_t room = s->classes;
    for (unsigned i = 0; s->conf.store == CKPT_COMMIT_LOCAL && i < s->used; i++)
        room += s->node[i].here ? s->node[i].parts : 0;
    s->file = el_alloc(&s->mem, room * sizeof *s->file);
    if (!s->file)
        return false;
    if (s->conf.store == CKPT_COMMIT_LOCAL) {
        for (unsigned i = 0; i < s->used; i++) {
            const struct ckpt_commit_node *n = &s->node[i];
            const struct ckpt_commit_step *st = ckpt_commit_find_of(n, step, s->lineage);
            for (unsigned p = 0; good && n->here && n->known && p < n->parts; p++)
                if (!s->class[n->cls[p]].own || ckpt_commit_holds(n, st, p))
                    good = add_file(s, i, p);
        }
        return good;
    }
    deal(s, step);
    for (uint32_t i = 0; good && i < s->classes; i++)
        if (!s->class[i].own || s->class[i].owner != CKPT_COMMIT_NONE)
            good = add_file(s, s->class[i].owner, s->class[i].index);
    if (good)
        el_sort(s->file, s->files, sizeof *s->file, ckpt_commit_by_name);
    return good;
}

static void ckpt_commit_begin(struct ckpt_commit *s, int64_t step, bool emergency, el_usec now)
{
    s->again = CKPT_COMMIT_NO_STEP;
    s->order++;
    s->phase = CKPT_COMMIT_WRITING;
    s->step = step;
    s->lineage = s->covered;
    s->op_emergency = emergency;
    s->op_number = s->number;
    s->op_coord = s->coord;
    s->op_world = s->world;
    s->began = now;
    s->until = now + CKPT_COMMIT_STALL;
    s->existed = false;
    s->publisher = CKPT_COMMIT_NONE;
    snprintf(s->layout, sizeof s->layout, "%s", ckpt_commit_layout(s));
    ckpt_commit_draw_nonce(s);
    for (unsigned i = 0; i < s->used; i++)
        s->node[i].published = false;
    if (!make_files(s, step))
        resolve(s, step, false, now, "there is no memory for the list of its files");
    else if (!s->files)
        resolve(s, step, false, now,
                "nothing that the workers have declared is written with this --ckpt-layout (declare_file() names what "
                "--ckpt-layout=megatron writes)");
    s->tell = true;
}

/* "h1, h2": who has not written, or not published. */
static void name_late(const struct ckpt_commit *s, char *to, size_t size)
{
    size_t n = 0;
    unsigned named = 0;
    *to = 0;
    for (unsigned i = 0; i < s->used && named < 4 && n < size; i++)
        if (ckpt_commit_is_needed(s, i))
            n += (size_t)snprintf(to + n, size - n, "%s%.64s", named++ ? ", " : "", ckpt_commit_name(s, i));
}

static void advance_order(struct ckpt_commit *s, el_usec now)
{
    char who[300];
    if (s->phase == CKPT_COMMIT_WRITING && s->written == s->files) {
        for (unsigned i = 0; i < s->used && s->publisher == CKPT_COMMIT_NONE; i++)
            if (s->node[i].at == CKPT_COMMIT_AT_WRITTEN &&
                ckpt_commit_is_of_order(s, s->node[i].giver, s->node[i].order))
                s->publisher = i;
        if (s->publisher != CKPT_COMMIT_NONE) {
            s->phase = CKPT_COMMIT_PUBLISHING;
            s->until = now + CKPT_COMMIT_STALL;
            s->tell = true;
        }
    }
    if (s->phase == CKPT_COMMIT_PUBLISHING) {
        bool all = true;
        for (unsigned i = 0; i < s->used && all; i++)
            all = !ckpt_commit_is_needed(s, i) || s->node[i].published;
        if (all)
            resolve(s, s->step, true, now, "%s", "");
    }
    if (s->phase != CKPT_COMMIT_RESTING && s->until <= now) {
        name_late(s, who, sizeof who);
        resolve(s, s->step, false, now, "no byte of it was written for %u s: %s",
                (unsigned)(CKPT_COMMIT_STALL / EL_SEC(1)), who);
    }
}

/* Everybody has said its last word about the round. */
static bool all_quiet(const struct ckpt_commit *s, el_usec now)
{
    unsigned quiet = 0;
    if (s->quiet_until <= now)
        return true;
    for (unsigned i = 0; i < s->used; i++)
        quiet += s->node[i].here && s->node[i].quiet;
    return quiet >= s->live;
}

static void advance_targets(struct ckpt_commit *s, el_usec now)
{
    int64_t step = ckpt_commit_covered_target(s, all_quiet(s, now), now);
    if (step != CKPT_COMMIT_NO_STEP)
        ckpt_commit_begin(s, step, false, now);
}

/* An order came to nothing: the others, if they hold everything. */
static void advance_again(struct ckpt_commit *s, el_usec now)
{
    char text[MSG_TEXT_MAX + 1];
    if (ckpt_commit_cover_of(s, s->again, s->lineage, s->live, text, sizeof text) == CKPT_COMMIT_COVERED)
        ckpt_commit_begin(s, s->again, s->op_emergency, now);
    else
        resolve(s, s->again, false, now, "%.330s%s%.140s", s->why, *text ? "; " : "", text);
}

/* Somebody speaks of an order that is over: when it has heard so it may want that step again. */
static bool is_spoken_of(const struct ckpt_commit *s, el_usec now)
{
    bool spoken = false;
    for (unsigned i = 0; i < s->used; i++)
        spoken = spoken || (s->node[i].here && s->node[i].order);
    return spoken && s->quiet_until > now;
}

static void advance_asked(struct ckpt_commit *s, el_usec now)
{
    int64_t step = ckpt_commit_asked(s);
    if (step != CKPT_COMMIT_NO_STEP)
        ckpt_commit_begin(s, step, false, now);
}

static void advance_settling(struct ckpt_commit *s, el_usec now)
{
    if (all_quiet(s, now) && s->emergency) {
        int64_t step = ckpt_commit_newest(s, s->done, s->live);
        int64_t held = ckpt_commit_held_beyond(s, s->done);
        char text[MSG_TEXT_MAX + 1];
        s->emergency = false;
        if (step == CKPT_COMMIT_NO_STEP && held != CKPT_COMMIT_NO_STEP &&
            ckpt_commit_cover(s, held, s->live, text, sizeof text) != CKPT_COMMIT_COVERED &&
            !ckpt_commit_has_failed(s, held, s->covered))
            resolve(s, held, false, now, "%.470s", text);
        if (step != CKPT_COMMIT_NO_STEP && !ckpt_commit_has_failed(s, step, s->covered))
            ckpt_commit_begin(s, step, true, now);
    }
    s->settling = !all_quiet(s, now) || s->phase != CKPT_COMMIT_RESTING || is_spoken_of(s, now);
}

bool ckpt_commit_advance(struct ckpt_commit *s, unsigned live, el_usec now)
{
    s->live = live;
    for (unsigned turn = 0; turn < 8; turn++) {
        uint64_t serial = s->results, order = s->order;
        advance_order(s, now);
        if (s->phase == CKPT_COMMIT_RESTING && s->again != CKPT_COMMIT_NO_STEP)
            advance_again(s, now);
        if (s->phase == CKPT_COMMIT_RESTING)
            advance_targets(s, now);
        if (s->phase == CKPT_COMMIT_RESTING)
            advance_asked(s, now);
        if (s->phase == CKPT_COMMIT_RESTING && !s->targets && s->settling)
            advance_settling(s, now);
        if (serial == s->results && order == s->order)
            break;
    }
    if (s->settling && s->settle_until <= now)
        s->settling = false;
    if (!s->settling)
        s->settle_until = EL_NEVER;
    bool tell = s->tell;
    s->tell = false;
    return tell;
}

el_usec ckpt_commit_deadline(const struct ckpt_commit *s)
{
    el_usec first = s->phase != CKPT_COMMIT_RESTING ? s->until : EL_NEVER;
    for (unsigned i = 0; i < s->targets && s->phase == CKPT_COMMIT_RESTING; i++) {
        const struct ckpt_commit_target *t = &s->target[i];
        el_usec next = t->word < t->until ? t->word : t->until;
        first = next < first ? next : first;
    }
    if (s->settling && s->settle_until < first)
        first = s->settle_until;
    if (s->settling && s->phase == CKPT_COMMIT_RESTING && s->quiet_until < first)
        first = s->quiet_until;
    return first;
}

/* --- for those who look --- */

int64_t ckpt_commit_writing(const struct ckpt_commit *s)
{
    return s->phase != CKPT_COMMIT_RESTING ? s->step : CKPT_COMMIT_NO_STEP;
}

int64_t ckpt_commit_on_disk(const struct ckpt_commit *s)
{
    return s->done;
}

int64_t ckpt_commit_covered(struct ckpt_commit *s)
{
    return ckpt_commit_newest(s, CKPT_COMMIT_NO_STEP, s->live);
}

void ckpt_commit_check(const struct ckpt_commit *s)
{
    unsigned written = 0, known = 0, left = 0;
    assert((s->phase == CKPT_COMMIT_RESTING) == (s->files == 0));
    assert((s->phase == CKPT_COMMIT_RESTING) == (s->until == EL_NEVER));
    for (uint32_t i = 0; i < s->files; i++)
        written += s->file[i].written;
    assert(written == s->written);
    assert(s->phase != CKPT_COMMIT_PUBLISHING || s->written == s->files);
    for (unsigned i = 0; i < s->size; i++)
        known += s->seat_known[i];
    for (unsigned i = 0; i < s->used; i++) {
        left += s->node[i].left;
        assert(!s->node[i].known || s->node[i].heard == s->node[i].parts);
    }
    assert(known == s->declared && left == s->files - s->written);
    assert(s->targets <= CKPT_COMMIT_TARGETS_MAX);
    for (unsigned i = 0; i + 1 < s->targets; i++)
        assert(s->target[i].step < s->target[i + 1].step);
}
