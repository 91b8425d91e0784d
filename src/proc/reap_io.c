#include "proc/reap.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/procstat.h"
#include "util/file.h"

#define ORPHANS_MAX 4096 /* looked at in one call; more are found by the next one */

struct reap {
    unsigned slots;
    pid_t *pid; /* by slot, 0 = none */
    pid_t helper[REAP_HELPERS_MAX];
    struct reap_ops ops;
    void *ctx;
    int stop_slot; /* -1: nobody's stops are watched */
};

struct reap *reap_new(unsigned slots, const struct reap_ops *ops, void *ctx, struct el_err *e)
{
    struct reap *r = calloc(1, sizeof *r);
    if (!r || !(r->pid = calloc(slots, sizeof *r->pid))) {
        free(r);
        el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", slots);
        return NULL;
    }
    r->slots = slots;
    r->ops = *ops;
    r->ctx = ctx;
    r->stop_slot = -1;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* kernels before 3.4 would only lose the orphans */
    return r;
}

void reap_free(struct reap *r)
{
    if (!r)
        return;
    free(r->pid);
    free(r);
}

void reap_add(struct reap *r, unsigned slot, pid_t pid)
{
    assert(slot < r->slots && !r->pid[slot]);
    r->pid[slot] = pid;
}

pid_t reap_pid(const struct reap *r, unsigned slot)
{
    assert(slot < r->slots);
    return r->pid[slot];
}

int reap_slot(const struct reap *r, pid_t pid)
{
    for (unsigned i = 0; i < r->slots; i++)
        if (r->pid[i] == pid)
            return (int)i;
    return -1;
}

static int reap_find_helper(const struct reap *r, pid_t pid)
{
    for (int i = 0; i < REAP_HELPERS_MAX; i++)
        if (r->helper[i] == pid)
            return i;
    return -1;
}

void reap_help(struct reap *r, pid_t pid)
{
    int at = reap_find_helper(r, 0);
    if (at >= 0)
        r->helper[at] = pid;
}

static struct reap_end reap_end_of(const siginfo_t *si)
{
    struct reap_end end = {.code = -1, .signal = -1};
    if (si->si_code == CLD_EXITED)
        end.code = si->si_status & 0xff;
    else if (si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED)
        end.signal = si->si_status;
    end.core = si->si_code == CLD_DUMPED;
    return end;
}

void reap_watch_stops(struct reap *r, unsigned slot)
{
    r->stop_slot = (int)slot;
}

static void scan_stop(struct reap *r)
{
    pid_t pid = r->stop_slot >= 0 ? r->pid[r->stop_slot] : 0;
    siginfo_t si = {0};
    if (pid && waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOHANG) == 0 && si.si_pid == pid)
        r->ops.stopped(r->ctx, (unsigned)r->stop_slot, pid);
}

bool reap_has_ended(const struct reap *r, unsigned slot)
{
    siginfo_t si = {0};
    pid_t pid = r->pid[slot];
    return pid && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid == pid;
}

void reap_scan(struct reap *r)
{
    for (;;) {
        siginfo_t si = {0};
        if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || !si.si_pid) {
            scan_stop(r);
            return;
        }
        int slot = reap_slot(r, si.si_pid), helper = slot < 0 ? reap_find_helper(r, si.si_pid) : -1;
        struct reap_end end = reap_end_of(&si);
        if (helper >= 0) { /* while the zombie holds the number */
            kill(-si.si_pid, SIGKILL);
            r->helper[helper] = 0;
            reap_orphans(r, si.si_pid, SIGKILL, 0);
        }
        if (slot >= 0) {
            r->ops.zombie(r->ctx, (unsigned)slot, si.si_pid, &end);
            r->pid[slot] = 0;
        }
        siginfo_t gone = {0};
        waitid(P_PID, (id_t)si.si_pid, &gone, WEXITED | WNOHANG);
        if (slot >= 0)
            r->ops.reaped(r->ctx, (unsigned)slot, si.si_pid);
        else if (helper >= 0)
            r->ops.helper(r->ctx, si.si_pid, &end);
        else
            r->ops.orphan(r->ctx, si.si_pid);
    }
}

/* --- orphans --- */

static bool read_stat(pid_t pid, struct procstat_stat *st)
{
    char text[1024];
    return file_readf(text, sizeof text, "/proc", "/%d/stat", (int)pid) > 0 && procstat_stat(st, text) == 0;
}

/* Adds the pids of one /proc/self/task/<tid>/children, which the kernel separates by blanks. */
static unsigned add_children(const char *tid, pid_t *list, unsigned n)
{
    static char text[ORPHANS_MAX * 8]; /* the loop's thread only */
    if (file_readf(text, sizeof text, "/proc/self/task", "/%s/children", tid) <= 0)
        return n;
    for (char *s = text; *s && n < ORPHANS_MAX;) {
        long pid = strtol(s, &s, 10);
        if (pid <= 0)
            break;
        list[n++] = (pid_t)pid;
        while (*s == ' ')
            s++;
    }
    return n;
}

/* Kernels without CONFIG_PROC_CHILDREN: everybody is asked for the parent. */
static unsigned all_children(pid_t *list)
{
    unsigned n = 0;
    pid_t me = getpid();
    DIR *d = opendir("/proc");
    for (struct dirent *x; d && n < ORPHANS_MAX && (x = readdir(d));) {
        struct procstat_stat st;
        pid_t pid = (pid_t)strtol(x->d_name, NULL, 10);
        if (pid > 0 && read_stat(pid, &st) && st.ppid == me)
            list[n++] = pid;
    }
    if (d)
        closedir(d);
    return n;
}

static unsigned list_children(pid_t *list)
{
    DIR *d = opendir("/proc/self/task");
    if (!d)
        return 0;
    unsigned n = 0;
    bool known = access("/proc/thread-self/children", R_OK) == 0;
    for (struct dirent *x; known && (x = readdir(d));)
        if (x->d_name[0] != '.')
            n = add_children(x->d_name, list, n);
    closedir(d);
    return known ? n : all_children(list);
}

unsigned reap_orphans(struct reap *r, pid_t session, int signal, pid_t spare)
{
    static pid_t list[ORPHANS_MAX]; /* the loop's thread only */
    unsigned n = list_children(list), left = 0;
    for (unsigned i = 0; i < n; i++) {
        struct procstat_stat st;
        if (list[i] == spare || reap_slot(r, list[i]) >= 0 || !read_stat(list[i], &st))
            continue;
        /* By its own number too: between fork and setsid it is in our session. */
        if (reap_find_helper(r, list[i]) >= 0 || (st.session > 0 && reap_find_helper(r, st.session) >= 0))
            continue;
        if (st.state == 'Z' || st.state == 'X' || (session && st.session != session))
            continue;
        left++;
        if (signal)
            kill(list[i], signal);
    }
    return left;
}

void reap_end_orphans(struct reap *r, pid_t spare)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    for (unsigned looks = 0; looks < 200 && reap_orphans(r, 0, SIGKILL, spare); looks++) {
        nanosleep(&moment, NULL);
        reap_scan(r);
    }
}

int reap_describe(pid_t pid, char *to, size_t size)
{
    struct procstat_stat st;
    char wchan[64];
    if (!read_stat(pid, &st))
        return snprintf(to, size, "pid %d", (int)pid);
    file_readf(wchan, sizeof wchan, "/proc", "/%d/wchan", (int)pid);
    if (wchan[0] == '0')
        wchan[0] = 0;
    return snprintf(to, size, "%s (pid %d, state %c%s%s)", st.comm, (int)pid, st.state, wchan[0] ? " in " : "", wchan);
}
