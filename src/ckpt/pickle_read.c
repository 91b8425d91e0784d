#include "ckpt/pickle_read.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 64 << 10, STACK_MAX = 4 << 20 };

struct pickle_block {
    struct pickle_block *next;
    size_t pad;
};

/* The machine: a stack of nodes, NULL where a mark stands. */
struct machine {
    struct pickle *p;
    const char *in;
    size_t n, at;
    struct pickle_node **stack;
    size_t depth, stack_room;
    struct pickle_node **memo;
    size_t memo_n, memo_room;
    struct el_err *e;
};

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void *pickle_read_take(struct machine *m, size_t bytes)
{
    struct pickle *p = m->p;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > p->room || !p->blocks) {
        size_t size = bytes > BLOCK ? bytes : BLOCK;
        struct pickle_block *b = el_alloc(p->mem, sizeof *b + size);
        if (!b)
            return el_fail(m->e, EL_EXIT_OSERR, "out of memory"), NULL;
        b->next = p->blocks;
        b->pad = size;
        p->blocks = b;
        p->room = size;
    }
    void *at = (char *)(p->blocks + 1) + (p->blocks->pad - p->room);
    p->room -= bytes;
    return at;
}

static struct pickle_node *node(struct machine *m, enum pickle_kind kind)
{
    if (m->p->nodes++ >= PICKLE_NODES_MAX) {
        ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has more than %u values", PICKLE_NODES_MAX);
        return NULL;
    }
    struct pickle_node *x = pickle_read_take(m, sizeof *x);
    if (x)
        x->kind = kind;
    return x;
}

static int add_item(struct machine *m, struct pickle_node *to, struct pickle_node *x)
{
    if (m->p->items++ >= PICKLE_ITEMS_MAX)
        return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has more than %u values in its lists", PICKLE_ITEMS_MAX);
    if (to->items_n == to->items_room) {
        size_t room = to->items_room ? 2 * to->items_room : 4;
        struct pickle_node **v = pickle_read_take(m, room * sizeof *v);
        if (!v)
            return -1;
        if (to->items_n)
            memcpy(v, to->items, to->items_n * sizeof *v);
        to->items = v;
        to->items_room = room;
    }
    to->items[to->items_n++] = x;
    return 0;
}

static int pickle_read_grow(struct machine *m, struct pickle_node ***v, size_t *room, size_t n, size_t most)
{
    if (n < *room)
        return 0;
    size_t want = *room ? 2 * *room : 256;
    while (want <= n)
        want *= 2;
    if (n >= most)
        return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle remembers more than %zu values", most);
    struct pickle_node **grown = el_realloc(m->p->mem, *v, want * sizeof *grown);
    if (!grown)
        return el_fail(m->e, EL_EXIT_OSERR, "out of memory");
    memset(grown + *room, 0, (want - *room) * sizeof *grown);
    *v = grown;
    *room = want;
    return 0;
}

/* --- the stack ---------------------------------------------------------------------------------------------------- */

static int pickle_read_fail(struct machine *m, const char *what)
{
    return ckpt_fail(m->e, CKPT_DAMAGED, "the pickle is broken at byte %zu: %s", m->at, what);
}

static int pickle_read_push(struct machine *m, struct pickle_node *x)
{
    if (!x || pickle_read_grow(m, &m->stack, &m->stack_room, m->depth, STACK_MAX))
        return -1;
    m->stack[m->depth++] = x;
    return 0;
}

static int push_mark(struct machine *m)
{
    if (pickle_read_grow(m, &m->stack, &m->stack_room, m->depth, STACK_MAX))
        return -1;
    m->stack[m->depth++] = NULL;
    return 0;
}

/* The top value, below it no mark is crossed. */
static struct pickle_node *pop(struct machine *m)
{
    if (!m->depth || !m->stack[m->depth - 1]) {
        pickle_read_fail(m, "a value is missing");
        return NULL;
    }
    return m->stack[--m->depth];
}

static struct pickle_node *top(struct machine *m)
{
    if (!m->depth || !m->stack[m->depth - 1]) {
        pickle_read_fail(m, "a value is missing");
        return NULL;
    }
    return m->stack[m->depth - 1];
}

