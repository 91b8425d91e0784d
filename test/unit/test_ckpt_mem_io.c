/* Memory that agent and worker share: sealed, present before it is used, readable without being writable; and the sums
 * of what lies in it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/crc32c.h"
#include "snapshot/shm.h"
#include "ckpt/chunk_sums.h"

#include "lib/tap.h"

#define BYTES ((uint64_t)9 << 20)

static void test_sealed(struct shm *m, struct el_err *e)
{
    ok(ftruncate(m->fd, 4096) < 0 && errno == EPERM, "a worker cannot make it shorter");
    ok(ftruncate(m->fd, (off_t)BYTES * 2) < 0 && errno == EPERM, "… nor longer");
    ok(shm_grow(m, 0, BYTES, e) == 0, "its pages are made present");
    struct stat st;
    fstat(m->fd, &st);
    ok((uint64_t)st.st_blocks * 512 == BYTES, "all of them");
}

static void test_death_of_the_writer(struct shm *m)
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

static void test_reader(struct shm *m, struct el_err *e)
{
    int fd = shm_reader(m, e);
    ok(fd >= 0 && shm_reader(m, e) == fd, "one descriptor for readers");
    ok(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES,
       "through which nothing is written");
    void *at = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    ok(at != MAP_FAILED && memcmp(at, m->at, BYTES) == 0, "and all is read");
    munmap(at, BYTES);
}

static void test_sums(struct shm *m)
{
    uint32_t sums[3];
    is_num(chunk_sums_count(BYTES), 3, "9 MiB are three chunks");
    is_num(chunk_sums_count(0), 0, "nothing is none");
    uint32_t whole = chunk_sums_make(m->at, BYTES, sums);
    ok(whole == crc32c(0, m->at, BYTES), "the sum of the whole follows from its pieces");
    ok(chunk_sums_check(m->at, BYTES, sums) == BYTES, "nothing has changed");
    ((char *)m->at)[CHUNK_SUMS_CHUNK * 2 + 5] ^= 1;
    ok(chunk_sums_check(m->at, BYTES, sums) == CHUNK_SUMS_CHUNK * 2, "one bit: its chunk is named");
}

static uint64_t pages_of(const struct shm *m)
{
    struct stat st;
    fstat(m->fd, &st);
    return (uint64_t)st.st_blocks * 512;
}

/* A slot: larger when more is to be held, with what is in it, for everybody who has mapped it. */
static void test_growing(void)
{
    struct shm m;
    struct el_err e = {0};
    ok(shm_reserve(&m, "elrun-test", UINT64_C(1) << 36, &e) == 0, "64 GiB of addresses are had on any host");
    ok(m.bytes == 0 && pages_of(&m) == 0, "and are no memory");
    ok(shm_grow(&m, 0, BYTES, &e) == 0 && pages_of(&m) == BYTES, "it grows: so much is there");
    ok(m.bytes > BYTES && m.bytes <= BYTES + BYTES / 8, "and its file is a little longer");
    char *worker = mmap(NULL, m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    memset(worker, 'w', BYTES);
    const void *at = m.at;
    uint64_t file_bytes = m.bytes;
    ok(shm_grow(&m, BYTES, BYTES + 4096, &e) == 0 && m.bytes == file_bytes && pages_of(&m) == BYTES + 4096,
       "one page more: nobody need map it anew");
    ok(shm_grow(&m, BYTES + 4096, 2 * BYTES, &e) == 0 && m.at == at && pages_of(&m) == 2 * BYTES,
       "twice as much, in the same place");
    ok(((const char *)m.at)[0] == 'w' && ((const char *)m.at)[BYTES - 1] == 'w', "with what was in it");
    ok(ftruncate(m.fd, 4096) < 0 && errno == EPERM, "a worker cannot make it shorter");
    ok(fcntl(m.fd, F_ADD_SEALS, F_SEAL_GROW) < 0 && errno == EPERM, "nor keep it from growing");
    ok(ftruncate(m.fd, (off_t)BYTES * 5) == 0 && shm_grow(&m, 2 * BYTES, 3 * BYTES, &e) == 0 &&
           pages_of(&m) == 3 * BYTES && m.bytes > 3 * BYTES,
       "one that makes it longer hurts nobody");
    munmap(worker, file_bytes);
    shm_free(&m);

    ok(shm_reserve(&m, "elrun-test", 2 * BYTES, &e) == 0 && shm_grow(&m, 0, 2 * BYTES, &e) == 0 && m.bytes == 2 * BYTES,
       "not beyond its addresses");
    shm_free(&m);
}

/* What cannot be had leaves nothing behind. */
static void test_no_memory(void)
{
    struct shm m;
    struct el_err e = {0};
    struct rlimit was, now;
    getrlimit(RLIMIT_FSIZE, &was);
    now = (struct rlimit){BYTES, was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &now);
    ok(shm_reserve(&m, "elrun-test", 4 * BYTES, &e) == 0 && shm_grow(&m, 0, BYTES, &e) == 0 && m.bytes == BYTES,
       "a file that may be just so long is");
    ok(shm_grow(&m, BYTES, 2 * BYTES, &e) < 0 && strstr(e.text, "ulimit -f"), "and no longer");
    ok(pages_of(&m) == BYTES, "with what it had");
    setrlimit(RLIMIT_FSIZE, &was);
    e = (struct el_err){0};
    uint64_t file_bytes = m.bytes;
    ok(ftruncate(m.fd, (off_t)(BYTES + BYTES / 2)) == 0, "a file of which the kernel gives the first pages only");
    m.bytes = m.room; /* as if it had them all */
    bool refused = shm_grow(&m, BYTES, 2 * BYTES, &e) < 0;
    ok(!refused || (e.text[0] && pages_of(&m) == BYTES), "gives these back");
    m.bytes = file_bytes;
    e = (struct el_err){0};
    ok(shm_grow(&m, BYTES, 2 * BYTES, &e) == 0, "later it may grow still");
    shm_free(&m);
}

int main(void)
{
    struct el_err e = {0};
    struct shm m;
    ok(shm_new(&m, "elrun-test", BYTES, &e) == 0, "memory is had");
    test_sealed(&m, &e);
    test_death_of_the_writer(&m);
    test_reader(&m, &e);
    test_sums(&m);
    shm_free(&m);
    shm_free(&m);
    test_growing();
    test_no_memory();
    ok(shm_new(&m, "elrun-test", UINT64_C(1) << 62, &e) < 0 && e.text[0],
       "what cannot be had is refused with its size");
    return done();
}
