/* What is put together from events: one node, several with clocks apart, several jobs in one file, whatever else a file
 * may hold; and from what a log folder holds without them. */
#include "lib/tap.h"
#include "history/job_history.h"
#include "event/event_read.h"

#define T0 (INT64_C(1763757408) * 1000000)

static struct el_buf text = EL_BUF_INIT(NULL, 0);

static struct event event(enum event_type type, const char *host, double sec, uint64_t round)
{
    return (struct event){
        .type = type, .wall_usec = T0 + (int64_t)(sec * 1e6), .run_id = "job", .host = host, .round = round};
}

static void put(struct el_buf *to, struct event ev)
{
    event_encode(&ev, to);
}

static void put_round(struct el_buf *to, const char *host, double sec, uint64_t round, unsigned rank, unsigned restarts)
{
    struct event ev = event(EVENT_WORKERS_STARTING, host, sec, round);
    ev.u.workers_starting = (struct event_workers_starting){.first_rank = rank, .workers = 2, .restarts = restarts};
    put(to, ev);
    ev = event(EVENT_WORKERS_STARTED, host, sec + 0.1, round);
    ev.u.workers_started = (struct event_workers_started){.workers = 2, .restarts = restarts};
    put(to, ev);
}

static void put_failure(struct el_buf *to, const char *host, double sec, uint64_t round, unsigned rank,
                        const char *message)
{
    struct failure f;
    struct el_buf record = EL_BUF_INIT(NULL, 0);
    failure_init(&f);
    f.rank = rank;
    f.host = host;
    f.end = FAILURE_EXIT;
    f.code = 3;
    f.round = round;
    f.wall_usec = T0 + (int64_t)(sec * 1e6);
    f.at = 5; /* some other host's monotonic clock */
    f.message = el_strndup(NULL, message, strlen(message));
    failure_judge(&f, false, false);
    record_write(&f, RECORD_BYTES_MAX, &record);
    struct event ev = event(EVENT_INCIDENT, host, sec + 0.01, round);
    ev.u.incident = (struct event_incident){.rank = rank, .cause = true, .record = el_buf_cstr(&record)};
    put(to, ev);
    el_buf_free(&record);
    failure_free(&f, NULL);
}

static void put_ended(struct el_buf *to, const char *host, double sec, uint64_t round, unsigned rank, int signal)
{
    struct event ev = event(EVENT_WORKER_ENDED, host, sec, round);
    ev.u.worker_ended = (struct event_worker_ended){
        .rank = rank, .exit_code = signal ? -1 : 3, .signal = signal ? signal : -1, .stopped = signal != 0};
    put(to, ev);
}

/* A node in two rounds; in the second one rank + 1 fails if it is asked for. */
static void put_node(struct el_buf *to, const char *host, double clock, unsigned rank, bool fails, int status)
{
    struct event ev = event(EVENT_AGENT_STARTED, host, clock, 0);
    ev.u.agent_started = (struct event_agent_started){.pid = 1, .workers = 2, .script = "train.py"};
    put(to, ev);
    put_round(to, host, clock + 1, 1, rank, 0);
    put(to, event(EVENT_WORKERS_STOPPING, host, clock + 20, 1));
    put_ended(to, host, clock + 20, 1, rank, 15);
    put(to, event(EVENT_WORKERS_STOPPED, host, clock + 21, 1));
    put_round(to, host, clock + 22, 2, rank, 1);
    if (fails)
        put_ended(to, host, clock + 39, 2, rank + 1, 0);
    put_ended(to, host, clock + 40, 2, rank, 15);
    if (fails)
        put_failure(to, host, clock + 39, 2, rank + 1, "ValueError: bad shape");
    put(to, event(EVENT_WORKERS_STOPPED, host, clock + 41, 2));
    ev = event(EVENT_AGENT_ENDED, host, clock + 42, 0);
    ev.u.agent_ended = (struct event_agent_ended){.status = (uint64_t)status, .text = status ? "rank 1 failed" : NULL};
    put(to, ev);
}

