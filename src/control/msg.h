/* The control protocol (man/elrun-protocol.7): `ELR1` once from each side, then frames:
 *
 *     u32 length of what follows | u8 version | u8 flags | u16 type | one JSON object          (little endian)
 *
 * together at most MSG_FRAME_MAX bytes.  Heartbeats carry two binary u64 instead of JSON.  Every message stands once in
 * MSG_LIST; enum, structs, codec, names and the check of the manual are made from it. */
#ifndef CONTROL_MSG_H
#define CONTROL_MSG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/common_step_msg.h"
#include "control/replica_msg.h"
#include "control/limits.h"
#include "control/notice.h"
#include "control/restore_msg.h"
#include "control/ckpt_msg.h"
#include "util/buf.h"
#include "util/err.h"
#include "util/limits.h"
#include "util/fields.h"

#define MSG_VERSION       1
#define MSG_PREAMBLE      "ELR1"
#define MSG_PREAMBLE_SIZE 4u
#define MSG_HEAD_SIZE     8u
#define MSG_FRAME_MAX     (1u << 20) /* head and object */
#define MSG_VALUES_MAX    4096u      /* strings, numbers, literals of one object: bounds what a parser allocates */
#define MSG_DEPTH_MAX     8u

#define MSG_NODES_MAX      65536     /* node ranks, members of a round */
#define MSG_WORLD_MAX      268435456 /* workers: MSG_NODES_MAX x EL_SLOTS_MAX */
#define MSG_RUN_ID_MAX     128       /* bytes of strings, without the 0 */
#define MSG_NAME_MAX       64        /* host name, role */
#define MSG_PROCESS_MAX    127       /* a process of this host: member/coordinator_mark.h */
#define MSG_ADDR_MAX       63        /* address in text, or a host name that was asked for */
#define MSG_TEXT_MAX       480       /* one line for a person */
#define MSG_STREAM_MAX     16384     /* a worker's stream, relayed */
#define MSG_RANKS_MAX      16384     /* "0-36,38-1023" */
#define MSG_DOCUMENT_MAX   49152     /* a failure's record: RECORD_BYTES_MAX */
#define MSG_MISSING_MAX    2048      /* lines of a store: who had not come */
#define MSG_EXCEPTION_MAX  128       /* type of an exception */
#define MSG_RAILS_MAX      32        /* GPUs of a node that are paired one by one */
#define MSG_IDS_MAX        8192      /* of the rails of a pair: "0=… 1=…" */
#define MSG_LINES_MAX      49152     /* of probe/wire.h, with their newlines */
#define MSG_LOGS_WINDOW    2         /* pieces of output that nobody has taken yet, for one reader */
#define MSG_LOGS_LINES_MAX 1000000
#define MSG_MS_MAX         8640000000 /* 100 days */
#define MSG_ASKS_MAX       1000000000 /* of a notice */
#define MSG_CLAUSE_MAX     128        /* RESTART_WHAT_MAX */
#define MSG_PLACE_MAX      300        /* RESTART_PLACE_MAX */
#define MSG_CLOCK_UNKNOWN  ((uint64_t)86400000000)

/* Fields: util/fields.h. */

/* What holds for the whole job: the first agent that says HELLO brings it, the others must agree in what is marked so
 * (rdzv.h).  Times in milliseconds. */
#define MSG_SETTINGS(F, T)                                                                                             \
    F(T, NUM, min, MSG_NODES_MAX, 1)                                                                                   \
    F(T, NUM, max, MSG_NODES_MAX, 1)                                                                                   \
    F(T, NUM, unit, MSG_NODES_MAX, 1)                                                                                  \
    F(T, NUM, max_restarts, 1000000000, 1)                                                                             \
    F(T, NUM, restart_window_ms, MSG_MS_MAX, 0)                                                                        \
    F(T, NUM, max_fruitless, 1000000000, 1)                                                                            \
    F(T, NUM, restart_policy, 2, 0) /* enum restart_policy */                                                          \
    F(T, NUM, quarantine_ms, MSG_MS_MAX, 0)                                                                            \
    F(T, NUM, expected, MSG_NODES_MAX, 0)                                                                              \
    F(T, NUM, settle_ms, MSG_MS_MAX, 1)                                                                                \
    F(T, NUM, last_call_ms, MSG_MS_MAX, 1)                                                                             \
    F(T, NUM, join_timeout_ms, MSG_MS_MAX, 1)                                                                          \
    F(T, NUM, keep_alive_ms, MSG_MS_MAX, 1)                                                                            \
    F(T, NUM, keep_alive_attempts, 1000000, 1)                                                                         \
    F(T, NUM, reconnect_grace_ms, MSG_MS_MAX, 1)                                                                       \
    F(T, NUM, replace_wait_ms, MSG_MS_MAX, 0)                                                                          \
    F(T, NUM, scale_up_delay_ms, MSG_MS_MAX, 1)                                                                        \
    F(T, NUM, stable_window_ms, MSG_MS_MAX, 0)                                                                         \
    F(T, NUM, boundary_wait_ms, MSG_MS_MAX, 0)                                                                         \
    F(T, NUM, grace_ms, MSG_MS_MAX, 1)                                                                                 \
    F(T, NUM, health_check, 3, 0) /* enum health_when; this and what follows: coord/health.h */                        \
    F(T, NUM, on_bad, 2, 0)                                                                                            \
    F(T, NUM, on_straggler, 1, 0)                                                                                      \
    F(T, NUM, on_undecided, 1, 0)                                                                                      \
    F(T, NUM, probe_rounds, 1000000, 0)                                                                                \
    F(T, NUM, probe_timeout_ms, MSG_MS_MAX, 0)                                                                         \
    F(T, NUM, probe_backend, 2, 0) /* enum health_backend */                                                           \
    F(T, NUM, probe_quick, 1, 0)                                                                                       \
    F(T, NUM, probe_strict, 1, 0)                                                                                      \
    F(T, NUM, probe_all, 1, 0)      /* every finding is kept for the report */                                         \
    F(T, NUM, probe_rails, 16, 0)   /* of a pair over TCP; 0: 1 */                                                     \
    F(T, NUM, straggler_k, 1000, 0) /* 0: as the plan has it; so for the next */                                       \
    F(T, NUM, straggler_min, 100, 0)                                                                                   \
    F(T, NUM, probe_only, 1, 0)                  /* no round follows: `elrun probe` */                                 \
    F(T, NUM, restore_timeout_ms, MSG_MS_MAX, 0) /* this and what follows: coord/restore.h */                          \
    F(T, NUM, max_rollback, INT64_MAX, 0)        /* and 1; 0: any number of steps */                                   \
    F(T, NUM, allow_fresh, 1, 0)                                                                                       \
    F(T, NUM, ckpt_store, 2, 0) /* enum ckpt_commit_store; this and what follows: coord/ckpt_commit.h */               \
    F(T, NUM, emergency_ms, MSG_MS_MAX, 0)

