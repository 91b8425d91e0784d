#include "watch.h"

#include <pthread.h>
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
    double until_ms;
    void (*abort)(void *);
    void *abort_ctx;
    bool aborted;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .stage = "start"};

double watch_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
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

static void __attribute__((noreturn)) give_up(void)
{
    char text[160];
    text_put(text, sizeof text, "nothing for %g s: the step \"%s\" did not end", watch.limit_ms / 1000.0, watch.stage);
    log_relay();
    const struct fault_row *said = fault_phrase(log_warnings());
    fault_say(watch.stage, 0, "deadline", FAULT_TIMEOUT, text,
              said ? said->advice : "see the other end's report; if both ends hang, the link or its firewall");
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
            give_up(); /* with the lock: the first thread, if it comes back now, waits here for the end */
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
    watch.until_ms = watch_now_ms() + limit_ms;
    pthread_mutex_unlock(&watch.lock);
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
