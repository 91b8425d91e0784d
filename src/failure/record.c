#include "failure/record.h"

#include <assert.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "util/text.h"
#include "sys/signame.h"
#include "util/array.h"
#include "util/json_limit.h"

enum {
    VALUES_MAX = 512, /* of a document that is read, and … */
    DEPTH_MAX = 4,    /* … how deep: newer versions may say more */
    PATH_BYTES_MAX = 4096,
    LINE_BYTES_MAX = 8192,
    MARK_BYTES_MAX = 64,   /* "[… N bytes left out …]" */
    CUT_BYTES_LEAST = 128, /* less of a text than this says nothing */
};

/* --- the fields ----------------------------------------------------------------------------------------------------
 */

static const char *const end_words[] = {"unknown", "exit", "signal", "not started", NULL};
static const char *const by_words[] = {"itself", "elrun", "oom killer", "outside", NULL};
static const char *const watch_words[] = {"not looked", "yes", "terminal", "no", "untold", NULL};
static const char *const kind_words[] = {"none", "python", "group", "syntax", "fatal", "c++", "abort", "panic", NULL};
static const char *const from_words[] = {"error file", "stderr", "stdout", NULL};
static const char *const oom_words[] = {"nothing", "chosen", "others", NULL};
static const char *const class_words[] = {
#define X(name, text, status) text,
    FAILURE_CLASS_LIST(X)
#undef X
        NULL};
static const char *const rule_words[] = {"none", "TYPE",
#define X(name, scope, a, b, class, follower, advice) #name,
                                         FAILURE_RULES(X)
#undef X
#define X(name, a, b) #name,
                                             FAILURE_USAGES(X)
#undef X
#define X(name, code, a, b, class, advice) #name,
                                                 FAILURE_EXITS(X)
#undef X
                                                     NULL};
static const char *const state_words[] = {
#define X(name, text) text,
    ERRFILE_STATE_LIST(X)
#undef X
        NULL};

enum record_kind {
    KIND_UNSIGNED, /* unsigned */
    KIND_INT,      /* int */
    KIND_U64,
    KIND_I64, /* from -1 */
    KIND_BOOL,
    KIND_WORD,  /* an enumeration */
    KIND_FROM,  /* where the traceback is from: an enumeration, null without a traceback */
    KIND_CHARS, /* an array, one line; limit: its size */
    KIND_NAME,  /* const char *, one line; limit: bytes.  Read into struct record. */
};

struct record_field {
    const char *name;
    enum record_kind kind;
    size_t offset;
    uint64_t limit;
    const char *const *words;
};

#define TOP(kind, name, member, limit, words)                                                                          \
    {                                                                                                                  \
        name, KIND_##kind, offsetof(struct failure, member), limit, words                                              \
    }
#define CHARS(name, member)                                                                                            \
    {                                                                                                                  \
        name, KIND_CHARS, offsetof(struct failure, member), sizeof((struct failure *)0)->member, NULL                  \
    }

static const struct record_field top[] = {
    TOP(UNSIGNED, "rank", rank, 1u << 30, NULL),
    TOP(UNSIGNED, "local_rank", local_rank, 1u << 16, NULL),
    TOP(UNSIGNED, "node_rank", node_rank, 1u << 30, NULL),
    TOP(INT, "pid", pid, INT32_MAX, NULL),
    TOP(NAME, "role", role, RECORD_ROLE_MAX, NULL),
    TOP(NAME, "host", host, RECORD_HOST_MAX, NULL),
    TOP(WORD, "end", end, 0, end_words),
    TOP(INT, "code", code, 255, NULL),
    TOP(BOOL, "core_dumped", core_dumped, 0, NULL),
    TOP(WORD, "by", by, 0, by_words),
    TOP(WORD, "class", class, 0, class_words),
    TOP(BOOL, "follower", follower, 0, NULL),
    TOP(BOOL, "raised", raised, 0, NULL),
    TOP(BOOL, "printed_before", aside, 0, NULL),
    TOP(BOOL, "private_link", private_link, 0, NULL),
    TOP(WORD, "rule", rule, 0, rule_words),
    CHARS("sign", sign),
    CHARS("survived", survived),
    CHARS("thread", thread),
    CHARS("unended", unended),
    TOP(BOOL, "hung", hung, 0, NULL),
    TOP(BOOL, "odd", odd, 0, NULL),
    TOP(BOOL, "absent", absent, 0, NULL),
    TOP(BOOL, "perhaps_late", perhaps_late, 0, NULL),
    CHARS("time", time_text),
    TOP(U64, "at_usec", at, INT64_MAX / 4, NULL),
    TOP(I64, "wall_usec", wall_usec, INT64_MAX / 4, NULL),
    TOP(I64, "stop_wall_usec", stop_wall_usec, INT64_MAX / 4, NULL),
    TOP(U64, "elapsed_usec", elapsed, INT64_MAX / 4, NULL),
    TOP(UNSIGNED, "restart", restart, UINT32_MAX, NULL),
    TOP(U64, "round", round, INT64_MAX, NULL),
    TOP(WORD, "error_file_state", file_state, 0, state_words),
    TOP(I64, "error_file_sec", file_sec, (uint64_t)1 << 40, NULL),
    TOP(WORD, "stderr_watched", watch, 0, watch_words),
    TOP(FROM, "traceback_from", stack_from, 0, from_words),
    TOP(WORD, "tail_from", tail_from, 0, from_words),
    TOP(WORD, "oom_log", oom, 0, oom_words),
    TOP(UNSIGNED, "xid", xid, 100000000, NULL),
    TOP(BOOL, "hardware_witnessed", witnessed, 0, NULL),
    TOP(BOOL, "xid_names_worker", xid_own, 0, NULL),
    CHARS("xid_device", xid_device),
};