/* The round that a message speaks of. */
#define MSG_ROUND(F, T)                                                                                                \
    F(T, NUM, number, MSG_ROUND_MAX, 1)                                                                                \
    F(T, HEX, coord, 0, 1)

/* The stage of a health check that a message speaks of: the round that is to be formed, the check's own number, and
 * which of its stages, counted from 0. */
#define MSG_PROBE(F, T)                                                                                                \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, probe, INT64_MAX, 1)                                                                                     \
    F(T, NUM, stage, 1000000, 1)

/* How a worker ended, and when. */
#define MSG_FAILURE(F, T)                                                                                              \
    F(T, NUM, time_us, INT64_MAX, 1)  /* on the coordinator's clock, as far as the agent knows it, */                  \
    F(T, NUM, error_us, INT64_MAX, 1) /* so far off, either way, at most; MSG_CLOCK_UNKNOWN and more: not known */     \
    F(T, NUM, local_rank, 4095, 1)                                                                                     \
    F(T, INT, code, 255, 1)  /* exit code, or -1 */                                                                    \
    F(T, INT, signal, 64, 1) /* or -1 */                                                                               \
    F(T, BOOL, oom, 0, 0)

/* --- an agent to its coordinator --- */
#define MSG_hello_FIELDS(F, T)                                                                                         \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 1)                                                                               \
    F(T, HEX, instance, 0, 1)           /* drawn at the agent's start */                                               \
    F(T, NUM, connection, INT64_MAX, 1) /* its connections so far, this one included */                                \
    F(T, STR, host, MSG_NAME_MAX, 1)                                                                                   \
    F(T, STR, addr, MSG_ADDR_MAX, 0)           /* --local-addr */                                                      \
    F(T, INT, node_rank, MSG_NODES_MAX - 1, 1) /* -1: none */                                                          \
    F(T, NUM, slots, EL_SLOTS_MAX, 1)                                                                                  \
    F(T, STR, role, MSG_NAME_MAX, 1)                                                                                   \
    F(T, STR, domain, MSG_NAME_MAX - 1, 0) /* --probe-domain */                                                        \
    F(T, NUM, uid, UINT32_MAX, 0)                                                                                      \
    F(T, NUM, pid, INT32_MAX, 0) /* of the agent, for people: several may run on one host */                           \
    F(T, STR, command, MSG_TEXT_MAX, 0)                                                                                \
    F(T, STR, elrun, MSG_NAME_MAX, 0)   /* version of the program */                                                   \
    F(T, NUM, phase, MSG_PHASES - 1, 1) /* enum msg_phase, of the round below */                                       \
    MSG_ROUND(F, T)                     /* the last round it was in; 0 and 0: none */                                  \
    F(T, NUM, seen, MSG_ROUND_MAX, 0)   /* the highest round number that any coordinator has told it */                \
    F(T, INT, group_rank, MSG_NODES_MAX - 1, 0)                                                                        \
    F(T, NUM, group_size, MSG_NODES_MAX, 0)                                                                            \
    F(T, NUM, rank_base, MSG_WORLD_MAX, 0) /* from here on: of that round's WORLD */                                   \
    F(T, NUM, restarts, 1000000000, 0)                                                                                 \
    F(T, HEX, token, 0, 0)                                                                                             \
    F(T, NUM, world_size_first, MSG_WORLD_MAX, 0)                                                                      \
    F(T, NUM, world_size_previous, MSG_WORLD_MAX, 0)                                                                   \
    F(T, STR, master_addr, MSG_ADDR_MAX, 0)                                                                            \
    F(T, NUM, master_port, 65535, 0)                                                                                   \
    /* how it went on here: */                                                                                         \
    F(T, BOOL, latest, 0, 0) /* nothing was ordered behind it when the last connection was closed */                   \
    F(T, BOOL, failed, 0, 0) /* that round ended here because a worker failed */                                       \
    F(T, BOOL, fenced, 0, 0) /* that round ended here because this node was cut off */                                 \
    F(T, BOOL, stuck, 0, 0)                                                                                            \
    MSG_SETTINGS(F, T)
#define MSG_store_ready_FIELDS(F, T)                                                                                   \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, STR, addr, MSG_ADDR_MAX, 0) /* "": this host, by the address at which the coordinator is reached */           \
    F(T, NUM, port, 65535, 1)
