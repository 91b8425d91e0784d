/* What the parts of a report share. */
#ifndef PROBE_REPORT_PRIVATE_H
#define PROBE_REPORT_PRIVATE_H
#include "probe/report.h"
#include "probe/verdict.h"
#include "util/paint.h"

#define REPORT_LISTED_MAX 16 /* nodes that are all listed, and have a matrix; of more, those that are not good */
#define REPORT_ODD_MAX    24 /* of those, so many */
#define REPORT_LINES_MAX  8  /* links, differences, … of one kind */

static inline const struct findings *report_findings(const struct probe_report *r, unsigned node)
{
    return r->found && r->found[node] ? &r->found[node]->findings : NULL;
}

/* The name of a node, fit for a terminal. */
const char *report_name(const struct probe_report *r, unsigned node, char to[PLAN_NAME_MAX]);
enum el_tone report_tone(enum node_state s);

/* Of plan and findings. */
enum verdict_whole report_whole(const struct probe_report *r);

/* The bandwidth that pairs are shown by: the one of which there are most values; METRIC_COUNT: none was measured. */
enum metric report_metric(const struct probe_report *r);
/* Of a node or a pair over its rails, the worst; 0: none. */
uint32_t report_node_value(const struct probe_report *r, unsigned node, enum metric m, unsigned *rail);
uint32_t report_pair_value(const struct probe_report *r, unsigned pair, enum metric m);

/* Pairs of up to REPORT_LISTED_MAX nodes as a matrix, more nodes as a row of blocks (report_picture.c). */
void report_picture(const struct probe_report *r, struct el_buf *out);
/* The checks of the only node (report_checks.c), and what is wrong on nodes that are good otherwise. */
void report_checks(const struct probe_report *r, struct el_buf *out);
void report_warnings(const struct probe_report *r, struct el_buf *out);
/* Appends the text in lines that are no wider (report_wrap.c). */
void report_wrap(const char *text, unsigned columns, struct el_buf *out);
/* Of each node all that is known. */
void report_checks_each(const struct probe_report *r, struct el_buf *out);
/* Are there any?  Any that should have been judged and could not be? */
bool report_warns(const struct probe_report *r);
bool report_undecided(const struct probe_report *r);

#endif
