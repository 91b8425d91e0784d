#include "failure/errfile.h"

#include <assert.h>
#include <string.h>

/* What may come next. */
enum mode { VALUE, OBJECT_FIRST, OBJECT_KEY, COLON, AFTER, ARRAY_FIRST, STRING, ESCAPE, HEX, LITERAL, DONE, BROKEN };
/* Where a value goes. */
enum errfile_field { FIELD_NONE, FIELD_MESSAGE, FIELD_STACK, FIELD_TIME };
/* Keys that have a meaning. */
enum errfile_key { KEY_OTHER, KEY_MESSAGE, KEY_EXTRA, KEY_STACK, KEY_TIME };

#define TIME_MAX_SEC (INT64_C(1) << 36) /* the year 4147: microseconds of it fit 64 bits */

void errfile_init(struct errfile *e)
{
    memset(e, 0, sizeof *e);
    e->state = ERRFILE_ABSENT;
    e->timestamp_sec = -1;
    e->m.mode = VALUE;
}

static enum errfile_key errfile_key_of(const struct errfile *e)
{
    static const char *const names[] = {
        [KEY_MESSAGE] = "message", [KEY_EXTRA] = "extraInfo", [KEY_STACK] = "py_callstack", [KEY_TIME] = "timestamp"};
    for (unsigned i = KEY_MESSAGE; i <= KEY_TIME; i++)
        if (strlen(names[i]) == e->m.key_len && memcmp(names[i], e->m.key, e->m.key_len) == 0)
            return (enum errfile_key)i;
    return KEY_OTHER;
}

static enum errfile_field field_here(const struct errfile *e)
{
    const uint8_t *at = e->m.path;
    switch (e->m.depth) {
    case 1: return at[1] == KEY_MESSAGE ? FIELD_MESSAGE : at[1] == KEY_TIME ? FIELD_TIME : FIELD_NONE;
    case 2: return at[1] == KEY_MESSAGE && at[2] == KEY_MESSAGE ? FIELD_MESSAGE : FIELD_NONE;
    case 3:
        if (at[1] != KEY_MESSAGE || at[2] != KEY_EXTRA)
            return FIELD_NONE;
        return at[3] == KEY_STACK ? FIELD_STACK : at[3] == KEY_TIME ? FIELD_TIME : FIELD_NONE;
    default: return FIELD_NONE;
    }
}

static void clip_put(struct errfile_clip *c, char byte)
{
    if (c->total < ERRFILE_STACK_HEAD)
        c->head[c->total] = byte;
    else
        c->tail[(c->total - ERRFILE_STACK_HEAD) % ERRFILE_STACK_TAIL] = byte;
    c->total++;
}

/* One byte of the decoded string. */
static void errfile_emit(struct errfile *e, char byte)
{
    if (e->m.in_key) {
        if (e->m.key_len < ERRFILE_KEY_MAX)
            e->m.key[e->m.key_len++] = byte;
        return;
    }
    if (!byte)
        return;
    if (e->m.field == FIELD_MESSAGE) {
        if (e->m.message_len < ERRFILE_MESSAGE_MAX - 1)
            e->message[e->m.message_len++] = byte;
        else
            e->message_cut = true;
    } else if (e->m.field == FIELD_STACK) {
        clip_put(&e->stack, byte);
    } else if (e->m.field == FIELD_TIME && e->m.literal_len < sizeof e->m.literal) {
        e->m.literal[e->m.literal_len++] = byte;
    }
}