#define MSG_no_store_FIELDS(F, T)     MSG_ROUND(F, T) F(T, STR, text, MSG_TEXT_MAX, 1)
#define MSG_lease_failed_FIELDS(F, T) MSG_ROUND(F, T) F(T, STR, text, MSG_TEXT_MAX, 1)
#define MSG_started_FIELDS(F, T)      MSG_ROUND(F, T)
#define MSG_subscribed_FIELDS(F, T)   MSG_ROUND(F, T)
#define MSG_at_boundary_FIELDS(F, T)  MSG_ROUND(F, T) F(T, NUM, ask, MSG_ASKS_MAX, 1) /* NOTICE's */
#define MSG_step_report_FIELDS(F, T)                                                                                   \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, ask, MSG_ASKS_MAX, 1)  /* NOTICE's */                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1) /* the highest that a worker here has begun, -1: none */                          \
    F(T, BOOL, deaf, 0, 0)           /* no worker here would stop at a boundary */                                     \
    F(T, BOOL, past, 0, 0)           /* a worker here is beyond the boundary: it must be set anew */
#define MSG_worker_failed_FIELDS(F, T)                                                                                 \
    MSG_ROUND(F, T)                                                                                                    \
    MSG_FAILURE(F, T)                                                                                                  \
    F(T, BOOL, late, 0, 0)           /* it only says that the time of a collective ran out, and nobody here left */    \
    F(T, STR, text, MSG_TEXT_MAX, 1) /* one line */
#define MSG_incident_FIELDS(F, T)                                                                                      \
    MSG_ROUND(F, T)                                                                                                    \
    MSG_FAILURE(F, T)                                                                                                  \
    F(T, STR, by, MSG_NAME_MAX, 1)    /* record_by_word() */                                                           \
    F(T, STR, class, MSG_NAME_MAX, 1) /* failure_class_text() */                                                       \
    F(T, BOOL, follower, 0, 0)                                                                                         \
    F(T, BOOL, private_link, 0, 0)                                                                                     \
    F(T, BOOL, silent, 0, 0) /* elrun stopped it, and only it of its node had said nothing: see STOP's late */         \
    F(T, STR, type, MSG_EXCEPTION_MAX, 0)                                                                              \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, STR, document, MSG_DOCUMENT_MAX, 0)                                                                           \
    F(T, STR, ranks, MSG_RANKS_MAX, 0) /* local ranks that failed in the same way, and are told of only here */
#define MSG_stopped_FIELDS(F, T)                                                                                       \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, BOOL, stuck, 0, 0)                                                                                            \
    F(T, BOOL, fenced, 0, 0)                                                                                           \
    F(T, STR, ranks, MSG_RANKS_MAX, 0)     /* local ranks that elrun stopped */                                        \
    F(T, STR, missing, MSG_MISSING_MAX, 0) /* the round's store is here: who had not come, lines */
/* failure/restart_policy.h */
#define MSG_digest_FIELDS(F, T)                                                                                        \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, kind, 5, 1)         /* enum restart_kind */                                                              \
    F(T, NUM, witnesses, 4096, 0) /* workers that ended so */                                                          \
    F(T, BOOL, passed, 0, 0)      /* a worker got further */                                                           \
    F(T, NUM, elapsed_ms, MSG_MS_MAX, 0)                                                                               \
    F(T, STR, what, MSG_CLAUSE_MAX, 0)                                                                                 \
    F(T, STR, place, MSG_PLACE_MAX, 0)                                                                                 \
    F(T, BOOL, hardware, 0, 0)                                                                                         \
    F(T, STR, evidence, MSG_PLACE_MAX, 0)                                                                              \
    F(T, BOOL, steps_known, 0, 0)                                                                                      \
    F(T, NUM, steps, INT64_MAX, 0) /* new ones, if known */
#define MSG_succeeded_FIELDS(F, T) MSG_ROUND(F, T)
#define MSG_leaving_FIELDS(F, T)   F(T, NUM, signal, 64, 0) F(T, STR, text, MSG_TEXT_MAX, 0)
#define MSG_end_ack_FIELDS(F, T)   F(T, NUM, status, 255, 1)
/* coord/health_check.h */
#define MSG_probe_id_FIELDS(F, T)                                                                                      \
    MSG_PROBE(F, T)                                                                                                    \
    F(T, NUM, rail, MSG_RAILS_MAX - 1, 1)                                                                              \
    F(T, STR, id, 1024, 1)
#define MSG_probe_result_FIELDS(F, T)                                                                                  \
    MSG_PROBE(F, T)                                                                                                    \
    F(T, NUM, page, 1000000, 1) /* of this node's results of the stage; 0: whatever came before does not count */      \
    F(T, INT, rail, 4095, 1)    /* of a pair; -1: of the node */                                                       \
    F(T, NUM, outcome, 5, 1)    /* enum health_check_outcome */                                                        \
    F(T, NUM, gpus, 4096, 0)    /* that this node can use in pairs */                                                  \
    F(T, STR, text, MSG_TEXT_MAX, 0)                                                                                   \
    F(T, STR, lines, MSG_LINES_MAX, 0) /* of probe/wire.h */                                                           \
    F(T, BOOL, more, 0, 1)             /* false: the node is done with this stage */

