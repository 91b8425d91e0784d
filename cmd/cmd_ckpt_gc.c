/* elrun ckpt gc, pin and unpin: what may go, and what may not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ckpt.h"
#include "snapshot/commit.h"
#include "ckpt/gc.h"
#include "util/array.h"
#include "util/parse.h"

struct teller {
    struct ckpt_call *c;
    const struct ckpt_place *p;
    const struct scan *s;
    bool any;
    const struct scan_entry **like; /* of each of the scan: has as many files of ranks, where that is what proves it */
};

static void cmd_ckpt_gc_tell(void *ctx, const struct scan_entry *x, const char *why)
{
    struct teller *t = ctx;
    struct el_buf *out = &t->c->out;
    const char *what = why ? "kept" : t->c->conf->dry_run ? "would go" : "deleted";
    char size[32];
    if (t->c->conf->json) {
        el_buf_puts(out, t->any ? ",\n{" : "\n{");
        ckpt_put_string(out, "name", x->name);
        el_buf_printf(out, ", \"step\": %lld, \"bytes\": %llu, \"goes\": %s", (long long)x->step,
                      (unsigned long long)x->bytes, why ? "false" : "true");
        if (why) {
            el_buf_puts(out, ", ");
            ckpt_put_string(out, "why", why);
        }
        if (x->proved)
            el_buf_puts(out, ", \"proved\": true");
        el_buf_puts(out, "}");
    } else {
        el_buf_printf(out, "%-8s  %9s  ", what, ckpt_size(x->bytes, size));
        ckpt_put_shown(out, x->name);
        el_buf_printf(out, "%s%s", why ? ": " : "", why ? why : "");
        el_buf_puts(out, x->proved ? "; found whole, every byte, before anything older goes" : "");
        const struct scan_entry *like = t->like[x - t->s->v];
        if (x->proved && like) {
            el_buf_puts(out, "; as many files of ranks as ");
            ckpt_put_shown(out, like->name);
        }
        el_buf_puts(out, "\n");
    }
    t->any = true;
}

/* A manifest lists the files that were there when it was written: of a set that nothing else counts another that
 * has as many speaks for it, and one that has more against it. */
static int prove_count(struct teller *t, const struct scan_entry *newest, const struct verify *v, struct el_err *e)
{
    struct verify_others o;
    char text[700];
    verify_others(v, t->s, newest->name, &o);
    if (o.more) {
        verify_others_put(&o, text, sizeof text);
        return ckpt_fail(e, CKPT_UNSUPPORTED, "nothing is deleted: the newest checkpoint, %s, is unproved: %s%s%s",
                         newest->name, o.file, *o.file ? ": " : "", text);
    }
    if (v->uncounted && !o.like)
        return ckpt_fail(
            e, CKPT_UNSUPPORTED,
            "nothing is deleted: that the newest checkpoint, %s, is complete cannot be proved: nothing counts "
            "the files of %s's set, and no other checkpoint has as many of them",
            newest->name, v->uncounted_like);
    t->like[newest - t->s->v] = o.like;
    return 0;
}

/* One of its run that the job has not gone back behind is newer: then it is proved as one node's part. */
static bool is_second(const struct scan *s, const struct scan_entry *x)
{
    for (size_t i = (size_t)(x - s->v) + 1; i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && !s->v[i].behind && s->v[i].run == x->run)
            return true;
    return false;
}

/* Nothing is deleted because of a newer one that is not whole.  Every byte is read, also without --deep: headers alone
 * say nothing of what lies behind them, and what is deleted cannot be asked any more. */
static int prove(void *ctx, const struct scan_entry *newest, struct el_err *e)
{
    struct teller *t = ctx;
    const char *which = is_second(t->s, newest) ? "one before the newest" : "newest";
    struct ckpt_call *c = t->c;
    struct inspect l;
    struct verify v;
    ckpt_verifier(c, &v, true);
    int r = inspect_open(&l, &t->p->fs, &c->mem, newest->name, NULL, e);
    if (!r)
        r = verify_dir(&v, &l, e);
    ckpt_verifier_end(c);
    if (!r && (v.verdict || l.why.status))
        r = ckpt_fail(e, v.verdict ? v.verdict : CKPT_INCOMPLETE,
                      "nothing is deleted: the %s checkpoint, %s, is %s: %s%s%s", which, newest->name,
                      v.alone && v.alone == v.findings_n ? "unproved"
                                                         : ckpt_verdict_word(v.verdict ? v.verdict : CKPT_INCOMPLETE),
                      v.findings ? v.findings->file : "", v.findings && *v.findings->file ? ": " : "",
                      v.findings ? v.findings->text : l.why.text);
    if (!r && inspect_is_part(&l) && c->conf->keep_last < 2)
        r = ckpt_fail(e, CKPT_UNSUPPORTED,
                      "nothing is deleted: the newest checkpoint, %s, is one node's part (--ckpt-store=local), and "
                      "another node may have ended before it had that step: keep two, --keep-last=2",
                      newest->name);
    if (!r)
        r = prove_count(t, newest, &v, e);
    verify_free(&v);
    inspect_close(&l);
    return r;
}

