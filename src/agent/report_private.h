/* Between the files of the report: report_io.c has its facts, report_collect_io.c gathers the evidence, report_end_io.c
 * says the last lines. */
#ifndef AGENT_REPORT_PRIVATE_H
#define AGENT_REPORT_PRIVATE_H
#include "agent/node.h"
#include "failure/summary.h"

/* Ended by elrun because of another one: its evidence tells nothing. */
bool report_was_stopped(const struct node *n, unsigned slot);
/* A worker failed, and what should have been its restart could not even be prepared. */
bool report_restart_refused(const struct node *n);
/* The job ends because of a worker: the report tells of it, and the exit status is its own. */
bool report_worker_failed(const struct node *n);

struct failure_report report_make(struct node *n);
const struct failure *report_cause_of(struct node *n, const struct failure_report *r);

void report_evidence_late(void *node); /* the timer's: evidence, or what is published of it, takes too long */
void report_evidence_forget(struct node *n);
void report_published(struct node *n, bool late);

/* Says for whom the workers are stopped, if that waited for a report. */
void report_stopping(struct node *n);

#endif