/* coord/restore.h */
#define MSG_ckpt_inventory_FIELDS(F, T)                                                                                \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, attempt, INT64_MAX, 1)                                                                                   \
    F(T, STR, steps, RESTORE_LIST_MAX, 0) /* that all workers of the node could read, newest first: "12@9f3a 8@77",    \
                                             each with its lineage (ckpt/lineage.h) */                                 \
    F(T, NUM, since, MSG_ROUND_MAX, 0)    /* round of the last agreement it took part in */                            \
    F(T, BOOL, whole, 0, 0)               /* all its workers have committed the same step since */                     \
    F(T, INT, newest, MSG_STEP_MAX, 1)    /* step that it knows of, or -1 */                                           \
    F(T, BOOL, on_disk, 0, 0)             /* its --ckpt-dir has checkpoints */                                         \
    F(T, BOOL, elsewhere, 0, 0)           /* its workers need no step of their own: the script shares it */            \
    F(T, NUM, at, RESTORE_ATS - 1, 0)     /* enum restore_at: how far it is with … */                                \
    F(T, INT, step, MSG_STEP_MAX, 1)      /* … what it was told in this attempt, … */                              \
    F(T, HEX, lineage, 0, 0)              /* … of this lineage */                                                    \
    F(T, BOOL, fresh, 0, 0)                                                                                            \
    F(T, BOOL, misfit, 0, 0)            /* its workers could read it, and do not take it: nobody goes on */            \
    F(T, STR, text, RESTORE_WHY_MAX, 0) /* what it has and cannot read, or take */

/* --- a coordinator to an agent: orders, then the rest --- */
#define MSG_wait_FIELDS(F, T)                                                                                          \
    MSG_ROUND(F, T)                  /* the last round of the job */                                                   \
    F(T, STR, text, MSG_TEXT_MAX, 1) /* what is waited for */
#define MSG_open_store_FIELDS(F, T) MSG_ROUND(F, T) F(T, HEX, token, 0, 1)
#define MSG_world_FIELDS(F, T)                                                                                         \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, HEX, token, 0, 1)                                                                                             \
    F(T, NUM, group_rank, MSG_NODES_MAX - 1, 1)                                                                        \
    F(T, NUM, group_size, MSG_NODES_MAX, 1)                                                                            \
    F(T, NUM, rank_base, MSG_WORLD_MAX, 1)                                                                             \
    F(T, NUM, world_size, MSG_WORLD_MAX, 1)                                                                            \
    F(T, NUM, role_rank_base, MSG_WORLD_MAX, 1)                                                                        \
    F(T, NUM, role_world_size, MSG_WORLD_MAX, 1)                                                                       \
    F(T, NUM, world_size_first, MSG_WORLD_MAX, 1)                                                                      \
    F(T, NUM, world_size_previous, MSG_WORLD_MAX, 1)                                                                   \
    F(T, STR, master_addr, MSG_ADDR_MAX, 1)                                                                            \
    F(T, NUM, master_port, 65535, 1)                                                                                   \
    F(T, NUM, restarts, 1000000000, 1)                                                                                 \
    F(T, NUM, max_restarts, 1000000000, 1)                                                                             \
    F(T, NUM, waited_ms, MSG_MS_MAX, 0) /* before it, since what made the last one fail had to pass */                 \
    F(T, STR, rank0_host, MSG_NAME_MAX, 0)                                                                             \
    F(T, STR, why, MSG_TEXT_MAX, 0)        /* why there is a new round */                                              \
    F(T, STR, successors, MSG_TEXT_MAX, 0) /* addresses of the first group ranks, comma between */                     \
    /* Who hosts the coordinator: its group rank + 1, and coordinator_mark_self(), by which others see whether it is   \
     * dead */                                                                                                         \
    F(T, NUM, coordinator_rank, MSG_NODES_MAX, 0)                                                                      \
    F(T, STR, coordinator_process, MSG_PROCESS_MAX, 0)
#define MSG_stop_FIELDS(F, T)                                                                                          \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, NUM, grace_ms, MSG_MS_MAX, 1)                                                                                 \
    F(T, BOOL, late, 0, 0) /* WORKER_FAILED's: who said nothing did not take part in that collective */
#define MSG_notice_FIELDS(F, T)                                                                                        \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, NUM, wait_ms, MSG_MS_MAX, 1)                                                                                  \
    F(T, NUM, why, NOTICE_WHYS - 1, 0)   /* enum notice_why */                                                         \
    F(T, NUM, ask, MSG_ASKS_MAX, 0)      /* counts how often the boundary was set anew; STEP_REPORT answers */         \
    F(T, INT, boundary, MSG_STEP_MAX, 2) /* the last step of the round; -1: not known before all have answered */
#define MSG_end_FIELDS(F, T)                                                                                           \
    F(T, NUM, status, 255, 1)                                                                                          \
    F(T, BOOL, alone, 0, 0) /* this node only (drained); the job goes on */                                            \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, STR, cause, MSG_TEXT_MAX, 0) /* the root cause, one line */
#define MSG_refused_FIELDS(F, T)                                                                                       \
    F(T, NUM, status, 255, 1) /* what to exit with */                                                                  \
    F(T, BOOL, retry, 0, 0)   /* this may change: ask again */                                                         \
    F(T, STR, text, MSG_TEXT_MAX, 1)
#define MSG_probe_FIELDS(F, T)                                                                                         \
    MSG_PROBE(F, T)                                                                                                    \
    F(T, NUM, kind, 3, 1)             /* enum health_check_kind */                                                     \
    F(T, STR, text, MSG_TEXT_MAX, 1)  /* how far it is, for people */                                                  \
    F(T, NUM, left_ms, MSG_MS_MAX, 1) /* until the node must have answered */                                          \
    F(T, BOOL, quick, 0, 0)                                                                                            \
    /* of a pair: */                                                                                                   \
    F(T, BOOL, guest, 0, 0)           /* the end that needs the ids */                                                 \
    F(T, STR, peer, MSG_NAME_MAX, 0)  /* the other node */                                                             \
    F(T, STR, local, MSG_ADDR_MAX, 0) /* address of this node, as the others know it */                                \
    F(T, NUM, backend, 2, 0)          /* enum health_backend; not auto */                                              \
    F(T, NUM, rails, UINT32_MAX, 0)   /* bits */                                                                       \
    F(T, NUM, parted, UINT32_MAX, 0)  /* … the other end is over without a result there: this one is to end, too */  \
    F(T, STR, ids, MSG_IDS_MAX, 0)    /* those that are known: "RAIL=ID", spaces between */
