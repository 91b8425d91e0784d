#include <assert.h>
#include <dirent.h>
#include <stdio.h>

#include "loop/loop.h"
#include "proc/scene.h"
#include "util/file.h"

static void look_at(struct scene_one *one, const char *root)
{
    char stat[1024], wchan[64];
    if (file_readf(stat, sizeof stat, root, "/stat") < 0)
        stat[0] = 0;
    if (file_readf(wchan, sizeof wchan, root, "/wchan") < 0)
        wchan[0] = 0;
    scene_parse(one, stat, wchan);
}

void scene_look(struct scene_one *one, const char *proc, pid_t pid)
{
    char root[256];
    snprintf(root, sizeof root, "%s/%d", proc, (int)pid);
    look_at(one, root);
}

unsigned scene_look_threads(struct scene_one *one, unsigned max, const char *proc, pid_t pid, el_usec deadline)
{
    char root[256];
    int len = snprintf(root, sizeof root, "%s/%d/task", proc, (int)pid);
    assert(len > 0 && (size_t)len < sizeof root);
    DIR *d = opendir(root);
    unsigned n = 0;
    for (struct dirent *x; d && n < max && loop_clock() < deadline && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        snprintf(root + len, sizeof root - (size_t)len, "/%.20s", x->d_name);
        one[n].id = n;
        look_at(&one[n++], root);
    }
    if (d)
        closedir(d);
    return n;
}
