/* elrun ckpt ls and cat: what is in it. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "util/array.h"
#include "util/parse.h"

/* --- ls ----------------------------------------------------------------------------------------------------------- */

static void put_time(struct el_buf *out, int64_t sec)
{
    char text[40];
    struct tm tm;
    time_t t = (time_t)sec;
    if (!sec || !localtime_r(&t, &tm) || !strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm))
        snprintf(text, sizeof text, "-");
    el_buf_printf(out, "%-16s", text);
}

static void put_flags(struct el_buf *out, const struct scan_entry *x, const char *between, const char *quote)
{
    const struct {
        bool set;
        const char *word;
    } flags[] = {{x->latest, "latest"}, {x->emergency, "emergency"}, {x->pinned, "pinned"}, {x->leased, "leased"}};
    bool first = true;
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        if (flags[i].set) {
            el_buf_printf(out, "%s%s%s%s", first ? "" : between, quote, flags[i].word, quote);
            first = false;
        }
}

static void cmd_ckpt_ls_put_row(struct el_buf *out, const struct scan_entry *x, int width)
{
    char size[32], step[24] = "-", world[24] = "-", shown[EL_PATH_MAX];
    if (x->step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)x->step);
    if (x->world)
        snprintf(world, sizeof world, "%llu", (unsigned long long)x->world);
    el_show_path(x->name, shown, sizeof shown);
    el_buf_printf(out, "%-*s  %10s  ", width, shown, step);
    put_time(out, x->changed_sec);
    el_buf_printf(out, "  %5s  %-11s  %9s  %5zu  %s", world, ckpt_format_word(x->format), ckpt_size(x->bytes, size),
                  x->files, scan_state_word(x->state));
    if (x->latest || x->emergency || x->pinned || x->leased) {
        el_buf_puts(out, "  ");
        put_flags(out, x, ",", "");
    }
    el_buf_puts(out, *x->why ? ": " : "");
    ckpt_put_shown(out, x->why);
    el_buf_puts(out, "\n");
}

static void put_rows(struct el_buf *out, const struct scan_entry *v, size_t n)
{
    int width = 4;
    for (size_t i = 0; i < n; i++)
        width = (int)strlen(v[i].name) > width ? (int)strlen(v[i].name) : width;
    width = width > 60 ? 60 : width;
    el_buf_printf(out, "%-*s  %10s  %-16s  %5s  %-11s  %9s  %5s  %s\n", width, "NAME", "STEP", "TIME", "WORLD",
                  "FORMAT", "SIZE", "FILES", "STATE");
    for (size_t i = 0; i < n; i++)
        cmd_ckpt_ls_put_row(out, &v[i], width);
}

static void cmd_ckpt_ls_put_json(struct el_buf *out, const struct scan_entry *x)
{
    el_buf_puts(out, "{");
    ckpt_put_string(out, "name", x->name);
    if (x->step >= 0)
        el_buf_printf(out, ", \"step\": %lld", (long long)x->step);
    el_buf_puts(out, ", ");
    ckpt_put_string(out, "state", scan_state_word(x->state));
    el_buf_puts(out, ", ");
    ckpt_put_string(out, "format", ckpt_format_word(x->format));
    el_buf_printf(out, ", \"time\": %lld, \"world\": %llu, \"bytes\": %llu, \"files\": %zu, \"flags\": [",
                  (long long)x->changed_sec, (unsigned long long)x->world, (unsigned long long)x->bytes, x->files);
    put_flags(out, x, ", ", "\"");
    el_buf_puts(out, "], ");
    ckpt_put_string(out, "run_id", x->run_id);
    if (*x->why) {
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "why", x->why);
    }
    el_buf_puts(out, "}");
}

static int ls_root(struct ckpt_call *c, const struct ckpt_place *p, const char *only, struct el_err *e)
{
    struct scan s;
    int r = scan_open(&s, &p->fs, &c->mem, (int64_t)time(NULL), e);
    size_t from = 0, n = r ? 0 : s.n;
    while (only && from < n && strcmp(s.v[from].name, only) != 0)
        from++;
    if (only)
        n = from < n ? from + 1 : from;
    if (!r && only && from == n)
        r = ckpt_fail(e, CKPT_UNSUPPORTED, "%s: no checkpoint of a known format", p->real);
    else if (!r && c->conf->json) {
        el_buf_puts(&c->out, "{\"checkpoints\": [");
        for (size_t i = from; i < n; i++) {
            el_buf_puts(&c->out, i > from ? ",\n" : "\n");
            cmd_ckpt_ls_put_json(&c->out, &s.v[i]);
        }
        el_buf_puts(&c->out, "\n]}\n");
    } else if (!r && from < n) {
        put_rows(&c->out, s.v + from, n - from);
    } else if (!r) {
        el_buf_puts(&c->out, "no checkpoints\n");
    }
    scan_close(&s);
    return r;
}

