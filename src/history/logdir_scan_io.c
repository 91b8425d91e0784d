#include "history/logdir_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/limits.h"
#include "failure/evidence.h"
#include "output/logtree.h"
#include "util/parse.h"
#include "util/scan.h"

#define READ_BYTES    ((size_t)1 << 20)
#define FILE_MAX      ((off_t)1 << 30) /* of a larger file only its last part is read */
#define TAIL_BYTES    ((size_t)64 << 10)
#define RUNS_MAX      4096
#define ATTEMPTS_MAX  4096
#define WORKERS_MAX   65536                   /* of all attempts whose files are looked at */
#define SAME_JOB_USEC ((int64_t)60 * 1000000) /* nodes of one job begin and end within so much of each other */

struct logdir_scan_run {
    char path[PATH_MAX];
    char id[LOGTREE_NAME_MAX]; /* its run id */
    bool events;
    int64_t from, to;
};

static const char *logdir_scan_show(const char *path)
{
    static char text[EL_PATH_MAX];
    return el_show_path(path, text, sizeof text);
}

static int64_t usec_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000 + t->tv_nsec / 1000;
}

static bool logdir_scan_join(char to[PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(to, PATH_MAX, "%s%s%s", dir, dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/", name);
    return n > 0 && n < PATH_MAX;
}

/* --- a file of events --- */

typedef void line_fn(void *ctx, const char *line, size_t n);

/* fn for each line with its newline, from this offset on; a line longer than the buffer comes in pieces.  -1 and errno.
 */
static int each_line(int fd, off_t from, char *buf, line_fn *fn, void *ctx)
{
    size_t have = 0;
    for (;;) {
        ssize_t n = pread(fd, buf + have, READ_BYTES - have, from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        from += n;
        have += (size_t)n;
        size_t at = 0;
        for (char *end; at < have && (end = memchr(buf + at, '\n', have - at)); at = (size_t)(end - buf) + 1)
            fn(ctx, buf + at, (size_t)(end - buf) + 1 - at);
        if (have - at == READ_BYTES || (n == 0 && at < have)) {
            fn(ctx, buf + at, have - at);
            at = have;
        }
        if (n == 0)
            return 0;
        memmove(buf, buf + at, have -= at);
    }
}

static void scan_line_of(void *ctx, const char *line, size_t n)
{
    job_history_scan(ctx, line, n);
}

struct feed {
    struct job_history *c;
    bool torn;
};

static void logdir_scan_feed_line(void *ctx, const char *line, size_t n)
{
    struct feed *f = ctx;
    f->torn = line[n - 1] != '\n';
    job_history_line(f->c, line, n - !f->torn);
}

/* Also of a file that is still being written. */
static int read_open_events(struct job_history *c, int fd, const char *path, char *buf, struct el_err *e)
{
    struct stat st;
    struct job_history_scan scan = {.at = 0};
    struct feed feed = {.c = c};
    if (fstat(fd, &st) < 0)
        return el_fail_sys(e, EL_EXIT_NOINPUT, errno, "%s", logdir_scan_show(path));
    if (!S_ISREG(st.st_mode))
        return el_fail(e, EL_EXIT_NOINPUT, "%s: not a regular file", logdir_scan_show(path));
    off_t start = st.st_size > FILE_MAX ? st.st_size - FILE_MAX : 0;
    if (start)
        job_history_remark(c, "%s: larger than 1 GiB: only the last 1 GiB was read", logdir_scan_show(path));
    scan.at = scan.begins = (uint64_t)start;
    if (each_line(fd, start, buf, scan_line_of, &scan) < 0)
        return el_fail_sys(e, EL_EXIT_NOINPUT, errno, "%s", logdir_scan_show(path));
    job_history_file_begin(c, scan.run_id);
    if (scan.jobs > 1)
        job_history_remark(c, "%s: %u jobs were appended to it; this is the last one", logdir_scan_show(path),
                           scan.jobs);
    if (each_line(fd, (off_t)scan.begins, buf, logdir_scan_feed_line, &feed) < 0)
        job_history_remark(c, "%s: could not be read to its end", logdir_scan_show(path));
    job_history_file_end(c, logdir_scan_show(path), feed.torn);
    const char *why = !c->lines                             ? "empty"
                      : c->lines == c->foreign              ? "no events"
                      : c->lines == c->foreign + c->unknown ? "all events are of a newer elrun: use its own report"
                                                            : NULL;
    return why ? el_fail(e, EL_EXIT_NOINPUT, "%s: %s", logdir_scan_show(path), why) : 0;
}

static int read_events(struct job_history *c, const char *path, struct el_err *e)
{
    char *buf = malloc(READ_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO must not hold us */
    int r = -1;
    if (!buf)
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    else if (fd < 0)
        el_fail_sys(e, EL_EXIT_NOINPUT, errno, "%s", logdir_scan_show(path));
    else
        r = read_open_events(c, fd, path, buf, e);
    if (fd >= 0)
        close(fd);
    free(buf);
    return r;
}

/* --- a run's folder without events --- */

struct attempt {
    unsigned restart, round;
    char name[LOGTREE_NAME_MAX];
    int64_t from, to;
    unsigned workers;
};

/* "attempt_2", "attempt_2.round_7" */
static bool parse_attempt(const char *name, struct attempt *a)
{
    uint64_t restart, round = 0;
    const char *at = name + 8;
    if (strncmp(name, "attempt_", 8) != 0 || !scan_u64(&at, &restart) || restart > UINT32_MAX)
        return false;
    if (strncmp(at, ".round_", 7) == 0) {
        at += 7;
        if (!scan_u64(&at, &round) || round > UINT32_MAX)
            return false;
    }
    *a = (struct attempt){.restart = (unsigned)restart, .round = (unsigned)round};
    return !*at && snprintf(a->name, sizeof a->name, "%s", name) < (int)sizeof a->name;
}

static int logdir_scan_by_age(const void *a, const void *b)
{
    const struct attempt *x = a, *y = b;
    return x->restart != y->restart ? (x->restart < y->restart ? -1 : 1)
                                    : (x->round > y->round) - (x->round < y->round);
}

static struct attempt *list_attempts(const char *dir, unsigned *n)
{
    struct attempt *all = calloc(ATTEMPTS_MAX, sizeof *all);
    DIR *d = opendir(dir);
    *n = 0;
    for (struct dirent *at; all && d && *n < ATTEMPTS_MAX && (at = readdir(d));)
        *n += parse_attempt(at->d_name, &all[*n]);
    if (d)
        closedir(d);
    if (all)
        qsort(all, *n, sizeof *all, logdir_scan_by_age);
    return all;
}

static void logdir_scan_widen(struct attempt *a, int64_t at)
{
    a->to = at > a->to ? at : a->to;
}

/* One worker's folder. */
static struct record *read_worker(struct el_mem *mem, const char *dir, unsigned local_rank, struct attempt *a,
                                  struct errfile *file, char *tail)
{
    struct record *r = el_alloc(mem, sizeof *r);
    char path[PATH_MAX];
    struct stat st;
    uint64_t total;
    if (!r)
        return NULL;
    struct failure *f = &r->failure;
    failure_init(f);
    f->role = r->role;
    f->host = r->host;
    f->rank = f->local_rank = local_rank;
    f->restart = a->restart;
    f->wall_usec = a->from;
    if (logdir_scan_join(path, dir, "error.json") && stat(path, &st) == 0) {
        evidence_read_errfile(path, file);
        failure_add_file(f, file, mem);
        failure_set_line(f, &f->error_file, path, mem);
        f->wall_usec = usec_of(&st.st_mtim);
        logdir_scan_widen(a, f->wall_usec);
    }
    long n = logdir_scan_join(path, dir, "stderr.log") ? logtree_tail(path, tail, TAIL_BYTES, &total) : -1;
    if (n >= 0 && stat(path, &st) == 0) {
        failure_set_line(f, &f->log_file, path, mem);
        failure_add_stderr(f, tail, (size_t)n, mem);
        f->wall_usec = f->error_file ? f->wall_usec : usec_of(&st.st_mtim);
        logdir_scan_widen(a, usec_of(&st.st_mtim));
    } else {
        f->watch = FAILURE_WATCH_NO;
    }
    n = logdir_scan_join(path, dir, "stdout.log") ? logtree_tail(path, tail, TAIL_BYTES, &total) : -1;
    if (n >= 0 && stat(path, &st) == 0) {
        failure_add_stdout(f, tail, (size_t)n, mem);
        logdir_scan_widen(a, usec_of(&st.st_mtim));
    }
    evidence_time_text(f->wall_usec, f->time_text);
    failure_judge(f, false, false);
    return r;
}

static void read_attempt(struct job_history *c, int node, const char *dir, struct attempt *a, uint64_t round,
                         unsigned *budget)
{
    struct errfile *file = malloc(sizeof *file);
    char *tail = malloc(TAIL_BYTES), path[PATH_MAX];
    struct stat st;
    DIR *d = opendir(dir);
    if (stat(dir, &st) == 0)
        a->from = a->to = usec_of(&st.st_mtim);
    for (struct dirent *at; file && tail && d && *budget && (at = readdir(d));) {
        uint64_t rank;
        if (el_parse_u64(at->d_name, &rank) || rank >= EL_SLOTS_MAX || !logdir_scan_join(path, dir, at->d_name))
            continue;
        (*budget)--;
        a->workers++;
        struct record *r = read_worker(c->mem, path, (unsigned)rank, a, file, tail);
        if (!r)
            continue;
        r->failure.round = round;
        snprintf(r->host, sizeof r->host, "%s", node >= 0 ? c->line.node[node].host : "");
        job_history_left(c, node, r);
    }
    if (d)
        closedir(d);
    free(tail);
    free(file);
    job_history_attempt(c, node, a->restart, round, a->workers, a->from, a->to);
}

static int logdir_scan_read_tree(struct job_history *c, const char *run, struct el_err *e)
{
    unsigned n, budget = WORKERS_MAX;
    struct attempt *all = list_attempts(run, &n);
    const char *name = strrchr(run, '/');
    char path[PATH_MAX];
    int node = n ? job_history_run(c, name && name[1] ? name + 1 : run) : -1;
    for (unsigned i = 0; all && i < n; i++)
        if (logdir_scan_join(path, run, all[i].name))
            read_attempt(c, node, path, &all[i], i + 1, &budget);
    if (!budget)
        job_history_remark(c, "%s: only the files of the first %d workers were looked at", logdir_scan_show(run),
                           WORKERS_MAX);
    free(all);
    return n ? 0
             : el_fail(e, EL_EXIT_NOINPUT, "%s: no log folder of a job: neither attempts nor events in it",
                       logdir_scan_show(run));
}

/* --- folders --- */

/* "pretrain_k3j5x9qa" -> "pretrain" */
static void logdir_scan_run_id_of(const char *path, char id[LOGTREE_NAME_MAX])
{
    const char *name = strrchr(path, '/');
    snprintf(id, LOGTREE_NAME_MAX, "%.*s", (int)LOGTREE_NAME_MAX - 1, name ? name + 1 : path);
    size_t n = strlen(id);
    if (n > 9 && id[n - 9] == '_')
        id[n - 9] = 0;
}

/* Is this a run's folder?  Fills *r then. */
static bool look_at_run(const char *path, struct logdir_scan_run *r)
{
    struct stat st;
    char inner[PATH_MAX];
    unsigned n;
    memset(r, 0, sizeof *r);
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || !realpath(path, r->path))
        return false;
    logdir_scan_run_id_of(r->path, r->id);
    r->from = r->to = usec_of(&st.st_mtim);
    if (logdir_scan_join(inner, r->path, LOGTREE_EVENTS) && stat(inner, &st) == 0) {
        r->events = true;
        r->to = usec_of(&st.st_mtim);
    }
    struct attempt *all = list_attempts(r->path, &n);
    for (unsigned i = 0; all && i < n; i++) {
        if (!logdir_scan_join(inner, r->path, all[i].name) || stat(inner, &st) < 0)
            continue;
        int64_t at = usec_of(&st.st_mtim);
        r->from = at < r->from ? at : r->from;
        r->to = at > r->to ? at : r->to;
    }
    free(all);
    return n || r->events;
}

static int read_run(struct job_history *c, const struct logdir_scan_run *r, struct el_err *e)
{
    char path[PATH_MAX];
    struct el_err why = {0};
    if (!c->log_dir[0])
        snprintf(c->log_dir, sizeof c->log_dir, "%s", r->path);
    if (!c->run_id[0])
        snprintf(c->run_id, sizeof c->run_id, "%s", r->id);
    if (r->events && logdir_scan_join(path, r->path, LOGTREE_EVENTS)) {
        if (read_events(c, path, &why) == 0)
            return 0;
        job_history_remark(c, "%s; its log files are read instead", why.text);
    }
    return logdir_scan_read_tree(c, r->path, e);
}

static unsigned list_runs(const char *dir, struct logdir_scan_run *all)
{
    unsigned n = 0;
    char path[PATH_MAX];
    DIR *d = opendir(dir);
    for (struct dirent *at; d && n < RUNS_MAX && (at = readdir(d));)
        if (at->d_name[0] != '.' && logdir_scan_join(path, dir, at->d_name))
            n += look_at_run(path, &all[n]);
    if (d)
        closedir(d);
    return n;
}

/* Runs with the same id at the same time are nodes of one job that share the folder. */
static bool same_job(const struct logdir_scan_run *a, const struct logdir_scan_run *b)
{
    return strcmp(a->id, b->id) == 0 && a->from <= b->to + SAME_JOB_USEC && b->from <= a->to + SAME_JOB_USEC;
}

static int read_log_dir(struct job_history *c, const char *dir, struct el_err *e)
{
    struct logdir_scan_run *all = calloc(RUNS_MAX, sizeof *all);
    unsigned n = all ? list_runs(dir, all) : 0, newest = 0, others = 0;
    int r = 0;
    for (unsigned i = 1; i < n; i++)
        newest = all[i].to > all[newest].to ? i : newest;
    for (unsigned i = 0; i < n && r == 0; i++) {
        if (same_job(&all[i], &all[newest]))
            r = read_run(c, &all[i], e);
        else
            others++;
    }
    if (others)
        job_history_remark(c, "%s: %u other run%s in it; this is the last one; to see another one, name its folder",
                           logdir_scan_show(dir), others, others == 1 ? " is" : "s are");
    free(all);
    return n ? r
             : el_fail(e, EL_EXIT_NOINPUT, "%s: no log folder of a job: neither runs nor attempts in it",
                       logdir_scan_show(dir));
}

static int read_dir(struct job_history *c, const char *dir, struct el_err *e)
{
    struct logdir_scan_run *r = malloc(sizeof *r);
    char path[PATH_MAX];
    struct attempt a;
    if (!r)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    const char *name = realpath(dir, path) ? strrchr(path, '/') : NULL;
    if (name && parse_attempt(name + 1, &a) && name > path) {
        path[name - path] = 0;
        job_history_remark(c, "%s: one attempt; the whole run is shown", logdir_scan_show(dir));
    }
    DIR *d = opendir(dir);
    int result;
    if (!d)
        result = el_fail_sys(e, EL_EXIT_NOINPUT, errno, "%s", logdir_scan_show(dir));
    else if (look_at_run(path, r))
        result = read_run(c, r, e);
    else
        result = read_log_dir(c, dir, e);
    if (d)
        closedir(d);
    free(r);
    return result;
}

unsigned gather(struct job_history *c, char *const *paths, unsigned n, struct el_err *e)
{
    unsigned bad = 0;
    for (unsigned i = 0; i < n; i++) {
        struct stat st;
        struct el_err why = {0};
        int r;
        if (stat(paths[i], &st) < 0)
            r = el_fail_sys(&why, EL_EXIT_NOINPUT, errno, "%s", logdir_scan_show(paths[i]));
        else if (S_ISDIR(st.st_mode))
            r = read_dir(c, paths[i], &why);
        else
            r = read_events(c, paths[i], &why);
        if (r == 0)
            continue;
        bad++;
        *e = why;
        if (n > 1)
            job_history_remark(c, "%s", why.text);
    }
    return bad;
}
