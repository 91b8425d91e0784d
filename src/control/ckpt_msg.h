/* What is said about saving steps (ckpt_commit.h): its bounds, and the fields of its messages, which are rows of msg.h.
 */
#ifndef CONTROL_CKPT_MSG_H
#define CONTROL_CKPT_MSG_H
#include "control/limits.h"

#define CKPT_COMMIT_NAME_MAX   255    /* bytes of the name of a part, a shard, a layout */
#define CKPT_COMMIT_PATH_MAX   511    /* … of a file below the directory of a step */
#define CKPT_COMMIT_PARTS_MAX  4096   /* different parts on a node */
#define CKPT_COMMIT_FILES_MAX  262144 /* … of a step */
#define CKPT_COMMIT_STEPS_TEXT 49152
#define CKPT_COMMIT_SUMS_TEXT  524288 /* of 256 GiB in one file */
#define CKPT_COMMIT_STEPS_MAX  8u     /* different steps that a node tells of, the newest ones */
#define CKPT_COMMIT_WISHES_MAX                                                                                         \
    8u /* … that it wants on disk, the oldest ones: it tells of the next when one is over                            \
        */
#define CKPT_COMMIT_WISHES_TEXT 304 /* of these */

enum emergency_what { EMERGENCY_CKPT_FREEZE, EMERGENCY_CKPT_COPY, EMERGENCY_CKPT_OVER, EMERGENCY_CKPT_WHATS };

enum ckpt_commit_store { CKPT_COMMIT_OFF, CKPT_COMMIT_SHARED, CKPT_COMMIT_LOCAL };

/* How far a node is with the order that it speaks of. */
enum ckpt_commit_at {
    CKPT_COMMIT_AT_REST,
    CKPT_COMMIT_AT_WRITING,
    CKPT_COMMIT_AT_WRITTEN,
    CKPT_COMMIT_AT_PUBLISHING,
    CKPT_COMMIT_AT_PUBLISHED,
    CKPT_COMMIT_AT_FAILED,
    CKPT_COMMIT_ATS,
};

/* The order that a node carries out: who gave it, and which of its orders that is. */
#define MSG_SAVING_ORDER(F, T)                                                                                         \
    F(T, HEX, giver, 0, 1)                                                                                             \
    F(T, NUM, order, INT64_MAX, 1)
#define MSG_ckpt_part_FIELDS(F, T)                                                                                     \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, list, INT64_MAX, 1)                  /* number of the node's list; a higher one takes its place */       \
    F(T, NUM, index, CKPT_COMMIT_PARTS_MAX - 1, 1) /* in the list, in ascending order */                               \
    F(T, STR, part, CKPT_COMMIT_NAME_MAX, 1)                                                                           \
    F(T, STR, shard, CKPT_COMMIT_NAME_MAX, 0)                                                                          \
    F(T, BOOL, own, 0, 0) /* of a rank alone: written if it is held, and not missed if it is not */
#define MSG_ckpt_state_FIELDS(F, T)                                                                                    \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, list, INT64_MAX, 1)                                                                                      \
    F(T, INT, parts, CKPT_COMMIT_PARTS_MAX, 1) /* in the list; -1: not all workers have declared theirs */             \
    F(T, STR, layout, CKPT_COMMIT_NAME_MAX, 0)                                                                         \
    F(T, STR, steps, CKPT_COMMIT_STEPS_TEXT, 0) /* "12@9f3a:0-3,5 11@9f3a:0-7": which parts are held of which step,    \
                                              newest first, and its lineage (ckpt/lineage.h) */                        \
    F(T, INT, least, MSG_STEP_MAX, 1) /* each worker has committed a step, the least of these newest ones; -1 */       \
    F(T, STR, wishes, CKPT_COMMIT_WISHES_TEXT, 0) /* "12@9f3a 15@9f3a": what a script wants on disk, in order */       \
    F(T, INT, done, MSG_STEP_MAX, 1)              /* newest step of which the node knows that it is on disk, or -1 */  \
    F(T, BOOL, quiet, 0, 0)               /* no worker of the round is left, and all that they committed is counted */ \
    MSG_SAVING_ORDER(F, T)                /* 0, 0: none */                                                             \
    F(T, NUM, at, CKPT_COMMIT_ATS - 1, 0) /* enum ckpt_commit_at: how far it is with that */                           \
    F(T, NUM, moved, INT64_MAX, 0)        /* bytes written for it so far */                                            \
    F(T, NUM, got, CKPT_COMMIT_FILES_MAX, 0) /* FILEs of it that have come */                                          \
    F(T, BOOL, existed, 0, 0)                /* published: somebody else's of that step is there, and valid */         \
    F(T, STR, text, MSG_TEXT_MAX, 0)                                                                                   \
    F(T, NUM, ask, INT64_MAX, 0) /* an operator wants the newest step on disk: which of such wishes; 0: nobody does */
