/* The last bytes of a worker's streams, from the ring or from the log file. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/logtree.h"
#include "output/output_private.h"

#define FILE_LOOK_BYTES ((size_t)1 << 20)

/* One request.  tail_work() touches nothing but `one` and its bytes; the answer may have been given before it is done.
 */
struct tails {
    struct pool_job job;
    struct output *o; /* NULL: the output is gone */
    struct tails *next;
    unsigned rank;
    bool running, answered;
    struct loop_timer *timer;
    output_tails_fn *fn;
    void *ctx;
    struct tail_one {
        struct output_tail tail;
        bool from_file;
        long got;
        uint64_t total;
        char path[PATH_MAX];
        char bytes[HEAD_JOIN_BYTES];
    } one[2];
};

const char *output_tail_text(enum output_tail_from from)
{
    static const char *const text[] = {
#define X(name, words) [OUTPUT_TAIL_##name] = words,
        OUTPUT_TAIL_LIST(X)
#undef X
    };
    assert((size_t)from < sizeof text / sizeof text[0]);
    return text[from];
}

static void unlink_tails(struct tails *t)
{
    if (!t->o)
        return;
    for (struct tails **at = &t->o->tails; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    t->o = NULL;
}

static void tail_answer(struct tails *t)
{
    t->answered = true;
    loop_timer_free(t->timer);
    t->timer = NULL;
    if (t->o)
        t->fn(t->ctx, t->rank, &t->one[0].tail, &t->one[1].tail);
    unlink_tails(t);
    if (!t->running)
        free(t);
}

/* The last bytes, and in front of them the beginning of a traceback whose message fills them. */
static void tail_read_file(struct tail_one *one)
{
    one->got = logtree_tail(one->path, one->bytes, RING_BYTES, &one->total);
    char *text = one->got == RING_BYTES ? malloc(FILE_LOOK_BYTES) : NULL;
    long got = text ? logtree_tail(one->path, text, FILE_LOOK_BYTES, &one->total) : -1;
    long before = got - (long)RING_BYTES, at = before > 0 ? head_find(text, (size_t)before) : -1;
    if (at >= 0) {
        size_t n = (size_t)(before - at) < HEAD_BYTES ? (size_t)(before - at) : HEAD_BYTES;
        size_t gap = (size_t)(before - at) - n;
        memcpy(one->bytes, text + at, n);
        if (gap)
            n += (size_t)snprintf(one->bytes + n, HEAD_NOTE_BYTES, "\n\t[... %zu bytes left out ...]\n\t", gap);
        memcpy(one->bytes + n, text + before, RING_BYTES);
        one->got = (long)(n + RING_BYTES);
    }
    free(text);
}

static void tail_work(void *ctx)
{
    struct tails *t = ctx;
    for (int k = 0; k < 2; k++)
        if (t->one[k].from_file)
            tail_read_file(&t->one[k]);
}

static void tail_done(void *ctx)
{
    struct tails *t = ctx;
    t->running = false;
    if (t->answered) {
        free(t);
        return;
    }
    for (int k = 0; k < 2; k++) {
        struct tail_one *one = &t->one[k];
        if (!one->from_file)
            continue;
        one->tail.from = one->got < 0 ? OUTPUT_TAIL_UNREADABLE : OUTPUT_TAIL_FILE;
        one->tail.len = one->got > 0 ? (size_t)one->got : 0;
        one->tail.bytes = one->tail.len ? one->bytes : NULL;
        one->tail.total_bytes = one->got < 0 ? 0 : one->total;
    }
    tail_answer(t);
}

static void tail_on_timer(void *ctx)
{
    tail_answer(ctx);
}

static void tail_look(struct tail_one *one, const struct output *o, const struct stream *s)
{
    const char *dir = o->ranks[s->rank].dir;
    bool logged = dir && (s->route.to_file || s->route.kind == ROUTE_FILE);
    if (logged && snprintf(one->path, sizeof one->path, "%s/%s", dir, s->which == 1 ? "stdout.log" : "stderr.log") > 0)
        one->tail.path = one->path;
    switch (s->route.kind) {
    case ROUTE_INHERIT: one->tail.from = o->terminal[s->which] ? OUTPUT_TAIL_TERMINAL : OUTPUT_TAIL_INHERITED; break;
    case ROUTE_NULL: one->tail.from = OUTPUT_TAIL_NULL_DEVICE; break;
    case ROUTE_FILE:
        one->from_file = logged;
        one->tail.from = logged ? OUTPUT_TAIL_TIMEOUT : OUTPUT_TAIL_UNREADABLE; /* until tail_done() knows better */
        break;
    case ROUTE_PIPE:
    case ROUTE_PTY:
        one->tail.from = OUTPUT_TAIL_READ;
        one->tail.len = head_join(&s->head, &s->ring, one->bytes);
        one->tail.bytes = one->tail.len ? one->bytes : NULL;
        one->tail.total_bytes = s->ring.total;
        one->tail.at = s->said_at;
        break;
    }
}

bool output_on_console(const struct output *o, unsigned local_rank, int which)
{
    return o->ranks[local_rank].stream[which - 1].route.to_console;
}

enum output_tail_from output_kept(const struct output *o, unsigned local_rank, int which, char *path, size_t size,
                                  char bytes[OUTPUT_KEPT_BYTES], size_t *len)
{
    static_assert(OUTPUT_KEPT_BYTES == RING_BYTES, "the whole ring");
    assert(local_rank < o->conf.nproc && (which == 1 || which == 2));
    const struct rank *r = &o->ranks[local_rank];
    const struct stream *s = &r->stream[which - 1];
    bool logged = r->dir && (s->route.to_file || s->route.kind == ROUTE_FILE);
    int n = logged ? snprintf(path, size, "%s/%s", r->dir, which == 1 ? "stdout.log" : "stderr.log") : 0;
    if (n <= 0 || (size_t)n >= size)
        *path = 0;
    *len = 0;
    switch (s->route.kind) {
    case ROUTE_INHERIT: return o->terminal[which] ? OUTPUT_TAIL_TERMINAL : OUTPUT_TAIL_INHERITED;
    case ROUTE_NULL: return OUTPUT_TAIL_NULL_DEVICE;
    case ROUTE_FILE: return *path ? OUTPUT_TAIL_FILE : OUTPUT_TAIL_UNREADABLE;
    case ROUTE_PIPE:
    case ROUTE_PTY: break;
    }
    *len = bytes ? ring_copy(&s->ring, bytes) : 0;
    return OUTPUT_TAIL_READ;
}

uint64_t output_read_bytes(const struct output *o, unsigned local_rank, bool *held)
{
    const struct stream *s = o->ranks[local_rank].stream;
    *held = s[0].state == STREAM_BLOCKED || s[1].state == STREAM_BLOCKED;
    return s[0].ring.total + s[1].ring.total;
}

el_usec output_said_at(const struct output *o, unsigned local_rank, int which)
{
    assert(local_rank < o->conf.nproc && (which == 1 || which == 2));
    return o->ranks[local_rank].stream[which - 1].said_at;
}

bool output_settled(const struct output *o)
{
    return !o->files || !sink_queued_bytes(o->files);
}

int output_tails_collect(struct output *o, unsigned local_rank, el_usec deadline, output_tails_fn *fn, void *ctx)
{
    assert(local_rank < o->conf.nproc);
    struct tails *t = calloc(1, sizeof *t);
    if (!t || !(t->timer = loop_timer_new(o->loop, tail_on_timer, t))) {
        free(t);
        return -1;
    }
    t->o = o;
    t->rank = local_rank;
    t->fn = fn;
    t->ctx = ctx;
    t->job = (struct pool_job){.work = tail_work, .done = tail_done, .ctx = t};
    t->next = o->tails;
    o->tails = t;
    for (int k = 0; k < 2; k++)
        tail_look(&t->one[k], o, &o->ranks[local_rank].stream[k]);
    bool files = t->one[0].from_file || t->one[1].from_file;
    t->running = files && pool_run(o->pool, &t->job, NULL) == 0;
    for (int k = 0; files && !t->running && k < 2; k++)
        if (t->one[k].from_file)
            t->one[k].tail.from = OUTPUT_TAIL_UNREADABLE;
    loop_timer_at(t->timer, t->running ? deadline : loop_clock());
    return 0;
}

void tails_forget(struct output *o)
{
    while (o->tails) {
        struct tails *t = o->tails;
        unlink_tails(t);
        tail_answer(t);
    }
}
