#include "store/session.h"

#include <assert.h>
#include <string.h>

#include "util/likely.h"

static const char *const end_texts[] = {
#define X(name, text) text,
    SESSION_END_LIST(X)
#undef X
};

void session_init(struct session *s, struct kv *kv, struct el_mem *mem)
{
    *s = (struct session){.kv = kv, .in = EL_BUF_INIT(mem, 0), .rank = -1};
}

void session_close(struct session *s)
{
    kv_wait_cancel(s->kv, &s->wait);
    el_buf_free(&s->in);
    reply_free(s->answer);
    s->answer = NULL;
    s->state = SESSION_ENDED;
}

struct session *session_of(struct kv_wait *w)
{
    return (struct session *)((char *)w - offsetof(struct session, wait));
}

bool session_greeted(const struct session *s)
{
    return s->state == SESSION_OPEN;
}

const char *session_end_text(const struct session *s)
{
    return s->end == SESSION_END_WIRE ? wire_error_text(s->wire.error) : end_texts[s->end];
}

static EL_COLD enum session_step session_end(struct session *s, enum session_end why)
{
    session_close(s);
    s->end = (uint8_t)why;
    return SESSION_END;
}

enum { RANK_MAX = 1 << 20 };

static bool session_contains(struct kv_bytes key, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= key.n; i++)
        if (!memcmp(key.v + i, part, n))
            return true;
    return false;
}

