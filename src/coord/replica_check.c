#include "coord/replica_check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/replica_table.h"
#include "util/scan.h"

#define BUCKETS 4096u
#define NONE    UINT32_MAX

/* A part that some node has a digest of, at the newest step. */
struct replica_check_key {
    uint64_t key, digest, lineage; /* digest 0: of a node that is lost */
    int64_t step;
    uint32_t seat, other;
    uint32_t next;      /* of its bucket */
    bool differs, told; /* told: it is, or is being looked at */
};

/* One of the two that are asked. */
struct side {
    unsigned seat;
    uint64_t told_conn; /* 0: it was not */
    bool answered, held, named, more;
    uint64_t rank;
    char *lines;
};

enum state { IDLE, ASKING, FOUND };

struct replica_check {
    struct el_mem *mem, *sums;
    unsigned room, seats;
    uint64_t number, coord;
    struct replica_check_key *key;
    uint32_t keys, keys_room, bucket[BUCKETS];
    unsigned differences; /* keys that differ and are not told */
    bool short_of_room, said;
    int64_t left_out; /* a step of which parts were, when there was no room */

    enum state state;
    struct replica_check_key about; /* as it was when it was found to differ */
    uint32_t index;
    struct side side[2];
    char after[EL_SHOW_MAX], part[REPLICA_CHECK_NAME_MAX + 1], shard[REPLICA_CHECK_NAME_MAX + 1];
    char names[REPLICA_CHECK_TEXT_MAX];
    struct alike_names found;
    unsigned pieces;
    bool unnamed;
    el_usec until;
};

static void forget_lines(struct replica_check *c)
{
    for (unsigned i = 0; i < 2; i++) {
        el_free(c->sums, c->side[i].lines);
        c->side[i].lines = NULL;
    }
}

static void replica_check_rest(struct replica_check *c)
{
    forget_lines(c);
    c->state = IDLE;
    c->until = EL_NEVER;
}

struct replica_check *replica_check_new(unsigned room, struct el_mem *mem, struct el_mem *sums)
{
    struct replica_check *c = el_alloc(mem, sizeof *c);
    if (!c)
        return NULL;
    c->mem = mem;
    c->sums = sums;
    c->room = room;
    replica_check_round(c, 0, 0, 0);
    return c;
}

void replica_check_free(struct replica_check *c)
{
    if (!c)
        return;
    forget_lines(c);
    el_free(c->sums, c->key);
    el_free(c->mem, c);
}

void replica_check_round(struct replica_check *c, uint64_t number, uint64_t coord, unsigned seats)
{
    assert(seats <= c->room);
    replica_check_rest(c);
    c->number = number;
    c->coord = coord;
    c->seats = seats;
    el_free(c->sums, c->key); /* others may need it meanwhile */
    c->key = NULL;
    c->keys = c->keys_room = c->differences = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        c->bucket[i] = NONE;
}

/* --- digests --- */

static struct replica_check_key *replica_check_key_of(struct replica_check *c, uint64_t key)
{
    uint32_t *bucket = &c->bucket[(key ^ key >> 32) % BUCKETS];
    for (uint32_t i = *bucket; i != NONE; i = c->key[i].next)
        if (c->key[i].key == key)
            return &c->key[i];
    if (c->keys == REPLICA_CHECK_KEYS_MAX)
        return NULL;
    if (c->keys == c->keys_room) {
        uint32_t room = c->keys_room ? 2 * c->keys_room : 64;
        struct replica_check_key *more = el_realloc(c->sums, c->key, room * sizeof *more);
        if (!more)
            return NULL;
        c->key = more;
        c->keys_room = room;
    }
    c->key[c->keys] = (struct replica_check_key){.key = key, .next = *bucket};
    *bucket = c->keys++;
    return &c->key[*bucket];
}

