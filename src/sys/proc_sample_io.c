#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "loop/loop.h"
#include "sys/proc_sample.h"

static int proc_sample_open_file(const char *root, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_both(struct proc_sample_source *s, const char *root)
{
    *s = (struct proc_sample_source){proc_sample_open_file(root, "stat"), proc_sample_open_file(root, "wchan")};
}

void proc_sample_open(struct proc_sample_source *s, const char *proc, pid_t pid)
{
    char root[256];
    snprintf(root, sizeof root, "%s/%d", proc, (int)pid);
    open_both(s, root);
}

void proc_sample_close(struct proc_sample_source *s)
{
    if (s->stat_fd >= 0)
        close(s->stat_fd);
    if (s->wchan_fd >= 0)
        close(s->wchan_fd);
    *s = (struct proc_sample_source){-1, -1};
}

/* One read: these files are short and come whole. */
static void read_text(int fd, char *to, size_t room)
{
    ssize_t n = fd >= 0 ? pread(fd, to, room - 1, 0) : -1;
    to[n > 0 ? n : 0] = 0;
}

void proc_sample_look_open(struct proc_sample_one *one, const struct proc_sample_source *s)
{
    char stat[1024], wchan[64];
    read_text(s->stat_fd, stat, sizeof stat);
    read_text(s->wchan_fd, wchan, sizeof wchan);
    proc_sample_parse(one, stat, wchan);
}

void proc_sample_look(struct proc_sample_one *one, const char *proc, pid_t pid)
{
    struct proc_sample_source s;
    proc_sample_open(&s, proc, pid);
    proc_sample_look_open(one, &s);
    proc_sample_close(&s);
}

unsigned proc_sample_look_threads(struct proc_sample_one *one, unsigned max, const char *proc, pid_t pid,
                                  el_usec deadline)
{
    char root[256];
    int len = snprintf(root, sizeof root, "%s/%d/task", proc, (int)pid);
    assert(len > 0 && (size_t)len < sizeof root);
    DIR *d = opendir(root);
    unsigned n = 0;
    for (struct dirent *x; d && n < max && loop_clock() < deadline && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        struct proc_sample_source s;
        snprintf(root + len, sizeof root - (size_t)len, "/%.20s", x->d_name);
        open_both(&s, root);
        one[n].id = n;
        proc_sample_look_open(&one[n++], &s);
        proc_sample_close(&s);
    }
    if (d)
        closedir(d);
    return n;
}
