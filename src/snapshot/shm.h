/* Memory of the agent that workers map too: sealed against shrinking, so that no worker can make the agent fault; gone
 * when the last holder is gone, whatever happens to whom.  The status page, which has one size for ever, and the slots,
 * which grow where they are. */
#ifndef SNAPSHOT_SHM_H
#define SNAPSHOT_SHM_H
#include <stdint.h>

#include "util/err.h"

struct shm {
    int fd;         /* close-on-exec; sent to the worker, who maps it for writing */
    int reader_fd;  /* the same memory, cannot be written through; -1: not asked for yet */
    void *at;       /* mapped here, for reading and writing; its place for ever */
    uint64_t bytes; /* of the file: it may be longer, for a worker can make it so, and of no use */
    uint64_t room;  /* mapped: nothing is touched between bytes and room */
};

/* A memfd of this size, all zeros, no page of it there yet.  -1 and *e: the kernel refuses. */
int shm_new(struct shm *m, const char *name, uint64_t bytes, struct el_err *e);

/* One that is empty, and may grow up to `room` bytes of addresses: no memory.  -1 and *e: of addresses, too, there are
 * not so many (ulimit -v). */
int shm_reserve(struct shm *m, const char *name, uint64_t room, struct el_err *e);

/* Makes the pages from `from` up to `to` present, whole pages within the room, in any thread; the file is made longer
 * if it is too short, and then by an eighth more, so that who has mapped it need not do so again soon.  Takes about a
 * second for each GiB that the kernel must find and clear.  -1 and *e: there is not so much memory; what there was is
 * given back. */
int shm_grow(struct shm *m, uint64_t from, uint64_t to, struct el_err *e);

/* Gives back the pages from `from` up to `to`; the file stays as long as it is. */
void shm_shrink(const struct shm *m, uint64_t from, uint64_t to);

void shm_free(struct shm *m); /* of zeros: nothing */

/* A descriptor of it through which nothing can be written or mapped for writing; belongs to m. */
int shm_reader(struct shm *m, struct el_err *e);

#endif
