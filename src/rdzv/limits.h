/* The highest values that messages, and the texts in them, may hold.  They are far beyond what a job can come to, and
 * so far below the end of their type that one more, or two of them together, still fit. */
#ifndef RDZV_LIMITS_H
#define RDZV_LIMITS_H
#include <stdint.h>

#define MSG_STEP_MAX     INT64_C(999999999999999) /* CKPT_STEP_MAX: a step beyond has no name on disk */
#define MSG_ROUND_MAX    (UINT64_C(1) << 61)      /* number of a round */
#define MSG_ATTEMPTS_MAX UINT64_C(1000000000)     /* agreements on a step in one round, as an agent tells it */

#endif