static void emit_codepoint(struct errfile *e, uint32_t c)
{
    assert(c <= 0x10ffff);
    if (c < 0x80) {
        errfile_emit(e, (char)c);
    } else if (c < 0x800) {
        errfile_emit(e, (char)(0xc0 | c >> 6));
        errfile_emit(e, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            errfile_emit(e, (char)(0xe0 | c >> 12));
        } else {
            errfile_emit(e, (char)(0xf0 | c >> 18));
            errfile_emit(e, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        errfile_emit(e, (char)(0x80 | (c >> 6 & 0x3f)));
        errfile_emit(e, (char)(0x80 | (c & 0x3f)));
    }
}

/* A first surrogate whose second did not come: Python writes such for bytes that were no UTF-8. */
static void flush_high(struct errfile *e)
{
    if (e->m.high)
        emit_codepoint(e, 0xfffd);
    e->m.high = 0;
}

/* The four digits of \uXXXX are in m.hex. */
static void take_hex(struct errfile *e)
{
    uint32_t c = e->m.hex;
    if (c >= 0xdc00 && c <= 0xdfff && e->m.high) {
        emit_codepoint(e, 0x10000 + ((e->m.high - 0xd800) << 10) + (c - 0xdc00));
        e->m.high = 0;
        return;
    }
    flush_high(e);
    if (c >= 0xd800 && c <= 0xdbff)
        e->m.high = c;
    else
        emit_codepoint(e, c >= 0xdc00 && c <= 0xdfff ? 0xfffd : c);
}

/* Whole seconds at the start of the literal; what follows (a fraction) does not matter. */
static void take_time(struct errfile *e)
{
    int64_t sec = 0;
    unsigned i = 0;
    for (; i < e->m.literal_len && e->m.literal[i] >= '0' && e->m.literal[i] <= '9' && sec <= TIME_MAX_SEC; i++)
        sec = sec * 10 + (e->m.literal[i] - '0');
    e->timestamp_sec = i && sec <= TIME_MAX_SEC ? sec : -1;
}

static void string_begin(struct errfile *e, bool key)
{
    e->m.mode = STRING;
    e->m.in_key = key;
    e->m.high = 0;
    if (key) {
        e->m.key_len = 0;
        return;
    }
    /* The last of two equal keys wins, as in Python. */
    e->m.field = (uint8_t)field_here(e);
    if (e->m.field == FIELD_MESSAGE) {
        e->m.message_len = 0;
        e->message_cut = false;
        e->m.has_message = true;
        if (e->m.depth == 1)
            e->has_object = false;
    } else if (e->m.field == FIELD_STACK) {
        e->stack.total = 0;
    } else if (e->m.field == FIELD_TIME) {
        e->m.literal_len = 0;
    }
}

static void errfile_string_end(struct errfile *e)
{
    flush_high(e);
    e->m.mode = e->m.depth ? AFTER : DONE;
    if (e->m.in_key) {
        e->m.mode = COLON;
        if (e->m.depth <= 3)
            e->m.path[e->m.depth] = (uint8_t)errfile_key_of(e);
    } else if (e->m.field == FIELD_TIME) {
        take_time(e);
    }
    e->message[e->m.message_len] = 0;
    e->m.in_key = false;
    e->m.field = FIELD_NONE;
}

static void container_begin(struct errfile *e, bool object)
{
    if (e->m.depth == ERRFILE_DEPTH_MAX) {
        e->m.mode = BROKEN;
        return;
    }
    e->m.is_object[++e->m.depth] = object;
    if (e->m.depth <= 3)
        e->m.path[e->m.depth] = KEY_OTHER;
    e->m.mode = object ? OBJECT_FIRST : ARRAY_FIRST;
}

static void container_end(struct errfile *e, bool object)
{
    if (!e->m.depth || e->m.is_object[e->m.depth] != object) {
        e->m.mode = BROKEN;
        return;
    }
    if (object && e->m.depth == 2 && e->m.path[1] == KEY_MESSAGE) {
        e->has_object = true;
        e->object_empty = e->m.mode == OBJECT_FIRST;
        e->object_end = e->m.offset;
    }
    e->m.depth--;
    e->m.mode = e->m.depth ? AFTER : DONE;
}

static bool is_literal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
           c == '.';
}

/* Words of Python's JSON, or something made of what numbers are made of. */
static bool literal_good(const struct errfile *e)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    unsigned n = e->m.literal_len;
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == n && memcmp(words[i], e->m.literal, n) == 0)
            return true;
    for (unsigned i = 0; i < n; i++)
        if (!strchr("0123456789+-.eE", e->m.literal[i]))
            return false;
    return e->m.literal[n - 1] >= '0' && e->m.literal[n - 1] <= '9';
}

static void literal_end(struct errfile *e)
{
    e->m.mode = !literal_good(e) ? BROKEN : e->m.depth ? AFTER : DONE;
    if (e->m.mode == AFTER && field_here(e) == FIELD_TIME)
        take_time(e);
}

static void value_begin(struct errfile *e, char c)
{
    if (c == '{' || c == '[') {
        container_begin(e, c == '{');
    } else if (c == '"') {
        string_begin(e, false);
    } else if (is_literal(c)) {
        e->m.mode = LITERAL;
        e->m.literal[0] = c;
        e->m.literal_len = 1;
    } else {
        e->m.mode = BROKEN;
    }
}

