/* What a worker and its agent say to each other about snapshots, over an AF_UNIX socket of whole packets
 * (SOCK_SEQPACKET): one packet is one message,
 *
 *     u32 'ELC1' | u16 type | u16 flags (0) | u32 seq | u32 length of what follows | one JSON object    (little endian)
 *
 * at most WORKER_MSG_PACKET_MAX bytes.  Descriptors travel beside a packet where WORKER_MSG_LIST says so.  seq: the
 * sender's count; an answer carries the number of what it answers.  Lists are one message for each entry and one that
 * ends them: a packet is small, and nothing is allocated for what a worker claims.  `images` is a list of sizes
 * (snapshot/image_sizes.h). src/client/elrun/packets.py speaks the other end; a test compares its numbers with this
 * list. */
#ifndef SNAPSHOT_WORKER_MSG_H
#define SNAPSHOT_WORKER_MSG_H
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/err.h"
#include "util/fields.h"

#define WORKER_MSG_PROTO      2
#define WORKER_MSG_MAGIC      0x31434c45u /* "ELC1" */
#define WORKER_MSG_HEAD_SIZE  16u
#define WORKER_MSG_PACKET_MAX (60u << 10)
#define WORKER_MSG_NAME_MAX   128 /* bytes of a part's name, a shard id, a layout id */
#define WORKER_MSG_FILE_MAX   480 /* of a file name that the script gives */
#define WORKER_MSG_TEXT_MAX   480
#define WORKER_MSG_PARTS_MAX  256 /* of one worker */
#define WORKER_MSG_IMAGES_MAX 7680
#define WORKER_MSG_BYTES_MAX  ((uint64_t)1 << 46)
#define WORKER_MSG_RANK_MAX   268435455

/* --- a worker to its agent --- */
#define WORKER_MSG_hello_FIELDS(F, T)                                                                                  \
    F(T, NUM, proto, 1000000, 1)                                                                                       \
    F(T, NUM, rank, WORKER_MSG_RANK_MAX, 1)                                                                            \
    F(T, NUM, local_rank, 4095, 1)                                                                                     \
    F(T, NUM, round, INT64_MAX, 1)
/* Part by part, then DECLARE with their number.  What a part holds is not declared: each snapshot says it anew. */
#define WORKER_MSG_part_FIELDS(F, T)                                                                                   \
    F(T, NUM, index, WORKER_MSG_PARTS_MAX - 1, 1)                                                                      \
    F(T, STR, name, WORKER_MSG_NAME_MAX, 1)                                                                            \
    F(T, STR, shard_id, WORKER_MSG_NAME_MAX, 1)                                                                        \
    F(T, STR, file, WORKER_MSG_FILE_MAX, 0) /* its name in the directory, if the script chose it: bytes, no tensors */ \
    F(T, BOOL, own, 0, 0)                   /* this rank's piece of a replica: a snapshot is whole without it */
#define WORKER_MSG_declare_FIELDS(F, T)                                                                                \
    F(T, STR, layout_id, WORKER_MSG_NAME_MAX, 1)                                                                       \
    F(T, NUM, parts, WORKER_MSG_PARTS_MAX, 1)
#define WORKER_MSG_reserve_FIELDS(F, T) F(T, NUM, bytes, WORKER_MSG_BYTES_MAX, 1)
#define WORKER_MSG_snap_begin_FIELDS(F, T)                                                                             \
    F(T, INT, step, INT64_MAX, 1)                                                                                      \
    F(T, STR, images, WORKER_MSG_IMAGES_MAX, 1)                                                                        \
    F(T, BOOL, persist, 0, 0)
#define WORKER_MSG_snap_commit_FIELDS(F, T)                                                                            \
    F(T, NUM, slot, 1, 1)                                                                                              \
    F(T, INT, step, INT64_MAX, 1)                                                                                      \
    F(T, BOOL, persist, 0, 0)                                                                                          \
    F(T, NUM, consumed_samples, INT64_MAX, 0)
#define WORKER_MSG_snap_abort_FIELDS(F, T) F(T, NUM, slot, 1, 1) F(T, STR, why, WORKER_MSG_TEXT_MAX, 0)
#define WORKER_MSG_restore_query_FIELDS(F, T)                                                                          \
    F(T, STR, layout_id, WORKER_MSG_NAME_MAX, 1)                                                                       \
    F(T, BOOL, elsewhere, 0, 0) /* what another rank has will do: the script gives it to this one afterwards */
#define WORKER_MSG_restore_done_FIELDS(F, T)                                                                           \
    F(T, INT, step, INT64_MAX, 1)                                                                                      \
    F(T, BOOL, ok, 0, 0)                                                                                               \
    F(T, BOOL, misfit, 0, 0) /* its bytes are fine, but what the script declares does not take them */                 \
    F(T, STR, why, WORKER_MSG_TEXT_MAX, 0)
