/* The output of all workers of a node: attempts, log files, the end.  One stream is in stream_io.c. */
#include "output/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/attempt_private.h"
#include "output/logtree.h"
#include "util/log.h"

#define LINE_MAX_BYTES    (64u * 1024u)        /* an unfinished line is held up to this */
#define FILES_LIMIT_BYTES (4u * 1024u * 1024u) /* queue of the log files' writer */
#define TEXT_MAX_BYTES    (1024u * 1024u)      /* what one read may become with prefixes */
#define READ_MIN_BYTES    1024u

static bool std_has(const struct output_streams *c, unsigned rank, int which)
{
    unsigned v = c->all ? c->value[0] : rank < c->n ? c->value[rank] : 0u;
    return (v & (unsigned)which) != 0; /* OUTPUT_STD_OUT is 1, OUTPUT_STD_ERR is 2 */
}

static void decide_route(struct output *o, struct stream *s)
{
    const struct output_options *options = o->conf.options;
    const struct route_in in = {
        .is_stderr = s->which == 2,
        .redirected = std_has(&options->redirects, s->rank, s->which),
        .teed = std_has(&options->tee, s->rank, s->which),
        .shown = !options->ranks_filtered || options->rank_shown[s->rank],
        .logs = o->logs,
        .terminal = o->terminal[s->which],
        .capture = options->capture_stderr,
        .watched = s->watched,
        .filter = o->filter[s->which].count > 0,
    };
    s->route = route_decide(&in);
}

static void init_stream(struct output *o, struct stream *s, unsigned rank, int which)
{
    *s = (struct stream){.o = o, .rank = rank, .which = which, .child_fd = -1, .read_fd = -1, .file_fd = -1};
    s->watched = o->steps && o->steps_rank == (int)rank;
    decide_route(o, s);
}

void output_watch_steps(struct output *o, int local_rank, struct steps *steps)
{
    o->steps = local_rank >= 0 ? steps : NULL;
    o->steps_rank = local_rank;
}

/* People who give a pattern expect numbers: where there will be none, they are told how to get them. */
static void warn_of_steps(struct output *o)
{
    const struct stream *s = o->steps ? &o->ranks[o->steps_rank].stream[0] : NULL;
    if (!s || o->told_steps || s->route.kind != ROUTE_INHERIT)
        return;
    o->told_steps = true;
    el_log(EL_WARN,
           "--step-pattern: local rank %u prints straight to the terminal, where elrun does not read; "
           "--tee=1 or --redirects=1 lets it count steps",
           s->rank);
}

static int parse_filters(struct output *o, struct el_err *e)
{
    const struct output_options *options = o->conf.options;
    const char *list[3] = {NULL, options->filter_stdout, options->filter_stderr};
    for (int k = 1; k <= 2; k++)
        if (filter_parse(&o->filter[k], NULL, list[k] ? list[k] : "") < 0)
            return el_fail(e, EL_EXIT_USAGE, "--duplicate-%s-filters: more than %u strings",
                           k == 1 ? "stdout" : "stderr", FILTER_NEEDLES_MAX);
    return 0;
}

/* --- errors of the writers ---------------------------------------------------------------------------------------- */

static void on_console_error(void *ctx, int fd, int sys)
{
    struct output *o = ctx;
    if (fd != 1 && fd != 2)
        return;
    if (sys != EPIPE && sys != EBADF) {
        el_log(EL_WARN, "%s: %s; output of workers may be missing there",
               fd == 1 ? "standard output" : "standard error", strerror(sys));
        return;
    }
    if (o->console_dead[fd])
        return;
    o->console_dead[fd] = true;
    if (fd == 1)
        el_log(EL_WARN, "standard output is closed: what workers print is no longer shown%s",
               o->files ? ", log files go on" : "");
    streams_unblock(o);
}

static const char *log_name(const struct output *o, int fd, char *to, size_t size)
{
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++)
            if (o->ranks[r].stream[k].file_fd == fd && o->ranks[r].dir) {
                snprintf(to, size, "log file %s/%s", o->ranks[r].dir, k ? "stderr.log" : "stdout.log");
                return to;
            }
    snprintf(to, size, "log files in %s", o->run_dir ? o->run_dir : "?");
    return to;
}

static void on_file_error(void *ctx, int fd, int sys)
{
    struct output *o = ctx;
    char name[1024];
    el_log(EL_WARN, "%s: %s; output is missing there from here on", log_name(o, fd, name, sizeof name), strerror(sys));
}

static void on_room(void *ctx)
{
    streams_unblock(ctx);
}

/* --- notices ------------------------------------------------------------------------------------------------------ */

void output_soon(struct output *o)
{
    loop_timer_at(o->soon, loop_clock());
}