/* What failure_at() says where all is known. */
static const struct record_field failed_at = TOP(U64, "failed_at_usec", failed_at, INT64_MAX / 4, NULL);

static const struct record_field found[] = {
    TOP(WORD, "kind", found.kind, 0, kind_words),
    CHARS("type", found.type),
    CHARS("message", found.message),
    CHARS("file", found.file),
    CHARS("function", found.function),
    TOP(UNSIGNED, "line", found.line, UINT32_MAX, NULL),
    TOP(BOOL, "user_frame", found.user_frame, 0, NULL),
    TOP(BOOL, "headless", found.headless, 0, NULL),
    TOP(BOOL, "chained", found.chained, 0, NULL),
    TOP(BOOL, "nested", found.nested, 0, NULL),
    TOP(BOOL, "in_thread", found.in_thread, 0, NULL),
    TOP(BOOL, "in_process", found.in_process, 0, NULL),
};

const char *record_by_word(enum failure_by by)
{
    return by_words[by];
}

static const void *record_at(const struct failure *f, const struct record_field *x)
{
    return (const char *)f + x->offset;
}

/* --- out: what is short ----------------------------------------------------------------------------------------------
 */

/* At most `most` bytes of n: whole characters. */
static size_t record_whole(const char *text, size_t n, size_t most)
{
    if (n <= most)
        return n;
    while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

static void put_chars(struct el_buf *out, const char *text, size_t limit)
{
    text = text ? text : "";
    text_json(out, text, record_whole(text, strnlen(text, limit + 1), limit));
}

static void record_put_field(struct el_buf *out, const struct failure *f, const struct record_field *x)
{
    const void *v = record_at(f, x);
    el_buf_printf(out, "\"%s\":", x->name);
    switch (x->kind) {
    case KIND_UNSIGNED: el_buf_printf(out, "%u", *(const unsigned *)v); break;
    case KIND_INT: el_buf_printf(out, "%d", *(const int *)v); break;
    case KIND_U64: {
        uint64_t u = *(const uint64_t *)v;
        el_buf_printf(out, "%llu",
                      (unsigned long long)(u < INT64_MAX ? u : INT64_MAX)); /* what JSON readers can hold */
        break;
    }
    case KIND_I64: el_buf_printf(out, "%lld", (long long)*(const int64_t *)v); break;
    case KIND_BOOL: el_buf_puts(out, *(const bool *)v ? "true" : "false"); break;
    case KIND_WORD: el_buf_printf(out, "\"%s\"", x->words[*(const unsigned *)v]); break;
    case KIND_FROM:
        if (f->stack)
            el_buf_printf(out, "\"%s\"", x->words[*(const unsigned *)v]);
        else
            el_buf_puts(out, "null");
        break;
    case KIND_CHARS: put_chars(out, v, (size_t)x->limit - 1); break;
    case KIND_NAME: put_chars(out, *(const char *const *)v, (size_t)x->limit); break;
    }
}

static void put_short(struct el_buf *out, const struct failure *f)
{
    char name[SIGNAME_MAX];
    el_buf_puts(out, "{");
    for (size_t i = 0; i < COUNT_OF(top); i++) {
        record_put_field(out, f, &top[i]);
        el_buf_puts(out, ",");
    }
    if (f->end == FAILURE_SIGNAL)
        el_buf_printf(out, "\"signal\":\"%s\",", signame(f->code, name));
    const el_usec at = failure_at(f);
    el_buf_printf(out, "\"%s\":%llu,", failed_at.name, (unsigned long long)(at < INT64_MAX ? at : INT64_MAX));
    el_buf_puts(out, "\"found\":{");
    for (size_t i = 0; i < COUNT_OF(found); i++) {
        el_buf_puts(out, i ? "," : "");
        record_put_field(out, f, &found[i]);
    }
    el_buf_puts(out, "}");
}

/* --- out: what may be long -------------------------------------------------------------------------------------------
 */

enum long_name { ERROR_FILE, LOG_FILE, LOG_DIR, MESSAGE, STACK, TAIL, SIBLINGS, LEFT, CORE, KERNEL, LONGS };

static const struct {
    const char *name;
    size_t offset;
    bool lines;          /* cut between lines where there are some */
    unsigned head_parts; /* of four that stay of the beginning when the middle goes; the rest stays of the end */
} longs[LONGS] = {
    [ERROR_FILE] = {"error_file", offsetof(struct failure, error_file), false, 0},
    [LOG_FILE] = {"log_file", offsetof(struct failure, log_file), false, 0},
    [LOG_DIR] = {"log_dir", offsetof(struct failure, log_dir), false, 0},
    [MESSAGE] = {"message", offsetof(struct failure, message), false, 3},
    [STACK] = {"traceback", offsetof(struct failure, stack), true, 1},
    [TAIL] = {"stderr_tail", offsetof(struct failure, tail), true, 0},
    [SIBLINGS] = {"siblings", offsetof(struct failure, siblings), false, 3},
    [LEFT] = {"left_before", offsetof(struct failure, left), false, 3},
    [CORE] = {"core", offsetof(struct failure, core), false, 2},
    [KERNEL] = {"kernel_log", offsetof(struct failure, kernel), true, 3},
};

/* Who gives first, and how much it keeps.  The last rows make every failure fit RECORD_BYTES_LEAST. */
static const struct {
    enum long_name which;
    size_t floor;
} gives[] = {
    {TAIL, 4096},    {STACK, 16384}, {TAIL, 1024},   {STACK, 4096}, {SIBLINGS, 1024}, {MESSAGE, 1024}, {TAIL, 0},
    {STACK, 1024},   {KERNEL, 512},  {SIBLINGS, 0},  {LEFT, 0},     {CORE, 0},        {LOG_FILE, 0},   {LOG_DIR, 0},
    {ERROR_FILE, 0}, {KERNEL, 0},    {MESSAGE, 256}, {STACK, 0},    {MESSAGE, 0},
};

struct encoded {
    struct el_buf json; /* with its quotes; empty: there is none */
    size_t allowed;     /* bytes of it, with the quotes */
};

static size_t record_size_of(const struct encoded *t)
{
    return t->json.len && t->allowed ? t->allowed : 4; /* null */
}

/* Bytes of the character or escape at p, in a text that text_json() has made. */
static size_t unit(const char *p)
{
    unsigned char c = (unsigned char)*p;
    if (c == '\\')
        return p[1] == 'u' ? 6 : 2;
    return c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
}

static bool is_newline(const char *p)
{
    return p[0] == '\\' && p[1] == 'n';
}

/* So much of the beginning as fits the budget: whole lines, or else whole characters. */
static size_t head_end(const char *p, size_t n, size_t budget, bool lines)
{
    size_t i = 0, line = 0;
    while (i < n && i + unit(p + i) <= budget) {
        bool end = is_newline(p + i);
        i += unit(p + i);
        line = end ? i : line;
    }
    return lines && line ? line : i;
}

/* Where the end begins that fits the budget; *left_out: so many bytes of text lie from `from` to there. */
static size_t tail_start(const char *p, size_t n, size_t from, size_t budget, bool lines, size_t *left_out)
{
    size_t out = 0, start = n;
    bool fits = false, line = true;
    *left_out = 0;
    for (size_t i = from; i < n; i += unit(p + i)) {
        bool first = n - i <= budget && !fits;
        if (first || (fits && line)) {
            start = i;
            *left_out = out;
        }
        fits |= first;
        if (fits && (line || !lines))
            return start;
        line = is_newline(p + i);
        out += p[i] == '\\' ? 1 : unit(p + i);
    }
    *left_out = fits ? *left_out : out;
    return start;
}

static void put_long(struct el_buf *out, const struct encoded *t, enum long_name which)
{
    if (!t->json.len || !t->allowed) {
        el_buf_puts(out, "null");
        return;
    }
    if (t->allowed >= t->json.len) {
        el_buf_put(out, t->json.v, t->json.len);
        return;
    }
    const char *p = t->json.v + 1;
    size_t n = t->json.len - 2, room = t->allowed - 2 - MARK_BYTES_MAX, left_out;
    size_t head = head_end(p, n, room / 4 * longs[which].head_parts, longs[which].lines);
    size_t tail = tail_start(p, n, head, room - head, longs[which].lines, &left_out);
    el_buf_puts(out, "\"");
    el_buf_put(out, p, head);
    const char *space = longs[which].lines ? "\\n" : " ";
    bool begun = head && !(longs[which].lines && is_newline(p + head - 2));
    el_buf_printf(out, "%s[… %zu bytes left out …]%s", begun ? space : "", left_out, space);
    el_buf_put(out, p + tail, n - tail);
    el_buf_puts(out, "\"");
}

/* Brings all of it down to the limit; true if something had to give. */
static bool shorten(struct encoded *t, size_t fixed_bytes, size_t limit_bytes)
{
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(gives); i++) {
        size_t all = fixed_bytes;
        for (unsigned k = 0; k < LONGS; k++)
            all += record_size_of(&t[k]);
        if (all <= limit_bytes)
            return any;
        struct encoded *x = &t[gives[i].which];
        size_t excess = all - limit_bytes;
        if (!x->json.len || x->allowed <= gives[i].floor)
            continue;
        x->allowed = x->allowed > gives[i].floor + excess ? x->allowed - excess : gives[i].floor;
        if (x->allowed < CUT_BYTES_LEAST || gives[i].which <= LOG_DIR) /* half a path is none */
            x->allowed = 0;
        any = true;
    }
    return any;
}

