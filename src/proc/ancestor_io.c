#include "proc/ancestor.h"

#include "sys/procstat.h"
#include "util/file.h"

#define ANCESTORS_MAX 32 /* between a worker and who connects for it */

static int ancestor_parent_of(pid_t pid)
{
    char text[4096];
    struct procstat_status st;
    if (file_readf(text, sizeof text, "/proc", "/%d/status", (int)pid) < 0 || procstat_status(&st, text) < 0)
        return 0;
    return st.ppid;
}

int ancestor_slot(const struct reap *r, pid_t pid)
{
    for (unsigned i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        int slot = reap_slot(r, pid);
        if (slot >= 0)
            return slot;
        pid = ancestor_parent_of(pid);
    }
    return -1;
}
