#include "history/job_history.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "event/event_read.h"

enum { REMARKS_MAX = 8192 };
#define YEARS_APART ((int64_t)10 * 366 * 86400 * 1000000) /* no job lasts so long: a clock was wrong, or a file is */

void job_history_init(struct job_history *c, struct el_mem *mem)
{
    *c = (struct job_history){
        .mem = mem, .status = -1, .source_node = -1, .first = -1, .remarks = EL_BUF_INIT(mem, REMARKS_MAX)};
    timeline_init(&c->line, mem);
}

static void free_record(struct job_history *c, struct record *r)
{
    record_free(r, c->mem);
    el_free(c->mem, r);
}

void job_history_free(struct job_history *c)
{
    for (size_t i = 0; i < c->faults; i++)
        free_record(c, c->fault[i].record);
    el_free(c->mem, c->fault);
    el_free(c->mem, c->lost);
    el_buf_free(&c->remarks);
    timeline_free(&c->line);
    job_history_init(c, c->mem);
}

void job_history_remark(struct job_history *c, const char *fmt, ...)
{
    char line[JOB_HISTORY_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    el_buf_printf(&c->remarks, "%s\n", line);
}

static void job_history_copy(char *to, size_t size, const char *from)
{
    if (from)
        text_copy(to, size, from, strlen(from));
}

/* --- which job --- */

void job_history_scan(struct job_history_scan *s, const char *line, size_t n)
{
    struct text t = {line, n - (n && line[n - 1] == '\n')};
    uint64_t at = s->at;
    struct event_read r;
    s->at += n;
    /* Most lines are of other kinds: only these are parsed. */
    if (!text_find(t, "agent_started") && !text_find(t, "job_started") && !text_find(t, "agent_ended") &&
        !text_find(t, "job_ended"))
        return;
    if (event_decode(t.p, t.n, &r) != EVENT_LINE_READ)
        return;
    const struct event *ev = &r.event;
    bool coordinator = ev->source == EVENT_COORDINATOR;
    bool agent = ev->type == EVENT_AGENT_STARTED, job = ev->type == EVENT_JOB_STARTED;
    bool begins = (agent || (job && coordinator)) && !s->open;
    if (agent)
        s->agent_at = at;
    if (job && !coordinator && s->begins != s->agent_at) { /* of one node: whoever was there before it was killed */
        s->open = 1;
        s->begins = s->agent_at;
        s->jobs++;
    } else if (begins) {
        s->begins = at;
        s->jobs++;
    }
    if (agent || job)
        job_history_copy(s->run_id, sizeof s->run_id, ev->run_id ? ev->run_id : "");
    s->open += agent || (job && coordinator);
    if (s->open && (ev->type == EVENT_AGENT_ENDED || (ev->type == EVENT_OF_NOTE(NOTE_ENDED) && coordinator)))
        s->open--;
    event_release(&r);
}

/* --- failures --- */

static struct job_history_fault *fault_of(struct job_history *c, int node, uint64_t round, unsigned rank)
{
    for (size_t i = c->faults; i > 0; i--) {
        struct job_history_fault *x = &c->fault[i - 1];
        if (x->node == node && x->record->failure.round == round && x->record->failure.rank == rank)
            return x;
        if (x->node == node && x->record->failure.round != round)
            return NULL; /* of the same file, and older */
    }
    return NULL;
}

/* Takes the record over. */
static void keep_fault(struct job_history *c, int node, struct record *r, bool told)
{
    struct job_history_fault *old = fault_of(c, node, r->failure.round, r->failure.rank);
    if (old && (told || !old->told)) {
        free_record(c, old->record);
        *old = (struct job_history_fault){.record = r, .node = node, .told = told};
        return;
    }
    if (!old && c->faults == c->faults_room && c->faults < JOB_HISTORY_FAULTS_MAX) {
        size_t room = c->faults_room ? 2 * c->faults_room : 16;
        struct job_history_fault *more = el_realloc(c->mem, c->fault, room * sizeof *more);
        if (more) {
            c->fault = more;
            c->faults_room = room;
        }
    }
    if (old || c->faults == c->faults_room || c->faults == JOB_HISTORY_FAULTS_MAX) {
        c->faults_left_out += !old;
        free_record(c, r);
        return;
    }
    c->fault[c->faults++] = (struct job_history_fault){.record = r, .node = node, .told = told};
}

static struct record *new_record(struct job_history *c)
{
    struct record *r = el_alloc(c->mem, sizeof *r);
    if (!r) {
        c->faults_left_out++;
        return NULL;
    }
    failure_init(&r->failure);
    r->failure.role = r->role;
    r->failure.host = r->host;
    return r;
}

static void take_end(struct job_history *c, int node, const struct event *ev)
{
    const struct event_worker_ended *w = &ev->u.worker_ended;
    bool exited = w->exit_code >= 0 && w->exit_code <= 255, killed = w->signal > 0 && w->signal <= 64;
    struct record *r = w->exit_code == 0 ? NULL : new_record(c);
    if (!r)
        return;
    struct failure *f = &r->failure;
    job_history_copy(r->host, sizeof r->host, ev->host);
    f->rank = (unsigned)w->rank;
    f->local_rank = (unsigned)w->local_rank;
    f->pid = (int)w->pid;
    f->end = killed ? FAILURE_SIGNAL : exited ? FAILURE_EXIT : FAILURE_UNKNOWN;
    f->code = killed ? (int)w->signal : exited ? (int)w->exit_code : 0;
    f->core_dumped = w->core_dumped;
    f->round = ev->round;
    f->wall_usec = ev->wall_usec;
    f->elapsed = w->elapsed_us;
    f->watch = FAILURE_WATCH_UNTOLD; /* until its incident comes */
    failure_judge(f, w->stopped, false);
    keep_fault(c, node, r, false);
}

static void take_incident(struct job_history *c, int node, const struct event *ev)
{
    const struct event_incident *x = &ev->u.incident;
    struct record *r = el_alloc(c->mem, sizeof *r);
    if (!r) {
        c->faults_left_out++;
        return;
    }
    if (!x->record || record_read(r, x->record, strlen(x->record), c->mem, NULL)) {
        if (x->record)
            record_free(r, c->mem);
        memset(r, 0, sizeof *r); /* the line was too long for its record: its short fields say the most of it */
        failure_init(&r->failure);
        r->failure.role = r->role;
        r->failure.host = r->host;
        r->failure.rank = (unsigned)x->rank;
        r->failure.local_rank = (unsigned)x->local_rank;
        if (x->text)
            r->failure.message = el_strndup(c->mem, x->text, strlen(x->text));
    }
    if (!r->host[0])
        job_history_copy(r->host, sizeof r->host, ev->host);
    if (r->failure.wall_usec < 0)
        r->failure.wall_usec = ev->wall_usec;
    r->failure.round = ev->round;
    keep_fault(c, node, r, true);
}

/* --- events --- */

void job_history_file_begin(struct job_history *c, const char *run_id)
{
    c->source++;
    c->source_node = -1;
    c->lines = c->foreign = c->unknown = c->others = 0;
    if (!c->run_id[0])
        job_history_copy(c->run_id, sizeof c->run_id, run_id);
}

static void job_history_move(struct job_history *c, int node, const struct event *ev, enum timeline_state state)
{
    struct timeline_change x = {.at = ev->wall_usec, .state = state};
    if (node < 0)
        return;
    const struct timeline_node *n = &c->line.node[node];
    if (state >= TIMELINE_STARTING)
        x.round = ev->round;
    if (state > TIMELINE_STARTING && n->n) { /* its place is told once */
        x.rank = n->change[n->n - 1].rank;
        x.workers = n->change[n->n - 1].workers;
    }
    if (ev->type == EVENT_WORKERS_STARTING) {
        x.rank = (unsigned)ev->u.workers_starting.first_rank;
        x.workers = (unsigned)ev->u.workers_starting.workers;
    }
    timeline_change(&c->line, (unsigned)node, &x);
}

static void take_account(struct job_history *c, const struct event_account *x)
{
    struct job_history_account *a = &c->account;
    const char *o = x->account;
    job_history_copy(a->text, sizeof a->text, x->text);
    a->nodes++;
    a->total += event_number(o, "total_usec");
    a->forming += event_number(o, "forming_usec");
    a->starting += event_number(o, "starting_usec");
    a->running += event_number(o, "running_usec");
    a->stopping += event_number(o, "stopping_usec");
    a->waiting += event_number(o, "waiting_usec");
    a->effective += event_number(o, "effective_usec");
    a->repeated += event_number(o, "repeated_usec");
    a->steps_new += event_number(o, "steps_new");
    a->steps_again += event_number(o, "steps_again");
    double step = event_number(o, "step_usec");
    a->step = step > 0 ? step : a->step;
    a->steps |= step > 0;
}

static void take_lost(struct job_history *c, const struct event *ev)
{
    if (!c->lost && !(c->lost = el_alloc(c->mem, JOB_HISTORY_LOST_MAX * sizeof *c->lost)))
        return;
    if (!ev->u.note.node || c->lost_count == JOB_HISTORY_LOST_MAX)
        return;
    struct job_history_lost *l = &c->lost[c->lost_count++];
    *l = (struct job_history_lost){.at = ev->wall_usec, .round = ev->round, .clock = c->source_node};
    job_history_copy(l->host, sizeof l->host, ev->u.note.node);
    job_history_copy(l->text, sizeof l->text, ev->u.note.text);
}

static void take_job(struct job_history *c, const struct event *ev)
{
    if (ev->type == EVENT_JOB_STARTED) {
        c->restarts_max = (unsigned)ev->u.job_started.max_restarts;
    } else if (ev->type == EVENT_OF_NOTE(NOTE_LOST)) {
        take_lost(c, ev);
    } else if (ev->type == EVENT_OF_NOTE(NOTE_ENDED)) {
        c->ended = true;
        c->status = ev->u.note.status >= 0 && ev->u.note.status <= 255 ? (int)ev->u.note.status : c->status;
        job_history_copy(c->end_text, sizeof c->end_text, ev->u.note.text);
    }
}

static void take_agent(struct job_history *c, int node, const struct event *ev)
{
    unsigned restarts = 0;
    switch ((int)ev->type) {
    case EVENT_AGENT_STARTED:
        c->agents++;
        c->agents_open++;
        job_history_copy(c->script, sizeof c->script, ev->u.agent_started.script);
        job_history_move(c, node, ev, TIMELINE_WAITING);
        break;
    case EVENT_WORKERS_STARTING:
        restarts = (unsigned)ev->u.workers_starting.restarts;
        job_history_move(c, node, ev, TIMELINE_STARTING);
        break;
    case EVENT_WORKERS_STARTED: job_history_move(c, node, ev, TIMELINE_RUNNING); break;
    case EVENT_WORKERS_STOPPING: job_history_move(c, node, ev, TIMELINE_STOPPING); break;
    case EVENT_WORKERS_STOPPED: job_history_move(c, node, ev, TIMELINE_WAITING); break;
    case EVENT_WORKER_ENDED: take_end(c, node, ev); break;
    case EVENT_INCIDENT: take_incident(c, node, ev); break;
    case EVENT_RESTART:
        restarts = (unsigned)ev->u.restart.restarts;
        c->restarts_max = (unsigned)ev->u.restart.max_restarts;
        break;
    case EVENT_ACCOUNT: take_account(c, &ev->u.account); break;
    case EVENT_AGENT_ENDED:
        job_history_move(c, node, ev, TIMELINE_AWAY);
        c->agents_open -= c->agents_open > 0;
        if (!c->ended && (int)ev->u.agent_ended.status > c->status) {
            c->status = (int)ev->u.agent_ended.status;
            job_history_copy(c->end_text, sizeof c->end_text, ev->u.agent_ended.text);
        }
        break;
    default: break;
    }
    c->restarts = restarts > c->restarts ? restarts : c->restarts;
}

static bool believable(struct job_history *c, const struct event *ev)
{
    if (c->first < 0)
        c->first = ev->wall_usec;
    int64_t apart = ev->wall_usec > c->first ? ev->wall_usec - c->first : c->first - ev->wall_usec;
    return apart < YEARS_APART;
}

void job_history_line(struct job_history *c, const char *line, size_t n)
{
    struct event_read r;
    if (!n)
        return; /* behind a line that a full disk tore */
    c->lines++;
    enum event_line what = event_decode(line, n, &r);
    c->foreign += what == EVENT_LINE_FOREIGN;
    c->unknown += what == EVENT_LINE_UNKNOWN;
    if (what != EVENT_LINE_READ)
        return;
    const struct event *ev = &r.event;
    bool other = c->run_id[0] && ev->run_id && strcmp(ev->run_id, c->run_id) != 0;
    c->others += other;
    if (!other && believable(c, ev)) {
        int node = -1;
        c->any = true;
        c->rounds = ev->round > c->rounds ? ev->round : c->rounds;
        if (ev->source == EVENT_AGENT)
            c->source_node = node = timeline_node(&c->line, ev->host ? ev->host : "", c->source);
        if (ev->source == EVENT_COORDINATOR || ev->type >= EVENT_OF_NOTE(0) || ev->type == EVENT_JOB_STARTED)
            take_job(c, ev);
        else
            take_agent(c, node, ev);
    }
    event_release(&r);
}

void job_history_file_end(struct job_history *c, const char *path, bool torn)
{
    size_t good = c->lines - c->foreign;
    if (!c->lines)
        job_history_remark(c, "%s: empty", path);
    else if (!good)
        job_history_remark(c, "%s: no events: none of its %zu lines is one (elrun-events(5))", path, c->lines);
    else if (c->foreign > torn)
        job_history_remark(c, "%s: %zu of %zu lines are no events and were left out", path, c->foreign, c->lines);
    if (torn && good)
        job_history_remark(
            c, "%s: breaks off in the middle of a line: elrun was killed, is still writing, or the disk was full",
            path);
    if (c->unknown)
        job_history_remark(c, "%s: %zu events are of a newer elrun and were left out", path, c->unknown);
    if (c->others)
        job_history_remark(c, "%s: %zu events of other jobs than %s were left out", path, c->others, c->run_id);
}

/* --- a log folder --- */

int job_history_run(struct job_history *c, const char *name)
{
    c->from_tree = true;
    return timeline_node(&c->line, name, ++c->source);
}

void job_history_attempt(struct job_history *c, int node, unsigned restart, uint64_t round, unsigned workers,
                         int64_t from, int64_t to)
{
    struct timeline_change x = {.at = from, .state = TIMELINE_STARTING, .round = round, .workers = workers};
    c->any = true;
    c->restarts = restart > c->restarts ? restart : c->restarts;
    c->rounds = round > c->rounds ? round : c->rounds;
    if (node < 0)
        return;
    timeline_change(&c->line, (unsigned)node, &x);
    x.state = TIMELINE_RUNNING;
    timeline_change(&c->line, (unsigned)node, &x);
    timeline_change(&c->line, (unsigned)node, &(struct timeline_change){.at = to, .state = TIMELINE_AWAY});
}

void job_history_left(struct job_history *c, int node, struct record *r)
{
    const struct failure *f = &r->failure;
    bool failed = f->file_state == ERRFILE_WHOLE || f->file_state == ERRFILE_CUT || f->found.kind != TRACEBACK_NONE;
    if (failed)
        keep_fault(c, node, r, true);
    else
        free_record(c, r);
}

/* --- in order --- */

/* The root cause of a round; -1: none failed by itself in it. */
static int cause_of_round(const struct job_history *c, uint64_t round, const struct failure **all)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->faults; i++)
        if (c->fault[i].record->failure.round == round)
            all[n++] = &c->fault[i].record->failure;
    int cause = failure_cause(all, n);
    for (size_t i = 0; cause >= 0 && i < c->faults; i++)
        if (&c->fault[i].record->failure == all[cause])
            return (int)i;
    return -1;
}

