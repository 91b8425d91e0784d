/* Reading what may be anything: error files that hang, lie or overflow; the out-of-memory counter; the launcher's own
 * file. */
#include "failure/evidence.h"
#include "lib/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/elrun_evidence_XXXXXX";
static struct errfile e;

static char *at(const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static char *write_text(const char *name, const char *text)
{
    char *path = at(name);
    FILE *f = fopen(path, "wb");
    fputs(text, f);
    fclose(f);
    return path;
}

static const char *read_text(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return text;
}

static int state_of(const char *path)
{
    evidence_read_errfile(path, &e);
    return (int)e.state;
}

static const char recorded[] = "{\"message\": {\"message\": \"E: x\", \"extraInfo\": {\"py_callstack\": \"T\", "
                               "\"timestamp\": \"17\"}, \"own\": 1}, \"b\": 2}";

static void test_read(void)
{
    is_num(state_of(at("none")), ERRFILE_ABSENT, "no file");
    is_num(state_of(at("none/below")), ERRFILE_ABSENT, "no folder");
    is_num(state_of(write_text("good", recorded)), ERRFILE_WHOLE, "a good one");
    is_str(e.message, "E: x", "its message");
    is_num(state_of(write_text("half", "{\"message\": \"E")), ERRFILE_CUT, "half a file");
    is_num(state_of(write_text("empty", "")), ERRFILE_CUT, "an empty file");
    is_num(state_of(dir), ERRFILE_NOT_A_FILE, "a folder");
    is_num(state_of("/dev/zero"), ERRFILE_NOT_A_FILE, "an endless device");
    mkfifo(at("fifo"), 0600);
    is_num(state_of(at("fifo")), ERRFILE_NOT_A_FILE, "a FIFO that nobody writes: no wait");
    symlink("loop", at("loop"));
    is_num(state_of(at("loop")), ERRFILE_UNREADABLE, "a link to itself");
    int fd = open(at("huge"), O_CREAT | O_WRONLY, 0600);
    ok(write(fd, recorded, 40) == 40 && ftruncate(fd, (off_t)ERRFILE_SIZE_MAX + 1) == 0,
       "a sparse file over the limit");
    close(fd);
    is_num(state_of(at("huge")), ERRFILE_HUGE, "is not read to its end");
    if (geteuid() == 0) {
        chmod(dir, 0755);
        write_text("secret", recorded);
        chmod(at("secret"), 0);
        pid_t pid = fork();
        if (!pid)
            _exit(setuid(65534) || state_of(at("secret")) != ERRFILE_UNREADABLE);
        int status = -1;
        waitpid(pid, &status, 0);
        is_num(status, 0, "a file of somebody else");
    } else {
        write_text("secret", recorded);
        chmod(at("secret"), 0);
        is_num(state_of(at("secret")), ERRFILE_UNREADABLE, "a file that may not be read");
    }
}

static struct failure make(char *path)
{
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_SIGNAL;
    f.code = 11;
    f.wall_usec = 42000000;
    f.error_file = path;
    return f;
}

static void test_publish(void)
{
    struct el_err err = {0};
    struct failure f = make(write_text("from", recorded));
    char to[200];
    snprintf(to, sizeof to, "%s", at("to"));
    is_num(evidence_publish(&f, to, &err), 0, "the cause's error file goes to the launcher's own");
    is_str(read_text(to),
           "{\"message\": {\"message\": \"E: x\", \"extraInfo\": {\"py_callstack\": \"T\", \"timestamp\": \"17\"}, "
           "\"own\": 1, "
           "\"errorCode\": -11}, \"b\": 2}",
           "with the exit code added and all else as it was");
    f = make(write_text("empty_object", "{\"message\": {}, \"message\": {\"message\": \"x\"}}"));
    is_num(evidence_publish(&f, to, &err), 0, "over an older, longer file");
    is_str(read_text(to), "{\"message\": {}, \"message\": {\"message\": \"x\", \"errorCode\": -11}}",
           "nothing of it stays");
    f = make(write_text("flat", "{\"message\": \"x\"}\n"));
    is_num(evidence_publish(&f, to, &err), 0, "the flat form");
    is_str(read_text(to), "{\"message\": \"x\"}\n", "is copied as it is, as torchrun does");
    static const char made[] =
        "{\"message\": {\"message\": \"signal 11 (SIGSEGV)\", \"extraInfo\": {\"py_callstack\": \"signal 11 "
        "(SIGSEGV)\", \"timestamp\": \"42\"}, \"errorCode\": -11}}";
    f = make(at("none"));
    is_num(evidence_publish(&f, to, &err), 0, "the worker wrote none");
    is_str(read_text(to), made, "one is made");
    f = make(at("half"));
    is_num(evidence_publish(&f, to, &err), 0, "the worker wrote half of one");
    is_str(read_text(to), made, "one is made");
    f = make(NULL);
    is_num(evidence_publish(&f, to, &err), 0, "the worker had none to write");
    f = make(at("from"));
    is_num(evidence_publish(&f, at("from"), &err), 0, "worker and launcher share the file");
    is_str(read_text(at("from")), recorded, "it stays");
    is_num(err.status, 0, "no error so far");
    is_num(evidence_publish(&f, dir, &err), -1, "to a folder");
    ok(err.status == EL_EXIT_CANTCREAT && strstr(err.text, dir), err.text);
    err = (struct el_err){0};
    is_num(evidence_publish(&f, at("fifo"), &err), -1, "to a FIFO that nobody reads: no wait");
    ok(strstr(err.text, "fifo") != NULL, err.text);
    err = (struct el_err){0};
    is_num(evidence_publish(&f, "/dev/null", &err), -1, "to a device");
    ok(strstr(err.text, "not a regular file") != NULL, err.text);
    err = (struct el_err){0};
    is_num(evidence_publish(&f, at("none/below"), &err), -1, "to a folder that is not there");
    ok(strstr(err.text, "No such file") != NULL, err.text);
}

/* A small /proc of our own: mountinfo and cgroup as real hosts have them; @ is our folder. */
static int64_t oom_of(const char *mounts, const char *groups, struct evidence_oom *o)
{
    char text[4096];
    const char *place = strchr(mounts, '@');
    snprintf(text, sizeof text, "%.*s%s%s", place ? (int)(place - mounts) : 0, mounts, place ? dir : "",
             place ? place + 1 : mounts);
    mkdir(at("self"), 0700);
    write_text("self/mountinfo", text);
    write_text("self/cgroup", groups);
    evidence_oom_open(o, dir);
    return evidence_oom_count(o);
}

static void test_oom(void)
{
    struct evidence_oom o;
    char both[300];
    static const char v2[] =
        "22 1 0:20 / /sys rw - sysfs sysfs rw\n30 22 0:26 / @/v2 rw shared:4 - cgroup2 cgroup2 rw\n";
    static const char v1[] = "31 22 0:27 / @/v1 rw - cgroup cgroup rw,cpu,memory\n";
    static const char container[] = "30 22 0:26 /kubepods/pod1 @/v2 rw - cgroup2 cgroup rw\n";
    mkdir(at("v2"), 0700);
    mkdir(at("v2/job"), 0700);
    mkdir(at("v1"), 0700);
    mkdir(at("v1/job"), 0700);
    is_num(oom_of(v2, "0::/job\n", &o), -1, "no counter anywhere");
    is_num(o.source, EVIDENCE_OOM_NONE, "is said");
    write_text("vmstat", "pgfault 1\noom_kill 9\n");
    is_num(oom_of(v2, "0::/job\n", &o), 9, "only the host's counter");
    is_num(o.source, EVIDENCE_OOM_HOST, "is said");
    write_text("v2/job/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 1\n");
    is_num(oom_of(v2, "0::/job\n", &o), 3, "version 2");
    is_num(o.source, EVIDENCE_OOM_CGROUP_V2, "is said");
    write_text("v2/job/memory.events", "oom_kill 5\n");
    is_num(evidence_oom_count(&o), 5, "the counter rises");
    write_text("v1/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
    is_num(oom_of(v1, "9:cpu,memory:/job\n1:name=systemd:/x\n0::/\n", &o), 7, "version 1");
    is_num(o.source, EVIDENCE_OOM_CGROUP_V1, "is said");
    snprintf(both, sizeof both, "%s%s", "30 22 0:26 / /nowhere rw - cgroup2 cgroup2 rw\n", v1);
    is_num(oom_of(both, "9:cpu,memory:/job\n0::/\n", &o), 7, "both versions, the counter with version 1");
    write_text("v2/memory.events", "oom_kill 11\n");
    is_num(oom_of(container, "0::/kubepods/pod1\n", &o), 11, "a container that sees its own folder as the root");
    is_num(oom_of(container, "0::/../../outer/pod2\n", &o), 11, "a path that means nothing here: the mount itself");
    is_num(oom_of(container, "0::/kubepods/pod1/job\n", &o), 5, "a folder below the container's");
    is_num(oom_of("garbage\n - \n30 22 0:26 / \n", "no colons\n::\n0:\n", &o), 9,
           "unreadable tables: the host's counter");
    evidence_oom_open(&o, at("nowhere"));
    is_num(evidence_oom_count(&o), -1, "no /proc");
    evidence_oom_open(&o, "/proc");
    ok(o.source != EVIDENCE_OOM_NONE && evidence_oom_count(&o) >= 0, "on this host something is found");
}

/* The real thing: a memory cgroup of 16 MiB, in which a child of this process wants more. */
static void test_oom_real(void)
{
    static const char *const places[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    static const char what[] = "the kernel's out-of-memory killer is seen";
    for (unsigned i = 0; i < 2; i++) {
        char group[100], path[200];
        snprintf(group, sizeof group, "%s/elrun-evidence-%d", places[i], (int)getpid());
        snprintf(path, sizeof path, "%s/%s", group, limits[i]);
        if (mkdir(group, 0755))
            continue;
        FILE *f = fopen(path, "w");
        bool limited = f && fputs("16777216", f) >= 0;
        if (!f || fclose(f) || !limited) {
            rmdir(group);
            continue;
        }
        pid_t pid = fork();
        if (!pid) {
            struct evidence_oom o;
            snprintf(path, sizeof path, "%s/cgroup.procs", group);
            f = fopen(path, "w");
            if (!f || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f))
                _exit(2);
            evidence_oom_open(&o, "/proc");
            int64_t before = evidence_oom_count(&o);
            pid_t eater = fork();
            for (size_t n = 0; !eater && n < 64; n++)
                memset(malloc(1 << 20), 1, 1 << 20);
            if (!eater)
                _exit(0);
            int how = 0;
            waitpid(eater, &how, 0);
            bool seen = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL && evidence_oom_count(&o) > before;
            _exit(seen && (o.source == EVIDENCE_OOM_CGROUP_V1 || o.source == EVIDENCE_OOM_CGROUP_V2) ? 0 : 3);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            skip(what, "no process can be put into a memory cgroup here");
        else
            is_num(status, 0, what);
        rmdir(group);
        return;
    }
    skip(what, "no memory cgroup can be made here");
}

/* Of a source that is a plain file, and no larger than one is. */
static void test_source(void)
{
    struct handler_place p = {.line = 2, .words = "x()", .type = "KeyError", .module = true};
    const char *path = write_text("a.py", "try:\n    x()\nexcept KeyError:\n    p()\ny()\n");
    snprintf(p.path, sizeof p.path, "%s", path);
    is_num(evidence_handler(&p), HANDLER_GOES_ON, "a source");
    snprintf(p.path, sizeof p.path, "/proc/self/root%s", path);
    is_num(evidence_handler(&p), HANDLER_UNKNOWN, "the kernel's files are not opened");
    snprintf(p.path, sizeof p.path, "%s", at("none"));
    is_num(evidence_handler(&p), HANDLER_UNKNOWN, "none");
    snprintf(p.path, sizeof p.path, "%s", at("source.fifo"));
    mkfifo(p.path, 0600);
    is_num(evidence_handler(&p), HANDLER_UNKNOWN, "a FIFO");
    snprintf(p.path, sizeof p.path, "%s", path);
    is_num(truncate(path, HANDLER_SOURCE_MAX + 1), 0, "a file that is larger than any source");
    is_num(evidence_handler(&p), HANDLER_UNKNOWN, "... is not read");
}

static void test_time(void)
{
    char out[32];
    setenv("TZ", "UTC", 1);
    evidence_time_text(INT64_C(1700000000123456), out);
    is_str(out, "2023-11-14_22:13:20", "a time as torchrun writes it");
    evidence_time_text(-1, out);
    is_str(out, "unknown", "no time");
}

int main(void)
{
    char command[100];
    if (!mkdtemp(dir))
        return 1;
    test_read();
    test_publish();
    test_oom();
    test_oom_real();
    test_source();
    test_time();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) || done();
}
