/* A failure as a document and back: nothing is lost, nothing is longer than it may be, nothing a stranger writes does
 * harm. */
#include "failure/record.h"
#include "lib/tap.h"
#include "util/array.h"

#include <jansson.h>

static struct el_mem mem = EL_MEM_INIT(0);

static struct failure sample(void)
{
    struct failure f;
    failure_init(&f);
    f.rank = 37;
    f.local_rank = 5;
    f.node_rank = 4;
    f.pid = 4711;
    f.role = "trainer";
    f.host = "node-5";
    f.end = FAILURE_EXIT;
    f.code = 3;
    f.class = FAILURE_CLASS_CODE;
    f.at = 123456789;
    f.wall_usec = 1700000000123456;
    f.stop_wall_usec = -1;
    f.elapsed = 42;
    f.restart = 2;
    f.round = 7;
    f.follower = f.private_link = true;
    f.watch = FAILURE_WATCH_YES;
    f.file_state = ERRFILE_WHOLE;
    f.file_sec = 1700000000;
    snprintf(f.time_text, sizeof f.time_text, "2026-11-21_20:36:48");
    f.found.kind = TRACEBACK_PYTHON;
    snprintf(f.found.type, sizeof f.found.type, "ValueError");
    snprintf(f.found.message, sizeof f.found.message, "bad \"shape\" é");
    snprintf(f.found.file, sizeof f.found.file, "/home/u/train.py");
    f.found.line = 12;
    f.rule = CLASSIFY_NCCL_REMOTE;
    snprintf(f.sign, sizeof f.sign, "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus");
    f.found.user_frame = f.found.chained = true;
    f.message = el_strndup(&mem, "ValueError: bad \"shape\" é", 26);
    f.stack = el_strndup(&mem, "Traceback (most recent call last):\n  x\nValueError: bad", 54);
    f.stack_from = FAILURE_FROM_STDERR;
    f.error_file = el_strndup(&mem, "/tmp/e\\x.json", 13);
    f.log_dir = el_strndup(&mem, "/far/run", 8);
    f.siblings = el_strndup(&mem, "rank 1 stopped", 14);
    f.left = el_strndup(&mem, "rank 2 had ended", 16);
    f.core = el_strndup(&mem, "/var/core.7", 11);
    f.kernel = el_strndup(&mem, "NVRM: a\npython[7]: b", 20);
    f.tail_from = FAILURE_FROM_STDOUT;
    f.oom = FAILURE_OOM_OTHERS;
    f.xid = 79;
    f.xid_own = true;
    snprintf(f.xid_device, sizeof f.xid_device, "0000:3b:00");
    return f;
}

static bool equal_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool equal(const struct failure *a, const struct failure *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank && a->node_rank == b->node_rank && a->pid == b->pid &&
           strcmp(a->role, b->role) == 0 && strcmp(a->host, b->host) == 0 && a->end == b->end && a->code == b->code &&
           a->core_dumped == b->core_dumped && a->by == b->by && a->class == b->class && a->follower == b->follower &&
           a->hung == b->hung && a->odd == b->odd && a->at == b->at && a->wall_usec == b->wall_usec &&
           a->stop_wall_usec == b->stop_wall_usec && a->elapsed == b->elapsed && a->restart == b->restart &&
           a->round == b->round && strcmp(a->time_text, b->time_text) == 0 && a->watch == b->watch &&
           a->file_state == b->file_state && a->file_sec == b->file_sec && a->stack_from == b->stack_from &&
           a->private_link == b->private_link && a->tail_from == b->tail_from &&
           equal_texts(a->siblings, b->siblings) && equal_texts(a->left, b->left) && equal_texts(a->core, b->core) &&
           equal_texts(a->kernel, b->kernel) && a->oom == b->oom && a->xid == b->xid && a->xid_own == b->xid_own &&
           strcmp(a->xid_device, b->xid_device) == 0 && a->texts_short == b->texts_short &&
           equal_texts(a->message, b->message) && equal_texts(a->stack, b->stack) && equal_texts(a->tail, b->tail) &&
           equal_texts(a->error_file, b->error_file) && equal_texts(a->log_file, b->log_file) &&
           equal_texts(a->log_dir, b->log_dir) && a->rule == b->rule && strcmp(a->sign, b->sign) == 0 &&
           a->found.kind == b->found.kind && a->found.line == b->found.line &&
           strcmp(a->found.type, b->found.type) == 0 && strcmp(a->found.message, b->found.message) == 0 &&
           strcmp(a->found.file, b->found.file) == 0 && a->found.user_frame == b->found.user_frame &&
           a->found.chained == b->found.chained && a->found.nested == b->found.nested;
}