#define WORKER_MSG_note_FIELDS(F, T)        F(T, BOOL, error, 0, 0) F(T, STR, text, WORKER_MSG_TEXT_MAX, 1)
#define WORKER_MSG_at_boundary_FIELDS(F, T) F(T, INT, step, INT64_MAX, 1)
/* On the second connection, of the thread that answers while the script stands in a collective. */
#define WORKER_MSG_captured_FIELDS(F, T)                                                                               \
    F(T, NUM, slot, 1, 1)                                                                                              \
    F(T, INT, step, INT64_MAX, 1)                                                                                      \
    F(T, BOOL, ok, 0, 0)                                                                                               \
    F(T, STR, images, WORKER_MSG_IMAGES_MAX, 0)                                                                        \
    F(T, NUM, consumed_samples, INT64_MAX, 0)                                                                          \
    F(T, STR, why, WORKER_MSG_TEXT_MAX, 0)
#define WORKER_MSG_failing_FIELDS(F, T) F(T, INT, step, INT64_MAX, 1) /* its last finished one */

/* --- an agent to its worker --- */
#define WORKER_MSG_welcome_FIELDS(F, T)                                                                                \
    F(T, NUM, proto, 1000000, 1)                                                                                       \
    F(T, BOOL, snapshots, 0, 0)    /* false: neither --ckpt-dir nor --ckpt-mem was given */                            \
    F(T, BOOL, files, 0, 0)        /* --ckpt-layout=megatron: declare_file() is meant */                               \
    F(T, BOOL, waits, 0, 0)        /* --ckpt-busy=wait: snapshot() waits for a slot instead of being skipped */        \
    F(T, BOOL, disk, 0, 0)         /* --ckpt-dir was given: what a script wants on disk will be there */               \
    F(T, BOOL, live, 0, 0)         /* emergency checkpoint: what it holds may be captured, over a second connection */ \
    F(T, NUM, check, INT64_MAX, 0) /* every so many snapshots one is read back and compared (--ckpt-check); 0: never   \
                                    */
#define WORKER_MSG_grant_FIELDS(F, T) F(T, NUM, slots, 2, 1)
/* slot_bytes: of the slot's file, which may have grown since it was mapped. */
#define WORKER_MSG_snap_slot_FIELDS(F, T)                                                                              \
    F(T, NUM, slot, 1, 0)                                                                                              \
    F(T, NUM, slot_bytes, WORKER_MSG_BYTES_MAX, 0)                                                                     \
    F(T, BOOL, busy, 0, 0)                                                                                             \
    F(T, BOOL, give_up, 0, 0)       /* busy: do not ask again, this snapshot is left out */                            \
    F(T, NUM, retry_ms, 3600000, 0) /* else so much later */                                                           \
    F(T, STR, text, WORKER_MSG_TEXT_MAX, 0)
#define WORKER_MSG_snap_ack_FIELDS(F, T) F(T, NUM, slot, 1, 1) F(T, INT, step, INT64_MAX, 1)
#define WORKER_MSG_event_FIELDS(F, T)                                                                                  \
    F(T, STR, kind, 32, 1)                                                                                             \
    F(T, INT, step, INT64_MAX, 1)                                                                                      \
    F(T, STR, why, WORKER_MSG_TEXT_MAX, 0)                                                                             \
    F(T, BOOL, before, 0, 0) /* it was so before this worker came: told once more */
#define WORKER_MSG_restore_offer_FIELDS(F, T)                                                                          \
    F(T, INT, step, INT64_MAX, 1) /* -1: nothing that everybody could have */                                          \
    F(T, BOOL, fresh, 0, 0)       /* … and that is as it should be: begin at the beginning */                        \
    F(T, BOOL, elsewhere, 0, 0)   /* another rank has it; no descriptor */                                             \
    F(T, STR, from, 64, 0)                                                                                             \
    F(T, NUM, slot_bytes, WORKER_MSG_BYTES_MAX, 0) /* up to the end of the last image */                               \
    F(T, STR, images, WORKER_MSG_IMAGES_MAX, 0)                                                                        \
    F(T, NUM, consumed_samples, INT64_MAX, 0)                                                                          \
    F(T, STR, text, WORKER_MSG_TEXT_MAX, 0)
/* On the second connection: copy the state behind that step into this slot, which has room for slot_bytes; answered by
 * CAPTURED. */
#define WORKER_MSG_emergency_FIELDS(F, T)                                                                              \
    F(T, NUM, slot, 1, 1) F(T, INT, step, INT64_MAX, 1) F(T, NUM, slot_bytes, WORKER_MSG_BYTES_MAX, 1)
