/* The store's map and session against a model that is too simple to be wrong: arrays, linear search, whole requests.
 * A few clients of both dialects send random requests, cut at random places; every answer is compared. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/session.h"
#include "util/rng.h"

enum { CLIENTS = 5, KEYS = 6, VALUE_MAX = 96, QUEUE_MAX = 64, LIST_MAX = 5, PENDING_MAX = 4096, OUT_MAX = 1 << 16 };

/* --- the model ---------------------------------------------------------------------------------------------------- */

struct text {
    size_t n;
    char v[VALUE_MAX];
};

/* What a client asks, before it is bytes. */
struct ask {
    enum wire_op op;
    int keys[LIST_MAX], keys_n;
    struct text a, b;
    int64_t number;
    size_t end; /* offset behind its last byte in the client's pending bytes */
};

struct model_client {
    bool legacy, ended;
    bool waiting;
    int missing[LIST_MAX], missing_n;
    uint64_t wait_order;
    char out[OUT_MAX];
    size_t out_n;
};

static struct {
    bool there[KEYS];
    struct text value[KEYS];
    struct text queue[KEYS][QUEUE_MAX];
    int queue_n[KEYS];
    struct model_client c[CLIENTS];
    uint64_t waits;
} model;

static void say(struct model_client *c, const void *bytes, size_t n)
{
    if (c->out_n + n > OUT_MAX)
        abort();
    memcpy(c->out + c->out_n, bytes, n);
    c->out_n += n;
}

static void say_u64(struct model_client *c, uint64_t x)
{
    say(c, &x, 8); /* the model runs on little endian machines */
}

static void say_text(struct model_client *c, const struct text *t)
{
    say_u64(c, t->n);
    say(c, t->v, t->n);
}

static void say_byte(struct model_client *c, char x)
{
    say(c, &x, 1);
}

/* The oldest client that misses this key, NULL if none. */
static struct model_client *oldest_waiter(int key)
{
    struct model_client *best = NULL;
    for (int i = 0; i < CLIENTS; i++)
        for (int j = 0; model.c[i].waiting && j < model.c[i].missing_n; j++)
            if (model.c[i].missing[j] == key && (!best || model.c[i].wait_order < best->wait_order))
                best = &model.c[i];
    return best;
}

/* One occurrence of the key has come for this client.  True: released. */
static bool fulfil(struct model_client *c, int key)
{
    int j = 0;
    while (c->missing[j] != key)
        j++;
    c->missing[j] = c->missing[--c->missing_n];
    if (c->missing_n)
        return false;
    c->waiting = false;
    say_byte(c, 0);
    return true;
}

static void wake_all(int key)
{
    for (struct model_client *c; (c = oldest_waiter(key));)
        fulfil(c, key);
}

static bool has(int key)
{
    return model.there[key] || model.queue_n[key];
}

static void put(int key, const struct text *t)
{
    model.there[key] = true;
    model.value[key] = *t;
}

static bool equal(const struct text *a, const struct text *b)
{
    return a->n == b->n && !memcmp(a->v, b->v, a->n);
}

/* False: the value is no number.  The values of this test are short, so strtoll of a copy is right. */
static bool add(int key, int64_t delta, int64_t *sum)
{
    char copy[VALUE_MAX + 1] = "0", *stop;
    if (model.there[key]) {
        memcpy(copy, model.value[key].v, model.value[key].n);
        copy[model.value[key].n] = 0;
    }
    errno = 0;
    long long old = strtoll(copy, &stop, 10);
    if (stop == copy || errno == ERANGE)
        return false;
    *sum = (int64_t)((uint64_t)old + (uint64_t)delta);
    struct text t;
    t.n = (size_t)snprintf(t.v, sizeof t.v, "%lld", (long long)*sum);
    put(key, &t);
    return true;
}

static void wait_for(struct model_client *c, const int *keys, int n)
{
    c->missing_n = 0;
    for (int i = 0; i < n; i++)
        c->missing[c->missing_n++] = keys[i];
    c->waiting = true;
    c->wait_order = model.waits++;
}

static void model_wait(struct model_client *c, const struct ask *a)
{
    int missing[LIST_MAX], n = 0;
    for (int i = 0; i < a->keys_n; i++)
        if (!has(a->keys[i]))
            missing[n++] = a->keys[i];
    if (n)
        wait_for(c, missing, n);
    else
        say_byte(c, 0);
}

