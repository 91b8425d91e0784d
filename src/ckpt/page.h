/* The status page: 4 KiB that a worker and its agent both map, so that the agent knows step and phase of a worker that
 * hangs, without asking it.  The worker writes what is marked W, the agent what is marked A; each takes what the other
 * wrote for no more than a claim.  src/client/elrun.py writes it by these offsets. */
#ifndef CKPT_PAGE_H
#define CKPT_PAGE_H
#include <stddef.h>
#include <stdint.h>

#define PAGE_MAGIC   0x3130544154534c45u /* "ELSTAT01" */
#define PAGE_VERSION 1u
#define PAGE_BYTES   4096u
#define PAGE_NO_STEP INT64_MAX

enum page_phase { PAGE_INIT, PAGE_STABLE, PAGE_UPDATING, PAGE_SNAPSHOT, PAGE_BLOCKED, PAGE_EXITING };
enum page_why { PAGE_NOTHING, PAGE_SCALE_UP, PAGE_DRAIN, PAGE_SPARE, PAGE_EVICTION, PAGE_OPERATOR };

struct page {
    uint64_t magic;             /* A */
    uint32_t version, rank;     /* A */
    uint64_t round, coord;      /* A */
    uint64_t counter;           /* A: of the last order */
    uint64_t seq;               /* W: odd while it writes */
    int64_t live_step;          /* W: last finished update, -1: none */
    uint32_t phase, spare;      /* W: enum page_phase */
    int64_t limit_step;         /* A: no update beyond it is begun; PAGE_NO_STEP: none */
    uint64_t heartbeat_ns;      /* W: on its monotonic clock */
    uint64_t update_started_ns; /* W */
    int64_t boundary_step;      /* A: a planned change comes behind this step; PAGE_NO_STEP: none */
    int64_t notice_deadline_ns; /* A */
    uint32_t notice_why;        /* A: enum page_why */
};

_Static_assert(offsetof(struct page, seq) == 40 && offsetof(struct page, live_step) == 48 &&
                   offsetof(struct page, phase) == 56 && offsetof(struct page, limit_step) == 64 &&
                   offsetof(struct page, update_started_ns) == 80 && offsetof(struct page, boundary_step) == 88 &&
                   offsetof(struct page, notice_why) == 104,
               "elrun.py has these offsets");

#endif