static void mark_causes(struct job_history *c)
{
    const struct failure **all = el_alloc(c->mem, (c->faults + 1) * sizeof *all);
    uint64_t last = 0;
    for (size_t i = 0; all && i < c->faults; i++) {
        uint64_t round = c->fault[i].record->failure.round;
        int at = i && round == last ? -1 : cause_of_round(c, round, all);
        bool before = false;
        for (size_t k = 0; k < c->line.marks; k++) /* another node told of this round already */
            before |= c->line.mark[k].round == round && c->line.mark[k].kind == TIMELINE_FAILURE;
        last = round;
        if (at < 0 || before || c->fault[at].node < 0)
            continue;
        const struct failure *f = &c->fault[at].record->failure;
        struct failure_report r = {.script = "", .failures = (const struct failure *const[]){f}, .failures_count = 1};
        struct timeline_mark m = {.node = (unsigned)c->fault[at].node, .at = f->wall_usec, .round = round};
        struct el_buf text = EL_BUF_INIT(c->mem, 4096);
        if (c->from_tree && f->message) /* of the end itself nothing is known */
            el_buf_printf(&text, "rank %u failed: %s", f->rank, f->message);
        else
            summary_verdict(&r, &text);
        job_history_copy(m.text, sizeof m.text, el_buf_cstr(&text));
        timeline_mark(&c->line, &m);
        el_buf_free(&text);
    }
    el_free(c->mem, all);
}