static void replica_check_compare(struct replica_check *c, struct replica_check_key *k,
                                  const struct replica_check_key *now)
{
    bool same = k->digest && k->step == now->step && k->lineage == now->lineage;
    if (k->differs || k->told)
        return;
    if (same && k->digest != now->digest && k->seat != now->seat) {
        k->differs = true;
        k->other = now->seat;
        c->differences++;
    } else if (!k->digest || k->lineage != now->lineage || k->step < now->step || k->seat == now->seat) {
        k->digest = now->digest;
        k->lineage = now->lineage;
        k->step = now->step;
        k->seat = now->seat;
    }
}

/* "9f3a=5c1 77=3" */
static void take_digests(struct replica_check *c, unsigned seat, const struct msg_ckpt_digests *d)
{
    struct replica_check_key now = {.step = d->step, .lineage = d->lineage, .seat = seat};
    const char *at = d->digests;
    for (scan_blanks(&at); scan_hex(&at, &now.key) && *at == '='; scan_blanks(&at)) {
        at++;
        if (!scan_hex(&at, &now.digest))
            return;
        struct replica_check_key *k = now.digest ? replica_check_key_of(c, now.key) : NULL;
        if (k) {
            replica_check_compare(c, k, &now);
        } else if (now.digest) {
            c->short_of_room = true;
            c->left_out = now.step;
        }
    }
}

/* --- the tensors behind them --- */

/* It may be found to differ at a later step, of these two or others. */
static void replica_check_look_again(struct replica_check *c)
{
    struct replica_check_key *k = &c->key[c->index];
    k->digest = 0;
    k->told = false;
    replica_check_rest(c);
}

static void ask_both(struct replica_check *c, el_usec now)
{
    forget_lines(c);
    for (unsigned i = 0; i < 2; i++)
        c->side[i] = (struct side){.seat = i ? c->about.other : c->about.seat};
    c->until = now + REPLICA_CHECK_PATIENCE;
}

static void replica_check_begin(struct replica_check *c, uint32_t index, el_usec now)
{
    struct replica_check_key *k = &c->key[index];
    k->differs = false;
    k->told = true;
    c->differences--;
    c->index = index;
    c->about = *k;
    c->state = ASKING;
    c->after[0] = c->names[0] = c->part[0] = c->shard[0] = 0;
    c->found = (struct alike_names){.to = c->names, .size = sizeof c->names};
    c->pieces = 0;
    c->unnamed = false;
    ask_both(c, now);
}

static void take_tensors(struct replica_check *c, unsigned seat, const struct msg_ckpt_tensors *t)
{
    if (c->state != ASKING || t->key != c->about.key || t->step != c->about.step || t->lineage != c->about.lineage ||
        strcmp(t->after, c->after) != 0)
        return;
    for (unsigned i = 0; i < 2; i++) {
        struct side *x = &c->side[i];
        if (x->seat != seat || x->answered)
            continue;
        x->lines = el_strndup(c->sums, t->lines, strlen(t->lines));
        x->answered = true;
        x->held = t->held;
        x->named = t->named && x->lines;
        x->more = t->more;
        x->rank = t->rank;
        if (!*c->part) {
            snprintf(c->part, sizeof c->part, "%s", t->part);
            snprintf(c->shard, sizeof c->shard, "%s", t->shard);
        }
    }
}

void replica_check_take(struct replica_check *c, unsigned seat, const struct msg *msg)
{
    if (seat >= c->seats)
        return;
    const struct msg_ckpt_digests *d = &msg->u.ckpt_digests;
    const struct msg_ckpt_tensors *t = &msg->u.ckpt_tensors;
    if (msg->type == MSG_CKPT_DIGESTS && d->number == c->number && d->coord == c->coord)
        take_digests(c, seat, d);
    else if (msg->type == MSG_CKPT_TENSORS && t->number == c->number && t->coord == c->coord)
        take_tensors(c, seat, t);
}