static void model_compare_set(struct model_client *c, const struct ask *a)
{
    int k = a->keys[0];
    bool there = model.there[k];
    if (there ? equal(&model.value[k], &a->a) : a->a.n == 0) {
        put(k, &a->b);
        wake_all(k);
        say_text(c, &a->b);
    } else {
        say_text(c, there ? &model.value[k] : &a->a);
        if (there)
            wake_all(k);
    }
}

static void model_list(struct model_client *c, const struct ask *a)
{
    static const struct text empty;
    if (a->op == WIRE_MULTI_GET) {
        for (int i = 0; i < a->keys_n; i++)
            say_text(c, model.there[a->keys[i]] ? &model.value[a->keys[i]] : &empty);
        return;
    }
    bool ready = true;
    for (int i = 0; i < a->keys_n; i++)
        ready &= has(a->keys[i]);
    say_byte(c, !ready);
}

static void model_queue(struct model_client *c, const struct ask *a)
{
    int k = a->keys[0], *n = &model.queue_n[k];
    if (a->op == WIRE_QUEUE_LEN) {
        say_u64(c, (uint64_t)*n);
    } else if (a->op == WIRE_QUEUE_POP) {
        say_u64(c, (uint64_t)*n);
        if (!*n)
            return;
        say_text(c, &model.queue[k][0]);
        memmove(&model.queue[k][0], &model.queue[k][1], (size_t)(--*n) * sizeof(struct text));
    } else {
        model.queue[k][(*n)++] = a->a;
        struct model_client *w;
        while ((w = oldest_waiter(k)) && !fulfil(w, k))
            ;
    }
}

static void model_apply(struct model_client *c, const struct ask *a)
{
    int k = a->keys[0], count = 0;
    int64_t sum = 0;
    if (c->ended)
        return;
    if (c->waiting)
        c->waiting = false;
    switch ((int)a->op) {
    case WIRE_SET:
        put(k, &a->a);
        wake_all(k);
        break;
    case WIRE_APPEND: {
        struct text t = model.there[k] ? model.value[k] : (struct text){0};
        memcpy(t.v + t.n, a->a.v, a->a.n);
        t.n += a->a.n;
        put(k, &t);
        wake_all(k);
        break;
    }
    case WIRE_MULTI_SET:
        for (int i = 0; i < a->keys_n; i++) {
            put(a->keys[i], i % 2 ? &a->b : &a->a);
            wake_all(a->keys[i]);
        }
        break;
    case WIRE_GET: say_text(c, model.there[k] ? &model.value[k] : &(struct text){0}); break;
    case WIRE_ADD:
        if (!(c->ended = !add(k, a->number, &sum))) {
            say_u64(c, (uint64_t)sum);
            wake_all(k);
        }
        break;
    case WIRE_BARRIER:
        if ((c->ended = !add(k, 1, &sum)))
            break;
        if (sum >= a->number) {
            wake_all(k);
            say_byte(c, 0);
        } else {
            wait_for(c, &k, 1);
        }
        break;
    case WIRE_COMPARE_SET: model_compare_set(c, a); break;
    case WIRE_WAIT: model_wait(c, a); break;
    case WIRE_CHECK:
    case WIRE_MULTI_GET: model_list(c, a); break;
    case WIRE_CANCEL_WAIT: say_byte(c, 1); break;
    case WIRE_DELETE_KEY:
        say_u64(c, model.there[k]);
        model.there[k] = false;
        break;
    case WIRE_GETNUMKEYS:
        for (int i = 0; i < KEYS; i++)
            count += model.there[i];
        say_u64(c, (uint64_t)count);
        break;
    case WIRE_WATCH_KEY: say_byte(c, 3); break;
    default: model_queue(c, a);
    }
}

/* --- the real thing ----------------------------------------------------------------------------------------------- */

struct client {
    struct session s;
    struct el_buf out;
    struct el_buf bytes; /* encoded and not yet delivered */
    size_t delivered;
    struct ask asks[64];
    int asks_n, asks_done;
};

static struct client clients[CLIENTS];
static struct kv *kv;
static struct el_mem mem = EL_MEM_INIT(0);
static struct el_rng rng;
static uint64_t seed, requests;

static void fail(const char *what, int client)
{
    printf("sim_store: FAILED: %s, client %d; repeat: sim_store --seed %llu --seconds 1\n", what, client,
           (unsigned long long)seed);
    exit(1);
}

static int below(int n)
{
    return (int)el_rng_below(&rng, (uint64_t)n);
}

static struct kv_bytes key_name(int k)
{
    static const char *const names[KEYS] = {"", "a", "/k", "/default_pg/0//cpu//1", "init/", "key of sixteen!!"};
    return (struct kv_bytes){names[k], strlen(names[k])};
}

