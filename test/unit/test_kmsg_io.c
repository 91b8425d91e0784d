/* The kernel's log as a device, what only looks like it, and where cores are looked for. */
#include "sys/corefile.h"
#include "sys/kmsg.h"

#include "lib/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/elrun_kmsg_XXXXXX";

static char *at(const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void test_stand_ins(void)
{
    put(at("file"), "4,1,1,-;Out of memory: Killed process 7 (a) total-vm:0kB\n");
    mkfifo(at("fifo"), 0600);
    is_num(kmsg_open(at("file")), -1, "a file is no log");
    is_num(kmsg_open(at("fifo")), -1, "nor a FIFO, which is not waited for");
    is_num(kmsg_open("/dev/null"), -1, "nor /dev/null");
    is_num(kmsg_open(at("none")), -1, "nor nothing");
    static struct kmsg_log log;
    int fd = open("/dev/null", O_RDONLY);
    kmsg_read(fd, &log);
    ok(!log.whole && !log.n, "what ends is no log, and proves nothing");
    close(fd);
}

static void test_device(void)
{
    static struct kmsg_log log;
    int fd = kmsg_open("/dev/kmsg"), to = open("/dev/kmsg", O_WRONLY);
    if (fd < 0 || to < 0) {
        skip("the kernel's log", "it may not be read and written here");
        return;
    }
    kmsg_read(fd, &log);
    bool pids = log.pids_ours;
    static const char forged[] = "<4>elrun-test[7]: segfault at 0 ip 0 sp 0 error 4\n";
    ok(write(to, forged, sizeof forged - 1) == sizeof forged - 1, "a program writes to the log");
    log = (struct kmsg_log){.n = 0};
    kmsg_read(fd, &log);
    ok(log.whole && log.pids_ours == pids, "read to its end, without waiting");
    ok(!kmsg_of(&log, KMSG_CRASH, 7), "and the program is not taken for the kernel");
    kmsg_skip(fd);
    close(to);
    close(fd);
}

static const char *describe(const char *pattern, int pid, int64_t since_usec)
{
    static char line[COREFILE_PATH_MAX + 128];
    const struct corefile_facts f = {.pid = pid, .signal = 11, .host = "h", .cwd = dir};
    put(at("sys/kernel/core_pattern"), pattern);
    corefile_describe(dir, &f, since_usec, line, sizeof line);
    return line;
}

static void test_core(void)
{
    char want[600];
    int64_t now = (int64_t)time(NULL) * 1000000;
    mkdir(at("sys"), 0700);
    mkdir(at("sys/kernel"), 0700);
    mkdir(at("cores"), 0700);
    ok(strstr(describe("", 7, 0), "cannot be read") != NULL, "no pattern");
    put(at("core"), "x");
    snprintf(want, sizeof want, "%s/core (1 MiB), unless another process has written to that name since", dir);
    is_str(describe("core\n", 7, now - 60000000), want, "where it was started");
    ok(strstr(describe("core\n", 7, now + 60000000), "not found") != NULL, "one of an earlier process is not its");
    put(at("cores/core.python.7.100"), "x");
    put(at("cores/core.python.8.100"), "x");
    mkdir(at("cores/core.x.7.folder"), 0700);
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s/cores/core.%%e.%%p.%%t\n", dir);
    snprintf(want, sizeof want, "%s/cores/core.python.7.100 (1 MiB)", dir);
    is_str(describe(pattern, 7, now - 60000000), want, "found by what is known of its name");
    ok(strstr(describe(pattern, 9, 0), "not found in ") != NULL, "not there");
    put(at("sys/kernel/core_uses_pid"), "1\n");
    put(at("core.7"), "x");
    snprintf(want, sizeof want, "%s/core.7 (1 MiB)", dir);
    is_str(describe("core\n", 7, 0), want, "core_uses_pid");
    is_str(describe("|/usr/lib/systemd/systemd-coredump %P\n", 7, 0),
           "handed to systemd-coredump: see coredumpctl info 7", "a program that keeps cores");
    is_str(describe("|/usr/share/apport/apport -p%p\n", 7, 0), "handed to apport", "another one");
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    test_stand_ins();
    test_device();
    test_core();
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) ? 1 : done();
}