static void round_trip(void)
{
    struct failure f = sample();
    struct el_buf out = EL_BUF_INIT(&mem, 0), again = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct record r;
    is_num(record_write(&f, RECORD_BYTES_MAX, &out), 0, "written");
    ok(!memchr(out.v, '\n', out.len), "on one line");
    is_num(record_read(&r, out.v, out.len, &mem, &e), 0, "read");
    ok(equal(&f, &r.failure), "and nothing was lost");
    ok(!r.failure.texts_short, "it was not shortened");
    record_write(&r.failure, RECORD_BYTES_MAX, &again);
    ok(again.len == out.len && memcmp(again.v, out.v, out.len) == 0, "the same document comes of it");
    record_free(&r, &mem);
    f.end = FAILURE_SIGNAL;
    f.code = 9;
    f.by = FAILURE_BY_OUTSIDE;
    out.len = 0;
    record_write(&f, RECORD_BYTES_MAX, &out);
    ok(strstr(el_buf_cstr(&out), "\"signal\":\"SIGKILL\""), "a signal has its name");
    record_read(&r, out.v, out.len, &mem, &e);
    ok(r.failure.end == FAILURE_SIGNAL && r.failure.code == 9 && r.failure.by == FAILURE_BY_OUTSIDE, "and comes back");
    record_free(&r, &mem);
    failure_free(&f, &mem);
    el_buf_free(&out);
    el_buf_free(&again);
}