#define MSG_probe_verdict_FIELDS(F, T)                                                                                 \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, probe, INT64_MAX, 1)                                                                                     \
    F(T, NUM, verdict, 6, 1)         /* enum health_verdict of this node */                                            \
    F(T, BOOL, excluded, 0, 0)       /* it takes no part */                                                            \
    F(T, BOOL, reader, 0, 0)         /* it gets the whole report, as pages */                                          \
    F(T, STR, name, MSG_NAME_MAX, 0) /* of this node, as the report has it */                                          \
    F(T, STR, text, MSG_TEXT_MAX, 1) /* one line about this node */                                                    \
    F(T, STR, job, MSG_TEXT_MAX, 0)  /* and one about all of them */
#define MSG_probe_page_FIELDS(F, T)                                                                                    \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, probe, INT64_MAX, 1)                                                                                     \
    F(T, NUM, kind, 1, 1) /* 0: for people; 1: JSON */                                                                 \
    F(T, STR, text, MSG_STREAM_MAX, 1)                                                                                 \
    F(T, BOOL, more, 0, 1)
#define MSG_restore_FIELDS(F, T)                                                                                       \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, attempt, INT64_MAX, 1)                                                                                   \
    F(T, NUM, what, RESTORE_WHATS - 1, 1) /* enum restore_what */                                                      \
    F(T, INT, step, MSG_STEP_MAX, 1)      /* -1: nothing */                                                            \
    F(T, HEX, lineage, 0, 0)              /* of that step */                                                           \
    F(T, BOOL, fresh, 0, 0)               /* … and that is right: begin at the beginning */                          \
    F(T, STR, text, MSG_TEXT_MAX, 0)
#define MSG_keep_FIELDS(F, T) F(T, STR, text, MSG_TEXT_MAX, 1)
#define MSG_leave_ack_FIELDS(F, T)                                                                                     \
    F(T, STR, text, MSG_TEXT_MAX, 0)                                                                                   \
    F(T, NUM, wait_ms, MSG_MS_MAX, 0) /* so long this node's workers may be on their way to a step boundary */
#define MSG_report_FIELDS(F, T)                                                                                        \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, NUM, world_size, MSG_WORLD_MAX, 1)                                                                            \
    F(T, NUM, restarts, 1000000000, 1)                                                                                 \
    F(T, NUM, max_restarts, 1000000000, 1)                                                                             \
    F(T, NUM, failed, MSG_WORLD_MAX, 1) /* workers that failed by themselves */                                        \
    F(T, NUM, among, MSG_WORLD_MAX, 1)  /* so many may have been the first; 1: the first row was */                    \
    F(T, STR, classes, MSG_TEXT_MAX, 0) /* how many of which class */                                                  \
    F(T, NUM, rest, MSG_WORLD_MAX, 0)   /* that failed and have no row, */                                             \
    F(T, STR, rest_ranks, MSG_RANKS_MAX, 0)                                                                            \
    F(T, STR, stopped_ranks, MSG_RANKS_MAX, 0) /* that elrun stopped */                                                \
    F(T, STR, missing, MSG_MISSING_MAX, 0)                                                                             \
    F(T, STR, text, MSG_TEXT_MAX, 1) /* why the round was stopped */                                                   \
    F(T, BOOL, more, 0, 1)
#define MSG_report_row_FIELDS(F, T)                                                                                    \
    F(T, NUM, rank, MSG_WORLD_MAX, 1)                                                                                  \
    F(T, NUM, local_rank, 4095, 1)                                                                                     \
    F(T, NUM, group_rank, MSG_NODES_MAX, 1)                                                                            \
    F(T, STR, host, MSG_NAME_MAX, 1)                                                                                   \
    F(T, INT, code, 255, 1)                                                                                            \
    F(T, INT, signal, 64, 1)                                                                                           \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, STR, document, MSG_DOCUMENT_MAX, 0)                                                                           \
    F(T, BOOL, more, 0, 1)

/* --- between the agents of a round: knock and lease --- */
#define MSG_lease_request_FIELDS(F, T)                                                                                 \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 1)                                                                               \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, HEX, token, 0, 1)                                                                                             \
    F(T, NUM, group_rank, MSG_NODES_MAX - 1, 1)
#define MSG_lease_granted_FIELDS(F, T) MSG_ROUND(F, T)
#define MSG_round_over_FIELDS(F, T)    MSG_ROUND(F, T)

/* --- a person's command to a coordinator, and its answers --- */
#define MSG_status_FIELDS(F, T) F(T, STR, run_id, MSG_RUN_ID_MAX, 0) F(T, BOOL, watch, 0, 0)
#define MSG_status_job_FIELDS(F, T)                                                                                    \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 1)                                                                               \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, STR, state, MSG_NAME_MAX, 1)                                                                                  \
    F(T, STR, text, MSG_TEXT_MAX, 1)                                                                                   \
    F(T, NUM, min, MSG_NODES_MAX, 1)                                                                                   \
    F(T, NUM, max, MSG_NODES_MAX, 1)                                                                                   \
    F(T, NUM, unit, MSG_NODES_MAX, 1)                                                                                  \
    F(T, NUM, group_size, MSG_NODES_MAX, 1)                                                                            \
    F(T, NUM, world_size, MSG_WORLD_MAX, 1)                                                                            \
    F(T, NUM, members, 1000000, 1)                                                                                     \
    F(T, NUM, spares, 1000000, 1)                                                                                      \
    F(T, NUM, restarts, 1000000000, 1)                                                                                 \
    F(T, NUM, max_restarts, 1000000000, 1)                                                                             \
    F(T, NUM, fruitless, 1000000000, 1)                                                                                \
    F(T, NUM, incidents, INT64_MAX, 1)                                                                                 \
    F(T, NUM, productive_ms, INT64_MAX, 1)                                                                             \
    F(T, NUM, forming_ms, INT64_MAX, 1)                                                                                \
    F(T, NUM, restarting_ms, INT64_MAX, 1)                                                                             \
    F(T, STR, master_addr, MSG_ADDR_MAX, 0)                                                                            \
    F(T, NUM, master_port, 65535, 0)                                                                                   \
    F(T, STR, cause, MSG_TEXT_MAX, 0)                                                                                  \
    F(T, STR, aside, MSG_TEXT_MAX, 0)     /* hosts that are set aside, and why */                                      \
    F(T, INT, held_step, MSG_STEP_MAX, 2) /* newest that all nodes hold in memory (with --ckpt-dir); -1: not known */  \
    F(T, INT, held_age_ms, INT64_MAX, 2)                                                                               \
    F(T, INT, disk_step, MSG_STEP_MAX, 2)                                                                              \
    F(T, INT, disk_age_ms, INT64_MAX, 2)                                                                               \
    F(T, NUM, status, 255, 0)                                                                                          \
    F(T, BOOL, more, 0, 1) /* rows of members follow, or another job */
