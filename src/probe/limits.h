/* --checks and --limits: what is looked at, and what counts as wrong, in place of the table's (check.h). */
#ifndef PROBE_LIMITS_H
#define PROBE_LIMITS_H
#include <stddef.h>

#include "probe/check.h"
#include "util/err.h"

#define LIMITS_FILE_MAX 65536 /* bytes of a file of limits */

/* --checks=LIST: names of checks and groups with commas between them; a "-" in front takes one out; "all" is everything
 * (a list that begins by taking out begins with everything).  0, or -1 and *e, which names the word and what was
 * probably meant. */
int checks_parse(struct check_conf *c, const char *list, struct el_err *e);

/* --limits=FILE: one JSON object whose keys are names of checks.  A value is
 *     a number            the limit, in the unit of the check
 *     "8GiB"              the same for checks in bytes; "unlimited"
 *     "off"               this check is not made
 *     {"limit": …, "severity": "info" | "warn" | "bad"}       one of the two or both
 * The name of a metric that a node measures alone (metric.h) has a limit too, which it has not otherwise.
 * What is not known is an error that names it and what was probably meant: a limit that is not applied is worse than
 * none.  0, or -1 and *e; *c may be changed in part then. */
int limits_parse(struct check_conf *c, const char *text, size_t n, struct el_err *e);

/* limits_io.c: the same of a file; errors name it. */
int limits_read(struct check_conf *c, const char *path, struct el_err *e);

#endif
