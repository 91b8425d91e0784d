/* A worker that has raised, and stands: nothing ends it, and nobody hears of it until the others' time runs out.  Pure.
 *
 * What is known: its last words are an exception that by its form nobody has caught (failure/ending.h); since then it
 * has printed nothing and used no processor time; its main thread waits for another thread of it.  An exception that
 * was caught at the module's top and printed, with a long wait behind it, looks the same: so it is said as what it is.
 */
#ifndef AGENT_UNENDED_H
#define AGENT_UNENDED_H
#include <stdbool.h>
#include <stdint.h>

#include "sys/scene.h"
#include "util/time.h"

#define UNENDED_TIME  EL_SEC(3) /* since the first look */
#define UNENDED_TICKS 2u        /* of the kernel's, which are 10 ms: nothing to speak of */

struct unended {
    uint64_t printed_bytes, ticks;
    el_usec since; /* it stands */
    bool raised, said;
};

/* It has printed so much in all: is that news, so that its words are to be read again? */
bool unended_is_news(struct unended *u, uint64_t printed_bytes);

/* One look.  raised: by its last words.  True once, when it has stood so for UNENDED_TIME. */
bool unended_saw(struct unended *u, bool raised, const struct scene_one *one, el_usec now);

#endif