int32_t session_rank_of_key(struct kv_bytes key)
{
    size_t i = key.n;
    while (i && key.v[i - 1] >= '0' && key.v[i - 1] <= '9' && key.n - i < 8)
        i--;
    if (i == key.n || !i || !session_contains(key, "default_pg/0/"))
        return -1;
    bool named = i >= 6 && !memcmp(key.v + i - 6, "/rank_", 6);
    if (key.v[i - 1] != '/' && !named)
        return -1;
    int32_t rank = 0;
    for (; i < key.n; i++)
        rank = rank * 10 + (key.v[i] - '0');
    return rank < RANK_MAX ? rank : -1;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Each returns SESSION_END_NONE or why the connection must end. */

static enum session_end check_put(int r)
{
    return r ? SESSION_END_NO_MEMORY : SESSION_END_NONE;
}

static enum session_end session_end_of(enum kv_result r)
{
    switch (r) {
    case KV_DONE: return SESSION_END_NONE;
    case KV_NOT_NUMBER: return SESSION_END_NOT_NUMBER;
    case KV_NO_MEMORY: break;
    }
    return SESSION_END_NO_MEMORY;
}

/* The answer is as good as any that was made: session_feed() begins to send it. */
static enum session_end answer_by(struct session *s, struct reply *a)
{
    s->answer = a;
    return a ? SESSION_END_NONE : SESSION_END_NO_MEMORY;
}

static EL_COLD enum session_end hold_value(struct session *s, struct kv_bytes key)
{
    struct reply *a = reply_of_values(s->kv, s->in.mem, 1);
    bool held = a && kv_hold(s->kv, key, &a->hold[0]);
    answer_by(s, a);
    return held ? SESSION_END_NONE : SESSION_END_NO_MEMORY;
}

static enum session_end session_put_value(struct session *s, struct kv_bytes key, struct el_buf *out)
{
    struct kv_bytes value = {NULL, 0};
    kv_get(s->kv, key, &value); /* a key that is not there reads as empty */
    return EL_LIKELY(value.n <= REPLY_COPY_BYTES) ? check_put(wire_put_bytes(out, value)) : hold_value(s, key);
}

static size_t count_missing(const struct session *s, const struct wire_request *r)
{
    struct kv_bytes list = r->list;
    size_t missing = 0;
    for (size_t i = 0; i < r->count; i++)
        missing += !kv_has(s->kv, wire_next(&list));
    return missing;
}

static enum session_end do_wait(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    size_t missing = count_missing(s, r);
    if (!missing)
        return check_put(wire_put_u8(out, WIRE_STOP_WAITING));
    enum kv_result result = kv_wait_begin(s->kv, &s->wait, missing);
    struct kv_bytes list = r->list;
    for (size_t i = 0; i < r->count && result == KV_DONE; i++) {
        struct kv_bytes key = wire_next(&list);
        if (!kv_has(s->kv, key))
            result = kv_wait_for(s->kv, &s->wait, key);
    }
    return session_end_of(result);
}

static enum session_end do_barrier(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    bool open = false;
    enum kv_result result = kv_barrier(s->kv, r->key, r->number, &open);
    if (result != KV_DONE)
        return session_end_of(result);
    if (open)
        return check_put(wire_put_u8(out, WIRE_STOP_WAITING));
    result = kv_wait_begin(s->kv, &s->wait, 1);
    return session_end_of(result == KV_DONE ? kv_wait_for(s->kv, &s->wait, r->key) : result);
}

static enum session_end do_add(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    int64_t sum = 0;
    enum kv_result result = kv_add(s->kv, r->key, r->number, &sum);
    return result == KV_DONE ? check_put(wire_put_u64(out, (uint64_t)sum)) : session_end_of(result);
}

static enum session_end do_compare_set(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    struct kv_bytes reply;
    enum kv_result result = kv_compare_set(s->kv, r->key, r->value, r->second, &reply);
    if (result == KV_DONE && reply.n > REPLY_COPY_BYTES && kv_get(s->kv, r->key, &(struct kv_bytes){0}))
        return hold_value(s, r->key); /* the reply is what the key has now */
    return result == KV_DONE ? check_put(wire_put_bytes(out, reply)) : session_end_of(result);
}

/* All values are those of this instant, as they are in torch's server, whenever their bytes go out. */
static EL_COLD enum session_end hold_list(struct session *s, struct kv_bytes list, size_t count)
{
    struct reply *a = reply_of_values(s->kv, s->in.mem, count);
    bool held = a;
    for (size_t i = 0; i < count && held; i++)
        held = kv_hold(s->kv, wire_next(&list), &a->hold[i]);
    answer_by(s, a);
    return held ? SESSION_END_NONE : SESSION_END_NO_MEMORY;
}

static enum session_end do_multi_get(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    struct kv_bytes list = r->list;
    for (size_t i = 0; i < r->count; i++) {
        struct kv_bytes rest = list, value = {NULL, 0};
        kv_get(s->kv, wire_next(&list), &value);
        if (value.n > REPLY_COPY_BYTES || out->len >= SESSION_OUT_SOFT_BYTES)
            return hold_list(s, rest, r->count - i);
        if (wire_put_bytes(out, value))
            return SESSION_END_NO_MEMORY;
    }
    return SESSION_END_NONE;
}

static enum session_end do_multi_set(struct session *s, const struct wire_request *r)
{
    struct kv_bytes list = r->list;
    enum kv_result result = KV_DONE;
    for (size_t i = 0; i < r->count && result == KV_DONE; i++) {
        struct kv_bytes key = wire_next(&list);
        result = kv_set(s->kv, key, wire_next(&list));
    }
    return session_end_of(result);
}

static enum session_end do_delete(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    bool was = kv_delete(s->kv, r->key);
    s->toil += was ? kv_lists(s->kv) : 0;
    return check_put(wire_put_u64(out, was));
}

static enum session_end do_queue_pop(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    struct kv_bytes head;
    struct kv_hold taken;
    int full = wire_put_u64(out, kv_queue_length(s->kv, r->key));
    if (full || !kv_queue_head(s->kv, r->key, &head))
        return check_put(full);
    if (head.n > REPLY_COPY_BYTES) {
        struct reply *a = reply_of_values(s->kv, s->in.mem, 1);
        if (a)
            kv_queue_take(s->kv, r->key, &a->hold[0]);
        return answer_by(s, a);
    }
    if (wire_put_bytes(out, head))
        return SESSION_END_NO_MEMORY;
    if (kv_queue_take(s->kv, r->key, &taken))
        kv_release(s->kv, &taken);
    return SESSION_END_NONE;
}

static enum session_end execute(struct session *s, const struct wire_request *r, struct el_buf *out)
{
    /* Clients of torch 2.0 and older give up a wait without a word; whatever they ask next means that. */
    if (s->wait.state != KV_WAIT_NONE)
        kv_wait_cancel(s->kv, &s->wait);
    switch (r->op) {
    case WIRE_SET:
        if (s->rank < 0)
            s->rank = session_rank_of_key(r->key);
        return session_end_of(kv_set(s->kv, r->key, r->value));
    case WIRE_COMPARE_SET: return do_compare_set(s, r, out);
    case WIRE_GET: return session_put_value(s, r->key, out);
    case WIRE_ADD: return do_add(s, r, out);
    case WIRE_CHECK: return check_put(wire_put_u8(out, count_missing(s, r) ? WIRE_NOT_READY : WIRE_READY));
    case WIRE_WAIT: return do_wait(s, r, out);
    case WIRE_GETNUMKEYS: return check_put(wire_put_u64(out, kv_count(s->kv)));
    case WIRE_DELETE_KEY: return do_delete(s, r, out);
    case WIRE_APPEND: return session_end_of(kv_append(s->kv, r->key, r->value));
    case WIRE_MULTI_GET: return do_multi_get(s, r, out);
    case WIRE_MULTI_SET: return do_multi_set(s, r);
    case WIRE_CANCEL_WAIT: return check_put(wire_put_u8(out, WIRE_WAIT_CANCELED));
    case WIRE_PING: s->pid = r->word; return check_put(wire_put_u32(out, r->word));
    case WIRE_QUEUE_PUSH: return session_end_of(kv_queue_push(s->kv, r->key, r->value));
    case WIRE_QUEUE_POP: return do_queue_pop(s, r, out);
    case WIRE_QUEUE_LEN: return check_put(wire_put_u64(out, kv_queue_length(s->kv, r->key)));
    case WIRE_LIST_KEYS: return answer_by(s, reply_of_keys(s->kv, s->in.mem));
    case WIRE_BARRIER: return do_barrier(s, r, out);
    case WIRE_WATCH_KEY: return check_put(wire_put_u8(out, WIRE_REGISTERED));
    case WIRE_VALIDATE:
    case WIRE_OPS: break;
    }
    return SESSION_END_HELLO_AGAIN;
}

/* --- first bytes -------------------------------------------------------------------------------------------------- */

/* What begins with these bytes is that, once `n` of them are there. */
static const struct {
    const char *bytes;
    uint8_t n;
    enum session_end end;
} strangers[] = {
    {"ELR1", 4, SESSION_END_CONTROL}, {"GET ", 4, SESSION_END_HTTP},  {"POST", 4, SESSION_END_HTTP},
    {"PUT ", 4, SESSION_END_HTTP},    {"HEAD", 4, SESSION_END_HTTP},  {"OPTIO", 5, SESSION_END_HTTP},
    {"DELET", 5, SESSION_END_HTTP},   {"PRI *", 5, SESSION_END_HTTP}, {"\x16\x03", 2, SESSION_END_TLS},
};

/* What is not c10d: which of the strangers, or NONE while more bytes could still say. */
static enum session_end name_stranger(const struct session *s)
{
    bool possible = false;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        size_t n = strangers[i].n < s->hello_n ? strangers[i].n : s->hello_n;
        if (memcmp(s->hello, strangers[i].bytes, n))
            continue;
        if (s->hello_n >= strangers[i].n)
            return strangers[i].end;
        possible = true;
    }
    return possible ? SESSION_END_NONE : SESSION_END_STRANGER;
}