static struct kv_bytes bytes_of(const struct text *t)
{
    return (struct kv_bytes){t->v, t->n};
}

/* Numbers often, so that ADD mostly works; short, so that an APPENDed value stays inside the model's arrays. */
static void random_text(struct text *t)
{
    static const char *const texts[] = {"", "", "7", "-3", " 12ab", "text", "1"};
    const char *s = texts[below(below(8) ? 7 : 6)];
    t->n = strlen(s);
    memcpy(t->v, s, t->n);
}

static const enum wire_op modern_ops[] = {
    WIRE_SET,         WIRE_SET,        WIRE_GET,        WIRE_ADD,       WIRE_ADD,        WIRE_COMPARE_SET,
    WIRE_CHECK,       WIRE_WAIT,       WIRE_WAIT,       WIRE_WAIT,      WIRE_GETNUMKEYS, WIRE_DELETE_KEY,
    WIRE_DELETE_KEY,  WIRE_DELETE_KEY, WIRE_DELETE_KEY, WIRE_APPEND,    WIRE_MULTI_GET,  WIRE_MULTI_SET,
    WIRE_CANCEL_WAIT, WIRE_QUEUE_PUSH, WIRE_QUEUE_POP,  WIRE_QUEUE_POP, WIRE_QUEUE_LEN,  WIRE_BARRIER,
};
static const enum wire_op legacy_ops[] = {
    WIRE_SET,  WIRE_GET,  WIRE_ADD,        WIRE_COMPARE_SET, WIRE_CHECK,
    WIRE_WAIT, WIRE_WAIT, WIRE_GETNUMKEYS, WIRE_DELETE_KEY,  WIRE_DELETE_KEY,
};

static void encode(struct client *c, bool legacy, const struct ask *a)
{
    struct el_buf *b = &c->bytes;
    wire_put_op(b, legacy ? WIRE_LEGACY : WIRE_MODERN, a->op);
    switch ((int)a->op) {
    case WIRE_CHECK:
    case WIRE_WAIT:
    case WIRE_MULTI_GET:
    case WIRE_MULTI_SET:
        wire_put_u64(b, (uint64_t)a->keys_n);
        for (int i = 0; i < a->keys_n; i++) {
            wire_put_bytes(b, key_name(a->keys[i]));
            if (a->op == WIRE_MULTI_SET)
                wire_put_bytes(b, bytes_of(i % 2 ? &a->b : &a->a));
        }
        return;
    case WIRE_GETNUMKEYS:
    case WIRE_CANCEL_WAIT: return;
    default: wire_put_bytes(b, key_name(a->keys[0]));
    }
    if (a->op == WIRE_ADD || a->op == WIRE_BARRIER)
        wire_put_u64(b, (uint64_t)a->number);
    if (a->op == WIRE_SET || a->op == WIRE_APPEND || a->op == WIRE_QUEUE_PUSH || a->op == WIRE_COMPARE_SET)
        wire_put_bytes(b, bytes_of(&a->a));
    if (a->op == WIRE_COMPARE_SET)
        wire_put_bytes(b, bytes_of(&a->b));
}

static void open_client(int i)
{
    struct client *c = &clients[i];
    session_init(&c->s, kv, &mem);
    c->out.len = c->bytes.len = c->delivered = 0;
    c->asks_n = c->asks_done = 0;
    model.c[i] = (struct model_client){.legacy = below(4) == 0};
    if (!model.c[i].legacy) {
        wire_put_u8(&c->bytes, 0);
        wire_put_u32(&c->bytes, WIRE_MAGIC);
    }
}

static void ask_something(int i)
{
    struct client *c = &clients[i];
    bool legacy = model.c[i].legacy;
    if (c->asks_n == (int)(sizeof c->asks / sizeof *c->asks) || c->bytes.len > PENDING_MAX)
        return;
    struct ask *a = &c->asks[c->asks_n++];
    a->op = legacy ? legacy_ops[below((int)(sizeof legacy_ops / sizeof *legacy_ops))]
                   : modern_ops[below((int)(sizeof modern_ops / sizeof *modern_ops))];
    a->keys_n = below(LIST_MAX + 1);
    for (int k = 0; k < LIST_MAX; k++)
        a->keys[k] = below(KEYS);
    a->number = a->op == WIRE_BARRIER ? below(4) : below(7) - 3;
    if (a->op == WIRE_ADD && !below(50))
        a->number = below(2) ? INT64_MAX : INT64_MIN;
    random_text(&a->a);
    random_text(&a->b);
    /* Keep inside the model's arrays. */
    if (a->op == WIRE_APPEND)
        a->op = model.value[a->keys[0]].n > 40 ? WIRE_DELETE_KEY : WIRE_APPEND;
    if (a->op == WIRE_QUEUE_PUSH && model.queue_n[a->keys[0]] > QUEUE_MAX / 4)
        a->op = WIRE_QUEUE_POP;
    encode(c, legacy, a);
    a->end = c->bytes.len;
}

