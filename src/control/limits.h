/* The highest values that messages, and the texts in them, may hold.  They are far beyond what a job can come to, and
 * so far below the end of their type that one more, or two of them together, still fit. */
#ifndef CONTROL_LIMITS_H
#define CONTROL_LIMITS_H
#include <stdint.h>

/* What is held, by whom at most, and what happens beyond it.  Limits that are multiplied (by members, parts, steps,
 * strings) are bounded once more by who pays for them, so that their product cannot be had:
 *
 *     what                                    bound                        beyond it
 *     ---------------------------------------------------------------------------------------------------------------
 *     all jobs and connections                COORDINATOR_MEMORY_BYTES     jobs that never formed a round go, then who
 *                                                                          asks is refused, or his connection closed
 *     jobs of one address, all together       COORDINATOR_MEMORY_ONE       its next job is refused; a job that is there
 *                                                                          does without what it wants to remember
 *      … digests of shared parts              COORDINATOR_SUMS_ONE         what has no room is not compared, which is
 *                                                                          said once
 *     one job: digests of shared parts        REPLICA_CHECK_KEYS_MAX           the same
 *              parts, files, wishes to save   CKPT_COMMIT_MEM_BYTES             the step is not saved, and it is told
 * why documents of failures          RDZV_DOCUMENTS_MAX           those of lesser failures go ranks of whom a fate is
 * kept   RDZV_FATES_MAX               ranks are not named, but counted a health check's report RDZV_PROBE_REPORT_MAX it
 * is made briefer connections of one address: messages    COORDINATOR_CONNS_ONE        the one that holds most is
 * closed that are half sent, or not read one connection: unsent                  COORDINATOR_UNSENT_BYTES     closed a
 * message                      MSG_FRAME_MAX; before the    closed first COORDINATOR_HELLO_BYTES heard in a turn of the
 * loop    COORDINATOR_PIECE            in the next one jobs that begin in a turn               COORDINATOR_BIRTHS in
 * the next one connections that said nothing           COORDINATOR_NEW_MAX          the oldest of the address with most
 * goes status --watch, logs                    COORDINATOR_WATCHERS_MAX     refused and _ONE, _READERS_MAX the journal
 * JOURNAL_JOBS_MAX             the oldest goes, ended ones first lines of the log that strangers cause   a few a second
 * counted
 */

#define MSG_STEP_MAX     INT64_C(999999999999999) /* CKPT_STEP_MAX: a step beyond has no name on disk */
#define MSG_ROUND_MAX    (UINT64_C(1) << 61)      /* number of a round */
#define MSG_ATTEMPTS_MAX UINT64_C(1000000000)     /* agreements on a step in one round, as an agent tells it */

#endif