static void put_longs(struct el_buf *out, struct encoded *t, const struct failure *f, size_t start, size_t limit_bytes)
{
    size_t names = 2 + strlen(",\"shortened\":false");
    for (unsigned k = 0; k < LONGS; k++)
        names += strlen(longs[k].name) + strlen(",\"\":");
    bool cut = shorten(t, out->len - start + names, limit_bytes);
    for (unsigned k = 0; k < LONGS; k++) {
        el_buf_printf(out, ",\"%s\":", longs[k].name);
        put_long(out, &t[k], k);
    }
    el_buf_printf(out, ",\"shortened\":%s}", cut || f->texts_short ? "true" : "false");
}

int record_write(const struct failure *f, size_t limit_bytes, struct el_buf *out)
{
    assert(limit_bytes >= RECORD_BYTES_LEAST);
    const size_t start = out->len;
    struct encoded t[LONGS];
    int bad = 0;
    for (unsigned k = 0; k < LONGS; k++) {
        const char *text = *(char *const *)(const void *)((const char *)f + longs[k].offset);
        t[k].json = EL_BUF_INIT(out->mem, 0);
        bad |= text && text_json(&t[k].json, text, strlen(text));
        t[k].allowed = t[k].json.len;
    }
    if (!bad) {
        put_short(out, f);
        put_longs(out, t, f, start, limit_bytes);
    }
    for (unsigned k = 0; k < LONGS; k++)
        el_buf_free(&t[k].json);
    bad |= out->full;
    if (bad)
        out->len = start;
    assert(bad || out->len - start <= limit_bytes);
    return bad ? -1 : 0;
}

