#include "snapshot/worker_status.h"

#include "ckpt/layout.h"

/* Both sides write words of their own and then read the other's, so each access is one of the whole word, and a fence
 * stands between: of a limit and a step that is begun at the same time, at least one side sees the other's. */
#define LOAD(p, field)     __atomic_load_n(&(p)->field, __ATOMIC_SEQ_CST)
#define STORE(p, field, v) __atomic_store_n(&(p)->field, (v), __ATOMIC_SEQ_CST)

void worker_status_reset(struct worker_status *p, uint64_t round, uint64_t coord, uint32_t rank)
{
    *p = (struct worker_status){.magic = WORKER_STATUS_MAGIC,
                                .version = WORKER_STATUS_VERSION,
                                .rank = rank,
                                .round = round,
                                .coord = coord,
                                .live_step = -1,
                                .begin_step = -1,
                                .at_step = -1,
                                .limit_step = WORKER_STATUS_NO_STEP,
                                .boundary_step = WORKER_STATUS_NO_STEP};
}

/* It is no more than a claim: what is no step that a snapshot may have is none. */
static int64_t claimed(int64_t step)
{
    return step < -1 || step > CKPT_STEP_MAX ? -1 : step;
}

bool worker_status_listens(const struct worker_status *p)
{
    return LOAD(p, phase) != WORKER_STATUS_INIT;
}

int64_t worker_status_begun(const struct worker_status *p)
{
    int64_t live = LOAD(p, live_step), begun = LOAD(p, begin_step);
    return claimed(LOAD(p, phase) == WORKER_STATUS_UPDATING && begun > live ? begun : live);
}

void worker_status_stand(const struct worker_status *p, struct worker_status_stand *to)
{
    *to = (struct worker_status_stand){.live = -1, .begun = -1, .beat = LOAD(p, heartbeat_ns)};
    for (unsigned tries = 0; tries < WORKER_STATUS_TRIES; tries++) {
        uint64_t seq = LOAD(p, seq);
        uint32_t phase = LOAD(p, phase);
        int64_t begin = LOAD(p, begin_step), live = LOAD(p, live_step);
        bool inside = phase == WORKER_STATUS_UPDATING && begin <= LOAD(p, limit_step); /* beyond it, it waits */
        /* A step that cannot be one was not seen when a limit was set: whether it is in it is not known. */
        bool counts = live <= CKPT_STEP_MAX && (phase != WORKER_STATUS_UPDATING || begin <= CKPT_STEP_MAX);
        to->listens = phase != WORKER_STATUS_INIT && phase != WORKER_STATUS_EXITING && counts;
        to->live = claimed(live);
        to->begun = inside && begin > to->live ? claimed(begin) : to->live;
        to->stable = to->listens && !inside;
        if (!(seq & 1) && LOAD(p, seq) == seq)
            return;
    }
    to->stable = false; /* it is writing */
}

const char *worker_status_phase(const struct worker_status *p)
{
    static const char *const names[] = {"init", "stable", "updating", "snapshot", "blocked", "exiting"};
    uint32_t phase = LOAD(p, phase);
    return phase < sizeof names / sizeof names[0] ? names[phase] : "";
}

int64_t worker_status_live(const struct worker_status *p)
{
    return claimed(LOAD(p, live_step));
}

void worker_status_limit(struct worker_status *p, int64_t step)
{
    STORE(p, limit_step, step);
}

void worker_status_announce(struct worker_status *p, enum notice_why why, int64_t boundary, int64_t deadline_ns)
{
    STORE(p, notice_deadline_ns, deadline_ns);
    STORE(p, notice_why, (uint32_t)why);
    STORE(p, limit_step, boundary);
    STORE(p, boundary_step, boundary);
}

void worker_status_retract(struct worker_status *p)
{
    STORE(p, boundary_step, WORKER_STATUS_NO_STEP);
}

bool worker_status_is_past(const struct worker_status *p, int64_t boundary)
{
    if (LOAD(p, seq) & 1)
        return false; /* it is about to say whether it stops: look again */
    return worker_status_listens(p) && LOAD(p, live_step) >= boundary && LOAD(p, at_step) < boundary;
}

int64_t worker_status_freeze(struct worker_status *const *page, unsigned n)
{
    int64_t limit = -1;
    for (unsigned tries = 0; tries < WORKER_STATUS_TRIES; tries++) {
        int64_t before = limit;
        for (unsigned i = 0; i < n; i++) {
            int64_t begun = worker_status_listens(page[i]) ? worker_status_begun(page[i]) : -1;
            limit = begun > limit ? begun : limit;
        }
        if (tries && limit == before)
            break; /* nobody began a step while it was being forbidden */
        for (unsigned i = 0; i < n; i++)
            worker_status_limit(page[i], limit);
    }
    return limit;
}
