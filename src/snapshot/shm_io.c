#include "snapshot/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define PAGE  ((uint64_t)4096)
#define PIECE ((uint64_t)64 << 20) /* one call: a refusal comes soon, and other threads get at the kernel's locks */

static int shm_fail(const char *name, uint64_t bytes, int number, struct el_err *e)
{
    const char *hint =
        number == EFBIG ? ", more than a file may have here (ulimit -f, which counts for memory, too)" : "";
    return el_fail_sys(e, EL_EXIT_OSERR, number, "%s of %llu bytes%s", name, (unsigned long long)bytes, hint);
}

static int make(struct shm *m, const char *name, uint64_t bytes, uint64_t room, int seals, struct el_err *e)
{
    *m = (struct shm){.fd = -1, .reader_fd = -1};
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "memfd_create for %s", name);
    void *at = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0)
        at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) {
        shm_fail(name, room, errno, e);
        close(fd);
        return -1;
    }
    madvise(at, room, MADV_DONTDUMP); /* a core of the agent is no place for a model */
    madvise(at, room, MADV_DONTFORK);
    *m = (struct shm){.fd = fd, .reader_fd = -1, .at = at, .bytes = bytes, .room = room};
    return 0;
}

int shm_new(struct shm *m, const char *name, uint64_t bytes, struct el_err *e)
{
    return make(m, name, bytes, bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, e);
}

int shm_reserve(struct shm *m, const char *name, uint64_t room, struct el_err *e)
{
    return make(m, name, 0, room, F_SEAL_SHRINK | F_SEAL_SEAL, e);
}

void shm_free(struct shm *m)
{
    if (!m->at)
        return;
    munmap(m->at, m->room);
    close(m->fd);
    if (m->reader_fd >= 0)
        close(m->reader_fd);
    *m = (struct shm){.fd = -1, .reader_fd = -1};
}

/* Kernels without MADV_POPULATE_WRITE.  fallocate() makes the pages, or says that there are none, where a write into
 * the mapping would end the process; the reads then make the mapping. */
static int touch(const struct shm *m, uint64_t at, uint64_t n)
{
    if (fallocate(m->fd, 0, (off_t)at, (off_t)n) < 0)
        return -1;
    for (uint64_t i = 0; i < n; i += PAGE)
        (void)((volatile const char *)m->at)[at + i];
    return 0;
}

static int prefault(const struct shm *m, uint64_t from, uint64_t to, struct el_err *e)
{
    for (uint64_t at = from; at < to; at += PIECE) {
        uint64_t n = to - at < PIECE ? to - at : PIECE;
        int bad = madvise((char *)m->at + at, n, MADV_POPULATE_WRITE);
        if (bad && errno == EINVAL)
            bad = touch(m, at, n);
        if (bad)
            return el_fail_sys(e, EL_EXIT_OSERR, errno == EFAULT ? ENOMEM : errno,
                               "%llu MiB of %llu MiB for snapshots are there, then", (unsigned long long)(at >> 20),
                               (unsigned long long)(to >> 20));
    }
    return 0;
}

/* A worker may have made it longer: that is no reason to fail, and it cannot be made shorter. */
static int lengthen(struct shm *m, uint64_t to, struct el_err *e)
{
    struct stat st;
    uint64_t ahead = to + to / 8 / PAGE * PAGE;
    ahead = ahead < m->room ? ahead : m->room;
    if (fstat(m->fd, &st) < 0)
        return shm_fail("a slot for snapshots", to, errno, e);
    uint64_t there = (uint64_t)st.st_size;
    if (there >= ahead || ftruncate(m->fd, (off_t)ahead) == 0)
        m->bytes = ahead;
    else if (there >= to || ftruncate(m->fd, (off_t)to) == 0)
        m->bytes = to;
    else
        return shm_fail("a slot for snapshots", to, errno, e);
    return 0;
}

int shm_grow(struct shm *m, uint64_t from, uint64_t to, struct el_err *e)
{
    if (to > m->bytes && lengthen(m, to, e) < 0)
        return -1;
    if (prefault(m, from, to, e) == 0)
        return 0;
    shm_shrink(m, from, to);
    return -1;
}

void shm_shrink(const struct shm *m, uint64_t from, uint64_t to)
{
    (void)fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

int shm_reader(struct shm *m, struct el_err *e)
{
    if (m->reader_fd >= 0)
        return m->reader_fd;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
    m->reader_fd = open(path, O_RDONLY | O_CLOEXEC);
    return m->reader_fd >= 0 ? m->reader_fd : el_fail_sys(e, EL_EXIT_OSERR, errno, "%s, for reading", path);
}
