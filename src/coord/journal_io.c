#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/pool.h"
#include "coord/journal.h"
#include "util/file.h"
#include "util/log.h"

enum { FILE_MAX_BYTES = 64 << 20, REWRITE_BYTES = 1 << 20, PATH_ROOM = 4096 };

struct answer {
    uint64_t job, serial;
};

/* Records that go to the disk together. */
struct batch {
    struct el_buf lines, answers; /* bytes; struct answer */
    bool refused;                 /* there was no memory for one of them */
};

struct journal {
    struct loop *loop;
    struct pool *pool;
    struct pool_job disk;
    struct loop_post post;
    journal_done_fn *done;
    void *ctx;
    bool busy; /* the disk job is under way: it owns `out`, `fd`, `size_bytes`, `grown_bytes` and `e` */
    struct batch gathering, out;
    int folder_fd, lock_fd, fd;
    size_t size_bytes;  /* whole records; what lies behind is torn */
    size_t grown_bytes; /* since the file was written anew */
    bool torn, troubled, closed;
    struct el_err e; /* of the last batch */
    char folder[PATH_ROOM];
};

/* --- files: at the start in the caller's thread, then in the pool's ----------------------------------------------- */

static int journal_fail(struct journal *j, const char *what, struct el_err *e)
{
    return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s %.300s/journal", what, j->folder);
}

static int journal_write_all(int fd, const char *bytes, size_t n, size_t at)
{
    while (n) {
        ssize_t did = pwrite(fd, bytes, n, (off_t)at);
        if (did < 0 && errno == EINTR)
            continue;
        if (did <= 0) {
            errno = did ? errno : ENOSPC;
            return -1;
        }
        bytes += did;
        at += (size_t)did;
        n -= (size_t)did;
    }
    return 0;
}