/* --- in --------------------------------------------------------------------------------------------------------------
 */

static void record_get_number(struct failure *f, const struct record_field *x, const json_t *v)
{
    void *to = (char *)f + x->offset;
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < (x->kind == KIND_I64 ? -1 : 0) || (n > 0 && (uint64_t)n > x->limit))
        return;
    if (x->kind == KIND_UNSIGNED)
        *(unsigned *)to = (unsigned)n;
    else if (x->kind == KIND_INT)
        *(int *)to = (int)n;
    else if (x->kind == KIND_U64)
        *(uint64_t *)to = (uint64_t)n;
    else
        *(int64_t *)to = n;
}

static void get_word(struct failure *f, const struct record_field *x, const json_t *v)
{
    const char *word = json_string_value(v);
    for (unsigned i = 0; word && x->words[i]; i++)
        if (strcmp(word, x->words[i]) == 0)
            *(unsigned *)(void *)((char *)f + x->offset) = i;
}

/* Clean text in a buffer; a line is one line. */
static int clean(struct el_buf *to, const json_t *v, bool one_line)
{
    to->len = 0;
    if (!json_is_string(v) || text_clean(to, json_string_value(v), json_string_length(v)) < 0)
        return -1;
    for (size_t i = 0; one_line && i < to->len; i++)
        if (to->v[i] == '\n' || to->v[i] == '\t')
            to->v[i] = ' ';
    return 0;
}

