/* --save-baseline and --baseline: what a healthy node measured, with the hardware that it was measured on.  It makes
 * speeds of one or two nodes judgeable; on other hardware it would accuse the innocent, so it is refused there.
 *
 *     {"baseline": 1, "hardware": {"cpu": "…", "cores": "192", …}, "metrics": {"host_mem": 312.5, …}}
 */
#ifndef PROBE_BASELINE_H
#define PROBE_BASELINE_H
#include <stddef.h>
#include <stdint.h>

#include "probe/facts.h"
#include "probe/metric.h"
#include "probe/wire.h"
#include "util/buf.h"
#include "util/err.h"

#define BASELINE_FILE_MAX 65536

struct baseline {
    struct facts facts;           /* of kinds HARDWARE and SIZE; the rest does not matter */
    uint32_t milli[METRIC_COUNT]; /* 0: not measured */
};

/* Appends the file's text.  0, or -1 if the buffer refused. */
int baseline_encode(const struct baseline *b, struct el_buf *out);
/* What a newer version may have put in is passed over.  -1 and *e. */
int baseline_decode(struct baseline *b, const char *text, size_t n, struct el_err *e);

/* Was it made on hardware like this?  -1 and *e, which names both.  What either side does not know is not compared;
 * memory may differ by a twentieth. */
int baseline_fits(const struct baseline *b, const struct facts *here, struct el_err *e);

/* With several nodes each reads its own file, and what it refers to goes to the coordinator as lines (probe/wire.h).
 * take: one such line; false: it is another.  Of several files the easier one counts: nobody is slow because somebody
 * else's file is strict. */
int baseline_lines(const struct baseline *b, struct el_buf *out);
bool baseline_take(const struct probe_wire *w, uint32_t milli[METRIC_COUNT]);

/* --- baseline_io.c: errors name the file --- */
int baseline_read(struct baseline *b, const char *path, struct el_err *e);
/* The old file stays until the new one is durable. */
int baseline_write(const struct baseline *b, const char *path, struct el_err *e);

#endif
