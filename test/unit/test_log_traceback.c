/* Tracebacks as loggers dress them (test/data/dressed, made by the libraries themselves): type, message and place are
 * those of the exception. */
#include "failure/log_traceback.h"

#include "failure/failure.h"
#include "lib/tap.h"
#include "util/array.h"

static char text[20000];

static size_t read_case(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "test/data/dressed/%s.txt", name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return n;
}

static void look(struct failure *f, const char *bytes, size_t n)
{
    failure_init(f);
    f->end = FAILURE_EXIT;
    f->code = 1;
    failure_add_stderr(f, bytes, n, NULL);
    failure_judge(f, false, false);
}

static void is_found(const char *name, const char *bytes, size_t n, const char *message, const char *place)
{
    struct failure f;
    char at[600];
    look(&f, bytes, n);
    snprintf(at, sizeof at, "%s:%u", f.found.file, f.found.line);
    is_str(f.message ? f.message : "(none)", message, name);
    is_str(at, place, "and where");
    failure_free(&f, NULL);
}

static const char wrapped[] = "╭───────────── Traceback (most recent call last) ─────────────╮\n"
                              "│ /home/me/some/very/long/directory/name/that/does/not/fit/tr │\n│ ain.py:8 in          "
                              "                                       │\n"
                              "│ main                                                        │\n"
                              "│                                                             │\n│ ❱ 8 │ f()            "
                              "                                       │\n"
                              "╰─────────────────────────────────────────────────────────────╯\nValueError: bad\n";

/* torch has its rank in front of each line of what rich prints, and rich wraps what it prints below the box. */
static const char ranked[] = "[rank1]: ╭────── Traceback (most recent call last) ───────╮\n"
                             "[rank1]: │ /home/me/train.py:8 in <module>               │\n"
                             "[rank1]: │                                               │\n"
                             "[rank1]: │ ❱ 8 step()                                    │\n"
                             "[rank1]: ╰───────────────────────────────────────────────╯\n"
                             "[rank1]: RuntimeError: \n"
                             "[rank1]: [/pytorch/gloo/transport/tcp/pair.cc:553] \n"
                             "[rank1]: Connection closed by peer [::1]:39316. This is \n"
                             "[rank1]: typical\n";

/* RichHandler's, 80 columns wide: neither the header nor the words fit. */
static const char narrow[] = "[11/27/26 13:56:41] ERROR    training failed                       richlog.py:14\n"
                             "                             ╭─ Traceback (most recent call last─╮              \n"
                             "                             │ /home/me/train.py:8 in <module>   │              \n"
                             "                             │                                   │              \n"
                             "                             │ ❱ 8 step()                        │              \n"
                             "                             ╰───────────────────────────────────╯              \n"
                             "                             RuntimeError:                                      \n"
                             "                             [/__w/pytorch/pytorch/third_party/glo              \n"
                             "                             o/gloo/transport/tcp/pair.cc:553]                  \n"
                             "                             Connection closed by peer                          \n"
                             "                             [127.0.0.1]:18069. This is typically               \n"
                             "                             caused by a crash.                                 \n";

#define BOX                                                                                                                                                                        \
    "╭──────────────────── Traceback (most recent call last) ───────────────────────╮\n" \
    "│ /home/me/train.py:8 in <module>                                              │\n"                                                                                       \
    "│                                                                              │\n"                                                                                       \
    "│ ❱ 8 step()                                                                   │\n"                                                                                     \
    "╰──────────────────────────────────────────────────────────────────────────────╯\n"
#define FULL  "RuntimeError: the shard of rank 3 is not there: /data/imagenet/part-0/000017.tar"
#define SHARD "RuntimeError: the shard of rank 3 is not there: /data/imagenet/000017.tar"

/* The width is used up by chance: what comes next is another's. */
static const char behind_torch[] = BOX SHARD "\n[rank1]:[W1127 02:13:06.123456789 ProcessGroupNCCL.cpp:1496] Warning: "
                                             "WARNING: destroy_process_group() was not called before program exit\n";
static const char behind_logger[] = BOX FULL "\n2026-11-27 02:13:06 INFO saved\n";
static const char behind_level[] = BOX FULL "\nWARNING: not saved\n";
static const char behind_fork[] = BOX FULL "\nException ignored in: <function f at 0x7f00>\n";

/* "[rank0]:│": the mark has no blank, and the box's edge keeps its first byte. */
static void test_mark(void)
{
    static const char lines[] = "[rank0]: ╭─ Traceback (most recent call last) ─╮\n"
                                "[rank0]: │ /home/me/train.py:8 in <module>     │\n"
                                "[rank0]:│ ❱ 8 step()                           │\n"
                                "[rank0]: ╰─────────────────────────────────────╯\n"
                                "[rank0]:\n[rank0]: RuntimeError: bad\n";
    static const char bare[] = "╭─ Traceback (most recent call last) ─╮\n"
                               "│ /home/me/train.py:8 in <module>     │\n"
                               "│ ❱ 8 step()                           │\n"
                               "╰─────────────────────────────────────╯\n\nRuntimeError: bad\n";
    static const char tight[] = "╭─ Traceback (most recent call last) ─╮\n"
                                "│ /home/me/söme/very/long/directory/ab/é│\n"
                                "│ c.py:8 in <module>                   │\n"
                                "╰─────────────────────────────────────╯\nRuntimeError: bad\n";
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    is_num(unfold(&out, (struct text){lines, sizeof lines - 1}), 0, "a mark without its blank");
    is_str(el_buf_cstr(&out), bare, "no byte behind it is lost");
    out.len = 0;
    is_num(unfold(&out, (struct text){tight, sizeof tight - 1}), 0, "a bar without a blank beside it");
    is_str(el_buf_cstr(&out), tight, "no byte beside it is lost either");
    el_buf_free(&out);
}

int main(void)
{
    static const char *const names[] = {"pjl", "ecs", "structdict", "structstr", "loguru", "logurujson", "rich"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        is_found(names[i], text, read_case(names[i]), "RuntimeError: wrapped é", "/home/me/jl.py:6");
    is_found("a box whose lines are wrapped", wrapped, sizeof wrapped - 1, "ValueError: bad",
             "/home/me/some/very/long/directory/name/that/does/not/fit/train.py:8");
    is_found("a box with ranks, and wrapped words below it", ranked, sizeof ranked - 1,
             "RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:39316. This is "
             "typical",
             "/home/me/train.py:8");
    is_found("a narrow box of a logger", narrow, sizeof narrow - 1,
             "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed "
             "by peer "
             "[127.0.0.1]:18069. This is typically caused by a crash.",
             "/home/me/train.py:8");
    is_found("torch's words below a box", behind_torch, sizeof behind_torch - 1, SHARD, "/home/me/train.py:8");
    is_found("a logger's line", behind_logger, sizeof behind_logger - 1, FULL, "/home/me/train.py:8");
    is_found("a level", behind_level, sizeof behind_level - 1, FULL, "/home/me/train.py:8");
    is_found("the interpreter's words", behind_fork, sizeof behind_fork - 1, FULL, "/home/me/train.py:8");
    test_mark();
    static const char cut[] = "{\"message\": \"Traceback (most recent call last):\\n  File \\\"/home/me/w.py\\\", line";
    struct failure f;
    look(&f, cut, sizeof cut - 1);
    ok(!f.message, "one that breaks off says nothing");
    failure_free(&f, NULL);
    return done();
}
