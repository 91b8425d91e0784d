/* Pool and sinks on real descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/tap.h"
#include "loop/pool.h"
#include "loop/sink.h"

static struct loop *loop;
static int stop_after;

static void stop(void)
{
    if (--stop_after == 0)
        loop_stop(loop);
}

static void on_limit(void *ctx)
{
    *(int *)ctx = 1;
    loop_stop(loop);
}

/* Runs the loop until stop() was called n times; false when that does not come for 20 s. */
static int run_until(int n)
{
    int late = 0;
    stop_after = n;
    struct loop_timer *t = loop_timer_new(loop, on_limit, &late);
    loop_timer_at(t, loop_clock() + EL_SEC(20));
    loop_run(loop);
    loop_timer_free(t);
    return !late;
}

/* --- pool --- */
struct job {
    struct pool_job job;
    pthread_t worked, answered;
    int gate; /* read end that must close first, -1: none */
};

static void work(void *ctx)
{
    struct job *j = ctx;
    char c;
    if (j->gate >= 0 && read(j->gate, &c, 1) < 0)
        abort();
    j->worked = pthread_self();
}

static void answered(void *ctx)
{
    struct job *j = ctx;
    j->answered = pthread_self();
    stop();
}

static void test_pool(void)
{
    struct pool *p = pool_new(loop, 2, NULL);
    static struct job job[50];
    int gate[2];
    ok(p && pipe2(gate, O_CLOEXEC) == 0, "pool");
    for (int i = 0; i < 50; i++) {
        job[i] = (struct job){.job = {.work = work, .done = answered, .ctx = &job[i]}, .gate = i == 0 ? gate[0] : -1};
        if (pool_run(p, &job[i].job, NULL) < 0)
            ok(0, "a job is taken");
    }
    is_num(pool_pending(p), 50, "all pending");
    ok(run_until(49), "one stuck job does not hold up the others");
    int good = 1;
    for (int i = 1; i < 50; i++)
        good &= pthread_equal(job[i].answered, pthread_self()) && !pthread_equal(job[i].worked, pthread_self());
    ok(good, "work elsewhere, answers here");
    is_num(pool_pending(p), 1, "the stuck one is left");
    ok(!pool_free(p), "a stuck job does not block the end");
    close(gate[1]); /* the other end is the stuck job's */
    p = pool_new(loop, 2, NULL);
    ok(pool_free(p), "a pool that never ran");
}

/* --- sink --- */
static int errors, error_fd, error_sys, rooms;
static size_t flushed_left;
static void on_error(void *ctx, int fd, int sys)
{
    (void)ctx;
    errors++;
    error_fd = fd;
    error_sys = sys;
    stop();
}
static void on_room(void *ctx)
{
    (void)ctx;
    rooms++;
    stop();
}
static void on_flushed(void *ctx, size_t left)
{
    (void)ctx;
    flushed_left = left;
    stop();
}

static size_t read_all(int fd, char *to, size_t size)
{
    size_t got = 0;
    for (ssize_t n; got < size && (n = read(fd, to + got, size - got)) > 0;)
        got += (size_t)n;
    return got;
}

static void test_order(void)
{
    int p[2];
    ok(pipe2(p, O_CLOEXEC) == 0, "pipe");
    struct sink *s = sink_new(loop, 1 << 20, NULL);
    char want[5000] = "", got[5000];
    for (int i = 0; i < 1000; i++) {
        char text[8];
        int n = snprintf(text, sizeof text, "%d,", i % 1000);
        sink_put(s, p[1], text, (size_t)n);
        strcat(want, text);
    }
    sink_close(s, p[1]);
    sink_flush(s, loop_clock() + EL_SEC(10), on_flushed, NULL);
    ok(run_until(1), "flushed");
    is_num(flushed_left, 0, "nothing left");
    size_t n = read_all(p[0], got, sizeof got);
    ok(n == strlen(want) && memcmp(got, want, n) == 0, "in order, and closed behind it");
    close(p[0]);
    ok(sink_free(s), "freed");
}

static void test_limit(int nonblock)
{
    int p[2];
    ok(pipe2(p, O_CLOEXEC) == 0, nonblock ? "non-blocking pipe" : "blocking pipe");
    if (nonblock)
        fcntl(p[1], F_SETFL, O_NONBLOCK);
    struct sink *s = sink_new(loop, 100000, NULL);
    struct sink_watch w = {.room = on_room, .error = on_error};
    sink_watch(s, &w);
    static char block[10000], got[1000000];
    memset(block, 'x', sizeof block);
    size_t taken = 0;
    for (int i = 0; i < 1000 && !sink_full(s); i++)
        taken += sink_put(s, p[1], block, sizeof block) == 0 ? sizeof block : 0;
    ok(sink_full(s) && taken >= 100000, "a reader that stands still fills the queue");
    ok(sink_stalled_since(s) != EL_NEVER, "and shows as stalled");
    int refused = 0;
    for (int i = 0; i < 1000 && !refused; i++)
        if (sink_put(s, p[1], block, sizeof block) < 0)
            refused = 1;
        else
            taken += sizeof block;
    ok(refused && taken < 600000, "at four times the limit a put is refused");
    flushed_left = 0;
    sink_flush(s, loop_clock() + EL_MS(30), on_flushed, NULL);
    ok(run_until(1) && flushed_left > 0, "a flush ends at its deadline");
    rooms = 0;
    size_t n = 0;
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    while (n < taken) {
        ssize_t r = read(p[0], got, sizeof got);
        if (r > 0)
            n += (size_t)r;
        else
            usleep(1000);
    }
    is_num(n, taken, "all that was taken arrives");
    ok(run_until(1) && rooms == 1 && !sink_full(s), "there is room again, said once");
    close(p[0]);
    errors = 0;
    sink_put(s, p[1], "a", 1);
    ok(run_until(1) && error_sys == EPIPE && error_fd == p[1], "a closed reader is reported");
    sink_put(s, p[1], "b", 1);
    sink_close(s, p[1]);
    sink_flush(s, EL_NEVER, on_flushed, NULL);
    ok(run_until(1) && errors == 1, "once");
    ok(sink_free(s), "freed");
}

