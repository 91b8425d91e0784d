#include "agent/evidence.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/summary.h"
#include "agent/text.h"

enum { CHUNK = 64 * 1024, SMALL_MAX = 1 << 20 };

static ssize_t read_some(int fd, char *to, size_t n)
{
    ssize_t r;
    do
        r = read(fd, to, n);
    while (r < 0 && errno == EINTR);
    return r;
}

/* A regular file's descriptor, or -1 and why.  O_NONBLOCK: a FIFO must not hold us until somebody writes to it. */
static int open_regular(const char *path, enum errfile_state *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0) {
        *why = errno == ENOENT || errno == ENOTDIR ? ERRFILE_ABSENT
               : errno == ENXIO                    ? ERRFILE_NOT_A_FILE
                                                   : ERRFILE_UNREADABLE;
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    *why = ERRFILE_NOT_A_FILE;
    close(fd);
    return -1;
}

static void read_errfile(int fd, struct errfile *e)
{
    char chunk[CHUNK];
    size_t total = 0;
    ssize_t n;
    while ((n = read_some(fd, chunk, sizeof chunk)) > 0) {
        total += (size_t)n;
        if (total > ERRFILE_SIZE_MAX) {
            errfile_fail(e, ERRFILE_HUGE);
            return;
        }
        errfile_feed(e, chunk, (size_t)n);
    }
    if (n < 0)
        errfile_fail(e, ERRFILE_UNREADABLE);
    else
        errfile_end(e);
}

void evidence_read_errfile(const char *path, struct errfile *e)
{
    errfile_init(e);
    enum errfile_state why;
    int fd = open_regular(path, &why);
    if (fd < 0) {
        errfile_fail(e, why);
        return;
    }
    read_errfile(fd, e);
    close(fd);
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

static int copy_range(int from, int to, uint64_t n)
{
    char chunk[CHUNK];
    while (n) {
        ssize_t r = read_some(from, chunk, n < sizeof chunk ? (size_t)n : sizeof chunk);
        if (r <= 0)
            return r < 0 ? -1 : 0;
        if (write_all(to, chunk, (size_t)r))
            return -1;
        n -= (uint64_t)r;
    }
    return 0;
}

/* The file as it is, ", "errorCode": n" put in front of the brace that closes the message. */
static int copy_with_code(int from, int to, const struct errfile *e, const struct failure *f)
{
    char code[64];
    int n = snprintf(code, sizeof code, "%s\"errorCode\": %d", e->object_empty ? "" : ", ",
                     f->end == FAILURE_SIGNAL ? -f->code : f->code);
    assert(n > 0 && (size_t)n < sizeof code);
    if (lseek(from, 0, SEEK_SET) < 0 || copy_range(from, to, e->has_object ? e->object_end : 0))
        return -1;
    /* A plain text as message has no place for the code; torchrun copies such a file as it is. */
    if (e->has_object && write_all(to, code, (size_t)n))
        return -1;
    return copy_range(from, to, ERRFILE_SIZE_MAX);
}

static int write_made(int to, const struct failure *f)
{
    struct el_buf text = EL_BUF_INIT(NULL, SMALL_MAX);
    int r = summary_errfile(f, &text);
    if (r)
        errno = ENOMEM;
    else
        r = write_all(to, text.v, text.len);
    el_buf_free(&text);
    return r;
}

static bool same_file(int a, const struct stat *b)
{
    struct stat st;
    return a >= 0 && fstat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

int evidence_publish(const struct failure *cause, const char *to, struct el_err *err)
{
    struct errfile *e = calloc(1, sizeof *e);
    if (!e)
        return el_fail(err, EL_EXIT_OSERR, "error file %s: out of memory", to);
    enum errfile_state why;
    int from = cause->error_file ? open_regular(cause->error_file, &why) : -1;
    errfile_init(e);
    if (from >= 0)
        read_errfile(from, e);
    struct stat st;
    /* Truncated only after the look at what it is: a terminal, a FIFO or the worker's own file must stay as they are.
     */
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666), r = -1;
    if (fd < 0 || fstat(fd, &st))
        el_fail_sys(err, EL_EXIT_CANTCREAT, errno, "error file %s", to);
    else if (!S_ISREG(st.st_mode))
        el_fail(err, EL_EXIT_CANTCREAT, "error file %s: not a regular file", to);
    else if (same_file(from, &st))
        r = 0;
    else if (ftruncate(fd, 0) ||
             (e->state == ERRFILE_WHOLE ? copy_with_code(from, fd, e, cause) : write_made(fd, cause)))
        el_fail_sys(err, EL_EXIT_CANTCREAT, errno, "error file %s", to);
    else
        r = 0;
    if (fd >= 0 && close(fd) && !r)
        r = el_fail_sys(err, EL_EXIT_CANTCREAT, errno, "error file %s", to);
    if (from >= 0)
        close(from);
    free(e);
    return r;
}

/* A small file of /proc or a cgroup, at most SMALL_MAX bytes; -1 if it cannot be read. */
static int slurp(const char *path, struct el_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), r = -1;
    if (fd < 0)
        return -1;
    for (;;) {
        char *at = el_buf_reserve(out, 4096);
        ssize_t n = at ? read_some(fd, at, 4096) : -1;
        if (n > 0)
            out->len += (size_t)n;
        else {
            r = n < 0 ? -1 : 0;
            break;
        }
    }
    close(fd);
    return r;
}

