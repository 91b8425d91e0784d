/* Failures as DLRover's job master logs what an agent relays, for tools that watch for that line:
 *
 *     JOB NODE restart 1 fails: {"3": {"local_rank": 1, "exitcode": -11, "message": "…", "datetime": "2026-11-21
 * 20:36:48"}}
 *
 * The part from the brace on is one JSON object; a message is never cut in the middle of a character. */
#ifndef FAILURE_DLROVER_H
#define FAILURE_DLROVER_H
#include "failure/failure.h"
#include "util/buf.h"

#define DLROVER_MESSAGE_MAX 1024 /* bytes of one message; "…" tells of a cut */
#define DLROVER_RANKS_MAX   64   /* more failures of one line are left out */

/* Appends the line without a newline.  Failures that elrun caused are left out; job and node lose what would break the
 * line.  0, or -1 and out->full. */
int dlrover_line(const char *job, const char *node, unsigned restart, const struct failure *const *failures,
                 unsigned count, struct el_buf *out);

#endif
