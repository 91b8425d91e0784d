#include "output/attempt_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/logtree.h"

/* Everything that attempt_work() needs is a copy: the output may be gone when it runs. */
struct attempt_job {
    struct pool_job job;
    struct output *o; /* the loop's thread only; NULL: nobody waits */
    char *base, *tmpdir, *run_id;
    bool has_run; /* run_dir was given: the tree's root is there */
    uint64_t chance;
    char attempt[LOGTREE_NAME_MAX];
    unsigned nproc;
    bool filter[3];
    bool *wanted; /* [2 * nproc]: has a log file */

    struct el_err e;
    char *run_dir, *temporary;
    char dir[PATH_MAX];
    int *file_fd; /* [2 * nproc] */
    int filter_fd[3], events_fd;
};

static void attempt_close_all(struct attempt_job *j)
{
    for (unsigned i = 0; j->file_fd && i < 2 * j->nproc; i++)
        if (j->file_fd[i] >= 0)
            close(j->file_fd[i]);
    for (int k = 1; k <= 2; k++)
        if (j->filter_fd[k] >= 0)
            close(j->filter_fd[k]);
    if (j->events_fd >= 0)
        close(j->events_fd);
}

static void job_free(struct attempt_job *j)
{
    free(j->base);
    free(j->tmpdir);
    free(j->run_id);
    free(j->wanted);
    free(j->run_dir);
    free(j->temporary);
    free(j->file_fd);
    free(j);
}

static int attempt_open_log(const char *dir, const char *name, struct el_err *e)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return el_fail(e, EL_EXIT_CANTCREAT, "log directory %s: the name is too long", dir);
    return logtree_open(path, e);
}

static int open_logs(struct attempt_job *j)
{
    static const char *const name[] = {"stdout.log", "stderr.log"};
    static const char *const filtered[] = {NULL, "filtered_stdout.log", "filtered_stderr.log"};
    for (unsigned i = 0; i < 2 * j->nproc; i++) {
        char file[32];
        snprintf(file, sizeof file, "%u/%s", i / 2, name[i % 2]);
        if (j->wanted[i] && (j->file_fd[i] = attempt_open_log(j->dir, file, &j->e)) < 0)
            return -1;
    }
    for (int k = 1; k <= 2; k++)
        if (j->filter[k] && (j->filter_fd[k] = attempt_open_log(j->dir, filtered[k], &j->e)) < 0)
            return -1;
    return 0;
}

static void attempt_work(void *ctx)
{
    struct attempt_job *j = ctx;
    if (!j->has_run &&
        logtree_make_run(j->base, j->tmpdir, j->run_id, j->chance, &j->run_dir, &j->temporary, &j->e) < 0)
        return;
    if (!j->has_run && j->base)
        j->events_fd = attempt_open_log(j->run_dir, LOGTREE_EVENTS, NULL); /* the job can do without */
    if (logtree_make_attempt(j->run_dir, j->attempt, j->nproc, &j->e) < 0)
        return;
    snprintf(j->dir, sizeof j->dir, "%s/%s", j->run_dir, j->attempt);
    (void)open_logs(j);
}

static void attempt_done(void *ctx)
{
    struct attempt_job *j = ctx;
    if (j->e.status || !j->o) {
        attempt_close_all(j);
        for (unsigned i = 0; i < 2 * j->nproc; i++)
            j->file_fd[i] = -1;
        j->filter_fd[1] = j->filter_fd[2] = j->events_fd = -1;
    }
    if (j->o) {
        j->o->job = NULL;
        struct attempt_result r = {
            .e = j->e, .file_fd = j->file_fd, .filter_fd = j->filter_fd, .dir = j->dir, .events_fd = j->events_fd};
        if (!j->has_run) {
            r.run_dir = j->run_dir;
            r.temporary = j->temporary;
            j->run_dir = j->temporary = NULL;
        }
        output_attempt_made(j->o, &r);
    }
    job_free(j);
}

static char *attempt_copy(const char *s, bool *failed)
{
    char *c = s ? strdup(s) : NULL;
    *failed |= s && !c;
    return c;
}

static bool has_log(const struct stream *s)
{
    return s->route.kind == ROUTE_FILE || s->route.to_file;
}

int attempt_job_start(struct output *o, const char *attempt, struct el_err *e)
{
    const struct output_options *options = o->conf.options;
    struct attempt_job *j = calloc(1, sizeof *j);
    if (!j)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    bool failed = false;
    unsigned n = 2 * o->conf.nproc;
    j->job = (struct pool_job){.work = attempt_work, .done = attempt_done, .ctx = j};
    j->o = o;
    j->base = attempt_copy(options->log_dir, &failed);
    j->tmpdir = attempt_copy(o->conf.tmpdir, &failed);
    j->run_id = attempt_copy(o->conf.run_id, &failed);
    j->run_dir = attempt_copy(o->run_dir, &failed);
    j->has_run = o->run_dir != NULL;
    j->chance = o->conf.seed;
    snprintf(j->attempt, sizeof j->attempt, "%s", attempt);
    j->nproc = o->conf.nproc;
    j->filter_fd[1] = j->filter_fd[2] = j->events_fd = -1;
    j->wanted = calloc(n, sizeof *j->wanted);
    j->file_fd = calloc(n, sizeof *j->file_fd);
    failed |= !j->wanted || !j->file_fd;
    for (unsigned i = 0; !failed && i < n; i++) {
        const struct stream *s = &o->ranks[i / 2].stream[i % 2];
        j->wanted[i] = has_log(s);
        j->file_fd[i] = -1;
        j->filter[s->which] |= s->route.to_filter;
    }
    if (failed) {
        job_free(j);
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    if (pool_run(o->pool, &j->job, e) < 0) {
        job_free(j);
        return -1;
    }
    o->job = j;
    return 0;
}

void attempt_job_abandon(struct attempt_job *job)
{
    if (job)
        job->o = NULL;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

struct sweep_job {
    struct pool_job job;
    struct output *o;
    char *temporary;
    bool removed;
};

static void sweep_work(void *ctx)
{
    struct sweep_job *j = ctx;
    j->removed = logtree_remove_empty(j->temporary);
}

static void sweep_done(void *ctx)
{
    struct sweep_job *j = ctx;
    if (j->o) {
        j->o->sweep = NULL;
        output_swept(j->o, j->removed);
    }
    free(j->temporary);
    free(j);
}

int sweep_job_start(struct output *o, struct el_err *e)
{
    struct sweep_job *j = calloc(1, sizeof *j);
    char *temporary = strdup(o->temporary);
    if (!j || !temporary) {
        free(j);
        free(temporary);
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    *j = (struct sweep_job){.job = {.work = sweep_work, .done = sweep_done, .ctx = j}, .o = o, .temporary = temporary};
    if (pool_run(o->pool, &j->job, e) < 0) {
        free(temporary);
        free(j);
        return -1;
    }
    o->sweep = j;
    return 0;
}

void sweep_job_abandon(struct sweep_job *job)
{
    if (job)
        job->o = NULL;
}
