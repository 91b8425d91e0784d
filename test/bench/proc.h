/* What /proc tells about a process that is measured. */
#ifndef BENCH_PROC_H
#define BENCH_PROC_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The number behind `before` at the begin of a line of /proc/PID/FILE; 0: there is none. */
static inline long long proc_number(pid_t pid, const char *file, const char *before)
{
    char path[320], line[512];
    long long value = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, before, strlen(before)) == 0) {
            value = atoll(line + strlen(before));
            break;
        }
    if (f)
        fclose(f);
    return value;
}

/* Processor time of all threads in ns, as the scheduler counts it. */
static inline long long proc_cpu_ns(pid_t pid)
{
    char path[64], file[288];
    long long sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "task/%s/schedstat", e->d_name);
        sum += proc_number(pid, file, "");
    }
    if (d)
        closedir(d);
    return sum;
}
#endif