/* Reads the journal whole.  A file that is not there is empty. */
static int read_journal(struct journal *j, struct el_buf *to, struct el_err *e)
{
    int fd = openat(j->folder_fd, "journal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : journal_fail(j, "cannot open", e);
    for (;;) {
        char *room = to->len > FILE_MAX_BYTES ? NULL : el_buf_reserve(to, 65536);
        ssize_t n = room ? read(fd, room, 65536) : -1;
        if (n > 0) {
            to->len += (size_t)n;
        } else if (n == 0 || !room || errno != EINTR) {
            int sys = room ? errno : EFBIG;
            close(fd);
            errno = sys;
            return n == 0 ? 0 : journal_fail(j, "cannot read", e);
        }
    }
}

struct keeping {
    struct journal_set set;
    bool refused; /* no memory: what was not kept must not be written away */
};

static void journal_keep(void *ctx, const struct rdzv_record *r)
{
    struct keeping *k = ctx;
    k->refused |= journal_set_put(&k->set, r) != 0;
}

/* The newest records, into a new file that takes the old one's place when it is durable. */
static int write_anew(struct journal *j, const struct journal_set *set, struct el_err *e)
{
    struct el_buf lines = EL_BUF_INIT(NULL, 0);
    for (size_t i = 0; i < set->n; i++)
        journal_encode(&set->v[i], &lines);
    int fd = openat(j->folder_fd, "journal.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int bad = lines.full || fd < 0 || journal_write_all(fd, lines.v, lines.len, 0) || fsync(fd) ||
              renameat(j->folder_fd, "journal.new", j->folder_fd, "journal") || fsync(j->folder_fd);
    int sys = lines.full ? ENOMEM : errno;
    size_t n = lines.len;
    el_buf_free(&lines);
    errno = sys;
    if (bad) {
        journal_fail(j, "cannot write", e);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (j->fd >= 0)
        close(j->fd);
    j->fd = fd;
    j->size_bytes = n;
    j->grown_bytes = 0;
    j->torn = false;
    return 0;
}

static int rewrite(struct journal *j, journal_fn *fn, void *ctx, struct el_err *e)
{
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    struct keeping kept = {.refused = false};
    const struct journal_set *set = &kept.set;
    size_t good = 0;
    int bad = read_journal(j, &all, e);
    if (!bad && (bad = journal_read(all.v, all.len, journal_keep, &kept, &good, e)))
        el_prefix(e, "%.300s/journal (move it away to begin without it)", j->folder);
    if (!bad && kept.refused)
        bad = el_fail(e, EL_EXIT_OSERR, "%.300s/journal: out of memory", j->folder);
    if (!bad && good < all.len && fn)
        el_log(EL_WARN, "%s/journal: the last %zu bytes are torn and dropped", j->folder, all.len - good);
    if (!bad)
        bad = write_anew(j, set, e);
    for (size_t i = 0; i < set->n && !bad && fn; i++)
        fn(ctx, &set->v[i]);
    journal_set_free(&kept.set);
    el_buf_free(&all);
    return bad ? -1 : 0;
}

/* In a thread of the pool. */
static void write_batch(void *ctx)
{
    struct journal *j = ctx;
    const struct el_buf *lines = &j->out.lines;
    j->e = (struct el_err){0};
    if (j->grown_bytes > REWRITE_BYTES && rewrite(j, NULL, NULL, &j->e))
        return;
    if (j->torn && ftruncate(j->fd, (off_t)j->size_bytes)) {
        journal_fail(j, "cannot repair", &j->e);
        return;
    }
    j->torn = journal_write_all(j->fd, lines->v, lines->len, j->size_bytes) || fdatasync(j->fd);
    if (j->torn) {
        journal_fail(j, "cannot write", &j->e);
        return;
    }
    j->size_bytes += lines->len;
    j->grown_bytes += lines->len;
}

/* --- in the loop's thread ----------------------------------------------------------------------------------------- */

static void batch_free(struct batch *b)
{
    el_buf_free(&b->lines);
    el_buf_free(&b->answers);
}

static void journal_release(struct journal *j)
{
    batch_free(&j->gathering);
    batch_free(&j->out);
    int fds[] = {j->fd, j->lock_fd, j->folder_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    el_free(NULL, j);
}

static void journal_begin(struct journal *j);

static void journal_on_written(void *ctx)
{
    struct journal *j = ctx;
    if (j->closed) {
        journal_release(j);
        return;
    }
    struct batch told = j->out;
    bool ok = !j->e.status && !told.refused;
    j->out = (struct batch){0};
    j->busy = false;
    if (j->e.status && !j->troubled)
        el_log(EL_ERROR, "%s", j->e.text);
    else if (!j->e.status && j->troubled)
        el_log(EL_INFO, "%s/journal can be written again", j->folder);
    j->troubled = j->e.status != 0;
    journal_begin(j);
    const struct answer *a = (const void *)told.answers.v;
    for (size_t i = 0; i < told.answers.len / sizeof *a; i++)
        j->done(j->ctx, a[i].job, a[i].serial, ok);
    batch_free(&told);
}

static void journal_begin(struct journal *j)
{
    struct el_err e = {0};
    if (j->busy || !j->gathering.answers.len)
        return;
    j->out = j->gathering;
    j->gathering = (struct batch){0};
    j->disk = (struct pool_job){.work = write_batch, .done = journal_on_written, .ctx = j};
    j->busy = true;
    if (pool_run(j->pool, &j->disk, &e) == 0)
        return;
    /* No thread can be made: better a short stall of the loop than a round that nobody remembers. */
    write_batch(j);
    j->post = (struct loop_post){.fn = journal_on_written, .ctx = j};
    loop_post(j->loop, &j->post);
}

void journal_write(struct journal *j, uint64_t job, uint64_t serial, const struct rdzv_record *r)
{
    struct batch *b = &j->gathering;
    struct answer *a = (void *)b->answers.v;
    size_t i = 0, n = b->answers.len / sizeof *a;
    while (i < n && a[i].job != job)
        i++;
    if (i < n)
        a[i].serial = serial;
    else if (el_buf_put(&b->answers, &(struct answer){job, serial}, sizeof *a))
        el_log(EL_ERROR, "%s/journal: out of memory", j->folder);
    b->refused |= journal_encode(r, &b->lines) != 0;
    journal_begin(j);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int journal_take_lock(struct journal *j, struct el_err *e)
{
    char text[32] = "";
    j->lock_fd = openat(j->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->lock_fd < 0)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot open %.300s/lock", j->folder);
    if (flock(j->lock_fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot lock %.300s/lock", j->folder);
        if (pread(j->lock_fd, text, sizeof text - 1, 0) > 0)
            text[strcspn(text, "\n")] = 0;
        return el_fail(e, EL_EXIT_TEMPFAIL, "%.300s is in use by another coordinator, process %s", j->folder,
                       *text ? text : "unknown");
    }
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(j->lock_fd, 0) || journal_write_all(j->lock_fd, text, (size_t)n, 0))
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot write %.300s/lock", j->folder);
    return 0;
}

struct journal *journal_open(const char *folder, journal_fn *fn, void *ctx, struct el_err *e)
{
    struct journal *j = el_alloc(NULL, sizeof *j);
    if (!j) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    j->folder_fd = j->lock_fd = j->fd = -1;
    int bad = 0;
    if ((size_t)snprintf(j->folder, sizeof j->folder, "%s", folder) >= sizeof j->folder)
        bad = el_fail(e, EL_EXIT_CANTCREAT, "the name of the state folder is too long");
    else if (mkdir(folder, 0700) && errno != EEXIST)
        bad = el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot make %.300s", folder);
    else if ((j->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        bad = el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot open %.300s", folder);
    else
        bad = journal_take_lock(j, e) || rewrite(j, fn, ctx, e);
    if (!bad)
        return j;
    journal_close(j);
    return NULL;
}

void journal_start(struct journal *j, struct loop *l, struct pool *pool, journal_done_fn *done, void *ctx)
{
    j->loop = l;
    j->pool = pool;
    j->done = done;
    j->ctx = ctx;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    j->closed = true;
    if (!j->busy)
        journal_release(j);
}
