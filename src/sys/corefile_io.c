#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/corefile.h"
#include "util/file.h"

#define ENTRIES_MAX 100000 /* looked at in a folder of cores */

struct newest {
    int64_t usec;
    long long size;
    char path[COREFILE_PATH_MAX + 256];
};

static void corefile_look(struct newest *best, const char *folder, const char *name, int64_t since)
{
    char path[sizeof best->path];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    if (n < 0 || (size_t)n >= sizeof path || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    int64_t usec = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    if (usec < since || usec < best->usec)
        return;
    best->usec = usec;
    best->size = (long long)st.st_size;
    memcpy(best->path, path, (size_t)n + 1);
}

static void corefile_find(struct newest *best, const struct corefile *c, int64_t since)
{
    if (!strchr(c->name, COREFILE_ANY)) {
        corefile_look(best, c->folder, c->name, since);
        return;
    }
    DIR *d = opendir(c->folder);
    unsigned left = ENTRIES_MAX;
    for (struct dirent *x; d && left && (x = readdir(d)); left--)
        if (corefile_match(c->name, x->d_name))
            corefile_look(best, c->folder, x->d_name, since);
    if (d)
        closedir(d);
}

void corefile_describe(const char *proc, const struct corefile_facts *f, int64_t started_wall_usec, char *to,
                       size_t size)
{
    char pattern[COREFILE_PATTERN_MAX], uses_pid[16];
    struct corefile c;
    struct newest best = {.usec = 0};
    struct corefile_facts facts = *f;
    if (file_readf(uses_pid, sizeof uses_pid, proc, "/sys/kernel/core_uses_pid") > 0)
        facts.uses_pid = uses_pid[0] == '1';
    if (file_readf(pattern, sizeof pattern, proc, "/sys/kernel/core_pattern") <= 0) {
        snprintf(to, size, "dumped, where is not known: the kernel's core_pattern cannot be read");
        return;
    }
    corefile_plan(&c, pattern, &facts);
    pattern[strcspn(pattern, "\n")] = 0;
    if (c.kind == COREFILE_PIPE && strcmp(c.helper, "systemd-coredump") == 0)
        snprintf(to, size, "handed to systemd-coredump: see coredumpctl info %d", f->pid);
    else if (c.kind == COREFILE_PIPE || c.kind == COREFILE_SOCKET)
        snprintf(to, size, "handed to %s", c.helper[0] ? c.helper : "a program of the kernel's core_pattern");
    else if (c.kind == COREFILE_FILE && c.folder[0])
        corefile_find(&best, &c, started_wall_usec);
    if (c.kind == COREFILE_PIPE || c.kind == COREFILE_SOCKET)
        return;
    if (best.path[0])
        snprintf(to, size, "%s (%lld MiB)%s", best.path, (best.size + (1 << 20) - 1) >> 20,
                 c.names_pid ? "" : ", unless another process has written to that name since");
    else
        snprintf(to, size, "dumped as \"%s\" (the kernel's core_pattern), not found in %s", pattern,
                 c.folder[0] ? c.folder : "the folders it names");
}