/* The node of that name that was there last; made if only the coordinator knows of it. */
static int node_named(struct job_history *c, const char *host)
{
    for (size_t i = c->line.nodes; i > 0; i--)
        if (strcmp(c->line.node[i - 1].host, host) == 0)
            return (int)i - 1;
    return timeline_node(&c->line, host, 0);
}

static void mark_lost(struct job_history *c)
{
    for (size_t i = 0; i < c->lost_count; i++) {
        const struct job_history_lost *l = &c->lost[i];
        int node = node_named(c, l->host);
        if (node < 0)
            continue;
        int64_t at = l->at + (l->clock >= 0 ? c->line.node[l->clock].offset : 0) - c->line.node[node].offset;
        struct timeline_mark m = {.node = (unsigned)node, .kind = TIMELINE_LOST, .at = at, .round = l->round};
        snprintf(m.text, sizeof m.text, "%s: %.150s", l->host, l->text[0] ? l->text : "lost");
        timeline_mark(&c->line, &m);
        timeline_change(&c->line, m.node, &(struct timeline_change){.at = at, .state = TIMELINE_AWAY});
    }
}

void job_history_close(struct job_history *c)
{
    c->clocks_off = timeline_align(&c->line);
    for (size_t i = 0; i < c->faults; i++) {
        struct failure *f = &c->fault[i].record->failure;
        int64_t at = f->wall_usec + (c->fault[i].node >= 0 ? c->line.node[c->fault[i].node].offset : 0);
        f->at = at > 0 ? (el_usec)at : 0; /* the monotonic clocks of hosts have nothing to do with each other */
    }
    mark_causes(c);
    mark_lost(c);
    timeline_sort(&c->line);
    c->ended |= c->agents && !c->agents_open;
    if (c->clocks_off > 1000000)
        job_history_remark(c,
                           "clocks of the nodes differ by up to %lld s: brought in line by the starts of their rounds",
                           (long long)(c->clocks_off / 1000000));
    if (c->from_tree)
        job_history_remark(c, "no events were found: how workers ended is not known, times are those of files");
    if (c->line.full || c->faults_left_out || c->remarks.full)
        job_history_remark(c, "more happened than is kept: %zu failures are left out", c->faults_left_out);
}

