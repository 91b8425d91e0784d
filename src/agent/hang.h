/* Is the work of this node stuck?  Every worker that runs has printed nothing
 * and used no processor time to speak of for the whole time-out.  A worker that spins uses time and is not caught.
 *
 * Pure: the shell takes samples, hang_samples_due() says when, and each is judged when it is complete.  Where nobody
 * looked for a while (elrun or the whole host was stopped), the time does not count. */
#ifndef AGENT_HANG_H
#define AGENT_HANG_H
#include <stdbool.h>
#include <stdint.h>

#include "util/mem.h"
#include "util/time.h"

#define HANG_LOOKS     16     /* samples in a time-out */
#define HANG_SHARE     100    /* under 1/100 of one processor is nothing to speak of … */
#define HANG_CPU_GRAIN 20000u /* … nor is, in microseconds, what the kernel's ticks cannot tell from it */

struct hang_worker {
    bool up, sampled;
    uint64_t printed_bytes, cpu_usec; /* when it was last seen alive */
    el_usec still_since;
};

struct hang {
    el_usec timeout; /* 0: never looks */
    unsigned slots;
    struct hang_worker *worker;
    el_usec looked_at; /* the last complete sample, or the attempt's start */
    bool watching;
};

/* 0, or -1 when memory is refused. */
int hang_init(struct hang *h, unsigned slots, el_usec timeout, struct el_mem *mem);
void hang_free(struct hang *h, struct el_mem *mem);

/* All workers of an attempt are up: whatever was known of earlier ones is forgotten. / Nothing is watched any more. */
void hang_begin(struct hang *h, el_usec now);
void hang_end(struct hang *h);

/* When the next sample is due; EL_NEVER if nothing is watched. */
el_usec hang_sample_due(const struct hang *h);

/* One sample, taken at one moment: what each worker has printed and used since its start (its processes together; the
 * sum falls when one of them ends, which is life, too), or that it is gone, a sign of life of the node: the others have
 * the whole time-out again.  Then the verdict: true if every worker that is up has stood still for the time-out. */
void hang_saw(struct hang *h, unsigned slot, uint64_t printed_bytes, uint64_t cpu_usec, el_usec now);
void hang_gone(struct hang *h, unsigned slot, el_usec now);
bool hang_judge(struct hang *h, el_usec now);

#endif