static void get_fields(struct record *r, const struct record_field *x, size_t n, const json_t *from,
                       struct el_buf *text)
{
    struct failure *f = &r->failure;
    for (; n; n--, x++) {
        const json_t *v = json_object_get(from, x->name);
        char *to = (char *)f + x->offset;
        switch (x->kind) {
        case KIND_UNSIGNED:
        case KIND_INT:
        case KIND_U64:
        case KIND_I64: record_get_number(f, x, v); break;
        case KIND_BOOL: *(bool *)to = json_is_true(v); break;
        case KIND_WORD:
        case KIND_FROM: get_word(f, x, v); break;
        case KIND_CHARS:
            if (clean(text, v, true) == 0)
                text_copy(to, (size_t)x->limit, text->len ? text->v : "", text->len);
            break;
        case KIND_NAME: {
            char *name = x->offset == offsetof(struct failure, role) ? r->role : r->host;
            if (clean(text, v, true) == 0)
                text_copy(name, (size_t)x->limit + 1, text->len ? text->v : "", text->len);
            break;
        }
        }
    }
}

static int get_longs(struct failure *f, const json_t *from, struct el_buf *text, struct el_mem *mem)
{
    for (unsigned k = 0; k < LONGS; k++) {
        size_t most = k <= LOG_DIR ? PATH_BYTES_MAX - 1 : longs[k].lines ? RECORD_READ_MAX : LINE_BYTES_MAX;
        char **to = (char **)(void *)((char *)f + longs[k].offset);
        if (clean(text, json_object_get(from, longs[k].name), !longs[k].lines) < 0 || !text->len)
            continue;
        if (k <= LOG_DIR && text->len > most)
            continue;
        if (!(*to = el_strndup(mem, text->v, record_whole(text->v, text->len, most))))
            return -1;
    }
    return 0;
}

/* What the rest of the program relies on. */
static void make_sane(struct failure *f)
{
    bool code = f->end == FAILURE_EXIT || f->end == FAILURE_NOT_STARTED;
    if ((code && (f->code < 1 || f->code > 255)) || (f->end == FAILURE_SIGNAL && (f->code < 1 || f->code > 64)))
        f->end = FAILURE_UNKNOWN;
    if (f->end == FAILURE_UNKNOWN)
        f->code = 0;
    if (!f->stack)
        f->stack_from = FAILURE_FROM_FILE;
    if (f->failed_at > f->at)
        f->failed_at = 0;
}

int record_read(struct record *r, const char *json, size_t n, struct el_mem *mem, struct el_err *e)
{
    json_error_t where;
    memset(r, 0, sizeof *r);
    failure_init(&r->failure);
    r->failure.role = r->role;
    r->failure.host = r->host;
    if (n > RECORD_READ_MAX || !json_limit_holds(json, n, VALUES_MAX, DEPTH_MAX))
        return el_fail(e, EL_EXIT_PROTOCOL, "a failure's record of %zu bytes: too large, or not one of ours", n);
    json_t *tree = json_loadb(json, n, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(tree)) {
        json_decref(tree);
        return el_fail(e, EL_EXIT_PROTOCOL, "a failure's record is not a JSON object: byte %d: %.80s", where.position,
                       where.text);
    }
    struct el_buf text = EL_BUF_INIT(mem, 0);
    get_fields(r, top, COUNT_OF(top), tree, &text);
    record_get_number(&r->failure, &failed_at, json_object_get(tree, failed_at.name));
    get_fields(r, found, COUNT_OF(found), json_object_get(tree, "found"), &text);
    int bad = get_longs(&r->failure, tree, &text, mem);
    bad |= text.full;
    r->failure.texts_short = json_is_true(json_object_get(tree, "shortened"));
    make_sane(&r->failure);
    el_buf_free(&text);
    json_decref(tree);
    return bad ? el_fail(e, EL_EXIT_TEMPFAIL, "no memory for a failure's record") : 0;
}

void record_free(struct record *r, struct el_mem *mem)
{
    failure_free(&r->failure, mem);
}