bool output_rank_drained(const struct output *o, unsigned local_rank)
{
    assert(local_rank < o->conf.nproc);
    const struct rank *r = &o->ranks[local_rank];
    return stream_ended(&r->stream[0]) && stream_ended(&r->stream[1]);
}

bool output_drained(const struct output *o)
{
    for (unsigned r = 0; r < o->conf.nproc; r++)
        if (!output_rank_drained(o, r))
            return false;
    return true;
}

static bool rank_used(const struct rank *r)
{
    return r->stream[0].state == STREAM_ENDED && r->stream[1].state == STREAM_ENDED;
}

static void tell_drained(struct output *o)
{
    bool used = false;
    for (unsigned r = 0; r < o->conf.nproc; r++) {
        struct rank *rank = &o->ranks[r];
        used |= rank->told || rank_used(rank);
        if (rank->told || !rank_used(rank))
            continue;
        rank->told = true;
        if (o->conf.rank_drained)
            o->conf.rank_drained(o->conf.ctx, r);
    }
    if (o->told_drained || !used || !output_drained(o))
        return;
    o->told_drained = true;
    if (o->conf.drained)
        o->conf.drained(o->conf.ctx);
}

static void go_on_finishing(struct output *o);
static void on_finish_deadline(void *ctx);

static void output_on_soon(void *ctx)
{
    struct output *o = ctx;
    if (o->kick) {
        o->kick = false;
        streams_unblock(o);
    }
    if (o->ready_due) {
        o->ready_due = false;
        o->ready(o->ready_ctx, o->start_error.status ? &o->start_error : NULL);
    }
    if (o->finish == FINISH_NO)
        tell_drained(o);
    else
        go_on_finishing(o);
}

/* --- new ---------------------------------------------------------------------------------------------------------- */

static bool make_timers(struct output *o)
{
    bool made = (o->tick = loop_timer_new(o->loop, streams_on_tick, o)) != NULL;
    made = made && (o->parts = loop_timer_new(o->loop, streams_show_parts, o));
    made = made && (o->late = loop_timer_new(o->loop, streams_on_late, o));
    made = made && (o->soon = loop_timer_new(o->loop, output_on_soon, o));
    made = made && (o->finish_timer = loop_timer_new(o->loop, on_finish_deadline, o));
    for (int k = 0; made && k < 2; k++)
        made = (o->mouths[k].timer = loop_timer_new(o->loop, mouth_on_timer, &o->mouths[k])) != NULL;
    return made;
}

static bool wants_files(const struct output *o)
{
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++)
            if (o->ranks[r].stream[k].route.kind == ROUTE_FILE || o->ranks[r].stream[k].route.to_file)
                return true;
    return false;
}