/* Who raised first is the cause, though it ended last: also where only the records are left. */
static void test_cause(void)
{
    static const char said[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 8, in <module>\n    f()\n"
                               "ValueError: the first\n";
    struct failure f[2] = {sample(), sample()};
    struct failure *const first = &f[1];
    struct record r[2];
    struct el_err e = {0};
    for (size_t i = 0; i < 2; i++) {
        failure_free(&f[i], &mem);
        failure_init(&f[i]);
        f[i].rank = (unsigned)i;
        f[i].end = FAILURE_EXIT;
        f[i].code = 1;
        f[i].at = EL_SEC(100 + 20 * i);
    }
    failure_add_stderr(first, said, sizeof said - 1, &mem);
    first->said_at = EL_SEC(90);
    failure_add_handler(first, HANDLER_NONE, &mem);
    for (size_t i = 0; i < 2; i++) {
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        failure_judge(&f[i], false, false);
        is_num(record_write(&f[i], RECORD_BYTES_LEAST, &out) || record_read(&r[i], out.v, out.len, &mem, &e), 0,
               e.text);
        el_buf_free(&out);
    }
    const struct failure *const live[] = {&f[0], &f[1]}, *const read[] = {&r[0].failure, &r[1].failure};
    is_num(failure_cause(live, 2), 1, "who raised first is the cause");
    is_num(failure_cause(read, 2), 1, "... and so the records have it");
    is_num(failure_at(read[1]), failure_at(live[1]), "... when it raised");
    is_num(failure_at(read[0]), failure_at(live[0]), "... when the other one ended");
    for (size_t i = 0; i < 2; i++) {
        record_free(&r[i], &mem);
        failure_free(&f[i], &mem);
    }
}

static char *long_text(size_t n, const char *line)
{
    char *v = el_alloc(&mem, n + 1);
    size_t len = strlen(line);
    for (size_t i = 0; i < n; i++)
        v[i] = line[i % len];
    memcpy(v, "FIRST\n", 6);
    memcpy(v + n - 5, "\nLAST", 5);
    return v;
}

static size_t size_at(const struct failure *f, size_t limit, struct record *r)
{
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    memset(r, 0, sizeof *r);
    int bad = record_write(f, limit, &out) || record_read(r, out.v, out.len, &mem, &e);
    size_t n = bad ? 0 : out.len;
    el_buf_free(&out);
    return n;
}

static void limits(void)
{
    struct failure f = sample();
    struct record r;
    el_free(&mem, f.stack);
    f.stack = long_text(39000, "  File \"x.py\", line 3, in f\n");
    f.tail = long_text(8000, "step 1\n");
    size_t n = size_at(&f, RECORD_BYTES_MAX, &r);
    ok(n && n <= RECORD_BYTES_MAX, "a long traceback and a tail: within the limit");
    ok(r.failure.texts_short && strlen(r.failure.stack) == 39000, "the tail gave, the traceback is whole");
    ok(strstr(r.failure.tail, "bytes left out") && strstr(r.failure.tail, "\nLAST"), "the end of the tail stayed");
    ok(!strstr(r.failure.tail, "FIRST"), "its beginning did not");
    record_free(&r, &mem);
    n = size_at(&f, 16384, &r);
    ok(n && n <= 16384, "16 KiB");
    const char *mark = r.failure.stack ? strstr(r.failure.stack, "\n[… ") : NULL;
    ok(mark && strncmp(r.failure.stack, "FIRST\n", 6) == 0 && strstr(mark, "\nLAST"),
       "the first lines and the end stay");
    ok(mark && strstr(mark, " bytes left out …]\n  File \"x.py\""), "cut between lines");
    size_t left_out = mark ? strtoul(mark + strlen("\n[… "), NULL, 10) : 0;
    const char *behind = mark ? strchr(mark + 1, '\n') + 1 : "";
    is_num(left_out, 39000 - (size_t)(mark - r.failure.stack + 1) - strlen(behind),
           "the mark says how much is missing");
    is_str(r.failure.message, f.message, "the message is whole");
    record_free(&r, &mem);
    n = size_at(&f, RECORD_BYTES_LEAST, &r);
    ok(n && n <= RECORD_BYTES_LEAST && r.failure.stack, "the least limit");
    record_free(&r, &mem);
    failure_free(&f, &mem);
}

/* Everything as long as it can be, of the bytes that cost most. */
static void worst(void)
{
    struct failure f = sample();
    struct record r;
    static char name[400];
    memset(name, 1, sizeof name - 1);
    failure_free(&f, &mem);
    char **all[] = {&f.message, &f.stack,    &f.tail, &f.error_file, &f.log_file,
                    &f.log_dir, &f.siblings, &f.left, &f.core,       &f.kernel};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        *all[i] = el_alloc(&mem, 70001);
        memset(*all[i], 1, 70000);
    }
    memset(f.found.type, 1, sizeof f.found.type - 1);
    memset(f.found.message, 1, sizeof f.found.message - 1);
    memset(f.found.file, 1, sizeof f.found.file - 1);
    memset(f.found.function, 1, sizeof f.found.function - 1);
    memset(f.time_text, 1, sizeof f.time_text - 1);
    f.role = f.host = name;
    f.at = f.elapsed = f.round = UINT64_MAX;
    f.wall_usec = INT64_MAX;
    for (size_t limit = RECORD_BYTES_LEAST; limit <= RECORD_BYTES_MAX; limit += 1009) {
        size_t n = size_at(&f, limit, &r);
        if (!n || n > limit)
            ok(false, "control characters everywhere fit every limit");
        record_free(&r, &mem);
    }
    ok(true, "control characters everywhere fit every limit");
    memset(f.stack, 0xc3, 70000);
    size_t n = size_at(&f, RECORD_BYTES_MAX, &r);
    ok(n && n <= RECORD_BYTES_MAX && r.failure.stack, "bytes that are not UTF-8 are replaced");
    record_free(&r, &mem);
    for (unsigned i = 0; i < 70000; i += 2)
        memcpy(f.stack + i, "é", 2);
    n = size_at(&f, 20001, &r);
    ok(n && n <= 20001 && r.failure.stack && !strstr(r.failure.stack, "\xef\xbf\xbd"), "no character is cut in two");
    record_free(&r, &mem);
    failure_free(&f, &mem);
}

static void strangers(void)
{
    static const char *const refused[] = {"",
                                          "{",
                                          "[]",
                                          "1",
                                          "\"x\"",
                                          "{\"rank\":1,\"rank\":2}",
                                          "{\"rank\":1}x",
                                          "{\"a\":[[[[[[1]]]]]]}",
                                          "{\"rank\":99999999999999999999999}"};
    struct el_err e;
    struct record r;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        e = (struct el_err){0};
        ok(record_read(&r, refused[i], strlen(refused[i]), &mem, &e) < 0 && e.text[0], refused[i]);
        record_free(&r, &mem);
    }
    const char *text = "{\"rank\":-1,\"local_rank\":\"x\",\"end\":\"exit\",\"code\":0,\"class\":\"new\",\"follower\":1,"
                       "\"host\":7,\"found\":[],\"message\":{},\"wall_usec\":-7,\"error_file_sec\":4611686018427387904,"
                       "\"traceback\":\"a\\u001b[31mb\\nc\",\"log_file\":\"x\\ny\",\"time\":\"now\\nthen\","
                       "\"role\":\"\\u001b]0;x\\u0007r\"}";
    is_num(record_read(&r, text, strlen(text), &mem, &e), 0, "wrong types are passed over");
    struct failure none;
    failure_init(&none);
    ok(r.failure.rank == 0 && r.failure.local_rank == 0 && r.failure.class == none.class && !r.failure.follower &&
           r.failure.wall_usec == -1 && r.failure.file_sec == -1 && !r.failure.message && !*r.failure.host,
       "and are as if they were missing");
    ok(r.failure.end == FAILURE_UNKNOWN && r.failure.code == 0, "an exit without a code is none");
    is_str(r.failure.stack, "ab\nc", "escape sequences go away");
    is_str(r.failure.log_file, "x y", "a path is one line");
    is_str(r.failure.time_text, "now then", "so is a time");
    is_str(r.failure.role, "r", "and a role");
    record_free(&r, &mem);
    is_num(record_read(&r, "{}", 2, &mem, &e), 0, "an empty object is a failure of which nothing is known");
    record_free(&r, &mem);
}