int64_t evidence_oom_count(const struct evidence_oom *o)
{
    struct el_buf text = EL_BUF_INIT(NULL, SMALL_MAX);
    struct text rest, line;
    int64_t count = -1;
    if (o->source != EVIDENCE_OOM_NONE && slurp(o->path, &text) == 0)
        for (rest = (struct text){text.v, text.len}; text_line(&rest, &line);)
            if (text_starts(line, "oom_kill ") && line.n > 9) {
                count = 0;
                for (size_t i = 9; i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++)
                    count = count * 10 + (line.p[i] - '0');
            }
    el_buf_free(&text);
    return count;
}

/* The n-th word of a line, separated by spaces. */
static struct text word(struct text line, unsigned n)
{
    for (;; n--) {
        while (line.n && *line.p == ' ') {
            line.p++;
            line.n--;
        }
        const char *end = line.n ? memchr(line.p, ' ', line.n) : NULL;
        size_t len = end ? (size_t)(end - line.p) : line.n;
        if (!n)
            return (struct text){line.p, len};
        line.p += len;
        line.n -= len;
    }
}

static bool equals(struct text t, const char *s)
{
    return t.n == strlen(s) && text_starts(t, s);
}

/* Is `name` one of the words of a comma list? */
static bool listed(struct text list, const char *name)
{
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t len = comma ? (size_t)(comma - list.p) : list.n;
        if (equals((struct text){list.p, len}, name))
            return true;
        len += comma ? 1 : 0;
        list.p += len;
        list.n -= len;
    }
    return false;
}

/* One line of mountinfo: where a cgroup hierarchy is mounted, and which folder of it is the mount's root. */
struct mount {
    struct text root, point;
    bool v2;
};

static bool is_memory_mount(struct text line, struct mount *m)
{
    const char *dash = text_find(line, " - ");
    if (!dash)
        return false;
    struct text back = {dash + 3, line.n - (size_t)(dash + 3 - line.p)};
    m->root = word(line, 3);
    m->point = word(line, 4);
    m->v2 = equals(word(back, 0), "cgroup2");
    return m->v2 || (equals(word(back, 0), "cgroup") && listed(word(back, 2), "memory"));
}

/* This process's folder in the hierarchy, from /proc/self/cgroup: "0::/path" (v2) or "9:memory:/path". */
static bool own_folder(struct text groups, bool v2, struct text *folder)
{
    struct text line;
    while (text_line(&groups, &line)) {
        const char *a = memchr(line.p, ':', line.n);
        const char *b = a ? memchr(a + 1, ':', line.n - (size_t)(a + 1 - line.p)) : NULL;
        if (!b)
            continue;
        struct text names = {a + 1, (size_t)(b - a - 1)};
        *folder = (struct text){b + 1, line.n - (size_t)(b + 1 - line.p)};
        if (v2 ? line.p[0] == '0' && !names.n : listed(names, "memory"))
            return true;
    }
    return false;
}

/* Tries the folder below the mount, then the mount itself: in a container the two are seen from different roots. */
static bool try_mount(struct evidence_oom *o, const struct mount *m, struct text folder)
{
    const char *file = m->v2 ? "memory.events" : "memory.oom_control";
    o->source = m->v2 ? EVIDENCE_OOM_CGROUP_V2 : EVIDENCE_OOM_CGROUP_V1;
    if (m->root.n > 1 && folder.n >= m->root.n && memcmp(folder.p, m->root.p, m->root.n) == 0) {
        folder.p += m->root.n;
        folder.n -= m->root.n;
    }
    for (int whole = 1; whole >= 0; whole--) {
        int n = snprintf(o->path, sizeof o->path, "%.*s%.*s/%s", (int)m->point.n, m->point.p, whole ? (int)folder.n : 0,
                         folder.p, file);
        if (n > 0 && (size_t)n < sizeof o->path && evidence_oom_count(o) >= 0)
            return true;
    }
    o->source = EVIDENCE_OOM_NONE;
    return false;
}

void evidence_oom_open(struct evidence_oom *o, const char *proc)
{
    char path[256];
    struct el_buf mounts = EL_BUF_INIT(NULL, SMALL_MAX), groups = EL_BUF_INIT(NULL, SMALL_MAX);
    *o = (struct evidence_oom){.source = EVIDENCE_OOM_NONE};
    snprintf(path, sizeof path, "%s/self/mountinfo", proc);
    int r = slurp(path, &mounts);
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    r |= slurp(path, &groups);
    struct text rest = {mounts.v, r ? 0 : mounts.len}, line, folder;
    struct mount m;
    bool found = false;
    while (!found && text_line(&rest, &line))
        found = is_memory_mount(line, &m) && own_folder((struct text){groups.v, groups.len}, m.v2, &folder) &&
                try_mount(o, &m, folder);
    el_buf_free(&mounts);
    el_buf_free(&groups);
    if (found)
        return;
    o->source = EVIDENCE_OOM_HOST;
    snprintf(o->path, sizeof o->path, "%s/vmstat", proc);
    if (evidence_oom_count(o) < 0)
        o->source = EVIDENCE_OOM_NONE;
}

void evidence_time_text(int64_t wall_usec, char out[32])
{
    time_t sec = (time_t)(wall_usec / 1000000);
    struct tm tm;
    if (wall_usec < 0 || !localtime_r(&sec, &tm) || !strftime(out, 32, "%Y-%m-%d_%H:%M:%S", &tm))
        snprintf(out, 32, "unknown");
}
