/* elrun ckpt verify: is it whole? */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ckpt.h"
#include "snapshot/commit.h"
#include "util/array.h"
#include "util/parse.h"

/* What is said about all of them. */
struct cmd_ckpt_verify_report {
    struct ckpt_call *c;
    int verdict;
    bool any;
};

static int tensor_count(const struct verify *v)
{
    int n = 0;
    for (size_t i = 0; i < v->tensors.n; i = tensors_group(&v->tensors, i))
        n++;
    return n;
}

/* Nothing is wrong that could be seen, but bytes were to be compared and could not be. */
static const char *cmd_ckpt_verify_word_of(const struct verify *v)
{
    bool only = (v->silent_bytes || v->uncounted || v->alone) && v->verdict == CKPT_UNSUPPORTED &&
                v->findings_n == (size_t)(v->silent_bytes > 0) + (v->uncounted > 0) + v->alone;
    return only ? "unproved" : ckpt_verdict_word(v->verdict);
}

static void cmd_ckpt_verify_put_findings(struct el_buf *out, const struct verify *v)
{
    size_t n = 0;
    for (const struct verify_finding *f = v->findings; f; f = f->next, n++) {
        el_buf_puts(out, "  ");
        ckpt_put_shown(out, f->file);
        el_buf_puts(out, *f->file ? ": " : "");
        ckpt_put_shown(out, f->text);
        el_buf_puts(out, "\n");
    }
    if (v->findings_n > n)
        el_buf_printf(out, "  and %zu more\n", v->findings_n - n);
}

static void cmd_ckpt_verify_put_json(struct el_buf *out, const char *name, const struct inspect *l,
                                     const struct verify *v, const struct verify_others *o, bool added)
{
    el_buf_puts(out, "{");
    ckpt_put_string(out, "path", name);
    el_buf_puts(out, ", ");
    ckpt_put_string(out, "verdict", cmd_ckpt_verify_word_of(v));
    if (l) {
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "format", ckpt_format_word(l->format));
        el_buf_printf(out,
                      ", \"step\": %lld, \"files\": %zu, \"bytes\": %llu, \"tensors\": %d, \"manifest\": %s, "
                      "\"deep\": %s, \"without_checksums\": %llu, \"not_followed\": %zu",
                      (long long)l->step, l->n, (unsigned long long)l->bytes, tensor_count(v),
                      added || !l->why.status ? "true" : "false", v->deep ? "true" : "false",
                      (unsigned long long)v->bare_files, l->others);
    }
    if (v->hollow_files)
        el_buf_printf(out, ", \"zeros\": %llu", (unsigned long long)v->hollow_files);
    if (o && o->once) {
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "without", o->gone);
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "without_in", o->once->name);
    }
    el_buf_puts(out, ", \"findings\": [");
    for (const struct verify_finding *f = v->findings; f; f = f->next) {
        el_buf_puts(out, f == v->findings ? "{" : ", {");
        ckpt_put_string(out, "file", f->file);
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "verdict", ckpt_verdict_word(f->verdict));
        el_buf_puts(out, ", ");
        ckpt_put_string(out, "text", f->text);
        el_buf_puts(out, "}");
    }
    el_buf_printf(out, "], \"findings_count\": %zu}", v->findings_n);
}