#define MSG_status_member_FIELDS(F, T)                                                                                 \
    F(T, STR, host, MSG_NAME_MAX, 1)                                                                                   \
    F(T, STR, addr, MSG_ADDR_MAX, 0)                                                                                   \
    F(T, HEX, instance, 0, 1)                                                                                          \
    F(T, STR, state, MSG_NAME_MAX, 1)                                                                                  \
    F(T, INT, node_rank, MSG_NODES_MAX - 1, 1)                                                                         \
    F(T, INT, group_rank, MSG_NODES_MAX - 1, 1) /* -1: spare */                                                        \
    F(T, NUM, rank_base, MSG_WORLD_MAX, 0)                                                                             \
    F(T, NUM, slots, EL_SLOTS_MAX, 1)                                                                                  \
    F(T, NUM, heard_ms, MSG_MS_MAX, 1) /* since the last sign of life */                                               \
    F(T, BOOL, more, 0, 1)
#define MSG_scale_FIELDS(F, T)                                                                                         \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 0) F(T, NUM, min, MSG_NODES_MAX, 0) F(T, NUM, max, MSG_NODES_MAX, 0)
#define MSG_drain_FIELDS(F, T)    F(T, STR, run_id, MSG_RUN_ID_MAX, 0) F(T, STR, node, MSG_NAME_MAX, 1)
#define MSG_stop_job_FIELDS(F, T) F(T, STR, run_id, MSG_RUN_ID_MAX, 0) F(T, INT, grace_ms, MSG_MS_MAX, 0)
#define MSG_restart_FIELDS(F, T)  F(T, STR, run_id, MSG_RUN_ID_MAX, 0)
#define MSG_logs_FIELDS(F, T)                                                                                          \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 0)                                                                               \
    F(T, NUM, rank, MSG_WORLD_MAX, 1)                                                                                  \
    F(T, BOOL, follow, 0, 0)                                                                                           \
    F(T, NUM, lines, MSG_LOGS_LINES_MAX, 0) /* before the end */                                                       \
    F(T, NUM, stream, 2, 0)                 /* 1 stdout, 2 stderr, 0 both */                                           \
    F(T, NUM, reader, INT64_MAX, 0)         /* to the agent: who asks; the coordinator's number */
#define MSG_logs_next_FIELDS(F, T)                                                                                     \
    F(T, NUM, reader, INT64_MAX, 0)                                                                                    \
    F(T, NUM, pieces, MSG_LOGS_WINDOW, 0) /* that have been taken; 0 from a reader: it is there */                     \
    F(T, BOOL, gone, 0, 0)                /* to the agent: nobody reads any more */
#define MSG_logs_text_FIELDS(F, T)                                                                                     \
    F(T, NUM, reader, INT64_MAX, 0) /* which command asked; the coordinator's number */                                \
    F(T, NUM, rank, MSG_WORLD_MAX, 1)                                                                                  \
    F(T, NUM, stream, 2, 1) /* 1 stdout, 2 stderr; 0: the text is about them, "": a sign of life */                    \
    F(T, STR, text, MSG_STREAM_MAX, 1)                                                                                 \
    F(T, STR, path, 4096, 0) /* of the log file; "": there is none */                                                  \
    F(T, BOOL, more, 0, 1)   /* false: this was all, and the text says why if status is not 0 */                       \
    F(T, NUM, status, 255, 0)
#define MSG_done_FIELDS(F, T) F(T, NUM, status, 255, 1) F(T, STR, text, MSG_TEXT_MAX, 1)

