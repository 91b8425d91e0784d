/* Memory that agent and worker share: sealed, present before it is used, readable without being writable; and the sums
 * of what lies in it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/crc32c.h"
#include "ckpt/mem.h"
#include "ckpt/sums.h"

#include "lib/tap.h"

#define BYTES ((uint64_t)9 << 20)

static void test_sealed(struct ckpt_mem *m, struct el_err *e)
{
    ok(ftruncate(m->fd, 4096) < 0 && errno == EPERM, "a worker cannot make it shorter");
    ok(ftruncate(m->fd, (off_t)BYTES * 2) < 0 && errno == EPERM, "… nor longer");
    ok(ckpt_mem_prefault(m, e) == 0, "its pages are made present");
    struct stat st;
    fstat(m->fd, &st);
    ok((uint64_t)st.st_blocks * 512 == BYTES, "all of them");
}

static void test_death_of_the_writer(struct ckpt_mem *m)
{
    pid_t pid = fork();
    if (pid == 0) { /* MADV_DONTFORK: the child has the descriptor alone, as a worker */
        char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        memset(at, 'x', BYTES);
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
    const char *at = m->at;
    ok(at[0] == 'x' && at[BYTES - 1] == 'x', "what a worker wrote outlives its SIGKILL");
}

static void test_reader(struct ckpt_mem *m, struct el_err *e)
{
    int fd = ckpt_mem_reader(m, e);
    ok(fd >= 0 && ckpt_mem_reader(m, e) == fd, "one descriptor for readers");
    ok(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES,
       "through which nothing is written");
    void *at = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    ok(at != MAP_FAILED && memcmp(at, m->at, BYTES) == 0, "and all is read");
    munmap(at, BYTES);
}

static void test_sums(struct ckpt_mem *m)
{
    uint32_t sums[3];
    is_num(sums_count(BYTES), 3, "9 MiB are three chunks");
    is_num(sums_count(0), 0, "nothing is none");
    uint32_t whole = sums_make(m->at, BYTES, sums);
    ok(whole == crc32c(0, m->at, BYTES), "the sum of the whole follows from its pieces");
    ok(sums_check(m->at, BYTES, sums) == BYTES, "nothing has changed");
    ((char *)m->at)[SUMS_CHUNK * 2 + 5] ^= 1;
    ok(sums_check(m->at, BYTES, sums) == SUMS_CHUNK * 2, "one bit: its chunk is named");
}

int main(void)
{
    struct el_err e = {0};
    struct ckpt_mem m;
    ok(ckpt_mem_new(&m, "elrun-test", BYTES, &e) == 0, "memory is had");
    test_sealed(&m, &e);
    test_death_of_the_writer(&m);
    test_reader(&m, &e);
    test_sums(&m);
    ckpt_mem_free(&m);
    ckpt_mem_free(&m);
    ok(ckpt_mem_new(&m, "elrun-test", UINT64_C(1) << 62, &e) < 0 && e.text[0],
       "what cannot be had is refused with its size");
    return done();
}
