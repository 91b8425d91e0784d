/* Verdicts of past probes, by node: --state-dir/probes, one JSON object a line, the newest last.  A node that fails now
 * and then is told from one that has failed once.  Undecided is no verdict and is not kept. */
#ifndef PROBE_HISTORY_H
#define PROBE_HISTORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/wire.h"
#include "util/buf.h"
#include "util/err.h"

#define HISTORY_FILE       "probes"
#define HISTORY_MAX        4096       /* entries that are read: the newest */
#define HISTORY_BYTES_MAX  (1u << 20) /* a longer file is written anew, with the newest HISTORY_MAX / 2 */
#define HISTORY_NODE_MAX   64
#define HISTORY_REASON_MAX 200
#define HISTORY_NOTE_MAX   320 /* bytes of history_text(), with its 0 */
#define HISTORY_SPAN_S     (7 * 86400u)

struct history_entry {
    uint64_t time_s; /* since 1970 */
    bool bad;
    char node[HISTORY_NODE_MAX + 1];
    char reason[HISTORY_REASON_MAX + 1]; /* "" if it was good */
};

struct history {
    unsigned n, broken; /* broken: lines that were none */
    struct history_entry v[HISTORY_MAX];
};

/* Strings are cut where they do not fit. */
struct history_entry history_entry(uint64_t time_s, const char *node, bool bad, const char *reason);

/* Appends the line.  0, or -1 if the buffer refused. */
int history_encode(const struct history_entry *h, struct el_buf *out);
/* Whole text of a file; a torn line at its end counts as broken, and so does what is no verdict. */
void history_parse(struct history *all, const char *text, size_t n);
void history_add(struct history *all, const struct history_entry *h); /* the oldest makes room */

/* How often the node failed within the last seven days; if it did, appends "failed 2 of 5 probes within 7 days, last
 * 26 hours ago: gpu_ecc of GPU 3".  What lies in the future (a clock that was set) does not count. */
unsigned history_text(const struct history *all, const char *node, uint64_t now_s, struct el_buf *out);

/* "DIR/probes: 3 lines are no verdicts of probes and are left aside"; false if all are some. */
bool history_strange(const struct history *all, const char *folder, char *to, size_t room);

/* With several nodes this is told to the coordinator, as a line. */
void history_line(const char *text, struct probe_wire *w);
bool history_take(const struct probe_wire *w, char *to, size_t room); /* false: another line */

/* --- history_io.c: these block; for a pool thread, or where nothing else waits --- */

/* Makes the folder and the file if they are not there, and reads it.  -1 and *e: it cannot be written to (73): said
 * once, at the start, whatever comes out of the probe. */
int history_open(const char *folder, struct history *all, struct el_err *e);
/* Appends entries, durably, and adds them to *all. */
int history_append(const char *folder, struct history *all, const struct history_entry *v, unsigned n,
                   struct el_err *e);

#endif
