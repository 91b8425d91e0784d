/* Where logs lie: <log dir>/<run id>_<8 random>/attempt_<restart count>[.round_<n>]/<local
 * rank>/{stdout.log,stderr.log, error.json}, filtered_stdout.log and filtered_stderr.log in the attempt; <run>/latest
 * leads to the newest attempt. */
#ifndef OUTPUT_LOGTREE_H
#define OUTPUT_LOGTREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define LOGTREE_EVENTS   "elrun-events.jsonl" /* in the run's folder, if --log-dir names one: for `elrun report` */
#define LOGTREE_NAME_MAX 128u                 /* of one directory, with its 0 */

/* --- names (logtree.c, pure) --- */

/* "<run id>_<8 of [a-z0-9_]>": of the run id only letters, digits and . _ - + = @ stay, others become '_'; no '.' in
 * front; at most 96 bytes. */
size_t logtree_run_name(char to[LOGTREE_NAME_MAX], const char *run_id, uint64_t chance);
/* "elrun_<8>" for a temporary log directory. */
size_t logtree_temporary_name(char to[LOGTREE_NAME_MAX], uint64_t chance);
/* repeated: an earlier round had this restart count. */
size_t logtree_attempt_name(char to[LOGTREE_NAME_MAX], unsigned restart_count, unsigned round, bool repeated);
bool logtree_is_null(const char *log_dir); /* the null device: no logs */

/* --- directories and files (logtree_io.c): blocks, for a thread of the pool --- */

/* base: an absolute path, made if needed (its last part; parents too).  NULL: a temporary directory in tmpdir.  Draws
 * names until one is free.  Writes the absolute path of the run's directory to *run_dir and, if temporary, of the
 * temporary one to *temporary (else NULL); the caller frees both with free().  -1: EL_EXIT_CANTCREAT. */
int logtree_make_run(const char *base, const char *tmpdir, const char *run_id, uint64_t chance, char **run_dir,
                     char **temporary, struct el_err *e);

/* Makes run_dir/attempt and the directories of all ranks, and points `latest` to it. */
int logtree_make_attempt(const char *run_dir, const char *attempt, unsigned nproc, struct el_err *e);

/* Opens a log file to append, close-on-exec; -1 and *e. */
int logtree_open(const char *path, struct el_err *e);

/* Removes the temporary directory if it holds nothing but directories, empty files and `latest`.  False: something was
 * written there, and all of it is kept; or it cannot be removed. */
bool logtree_remove_empty(const char *temporary);

/* The last `size` bytes of a file; -1 and errno.  *total_bytes is its length. */
long logtree_tail(const char *path, char *to, size_t size, uint64_t *total_bytes);

#endif