static void drain(void)
{
    for (struct kv_wait *w; (w = kv_woken(kv));) {
        struct client *c = (struct client *)((char *)session_of(w) - offsetof(struct client, s));
        wire_put_u8(&c->out, WIRE_STOP_WAITING);
    }
}

static void compare(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        struct model_client *m = &model.c[i];
        if (c->out.len != m->out_n || (m->out_n && memcmp(c->out.v, m->out, m->out_n)))
            fail("another answer than the model's", i);
        c->out.len = m->out_n = 0;
        if ((c->s.wait.state == KV_WAIT_PENDING) != (m->waiting && !m->ended))
            fail("waiting, or not, unlike the model", i);
    }
    size_t count = 0;
    for (int k = 0; k < KEYS; k++)
        count += model.there[k];
    if (count != kv_count(kv))
        fail("another number of keys", -1);
}

/* Delivers n bytes to one session; the model gets the requests that end in them. */
static void deliver(int i, size_t n)
{
    struct client *c = &clients[i];
    struct model_client *m = &model.c[i];
    size_t used = 0;
    enum session_step step = SESSION_MORE;
    for (size_t at = 0; at < n && step != SESSION_END; at += used) {
        step = session_feed(&c->s, c->bytes.v + c->delivered + at, n - at, &used, &c->out);
        drain();
        for (struct kv_bytes piece; step == SESSION_HELD;)
            if ((step = session_piece(&c->s, &c->out, &piece)) == SESSION_HELD && piece.n) {
                el_buf_put(&c->out, piece.v, piece.n);
                session_took(&c->s, piece.n);
            }
    }
    c->delivered += n;
    for (; c->asks_done < c->asks_n && c->asks[c->asks_done].end <= c->delivered; c->asks_done++, requests++)
        model_apply(m, &c->asks[c->asks_done]);
    if ((step == SESSION_END) != m->ended)
        fail(m->ended ? "should have ended" : session_end_text(&c->s), i);
    compare();
    if (m->ended) {
        session_close(&c->s);
        open_client(i);
    } else if (c->delivered == c->bytes.len) {
        c->bytes.len = c->delivered = 0;
        c->asks_n = c->asks_done = 0;
    }
}

static void one_sequence(void)
{
    uint8_t key[16];
    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)below(256);
    memset(&model, 0, sizeof model);
    kv = kv_new(&mem, key);
    for (int i = 0; i < CLIENTS; i++)
        open_client(i);
    for (int step = 0, steps = 20 + below(200); step < steps; step++) {
        int i = below(CLIENTS);
        struct client *c = &clients[i];
        if (!below(60)) {
            model.c[i].waiting = false;
            session_close(&c->s);
            open_client(i);
        }
        for (int n = 1 + below(3); n; n--)
            ask_something(i);
        size_t there = c->bytes.len - c->delivered;
        deliver(i, below(2) ? there : el_rng_below(&rng, there + 1));
        if (!below(16))
            kv_check(kv);
    }
    for (int i = 0; i < CLIENTS; i++)
        session_close(&clients[i].s);
    kv_check(kv);
    kv_free(kv);
    if (mem.used_bytes)
        fail("memory leaked", -1);
}

int main(int argc, char **argv)
{
    double seconds = 5;
    uint64_t sequences = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seconds"))
            seconds = atof(argv[i + 1]);
        else if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 0);
        else
            return fprintf(stderr, "usage: sim_store [--seconds N] [--seed S]\n"), 2;
    }
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    double took = 0;
    for (; took < seconds; seed++, sequences++) {
        rng.state = seed * 0x9e3779b97f4a7c15u;
        one_sequence();
        clock_gettime(CLOCK_MONOTONIC, &b);
        took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    }
    for (int i = 0; i < CLIENTS; i++) {
        el_buf_free(&clients[i].out);
        el_buf_free(&clients[i].bytes);
    }
    printf("sim_store: ok: %llu sequences, %llu requests equal to the model's, %.0f requests/s\n",
           (unsigned long long)sequences, (unsigned long long)requests, (double)requests / took);
    return 0;
}
