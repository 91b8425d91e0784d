#include "sys/usage.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "sys/procstat.h"
#include "util/file.h"

void usage_sessions(const pid_t *session, unsigned n, uint64_t *used_usec)
{
    char text[1024];
    long per_second = sysconf(_SC_CLK_TCK);
    uint64_t tick_usec = per_second > 0 ? 1000000u / (uint64_t)per_second : 10000u;
    memset(used_usec, 0, n * sizeof *used_usec);
    DIR *d = opendir("/proc");
    for (struct dirent *x; d && (x = readdir(d));) {
        struct procstat_stat st;
        if (x->d_name[0] < '1' || x->d_name[0] > '9')
            continue;
        if (file_readf(text, sizeof text, "/proc", "/%.20s/stat", x->d_name) <= 0 || procstat_stat(&st, text) < 0)
            continue; /* it has ended */
        for (unsigned i = 0; i < n; i++)
            if (st.session == session[i])
                used_usec[i] += (st.utime_ticks + st.stime_ticks) * tick_usec;
    }
    if (d)
        closedir(d);
}
