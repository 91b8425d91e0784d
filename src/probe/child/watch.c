#include "watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "say.h"

#define LOOK_US        20000
#define STOOD_STILL_MS 1000 /* a gap between two looks: this process was stopped, which is nobody's fault */
#define STATUS_LATE    124

static struct {
    pthread_mutex_t lock;
    const char *stage;
    unsigned limit_ms, grace_ms;
    double until_ms, began_ms, began_cpu_ms;
    void (*abort)(void *);
    void *abort_ctx;
    bool aborted;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .stage = "start"};

static double clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

double watch_now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

void watch_sleep_us(unsigned us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

static void *abort_main(void *arg)
{
    (void)arg;
    watch.abort(watch.abort_ctx);
    __atomic_store_n(&watch.aborted, true, __ATOMIC_RELEASE);
    return NULL;
}

/* How often the first thread has gone to sleep by itself; -1: it is not running now, or this cannot be known. */
static long sleeps_of_runner(void)
{
    static const char running[] = "State:\tR", sleeps[] = "\nvoluntary_ctxt_switches:\t";
    char path[64], text[4096];
    text_put(path, sizeof path, "/proc/self/task/%d/status", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, sleeps);
    if (!strstr(text, running) || !at)
        return -1;
    long count = 0;
    for (at += sizeof sleeps - 1; *at >= '0' && *at <= '9'; at++)
        count = count * 10 + (*at - '0');
    return count;
}

/* Did it want to run all the time, while other programs or a quota had the processor?  That says nothing about the GPU
 * or the network.  A thread that waits for something wakes now and then: it would go to sleep again between two looks.
 * The share of a processor that it got, in per cent; 0: no. */
static unsigned starved_percent(void)
{
    enum { LOOKS = 5 };
    double wall = watch_now_ms() - watch.began_ms, cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - watch.began_cpu_ms;
    long sleeps = sleeps_of_runner();
    for (int i = 0; i < LOOKS && sleeps >= 0; i++) {
        watch_sleep_us(LOOK_US);
        if (sleeps_of_runner() != sleeps)
            sleeps = -1;
    }
    return sleeps >= 0 && cpu < wall / 2 ? (unsigned)(cpu * 100 / wall) + 1 : 0;
}

static void __attribute__((noreturn)) watch_give_up(void)
{
    char text[200];
    unsigned percent = starved_percent();
    log_relay();
    if (percent) {
        text_put(text, sizeof text,
                 "the step \"%s\" did not end within %g s, in which this process got %u %% of a processor", watch.stage,
                 watch.limit_ms / 1000.0, percent);
        fault_say(watch.stage, 0, "deadline", FAULT_STALLED, text,
                  "see what else runs here (top), and the cgroup's quota (cpu.max)");
        _exit(STATUS_LATE);
    }
    text_put(text, sizeof text, "nothing for %g s: the step \"%s\" did not end", watch.limit_ms / 1000.0, watch.stage);
    const struct fault_row *said = fault_phrase(log_warnings());
    fault_say(watch.stage, 0, "deadline", FAULT_TIMEOUT, text,
              said          ? said->advice
              : watch.abort ? "see the other end's report; if both ends hang, the link or its firewall"
                            : "the GPU or its driver does not answer: look at dmesg, restart the host");
    pthread_t thread;
    if (watch.abort && pthread_create(&thread, NULL, abort_main, NULL) == 0) {
        double end = watch_now_ms() + watch.grace_ms;
        while (!__atomic_load_n(&watch.aborted, __ATOMIC_ACQUIRE) && watch_now_ms() < end)
            watch_sleep_us(LOOK_US);
    }
    log_relay();
    _exit(STATUS_LATE);
}

static void *watch_main(void *arg)
{
    (void)arg;
    for (double last = watch_now_ms();;) {
        watch_sleep_us(LOOK_US);
        log_relay();
        double now = watch_now_ms();
        pthread_mutex_lock(&watch.lock);
        if (now - last > STOOD_STILL_MS)
            watch.until_ms += now - last;
        bool late = watch.limit_ms > 0 && now > watch.until_ms;
        last = now;
        if (late)
            watch_give_up(); /* with the lock, which watch_end() of the first thread wants */
        pthread_mutex_unlock(&watch.lock);
    }
    return NULL;
}

void watch_start(unsigned grace_ms)
{
    watch.grace_ms = grace_ms;
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, watch_main, NULL);
    if (rc != 0)
        fault_die_plain("start", FAULT_SYSTEM, "raise the limit of processes (ulimit -u)",
                        "cannot start a thread: errno %d", rc);
}

void watch_step(const char *stage, unsigned limit_ms)
{
    pthread_mutex_lock(&watch.lock);
    watch.stage = stage;
    watch.limit_ms = limit_ms;
    watch.began_ms = watch_now_ms();
    watch.began_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    watch.until_ms = watch.began_ms + limit_ms;
    pthread_mutex_unlock(&watch.lock);
}

void watch_end(void)
{
    pthread_mutex_lock(&watch.lock);
}

const char *watch_stage(void)
{
    return watch.stage;
}

void watch_abort(void (*fn)(void *), void *ctx)
{
    pthread_mutex_lock(&watch.lock);
    watch.abort = fn;
    watch.abort_ctx = ctx;
    pthread_mutex_unlock(&watch.lock);
}
