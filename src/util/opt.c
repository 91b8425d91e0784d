#include "util/opt.h"

#include "util/env.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"
#include "util/time.h"

#define NAME_MAX_BYTES 64

/* One parse under way. */
struct opt_scan {
    const struct opt_table *t;
    char *target;
    struct opt_result *result;
    struct el_err *e;
    int argc, at; /* at: the word that is read next */
    char **argv;
};

enum { FROM_DEFAULT, FROM_ENV, FROM_ARGV };

/* --- names -------------------------------------------------------------------------------------------------------- */

/* The option's name as the rows spell it, out of "name" or "name=value"; -1 if no row can be that long. */
static int normal_name(const char *word, char name[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (; word[n] && word[n] != '='; n++) {
        if (n == NAME_MAX_BYTES - 1)
            return -1;
        name[n] = word[n] == '_' ? '-' : word[n];
    }
    name[n] = 0;
    return 0;
}

const struct opt_row *opt_find(const struct opt_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return &t->rows[i];
    return NULL;
}

static const struct opt_row *find_letter(const struct opt_table *t, char letter)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].letter && t->rows[i].letter == letter)
            return &t->rows[i];
    return NULL;
}

static const char *row_name(const void *ctx, size_t i)
{
    const struct opt_table *t = ctx;
    return t->rows[i].name;
}

static const char *row_arg_text(const struct opt_row *row)
{
    return row->arg ? row->arg : "";
}

/* word is as typed, with its dashes. */
static int fail_unknown(const struct opt_scan *s, const char *word)
{
    char shown[EL_SHOW_MAX], name[NAME_MAX_BYTES];
    el_show(word, shown);
    for (size_t i = 0; i < s->t->hints_count; i++)
        if (strcmp(word, s->t->hints[i].wrong) == 0)
            return el_fail(s->e, EL_EXIT_USAGE, "unknown option %s; did you mean %s?", shown, s->t->hints[i].right);
    const char *near = NULL;
    if (word[1] == '-' && normal_name(word + 2, name) == 0)
        near = opt_nearest(name, row_name, s->t, s->t->n);
    else if (word[1] && word[2] && normal_name(word + 1, name) == 0 && opt_find(s->t, name))
        near = opt_find(s->t, name)->name; /* -nnodes */
    if (near)
        return el_fail(s->e, EL_EXIT_USAGE, "unknown option %s; did you mean --%s?", shown, near);
    return el_fail(s->e, EL_EXIT_USAGE, "unknown option %s", shown);
}

static int fail_ambiguous(const struct opt_scan *s, const char *name)
{
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < s->t->n; i++) {
        const struct opt_row *row = &s->t->rows[i];
        if (row->origin != OPT_TORCHRUN || strncmp(row->name, name, strlen(name)) != 0)
            continue;
        int n = snprintf(list + used, sizeof list - used, "%s--%s", used ? ", " : "", row->name);
        if (n < 0 || (size_t)n >= sizeof list - used)
            break;
        used += (size_t)n;
    }
    return el_fail(s->e, EL_EXIT_USAGE, "--%s is ambiguous: it could be %.*s", name, (int)used, list);
}