#define WORKER_MSG_notice_FIELDS(F, T)                                                                                 \
    F(T, STR, why, WORKER_MSG_TEXT_MAX, 1) F(T, INT, boundary_step, INT64_MAX, 1) F(T, NUM, deadline_ms, 86400000, 0)
#define WORKER_MSG_refused_FIELDS(F, T)                                                                                \
    F(T, STR, code, 32, 1) /* "NOMEM", "OFF", "STATE", "RANK", "ROUND", "PROTO", "PARTS", "DECLARED", "IMAGE" */       \
    F(T, NUM, need_bytes, WORKER_MSG_BYTES_MAX, 0)                                                                     \
    F(T, NUM, have_bytes, WORKER_MSG_BYTES_MAX, 0) F(T, STR, text, WORKER_MSG_TEXT_MAX, 1)
#define WORKER_MSG_done_FIELDS(F, T) F(T, STR, text, WORKER_MSG_TEXT_MAX, 0)

/* X(NAME, name, number, descriptors, sentence) */
#define WORKER_MSG_LIST(X)                                                                                             \
    X(HELLO, hello, 1, 0, "first word of a worker")                                                                    \
    X(DECLARE, declare, 2, 0, "all parts have been named")                                                             \
    X(GRANT, grant, 3, 2, "answer to DECLARE: the slots, which may be empty files")                                    \
    X(SNAP_BEGIN, snap_begin, 4, 0, "asks for a slot with room for these images")                                      \
    X(SNAP_SLOT, snap_slot, 5, 0, "answer to SNAP_BEGIN: that slot is large enough")                                   \
    X(SNAP_COMMIT, snap_commit, 6, 0, "the slot is written; from now on it is the agent's")                            \
    X(SNAP_ACK, snap_ack, 7, 0, "answer to SNAP_COMMIT: checksums are made")                                           \
    X(SNAP_ABORT, snap_abort, 8, 0, "the slot was not written")                                                        \
    X(EVENT, event, 9, 0, "what became of a snapshot")                                                                 \
    X(RESTORE_QUERY, restore_query, 10, 0, "asks for the step to go on from")                                          \
    X(RESTORE_OFFER, restore_offer, 11, 1, "answer to RESTORE_QUERY: a slot image that can only be read")              \
    X(RESTORE_DONE, restore_done, 12, 0, "the offer was read, or could not be")                                        \
    X(EMERGENCY, emergency, 14, 0, "copy the live state of a step into a slot")                                        \
    X(REFUSED, refused, 15, 0, "answer to what cannot be done")                                                        \
    X(DONE, done, 16, 0, "answer to what was done")                                                                    \
    X(NOTICE, notice, 24, 0, "a planned change: where to stop")                                                        \
    X(AT_BOUNDARY, at_boundary, 25, 0, "the announced step is done")                                                   \
    X(WELCOME, welcome, 26, 1, "answer to HELLO, with the status page")                                                \
    X(PART, part, 27, 0, "one part of the declaration")                                                                \
    X(CAPTURED, captured, 29, 0, "answer to EMERGENCY")                                                                \
    X(FAILING, failing, 30, 0, "this worker will end badly, and waits until its state is captured")                    \
    X(RESERVE, reserve, 31, 0, "a snapshot of about so many bytes will come: the slots are made so large meanwhile")   \
    X(NOTE, note, 32, 0, "a line for elrun's log")

enum worker_msg_type {
#define X(NAME, name, number, fds, text) WORKER_MSG_##NAME = (number),
    WORKER_MSG_LIST(X)
#undef X
};

#define X(NAME, name, number, fds, text)                                                                               \
    struct wmsg_##name {                                                                                               \
        WORKER_MSG_##name##_FIELDS(EL_FIELD_MEMBER, wmsg_##name)                                                       \
    };
WORKER_MSG_LIST(X)
#undef X

struct worker_msg {
    enum worker_msg_type type;
    uint32_t seq;
    union {
#define X(NAME, name, number, fds, text) struct wmsg_##name name;
        WORKER_MSG_LIST(X)
#undef X
    } u;
    void *tree; /* what the strings of a decoded message belong to */
};

/* Appends the message as one packet.  0, or -1 if the buffer refused or the packet would be too large. */
int worker_msg_encode(const struct worker_msg *m, struct el_buf *out);

/* Reads one packet of n bytes.  0, then worker_msg_release(); or -1 with *e: the connection is to be closed. */
int worker_msg_decode(const void *packet, size_t n, struct worker_msg *out, struct el_err *e);
void worker_msg_release(struct worker_msg *m);

/* "HELLO", or NULL. */
const char *worker_msg_name(unsigned type);

#endif