#define MSG_ckpt_file_FIELDS(F, T)                                                                                     \
    MSG_SAVING_ORDER(F, T)                                                                                             \
    F(T, NUM, index, CKPT_COMMIT_FILES_MAX - 1,                                                                        \
      1)                                     /* from an agent: in its list of parts; to one: of the order's files */   \
    F(T, STR, part, CKPT_COMMIT_NAME_MAX, 0) /* to an agent; and so the next */                                        \
    F(T, STR, shard, CKPT_COMMIT_NAME_MAX, 0)                                                                          \
    F(T, STR, name, CKPT_COMMIT_PATH_MAX, 1)                                                                           \
    F(T, NUM, size, INT64_MAX, 1)                                                                                      \
    F(T, NUM, samples, INT64_MAX, 0)                                                                                   \
    F(T, STR, sums, CKPT_COMMIT_SUMS_TEXT, 0) /* CRC32C of each 4 MiB, 8 hexadecimal digits each */                    \
    F(T, BOOL, more, 0, 0)                    /* others follow at once */

/* Emergency checkpoint (emergency_ckpt.h): "12:c,h0-3,c5 11:h,h0-7": each step, whether the node's workers could all
 * read it, and, with a letter of the same meaning, the parts of its list. */
#define MSG_emergency_state_FIELDS(F, T)                                                                               \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, serial, INT64_MAX, 1) /* counts what the node has said in this round */                                  \
    F(T, NUM, list, INT64_MAX, 0)   /* of its parts; 0: there is none */                                               \
    F(T, STR, steps, CKPT_COMMIT_STEPS_TEXT, 0)                                                                        \
    F(T, INT, limit, MSG_STEP_MAX, 1) /* its workers begin no later step */                                            \
    F(T, INT, step, MSG_STEP_MAX, 1)  /* that it was told to copy; -1: none */                                         \
    F(T, BOOL, copied, 0, 0)                                                                                           \
    F(T, NUM, copies, 4096, 0)                                                                                         \
    F(T, NUM, bytes, INT64_MAX, 0)                                                                                     \
    F(T, BOOL, busy, 0, 0)                                                                                             \
    F(T, BOOL, ends, 0, 0)                                                                                             \
    F(T, BOOL, elsewhere, 0, 0)                                                                                        \
    F(T, STR, text, MSG_TEXT_MAX, 0)

/* --- to an agent --- */
#define MSG_ckpt_capture_FIELDS(F, T)                                                                                  \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, what, EMERGENCY_CKPT_WHATS - 1, 0)                                                                       \
    F(T, NUM, heard, INT64_MAX, 0) /* serial of the EMERGENCY_STATE that it answers; 0: of none */                     \
    F(T, INT, limit, MSG_STEP_MAX, 1)                                                                                  \
    F(T, INT, step, MSG_STEP_MAX, 1)                                                                                   \
    F(T, INT, kept, MSG_STEP_MAX, 1)
#define MSG_ckpt_write_FIELDS(F, T)                                                                                    \
    MSG_SAVING_ORDER(F, T)                                                                                             \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, list, INT64_MAX, 1)                                                                                      \
    F(T, INT, step, MSG_STEP_MAX, 1)                                                                                   \
    F(T, HEX, lineage, 0, 0)                                                                                           \
    F(T, STR, nonce, 31, 1)                                                                                            \
    F(T, BOOL, emergency, 0, 0)                                                                                        \
    F(T, STR, parts, CKPT_COMMIT_STEPS_TEXT, 1) /* "0=1 3=2": the part of the node's list, and the number of its file  \
                                                 */
#define MSG_ckpt_publish_FIELDS(F, T)                                                                                  \
    MSG_SAVING_ORDER(F, T)                                                                                             \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1)                                                                                   \
    F(T, STR, nonce, 31, 1)                                                                                            \
    F(T, BOOL, emergency, 0, 0)                                                                                        \
    F(T, NUM, files, CKPT_COMMIT_FILES_MAX, 1) /* that came before it */                                               \
    F(T, NUM, world, MSG_WORLD_MAX, 1)                                                                                 \
    F(T, STR, layout, CKPT_COMMIT_NAME_MAX, 0)
#define MSG_ckpt_over_FIELDS(F, T)                                                                                     \
    MSG_SAVING_ORDER(F, T)           /* 0, 0: no order, but a step that the node wants */                              \
    F(T, INT, step, MSG_STEP_MAX, 1) /* -1: nothing is known of that order */                                          \
    F(T, HEX, lineage, 0, 0)                                                                                           \
    F(T, BOOL, good, 0, 0) /* it is on disk */                                                                         \
    F(T, STR, text, MSG_TEXT_MAX, 0)                                                                                   \
    F(T, NUM, ask, INT64_MAX, 0) /* the operator's wish that this answers; 0: none */                                  \
    F(T, NUM, bytes, INT64_MAX, 0)                                                                                     \
    F(T, NUM, took_ms, INT64_MAX, 0)                                                                                   \
    F(T, BOOL, existed, 0, 0)                                                                                          \
    F(T, BOOL, emergency, 0, 0)

#endif