/* The row that "--name[=value]" means, or NULL and an error. */
static const struct opt_row *find_long(const struct opt_scan *s, const char *word)
{
    char name[NAME_MAX_BYTES];
    const struct opt_row *found = NULL;
    if (normal_name(word + 2, name) || !name[0])
        return fail_unknown(s, word), NULL;
    found = opt_find(s->t, name);
    if (found)
        return found;
    for (size_t i = 0; i < s->t->n; i++) {
        const struct opt_row *row = &s->t->rows[i];
        if (row->origin != OPT_TORCHRUN || strncmp(row->name, name, strlen(name)) != 0)
            continue;
        if (found)
            return fail_ambiguous(s, name), NULL;
        found = row;
    }
    if (!found)
        fail_unknown(s, word);
    return found;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

int opt_choice(const char *choices, const char *s, size_t n)
{
    for (int i = 0;; i++) {
        const char *end = strchr(choices, '|');
        size_t length = end ? (size_t)(end - choices) : strlen(choices);
        if (length == n && memcmp(choices, s, n) == 0)
            return i;
        if (!end)
            return -1;
        choices = end + 1;
    }
}

/* "a, b or c" */
static void choices_in_words(const char *choices, char *out, size_t size)
{
    size_t used = 0;
    for (const char *p = choices; *p && used + 6 < size; p++) {
        if (*p != '|') {
            out[used++] = *p;
            continue;
        }
        const char *glue = strchr(p + 1, '|') ? ", " : " or ";
        memcpy(out + used, glue, strlen(glue));
        used += strlen(glue);
    }
    out[used] = 0;
}

static void span_in_words(uint64_t usec, char *out, size_t size)
{
    if (usec % 1000000 == 0)
        snprintf(out, size, "%llu", (unsigned long long)(usec / 1000000));
    else
        snprintf(out, size, "%llu.%06llu", (unsigned long long)(usec / 1000000), (unsigned long long)(usec % 1000000));
}

static int set_uint(const struct opt_row *row, void *at, const char *value, struct el_err *e)
{
    uint64_t v;
    assert(row->max <= UINT32_MAX);
    if (el_parse_u64(value, &v) || v < row->min || v > row->max)
        return row->max == UINT32_MAX
                   ? el_fail(e, EL_EXIT_USAGE, "want a whole number, %llu or more", (unsigned long long)row->min)
                   : el_fail(e, EL_EXIT_USAGE, "want a whole number from %llu to %llu", (unsigned long long)row->min,
                             (unsigned long long)row->max);
    if (at)
        *(unsigned *)at = (unsigned)v;
    return 0;
}

static int set_duration(const struct opt_row *row, void *at, const char *value, struct el_err *e)
{
    el_usec v;
    char min[32], max[32];
    span_in_words(row->min, min, sizeof min);
    span_in_words(row->max, max, sizeof max);
    if (el_parse_duration(value, &v))
        return el_fail(e, EL_EXIT_USAGE,
                       "want a time in seconds, such as 30 or 0.5, or with a unit, such as 500ms or 5m");
    if (v < row->min || v > row->max)
        return el_fail(e, EL_EXIT_USAGE, "want a time from %s to %s seconds", min, max);
    if (at)
        *(el_usec *)at = v;
    return 0;
}

static int set_choice(const struct opt_row *row, void *at, const char *value, struct el_err *e)
{
    char words[128];
    assert(row->choices && value);
    int which = opt_choice(row->choices, value, strlen(value));
    if (which < 0) {
        choices_in_words(row->choices, words, sizeof words);
        return el_fail(e, EL_EXIT_USAGE, "want %s", words);
    }
    if (at)
        *(int *)at = which;
    return 0;
}

/* value: NULL for a row that takes none. */
static int convert(const struct opt_scan *s, const struct opt_row *row, const char *value)
{
    void *at = row->offset == OPT_NOWHERE ? NULL : s->target + row->offset;
    assert((value != NULL) == (row->arg != NULL));
    switch (row->type) {
    case OPT_FLAG:
        if (at)
            *(bool *)at = true;
        return 0;
    case OPT_COUNT:
        if (at && *(unsigned *)at < 100)
            ++*(unsigned *)at;
        return 0;
    case OPT_PATH:
        if (!*value)
            return el_fail(s->e, EL_EXIT_USAGE, "want the name of a file or folder");
        /* fall through */
    case OPT_STRING:
    case OPT_STOP:
        if (at)
            *(const char **)at = value;
        return 0;
    case OPT_UINT: return set_uint(row, at, value, s->e);
    case OPT_DURATION: return set_duration(row, at, value, s->e);
    case OPT_CHOICE: return set_choice(row, at, value, s->e);
    case OPT_CUSTOM: return row->set(s->target, value, s->e);
    }
    return el_fail(s->e, EL_EXIT_SOFTWARE, "a row of an unknown type");
}

static int apply(const struct opt_scan *s, const struct opt_row *row, const char *value, int from)
{
    s->result->seen[row - s->t->rows] = (unsigned char)from;
    return convert(s, row, value);
}

/* --- command line ------------------------------------------------------------------------------------------------- */

/* A word that cannot be meant as a value: it begins as an option does.  "-", negative numbers and words with a space
 * can. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.' && !strchr(word, ' ');
}

static int fail_no_value(const struct opt_scan *s, const struct opt_row *row)
{
    char shown[EL_SHOW_MAX];
    if (s->at >= s->argc)
        return el_fail(s->e, EL_EXIT_USAGE, "--%s needs a value: --%s=%s", row->name, row->name, row_arg_text(row));
    return el_fail(s->e, EL_EXIT_USAGE, "--%s needs a value before %s: --%s=%s", row->name,
                   el_show(s->argv[s->at], shown), row->name, row_arg_text(row));
}

/* inline_value: what stands behind "=" or behind the letter, NULL if nothing does. */
static int opt_take(struct opt_scan *s, const struct opt_row *row, const char *inline_value)
{
    char shown[EL_SHOW_MAX];
    const char *value = inline_value;
    if (!row->arg && value)
        return el_fail(s->e, EL_EXIT_USAGE, "--%s takes no value, but was given \"%s\"", row->name,
                       el_show(value, shown));
    if (row->arg && !value) {
        if (s->at >= s->argc || looks_like_option(s->argv[s->at]))
            return fail_no_value(s, row);
        value = s->argv[s->at++];
    }
    if (apply(s, row, value, FROM_ARGV))
        return value ? el_prefix(s->e, "--%s=%s", row->name, el_show(value, shown))
                     : el_prefix(s->e, "--%s", row->name);
    if (row->type == OPT_STOP)
        s->result->stop = row;
    return 0;
}

/* "-r3", "-r=3", "-r" "3", "-qv" */
static int take_letters(struct opt_scan *s, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        const struct opt_row *row = find_letter(s->t, *p);
        if (!row)
            return fail_unknown(s, word);
        const char *rest = p[1] == '=' ? p + 2 : p[1] && row->arg ? p + 1 : NULL;
        if (opt_take(s, row, rest))
            return -1;
        if (rest || row->arg)
            return 0;
    }
    return 0;
}

