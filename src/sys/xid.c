#include "sys/xid.h"

#include <assert.h>
#include <string.h>

#include "util/text.h"
#include "util/array.h"
#include "util/sort.h"

static const struct xid rows[] = {
#define X(number, action, meaning) {number, XID_##action, meaning},
    XID_LIST(X)
#undef X
};

static const struct {
    bool suspect;
    const char *advice;
} actions[] = {
#define X(name, suspect, advice) {suspect, advice},
    XID_ACTION_LIST(X)
#undef X
};

static int xid_with_number(const void *row, const void *number)
{
    unsigned a = ((const struct xid *)row)->number, b = *(const unsigned *)number;
    return (a > b) - (a < b);
}

const struct xid *xid_of(unsigned number)
{
    size_t i = el_first(rows, COUNT_OF(rows), sizeof *rows, &number, xid_with_number); /* ascending: a test looks */
    return i < COUNT_OF(rows) && rows[i].number == number ? &rows[i] : NULL;
}

bool xid_is_suspect(unsigned number)
{
    const struct xid *x = xid_of(number);
    return x && actions[x->action].suspect;
}

const char *xid_meaning(unsigned number)
{
    const struct xid *x = xid_of(number);
    return x ? x->meaning : "";
}

const char *xid_advice(unsigned number)
{
    const struct xid *x = xid_of(number);
    return x ? actions[x->action].advice : "";
}

static struct text behind(struct text t, const char *at)
{
    assert(at >= t.p && at <= t.p + t.n);
    return (struct text){at, t.n - (size_t)(at - t.p)};
}

/* The decimal number at the start of t, which must end there; at most seven digits. */
static bool xid_take_number(struct text *t, unsigned *out)
{
    unsigned value = 0;
    size_t i = 0;
    for (; i < t->n && i < 8 && t->p[i] >= '0' && t->p[i] <= '9'; i++)
        value = value * 10 + (unsigned)(t->p[i] - '0');
    if (!i || i == 8)
        return false;
    *out = value;
    *t = behind(*t, t->p + i);
    return true;
}

static bool is_address(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
}

/* "0000:05:00" at the start of t; false if it is none. */
static bool take_gpu(struct text *t, char gpu[static 20])
{
    size_t i = 0, colons = 0;
    while (i < t->n && is_address(t->p[i]))
        colons += t->p[i++] == ':';
    if (!colons || i < 5 || i > 16)
        return false;
    memcpy(gpu, t->p, i);
    gpu[i] = 0;
    *t = behind(*t, t->p + i);
    return true;
}

/* ", pid=1234, name=python3" or ", pid='<unknown>'": the first is a number. */
static int pid_in(struct text t)
{
    static const char key[] = "pid=";
    const char *at = text_find(t, key);
    unsigned pid = 0;
    if (!at)
        return 0;
    t = behind(t, at + sizeof key - 1);
    if (t.n && t.p[0] == '\'')
        t = behind(t, t.p + 1);
    return xid_take_number(&t, &pid) ? (int)pid : 0;
}

/* Numbers that report good news too. */
static bool is_fault(unsigned number, struct text rest)
{
    if (number >= 144 && number <= 150)
        return !text_find(rest, "Nonfatal");
    if (number == 154)
        return !text_find(rest, "to 0x0 (None)");
    return true;
}

/* "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus." and its form of three lines have no number. */
static bool parse_fallen(struct text line, struct xid_event *e)
{
    const char *at = text_find(line, "NVRM: ");
    if (!at || !text_find(line, "fallen off the bus"))
        return false;
    struct text rest = behind(line, at + 6);
    at = text_find(rest, "GPU ");
    if (at && (size_t)(at - rest.p) + 4 < rest.n) {
        rest = behind(rest, at + 4);
        take_gpu(&rest, e->gpu);
    }
    e->number = 79;
    return true;
}

bool xid_parse(const char *bytes, size_t n, struct xid_event *e)
{
    struct text line = {bytes, n};
    *e = (struct xid_event){.size = n};
    const char *at = text_find(line, "Xid (");
    if (!at || (at > bytes && at[-1] != ' '))
        return parse_fallen(line, e);
    struct text rest = behind(line, at + 5);
    if (text_starts(rest, "PCI:"))
        rest = behind(rest, rest.p + 4);
    if (!take_gpu(&rest, e->gpu))
        return false;
    if (rest.n >= 2 && rest.p[0] == '.') /* some drivers name the function too */
        rest = behind(rest, rest.p + 2);
    if (!text_starts(rest, "): "))
        return false;
    rest = behind(rest, rest.p + 3);
    if (!xid_take_number(&rest, &e->number) || !is_fault(e->number, rest))
        return false;
    e->pid = pid_in(rest);
    /* Of a consequence that names its cause, the cause. */
    static const char earlier[] = "caused by previous Xid ";
    if ((at = text_find(rest, earlier)) != NULL) {
        unsigned number;
        rest = behind(rest, at + sizeof earlier - 1);
        if (xid_take_number(&rest, &number))
            e->number = number;
    }
    return true;
}

/* An unknown number may be a fault that is younger than the table: worth showing, never worth suspecting. */
static int gravity(unsigned number)
{
    const struct xid *x = xid_of(number);
    return x ? (int)x->action : (int)XID_FOLLOW;
}

bool xid_find(const char *bytes, size_t n, struct xid_event *e)
{
    struct text rest = {bytes, n}, line;
    bool found = false;
    while (text_line(&rest, &line)) {
        struct xid_event one;
        if (!xid_parse(line.p, line.n, &one) || (found && gravity(one.number) <= gravity(e->number)))
            continue;
        *e = one;
        e->start = (size_t)(line.p - bytes);
        found = true;
    }
    return found;
}