/* One byte between the values; white space is gone already. */
static void punctuation(struct errfile *e, char c)
{
    bool object = e->m.depth && e->m.is_object[e->m.depth];
    switch ((enum mode)e->m.mode) {
    case VALUE: value_begin(e, c); break;
    case ARRAY_FIRST:
        if (c == ']')
            container_end(e, false);
        else
            value_begin(e, c);
        break;
    case OBJECT_FIRST:
        if (c == '}') {
            container_end(e, true);
            break;
        } /* fall through */
    case OBJECT_KEY:
        if (c == '"')
            string_begin(e, true);
        else
            e->m.mode = BROKEN;
        break;
    case COLON: e->m.mode = c == ':' ? VALUE : BROKEN; break;
    case AFTER:
        if (c == ',')
            e->m.mode = object ? OBJECT_KEY : VALUE;
        else if (c == '}' || c == ']')
            container_end(e, c == '}');
        else
            e->m.mode = BROKEN;
        break;
    case DONE: e->m.mode = BROKEN; break; /* something behind the end */
    case STRING:
    case ESCAPE:
    case HEX:
    case LITERAL:
    case BROKEN: assert(0 && "handled by step()"); break;
    }
}

static void errfile_escape(struct errfile *e, char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = c ? strchr(from, c) : NULL;
    if (c == 'u') {
        e->m.hex = 0;
        e->m.hex_left = 4;
        e->m.mode = HEX;
        return;
    }
    flush_high(e);
    if (at)
        errfile_emit(e, to[at - from]);
    e->m.mode = at ? STRING : BROKEN;
}

static void errfile_hex_digit(struct errfile *e, char c)
{
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (d < 0) {
        e->m.mode = BROKEN;
        return;
    }
    e->m.hex = e->m.hex << 4 | (uint32_t)d;
    if (--e->m.hex_left == 0) {
        take_hex(e);
        e->m.mode = STRING;
    }
}

static void errfile_step(struct errfile *e, char c)
{
    switch ((enum mode)e->m.mode) {
    case STRING:
        if (c == '\\') {
            e->m.mode = ESCAPE;
        } else if (c == '"') {
            errfile_string_end(e);
        } else {
            flush_high(e);
            errfile_emit(e, c);
        }
        return;
    case ESCAPE: errfile_escape(e, c); return;
    case HEX: errfile_hex_digit(e, c); return;
    case LITERAL:
        if (is_literal(c)) {
            if (e->m.literal_len < sizeof e->m.literal)
                e->m.literal[e->m.literal_len++] = c;
            return;
        }
        literal_end(e);
        break;
    case VALUE:
    case OBJECT_FIRST:
    case OBJECT_KEY:
    case COLON:
    case AFTER:
    case ARRAY_FIRST:
    case DONE:
    case BROKEN: break;
    }
    if (e->m.mode != BROKEN && c != ' ' && c != '\n' && c != '\r' && c != '\t')
        punctuation(e, c);
}

void errfile_feed(struct errfile *e, const char *bytes, size_t n)
{
    assert(e->state == ERRFILE_ABSENT);
    for (size_t i = 0; i < n; i++, e->m.offset++)
        if (e->m.mode != BROKEN)
            errfile_step(e, bytes[i]);
}

void errfile_end(struct errfile *e)
{
    assert(e->state == ERRFILE_ABSENT);
    if (e->m.mode == LITERAL && !e->m.depth)
        literal_end(e);
    e->message[e->m.message_len] = 0;
    if (e->m.mode == BROKEN)
        e->state = ERRFILE_BROKEN;
    else if (e->m.mode != DONE)
        e->state = ERRFILE_CUT;
    else
        e->state = e->m.has_message ? ERRFILE_WHOLE : ERRFILE_FOREIGN;
    assert(e->m.depth <= ERRFILE_DEPTH_MAX && e->m.message_len < ERRFILE_MESSAGE_MAX);
}

void errfile_fail(struct errfile *e, enum errfile_state why)
{
    assert(why != ERRFILE_WHOLE);
    e->message[e->m.message_len] = 0;
    e->state = why;
}

const char *errfile_state_text(enum errfile_state s)
{
    switch (s) {
#define X(name, text)                                                                                                  \
    case ERRFILE_##name: return text;
        ERRFILE_STATE_LIST(X)
#undef X
    }
    return "";
}

int errfile_stack(const struct errfile *e, struct el_buf *out)
{
    const struct errfile_clip *c = &e->stack;
    uint64_t behind = c->total > ERRFILE_STACK_HEAD ? c->total - ERRFILE_STACK_HEAD : 0;
    if (el_buf_put(out, c->head, (size_t)(c->total - behind)))
        return -1;
    if (behind <= ERRFILE_STACK_TAIL)
        return el_buf_put(out, c->tail, (size_t)behind);
    if (el_buf_printf(out, "\n[… %llu bytes left out …]\n", (unsigned long long)(behind - ERRFILE_STACK_TAIL)))
        return -1;
    size_t oldest = (size_t)(behind % ERRFILE_STACK_TAIL);
    int r = el_buf_put(out, c->tail + oldest, ERRFILE_STACK_TAIL - oldest);
    return r ? r : el_buf_put(out, c->tail, oldest);
}