/* --- a person's question to an agent about the snapshots of its node, at the socket in its run folder --- */
#define MSG_ckpt_query_FIELDS(F, T) F(T, BOOL, save, 0, 0) /* and bring the newest step to disk */
#define MSG_ckpt_node_FIELDS(F, T)                                                                                     \
    F(T, STR, run_id, MSG_RUN_ID_MAX, 1)                                                                               \
    F(T, STR, host, MSG_NAME_MAX, 1)                                                                                   \
    F(T, NUM, pid, INT32_MAX, 1)                                                                                       \
    F(T, NUM, group_rank, MSG_NODES_MAX - 1, 0)                                                                        \
    F(T, NUM, workers, 4096, 1)                                                                                        \
    F(T, NUM, budget_bytes, INT64_MAX, 0) /* 0: snapshots are off */                                                   \
    F(T, NUM, used_bytes, INT64_MAX, 0)                                                                                \
    F(T, INT, step, INT64_MAX, 1)   /* newest that all ranks of the node hold in memory; -1, here and below: none */   \
    F(T, INT, age_ms, INT64_MAX, 1) /* since the last of them held it; -1, here and below: not known */                \
    F(T, STR, dir, 4096, 0)         /* of --ckpt-dir */                                                                \
    F(T, INT, disk_step, INT64_MAX, 1) /* newest that this elrun has committed */                                      \
    F(T, INT, disk_age_ms, INT64_MAX, 1)                                                                               \
    F(T, INT, writing, INT64_MAX, 1)                                                                                   \
    F(T, NUM, done_bytes, INT64_MAX, 0)                                                                                \
    F(T, NUM, all_bytes, INT64_MAX, 0)                                                                                 \
    F(T, INT, failed, INT64_MAX, 1) /* the last step that was to be on disk, and is not */                             \
    F(T, STR, why, MSG_TEXT_MAX, 0)                                                                                    \
    F(T, BOOL, more, 0, 1)    /* rows of workers follow; or the step is on its way to disk, and this is how far */     \
    F(T, NUM, status, 255, 0) /* the last one, of a save: exit status */                                               \
    F(T, STR, text, MSG_TEXT_MAX, 0)
#define MSG_ckpt_worker_FIELDS(F, T)                                                                                   \
    F(T, NUM, rank, MSG_WORLD_MAX, 1)                                                                                  \
    F(T, NUM, local_rank, 4095, 1)                                                                                     \
    F(T, INT, step, INT64_MAX, 1) /* newest in memory */                                                               \
    F(T, INT, age_ms, INT64_MAX, 1)                                                                                    \
    F(T, NUM, slot_bytes, INT64_MAX, 0)                                                                                \
    F(T, STR, slot0, MSG_NAME_MAX,                                                                                     \
      0) /* what it is doing: free, writing, summing, committed, broken, loading; "": none */                          \
    F(T, INT, step0, INT64_MAX, 1)                                                                                     \
    F(T, STR, slot1, MSG_NAME_MAX, 0)                                                                                  \
    F(T, INT, step1, INT64_MAX, 1)                                                                                     \
    F(T, BOOL, here, 0, 0)             /* its script has called elrun.connect() in this round */                       \
    F(T, STR, phase, MSG_NAME_MAX, 0)  /* by its status page: init, stable, updating, snapshot, blocked, exiting */    \
    F(T, INT, live_step, INT64_MAX, 1) /* last step that it finished */                                                \
    F(T, BOOL, more, 0, 1)

/* X(NAME, name, number, sentence).  HEARTBEAT and HEARTBEAT_ACK are binary: below. */
#define MSG_LIST(X)                                                                                                    \
    X(HELLO, hello, 1, "an agent's first message on each connection: who it is and what it runs")                      \
    X(STORE_READY, store_ready, 2, "answer to OPEN_STORE: the round's store listens")                                  \
    X(NO_STORE, no_store, 3, "answer to OPEN_STORE: it could not be opened")                                           \
    X(LEASE_FAILED, lease_failed, 4, "this node cannot reach the round's store")                                       \
    X(STARTED, started, 5, "all workers of this node have been started")                                               \
    X(SUBSCRIBED, subscribed, 6, "a worker of this node listens to notices")                                           \
    X(AT_BOUNDARY, at_boundary, 7, "all such workers of this node stand at a step boundary")                           \
    X(WORKER_FAILED, worker_failed, 8, "a worker of this node failed by itself")                                       \
    X(STOPPED, stopped, 9, "no worker of this node is left")                                                           \
    X(SUCCEEDED, succeeded, 10, "every worker of this node exited 0")                                                  \
    X(LEAVING, leaving, 11, "this node leaves the job")                                                                \
    X(END_ACK, end_ack, 12, "answer to END")                                                                           \
    X(INCIDENT, incident, 13, "what is known of a worker that failed by itself; before STOPPED")                       \
    X(DIGEST, digest, 14, "how the workers of this node ended, for what follows; before STOPPED")                      \
    X(STEP_REPORT, step_report, 19, "answer to NOTICE: which step this node's workers are in")                         \
    X(PROBE_ID, probe_id, 15, "what the other end of a pair must know")                                                \
    X(PROBE_RESULT, probe_result, 16, "what a stage of a health check has brought on this node")                       \
    X(WAIT, wait, 20, "order: hold no workers and wait")                                                               \
    X(OPEN_STORE, open_store, 21, "order: open the store of a round")                                                  \
    X(WORLD, world, 22, "order: run this slice of a round")                                                            \
    X(STOP, stop, 23, "order: stop the workers of a round")                                                            \
    X(END, end, 24, "order: the job has ended")                                                                        \
    X(NOTICE, notice, 25, "the round will be stopped as planned")                                                      \
    X(REFUSED, refused, 26, "the connection is refused and closed")                                                    \
    X(LEAVE_ACK, leave_ack, 27, "answer to LEAVING")                                                                   \
    X(KEEP, keep, 28, "order: stay as you are")                                                                        \
    X(REPORT, report, 29, "to the node of rank 0: what failed in a round that is closed")                              \
    X(REPORT_ROW, report_row, 30, "one failure of the report before it, the first cause first")                        \
    X(PROBE, probe, 31, "order: a stage of a health check")                                                            \
    X(PROBE_VERDICT, probe_verdict, 32, "how a health check has judged this node")                                     \
    X(PROBE_PAGE, probe_page, 33, "to the node that prints it: a piece of a health check's report")                    \
    X(LEASE_REQUEST, lease_request, 40, "a node shows the round's token to the host of its store")                     \
    X(LEASE_GRANTED, lease_granted, 41, "answer to LEASE_REQUEST; the connection is the lease from now on")            \
    X(ROUND_OVER, round_over, 42, "on a lease: the coordinator has stopped this round")                                \
    X(STATUS, status, 60, "asks for STATUS_JOB and STATUS_MEMBER rows")                                                \
    X(STATUS_JOB, status_job, 61, "one job")                                                                           \
    X(STATUS_MEMBER, status_member, 62, "one node of the job before it")                                               \
    X(SCALE, scale, 63, "changes the number of nodes")                                                                 \
    X(DRAIN, drain, 64, "takes a node out of the job")                                                                 \
    X(STOP_JOB, stop_job, 65, "ends the job")                                                                          \
    X(RESTART, restart, 66, "stops the round and forms a new one")                                                     \
    X(LOGS, logs, 67, "asks for a worker's output")                                                                    \
    X(LOGS_TEXT, logs_text, 68, "a piece of a worker's output")                                                        \
    X(DONE, done, 69, "answer to a command")                                                                           \
    X(LOGS_NEXT, logs_next, 70, "answer to LOGS_TEXT: it was taken, another may come")                                 \
    X(CKPT_QUERY, ckpt_query, 71, "asks an agent for CKPT_NODE and CKPT_WORKER rows")                                  \
    X(CKPT_NODE, ckpt_node, 72, "snapshots of a node, and how far a save is")                                          \
    X(CKPT_WORKER, ckpt_worker, 73, "slots of one worker of the node before it")                                       \
    X(CKPT_PART, ckpt_part, 90, "a part of the training's state that this node's workers have declared")               \
    X(CKPT_STATE, ckpt_state, 91, "which steps this node holds in memory, and how far it is with writing one")         \
    X(CKPT_FILE, ckpt_file, 92, "a file that was written; or, to the node that publishes, one of all")                 \
    X(CKPT_WRITE, ckpt_write, 93, "order: write these parts of a step")                                                \
    X(CKPT_PUBLISH, ckpt_publish, 94, "order: make the files a checkpoint")                                            \
    X(CKPT_OVER, ckpt_over, 95, "what has become of a step that was to be written")                                    \
    X(EMERGENCY_STATE, emergency_state, 96, "where this node's live workers stand, and what could be had of them")     \
    X(CKPT_CAPTURE, ckpt_capture, 97, "order: emergency checkpoint of live workers")                                   \
    X(CKPT_TAKEN, ckpt_taken, 98, "which steps all workers of this node have, and which they may yet have")            \
    X(CKPT_COMMON, ckpt_common, 99, "which step all nodes have, and what none need keep")                              \
    X(CKPT_DIGESTS, ckpt_digests, 102, "digests of what ranks of other nodes must have alike with this one's")         \
    X(CKPT_TENSORS, ckpt_tensors, 103, "answer to CKPT_DIFFER: the tensors of the part")                               \
    X(CKPT_DIFFER, ckpt_differ, 104, "nodes differ in a part: which tensors has it?")                                  \
    X(CKPT_INVENTORY, ckpt_inventory, 100, "which steps this node can go back to, and how far it is with that")        \
    X(RESTORE, restore, 101, "which step all ranks go back to, and when they may go on")