/* As logdir_scan_io.c does it. */
static void feed(struct job_history *c, const char *bytes, size_t n)
{
    struct job_history_scan scan = {.at = 0};
    size_t at = 0;
    for (size_t len; at < n; at += len) {
        const char *end = memchr(bytes + at, '\n', n - at);
        len = end ? (size_t)(end - bytes) + 1 - at : n - at;
        job_history_scan(&scan, bytes + at, len);
    }
    job_history_file_begin(c, scan.run_id);
    for (at = (size_t)scan.begins; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t len = end ? (size_t)(end - bytes) - at : n - at;
        job_history_line(c, bytes + at, len);
        at += len + (end != NULL);
    }
    job_history_file_end(c, "a file", n && bytes[n - 1] != '\n');
}

static const char *told(struct job_history *c)
{
    struct job_history_look look = {.line = {.columns = 80}, .style = &summary_plain};
    text.len = 0;
    job_history_close(c);
    job_history_text(c, &look, &text);
    return el_buf_cstr(&text);
}

static void test_nodes(void)
{
    struct el_mem mem = EL_MEM_INIT(64 << 20);
    struct el_buf a = EL_BUF_INIT(NULL, 0), b = EL_BUF_INIT(NULL, 0);
    struct job_history c;
    put_node(&a, "node-a", 0, 0, false, 3);
    put_node(&b, "node-b", 3600, 2, true, 3); /* its clock is an hour ahead */
    put_failure(&a, "node-a", 39.5, 2, 0, "RuntimeError: a follower of it, half a second later");
    job_history_init(&c, &mem);
    feed(&c, a.v, a.len);
    feed(&c, b.v, b.len);
    const char *said = told(&c);
    ok(strstr(said, "train.py: failed with status 3 after 42.0s; 2 rounds on 2 nodes, 1 restart; run job\n") == said,
       "what it was");
    ok(strstr(said, "\n1 20:37:27 rank 3 (local rank 0) failed: exit code 3: ValueError: bad shape\n"),
       "the mark, on the first node's clock");
    ok(strstr(said, "elrun: rank 3 failed: exit code 3: ValueError: bad shape\n"),
       "the first cause is first by aligned time, not by the clock of its host");
    ok(strstr(said, "clocks of the nodes differ by up to 3600 s"), "that is said");
    ok(strstr(said, "1 other ended because of it: rank 2 (stopped by elrun)"), "who was stopped");
    struct el_buf json = EL_BUF_INIT(NULL, 0);
    ok(job_history_json(&c, &json) == 0 && strstr(el_buf_cstr(&json), "\"clock_offset_usec\":-3600000000"),
       "for programs");
    el_buf_free(&json);
    json = EL_BUF_INIT(NULL, 100);
    ok(job_history_json(&c, &json) < 0 && json.len == 0, "whole, or not at all");
    el_buf_free(&json);
    job_history_free(&c);
    is_num((long long)mem.used_bytes, 0, "all memory is given back");
    el_buf_free(&a);
    el_buf_free(&b);
}

static void test_jobs(void)
{
    struct el_buf a = EL_BUF_INIT(NULL, 0);
    struct job_history c;
    put_node(&a, "node-a", 0, 0, true, 3);
    put_node(&a, "node-a", 100, 0, false, 0);
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    const char *said = told(&c);
    ok(strstr(said, "succeeded after 42.0s") && !strstr(said, "ValueError"), "of two jobs in one file the last one");
    job_history_free(&c);
    a.len = 0;
    put_node(&a, "node-a", 0, 0, false, 0);
    a.len -= 30; /* breaks off in the last line */
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    said = told(&c);
    ok(strstr(said, "breaks off in the middle of a line"), "a torn end");
    ok(strstr(said, "the job runs on, or 1 agent ended without a word"), "no end is recorded");
    ok(!job_history_failed(&c), "and none is made up");
    job_history_free(&c);
    a.len = 0;
    put_failure(&a, "node-a", 1, 7, 4, "KeyError: 'x'");
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    ok(strstr(told(&c), "elrun: rank 4 failed: exit code 3: KeyError: 'x'\n"), "an incident alone");
    job_history_free(&c);
    el_buf_free(&a);
}