static void cmd_ckpt_verify_put_text(struct el_buf *out, const char *name, const struct inspect *l,
                                     const struct verify *v, const struct verify_others *o, bool added)
{
    char size[32];
    ckpt_put_shown(out, name);
    el_buf_printf(out, ": %s", cmd_ckpt_verify_word_of(v));
    if (l)
        el_buf_printf(out, " (%s, %zu file%s, %s, %d tensor%s)", ckpt_format_word(l->format), l->n,
                      l->n == 1 ? "" : "s", ckpt_size(l->bytes, size), tensor_count(v),
                      tensor_count(v) == 1 ? "" : "s");
    if (added)
        el_buf_puts(out, ", manifest written");
    else if (l && !v->verdict && v->bare_files)
        el_buf_printf(out,
                      "; there are no checksums to compare the bytes of %llu file%s with: --add-manifest writes them",
                      (unsigned long long)v->bare_files, v->bare_files == 1 ? "" : "s");
    if (l && l->others)
        el_buf_printf(out, "; %zu link%s or special file%s not followed", l->others, l->others == 1 ? "" : "s",
                      l->others == 1 ? "" : "s");
    if (l && v->hollow_files) {
        el_buf_puts(out, "; all data of ");
        ckpt_put_shown(out, v->hollow);
        if (v->hollow_files > 1)
            el_buf_printf(out, " and %llu more", (unsigned long long)v->hollow_files - 1);
        el_buf_puts(out, " are zeros");
    }
    if (o && o->once) {
        el_buf_puts(out, "; without ");
        ckpt_put_shown(out, o->gone);
        el_buf_puts(out, ", which ");
        ckpt_put_shown(out, o->once->name);
        el_buf_puts(out, " has");
    }
    el_buf_puts(out, "\n");
    cmd_ckpt_verify_put_findings(out, v);
}

static void cmd_ckpt_verify_tell(struct cmd_ckpt_verify_report *r, const char *name, const struct inspect *l,
                                 const struct verify *v, const struct verify_others *o, bool added)
{
    if (r->c->conf->json) {
        el_buf_puts(&r->c->out, r->any ? ",\n" : "{\"checkpoints\": [\n");
        cmd_ckpt_verify_put_json(&r->c->out, name, l, v, o, added);
    } else {
        cmd_ckpt_verify_put_text(&r->c->out, name, l, v, o, added);
    }
    r->any = true;
    r->verdict = ckpt_verdict_worse(r->verdict, v->verdict);
}

/* --- a manifest for files of somebody else ------------------------------------------------------------------------ */

static int cmd_ckpt_verify_write_manifest(struct ckpt_call *c, struct verify *v, const struct inspect *l,
                                          struct el_err *e)
{
    char path[CKPT_PATH_MAX];
    struct el_buf text = EL_BUF_INIT(&c->mem, MANIFEST_BYTES_MAX);
    struct manifest m = {.step = l->step,
                         .layout = ckpt_format_word(l->format),
                         .run_id = c->conf->run_id ? c->conf->run_id : "",
                         .nonce = c->nonce,
                         .created = l->changed_sec > 0 ? (uint64_t)l->changed_sec : 0,
                         .files = el_alloc(&c->mem, l->n * sizeof *m.files),
                         .files_n = l->n};
    int r = m.files ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; !r && i < l->n; i++)
        if (ckpt_path_fault(l->names[i])) {
            verify_find(v, CKPT_UNSUPPORTED, l->names[i], "a file of this name cannot stand in a manifest");
            r = 1;
        }
    if (!r)
        r = verify_sum(v, l, m.files, e);
    if (!r && !v->verdict)
        r = manifest_put(&m, &text, e);
    snprintf(path, sizeof path, "%.900s/" CKPT_MANIFEST_FILE, l->dir);
    if (!r && !v->verdict)
        r = commit_replace(l->fs, path, c->nonce, text.v, text.len, e);
    for (size_t i = 0; m.files && i < l->n; i++)
        el_free(&c->mem, m.files[i].chunks);
    el_free(&c->mem, m.files);
    el_buf_free(&text);
    return r < 0 ? -1 : 0;
}

/* Nothing is known against it, and nothing could be: a format that has a place for checksums, and none there. */
static void cmd_ckpt_verify_find_silent(struct verify *v)
{
    char text[300], size[32];
    snprintf(
        text, sizeof text,
        "no checksums to compare: %s of its archives were written without (torch's config.save.compute_crc32 = False), "
        "and any of these bytes may have changed; --add-manifest writes checksums of a directory as it is",
        ckpt_size(v->silent_bytes, size));
    verify_find(v, CKPT_UNSUPPORTED, "", text);
}

