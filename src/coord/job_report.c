#include "coord/job_report.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "failure/absent.h"

void job_report_init(struct job_report *j)
{
    *j = (struct job_report){.mem = EL_MEM_INIT(JOB_REPORT_MAX_BYTES)};
    j->job = (struct report_job){.rest_ranks = "", .stopped_ranks = "", .classes = "", .missing = "", .log_host = ""};
}

void job_report_free(struct job_report *j)
{
    for (unsigned i = 0; i < j->n; i++) {
        record_free(j->record[i], &j->mem);
        el_free(&j->mem, j->record[i]);
    }
    for (unsigned i = 0; i < sizeof j->texts / sizeof j->texts[0]; i++)
        el_free(&j->mem, j->texts[i]);
    assert(!j->mem.used_bytes);
    job_report_init(j);
}

/* Clean: it goes to a terminal. */
static const char *job_report_keep(struct job_report *j, unsigned i, const char *text)
{
    struct el_buf clean = EL_BUF_INIT(&j->mem, 0);
    if (text_clean(&clean, text, strlen(text)) == 0)
        j->texts[i] = el_strndup(&j->mem, el_buf_cstr(&clean), clean.len);
    el_buf_free(&clean);
    return j->texts[i] ? j->texts[i] : "";
}

static void job_report_take_head(struct job_report *j, const struct msg_report *m)
{
    job_report_free(j);
    j->number = m->number;
    j->coord = m->coord;
    j->restarts = (unsigned)m->restarts;
    j->restarts_max = (unsigned)m->max_restarts;
    j->job.among = (unsigned)m->among;
    j->job.failed = m->failed;
    j->job.rest = m->rest;
    j->job.rest_ranks = job_report_keep(j, 0, m->rest_ranks);
    j->job.stopped_ranks = job_report_keep(j, 1, m->stopped_ranks);
    j->job.classes = job_report_keep(j, 2, m->classes);
    j->job.missing = job_report_keep(j, 3, m->missing);
    j->open = m->more;
}

/* The agent died before it could tell more than that, or there was no room for its document. */
static void from_row(struct failure *f, const struct msg_report_row *row, struct el_mem *mem)
{
    struct el_buf clean = EL_BUF_INIT(mem, 0);
    f->watch = FAILURE_WATCH_UNTOLD;
    f->end = row->signal > 0 ? FAILURE_SIGNAL : row->code > 0 ? FAILURE_EXIT : FAILURE_UNKNOWN;
    f->code = row->signal > 0 ? (int)row->signal : row->code > 0 ? (int)row->code : 0;
    if (text_clean(&clean, row->text, strlen(row->text)) == 0)
        f->message = el_strndup(mem, el_buf_cstr(&clean), clean.len);
    el_buf_free(&clean);
}

static void job_report_take_row(struct job_report *j, const struct msg_report_row *row)
{
    struct el_err e = {0};
    struct record *r = j->n < RDZV_REPORT_ROWS ? el_alloc(&j->mem, sizeof *r) : NULL;
    j->open = row->more;
    if (!r)
        return;
    if (record_read(r, row->document, strlen(row->document), &j->mem, &e) < 0)
        from_row(&r->failure, row, &j->mem);
    /* Who it was is the coordinator's word. */
    r->failure.rank = (unsigned)row->rank;
    r->failure.local_rank = (unsigned)row->local_rank;
    r->failure.node_rank = (unsigned)row->group_rank;
    struct el_buf host = EL_BUF_INIT(&j->mem, 0);
    if (text_clean(&host, row->host, strlen(row->host)) == 0 && host.len)
        text_copy(r->host, sizeof r->host, host.v, host.len);
    el_buf_free(&host);
    j->failures[j->n] = &r->failure;
    j->record[j->n++] = r;
    for (unsigned i = 0; !j->open && i < j->n; i++)
        absent_explain(&j->record[i]->failure, j->failures, j->n);
}

bool job_report_take(struct job_report *j, const struct msg *m)
{
    if (m->type == MSG_REPORT) {
        job_report_take_head(j, &m->u.report);
        return !j->open;
    }
    if (m->type != MSG_REPORT_ROW || !j->open)
        return false;
    job_report_take_row(j, &m->u.report_row);
    return !j->open;
}

struct failure_report job_report_view(const struct job_report *j)
{
    return (struct failure_report){.job = &j->job,
                                   .failures = j->failures,
                                   .failures_count = j->n,
                                   .restarts = j->restarts,
                                   .restarts_max = j->restarts_max};
}