static void test_lost(void)
{
    struct el_buf a = EL_BUF_INIT(NULL, 0);
    struct job_history c;
    put_node(&a, "node-a", 0, 0, false, 0);
    struct event ev = event(EVENT_OF_NOTE(NOTE_LOST), "node-a", 20, 1);
    ev.source = EVENT_COORDINATOR;
    ev.u.note = (struct event_note){.node = "node-z", .text = "silent for 5.0 s", .status = -1};
    put(&a, ev);
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    ok(strstr(told(&c), "\n1 20:37:08 node-z: silent for 5.0 s\n"), "a node that only the coordinator knows");
    job_history_free(&c);
    el_buf_free(&a);
}

static void test_foreign(void)
{
    static const char foreign[] =
        "hello\n{}\n[1]\n{\"v\":1}\n{\"v\":1,\"event\":\"job_started\",\"time\":\"yesterday\"}\n"
        "{\"v\":1,\"event\":\"from_the_future\",\"time\":\"2025-11-21T20:36:48.000000Z\"}\n"
        "{\"v\":2,\"event\":\"job_started\",\"time\":\"2025-11-21T20:36:48.000000Z\"}\n\n\0\n";
    struct job_history c;
    job_history_init(&c, NULL);
    feed(&c, foreign, sizeof foreign - 1);
    ok(!c.any, "nothing of a job");
    ok(strstr(el_buf_cstr(&c.remarks), "6 of 8 lines are no events"), "lines that are none");
    ok(strstr(el_buf_cstr(&c.remarks), "2 events are of a newer elrun"), "lines that are new");
    feed(&c, "", 0);
    ok(strstr(el_buf_cstr(&c.remarks), "a file: empty"), "an empty file");
    feed(&c, "x\n", 2);
    ok(strstr(el_buf_cstr(&c.remarks), "none of its 1 lines is one"), "a file of something else");
    struct el_buf a = EL_BUF_INIT(NULL, 0);
    put_node(&a, "\033[31mred", 0, 0, true, 3);
    feed(&c, a.v, a.len);
    ok(!strchr(told(&c), '\033'), "what a terminal would act on is taken out");
    job_history_free(&c);
    a.len = 0;
    struct event ev = event(EVENT_AGENT_STARTED, "a", 0, 0);
    put(&a, ev);
    ev.wall_usec = T0 * 100;
    put(&a, ev);
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    int64_t from = 1, to = 0;
    ok(timeline_span(&c.line, &from, &to) && from == to, "a time that is years away is not believed");
    job_history_free(&c);
    el_buf_free(&a);
}

/* The disk was full before the incident: how the worker ended is known, and that nobody looked is not claimed. */
static void test_untold(void)
{
    struct el_buf a = EL_BUF_INIT(NULL, 0);
    struct job_history c;
    put(&a, event(EVENT_AGENT_STARTED, "a", 0, 0));
    put_round(&a, "a", 1, 1, 0, 0);
    put_ended(&a, "a", 2, 1, 0, 0);
    job_history_init(&c, NULL);
    feed(&c, a.v, a.len);
    const char *said = told(&c);
    ok(strstr(said, "elrun: rank 0 failed: exit code 3"), "a worker's end without its incident");
    ok(strstr(said, "  only how it ended was told") && !strstr(said, "not looked at"), "says that it knows no more");
    job_history_free(&c);
    el_buf_free(&a);
}

