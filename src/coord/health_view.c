/* What is told of a health check as a whole: its report, page by page. */
#include <stdio.h>
#include <string.h>

#include "probe/report.h"
#include "coord/rdzv_private.h"

enum {
    WORKER_STATUS_BYTES = MSG_STREAM_MAX,
    FOUND_NODES_MAX = 64, /* 80 KiB each, for a moment */
    FOUND_ALL_MAX = 1024, /* with --all */
};
#define HERE_MAX ((size_t)16 << 20) /* bytes of a report that needs no connection */

unsigned rdzv_probe_reader(const struct rdzv *r)
{
    return r->health.reader;
}

/* What a node has told of itself; NULL: nothing, or there is no memory for it. */
static struct found *found_of(struct rdzv *r, unsigned node)
{
    const char *lines = health_check_kept(r->health.last, node);
    struct found *f = *lines ? el_alloc(r->mem, sizeof *f) : NULL;
    for (const char *end; f && (end = strchr(lines, '\n')); lines = end + 1) {
        struct probe_wire w;
        struct el_err e = {0};
        if (wire_decode(lines, (size_t)(end - lines) + 1, &w, &e) < 0)
            continue;
        (void)found_take(f, &w);
        wire_release(&w);
    }
    return f;
}

/* Of a node that is good nothing is told, where there are many. */
static bool health_view_is_told(struct rdzv *r, unsigned node)
{
    const char *text;
    return r->conf.set.probe_all || r->health.nodes <= FOUND_NODES_MAX ||
           health_check_verdict(r->health.last, node, &text) != HEALTH_GOOD;
}

/* With less and less in it, until it fits: half a report would be none. */
static void write_report(struct rdzv *r, unsigned kind, void (*write)(const struct probe_report *r, struct el_buf *out),
                         struct probe_report report)
{
    struct rdzv_health *h = &r->health;
    struct el_buf *to = &h->report[kind];
    bool here = h->reader != RDZV_NONE && rdzv_instance(r, h->reader) == r->conf.own_instance;
    if (here) {
        report.colour = r->conf.look.colour;
        report.utf8 = r->conf.look.utf8;
        report.columns = r->conf.look.columns;
    }
    do {
        el_buf_free(to);
        *to = EL_BUF_INIT(r->mem, here ? HERE_MAX : RDZV_PROBE_REPORT_MAX);
        write(&report, to);
        if (to->full && !report.all && report.brief)
            break;
        report.brief = to->full && !report.all;
        report.all = false;
    } while (to->full);
}

static void write_reports(struct rdzv *r, struct found **found, const char **note)
{
    struct rdzv_health *h = &r->health;
    const struct health_check_conf *c = health_check_conf(h->last);
    struct probe_report report = {.plan = health_check_plan(h->last),
                                  .found = (const struct found *const *)found,
                                  .note = note,
                                  .number = c->number,
                                  .coord = c->coord,
                                  .probe = c->probe,
                                  .took_ms = h->took / EL_MS(1),
                                  .backend = h->nodes < 2                    ? NULL
                                             : health_check_is_nccl(h->last) ? "nccl"
                                                                             : "tcp",
                                  .all = r->conf.set.probe_all};
    write_report(r, 0, report_text, report);
    if (r->conf.set.probe_only)
        write_report(r, 1, report_json, report);
}

void rdzv_health_render(struct rdzv *r)
{
    struct rdzv_health *h = &r->health;
    for (unsigned i = 0; i < 2; i++)
        el_buf_free(&h->report[i]);
    struct found **found = el_alloc(r->mem, h->nodes * sizeof *found);
    const char **note = el_alloc(r->mem, h->nodes * sizeof *note);
    const unsigned most = r->conf.set.probe_all ? FOUND_ALL_MAX : FOUND_NODES_MAX;
    unsigned told = 0;
    for (unsigned i = 0; note && i < h->nodes; i++)
        note[i] = health_check_note(h->last, i);
    for (unsigned i = 0; found && i < h->nodes && told < most; i++)
        if (health_view_is_told(r, i) && (found[i] = found_of(r, i)))
            told++;
    if (found && health_check_plan(h->last))
        write_reports(r, found, note);
    for (unsigned i = 0; found && i < h->nodes; i++)
        el_free(r->mem, found[i]);
    el_free(r->mem, note);
    el_free(r->mem, found);
}

/* A piece that ends at a line's end, if there is one in it. */
static size_t health_view_piece_of(const char *text, size_t n)
{
    if (n <= WORKER_STATUS_BYTES)
        return n;
    for (n = WORKER_STATUS_BYTES; n && text[n - 1] != '\n';)
        n--;
    return n ? n : WORKER_STATUS_BYTES;
}

bool rdzv_probe_page(struct rdzv *r, unsigned i, struct msg *out)
{
    struct rdzv_health *h = &r->health;
    if (!i) {
        h->paged = 0;
        h->kind = 0;
    }
    if (h->paged >= h->report[h->kind].len && !h->kind) {
        h->paged = 0;
        h->kind = 1;
    }
    struct el_buf *of = &h->report[h->kind];
    const char *text = el_buf_cstr(of);
    size_t at = h->paged, n = health_view_piece_of(text + at, of->len - at);
    if (!h->last || at >= of->len)
        return false;
    h->paged = at + n;
    snprintf(h->page, sizeof h->page, "%.*s", (int)n, text + at);
    const struct health_check_conf *c = health_check_conf(h->last);
    *out = (struct msg){.type = MSG_PROBE_PAGE};
    out->u.probe_page = (struct msg_probe_page){.number = c->number,
                                                .coord = c->coord,
                                                .probe = c->probe,
                                                .kind = h->kind,
                                                .text = h->page,
                                                .more = h->paged < of->len};
    return true;
}
