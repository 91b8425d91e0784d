/* What this node has to say of parts that ranks of other nodes may share: digests of what must be alike in them, of the
 * steps that have some (slot_table.h), and the tables of tensors behind these (replica_table.h), for the case that
 * another node has a different one.  They outlive the slots, of each part the last two steps, within limits: what does
 * not fit is forgotten, the oldest first, and then it is not compared.  Pure. */
#ifndef SNAPSHOT_REPLICAS_H
#define SNAPSHOT_REPLICAS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/replica_msg.h"

#define REPLICAS_MAX   1024u
#define REPLICAS_BYTES ((size_t)64 << 20)

struct replica {
    uint64_t key; /* of its part and shard */
    int64_t step;
    uint64_t lineage, digest;
    unsigned rank;
    const char *part, *shard_id;
    const char *table; /* NULL: there is none */
};

struct replicas;

struct replicas *replicas_new(void); /* NULL: no memory */
void replicas_free(struct replicas *r);

/* A round begins: what was said in another one is not said any more. */
void replicas_forget(struct replicas *r);

uint64_t replicas_key(const char *part, const char *shard_id);

/* Of one step and part the first is kept; key is found here.  Takes the table, which el_free(NULL, ...) frees. */
void replicas_add(struct replicas *r, const struct replica *x, char *table);

/* Of the step that was added last: "9f3a=5c1 77=3", and which step that is; false: there is none. */
bool replicas_text(const struct replicas *r, int64_t *step, uint64_t *lineage, char to[REPLICA_CHECK_DIGESTS_TEXT + 1]);

/* NULL: it is not held. */
const struct replica *replicas_find(const struct replicas *r, uint64_t key, int64_t step, uint64_t lineage);

#endif