static void put_shape(struct el_buf *out, const struct tensor *t)
{
    el_buf_puts(out, "[");
    for (unsigned i = 0; i < t->rank; i++)
        el_buf_printf(out, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
    el_buf_puts(out, "]");
}

static void cmd_ckpt_ls_put_tensor(struct el_buf *out, const struct tensors *list, size_t i, size_t end, bool json)
{
    const struct tensor *t = list->v[i];
    uint64_t bytes = 0;
    char size[32];
    for (size_t k = i; k < end; k++)
        bytes += list->v[k]->bytes;
    if (!json) {
        ckpt_put_shown(out, t->name);
        el_buf_printf(out, "  %s", t->dtype);
        put_shape(out, t);
        el_buf_printf(out, "  %s  ", ckpt_size(bytes, size));
        ckpt_put_shown(out, t->file);
        if (end - i > 1)
            el_buf_printf(out, " and %zu more", end - i - 1);
        el_buf_puts(out, "\n");
        return;
    }
    el_buf_puts(out, "{");
    ckpt_put_string(out, "name", t->name);
    el_buf_printf(out, ", \"dtype\": \"%s\", \"shape\": ", t->dtype);
    put_shape(out, t);
    el_buf_printf(out, ", \"bytes\": %llu, \"files\": [", (unsigned long long)bytes);
    for (size_t k = i; k < end; k++) {
        el_buf_puts(out, k > i ? ", {" : "{");
        ckpt_put_string(out, "file", list->v[k]->file);
        el_buf_printf(out, ", \"at\": %llu, \"bytes\": %llu}", (unsigned long long)list->v[k]->at,
                      (unsigned long long)list->v[k]->bytes);
    }
    el_buf_puts(out, "]}");
}

/* One tensor a line, its pieces together.  What is wrong goes to stderr; what could be read is listed. */
static int ls_tensors(struct ckpt_call *c, const struct ckpt_place *p, struct el_err *e)
{
    struct inspect l;
    struct verify v;
    bool first = true;
    ckpt_verifier(c, &v, false);
    int r = ckpt_place_look(p, p->dir, &l, &c->mem, e);
    if (!r)
        r = verify_dir(&v, &l, e);
    ckpt_verifier_end(c);
    if (!r && c->conf->json)
        el_buf_puts(&c->out, "{\"tensors\": [");
    for (size_t i = 0, end; !r && i < v.tensors.n; i = end) {
        end = tensors_group(&v.tensors, i);
        if (c->conf->glob && !tensors_match(c->conf->glob, v.tensors.v[i]->name))
            continue;
        if (c->conf->json)
            el_buf_puts(&c->out, first ? "\n" : ",\n");
        cmd_ckpt_ls_put_tensor(&c->out, &v.tensors, i, end, c->conf->json);
        first = false;
    }
    if (!r && c->conf->json)
        el_buf_puts(&c->out, "\n]}\n");
    for (const struct verify_finding *f = v.findings; !r && f; f = f->next)
        fprintf(stderr, "elrun: %s%s%s\n", f->file, *f->file ? ": " : "", f->text);
    r = r ? r : v.verdict;
    verify_free(&v);
    inspect_close(&l);
    return r;
}

int ckpt_ls(struct ckpt_call *c, struct el_err *e)
{
    struct ckpt_place p;
    int r = ckpt_place_open(&p, c->argc ? c->argv[0] : ".", e);
    if (!r && c->conf->glob && !c->conf->tensors)
        r = el_fail(e, EL_EXIT_USAGE, "--glob needs --tensors");
    else if (!r && c->conf->tensors && !p.dir)
        r = el_fail(e, EL_EXIT_USAGE,
                    "--tensors needs one checkpoint, not a root: name one of those that `elrun ckpt ls` "
                    "shows");
    else if (!r)
        r = c->conf->tensors || p.file ? ls_tensors(c, &p, e) : ls_root(c, &p, p.dir, e);
    ckpt_place_close(&p);
    return r;
}

/* --- cat ---------------------------------------------------------------------------------------------------------- */

/* Straight to stdout, piece by piece: a tensor may be larger than the memory. */
static int copy_out(const struct inspect *l, const char *file, uint64_t at, uint64_t n, struct el_err *e)
{
    static char piece[1 << 20];
    struct inspect_file f;
    int r = inspect_file_open(&f, l, file, NULL, e);
    while (!r && n) {
        size_t k = n < sizeof piece ? (size_t)n : sizeof piece;
        r = f.bytes.read(f.bytes.ctx, at, piece, k, e);
        if (!r && fwrite(piece, 1, k, stdout) != k)
            r = el_fail(e, EL_EXIT_CANTCREAT, "cannot write to standard output");
        at += k;
        n -= k;
    }
    inspect_file_close(&f);
    return r;
}

/* The one tensor in an archive that lies within a file. */
static int copy_item(struct ckpt_call *c, const struct inspect *l, const struct tensor *t, struct el_err *e)
{
    struct tensors inside = {.mem = &c->mem};
    struct zip z = {0};
    struct inspect_file f;
    int r = inspect_file_open(&f, l, t->file, NULL, e);
    if (!r) {
        inspect_file_slice(&f, t->at, t->bytes);
        r = zip_open(&z, &c->mem, &f.bytes, e);
    }
    if (!r)
        r = fmt_torch_tensors(&inside, t->file, t->at, &f.bytes, &z, NULL, e);
    if (!r && (inside.n != 1 || inside.v[0]->place != TENSOR_RAW || strcmp(inside.v[0]->dtype, t->dtype) != 0))
        r = ckpt_fail(e, CKPT_UNSUPPORTED, "its item in %s is no plain tensor of type %s", t->file, t->dtype);
    if (!r)
        r = copy_out(l, t->file, inside.v[0]->at, inside.v[0]->bytes, e);
    zip_close(&z);
    tensors_free(&inside);
    inspect_file_close(&f);
    return r;
}

/* Pieces that are runs of rows follow each other; others would have to be woven. */
static bool are_rows(const struct tensors *list, size_t i, size_t end)
{
    for (size_t k = i; k < end; k++)
        for (unsigned d = 1; d < list->v[k]->rank; d++)
            if (list->v[k]->size[d] != list->v[k]->shape[d])
                return false;
    return true;
}

static int cat_tensor(struct ckpt_call *c, const struct inspect *l, const struct verify *v, const char *name,
                      struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    size_t i = 0;
    while (i < v->tensors.n && strcmp(v->tensors.v[i]->name, name) != 0)
        i++;
    el_show(name, shown);
    if (i == v->tensors.n)
        return el_fail(e, EL_EXIT_NOINPUT, "there is no tensor \"%s\"; `elrun ckpt ls --tensors` lists them", shown);
    size_t end = tensors_group(&v->tensors, i);
    if (tensors_cover(&v->tensors, i, end, e))
        return -1;
    if (!are_rows(&v->tensors, i, end))
        return ckpt_fail(e, CKPT_UNSUPPORTED, "tensor \"%s\" is divided along another dimension than its first", shown);
    int r = 0;
    for (; !r && i < end; i++) {
        const struct tensor *t = v->tensors.v[i];
        r = t->place == TENSOR_ZIP   ? copy_item(c, l, t, e)
            : t->place == TENSOR_RAW ? copy_out(l, t->file, t->at, t->bytes, e)
                                     : ckpt_fail(e, CKPT_UNSUPPORTED, "tensor \"%s\" is not stored row by row", shown);
    }
    if (!r && fflush(stdout))
        r = el_fail(e, EL_EXIT_CANTCREAT, "cannot write to standard output");
    return r;
}

int ckpt_cat(struct ckpt_call *c, struct el_err *e)
{
    struct ckpt_place p;
    struct inspect l = {0};
    struct verify v;
    ckpt_verifier(c, &v, false);
    int r = ckpt_place_open(&p, c->argv[0], e);
    if (!r && isatty(STDOUT_FILENO))
        r = el_fail(e, EL_EXIT_USAGE, "the bytes of a tensor are not for a terminal: send them to a file or a program");
    if (!r && !p.dir)
        r = el_fail(e, EL_EXIT_USAGE, "name one checkpoint, not a root");
    if (!r)
        r = ckpt_place_look(&p, p.dir, &l, &c->mem, e);
    if (!r)
        r = verify_dir(&v, &l, e);
    ckpt_verifier_end(c);
    if (!r)
        r = cat_tensor(c, &l, &v, c->argv[1], e);
    verify_free(&v);
    inspect_close(&l);
    ckpt_place_close(&p);
    return r;
}
