#include "ckpt/fmt.h"

#include <assert.h>
#include <string.h>

#include "ckpt/layout.h"
#include "util/parse.h"

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

/* Two members are of one set if their names are the same but for the numbers, and the totals are. */
static bool same_set(const char *a, const struct fmt_member *x, const char *b, const struct fmt_member *y)
{
    return x->n == y->n && x->number_at == y->number_at && memcmp(a, b, x->number_at) == 0 &&
           strcmp(a + x->end, b + y->end) == 0;
}

bool fmt_missing(const char *const *names, size_t n, size_t of, uint64_t *missing)
{
    struct fmt_member set, m;
    if (!fmt_member(names[of], &set))
        return false;
    for (uint64_t want = set.first; want < set.n + set.first; want++) {
        bool there = false;
        for (size_t i = 0; i < n && !there; i++)
            there = fmt_member(names[i], &m) && m.i == want && same_set(names[of], &set, names[i], &m);
        if (!there) {
            *missing = want;
            return true;
        }
    }
    return false;
}