enum { LEGACY_CODE_MAX = 11 }; /* with those of torch 2.1, which deserve their own text */

/* Takes the first bytes one by one until they say what this is. */
static EL_COLD enum session_step session_greet(struct session *s, const char *bytes, size_t n, size_t *used)
{
    static const char magic[SESSION_HELLO_MAX] = {0, '\xce', '\xf7', '\x85', '\x3c'};
    while (*used < n) {
        s->hello[s->hello_n++] = bytes[(*used)++];
        if (!memcmp(s->hello, magic, s->hello_n)) {
            if (s->hello_n < sizeof magic)
                continue;
            if (!s->kv)
                return session_end(s, SESSION_END_REFUSED);
            s->wire.dialect = WIRE_MODERN;
            s->state = SESSION_OPEN;
            return SESSION_MORE;
        }
        if ((uint8_t)s->hello[0] <= LEGACY_CODE_MAX) {
            if (!s->kv)
                return session_end(s, SESSION_END_REFUSED);
            s->wire.dialect = WIRE_LEGACY;
            s->state = SESSION_LEGACY_NEW;
            /* A short key length may begin like the magic: these bytes are already the first request. */
            return el_buf_put(&s->in, s->hello, s->hello_n) ? session_end(s, SESSION_END_NO_MEMORY) : SESSION_MORE;
        }
        enum session_end why = name_stranger(s);
        if (why != SESSION_END_NONE)
            return session_end(s, why);
    }
    return SESSION_MORE;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

enum { ROOM_MIN_BYTES = 32 << 10 }; /* below that a copy costs less than a call of recv() more */

/* The next request out of bytes[0…n), which may be its beginning only.  *length: how much of it was used up. */
static inline enum session_step one_request(struct session *s, const char *bytes, size_t n, size_t *length,
                                            struct el_buf *out)
{
    struct wire_request r;
    *length = 0;
    enum wire_scan scan = wire_scan(&s->wire, bytes, n, &r, length);
    if (EL_UNLIKELY(scan != WIRE_WHOLE))
        return scan == WIRE_BAD ? session_end(s, SESSION_END_WIRE) : SESSION_MORE;
    s->state = SESSION_OPEN; /* if it was SESSION_LEGACY_NEW */
    enum session_end why = execute(s, &r, out);
    if (EL_UNLIKELY(why != SESSION_END_NONE))
        return session_end(s, why);
    return EL_LIKELY(!s->answer) ? SESSION_MORE : SESSION_HELD;
}

/* Room for n bytes.  A long value doubles it as it comes; what was only announced gets none. */
static bool session_make_room(struct session *s, size_t n, size_t lacks)
{
    size_t more = s->in.len < lacks ? s->in.len : lacks;
    return s->in.cap - s->in.len >= n || el_buf_reserve(&s->in, more > n ? more : n);
}

char *session_room(struct session *s, size_t *n)
{
    size_t lacks = s->in.len && s->state == SESSION_OPEN ? s->wire.need - s->in.len : 0;
    s->busy = true;
    bool room = lacks >= ROOM_MIN_BYTES && session_make_room(s, ROOM_MIN_BYTES, lacks);
    s->busy = false;
    if (!room)
        return NULL;
    size_t there = s->in.cap - s->in.len;
    *n = there < lacks ? there : lacks;
    return s->in.v + s->in.len;
}

enum session_step session_piece(struct session *s, struct el_buf *out, struct kv_bytes *piece)
{
    s->busy = true;
    enum reply_step step = reply_step(s->answer, out, piece);
    s->busy = false;
    switch (step) {
    case REPLY_MORE: return SESSION_HELD;
    case REPLY_NO_MEMORY: return session_end(s, SESSION_END_NO_MEMORY);
    case REPLY_OVER: break;
    }
    reply_free(s->answer);
    s->answer = NULL;
    return SESSION_MORE;
}

void session_took(struct session *s, size_t n)
{
    reply_took(s->answer, n);
}

size_t session_costs(const struct session *s)
{
    return s->in.cap + (s->answer ? reply_costs(s->answer) : 0);
}

bool session_busy(const struct session *s)
{
    return s->busy || (s->answer && s->answer->lists && kv_is_telling(s->kv));
}

bool session_shed(struct session *s)
{
    if (session_busy(s))
        return false;
    el_buf_free(&s->in);
    reply_free(s->answer);
    s->answer = NULL;
    return true;
}

/* Completes the request whose beginning lies in s->in, which is empty then: only as many bytes are moved there as it
 * needs. */
static EL_COLD enum session_step continue_request(struct session *s, const char *bytes, size_t n, size_t *used,
                                                  struct el_buf *out)
{
    for (size_t length = 0;;) {
        enum session_step step = one_request(s, s->in.v, s->in.len, &length, out);
        if (step == SESSION_END)
            return step;
        if (length) {
            assert(length == s->in.len);
            el_buf_free(&s->in);
            return step;
        }
        assert(s->wire.need > s->in.len);
        size_t lacks = s->wire.need - s->in.len, take = n - *used < lacks ? n - *used : lacks;
        if (!take)
            return SESSION_MORE;
        if (s->in.v + s->in.len == bytes + *used)
            s->in.len += take; /* read into session_room() */
        else if (!session_make_room(s, take, lacks) || el_buf_put(&s->in, bytes + *used, take))
            return session_end(s, SESSION_END_NO_MEMORY);
        *used += take;
    }
}

/* The rest of the bytes is the beginning of a request. */
static EL_COLD enum session_step session_keep(struct session *s, const char *bytes, size_t n, size_t *used)
{
    if (el_buf_put(&s->in, bytes + *used, n - *used))
        return session_end(s, SESSION_END_NO_MEMORY);
    *used = n;
    return SESSION_MORE;
}

enum session_step session_feed(struct session *s, const char *bytes, size_t n, size_t *used, struct el_buf *out)
{
    assert(s->state != SESSION_ENDED && !s->answer);
    *used = 0;
    s->toil = 0;
    enum session_step step;
    if (EL_UNLIKELY(s->state == SESSION_NEW) && (step = session_greet(s, bytes, n, used)) != SESSION_MORE)
        return step;
    bool answered = false;
    if (EL_UNLIKELY(s->in.len)) {
        s->busy = true;
        step = continue_request(s, bytes, n, used, out);
        s->busy = false;
        if (step != SESSION_MORE || s->in.len)
            return step;
        answered = true;
    }
    size_t at = *used;
    for (size_t length; EL_LIKELY(at < n); at += length, answered = true) {
        if (EL_UNLIKELY(answered && (out->len >= SESSION_OUT_SOFT_BYTES || s->toil >= SESSION_TOIL_SOFT))) {
            *used = at;
            return SESSION_FLUSH;
        }
        step = one_request(s, bytes + at, n - at, &length, out);
        if (EL_UNLIKELY(step != SESSION_MORE || !length)) {
            *used = at + length;
            return step == SESSION_MORE ? session_keep(s, bytes, n, used) : step;
        }
    }
    *used = at;
    return SESSION_MORE;
}
