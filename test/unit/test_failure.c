/* Real last words of real programs (test/data/failures, made with PyTorch 2.13), and the choice among failures.
 * A case is a folder: stderr, perhaps error.json, how ("exit 1", "signal 11") and expect, which is what we say of it.
 * FAILURES_WRITE=1 writes the expect files anew: read the difference before you commit it. */
#include "agent/failure.h"
#include "agent/summary.h"
#include "lib/tap.h"

#include <dirent.h>

#define DATA "test/data/failures"

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *v = malloc(1 << 20);
    *n = f ? fread(v, 1, (1 << 20) - 1, f) : 0;
    v[*n] = 0;
    if (f)
        fclose(f);
    return v;
}

static const char *const kinds[] = {"none", "python", "group", "syntax", "fatal", "cplus", "abort"};

static void describe(const struct failure *f, struct el_buf *out)
{
    const struct traceback *t = &f->found;
    const struct failure *const all[] = {f};
    struct report r = {.script = "train.py", .failures = all, .failures_count = 1};
    el_buf_printf(out, "kind: %s%s%s%s%s\n", kinds[t->kind], t->headless ? " headless" : "",
                  t->chained ? " chained" : "", t->nested ? " nested" : "", t->in_thread ? " in_thread" : "");
    el_buf_printf(out, "type: %s\nmessage: %s\n", t->type, t->message);
    el_buf_printf(out, "frame: %s:%u %s%s\n", t->file, t->line, t->function, t->user_frame ? "" : " (not the user's)");
    el_buf_printf(out, "class: %s%s\n", failure_class_text(f->class), f->follower ? ", follower" : "");
    el_buf_puts(out, "verdict: ");
    summary_verdict(&r, out);
    const char *stack = f->stack ? f->stack : f->tail ? f->tail : "";
    const char *end = strchr(stack, '\n');
    const char *last = strrchr(stack, '\n');
    el_buf_printf(out, "\nfirst line: %.*s\n", end ? (int)(end - stack) : (int)strlen(stack), stack);
    el_buf_printf(out, "last line: %s\n", last ? last + 1 : stack);
}

static void run_case(const char *name)
{
    char path[600], word[16] = "";
    size_t n, json_n, want_n;
    struct failure f;
    struct el_mem mem = EL_MEM_INIT(0);
    failure_init(&f);
    snprintf(path, sizeof path, DATA "/%s/how", name);
    char *how = slurp(path, &n);
    if (sscanf(how, "%15s %d", word, &f.code) != 2)
        printf("# %s: no such file, or not \"exit N\" or \"signal N\"\n", path);
    f.end = strcmp(word, "signal") ? FAILURE_EXIT : FAILURE_SIGNAL;
    snprintf(path, sizeof path, DATA "/%s/error.json", name);
    char *json = slurp(path, &json_n);
    struct errfile *e = malloc(sizeof *e);
    errfile_init(e);
    errfile_feed(e, json, json_n);
    errfile_end(e);
    if (json_n)
        failure_add_file(&f, e, &mem);
    snprintf(path, sizeof path, DATA "/%s/stderr", name);
    char *err = slurp(path, &n);
    failure_add_stderr(&f, err, n, &mem);
    failure_judge(&f, false, false);
    struct el_buf got = EL_BUF_INIT(&mem, 0);
    describe(&f, &got);
    snprintf(path, sizeof path, DATA "/%s/expect", name);
    if (getenv("FAILURES_WRITE")) {
        FILE *w = fopen(path, "wb");
        fwrite(got.v, 1, got.len, w);
        fclose(w);
    }
    char *want = slurp(path, &want_n);
    is_str(el_buf_cstr(&got), want, name);
    el_buf_free(&got);
    failure_free(&f, &mem);
    if (mem.used_bytes)
        ok(0, "memory came back");
    free(e), free(how), free(json), free(err), free(want);
}

static void test_corpus(void)
{
    struct dirent **names;
    int n = scandir(DATA, &names, NULL, alphasort), cases = 0;
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            run_case(names[i]->d_name);
            cases++;
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    ok(cases >= 30, "the corpus is there (tests run in the repository's root)");
}

int main(void)
{
    test_corpus();
    return done();
}
