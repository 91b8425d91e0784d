#include "ckpt/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define PIECE ((uint64_t)64 << 20) /* one call: a refusal comes soon, and other threads get at the kernel's locks */

int ckpt_mem_new(struct ckpt_mem *m, const char *name, uint64_t bytes, struct el_err *e)
{
    *m = (struct ckpt_mem){.fd = -1, .reader_fd = -1};
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "memfd_create for %s", name);
    void *at = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        el_fail_sys(e, EL_EXIT_OSERR, errno, "%s of %llu bytes%s", name, (unsigned long long)bytes,
                    errno == EFBIG ? ", more than a file may have here (ulimit -f, which counts for memory, too)" : "");
        close(fd);
        return -1;
    }
    madvise(at, bytes, MADV_DONTDUMP); /* a core of the agent is no place for a model */
    madvise(at, bytes, MADV_DONTFORK);
    *m = (struct ckpt_mem){.fd = fd, .reader_fd = -1, .at = at, .bytes = bytes};
    return 0;
}

void ckpt_mem_free(struct ckpt_mem *m)
{
    if (!m->at)
        return;
    munmap(m->at, m->bytes);
    close(m->fd);
    if (m->reader_fd >= 0)
        close(m->reader_fd);
    *m = (struct ckpt_mem){.fd = -1, .reader_fd = -1};
}

/* Kernels without MADV_POPULATE_WRITE.  fallocate() makes the pages, or says that there are none, where a write into
 * the mapping would end the process; the reads then make the mapping. */
static int touch(const struct ckpt_mem *m, uint64_t at, uint64_t n)
{
    if (fallocate(m->fd, 0, (off_t)at, (off_t)n) < 0)
        return -1;
    for (uint64_t i = 0; i < n; i += 4096)
        (void)((volatile const char *)m->at)[at + i];
    return 0;
}

int ckpt_mem_prefault(const struct ckpt_mem *m, struct el_err *e)
{
    for (uint64_t at = 0; at < m->bytes; at += PIECE) {
        uint64_t n = m->bytes - at < PIECE ? m->bytes - at : PIECE;
        int bad = madvise((char *)m->at + at, n, MADV_POPULATE_WRITE);
        if (bad && errno == EINVAL)
            bad = touch(m, at, n);
        if (bad)
            return el_fail_sys(e, EL_EXIT_OSERR, errno == EFAULT ? ENOMEM : errno,
                               "%llu MiB of %llu MiB for snapshots are there, then", (unsigned long long)(at >> 20),
                               (unsigned long long)(m->bytes >> 20));
    }
    return 0;
}

int ckpt_mem_reader(struct ckpt_mem *m, struct el_err *e)
{
    if (m->reader_fd >= 0)
        return m->reader_fd;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
    m->reader_fd = open(path, O_RDONLY | O_CLOEXEC);
    return m->reader_fd >= 0 ? m->reader_fd : el_fail_sys(e, EL_EXIT_OSERR, errno, "%s, for reading", path);
}