/* Where the values above the last mark begin; -1: there is none. */
static int64_t pickle_read_mark(struct machine *m)
{
    size_t i = m->depth;
    while (i && m->stack[i - 1])
        i--;
    return i ? (int64_t)i : pickle_read_fail(m, "a mark is missing");
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* n bytes of the input, NULL if it has no more. */
static const char *bytes(struct machine *m, size_t n)
{
    if (n > m->n - m->at) {
        m->p->cut = true;
        pickle_read_fail(m, "it ends too early");
        return NULL;
    }
    const char *p = m->in + m->at;
    m->at += n;
    return p;
}

static int pickle_read_number(struct machine *m, unsigned n, uint64_t *to)
{
    const char *p = bytes(m, n);
    *to = 0;
    for (unsigned i = n; p && i-- > 0;)
        *to = *to << 8 | (unsigned char)p[i];
    return p ? 0 : -1;
}

static int push_text(struct machine *m, enum pickle_kind kind, unsigned length_bytes)
{
    uint64_t n;
    if (pickle_read_number(m, length_bytes, &n))
        return -1;
    if (n > PICKLE_TEXT_MAX)
        return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has a string of %llu bytes at byte %zu",
                         (unsigned long long)n, m->at);
    const char *p = bytes(m, (size_t)n);
    struct pickle_node *x = p ? node(m, kind) : NULL;
    if (!x)
        return -1;
    x->text = p;
    x->text_n = (size_t)n;
    return pickle_read_push(m, x);
}

static int push_number(struct machine *m, enum pickle_kind kind, int64_t v)
{
    struct pickle_node *x = node(m, kind);
    if (x)
        x->number = v;
    return pickle_read_push(m, x);
}

/* Two's complement of any length; what does not fit stays bytes. */
static int push_long(struct machine *m, unsigned length_bytes)
{
    uint64_t n, v = 0;
    if (pickle_read_number(m, length_bytes, &n))
        return -1;
    if (n > PICKLE_TEXT_MAX)
        return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has a number of %llu bytes at byte %zu",
                         (unsigned long long)n, m->at);
    const char *p = bytes(m, (size_t)n);
    if (!p)
        return -1;
    if (n > 8) {
        struct pickle_node *x = node(m, PICKLE_BYTES);
        if (!x)
            return -1;
        x->text = p;
        x->text_n = (size_t)n;
        return pickle_read_push(m, x);
    }
    for (size_t i = (size_t)n; i-- > 0;)
        v = v << 8 | (unsigned char)p[i];
    if (n && n < 8 && (p[n - 1] & 0x80))
        v |= UINT64_MAX << (8 * n);
    return push_number(m, PICKLE_INT, (int64_t)v);
}

static int push_float(struct machine *m)
{
    const char *p = bytes(m, 8);
    uint64_t v = 0;
    for (unsigned i = 0; p && i < 8; i++)
        v = v << 8 | (unsigned char)p[i];
    struct pickle_node *x = p ? node(m, PICKLE_FLOAT) : NULL;
    if (x)
        memcpy(&x->real, &v, sizeof v);
    return pickle_read_push(m, x);
}

static int push_tuple(struct machine *m, size_t from)
{
    struct pickle_node *x = node(m, PICKLE_TUPLE);
    for (size_t i = from; x && i < m->depth; i++)
        if (add_item(m, x, m->stack[i]))
            return -1;
    m->depth = from;
    return pickle_read_push(m, x);
}

/* The last n values; no mark among them. */
static int push_short_tuple(struct machine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->depth <= i || !m->stack[m->depth - 1 - i])
            return pickle_read_fail(m, "a value is missing");
    return push_tuple(m, m->depth - n);
}

static int push_global(struct machine *m, const char *module, size_t module_n, const char *name, size_t name_n)
{
    if (module_n > PICKLE_NAME_MAX || name_n > PICKLE_NAME_MAX)
        return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has a global of more than %d bytes at byte %zu",
                         PICKLE_NAME_MAX, m->at);
    struct pickle_node *x = node(m, PICKLE_GLOBAL);
    char *text = x ? pickle_read_take(m, module_n + name_n + 2) : NULL;
    if (!text)
        return -1;
    memcpy(text, module, module_n);
    text[module_n] = ' ';
    memcpy(text + module_n + 1, name, name_n);
    text[module_n + 1 + name_n] = 0;
    x->text = text;
    x->text_n = module_n + 1 + name_n;
    x->fn = m->p->globals;
    m->p->globals = x;
    return pickle_read_push(m, x);
}

