/* Children of a probe as real processes: orders and lines go through, ends are what they were, nobody is left. */
#include "probe/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"

static struct loop *loop;
static struct reap *reap;
static struct children *all;
static char lines[4096], errors[4096], end_text[256];
static struct child_end last;
static unsigned ends;
static int sh;

static void on_line(void *ctx, unsigned child, const struct probe_wire *w, const char *text, size_t n)
{
    (void)ctx, (void)child;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "<%s:%.*s>", wire_name(w->type), (int)n, text);
    if (w->type == WIRE_ID)
        children_stop(all, (int)child);
}

static void on_said(void *ctx, unsigned child, const char *line)
{
    (void)ctx, (void)child;
    snprintf(errors + strlen(errors), sizeof errors - strlen(errors), "<%s>", line);
}

static void on_ended(void *ctx, unsigned child, const struct child_end *end)
{
    (void)ctx, (void)child;
    last = *end;
    memcpy(end_text, end->text, sizeof end_text);
    ends++;
    if (!children_running(all))
        loop_stop(loop);
}

static void on_helper(void *ctx, pid_t pid, const struct reap_end *end)
{
    (void)ctx;
    if (all) /* the last one is reaped after its owner has gone, when it takes its time to die */
        children_reaped(all, pid, end);
}

static void no_slot(void *ctx, unsigned slot, pid_t pid)
{
    (void)ctx, (void)slot, (void)pid;
}
static void no_zombie(void *ctx, unsigned slot, pid_t pid, const struct reap_end *end)
{
    (void)ctx, (void)slot, (void)pid, (void)end;
}
static void no_orphan(void *ctx, pid_t pid)
{
    (void)ctx, (void)pid;
}

static void on_signal(void *ctx, const struct signalfd_siginfo *si)
{
    (void)ctx, (void)si;
    reap_scan(reap);
}

static int start(const char *script, const struct probe_wire *order, el_usec limit)
{
    char word[] = "sh", c[] = "-c", text[512];
    char *argv[] = {word, c, text, NULL};
    struct el_err e = {0};
    snprintf(text, sizeof text, "%s", script);
    struct child_conf conf = {.name = "a child", .exec_fd = sh, .argv = argv, .order = order, .limit = limit};
    return children_start(all, &conf, &e);
}

/* Runs one child to its end: what became of it. */
static const char *run(const char *script, el_usec limit)
{
    lines[0] = errors[0] = 0;
    ends = 0;
    if (start(script, NULL, limit) < 0)
        return "not started";
    loop_run(loop);
    return stage_outcome_word(last.outcome);
}

#define LONG EL_SEC(600)

int main(void)
{
    static char *env[] = {NULL};
    struct el_err e = {0};
    struct reap_ops ops = {no_zombie, no_slot, no_orphan, on_helper, NULL};
    sigset_t set;
    loop = loop_new(&e);
    reap = reap_new(1, &ops, NULL, &e);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    loop_signals(loop, &set, on_signal, NULL, &e);
    struct children_conf conf = {
        .loop = loop, .reap = reap, .env = env, .line = on_line, .said = on_said, .ended = on_ended};
    all = children_new(&conf, &e);
    sh = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    ok(all && sh > 2, "children, and a program to execute by its descriptor");

    is_str(run("echo '{\"t\":\"end\",\"ok\":true}' >&3", LONG), "done", "a child that has said that all is well");
    is_str(run("echo '{\"t\":\"fact\",\"name\":\"a\"}{' >&3; echo '{\"t\":\"end\"}' >&3; exit 3", LONG), "failed",
           "one that has said that it is not");
    is_num(last.unread, 1, "and something that is no line");
    is_num(last.code, 3, "and its status");
    is_str(run("echo 'last output' >&2", LONG), "silent", "one that says nothing");
    is_str(end_text, "last output", "but for standard error");
    is_str(run("exit 7", LONG), "failed", "one with a status");
    is_str(run("kill -SEGV $$", LONG), "crashed", "one that crashes");
    is_num(last.signal, SIGSEGV, "by which signal");
    is_str(run("echo '{\"t\":\"fact\",\"name\":\"x\"}' >&3; sleep 1000", EL_MS(300)), "time out",
           "one that does not end is killed");
    is_str(lines, "<fact:{\"t\":\"fact\",\"name\":\"x\"}>", "what it had said was heard");
    is_str(run("echo '{\"t\":\"id\",\"id\":\"x\"}' >&3; sleep 1000", LONG), "stopped",
           "one that is stopped from a callback");
    is_str(run("exec 3>&-; sleep 1000", EL_MS(300)), "time out", "a closed descriptor is no end");
    is_str(run("trap '' TERM INT HUP; sleep 1000 & sleep 1000", EL_MS(300)), "time out",
           "nor does it help to ignore signals");

    struct probe_wire order;
    wire_init(&order, WIRE_CHECK_ORDER);
    order.u.check_order.group = "disk";
    lines[0] = 0;
    start("head -c 4096 >&3; echo '{\"t\":\"end\",\"ok\":true}' >&3", &order, LONG);
    loop_run(loop);
    is_str(lines, "<check_order:{\"t\":\"check_order\",\"group\":\"disk\"}>", "the order comes by standard input");

    ends = 0;
    int begun = 0;
    for (int i = 0; i < STAGE_CHILDREN_MAX; i++)
        begun += start("echo '{\"t\":\"end\",\"ok\":true}' >&3", NULL, LONG) >= 0;
    is_num(begun, STAGE_CHILDREN_MAX, "many at once");
    is_num(start("exit 0", NULL, LONG), -1, "but not more than there are places");
    loop_run(loop);
    is_num(ends, STAGE_CHILDREN_MAX, "the end of each is told");
    start("sleep 1000", NULL, LONG);
    children_free(all);
    all = NULL;
    /* No child at all: one that was killed is neither an orphan nor gone for a moment, and its own comes to us only
     * then. */
    el_usec until = loop_clock() + EL_SEC(60);
    siginfo_t end = {0};
    while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && loop_clock() < until) {
        reap_scan(reap);
        usleep(1000);
    }
    ok(waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD, "nobody is left");
    close(sh);
    reap_free(reap);
    loop_free(loop);
    return done();
}