/* Nor is anything known of files that are not there, where nothing says how many there were. */
static void find_uncounted(struct verify *v)
{
    verify_find(v, CKPT_UNSUPPORTED, v->uncounted_like,
                "complete cannot be proved: nothing counts the files of its set, so others may be missing");
}

/* Another of its root has more of them, or a file that is lost here. */
static void find_fewer(struct verify *v, const struct verify_others *o)
{
    char text[700];
    verify_others_put(o, text, sizeof text);
    verify_find(v, CKPT_UNSUPPORTED, o->file, text);
}

/* --- one of them -------------------------------------------------------------------------------------------------- */

static int verify_one(struct cmd_ckpt_verify_report *r, const struct ckpt_place *p, const struct scan *s,
                      const char *dir, const char *name, struct el_err *e)
{
    struct ckpt_call *c = r->c;
    struct inspect l;
    struct verify v;
    struct verify_others others = {0};
    bool added = false;
    /* A manifest vouches for what it lists: bytes that their own checksums deny get none. */
    ckpt_verifier(c, &v, c->conf->deep || c->conf->add_manifest);
    int bad = ckpt_place_look(p, dir, &l, &c->mem, e);
    if (!bad)
        bad = verify_dir(&v, &l, e);
    if (!bad && l.format == CKPT_FORMAT_NONE && !v.findings_n && !v.tensors.n)
        verify_find(&v, CKPT_UNSUPPORTED, "", "no file of a known format");
    if (!bad && c->conf->add_manifest && !v.verdict && p->file)
        bad = el_fail(e, EL_EXIT_USAGE, "--add-manifest is for a directory");
    if (!bad && c->conf->add_manifest && l.hub)
        bad = el_fail(e, EL_EXIT_USAGE, "--add-manifest: %s is of a cache, which only its hub writes to", name);
    if (!bad && s && !v.verdict)
        verify_others(&v, s, dir, &others);
    if (!bad && c->conf->add_manifest && !v.verdict && !others.more && l.why.status == CKPT_INCOMPLETE) {
        bad = cmd_ckpt_verify_write_manifest(c, &v, &l, e);
        added = !bad && !v.verdict;
    }
    /* A manifest lists the files, as others of the same kind speak for them; it is no answer to one with more. */
    bool fewer = !bad && !v.verdict && others.more;
    bool uncounted = !bad && v.uncounted && !added && !v.verdict && l.why.status == CKPT_INCOMPLETE && !others.like;
    if (!bad && !added && !v.verdict && v.silent_bytes)
        cmd_ckpt_verify_find_silent(&v);
    v.uncounted = fewer || uncounted;
    if (fewer)
        find_fewer(&v, &others);
    else if (uncounted)
        find_uncounted(&v);
    ckpt_verifier_end(c);
    if (!bad)
        cmd_ckpt_verify_tell(r, name, &l, &v, &others, added);
    verify_free(&v);
    inspect_close(&l);
    return bad;
}

/* --- a root ------------------------------------------------------------------------------------------------------- */

static int repair_latest(struct ckpt_call *c, const struct ckpt_place *p, const struct scan *s, struct el_err *e)
{
    const struct scan_entry *newest = scan_newest(s);
    char text[CKPT_PATH_MAX];
    struct fs_stat st;
    if (!newest)
        return ckpt_fail(e, CKPT_INCOMPLETE, "%s: there is no valid checkpoint that `latest` could name", p->real);
    int n = snprintf(text, sizeof text, "%s\n", newest->name);
    if (commit_replace(&p->fs, CKPT_LATEST_FILE, c->nonce, text, (size_t)n, e))
        return -1;
    if (newest->format != CKPT_FORMAT_MEGATRON || newest->step < 0 || p->fs.stat(p->fs.ctx, CKPT_TRACKER_FILE, &st) < 0)
        return 0;
    n = snprintf(text, sizeof text, "%lld\n", (long long)newest->step);
    return commit_replace(&p->fs, CKPT_TRACKER_FILE, c->nonce, text, (size_t)n, e);
}