static const char *line(struct machine *m, size_t *n)
{
    const char *p = m->in + m->at, *end = memchr(p, '\n', m->n - m->at);
    if (!end) {
        m->p->cut = true;
        pickle_read_fail(m, "it ends too early");
        return NULL;
    }
    *n = (size_t)(end - p);
    m->at += *n + 1;
    return p;
}

static int op_global(struct machine *m)
{
    size_t module_n, name_n;
    const char *module = line(m, &module_n), *name = module ? line(m, &name_n) : NULL;
    return name ? push_global(m, module, module_n, name, name_n) : -1;
}

static int op_stack_global(struct machine *m)
{
    struct pickle_node *name = pop(m), *module = name ? pop(m) : NULL;
    if (!module)
        return -1;
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        return pickle_read_fail(m, "a global without a name");
    return push_global(m, module->text, module->text_n, name->text, name->text_n);
}

static int op_call(struct machine *m)
{
    struct pickle_node *args = pop(m), *fn = args ? pop(m) : NULL, *x = fn ? node(m, PICKLE_CALL) : NULL;
    if (!x)
        return -1;
    if (fn->kind != PICKLE_GLOBAL && fn->kind != PICKLE_CALL && fn->kind != PICKLE_PERSISTENT)
        return pickle_read_fail(m, "a call of what is no class");
    x->fn = fn;
    x->args = args;
    return pickle_read_push(m, x);
}

static int op_build(struct machine *m)
{
    struct pickle_node *state = pop(m), *x = state ? top(m) : NULL;
    if (!x)
        return -1;
    x->state = state;
    return 0;
}

/* Values from `from` on go into the container below them; pairs: it is a dict. */
static int pickle_read_fill(struct machine *m, size_t from, size_t below, bool pairs)
{
    struct pickle_node *to = below ? m->stack[below - 1] : NULL;
    if (!to || (pairs && (m->depth - from) % 2) || (to->items_n && to->kind == PICKLE_CALL && to->pairs != pairs))
        return pickle_read_fail(m, "values without a container");
    if (pairs ? to->kind != PICKLE_DICT && to->kind != PICKLE_CALL
              : to->kind != PICKLE_LIST && to->kind != PICKLE_SET && to->kind != PICKLE_CALL)
        return pickle_read_fail(m, "values in what is no container");
    to->pairs = pairs;
    for (size_t i = from; pairs && i < m->depth; i += 2)
        if (m->stack[i] && (m->stack[i]->kind == PICKLE_DICT || m->stack[i]->kind == PICKLE_LIST))
            return pickle_read_fail(m, "a key that is a container");
    for (size_t i = from; i < m->depth; i++)
        if (!m->stack[i] ? pickle_read_fail(m, "a mark among values") : add_item(m, to, m->stack[i]))
            return -1;
    m->depth = below;
    return 0;
}

static int fill_from_mark(struct machine *m, bool pairs)
{
    int64_t from = pickle_read_mark(m);
    return from < 0 ? -1 : pickle_read_fill(m, (size_t)from, (size_t)from - 1, pairs);
}

static int fill_last(struct machine *m, size_t n, bool pairs)
{
    return m->depth <= n ? pickle_read_fail(m, "a value is missing")
                         : pickle_read_fill(m, m->depth - n, m->depth - n, pairs);
}

static int memo_put(struct machine *m, uint64_t i)
{
    struct pickle_node *x = top(m);
    if (!x || pickle_read_grow(m, &m->memo, &m->memo_room, (size_t)i, PICKLE_MEMO_MAX))
        return -1;
    m->memo[i] = x;
    if (i >= m->memo_n)
        m->memo_n = (size_t)i + 1;
    return 0;
}

static int memo_get(struct machine *m, uint64_t i)
{
    if (i >= m->memo_n || !m->memo[i])
        return pickle_read_fail(m, "a value that is not remembered");
    return pickle_read_push(m, m->memo[i]);
}

static int op_frozenset(struct machine *m)
{
    int64_t from = pickle_read_mark(m);
    struct pickle_node *x = from < 0 ? NULL : node(m, PICKLE_SET);
    for (size_t i = (size_t)from; x && i < m->depth; i++)
        if (add_item(m, x, m->stack[i]))
            return -1;
    if (!x)
        return -1;
    m->depth = (size_t)from - 1;
    return pickle_read_push(m, x);
}

