/* Where the time of a job went on this node, in one line.  Pure: the shell says when something began. */
#ifndef HISTORY_GOODPUT_H
#define HISTORY_GOODPUT_H
#include <stddef.h>

#include "output/steps.h"
#include "util/buf.h"
#include "util/time.h"

/* Name, word for people, member of JSON. */
#define GOODPUT_PART_LIST(X)                                                                                           \
    X(FORM, "forming rounds", "forming_usec")                                                                          \
    X(START, "starting", "starting_usec")                                                                              \
    X(RUN, "running", "running_usec")                                                                                  \
    X(STOP, "stopping", "stopping_usec")                                                                               \
    X(WAIT, "waiting to start again", "waiting_usec")

enum goodput_part {
#define X(name, text, key) ACCOUNT_##name,
    GOODPUT_PART_LIST(X)
#undef X
        ACCOUNT_PARTS
};

struct goodput {
    el_usec began, since;
    enum goodput_part part;
    el_usec spent[ACCOUNT_PARTS];
    unsigned restarts;
    el_usec failed_at;      /* the first failure of this attempt was seen; 0 = none */
    el_usec detect;         /* longest: from seeing a failure to having signalled the siblings */
    el_usec restart;        /* longest: from seeing a failure to the last worker of the next attempt started */
    struct steps_sum steps; /* the shell copies it here before it asks for words; not any: nothing is known */
};

void goodput_init(struct goodput *a, el_usec now);
/* From now on time belongs to this part. */
void goodput_enter(struct goodput *a, enum goodput_part part, el_usec now);
/* So much of the time that went into forming rounds was waited on purpose. */
void goodput_waited(struct goodput *a, el_usec waited, el_usec now);
void goodput_failed(struct goodput *a, el_usec now);    /* a worker's own failure was seen */
void goodput_signalled(struct goodput *a, el_usec now); /* its siblings have been signalled */
void goodput_started(struct goodput *a, el_usec now);   /* the last worker of an attempt was started */

/* "12.4s: 3.1ms starting, 12.3s running (99.8%), 10ms stopping; 1 restart: siblings signalled in 40us, all up again in
 * 9.0ms; effective 83.1%: 120 new steps of 86ms, 12 made again (1.0s)" into to; returns its length. */
size_t goodput_text(const struct goodput *a, el_usec now, char *to, size_t size);

/* Appends {"total_usec":…,"running_usec":…,"running_share":0.998,…}; effective and repeated work only where steps are
 * known.  0, or -1 and out->full. */
int goodput_json(const struct goodput *a, el_usec now, struct el_buf *out);

/* A duration for people: "40us", "2.5ms", "12ms", "4.2s", "3m05s", "2h07m", "3d04h".  Returns to. */
char *goodput_duration(el_usec d, char *to, size_t size);

/* "99.8%" of part in whole, rounded down, so that 100.0% is all; "-" of nothing.  Returns to. */
char *goodput_share(el_usec part, el_usec whole, char *to, size_t size);

#endif
