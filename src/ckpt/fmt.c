#include "ckpt/fmt.h"

#include <assert.h>
#include <string.h>

#include "ckpt/layout.h"
#include "util/parse.h"
#include "util/sort.h"

const char *ckpt_format_word(enum ckpt_format f)
{
    static const char *const words[CKPT_FORMATS_COUNT] = {
#define X(NAME, word) word,
        CKPT_FORMATS(X)
#undef X
    };
    assert(f < CKPT_FORMATS_COUNT);
    return words[f];
}

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);
    return n >= k && strcmp(s + n - k, with) == 0;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

enum fmt_kind fmt_kind(const char *name)
{
    static const char *const zips[] = {".pt", ".pth", ".ckpt", ".bin"};
    const char *last = last_part(name);
    if (ends(last, ".safetensors") || starts(last, "flat_param.") || starts(last, "optim_param.") ||
        strcmp(last, "buffers") == 0)
        return FMT_SAFETENSORS;
    if (ends(last, ".safetensors.index.json"))
        return FMT_INDEX;
    if (strcmp(last, ".metadata") == 0)
        return FMT_DCP_METADATA;
    if (ends(last, ".distcp"))
        return FMT_DCP_DATA;
    for (size_t i = 0; i < sizeof zips / sizeof zips[0]; i++)
        if (ends(last, zips[i]))
            return FMT_ZIP;
    return FMT_OTHER;
}

/* What is special is asked first: Megatron and ATorch keep their files in the formats of others. */
enum ckpt_format fmt_detect(const char *const *names, size_t n)
{
    bool dcp = false, st = false, sets = false, zip = false, atorch = false, megatron = false, common = false;
    for (size_t i = 0; i < n; i++) {
        enum fmt_kind kind = fmt_kind(names[i]);
        struct fmt_member m;
        dcp |= kind == FMT_DCP_METADATA || kind == FMT_DCP_DATA;
        st |= kind == FMT_SAFETENSORS;
        zip |= kind == FMT_ZIP;
        sets |= kind == FMT_INDEX || (kind == FMT_SAFETENSORS && fmt_member(names[i], &m));
        atorch |= starts(names[i], "flat_param.") || starts(names[i], "flat_meta.");
        megatron |= starts(names[i], "mp_rank_") || strcmp(names[i], "metadata.json") == 0;
        common |= strcmp(names[i], "common.pt") == 0 || starts(names[i], "mp_rank_");
    }
    return megatron && (dcp || common) ? CKPT_FORMAT_MEGATRON
           : atorch                    ? CKPT_FORMAT_ATORCH
           : dcp                       ? CKPT_FORMAT_DCP
           : sets                      ? CKPT_FORMAT_HF
           : st                        ? CKPT_FORMAT_SAFETENSORS
           : zip                       ? CKPT_FORMAT_TORCH
                                       : CKPT_FORMAT_NONE;
}

/* --- numbered sets ------------------------------------------------------------------------------------------------ */

static size_t digits(const char *s)
{
    size_t n = 0;
    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

bool fmt_member(const char *name, struct fmt_member *m)
{
    const char *last = last_part(name);
    bool flat = starts(last, "flat_param.") || starts(last, "flat_meta.") || starts(last, "optim_param.");
    const char *between = flat ? "-" : "-of-";
    for (const char *p = last; *p; p++) {
        size_t n = digits(p), k;
        if (!n || n > 9) {
            p += n ? n - 1 : 0;
            continue;
        }
        const char *second = p + n + strlen(between);
        if (strncmp(p + n, between, strlen(between)) != 0 || !(k = digits(second)) || k > 9) {
            p += n - 1;
            continue;
        }
        if (el_parse_u64n(p, n, &m->i) || el_parse_u64n(second, k, &m->n))
            return false;
        m->first = !flat;
        m->number_at = (size_t)(p - name);
        m->end = (size_t)(second + k - name);
        return m->n >= 1 && m->i >= m->first && m->i < m->n + m->first;
    }
    return false;
}

struct numbered {
    const char *name;
    struct fmt_member at;
};

/* Members of one set have the same name but for the numbers, and the same total; they stand together, in order. */
static int by_set(const struct numbered *x, const struct numbered *y)
{
    size_t p = x->at.number_at, q = y->at.number_at;
    int c = memcmp(x->name, y->name, p < q ? p : q);
    if (!c && p != q)
        c = p < q ? -1 : 1;
    if (!c)
        c = strcmp(x->name + x->at.end, y->name + y->at.end);
    return c ? c : x->at.n < y->at.n ? -1 : x->at.n > y->at.n;
}

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int c = by_set(x, y);
    if (!c)
        c = x->at.i < y->at.i ? -1 : x->at.i > y->at.i;
    return c ? c : strcmp(x->name, y->name);
}

int fmt_gaps(const char *const *names, size_t n, struct el_mem *mem, fmt_gap_fn *gap, void *arg, struct el_err *e)
{
    struct numbered *v = el_alloc(mem, n * sizeof *v);
    size_t members = 0;
    if (!v)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (fmt_member(names[i], &v[members].at))
            v[members++].name = names[i];
    el_sort(v, members, sizeof *v, by_number);
    for (size_t i = 0, first; i < members;) {
        uint64_t want = v[i].at.first;
        for (first = i; i < members && by_set(&v[i], &v[first]) == 0; i++)
            want += v[i].at.i == want;
        if (want < v[first].at.n + v[first].at.first)
            gap(arg, v[first].name, want, v[first].at.n);
    }
    el_free(mem, v);
    return 0;
}