static int op_tuple(struct machine *m)
{
    int64_t from = pickle_read_mark(m);
    if (from < 0)
        return -1;
    /* The mark goes, too: the tuple takes its place. */
    memmove(m->stack + from - 1, m->stack + from, (m->depth - (size_t)from) * sizeof *m->stack);
    m->depth--;
    return push_tuple(m, (size_t)from - 1);
}

static int op_persistent(struct machine *m)
{
    struct pickle_node *id = pop(m), *x = id ? node(m, PICKLE_PERSISTENT) : NULL;
    struct pickle *p = m->p;
    if (!x || pickle_read_grow(m, &p->persistent, &p->persistent_room, p->persistent_n, PICKLE_NODES_MAX))
        return -1;
    p->persistent[p->persistent_n++] = x;
    x->args = id;
    return pickle_read_push(m, x);
}

static int op_pop(struct machine *m)
{
    if (!m->depth)
        return pickle_read_fail(m, "a value is missing");
    m->depth--;
    return 0;
}

/* Operations with a number of n bytes behind them. */
static int pickle_read_with_number(struct machine *m, unsigned n, int (*run)(struct machine *m, uint64_t v))
{
    uint64_t v;
    return pickle_read_number(m, n, &v) ? -1 : run(m, v);
}

static int push_unsigned(struct machine *m, uint64_t v)
{
    return push_number(m, PICKLE_INT, (int64_t)v);
}

static int push_int32(struct machine *m, uint64_t v)
{
    return push_number(m, PICKLE_INT, (int32_t)(uint32_t)v);
}

static int protocol(struct machine *m, uint64_t v)
{
    return v <= 5 ? 0 : ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has protocol %llu", (unsigned long long)v);
}

static int frame(struct machine *m, uint64_t bytes_of)
{
    m->p->cut |= bytes_of > m->n - m->at;
    return m->p->cut ? pickle_read_fail(m, "it ends too early") : 0;
}

/* Of any protocol: they mean something, but not to us. */
static int none_of_ours(struct machine *m, char op)
{
    if (!op || !strchr("ILSTUFVgpdlio12P\x82\x83\x84\x92\x96\x97\x98", op))
        return ckpt_fail(m->e, CKPT_DAMAGED, "the pickle is broken at byte %zu: 0x%02x is no operation", m->at - 1,
                         (unsigned char)op);
    return ckpt_fail(m->e, CKPT_UNSUPPORTED, "the pickle has the operation 0x%02x at byte %zu", (unsigned char)op,
                     m->at - 1);
}

static int containers(struct machine *m, char op)
{
    switch (op) {
    case '(': return push_mark(m);
    case '}': return pickle_read_push(m, node(m, PICKLE_DICT));
    case ']': return pickle_read_push(m, node(m, PICKLE_LIST));
    case '\x8f': return pickle_read_push(m, node(m, PICKLE_SET));
    case ')': return pickle_read_push(m, node(m, PICKLE_TUPLE));
    case 't': return op_tuple(m);
    case '\x85': return push_short_tuple(m, 1);
    case '\x86': return push_short_tuple(m, 2);
    case '\x87': return push_short_tuple(m, 3);
    case 'a': return fill_last(m, 1, false);
    case 's': return fill_last(m, 2, true);
    case 'e':
    case '\x90': return fill_from_mark(m, false);
    case 'u': return fill_from_mark(m, true);
    case '\x91': return op_frozenset(m);
    default: return none_of_ours(m, op);
    }
}

