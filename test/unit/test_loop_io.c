/* The loop with a real kernel under it.  No test waits for a fixed time: each ends when its last event has come; a
 * guard timer of half a minute only turns a hang into a failure. */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"

static struct loop *loop;
static struct loop_timer *guard;

static void stop(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

static void begin(void)
{
    struct el_err e = {0};
    loop = loop_new(&e);
    guard = loop ? loop_timer_new(loop, stop, NULL) : NULL;
    if (!guard)
        abort();
    loop_timer_at(guard, loop_clock() + EL_SEC(30));
}

static void finish(void)
{
    loop_timer_free(guard);
    loop_free(loop);
}

/* --- timers --- */

#define TIMERS 20

struct alarm {
    struct loop_timer *t;
    el_usec when;
    unsigned rounds;
};
static unsigned rung, early;

static void on_alarm(void *ctx)
{
    struct alarm *a = ctx;
    early += loop_clock() < a->when;
    if (++rung == TIMERS)
        loop_stop(loop);
}

static void test_timers(void)
{
    begin();
    struct alarm a[TIMERS];
    el_usec start = loop_clock();
    for (unsigned i = 0; i < TIMERS; i++) {
        a[i].t = loop_timer_new(loop, on_alarm, &a[i]);
        a[i].when = start + EL_MS(1 + (i * 7) % TIMERS) + 300;
        loop_timer_at(a[i].t, a[i].when);
    }
    loop_run(loop);
    is_num(rung, TIMERS, "every timer comes");
    is_num(early, 0, "none is early by the monotonic clock");
    rung = TIMERS - 1;
    a[0].when = start; /* long ago */
    loop_timer_at(a[0].t, a[0].when);
    loop_timer_at(a[1].t, loop_clock() + EL_MS(1));
    loop_timer_at(a[1].t, EL_NEVER);
    loop_run(loop);
    is_num(rung, TIMERS, "a time in the past comes at once, a disarmed timer never");
    for (unsigned i = 0; i < TIMERS; i++)
        loop_timer_free(a[i].t);
    finish();
}

static void on_again(void *ctx)
{
    struct alarm *a = ctx;
    early += loop_clock() < a->when;
    if (++a->rounds == 5) {
        loop_timer_free(a->t); /* inside its own callback */
        a->t = NULL;
        loop_stop(loop);
        return;
    }
    a->when = loop_clock() + 500 * a->rounds;
    loop_timer_at(a->t, a->when);
}

static void test_rearm(void)
{
    begin();
    early = 0;
    struct alarm a = {.when = loop_clock()};
    a.t = loop_timer_new(loop, on_again, &a);
    loop_timer_at(a.t, a.when);
    loop_run(loop);
    ok(a.rounds == 5 && !a.t, "a timer arms itself again in its own callback, and frees itself");
    is_num(early, 0, "never early");
    finish();
}

/* --- descriptors --- */

struct end {
    int fd[2];
    struct loop_fd *w;
    struct end *other;
    unsigned calls, turn;
};
static unsigned turns;

static void end_open(struct end *p, loop_fd_fn *fn, unsigned events)
{
    if (pipe2(p->fd, O_CLOEXEC | O_NONBLOCK) < 0)
        abort();
    p->w = loop_fd_new(loop, p->fd[0], events, fn, p);
}

static void end_close(struct end *p)
{
    loop_fd_free(p->w);
    close(p->fd[0]);
    close(p->fd[1]);
}

static void end_fill(struct end *p)
{
    if (write(p->fd[1], "x", 1) != 1)
        abort();
}

static void on_free_both(void *ctx, unsigned events)
{
    struct end *p = ctx;
    p->calls += events == LOOP_READ;
    loop_fd_free(p->w);
    loop_fd_free(p->other->w); /* ready in the same turn, too */
    p->w = p->other->w = NULL;
}

static void test_free(void)
{
    begin();
    struct end a = {.other = NULL}, b = {.other = &a};
    a.other = &b;
    end_open(&a, on_free_both, LOOP_READ);
    end_open(&b, on_free_both, LOOP_READ);
    end_fill(&a);
    end_fill(&b);
    struct loop_timer *t = loop_timer_new(loop, stop, NULL);
    loop_timer_at(t, loop_clock() + EL_MS(5));
    loop_run(loop);
    is_num(a.calls + b.calls, 1, "whoever is first frees both: the other is not called in the same turn");
    loop_timer_free(t);
    end_close(&a);
    end_close(&b);
    finish();
}

static void on_ready(void *ctx, unsigned events)
{
    struct end *p = ctx;
    char c;
    p->calls += events == LOOP_READ && read(p->fd[0], &c, 1) == 1;
    loop_fd_set(p->w, 0); /* enough for now */
    loop_fd_set(p->other->w, LOOP_READ);
}

static void on_last(void *ctx, unsigned events)
{
    struct end *p = ctx;
    (void)events;
    p->calls++;
    loop_stop(loop);
}

static void test_pause(void)
{
    begin();
    struct end a = {.other = NULL}, b = {.other = NULL};
    end_open(&a, on_ready, LOOP_READ);
    end_open(&b, on_last, 0);
    a.other = &b;
    end_fill(&a);
    end_fill(&a);
    end_fill(&b);
    loop_run(loop);
    ok(a.calls == 1 && b.calls == 1,
       "a paused watcher is silent although there is more; one made paused wakes up when set");
    loop_fd_set(b.w, 0);
    loop_fd_set(a.w, LOOP_READ);
    loop_run(loop);
    is_num(a.calls, 2, "what was there while it was paused is not lost");
    end_close(&a);
    end_close(&b);
    finish();
}

static void on_turn_end(void *ctx)
{
    struct end *p = ctx;
    turns++;
    if (p->calls && !p->turn)
        p->turn = turns;
    if (p->calls == 2)
        loop_stop(loop);
}

static void on_byte(void *ctx, unsigned events)
{
    struct end *p = ctx;
    char c;
    p->calls += events == LOOP_READ && read(p->fd[0], &c, 1) == 1;
}

static void test_turn_end(void)
{
    begin();
    struct end a = {.other = NULL};
    end_open(&a, on_byte, LOOP_READ);
    turns = 0;
    loop_at_turn_end(loop, on_turn_end, &a);
    end_fill(&a);
    end_fill(&a);
    loop_run(loop);
    ok(a.calls == 2 && a.turn > 0 && turns == a.turn + 1,
       "the end of a turn is called once for each, after the callbacks");
    end_close(&a);
    finish();
}

struct bits {
    struct loop_chore *chore;
    struct loop_timer *timer;
    unsigned done, ends;
};

static void on_bit(void *ctx)
{
    struct bits *b = ctx;
    if (b->done++ != b->ends)
        b->done = 100;
    if (b->done < 3)
        return;
    loop_chore_set(b->chore, false);
    loop_timer_at(b->timer, loop_now(loop) + EL_MS(1));
}

static void on_bits_end(void *ctx)
{
    ((struct bits *)ctx)->ends++;
}

static void on_bits_over(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

/* Nothing else happens in this loop: it would wait for ever. */
static void test_chore(void)
{
    begin();
    struct bits b = {.chore = loop_chore_new(loop, on_bit, &b), .timer = loop_timer_new(loop, on_bits_over, NULL)};
    loop_at_turn_end(loop, on_bits_end, &b);
    loop_chore_set(b.chore, true);
    loop_run(loop);
    is_num(b.done, 3, "a chore is called in each turn, before the end of it, until it is turned off");
    loop_timer_free(b.timer);
    loop_chore_free(b.chore);
    finish();
}

/* --- posts --- */

#define THREADS 4
#define POSTS   2000

struct note {
    struct loop_post post;
    unsigned thread, number;
};
static unsigned posted, disorder, strangers, next_of[THREADS];
static pthread_t home;

static void on_note(void *ctx)
{
    struct note *n = ctx;
    disorder += n->number != next_of[n->thread]++;
    strangers += !pthread_equal(pthread_self(), home);
    free(n); /* the node is the callee's from here on */
    if (++posted == THREADS * POSTS)
        loop_stop(loop);
}

static void *write_notes(void *ctx)
{
    unsigned thread = *(const unsigned *)ctx;
    for (unsigned i = 0; i < POSTS; i++) {
        struct note *n = calloc(1, sizeof *n);
        if (!n)
            abort();
        *n = (struct note){.post = {.fn = on_note, .ctx = n}, .thread = thread, .number = i};
        loop_post(loop, &n->post);
    }
    return NULL;
}

static void test_posts(void)
{
    begin();
    home = pthread_self();
    pthread_t t[THREADS];
    unsigned id[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        id[i] = i;
        if (pthread_create(&t[i], NULL, write_notes, &id[i]))
            abort();
    }
    loop_run(loop);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    is_num(posted, THREADS * POSTS, "every post of four threads arrives");
    is_num(disorder, 0, "in order for each thread");
    is_num(strangers, 0, "in the loop's thread");
    finish();
}

static void post_again(void *ctx)
{
    struct note *n = ctx;
    if (++n->number == 3)
        loop_stop(loop);
    else
        loop_post(loop, &n->post); /* has run: free for the next */
}

static void test_post_in_post(void)
{
    begin();
    struct note n = {.post = {.fn = post_again, .ctx = &n}};
    loop_post(loop, &n.post);
    loop_run(loop);
    is_num(n.number, 3, "a node may be posted again in its own callback");
    finish();
}

/* --- signals and children --- */

#define CHILDREN 200

static unsigned usr1, reaped, wrong_code, wrong_sender;
static pid_t child[CHILDREN];

static void reap_all(void)
{
    siginfo_t si;
    for (;;) {
        si.si_pid = 0;
        if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || !si.si_pid)
            return;
        unsigned i = 0;
        while (i < CHILDREN && child[i] != si.si_pid)
            i++;
        wrong_code += i == CHILDREN || si.si_code != CLD_EXITED || si.si_status != (int)i;
        if (++reaped == CHILDREN)
            loop_stop(loop);
    }
}

static void on_signal(void *ctx, const struct signalfd_siginfo *si)
{
    (void)ctx;
    if (si->ssi_signo == SIGCHLD) {
        reap_all();
        return;
    }
    usr1 += si->ssi_signo == SIGUSR1;
    wrong_sender += si->ssi_pid != (uint32_t)getpid();
    loop_stop(loop);
}

static void start_children(const int gate[2])
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        if (child[i] < 0)
            abort();
        if (child[i] == 0) {
            char c;
            close(gate[1]);
            ssize_t n = read(gate[0], &c, 1); /* until the test closes the gate */
            _exit(n == 0 ? (int)i : 255);
        }
    }
}

static void test_signals(void)
{
    struct el_err e = {0};
    sigset_t set, now, old;
    begin();
    pthread_sigmask(SIG_SETMASK, NULL, &old);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    ok(loop_signals(loop, &set, on_signal, NULL, &e) == 0, "one signalfd");
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    ok(sigismember(&now, SIGUSR1) == 1, "the signals are blocked");
    kill(getpid(), SIGUSR1);
    loop_run(loop);
    ok(usr1 == 1 && !wrong_sender, "a signal arrives once, with its sender");

    int gate[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        abort();
    start_children(gate);
    close(gate[0]);
    close(gate[1]); /* all of them at once */
    loop_run(loop);
    is_num(reaped, CHILDREN, "200 children that exit together are all reaped");
    is_num(wrong_code, 0, "each with its own status: the loop took none");
    ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    finish();
}

int main(void)
{
    test_timers();
    test_rearm();
    test_free();
    test_pause();
    test_turn_end();
    test_chore();
    test_posts();
    test_post_in_post();
    test_signals();
    return done();
}