/* A storm: bounded, and the memory that is refused is told. */
static void test_many(void)
{
    struct el_mem mem = EL_MEM_INIT(4 << 20);
    struct el_buf a = EL_BUF_INIT(NULL, 0);
    struct job_history c;
    put(&a, event(EVENT_AGENT_STARTED, "a", 0, 0));
    put_round(&a, "a", 1, 1, 0, 0);
    for (unsigned i = 0; i < 8000; i++)
        put_ended(&a, "a", 2, 1, i, 0);
    job_history_init(&c, &mem);
    feed(&c, a.v, a.len);
    ok(c.faults <= JOB_HISTORY_FAULTS_MAX && c.faults + c.faults_left_out == 8000, "8,000 failures");
    ok(strstr(told(&c), "failures are left out"), "those that are left out are counted");
    job_history_free(&c);
    is_num((long long)mem.used_bytes, 0, "all memory is given back");
    el_buf_free(&a);
}

static void left(struct job_history *c, int node, unsigned rank, uint64_t round, const char *stderr_text)
{
    struct record *r = el_alloc(c->mem, sizeof *r);
    failure_init(&r->failure);
    r->failure.role = r->role;
    r->failure.host = r->host;
    r->failure.rank = rank;
    r->failure.round = round;
    r->failure.wall_usec = T0 + 30000000;
    failure_add_stderr(&r->failure, stderr_text, strlen(stderr_text), c->mem);
    failure_judge(&r->failure, false, false);
    job_history_left(c, node, r);
}

static void test_tree(void)
{
    struct el_mem mem = EL_MEM_INIT(16 << 20);
    struct job_history c;
    job_history_init(&c, &mem);
    int node = job_history_run(&c, "job_12345678");
    left(&c, node, 0, 1, "just words\n");
    left(&c, node, 1, 1, "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nKeyError: 'a'\n");
    job_history_attempt(&c, node, 0, 1, 2, T0, T0 + 30000000);
    const char *said = told(&c);
    ok(strstr(said, "failed after 30.0s; 1 round on 1 node"), "from a log folder alone");
    ok(strstr(said, "KeyError: 'a'") && !strstr(said, "rank 0 "),
       "who left a traceback has failed, the others have not");
    ok(strstr(said, "how workers ended is not known"), "what is not known is said");
    job_history_free(&c);
    is_num((long long)mem.used_bytes, 0, "all memory is given back");
}

static void test_lines(void)
{
    struct event_read r;
    is_num(event_time_parse("2025-11-21T20:36:48.000001Z"), T0 + 1, "a time");
    is_num(event_time_parse("1970-01-01T00:00:00.000000Z"), 0, "the first one");
    is_num(event_time_parse("9999-12-31T23:59:59.999999Z"), INT64_C(253402300799999999), "the last one");
    static const char *const bad[] = {"", "2025-11-21T20:36:48Z", "2025-13-21T20:36:48.000001Z",
                                      "2025-11-21T20:36:48.000001Zx", "1969-11-21T20:36:48.000001Z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        is_num(event_time_parse(bad[i]), -1, "no time");
    /* Every kind of event comes back as it went out. */
    struct el_buf a = EL_BUF_INIT(NULL, 0), b = EL_BUF_INIT(NULL, 0);
    bool same = true;
    for (unsigned type = 0; type < EVENT_TYPES; type++) {
        struct event ev = event((enum event_type)type, "h\xc3\xb6st", type, type);
        a.len = b.len = 0;
        put(&a, ev);
        same &= event_decode(a.v, a.len - 1, &r) == EVENT_LINE_READ;
        put(&b, r.event);
        same &= b.len == a.len && memcmp(a.v, b.v, a.len) == 0;
        event_release(&r);
    }
    ok(same, "all events come back as they were");
    is_num((long long)event_number("{\"a\":1.5,\"b\":7}", "b"), 7, "a number of an object");
    is_num((long long)event_number("{\"a\"", "a"), 0, "of none");
    el_buf_free(&a);
    el_buf_free(&b);
}

int main(void)
{
    test_lines();
    test_nodes();
    test_jobs();
    test_lost();
    test_foreign();
    test_untold();
    test_many();
    test_tree();
    el_buf_free(&text);
    return done();
}