void replica_check_lost(struct replica_check *c, unsigned seat)
{
    if (c->state == ASKING && (c->side[0].seat == seat || c->side[1].seat == seat))
        replica_check_look_again(c);
    for (uint32_t i = 0; i < c->keys; i++) {
        struct replica_check_key *k = &c->key[i];
        bool gone = k->seat == seat || (k->differs && k->other == seat);
        if (k->told || !gone)
            continue;
        c->differences -= k->differs;
        k->differs = false;
        k->digest = 0;
    }
}

/* --- what follows --- */

static void replica_check_end(struct replica_check *c)
{
    alike_names_end(&c->found);
    forget_lines(c);
    c->until = EL_NEVER;
    c->state = c->found.n || c->unnamed ? FOUND : IDLE;
}

/* Both have answered. */
static void replica_check_look(struct replica_check *c, el_usec now)
{
    const struct side *a = &c->side[0], *b = &c->side[1];
    if (!a->held || !b->held) {
        replica_check_look_again(c);
        return;
    }
    c->unnamed = !a->named || !b->named;
    if (c->unnamed || ++c->pieces > REPLICA_CHECK_PIECES_MAX ||
        replica_table_compare((const char *const[]){a->lines, b->lines}, (const bool[]){a->more, b->more}, c->after,
                              &c->found))
        replica_check_end(c);
    else
        ask_both(c, now);
}

bool replica_check_advance(struct replica_check *c, el_usec now)
{
    bool asks = false;
    if (c->state == ASKING && c->side[0].answered && c->side[1].answered) {
        replica_check_look(c, now);
        asks = c->state == ASKING;
    }
    if (c->state == ASKING && c->until <= now)
        replica_check_look_again(c);
    for (uint32_t i = 0; c->state == IDLE && c->differences && i < c->keys; i++)
        if (c->key[i].differs) {
            replica_check_begin(c, i, now);
            asks = true;
        }
    return asks;
}

el_usec replica_check_deadline(const struct replica_check *c)
{
    return c->until;
}

bool replica_check_asks(const struct replica_check *c, unsigned seats[2])
{
    for (unsigned i = 0; i < 2; i++)
        seats[i] = c->side[i].seat;
    return c->state == ASKING;
}

bool replica_check_word(struct replica_check *c, unsigned seat, uint64_t conn, struct msg *out)
{
    for (unsigned i = 0; c->state == ASKING && i < 2; i++) {
        struct side *x = &c->side[i];
        if (x->seat != seat || x->answered || x->told_conn == conn)
            continue;
        x->told_conn = conn;
        *out = (struct msg){.type = MSG_CKPT_DIFFER};
        out->u.ckpt_differ = (struct msg_ckpt_differ){.number = c->number,
                                                      .coord = c->coord,
                                                      .step = c->about.step,
                                                      .lineage = c->about.lineage,
                                                      .key = c->about.key,
                                                      .after = c->after};
        return true;
    }
    return false;
}

bool replica_check_next(struct replica_check *c, struct replica_check_difference *to)
{
    if (c->state != FOUND)
        return false;
    *to = (struct replica_check_difference){.part = c->part,
                                            .shard = c->shard,
                                            .step = c->about.step,
                                            .tensors = c->unnamed ? 0 : c->found.n,
                                            .names = c->unnamed ? "" : c->names};
    for (unsigned i = 0; i < 2; i++) {
        to->seat[i] = c->side[i].seat;
        to->rank[i] = c->side[i].rank;
    }
    c->state = IDLE;
    return true;
}

bool replica_check_left_out(struct replica_check *c, int64_t *step, unsigned *compared)
{
    if (!c->short_of_room || c->said)
        return false;
    c->said = true;
    *step = c->left_out;
    *compared = c->keys;
    return true;
}

void replica_check_check(const struct replica_check *c)
{
    unsigned differences = 0;
    for (uint32_t i = 0; i < c->keys; i++)
        differences += c->key[i].differs;
    assert(differences == c->differences);
    assert((c->state == ASKING) == (c->until != EL_NEVER));
    assert(c->state == ASKING || (!c->side[0].lines && !c->side[1].lines));
}
