/* Where the time of a job went, in one line.  Pure: the shell says when something began. */
#ifndef AGENT_ACCOUNT_H
#define AGENT_ACCOUNT_H
#include <stddef.h>

#include "util/time.h"

enum account_part { ACCOUNT_START, ACCOUNT_RUN, ACCOUNT_STOP, ACCOUNT_PARTS };

struct account {
    el_usec began, since;
    enum account_part part;
    el_usec spent[ACCOUNT_PARTS];
    unsigned restarts;
    el_usec failed_at; /* the first failure of this attempt was seen; 0 = none */
    el_usec detect;    /* longest: from seeing a failure to having signalled the siblings */
    el_usec restart;   /* longest: from seeing a failure to the last worker of the next attempt started */
};

void account_init(struct account *a, el_usec now);
/* From now on time belongs to this part. */
void account_enter(struct account *a, enum account_part part, el_usec now);
void account_failed(struct account *a, el_usec now);    /* a worker's own failure was seen */
void account_signalled(struct account *a, el_usec now); /* its siblings have been signalled */
void account_started(struct account *a, el_usec now);   /* the last worker of an attempt was started */

/* "time: 12.4s: 3.1ms starting, 12.4s running, 10ms stopping; 1 restart: siblings signalled in 40us, all up again
 * in 9.0ms" into to; returns its length. */
size_t account_text(const struct account *a, el_usec now, char *to, size_t size);

/* A duration for people: "40us", "2.5ms", "12ms", "4.2s", "3m05s", "2h07m", "3d04h".  Returns to. */
char *account_duration(el_usec d, char *to, size_t size);

#endif
