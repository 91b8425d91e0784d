/* What a probe found, for a person and as JSON: spec of the probe, section 8.  Pure. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H
#include <stdbool.h>
#include <stdint.h>

#include "probe/found.h"
#include "probe/look.h"
#include "probe/plan.h"
#include "util/buf.h"
#include "util/exit.h"

struct probe_report {
    struct plan *plan;                /* its nodes and results; names by plan_name() */
    const struct found *const *found; /* of each node, an element or all NULL: nothing is known of it */
    const char *const *note;          /* of each node, told behind its verdict ("bad twice this week"); may be NULL */
    uint64_t number, coord, probe;    /* of the world round, and of the probe: JSON only */
    uint64_t took_ms;                 /* 0: not told */
    const char *backend;              /* "tcp", "nccl"; NULL: no pairs were meant to be run */
    bool colour;                      /* these three: struct report_look */
    bool utf8;
    unsigned columns;
    bool all;   /* of each node all findings, not only those that are not in order */
    bool brief; /* JSON: of at most REPORT_BRIEF_MAX nodes and links, and of those little */
};

/* Table of nodes, matrix of pairs, links, versions, what to do next. */
void report_text(const struct probe_report *r, struct el_buf *out);

/* One line about one node: "c03 is bad: rail 3: failed with c01, c02 and c04, all good: nothing came back". */
void report_node(const struct probe_report *r, unsigned node, struct el_buf *out);

/* One line about the present round, without a newline: "round 2: c04 with c00, c05 with c01; 30 more pairs; 60 are
 * good so far, 4 are suspect".  Not longer than REPORT_ROUND_MAX. */
#define REPORT_BRIEF_MAX 256
#define REPORT_ROUND_MAX 320
void report_round(const struct probe_report *r, struct el_buf *out);

/* One line about all: "7 nodes are good, 1 is bad; 12.3 s, 3 rounds". */
void report_summary(const struct probe_report *r, struct el_buf *out);

/* One JSON object with a newline. */
void report_json(const struct probe_report *r, struct el_buf *out);

/* Exit status of a probe: 0 all good, 1 some node is bad, 3 some are undecided and none is bad.  strict: stragglers and
 * warnings are as undecided ones; exclude_stragglers: stragglers are as bad ones. */
int report_status(const struct probe_report *r, bool strict, bool exclude_stragglers);

#endif
