/* The status page: 4 KiB that a worker and its agent both map, so that the agent knows step and phase of a worker that
 * hangs, without asking it.  The worker writes what is marked W, the agent what is marked A; each takes what the other
 * wrote for no more than a claim.  src/client/elrun writes it by these offsets. */
#ifndef SNAPSHOT_PAGE_H
#define SNAPSHOT_PAGE_H
#include <stdbool.h>
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
    uint32_t notice_why;        /* A: enum page_why; */
    uint32_t spare2;
    int64_t begin_step; /* W: the step that it is in, or waits to begin; -1: none */
    int64_t at_step;    /* W: behind this step it stops, since a boundary lay there; -1: none */
};

_Static_assert(offsetof(struct page, seq) == 40 && offsetof(struct page, live_step) == 48 &&
                   offsetof(struct page, phase) == 56 && offsetof(struct page, limit_step) == 64 &&
                   offsetof(struct page, update_started_ns) == 80 && offsetof(struct page, boundary_step) == 88 &&
                   offsetof(struct page, notice_why) == 104 && offsetof(struct page, begin_step) == 112 &&
                   offsetof(struct page, at_step) == 120 && sizeof(struct page) == 128,
               "src/client/elrun has these offsets");

#define PAGE_TRIES 8 /* a worker may begin a step while that is being forbidden; it waits from then on */

/* What the agent does with pages; what workers wrote is a claim. */
void page_reset(struct page *p, uint64_t round, uint64_t coord, uint32_t rank);

/* Its worker takes its steps in ck.update(): it can be asked to stop behind one of them. */
bool page_listens(const struct page *p);

/* The last step that was begun, -1: none. */
int64_t page_begun(const struct page *p);

/* Where it is while a limit holds that page_freeze() has set: between two steps its state is that behind `live`, and
 * stays so.  begun: the last step that it has begun. */
struct page_stand {
    bool listens, stable;
    int64_t live, begun; /* -1: none */
    uint64_t beat;       /* another one at each sign of life */
};
void page_stand(const struct page *p, struct page_stand *to);

/* What it says it is doing, "stable"; and its last finished step, -1: none. */
const char *page_phase(const struct page *p);
int64_t page_live(const struct page *p);

/* From now on no step beyond it is begun; PAGE_NO_STEP: run on. */
void page_limit(struct page *p, int64_t step);

/* The round's last step; PAGE_NO_STEP: none. */
void page_announce(struct page *p, enum page_why why, int64_t boundary, int64_t deadline_ns);

/* The boundary does not hold any more, the limit does. */
void page_retract(struct page *p);

/* It has done the boundary's step and does not stop there. */
bool page_is_past(const struct page *p, int64_t boundary);

/* No worker of these begins a step beyond the highest that one of them is in, which is returned (-1: none). */
int64_t page_freeze(struct page *const *page, unsigned n);

#endif