static int setup(struct output *o, struct el_err *e)
{
    if (parse_filters(o, e) < 0)
        return -1;
    o->ranks = calloc(o->conf.nproc, sizeof *o->ranks);
    for (unsigned r = 0; o->ranks && r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++)
            init_stream(o, &o->ranks[r].stream[k], r, k + 1);
    if (!o->ranks || !make_timers(o))
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    if ((o->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "/dev/null");
    if (wants_files(o)) {
        if (!(o->files = sink_new(o->loop, FILES_LIMIT_BYTES, e)))
            return -1;
        o->watch_files = (struct sink_watch){.room = on_room, .error = on_file_error, .ctx = o};
        sink_watch(o->files, &o->watch_files);
    }
    bool same = o->conf.out == o->conf.err;
    o->mouths[0].sink = o->conf.out;
    o->mouths[1].sink = o->conf.err;
    o->mouth[1] = &o->mouths[0];
    o->mouth[2] = &o->mouths[same ? 0 : 1];
    for (int k = 0; k < (same ? 1 : 2); k++) {
        o->watch_mouth[k] = (struct sink_watch){.room = on_room, .error = on_console_error, .ctx = o};
        sink_watch(o->mouths[k].sink, &o->watch_mouth[k]);
    }
    return 0;
}

/* torchrun shows nothing of such a rank, and says nothing. */
static void warn_of_ranks(const struct output_options *options, unsigned nproc)
{
    unsigned rank = nproc;
    while (options->ranks_filtered && rank < EL_SLOTS_MAX && !options->rank_shown[rank])
        rank++;
    if (options->ranks_filtered && rank < EL_SLOTS_MAX)
        el_log(EL_WARN, "--local-ranks-filter: there is no local rank %u here, the last one is %u", rank, nproc - 1);
}

struct output *output_new(struct loop *l, struct pool *p, const struct output_conf *conf, struct el_err *e)
{
    assert(conf->nproc > 0 && conf->nproc <= EL_SLOTS_MAX && conf->out && conf->err && conf->run_id);
    struct output *o = calloc(1, sizeof *o);
    if (!o) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    o->loop = l;
    o->pool = p;
    o->conf = *conf;
    if (!o->conf.stall_max)
        o->conf.stall_max = OUTPUT_STALL_MAX;
    o->logs = !logtree_is_null(conf->options->log_dir);
    o->events_fd = o->null_fd = o->filter_fd[1] = o->filter_fd[2] = -1;
    o->terminal[1] = isatty(1);
    o->terminal[2] = isatty(2);
    o->resting.tail = &o->resting.head;
    o->blocked.tail = &o->blocked.head;
    warn_of_ranks(conf->options, conf->nproc);
    if (setup(o, e) < 0) {
        output_free(o);
        return NULL;
    }
    return o;
}

/* --- attempts ----------------------------------------------------------------------------------------------------- */

static void forget_attempt(struct output *o)
{
    for (unsigned r = 0; r < o->conf.nproc; r++) {
        struct rank *rank = &o->ranks[r];
        for (int k = 0; k < 2; k++)
            stream_abort(&rank->stream[k]);
        for (int k = 0; k < 2; k++) {
            ring_free(&rank->stream[k].ring);
            head_free(&rank->stream[k].head);
        }
        free(rank->dir);
        free(rank->error_file);
        rank->dir = rank->error_file = NULL;
        rank->told = false;
    }
    for (int k = 1; k <= 2; k++) {
        if (o->filter_fd[k] >= 0)
            sink_close(o->files, o->filter_fd[k]);
        o->filter_fd[k] = -1;
    }
}

/* What the stream needs in this attempt. */
static void prepare_stream(struct output *o, struct stream *s, unsigned rank_base)
{
    init_stream(o, s, s->rank, s->which);
    const struct prefix_values v = {
        .role_name = o->conf.role, .hostname = o->conf.hostname, .local_rank = s->rank, .rank = rank_base + s->rank};
    prefix_format(s->prefix, sizeof s->prefix, o->conf.options->prefix_template, &v);
    line_init(&s->line, NULL, s->route.raw ? "" : s->prefix, LINE_MAX_BYTES);
    filter_stream_init(&s->filtered, NULL, &o->filter[s->which], s->prefix, LINE_MAX_BYTES);
    /* The worst read is all newlines, each with a prefix. */
    size_t most = TEXT_MAX_BYTES / (s->line.prefix_len + 1);
    s->read_max = most > OUTPUT_READ_BYTES ? OUTPUT_READ_BYTES : most < READ_MIN_BYTES ? READ_MIN_BYTES : most;
}

static int name_rank(struct rank *r, const char *dir, unsigned rank)
{
    if (asprintf(&r->dir, "%s/%u", dir, rank) < 0)
        r->dir = NULL;
    if (!r->dir || asprintf(&r->error_file, "%s/error.json", r->dir) < 0)
        r->error_file = NULL;
    return r->error_file ? 0 : -1;
}

void output_attempt_made(struct output *o, struct attempt_result *res)
{
    if (res->run_dir) {
        o->run_dir = res->run_dir;
        o->temporary = res->temporary;
    }
    if (res->events_fd >= 0)
        o->events_fd = res->events_fd;
    for (unsigned r = 0; r < o->conf.nproc; r++) {
        for (int k = 0; k < 2; k++)
            o->ranks[r].stream[k].file_fd = res->file_fd[2 * r + (unsigned)k];
        if (!res->e.status && name_rank(&o->ranks[r], res->dir, r) < 0)
            el_fail(&res->e, EL_EXIT_OSERR, "out of memory");
    }
    for (int k = 1; k <= 2; k++)
        o->filter_fd[k] = res->filter_fd[k];
    if (o->finish != FINISH_NO) {
        output_soon(o);
        return;
    }
    o->ready(o->ready_ctx, res->e.status ? &res->e : NULL);
}

void output_attempt_begin(struct output *o, unsigned restart_count, unsigned round, unsigned rank_base,
                          output_ready_fn *ready, void *ctx)
{
    assert(!o->job && !o->ready_due && o->finish == FINISH_NO);
    char name[LOGTREE_NAME_MAX];
    forget_attempt(o);
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++)
            prepare_stream(o, &o->ranks[r].stream[k], rank_base);
    warn_of_steps(o);
    o->told_drained = false;
    o->ready = ready;
    o->ready_ctx = ctx;
    logtree_attempt_name(name, restart_count, round, o->attempted && o->last_count == restart_count);
    o->attempted = true;
    o->last_count = restart_count;
    o->start_error = (struct el_err){0};
    if (o->logs && attempt_job_start(o, name, &o->start_error) == 0)
        return;
    o->ready_due = true;
    output_soon(o);
}

