/* What is said about parts that nodes share (replica_check.h): the bounds, and the fields of its messages, which are
 * rows of msg.h. */
#ifndef CONTROL_REPLICA_MSG_H
#define CONTROL_REPLICA_MSG_H
#include "control/limits.h"
#include "util/parse.h"

#define REPLICA_CHECK_NAME_MAX     255
#define REPLICA_CHECK_DIGESTS_TEXT 16384u /* more than 450 digests; of parts beyond that none is told */
#define REPLICA_CHECK_LINES_TEXT   131072 /* more than 1,000 tensors */

/* --- an agent to its coordinator --- */
#define MSG_ckpt_digests_FIELDS(F, T)                                                                                  \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1)                                                                                   \
    F(T, HEX, lineage, 0, 1)                                                                                           \
    F(T, STR, digests, REPLICA_CHECK_DIGESTS_TEXT, 0) /* "9f3a=5c1 77=3": a number for part and shard, and the digest  \
                                            of what must be alike in it (snapshot/replica_digest.h) */
#define MSG_ckpt_tensors_FIELDS(F, T)                                                                                  \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1) /* and what follows, up to after: as in the CKPT_DIFFER that it answers */        \
    F(T, HEX, lineage, 0, 1)                                                                                           \
    F(T, HEX, key, 0, 1)                                                                                               \
    F(T, STR, after, EL_SHOW_MAX - 1, 0)                                                                               \
    F(T, BOOL, held, 0, 0)  /* the node knows of that part at that step */                                             \
    F(T, BOOL, named, 0, 0) /* and its tensors */                                                                      \
    F(T, STR, part, REPLICA_CHECK_NAME_MAX, 0)                                                                         \
    F(T, STR, shard, REPLICA_CHECK_NAME_MAX, 0)                                                                        \
    F(T, NUM, rank, INT32_MAX, 0)                                                                                      \
    F(T, STR, lines, REPLICA_CHECK_LINES_TEXT, 0) /* (snapshot/replica_table.h) */                                     \
    F(T, BOOL, more, 0, 0)                        /* others follow */

/* --- to an agent --- */
#define MSG_ckpt_differ_FIELDS(F, T)                                                                                   \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1)                                                                                   \
    F(T, HEX, lineage, 0, 1)                                                                                           \
    F(T, HEX, key, 0, 1)                                                                                               \
    F(T, STR, after, EL_SHOW_MAX - 1, 0) /* tensors with names behind this one */

#endif
