#include <stdio.h>
#include <sys/resource.h>

#include "snapshot/image_sizes.h"
#include "snapshot/shm_slots_private.h"

/* No slot can be larger than half of the budget.  Where addresses are limited, the agent needs some for itself. */
void shm_slots_find_room(struct shm_slots *v)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    v->room = v->budget_bytes / SLOT_TABLE_SLOTS / IMAGE_SIZES_PAGE * IMAGE_SIZES_PAGE;
    v->room = v->room ? v->room : IMAGE_SIZES_PAGE;
    if (limit.rlim_cur == RLIM_INFINITY)
        return;
    uint64_t most = limit.rlim_cur / 2 / (SLOT_TABLE_SLOTS * v->workers) / IMAGE_SIZES_PAGE * IMAGE_SIZES_PAGE;
    v->room_is_short = most < v->room;
    v->room = most < v->room ? most : v->room;
    v->room = v->room ? v->room : IMAGE_SIZES_PAGE;
}

/* --- in a thread --- */

static uint64_t shm_slots_room_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t mib_up(uint64_t bytes)
{
    return (bytes + (1u << 20) - 1) >> 20;
}

/* Both slots will be as large as the larger one: that is what counts. */
static void charge_for(struct shm_slots *v, struct chest *c, unsigned slot, uint64_t wanted)
{
    c->slot[slot].wanted = wanted;
    uint64_t all = SLOT_TABLE_SLOTS * shm_slots_room_larger(c->slot[0].wanted, c->slot[1].wanted);
    v->charged = v->charged - c->charged + all;
    c->charged = all;
}

/* -1 and *e: not within the budget. */
static int shm_slots_room_charge(struct shm_slots_job *j, uint64_t bytes)
{
    struct shm_slots *v = j->vault;
    struct chest *c = j->chest;
    pthread_mutex_lock(&v->lock);
    uint64_t need = SLOT_TABLE_SLOTS * bytes, others = v->charged - c->charged;
    uint64_t have = v->budget_bytes > others ? v->budget_bytes - others : 0;
    bool good = need <= have && bytes <= c->slot[j->slot].mem.room;
    if (good)
        charge_for(v, c, j->slot, bytes);
    pthread_mutex_unlock(&v->lock);
    if (good)
        return 0;
    j->need_bytes = need;
    j->have_bytes = have;
    if (need > have)
        return el_fail(&j->error, EL_EXIT_OSERR,
                       "two slots of %llu MiB are needed and %llu MiB of --ckpt-mem are left on this node for them",
                       (unsigned long long)mib_up(bytes), (unsigned long long)(have >> 20));
    return el_fail(&j->error, EL_EXIT_OSERR, "a slot of %llu MiB is needed and there are addresses for %llu MiB%s",
                   (unsigned long long)mib_up(bytes), (unsigned long long)(c->slot[j->slot].mem.room >> 20),
                   v->room_is_short ? " (ulimit -v)" : "");
}

int shm_slots_room(struct shm_slots_job *j, uint64_t bytes)
{
    struct shm_slots *v = j->vault;
    struct chest_slot *s = &j->chest->slot[j->slot];
    int bad = 0;
    bytes = (bytes + IMAGE_SIZES_PAGE - 1) / IMAGE_SIZES_PAGE * IMAGE_SIZES_PAGE;
    pthread_mutex_lock(&s->growing);
    if (bytes > s->capacity) {
        bad = shm_slots_room_charge(j, bytes);
        if (!bad && (bad = shm_grow(&s->mem, s->capacity, bytes, &j->error)) < 0) {
            pthread_mutex_lock(&v->lock);
            charge_for(v, j->chest, j->slot, s->capacity);
            pthread_mutex_unlock(&v->lock);
        }
        s->capacity = bad ? s->capacity : bytes;
    }
    j->capacity = s->capacity;
    j->file_bytes = s->mem.bytes;
    pthread_mutex_unlock(&s->growing);
    return bad;
}

void shm_slots_shorten(struct shm_slots_job *j, uint64_t bytes)
{
    struct shm_slots *v = j->vault;
    struct chest_slot *s = &j->chest->slot[j->slot];
    pthread_mutex_lock(&s->growing);
    if (bytes < s->capacity) {
        shm_shrink(&s->mem, bytes, s->capacity);
        s->capacity = bytes;
        pthread_mutex_lock(&v->lock);
        charge_for(v, j->chest, j->slot, bytes);
        pthread_mutex_unlock(&v->lock);
    }
    j->capacity = s->capacity;
    pthread_mutex_unlock(&s->growing);
}
