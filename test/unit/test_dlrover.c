/* DLRover's line: its form, and that what follows the brace is JSON whatever a worker wrote. */
#include "failure/dlrover.h"

#include <jansson.h>

#include "lib/tap.h"

static struct failure a_failure(unsigned rank, enum failure_end end, int code)
{
    struct failure f;
    failure_init(&f);
    f.rank = rank;
    f.local_rank = rank % 8;
    f.pid = 4711;
    f.end = end;
    f.code = code;
    snprintf(f.time_text, sizeof f.time_text, "2026-11-21_20:36:48");
    return f;
}

static json_t *object_of(const struct el_buf *line)
{
    const char *brace = line->v ? memchr(line->v, '{', line->len) : NULL;
    return brace ? json_loadb(brace, line->len - (size_t)(brace - line->v), JSON_REJECT_DUPLICATES, NULL) : NULL;
}

int main(void)
{
    static char message[] = "ValueError: \"bad\" shape\n\xff", long_message[8000];
    struct failure a = a_failure(9, FAILURE_EXIT, 1), b = a_failure(10, FAILURE_SIGNAL, 11),
                   c = a_failure(11, FAILURE_SIGNAL, 15);
    const struct failure *all[] = {&a, &b, &c};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    a.message = message;
    c.by = FAILURE_BY_ELRUN;
    is_num(dlrover_line("job", "node-1", 2, all, 3, &out), 0, "a line");
    is_str(el_buf_cstr(&out),
           "job node-1 restart 2 fails: {\"9\": {\"local_rank\": 1, \"exitcode\": 1, \"message\": \"ValueError: "
           "\\\"bad\\\" shape\\n\xef\xbf\xbd\", \"datetime\": \"2026-11-21 20:36:48\"}, \"10\": {\"local_rank\": 2, "
           "\"exitcode\": -11, \"message\": \"Signal 11 (SIGSEGV) received by PID 4711\", \"datetime\": \"2026-11-21 "
           "20:36:48\"}}",
           "as DLRover has it, without what elrun stopped");
    json_t *o = object_of(&out);
    is_num(json_object_size(o), 2, "an object by rank");
    json_decref(o);

    memset(long_message, 'x', sizeof long_message - 1);
    a.message = long_message;
    out.len = 0;
    ok(dlrover_line("a\nb", "n\x1b", 0, all, 1, &out) == 0 && !memchr(out.v, '\n', out.len), "names of strangers");
    ok(out.len < DLROVER_MESSAGE_MAX + 200, "a long message is cut");
    o = object_of(&out);
    ok(o, "and the object is whole");
    json_decref(o);
    a.message = NULL;

    static struct failure many[200];
    static const struct failure *list[200];
    for (unsigned i = 0; i < 200; i++) {
        many[i] = a_failure(i, i % 2 ? FAILURE_UNKNOWN : FAILURE_NOT_STARTED, 71);
        list[i] = &many[i];
    }
    out.len = 0;
    ok(dlrover_line("job", "node", 0, list, 200, &out) == 0, "a storm");
    o = object_of(&out);
    is_num(json_object_size(o), DLROVER_RANKS_MAX, "is bounded");
    json_decref(o);
    out.len = 0;
    is_num(dlrover_line("job", "node", 0, NULL, 0, &out), 0, "nobody");
    is_str(el_buf_cstr(&out), "job node restart 0 fails: {}", "is an empty object");
    struct el_buf small = EL_BUF_INIT(NULL, 40);
    is_num(dlrover_line("job", "node", 0, all, 3, &small), -1, "no room is told");
    el_buf_free(&small);
    el_buf_free(&out);
    return done();
}