bool job_history_failed(const struct job_history *c)
{
    if (c->status >= 0)
        return c->status != 0;
    for (size_t i = 0; i < c->faults; i++)
        if (c->fault[i].record->failure.by != FAILURE_BY_ELRUN && c->fault[i].record->failure.round == c->rounds)
            return true;
    return false;
}

/* Each rank once: files may tell of the same round twice.  Returns how many there are now. */
static unsigned add_by_rank(const struct failure **all, unsigned n, const struct failure *f)
{
    unsigned at = n;
    while (at > 0 && all[at - 1]->rank > f->rank)
        at--;
    if (at > 0 && all[at - 1]->rank == f->rank) {
        if (all[at - 1]->by == FAILURE_BY_ELRUN)
            all[at - 1] = f;
        return n;
    }
    memmove(&all[at + 1], &all[at], (n - at) * sizeof *all);
    all[at] = f;
    return n + 1;
}

const struct failure **job_history_report(const struct job_history *c, struct failure_report *r)
{
    const struct failure **all = el_alloc(c->mem, (c->faults + 1) * sizeof *all);
    uint64_t round = 0;
    unsigned n = 0;
    bool own = false;
    for (size_t i = 0; i < c->faults; i++) {
        const struct failure *f = &c->fault[i].record->failure;
        own |= f->by != FAILURE_BY_ELRUN;
        if (f->by != FAILURE_BY_ELRUN && f->round > round)
            round = f->round;
    }
    for (size_t i = 0; all && i < c->faults; i++)
        if (c->fault[i].record->failure.round == round)
            n = add_by_rank(all, n, &c->fault[i].record->failure);
    if (!own || !n) {
        el_free(c->mem, all);
        return NULL;
    }
    *r = (struct failure_report){
        .script = c->script[0] ? c->script : "the job",
        .failures = all,
        .failures_count = n,
        .restarts = c->restarts,
        .restarts_max = c->restarts_max,
        .log_dir = c->log_dir[0] ? c->log_dir : NULL,
    };
    return all;
}
