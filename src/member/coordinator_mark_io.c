#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "member/coordinator_mark.h"
#include "sys/procstat.h"
#include "util/file.h"
#include "util/scan.h"

/* Since boot, standing still in no sleep. */
static uint64_t uptime_s(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec;
}

/* When the process began; 0: there is none, or no /proc. */
static uint64_t start_of(uint64_t pid)
{
    char text[1024];
    struct procstat_stat st;
    if (!pid || pid > INT_MAX || file_readf(text, sizeof text, "/proc", "/%llu/stat", (unsigned long long)pid) <= 0)
        return 0;
    return procstat_stat(&st, text) == 0 && st.state != 'Z' ? st.start_ticks : 0;
}

static void own_mark(const struct coordinator_mark_place *p, struct coordinator_mark *out)
{
    char text[COORDINATOR_MARK_BOOT_MAX];
    *out = (struct coordinator_mark){.pid = (uint64_t)getpid(), .written_s = uptime_s(), .keep_s = p->keep_s};
    out->start_ticks = start_of(out->pid);
    if (file_read("/proc/sys/kernel/random/boot_id", text, sizeof text) <= 0 ||
        !scan_line(text, out->boot, sizeof out->boot) || !out->boot[0])
        snprintf(out->boot, sizeof out->boot, "unknown");
}

void coordinator_mark_self(char to[COORDINATOR_MARK_SELF_MAX])
{
    const struct coordinator_mark_place nowhere = {0};
    char space[32] = "unknown";
    struct coordinator_mark m;
    own_mark(&nowhere, &m);
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[n > 0 ? n : 0] = 0;
    snprintf(to, COORDINATOR_MARK_SELF_MAX, "%llu %llu %s %.40s", (unsigned long long)m.pid,
             (unsigned long long)m.start_ticks, space, m.boot);
}

bool coordinator_mark_is_dead(const char *self)
{
    char own[COORDINATOR_MARK_SELF_MAX];
    uint64_t pid, start;
    const char *theirs = self, *ours = own;
    coordinator_mark_self(own);
    if (!scan_u64(&theirs, &pid))
        return false;
    scan_blanks(&theirs);
    if (!scan_u64(&theirs, &start) || !pid || !start)
        return false;
    ours = strchr(own, ' ');
    ours = ours ? strchr(ours + 1, ' ') : NULL;
    /* Without a /proc nobody is seen, dead or alive. */
    return ours && !strstr(ours, "unknown") && strcmp(ours, theirs) == 0 && start_of((uint64_t)getpid()) &&
           start_of(pid) != start;
}

/* Another user may have put anything there: only plain files of ours are believed. */
static bool read_mark(int folder, const char *name, struct coordinator_mark *out)
{
    char text[COORDINATOR_MARK_TEXT_MAX];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == getuid();
    ssize_t n = ours ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && coordinator_mark_parse(text, out);
}

static bool is_stale(const struct coordinator_mark *m, const struct coordinator_mark *now)
{
    return coordinator_mark_is_stale(m, now, m->start_ticks && start_of(m->pid) == m->start_ticks);
}

/* Whoever reads it sees all of it, or the one before. */
static bool write_mark(int folder, const char *name, const struct coordinator_mark *m)
{
    char part[NAME_MAX + 1], text[COORDINATOR_MARK_TEXT_MAX];
    snprintf(part, sizeof part, "%.200s.%d", name, (int)getpid());
    unlinkat(folder, part, 0);
    int fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    size_t n = strlen(coordinator_mark_text(m, text));
    bool good = write(fd, text, n) == (ssize_t)n;
    close(fd);
    good = good && renameat(folder, part, folder, name) == 0;
    if (!good)
        unlinkat(folder, part, 0);
    return good;
}

static void remove_stale(int folder, const struct coordinator_mark_place *p, const struct coordinator_mark *now)
{
    char prefix[32];
    struct coordinator_mark m;
    coordinator_mark_prefix(p->uid, prefix, sizeof prefix);
    int again = dup(folder);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    struct dirent *x;
    for (unsigned seen = 0; d && seen < COORDINATOR_MARK_SCAN_MAX && (x = readdir(d)); seen++)
        if (strncmp(x->d_name, prefix, strlen(prefix)) == 0 && strcmp(x->d_name, p->name) != 0 &&
            read_mark(folder, x->d_name, &m) && is_stale(&m, now))
            unlinkat(folder, x->d_name, 0);
    if (d)
        closedir(d);
    else if (again >= 0)
        close(again);
}

void coordinator_mark_find(int port, const char *run_id, el_usec keep, struct coordinator_mark_place *out)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    *out = (struct coordinator_mark_place){.uid = (unsigned)getuid(), .keep_s = keep / EL_SEC(1)};
    snprintf(out->folder, sizeof out->folder, "%s", run && *run == '/' ? run : "/dev/shm");
    coordinator_mark_name(out->uid, port, run_id, out->name, sizeof out->name);
}

bool coordinator_mark_look(const struct coordinator_mark_place *p, el_usec limit)
{
    struct coordinator_mark now, old;
    int folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false; /* nobody could have left one */
    own_mark(p, &now);
    remove_stale(folder, p, &now);
    bool none = faccessat(folder, p->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    bool free_of_old = none || (read_mark(folder, p->name, &old) && is_stale(&old, &now));
    close(folder);
    return free_of_old && EL_SEC(now.written_s) > limit;
}

void coordinator_mark_write(const struct coordinator_mark_place *p)
{
    struct coordinator_mark now;
    int folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    own_mark(p, &now);
    write_mark(folder, p->name, &now);
    close(folder);
}

void coordinator_mark_drop(const struct coordinator_mark_place *p)
{
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", p->folder, p->name);
    unlink(path);
}