static void test_full_disk(void)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        skip("full disk", "no /dev/full");
        return;
    }
    struct sink *s = sink_new(loop, 100000, NULL);
    struct sink_watch w = {.error = on_error};
    sink_watch(s, &w);
    errors = 0;
    sink_put(s, fd, "a", 1);
    ok(run_until(1) && error_sys == ENOSPC, "a full disk is reported");
    sink_put(s, fd, "b", 1);
    sink_flush(s, EL_NEVER, on_flushed, NULL);
    ok(run_until(1) && errors == 1, "once");
    sink_close(s, fd);
    sink_free(s);
}

/* A disk that fills up in the middle of a line and is freed again, by the limit on the size of a file. */
static void test_lines(void)
{
    char text[64] = "";
    struct rlimit old, small = {10, RLIM_INFINITY};
    int fd = memfd_create("lines", MFD_CLOEXEC);
    struct sink *s = sink_new(loop, 100000, NULL);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    ok(s && fd >= 0 && setrlimit(RLIMIT_FSIZE, &small) == 0, "a file of ten bytes");
    sink_keep_lines(s);
    sink_put(s, fd, "first\nsecond\n", 13);
    sink_flush(s, EL_NEVER, on_flushed, NULL);
    ok(run_until(1), "a line is torn");
    is_num(sink_lines(s), 1, "and does not count");
    setrlimit(RLIMIT_FSIZE, &old);
    sink_put(s, fd, "third\n", 6);
    sink_put(s, fd, "fourth\n", 7);
    sink_flush(s, EL_NEVER, on_flushed, NULL);
    ok(run_until(1), "there is room again");
    ok(pread(fd, text, sizeof text - 1, 0) > 0, "read back");
    is_str(text, "first\nseco\nthird\nfourth\n", "the next line stands alone");
    is_num(sink_lines(s), 3, "three lines were written");
    ok(sink_free(s), "ended");
    close(fd);
}

static void test_footer(void)
{
    int p[2];
    char got[200] = "";
    ok(pipe2(p, O_CLOEXEC) == 0, "pipe");
    struct sink *s = sink_new(loop, 100000, NULL);
    sink_footer(s, p[1], "S1");
    size_t n = 0;
    while (n < 2 && strstr(got, "S1") == NULL)
        n += (size_t)read(p[0], got + n, sizeof got - 1 - n);
    is_str(got, "S1", "the footer is drawn");
    memset(got, 0, sizeof got);
    sink_put(s, p[1], "line\n", 5);
    for (n = 0; !strstr(got, "S1");)
        n += (size_t)read(p[0], got + n, sizeof got - 1 - n);
    is_str(got, "\r\033[Kline\nS1", "wiped before a line and drawn again behind it");
    memset(got, 0, sizeof got);
    sink_put(s, p[1], "part", 4);
    for (n = 0; !strstr(got, "part");)
        n += (size_t)read(p[0], got + n, sizeof got - 1 - n);
    sink_footer(s, p[1], "S2");
    sink_put(s, p[1], "ial\n", 4);
    for (; !strstr(got, "S2");)
        n += (size_t)read(p[0], got + n, sizeof got - 1 - n);
    is_str(got, "\r\033[Kpartial\nS2", "not drawn behind a part of a line");
    sink_flush(s, EL_NEVER, on_flushed, NULL);
    ok(run_until(1), "flushed");
    memset(got, 0, sizeof got);
    ok(read(p[0], got, sizeof got - 1) > 0, "last bytes");
    is_str(got, "\r\033[K", "taken away at the end");
    sink_close(s, p[1]);
    close(p[0]);
    sink_free(s);
}

static void test_stuck(void)
{
    int p[2];
    ok(pipe2(p, O_CLOEXEC) == 0, "pipe");
    struct sink *s = sink_new(loop, 1 << 20, NULL);
    static char block[300000];
    sink_put(s, p[1], block, sizeof block);
    usleep(20000);
    ok(!sink_free(s), "a writer in a blocking write is left alone");
    close(p[0]); /* EPIPE: the writer comes back and frees itself; p[1] is its own now */
    usleep(20000);
}

int main(void)
{
    loop = loop_new(NULL);
    test_pool();
    test_order();
    test_limit(0);
    test_limit(1);
    test_full_disk();
    test_lines();
    test_footer();
    test_stuck();
    loop_free(loop);
    return done();
}
