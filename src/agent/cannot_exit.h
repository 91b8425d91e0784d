/* A worker that has raised, and stands: nothing ends it, and nobody hears of it until the others' time runs out.  Pure.
 *
 * What is known: its last output is an exception that by its form nobody has caught (failure/exiting.h); since then it
 * has printed nothing and used no processor time; its main thread waits for another thread of it.  An exception that
 * was caught at the module's top and printed, with a long wait behind it, looks the same: so it is said as what it is.
 */
#ifndef AGENT_CANNOT_EXIT_H
#define AGENT_CANNOT_EXIT_H
#include <stdbool.h>
#include <stdint.h>

#include "sys/proc_sample.h"
#include "util/time.h"

#define CANNOT_EXIT_TIME  EL_SEC(3) /* since the first look */
#define CANNOT_EXIT_TICKS 2u        /* of the kernel's, which are 10 ms: nothing to speak of */

struct cannot_exit {
    uint64_t printed_bytes, ticks;
    el_usec since; /* it stands */
    bool raised, said;
};

/* It has printed so much in all: is that news, so that its words are to be read again? */
bool cannot_exit_is_news(struct cannot_exit *u, uint64_t printed_bytes);

/* One look.  raised: by its last output.  True once, when it has stood so for CANNOT_EXIT_TIME. */
bool cannot_exit_saw(struct cannot_exit *u, bool raised, const struct proc_sample_one *one, el_usec now);

#endif
