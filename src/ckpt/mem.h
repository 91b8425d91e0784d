/* Memory of the agent that workers map too: sealed against growing and shrinking, so that no worker can make the agent
 * fault; gone when the last holder is gone, whatever happens to whom.  The status page, and the slots. */
#ifndef CKPT_MEM_H
#define CKPT_MEM_H
#include <stdint.h>

#include "util/err.h"

struct ckpt_mem {
    int fd;        /* close-on-exec; sent to the worker, who maps it for writing */
    int reader_fd; /* the same memory, cannot be written through; -1: not asked for yet */
    void *at;      /* mapped here, for reading and writing */
    uint64_t bytes;
};

/* A memfd of this size, all zeros, no page of it there yet.  -1 and *e: the kernel refuses. */
int ckpt_mem_new(struct ckpt_mem *m, const char *name, uint64_t bytes, struct el_err *e);
void ckpt_mem_free(struct ckpt_mem *m); /* of zeros: nothing */

/* Makes every page present, in any thread; takes about a second for each GiB that the kernel must find and clear.
 * -1 and *e: there is not so much memory. */
int ckpt_mem_prefault(const struct ckpt_mem *m, struct el_err *e);

/* A descriptor of it through which nothing can be written or mapped for writing; belongs to m. */
int ckpt_mem_reader(struct ckpt_mem *m, struct el_err *e);

#endif