int output_child_fds(struct output *o, unsigned local_rank, int fd[3], const char **error_file, struct el_err *e)
{
    assert(local_rank < o->conf.nproc);
    struct rank *r = &o->ranks[local_rank];
    *error_file = r->error_file ? r->error_file : "";
    for (int k = 0; k < 2; k++) {
        if (stream_open(&r->stream[k], e) < 0) {
            stream_abort(&r->stream[0]);
            return -1;
        }
        fd[k + 1] = r->stream[k].child_fd;
    }
    return 0;
}

void output_child_started(struct output *o, unsigned local_rank)
{
    assert(local_rank < o->conf.nproc);
    for (int k = 0; k < 2; k++)
        stream_started(&o->ranks[local_rank].stream[k]);
}

void output_child_exited(struct output *o, unsigned local_rank)
{
    assert(local_rank < o->conf.nproc);
    for (int k = 0; k < 2; k++)
        stream_exited(&o->ranks[local_rank].stream[k]);
}

bool output_terminal_shared(const struct output *o)
{
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++) {
            const struct stream *s = &o->ranks[r].stream[k];
            if (s->state == STREAM_UNREAD && s->route.kind == ROUTE_INHERIT && o->terminal[s->which])
                return true;
        }
    return false;
}

void output_resized(struct output *o)
{
    for (unsigned r = 0; r < o->conf.nproc; r++)
        stream_resized(&o->ranks[r].stream[1]);
}

const char *output_log_dir(const struct output *o)
{
    return o->run_dir;
}

int output_take_events(struct output *o)
{
    int fd = o->events_fd;
    o->events_fd = -1;
    return fd;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void finished(struct output *o, const char *kept)
{
    if (o->finish == FINISH_DONE)
        return;
    o->finish = FINISH_DONE;
    loop_timer_at(o->finish_timer, EL_NEVER);
    o->finished(o->finished_ctx, kept);
}

void output_swept(struct output *o, bool removed)
{
    finished(o, removed ? NULL : o->temporary);
}

static void output_sweep(struct output *o)
{
    if (o->finish == FINISH_DONE)
        return;
    o->finish = FINISH_SWEEP;
    if (!o->temporary || sweep_job_start(o, NULL) < 0)
        finished(o, o->temporary);
}

static void output_on_flushed(void *ctx, size_t left)
{
    (void)left;
    output_sweep(ctx);
}

static void go_on_finishing(struct output *o)
{
    if (o->finish != FINISH_DRAIN || o->job || !output_drained(o))
        return;
    o->finish = FINISH_FLUSH;
    forget_attempt(o);
    if (o->files)
        sink_flush(o->files, EL_NEVER, output_on_flushed, o);
    else
        output_sweep(o);
}

static void on_finish_deadline(void *ctx)
{
    struct output *o = ctx;
    if (o->finish == FINISH_DRAIN)
        forget_attempt(o);
    size_t left = o->files ? sink_queued_bytes(o->files) : 0;
    if (left)
        el_log(EL_WARN, "%zu bytes could not be written to the log files in %s in time", left,
               o->run_dir ? o->run_dir : "?");
    finished(o, o->temporary);
}

void output_finish(struct output *o, el_usec deadline, void (*fn)(void *ctx, const char *kept), void *ctx)
{
    assert(o->finish == FINISH_NO && fn);
    o->finish = FINISH_DRAIN;
    o->finished = fn;
    o->finished_ctx = ctx;
    o->ready_due = false;
    loop_timer_at(o->finish_timer, deadline);
    output_soon(o);
}

void output_free(struct output *o)
{
    if (!o)
        return;
    attempt_job_abandon(o->job);
    sweep_job_abandon(o->sweep);
    tails_forget(o);
    if (o->ranks)
        forget_attempt(o);
    for (int k = 0; k < 2; k++) {
        if (o->watch_mouth[k].ctx)
            sink_unwatch(o->mouths[k].sink, &o->watch_mouth[k]);
        loop_timer_free(o->mouths[k].timer);
    }
    loop_timer_free(o->tick);
    loop_timer_free(o->parts);
    loop_timer_free(o->late);
    loop_timer_free(o->soon);
    loop_timer_free(o->finish_timer);
    sink_free(o->files);
    if (o->null_fd >= 0)
        close(o->null_fd);
    if (o->events_fd >= 0)
        close(o->events_fd);
    for (int k = 1; k <= 2; k++)
        filter_free(&o->filter[k]);
    el_buf_free(&o->text);
    free(o->run_dir);
    free(o->temporary);
    free(o->ranks);
    free(o);
}
