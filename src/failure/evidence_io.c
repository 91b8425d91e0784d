#include "failure/evidence.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "failure/summary.h"
#include "sys/cgroup.h"
#include "util/array.h"
#include "util/file.h"
#include "util/scan.h"

enum { CHUNK = 64 * 1024, SMALL_MAX = 1 << 20 };

static ssize_t evidence_read_some(int fd, char *to, size_t n)
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
    while ((n = evidence_read_some(fd, chunk, sizeof chunk)) > 0) {
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

/* Who opens a device, or what the kernel makes, may change something; a name that is none of a file may be a server's.
 */
static bool is_source(const char *path)
{
    static const char *const kernels[] = {"/proc/", "/sys/", "/dev/", "<"};
    struct stat st;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        if (strncmp(path, kernels[i], strlen(kernels[i])) == 0)
            return false;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= HANDLER_SOURCE_MAX;
}

enum handler evidence_handler(const struct handler_place *place)
{
    enum errfile_state why;
    enum handler found = HANDLER_UNKNOWN;
    int fd = is_source(place->path) ? open_regular(place->path, &why) : -1;
    char *source = fd >= 0 ? malloc(HANDLER_SOURCE_MAX + 1) : NULL;
    size_t len = 0;
    ssize_t n = 0;
    while (source && (n = evidence_read_some(fd, source + len, HANDLER_SOURCE_MAX + 1 - len)) > 0)
        len += (size_t)n;
    if (source && n == 0 && len <= HANDLER_SOURCE_MAX)
        found = handler_find((struct text){source, len}, place);
    free(source);
    if (fd >= 0)
        close(fd);
    return found;
}

static int evidence_write_all(int fd, const char *p, size_t n)
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
        ssize_t r = evidence_read_some(from, chunk, n < sizeof chunk ? (size_t)n : sizeof chunk);
        if (r <= 0)
            return r < 0 ? -1 : 0;
        if (evidence_write_all(to, chunk, (size_t)r))
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
    if (e->has_object && evidence_write_all(to, code, (size_t)n))
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
        r = evidence_write_all(to, text.v, text.len);
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
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600), r = -1;
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

void evidence_farewell(const char *path, const char *text, size_t n)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) == 0) {
        int lost = evidence_write_all(fd, text, n);
        (void)lost; /* the disk is full: the log on stderr has it */
    }
    close(fd);
}

int64_t evidence_oom_count(const struct evidence_oom *o)
{
    char text[16384];
    uint64_t count;
    if (o->source == EVIDENCE_OOM_NONE || file_read(o->path, text, sizeof text) < 0)
        return -1;
    const char *at = scan_field(text, "oom_kill ");
    return at && scan_u64(&at, &count) && count <= INT64_MAX ? (int64_t)count : -1;
}

/* Whether the counter of that folder can be read. */
static bool try_folder(struct evidence_oom *o, bool v2, const char *folder)
{
    o->source = v2 ? EVIDENCE_OOM_CGROUP_V2 : EVIDENCE_OOM_CGROUP_V1;
    int n = snprintf(o->path, sizeof o->path, "%s/%s", folder, v2 ? "memory.events" : "memory.oom_control");
    return n > 0 && (size_t)n < sizeof o->path && evidence_oom_count(o) >= 0;
}

/* Our own folder, else the mount itself: in a container the two may be seen from different roots. */
static bool find_cgroup(struct evidence_oom *o, const struct cgroup_texts *x)
{
    char folder[CGROUP_PATH_MAX];
    return (cgroup_own(x->mountinfo, x->self, folder, sizeof folder) == 0 && try_folder(o, true, folder)) ||
           (cgroup_own_v1(x->mountinfo, x->self, "memory", folder, sizeof folder) == 0 &&
            try_folder(o, false, folder)) ||
           (cgroup_mount(x->mountinfo, NULL, folder, sizeof folder) == 0 && try_folder(o, true, folder)) ||
           (cgroup_mount(x->mountinfo, "memory", folder, sizeof folder) == 0 && try_folder(o, false, folder));
}

void evidence_oom_open(struct evidence_oom *o, const char *proc)
{
    struct cgroup_texts x;
    bool found = cgroup_texts_read(&x, proc) == 0 && find_cgroup(o, &x);
    cgroup_texts_free(&x);
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
