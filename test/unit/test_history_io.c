/* The files that a probe keeps: past verdicts, baselines, limits. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tap.h"
#include "probe/baseline.h"
#include "probe/history.h"
#include "probe/limits.h"

static char folder[64] = "/tmp/test_history.XXXXXX";
static struct history h;

static void put(const char *path, const char *text, int how)
{
    int fd = open(path, O_WRONLY | O_CREAT | how, 0600);
    ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0, "a file");
}

static void test_history(const char *state, const char *path)
{
    struct el_err e = {0};
    struct history_entry v[2] = {history_entry(1000, "a", true, "xid"), history_entry(1000, "b", false, "")};
    ok(history_open(state, &h, &e) == 0 && h.n == 0, "the folder is made");
    ok(history_append(state, &h, v, 2, &e) == 0 && h.n == 2, "verdicts are added");
    put(path, "{\"time\":1000,\"no", O_APPEND);
    ok(history_append(state, &h, v, 1, &e) == 0, "after a power loss too");
    ok(history_open(state, &h, &e) == 0 && h.n == 3 && h.broken == 1, "what is whole is read again");
    struct el_buf many = EL_BUF_INIT(NULL, 0);
    while (many.len < HISTORY_BYTES_MAX)
        history_encode(&v[1], &many);
    put(path, el_buf_cstr(&many), O_APPEND);
    el_buf_free(&many);
    v[0].time_s = 2000;
    ok(history_open(state, &h, &e) == 0 && h.n == HISTORY_MAX, "a file that has grown");
    is_num(history_append(state, &h, v, 1, &e), 0, "with one more");
    struct stat st;
    ok(stat(path, &st) == 0 && st.st_size < HISTORY_BYTES_MAX, "does not grow without end");
    ok(history_open(state, &h, &e) == 0 && h.n == HISTORY_MAX / 2, "the newest stay");
    is_num(h.v[h.n - 1].time_s, 2000, "to the last");
}

static void test_unwritable(const char *path)
{
    struct el_err e = {0};
    is_num(history_open(path, &h, &e), -1, "a file in the folder's place");
    ok(strstr(e.text, "cannot open") && strstr(e.text, path) && e.status == EL_EXIT_CANTCREAT, "is told with its path");
    e = (struct el_err){0};
    is_num(history_open("/proc/nowhere", &h, &e), -1, "a folder that cannot be made");
    ok(strstr(e.text, "cannot make /proc/nowhere"), "too");
}

static void test_baseline(const char *path)
{
    static struct baseline b, c;
    struct el_err e = {0};
    facts_set(&b.facts, "cpu", "AMD EPYC");
    b.milli[METRIC_HOST_MEM] = 312500;
    is_num(baseline_read(&c, path, &e), -1, "no baseline yet");
    ok(strstr(e.text, "cannot read") && strstr(e.text, path), "is told");
    e = (struct el_err){0};
    ok(baseline_write(&b, path, &e) == 0 && baseline_write(&b, path, &e) == 0, "written, and over the old one");
    ok(baseline_read(&c, path, &e) == 0 && c.milli[METRIC_HOST_MEM] == 312500, "and read");
    is_num(baseline_write(&b, "/proc/nowhere/b", &e), -1, "not to be written");
    ok(strstr(e.text, "cannot write /proc/nowhere/b"), "is told");
    e = (struct el_err){0};
    put(path, "{}", O_TRUNC);
    is_num(baseline_read(&c, path, &e), -1, "something else");
    ok(strncmp(e.text, path, strlen(path)) == 0 && strstr(e.text, "not a baseline"), "is told with its path");
}

static void test_limits(const char *path)
{
    static struct check_conf c;
    struct el_err e = {0};
    check_conf_init(&c);
    is_num(limits_read(&c, path, &e), -1, "no limits");
    ok(strstr(e.text, "cannot read") && strstr(e.text, path), "is told");
    put(path, "{\"ib_rate\": 200}", O_TRUNC);
    e = (struct el_err){0};
    ok(limits_read(&c, path, &e) == 0 && c.limit[CHECK_IB_RATE] == 200, "limits");
    put(path, "{\"ib_rat\": 200}", O_TRUNC);
    is_num(limits_read(&c, path, &e), -1, "a slip");
    ok(strncmp(e.text, path, strlen(path)) == 0 && strstr(e.text, "did you mean ib_rate?"), "is told with the path");
}

int main(void)
{
    char state[96], path[128];
    if (!mkdtemp(folder))
        return 1;
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(path, sizeof path, "%s/" HISTORY_FILE, state);
    test_history(state, path);
    test_unwritable(path);
    unlink(path);
    rmdir(state);
    snprintf(path, sizeof path, "%s/file", folder);
    test_baseline(path);
    unlink(path);
    test_limits(path);
    unlink(path);
    is_num(rmdir(folder), 0, "nothing else was left there");
    return done();
}
