/* What is told of a health check as a whole: its report, page by page. */
#include <stdio.h>
#include <string.h>

#include "rdzv/rdzv_private.h"

enum { PAGE_BYTES = MSG_STREAM_MAX };

unsigned rdzv_probe_reader(const struct rdzv *r)
{
    return r->health.reader;
}

void rdzv_health_render(struct rdzv *r)
{
    struct rdzv_health *h = &r->health;
    const char *text;
    el_buf_free(&h->report);
    h->report = EL_BUF_INIT(r->mem, RDZV_PROBE_REPORT_MAX);
    probing_summary(h->last, h->summary, sizeof h->summary);
    el_buf_printf(&h->report, "%s\n", h->summary);
    for (unsigned i = 0; i < h->nodes; i++) {
        enum health_verdict v = probing_verdict(h->last, i, &text);
        el_buf_printf(&h->report, "  %-24s %-10s %s\n", probing_host(h->last, i), health_verdict_name(v), text);
    }
}

/* A piece that ends at a line's end, if there is one in it. */
static size_t piece_of(const char *text, size_t n)
{
    if (n <= PAGE_BYTES)
        return n;
    for (n = PAGE_BYTES; n && text[n - 1] != '\n';)
        n--;
    return n ? n : PAGE_BYTES;
}

bool rdzv_probe_page(struct rdzv *r, unsigned i, struct msg *out)
{
    struct rdzv_health *h = &r->health;
    const char *text = el_buf_cstr(&h->report);
    size_t at = i ? h->paged : 0, n = piece_of(text + at, h->report.len - at);
    if (!h->last || at >= h->report.len)
        return false;
    h->paged = at + n;
    snprintf(h->page, sizeof h->page, "%.*s", (int)n, text + at);
    const struct probing_conf *c = probing_conf(h->last);
    *out = (struct msg){.type = MSG_PROBE_PAGE};
    out->u.probe_page = (struct msg_probe_page){
        .number = c->number, .coord = c->coord, .probe = c->probe, .text = h->page, .more = h->paged < h->report.len};
    return true;
}