/* An operand between options goes behind all words that are not looked at yet, and the others that did. */
static void opt_put_off(struct opt_scan *s, int all)
{
    char *word = s->argv[s->at];
    memmove(&s->argv[s->at], &s->argv[s->at + 1], (size_t)(all - s->at - 1) * sizeof word);
    s->argv[all - 1] = word;
    s->argc--;
}

/* Those come first again: what is left are operands, too. */
static void put_back(struct opt_scan *s, int all)
{
    for (; s->argc < all; s->argc++) {
        char *last = s->argv[all - 1];
        memmove(&s->argv[s->at + 1], &s->argv[s->at], (size_t)(all - s->at - 1) * sizeof last);
        s->argv[s->at] = last;
    }
}

static int opt_take_words(struct opt_scan *s)
{
    int all = s->argc;
    while (s->at < s->argc && !s->result->stop) {
        const char *word = s->argv[s->at];
        if (!looks_like_option(word) && !s->t->foreign) {
            opt_put_off(s, all);
            continue;
        }
        if (word[0] != '-' || !word[1])
            return 0;
        s->at++;
        if (word[1] != '-') {
            if (take_letters(s, word))
                return -1;
            continue;
        }
        if (!word[2]) { /* "--" */
            put_back(s, all);
            return 0;
        }
        const struct opt_row *row = find_long(s, word);
        const char *equals = strchr(word, '=');
        if (!row || opt_take(s, row, equals ? equals + 1 : NULL))
            return -1;
    }
    return 0;
}

/* --- environment and defaults ------------------------------------------------------------------------------------- */

static int take_flag_from_env(const struct opt_scan *s, const struct opt_row *row, const char *value)
{
    int64_t number;
    if (el_parse_i64(value, &number))
        return el_fail(s->e, EL_EXIT_USAGE, "want 1 or 0");
    return number ? apply(s, row, NULL, FROM_ENV) : 0;
}

static int take_env(const struct opt_scan *s, const struct opt_row *row, const char *name, const char *value)
{
    char shown[EL_SHOW_MAX];
    int failed = row->arg ? apply(s, row, value, FROM_ENV) : take_flag_from_env(s, row, value);
    return failed ? el_prefix(s->e, "%s=%s", name, el_show(value, shown)) : 0;
}

static int take_rest(const struct opt_scan *s, char **env)
{
    for (size_t i = 0; i < s->t->n; i++) {
        const struct opt_row *row = &s->t->rows[i];
        if (s->result->seen[i] != FROM_DEFAULT || row->type == OPT_STOP)
            continue;
        const char *name = row->env, *value = name ? env_get(env, name) : NULL;
        if (!value && row->env_other)
            value = env_get(env, name = row->env_other);
        if (value && (*value || row->type != OPT_PATH)) {
            if (take_env(s, row, name, value))
                return -1;
        } else if (row->def) {
            int failed = apply(s, row, row->def, FROM_DEFAULT);
            assert(!failed); /* a unit test parses all defaults */
            (void)failed;
        }
    }
    return 0;
}

int opt_parse(const struct opt_table *t, int argc, char **argv, char **env, void *target, struct opt_result *result,
              struct el_err *e)
{
    struct opt_scan s = {.t = t, .target = target, .result = result, .e = e, .argc = argc, .argv = argv};
    assert(t->n <= OPT_ROWS_MAX && argc >= 0);
    memset(result, 0, sizeof *result);
    if (opt_take_words(&s))
        return -1;
    result->next = s.at;
    return result->stop ? 0 : take_rest(&s, env);
}

/* --- did you mean ------------------------------------------------------------------------------------------------- */

static unsigned opt_least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned opt_distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_BYTES], *two = rows[0], *one = rows[1], *now = rows[2];
    size_t m = strlen(a), n = strlen(b);
    if (m >= NAME_MAX_BYTES || n >= NAME_MAX_BYTES)
        return UINT32_MAX;
    for (unsigned j = 0; j <= n; j++)
        one[j] = two[j] = j;
    for (unsigned i = 1; i <= m; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            unsigned differ = a[i - 1] != b[j - 1];
            now[j] = opt_least(one[j] + 1, now[j - 1] + 1, one[j - 1] + differ);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < now[j])
                now[j] = two[j - 2] + 1;
        }
        unsigned *spare = two;
        two = one;
        one = now;
        now = spare;
    }
    return one[n];
}

const char *opt_nearest(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n)
{
    const char *best = NULL, *longer = NULL;
    size_t length = strlen(word);
    /* A third of the letters may be wrong: "nprc" is not "role", and a word of two letters is near to nothing. */
    unsigned best_distance = length < 3 ? 1 : (unsigned)length / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        const char *candidate = name(ctx, i);
        unsigned distance = opt_distance(word, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
        if (!longer && length >= 2 && strncmp(candidate, word, length) == 0)
            longer = candidate;
    }
    return best ? best : longer;
}