enum { MSG_PHASE_IDLE, MSG_PHASE_STARTING, MSG_PHASE_RUNNING, MSG_PHASE_STOPPING, MSG_PHASE_SUCCEEDED, MSG_PHASES };

enum msg_type {
    MSG_NONE = 0, /* the preamble was read */
#define X(NAME, name, number, text) MSG_##NAME = (number),
    MSG_LIST(X)
#undef X
        MSG_HEARTBEAT = 80, /* time: the sender's clock; own, on a lease: the clock of who answered last, as it came */
    MSG_HEARTBEAT_ACK = 81, /* time: as in the HEARTBEAT; own: the clock of who answers */
};

/* On a lease each heartbeat says what its sender knows of the coordinator; the flags of the frame. */
enum msg_view {
    MSG_VIEW_NONE,
    MSG_VIEW_HEARD,   /* it answers */
    MSG_VIEW_STILL,   /* its host takes what is sent, and has for a while, but nobody there answers */
    MSG_VIEW_HERE,    /* it is in this process */
    MSG_VIEW_REFUSED, /* its host refuses connections */
    MSG_VIEWS,
};

#define X(NAME, name, number, text)                                                                                    \
    struct msg_##name {                                                                                                \
        MSG_##name##_FIELDS(EL_FIELD_MEMBER, msg_##name)                                                               \
    };
MSG_LIST(X)
#undef X

struct msg_heartbeat {
    uint64_t time, own; /* microseconds */
    enum msg_view view;
};

struct msg {
    enum msg_type type;
    union {
#define X(NAME, name, number, text) struct msg_##name name;
        MSG_LIST(X)
#undef X
        struct msg_heartbeat heartbeat;
    } u;
    void *tree; /* what the strings of a decoded message belong to */
};

struct msg_decoder {
    bool greeted; /* the preamble was there */
};

/* Appends the message as one frame.  Strings that are too long are cut, bytes that are not UTF-8 are replaced; NULL is
 * "".  0, or -1 if the buffer refused (nothing is appended then). */
int msg_encode(const struct msg *m, struct el_buf *out);

/* Consumes one thing from the front of bytes: the preamble (type MSG_NONE) or a frame.  The number of bytes consumed, 0
 * if more are needed, or -1 with *e: the connection is to be closed.  After a positive result msg_release(out). */
long msg_consume(struct msg_decoder *d, const char *bytes, size_t n, struct msg *out, struct el_err *e);
void msg_release(struct msg *m);

/* "HELLO", or NULL for a number that is no message. */
const char *msg_name(unsigned type);
const char *msg_sentence(unsigned type);

/* Field i of a message, for the check of the manual: its name and kind, or NULL behind the last. */
const char *msg_field(unsigned type, unsigned i, const char **kind);

#endif