static int one(struct machine *m, char op)
{
    switch (op) {
    case '\x80': return pickle_read_with_number(m, 1, protocol);
    case '\x95': return pickle_read_with_number(m, 8, frame);
    case 'N': return pickle_read_push(m, node(m, PICKLE_NONE));
    case '\x88': return push_number(m, PICKLE_BOOL, 1);
    case '\x89': return push_number(m, PICKLE_BOOL, 0);
    case 'J': return pickle_read_with_number(m, 4, push_int32);
    case 'K': return pickle_read_with_number(m, 1, push_unsigned);
    case 'M': return pickle_read_with_number(m, 2, push_unsigned);
    case '\x8a': return push_long(m, 1);
    case '\x8b': return push_long(m, 4);
    case 'G': return push_float(m);
    case '\x8c': return push_text(m, PICKLE_TEXT, 1);
    case 'X': return push_text(m, PICKLE_TEXT, 4);
    case '\x8d': return push_text(m, PICKLE_TEXT, 8);
    case 'C': return push_text(m, PICKLE_BYTES, 1);
    case 'B': return push_text(m, PICKLE_BYTES, 4);
    case '\x8e': return push_text(m, PICKLE_BYTES, 8);
    case 'c': return op_global(m);
    case '\x93': return op_stack_global(m);
    case 'R':
    case '\x81': return op_call(m);
    case 'b': return op_build(m);
    case 'Q': return op_persistent(m);
    case '\x94': return memo_put(m, m->memo_n);
    case 'q': return pickle_read_with_number(m, 1, memo_put);
    case 'r': return pickle_read_with_number(m, 4, memo_put);
    case 'h': return pickle_read_with_number(m, 1, memo_get);
    case 'j': return pickle_read_with_number(m, 4, memo_get);
    case '0': return op_pop(m);
    default: return containers(m, op);
    }
}

int pickle_read(struct pickle *p, struct el_mem *mem, const char *in, size_t n, struct el_err *e)
{
    *p = (struct pickle){.mem = mem};
    struct machine m = {.p = p, .in = in, .n = n, .e = e};
    int r = 0;
    while (!r) {
        const char *op = bytes(&m, 1);
        if (op && *op == '.')
            break;
        r = op ? one(&m, *op) : -1;
    }
    p->root = r ? NULL : pop(&m);
    p->used = m.at;
    el_free(mem, m.stack);
    el_free(mem, m.memo);
    return p->root ? 0 : -1;
}

void pickle_free(struct pickle *p)
{
    for (struct pickle_block *b = p->blocks, *next; b; b = next) {
        next = b->next;
        el_free(p->mem, b);
    }
    el_free(p->mem, p->persistent);
    *p = (struct pickle){0};
}

/* --- looking at it ------------------------------------------------------------------------------------------------ */

bool pickle_is_text(const struct pickle_node *x, const char *text)
{
    return x && x->kind == PICKLE_TEXT && x->text_n == strlen(text) && memcmp(x->text, text, x->text_n) == 0;
}

bool pickle_is_global(const struct pickle_node *x, const char *name)
{
    return x && x->kind == PICKLE_GLOBAL && strcmp(x->text, name) == 0;
}

/* Only this function counts, and a tree is one thread's. */
static bool searched_too_often(const struct pickle_node *x)
{
    struct pickle_node *counted = (struct pickle_node *)(uintptr_t)x;
    return x->items_n > PICKLE_SMALL_DICT && counted->searches++ >= PICKLE_SEARCHES_MAX;
}

struct pickle_node *pickle_get(const struct pickle_node *x, const char *key)
{
    for (int hop = 0; x && hop < 2; hop++, x = x->state) {
        bool dict = x->kind == PICKLE_DICT || (x->kind == PICKLE_CALL && x->pairs);
        if (dict && searched_too_often(x))
            return NULL;
        for (size_t i = 0; dict && i + 1 < x->items_n; i += 2)
            if (pickle_is_text(x->items[i], key))
                return x->items[i + 1];
    }
    return NULL;
}

struct pickle_node *pickle_item(const struct pickle_node *x, size_t i)
{
    bool list = x && (x->kind == PICKLE_TUPLE || x->kind == PICKLE_LIST || x->kind == PICKLE_SET);
    return list && i < x->items_n ? x->items[i] : NULL;
}

int pickle_sizes(const struct pickle_node *x, uint64_t *to, int most)
{
    if (x && x->kind == PICKLE_CALL && pickle_is_global(x->fn, "torch Size"))
        x = pickle_item(x->args, 0);
    if (!x || (x->kind != PICKLE_TUPLE && x->kind != PICKLE_LIST) || x->items_n > (size_t)most)
        return -1;
    for (size_t i = 0; i < x->items_n; i++) {
        const struct pickle_node *v = x->items[i];
        if (v->kind != PICKLE_INT || v->number < 0)
            return -1;
        to[i] = (uint64_t)v->number;
    }
    return (int)x->items_n;
}