/* A hint that names what has just gone would send a reader to nowhere. */
static void emit_end(struct ckpt_call *c, const struct gc *g)
{
    char size[32];
    if (c->conf->json)
        el_buf_printf(&c->out, "\n], \"gone\": %zu, \"kept\": %zu, \"bytes\": %llu, \"dry_run\": %s}\n", g->gone,
                      g->kept, (unsigned long long)g->bytes, g->dry_run ? "true" : "false");
    else
        el_buf_printf(&c->out, "%zu %s, %s; %zu kept\n", g->gone, g->dry_run ? "would go" : "deleted",
                      ckpt_size(g->bytes, size), g->kept);
}

int ckpt_gc(struct ckpt_call *c, struct el_err *e)
{
    struct ckpt_place p;
    struct scan s = {0};
    struct teller t = {.c = c, .p = &p, .s = &s};
    if (!c->conf->keep_last)
        return el_fail(e, EL_EXIT_USAGE, "gc: say how many to keep: --keep-last=K");
    int r = ckpt_place_open(&p, c->argv[0], e);
    if (!r && p.dir)
        r = el_fail(e, EL_EXIT_USAGE, "gc: %s is %s; name the root that it is in", c->argv[0],
                    p.file ? "a file" : "one checkpoint, or holds none");
    if (!r)
        r = scan_open(&s, &p.fs, &c->mem, (int64_t)time(NULL), e);
    t.like = r ? NULL : el_alloc(&c->mem, s.n * sizeof *t.like);
    if (!r && !t.like)
        r = el_fail(e, EL_EXIT_OSERR, "out of memory");
    struct gc g = {.fs = &p.fs,
                   .mem = &c->mem,
                   .rule = {c->conf->keep_last, c->conf->keep_every},
                   .dry_run = c->conf->dry_run,
                   .foreign = c->conf->foreign,
                   .run_id = c->conf->run_id,
                   .nonce = c->nonce,
                   .prove = prove,
                   .replace = commit_replace,
                   .each = cmd_ckpt_gc_tell,
                   .ctx = &t};
    if (!r) {
        if (c->conf->json)
            el_buf_puts(&c->out, "{\"checkpoints\": [");
        r = gc_run(&g, &s, e);
        if (r && !g.gone && !t.any)
            c->out.len = 0; /* nothing is to be told but why */
        else
            emit_end(c, &g);
    }
    el_free(&c->mem, t.like);
    scan_close(&s);
    ckpt_place_close(&p);
    return r;
}

/* --- pins --------------------------------------------------------------------------------------------------------- */

static int set_pin(struct ckpt_call *c, const char *path, bool pin, struct el_err *e)
{
    struct ckpt_place p;
    char at[CKPT_PATH_MAX];
    int r = ckpt_place_open(&p, path, e);
    if (!r && (!p.dir || p.file))
        r = el_fail(e, EL_EXIT_USAGE, "%s: %s", path,
                    p.file ? "a file cannot be pinned"
                           : "a root cannot be pinned, only a "
                             "checkpoint in it");
    if (!r && snprintf(at, sizeof at, CKPT_PIN_DIR "/%s", p.dir) >= (int)sizeof at)
        r = fs_fail(&p.fs, -ENAMETOOLONG, "pin", p.dir, e);
    int sys = 0;
    if (!r && pin) {
        sys = p.fs.mkdir(p.fs.ctx, CKPT_PIN_DIR);
        sys = sys == -EEXIST ? 0 : sys;
        r = sys < 0 ? -1 : commit_replace(&p.fs, at, c->nonce, "", 0, e);
    } else if (!r) {
        sys = p.fs.remove(p.fs.ctx, at);
        sys = sys == -ENOENT ? 0 : sys;
    }
    if (sys < 0)
        r = fs_fail(&p.fs, sys, pin ? "pin" : "unpin", p.dir, e);
    ckpt_place_close(&p);
    return r;
}

static int set_pins(struct ckpt_call *c, bool pin, struct el_err *e)
{
    int r = 0;
    for (int i = 0; !r && i < c->argc; i++)
        r = set_pin(c, c->argv[i], pin, e);
    return r;
}

int ckpt_pin(struct ckpt_call *c, struct el_err *e)
{
    return set_pins(c, true, e);
}

int ckpt_unpin(struct ckpt_call *c, struct el_err *e)
{
    return set_pins(c, false, e);
}