static void memory(void)
{
    struct failure f = sample();
    struct el_buf out = EL_BUF_INIT(NULL, 0), small = EL_BUF_INIT(NULL, 100);
    struct el_mem few = EL_MEM_INIT(0);
    struct el_err e = {0};
    struct record r;
    record_write(&f, RECORD_BYTES_MAX, &out);
    el_buf_puts(&small, "before");
    ok(record_write(&f, RECORD_BYTES_MAX, &small) < 0 && small.len == 6, "no room: nothing is appended");
    int refused = 0;
    for (long n = 0; n < 40; n++) {
        few.fail_after = n;
        refused += record_read(&r, out.v, out.len, &few, &e) < 0;
        record_free(&r, &few);
        few.fail_after = n;
        struct el_buf to = EL_BUF_INIT(&few, 0);
        record_write(&f, RECORD_BYTES_MAX, &to);
        el_buf_free(&to);
    }
    ok(refused > 0 && few.used_bytes == 0, "memory that is refused at any moment: an error, and nothing is left");
    el_buf_free(&out);
    el_buf_free(&small);
    failure_free(&f, &mem);
}

/* man/elrun-events.5 has a line ".It Va field Pq kind" for each member. */
static unsigned undocumented(const json_t *o, const char *page)
{
    unsigned n = 0;
    const char *name;
    const json_t *v;
    json_object_foreach((json_t *)(uintptr_t)o, name, v)
    {
        char want[96];
        snprintf(want, sizeof want, "\n.It Va %s Pq %s", name,
                 json_is_boolean(v)  ? "boolean\n"
                 : json_is_object(v) ? "object\n"
                 : json_is_number(v) ? "number\n"
                                     : "string");
        if (strstr(page, want))
            continue;
        n++;
        printf("# %s is not in the manual\n", name);
    }
    return n;
}

static void test_manual(void)
{
    static char page[256 << 10];
    struct failure f = sample();
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    FILE *man = fopen("man/elrun-events.5", "r");
    page[man ? fread(page, 1, sizeof page - 1, man) : 0] = 0;
    if (man)
        fclose(man);
    const char *record = strstr(page, "\n.Sh THE RECORD\n");
    record_write(&f, RECORD_BYTES_MAX, &out);
    json_t *o = json_loadb(out.v, out.len, 0, NULL);
    const char *found = record ? strstr(record, "\n.Va found\n") : NULL;
    ok(found && json_object_size(o) > 30, "the manual has a section on it");
    is_num(found ? undocumented(o, record) : 1, 0, "each member stands there with its kind");
    is_num(found ? undocumented(json_object_get(o, "found"), found) : 1, 0, "each member of found, too");
    json_decref(o);
    el_buf_free(&out);
    failure_free(&f, &mem);
}

/* An enumeration and its words are two lists. */
static void test_words(void)
{
    struct failure f = sample();
    struct el_err e = {0};
    unsigned wrong = 0;
    for (unsigned i = 0; i < CLASSIFY_COUNT; i++) {
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        struct record r;
        char want[64];
        f.rule = i;
        f.found.kind = i % (TRACEBACK_PANIC + 1);
        record_write(&f, RECORD_BYTES_MAX, &out);
        snprintf(want, sizeof want, "\"rule\":\"%s\"", i ? classify_name(i) : "none");
        record_read(&r, out.v, out.len, &mem, &e);
        wrong += !strstr(el_buf_cstr(&out), want) || r.failure.rule != i || r.failure.found.kind != f.found.kind;
        record_free(&r, &mem);
        el_buf_free(&out);
    }
    is_num(wrong, 0, "each rule has its own name, and comes back, as each kind of traceback does");
    failure_free(&f, &mem);
}

int main(void)
{
    test_words();
    round_trip();
    test_cause();
    limits();
    worst();
    strangers();
    memory();
    is_num(mem.used_bytes, 0, "all memory was given back");
    test_manual();
    return done();
}
