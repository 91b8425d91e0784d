#include "snapshot/replicas.h"

#include <stdio.h>
#include <string.h>

#include "util/mem.h"

enum { KEPT = 2 }; /* steps of one part */

struct replicas_held {
    struct replica x;
    char *names, *table;
    size_t bytes;
};

struct replicas {
    unsigned n;
    size_t bytes;
    struct replicas_held v[REPLICAS_MAX]; /* the oldest first */
};

struct replicas *replicas_new(void)
{
    return el_alloc(NULL, sizeof(struct replicas));
}

static void replicas_drop(struct replicas *r, unsigned i)
{
    el_free(NULL, r->v[i].names);
    el_free(NULL, r->v[i].table);
    r->bytes -= r->v[i].bytes;
    memmove(&r->v[i], &r->v[i + 1], (--r->n - i) * sizeof *r->v);
}

void replicas_forget(struct replicas *r)
{
    while (r->n)
        replicas_drop(r, r->n - 1);
}

void replicas_free(struct replicas *r)
{
    if (r)
        replicas_forget(r);
    el_free(NULL, r);
}

/* The same on all nodes. */
uint64_t replicas_key(const char *part, const char *shard_id)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *part; part++)
        h = (h ^ (unsigned char)*part) * UINT64_C(0x100000001b3);
    h = (h ^ 0xff) * UINT64_C(0x100000001b3);
    for (; *shard_id; shard_id++)
        h = (h ^ (unsigned char)*shard_id) * UINT64_C(0x100000001b3);
    return h;
}

/* Of the same part the oldest one, if there are so many; then the oldest of all. */
static void replicas_make_room(struct replicas *r, uint64_t key, size_t bytes)
{
    unsigned same = 0, first = 0;
    for (unsigned i = r->n; i-- > 0;)
        if (r->v[i].x.key == key) {
            same++;
            first = i;
        }
    if (same >= KEPT)
        replicas_drop(r, first);
    while (r->n && (r->n == REPLICAS_MAX || r->bytes + bytes > REPLICAS_BYTES))
        replicas_drop(r, 0);
}

void replicas_add(struct replicas *r, const struct replica *x, char *table)
{
    uint64_t key = replicas_key(x->part, x->shard_id);
    size_t part = strlen(x->part) + 1, shard = strlen(x->shard_id) + 1, bytes = table ? strlen(table) : 0;
    char *names = replicas_find(r, key, x->step, x->lineage) ? NULL : el_alloc(NULL, part + shard);
    if (!names) {
        el_free(NULL, table);
        return;
    }
    replicas_make_room(r, key, bytes);
    memcpy(names, x->part, part);
    memcpy(names + part, x->shard_id, shard);
    struct replicas_held *h = &r->v[r->n++];
    *h = (struct replicas_held){.x = *x, .names = names, .table = table, .bytes = bytes};
    h->x.key = key;
    h->x.part = names;
    h->x.shard_id = names + part;
    h->x.table = table;
    r->bytes += bytes;
}

bool replicas_text(const struct replicas *r, int64_t *step, uint64_t *lineage, char to[REPLICA_CHECK_DIGESTS_TEXT + 1])
{
    char one[40];
    size_t n = 0;
    *to = 0;
    if (!r->n)
        return false;
    *step = r->v[r->n - 1].x.step;
    *lineage = r->v[r->n - 1].x.lineage;
    for (unsigned i = 0; i < r->n; i++) {
        const struct replica *x = &r->v[i].x;
        if (x->step != *step || x->lineage != *lineage)
            continue;
        size_t size = (size_t)snprintf(one, sizeof one, "%s%llx=%llx", n ? " " : "", (unsigned long long)x->key,
                                       (unsigned long long)x->digest);
        if (n + size > REPLICA_CHECK_DIGESTS_TEXT)
            break;
        memcpy(to + n, one, size + 1);
        n += size;
    }
    return true;
}

const struct replica *replicas_find(const struct replicas *r, uint64_t key, int64_t step, uint64_t lineage)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct replica *x = &r->v[i].x;
        if (x->key == key && x->step == step && x->lineage == lineage)
            return x;
    }
    return NULL;
}