static void cmd_ckpt_verify_tell_gap(void *arg, const char *name, const struct fmt_missing *missing, uint64_t total)
{
    char text[200], numbers[FMT_MISSING_TEXT];
    bool one = missing->n == 1;
    snprintf(text, sizeof text, "number%s %s of this set of %llu folders %s missing", one ? "" : "s",
             fmt_missing_put(missing, numbers), (unsigned long long)total, one ? "is" : "are");
    verify_find(arg, CKPT_INCOMPLETE, name, text);
}

/* Folders of ranks, rank_0_of_4 and so on: each is looked at by itself, and together they are one. */
static int check_ranks(struct verify *v, const struct scan *s, struct el_err *e)
{
    const char **names = el_alloc(v->mem, s->n * sizeof *names);
    if (!names)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < s->n; i++)
        names[i] = s->v[i].name;
    v->end = v->end ? v->end : &v->findings;
    int r = fmt_gaps(names, s->n, v->mem, cmd_ckpt_verify_tell_gap, v, e);
    el_free(v->mem, names);
    return r;
}

static int verify_root(struct cmd_ckpt_verify_report *r, const struct ckpt_place *p, const char *path, struct el_err *e)
{
    struct scan s;
    struct verify hints;
    ckpt_verifier(r->c, &hints, false);
    int bad = scan_open(&s, &p->fs, &r->c->mem, (int64_t)time(NULL), e);
    size_t seen = 0;
    for (size_t i = 0; !bad && i < s.n; i++) {
        char name[2 * CKPT_PATH_MAX];
        if (s.v[i].state == SCAN_STAGE || s.v[i].state == SCAN_STALE || s.v[i].state == SCAN_ASIDE)
            continue;
        snprintf(name, sizeof name, "%.1000s/%s", path, s.v[i].name);
        bad = verify_one(r, p, &s, s.v[i].name, name, e);
        seen++;
    }
    if (!bad && r->c->conf->repair_latest)
        bad = repair_latest(r->c, p, &s, e);
    if (!bad)
        verify_hints(&hints, &p->fs);
    if (!bad)
        bad = check_ranks(&hints, &s, e);
    if (!bad && !seen && !hints.findings_n)
        verify_find(&hints, CKPT_UNSUPPORTED, "", "there is no checkpoint of a known format");
    if (!bad && hints.findings_n)
        cmd_ckpt_verify_tell(r, path, NULL, &hints, NULL, false);
    verify_free(&hints);
    scan_close(&s);
    return bad;
}

/* One of several that cannot be opened: it is told as the others are, and these are looked at, too. */
static void tell_unreadable(struct cmd_ckpt_verify_report *r, const char *path, struct el_err *e)
{
    struct verify v;
    ckpt_verifier(r->c, &v, false);
    v.end = &v.findings;
    verify_find(&v, e->status, "", e->text);
    *e = (struct el_err){0};
    cmd_ckpt_verify_tell(r, path, NULL, &v, NULL, false);
    verify_free(&v);
}

int ckpt_verify(struct ckpt_call *c, struct el_err *e)
{
    struct cmd_ckpt_verify_report r = {.c = c};
    int bad = 0;
    for (int i = 0; !bad && i < c->argc; i++) {
        struct ckpt_place p;
        bad = ckpt_place_open(&p, c->argv[i], e);
        if (!bad && p.dir && c->conf->repair_latest)
            bad = el_fail(e, EL_EXIT_USAGE, "--repair-latest is for a root, not for one checkpoint");
        if (!bad)
            bad = p.dir ? verify_one(&r, &p, NULL, p.dir, c->argv[i], e) : verify_root(&r, &p, c->argv[i], e);
        ckpt_place_close(&p);
        if (bad && c->argc > 1 && (e->status == EL_EXIT_NOINPUT || e->status == EL_EXIT_NOPERM)) {
            tell_unreadable(&r, c->argv[i], e);
            bad = 0;
        }
    }
    if (c->conf->json && r.any)
        el_buf_puts(&c->out, "\n]}\n");
    return r.verdict;
}
