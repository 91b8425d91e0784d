/* As many files as there were ranks: names say which rank wrote a file, and what is in the files how many there were.
 */
#include <stdio.h>
#include <string.h>

#include "ckpt/verify_private.h"
#include "util/parse.h"
#include "util/sort.h"

enum { TOLD_MAX = 20, RANKS_MAX = 100000 };

static bool verify_counts_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *verify_counts_last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* What the files of one folder have and say. */
struct shards {
    size_t first, end; /* names of the look */
    size_t folder_n;   /* bytes of its name, with the slash */
    size_t optimizers, parameters, models;
    uint64_t data, model, stage; /* how many ranks there were */
    bool universal;              /* divided anew: each parameter has a folder */
};

static int verify_counts_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "bf16_zero_…" or "zero_…", as those that are there are called. */
static void shard_name(const struct inspect *l, const struct shards *s, enum shard_kind kind, uint64_t data,
                       uint64_t model, char out[CKPT_PATH_MAX])
{
    const char *prefix = "";
    int prefix_n = 0;
    uint64_t x, y;
    for (size_t i = s->first; i < s->end && kind != SHARD_MODEL && !prefix_n; i++)
        if (rank_files_shard(l->names[i], &x, &y) == kind) {
            prefix = verify_counts_last_part(l->names[i]);
            prefix_n = (int)(strstr(prefix, "zero_pp_rank_") - prefix);
            break;
        }
    if (kind == SHARD_MODEL)
        snprintf(out, CKPT_PATH_MAX, "%.*smp_rank_%02llu_model_states.pt", (int)s->folder_n, l->names[s->first],
                 (unsigned long long)model);
    else
        snprintf(out, CKPT_PATH_MAX, "%.*s%.*szero_pp_rank_%llu_mp_rank_%02llu_%s_states.pt", (int)s->folder_n,
                 l->names[s->first], prefix_n, prefix, (unsigned long long)data, (unsigned long long)model,
                 kind == SHARD_OPTIMIZER ? "optim" : "model");
}

static void check_kind(struct verify *v, const struct inspect *l, const struct shards *s, enum shard_kind kind)
{
    char path[CKPT_PATH_MAX], text[200];
    uint64_t data = kind == SHARD_MODEL ? 1 : s->data;
    unsigned told = 0;
    for (uint64_t m = 0; m < s->model; m++)
        for (uint64_t d = 0; d < data && told < TOLD_MAX; d++) {
            shard_name(l, s, kind, d, m, path);
            if (inspect_find(l, path) != SIZE_MAX)
                continue;
            snprintf(text, sizeof text, "it is missing: there were %llu data parallel ranks and %llu of the model",
                     (unsigned long long)s->data, (unsigned long long)s->model);
            verify_find(v, CKPT_INCOMPLETE, path, text);
            told++;
        }
}

/* Files of another world beside them are what another run has left. */
static void verify_counts_check_worlds(struct verify *v, const struct inspect *l, const struct shards *s)
{
    uint64_t data, model, partitions = 0;
    for (size_t i = s->first; i < s->end; i++) {
        const struct fmt_counts *c = &v->counts[i];
        if (rank_files_shard(l->names[i], &data, &model) != SHARD_OPTIMIZER || !c->partitions)
            continue;
        if (partitions && c->partitions != partitions) {
            verify_find(v, CKPT_DAMAGED, l->names[i], "it is of another world size than its neighbours");
            return;
        }
        partitions = c->partitions;
    }
}

static void verify_counts_check_shards(struct verify *v, const struct inspect *l, const struct shards *s)
{
    char folder[CKPT_PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(s->folder_n ? s->folder_n - 1 : 0), l->names[s->first]);
    if (s->data > RANKS_MAX || s->model > RANKS_MAX || s->data * s->model > RANKS_MAX) {
        verify_find(v, CKPT_UNSUPPORTED, folder, "it is of more than 100000 ranks, which are not checked");
        return;
    }
    verify_counts_check_worlds(v, l, s);
    if (s->models || (s->optimizers && !s->parameters && s->stage < 3))
        check_kind(v, l, s, SHARD_MODEL);
    if (s->parameters || s->stage >= 3)
        check_kind(v, l, s, SHARD_PARAMETERS);
    if (s->optimizers || (s->stage && !s->universal))
        check_kind(v, l, s, SHARD_OPTIMIZER);
}

static void see_shard(const struct verify *v, const struct inspect *l, size_t i, struct shards *s)
{
    const struct fmt_counts *c = &v->counts[i];
    uint64_t data, model;
    enum shard_kind kind = rank_files_shard(l->names[i], &data, &model);
    if (kind == SHARD_NONE)
        return;
    s->optimizers += kind == SHARD_OPTIMIZER;
    s->parameters += kind == SHARD_PARAMETERS;
    s->models += kind == SHARD_MODEL;
    uint64_t ranks = c->data_ranks ? c->data_ranks : c->partitions;
    ranks = data + 1 > ranks ? data + 1 : ranks;
    s->data = ranks > s->data ? ranks : s->data;
    ranks = model + 1 > c->model_ranks ? model + 1 : c->model_ranks;
    s->model = ranks > s->model ? ranks : s->model;
    s->stage = c->zero_stage > s->stage ? c->zero_stage : s->stage;
}

static size_t folder_of(const char *name)
{
    return (size_t)(verify_counts_last_part(name) - name);
}

static bool has_below(const struct inspect *l, const char *folder, size_t n, const char *name)
{
    char path[CKPT_PATH_MAX];
    const char *key = path;
    if (snprintf(path, sizeof path, "%.*s%s/", (int)n, folder, name) >= (int)sizeof path)
        return false;
    size_t i = el_first(l->names, l->n, sizeof *l->names, &key, verify_counts_by_text);
    return i < l->n && verify_counts_starts(l->names[i], path);
}

/* Each folder that has such files.  Names are sorted, so what lies in a folder lies together, but for its folders. */
static void check_deepspeed(struct verify *v, const struct inspect *l)
{
    uint64_t data, model;
    for (size_t i = 0; i < l->n; i++) {
        size_t n = folder_of(l->names[i]);
        if (rank_files_shard(l->names[i], &data, &model) == SHARD_NONE)
            continue;
        struct shards s = {.first = i, .folder_n = n, .universal = has_below(l, l->names[i], n, "zero")};
        size_t last = i;
        for (size_t k = i; k < l->n && strncmp(l->names[k], l->names[i], n) == 0; k++)
            if (folder_of(l->names[k]) == n) {
                see_shard(v, l, k, &s);
                last = k;
            }
        s.end = last + 1;
        verify_counts_check_shards(v, l, &s);
        i = last;
    }
}

/* --- numbers of ranks --------------------------------------------------------------------------------------------- */

/* How many ranks there were, by what is in the files; 0: they do not say.  each: and that each of them wrote one; else
 * rank 0 may have written for all. */
static uint64_t world_of(const struct verify *v, const struct rank_files *set, size_t n, bool *each)
{
    uint64_t world = 0;
    *each = n > 1 || set[0].number > 0;
    for (size_t i = 0; i < n && set[i].whole; i++) {
        const struct fmt_counts *c = &v->counts[set[i].of];
        *each = *each || c->rank;
        world = c->world > world ? c->world : world;
    }
    return world <= RANKS_MAX ? world : 0;
}

/* A file of rank 0 that knows of more ranks, and is the only one: neither other checkpoints nor a manifest, which were
 * written by the same, can say whether the rest is missing. */
static void verify_counts_emit_alone(struct verify *v, const char *name, uint64_t world)
{
    char text[200];
    snprintf(text, sizeof text,
             "complete cannot be proved: it says that there were %llu ranks, and no file of another rank is beside it",
             (unsigned long long)world);
    verify_find(v, CKPT_UNSUPPORTED, name, text);
    v->alone++;
}

/* The random numbers of ranks, of which a Trainer's arguments or what DeepSpeed writes say how many there were:
 * check_random(). */
static uint64_t told_ranks(const struct verify *v, const struct inspect *l, size_t *says)
{
    uint64_t ranks = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct fmt_counts *c = &v->counts[i];
        uint64_t told = c->processes > c->data_ranks ? c->processes : c->data_ranks;
        *says = told > ranks ? i : *says;
        ranks = told > ranks ? told : ranks;
    }
    return ranks;
}

/* "the file of rank 1 beside it is missing", "the files of ranks 1 and 3 beside it are missing", and why. */
static void tell_ranks(struct verify *v, const char *name, const struct fmt_missing *m, const char *why)
{
    char text[400], numbers[FMT_MISSING_TEXT];
    bool one = m->n == 1;
    snprintf(text, sizeof text, "the file%s of rank%s %s beside it %s missing: %s", one ? "" : "s", one ? "" : "s",
             fmt_missing_put(m, numbers), one ? "is" : "are", why);
    verify_find(v, CKPT_INCOMPLETE, name, text);
}

/* Ranks are counted from 0: a number that is missing below the highest is a file that is, and so is one below the
 * number of ranks that the others tell. */
static void check_set(struct verify *v, const struct rank_files *set, size_t n, struct rank_set *s)
{
    char why[160];
    bool each;
    struct fmt_missing gaps = {0};
    uint64_t most = s->most, told = world_of(v, set, n, &each), world = each || told == 1 ? told : 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        fmt_missing_add(&gaps, next, set[i].number);
        next = set[i].number + 1;
    }
    bool inner = gaps.n, half = s->n >= 2 && 2 * s->n >= most + 1;
    s->counted = s->counted || world;
    /* "tp2" without a "tp0" is the model of two ranks; one file alone with the number 1 is that of the second rank. */
    bool variant = set[0].from0 && !s->zero, second = s->n == 1 && most == 1 && !variant;
    s->uncounted = !world && !set[0].sure && (!inner || !variant);
    if (world > next)
        fmt_missing_add(&gaps, next, world);
    why[0] = 0;
    if (inner && (set[0].sure || (half && !variant) || second || world > most)) {
        snprintf(why, sizeof why, "there is one of rank %llu", (unsigned long long)most);
    } else if (!inner && world > s->n) {
        snprintf(why, sizeof why, "there were %llu ranks, as it says", (unsigned long long)world);
    } else if (!inner && set[0].meta && (s->n & (s->n - 1))) {
        snprintf(why, sizeof why, "there are %llu, and their number must be a power of 2", (unsigned long long)s->n);
        fmt_missing_add(&gaps, next, next + 1);
    }
    if (*why)
        tell_ranks(v, s->name, &gaps, why);
    else if (told > 1 && !each)
        verify_counts_emit_alone(v, s->name, told);
}

static void check_numbers(struct verify *v, const struct inspect *l)
{
    struct rank_files *all = NULL;
    struct el_err e = {0};
    size_t n = 0, says = 0;
    unsigned told = 0;
    bool random = told_ranks(v, l, &says) > 0;
    int r = rank_files_list((const char *const *)l->names, l->n, v->mem, &all, &n, &e);
    v->sets = (struct rank_sets){.v = r ? NULL : el_alloc(v->mem, n * sizeof *v->sets.v)};
    if (!v->sets.v)
        verify_find(v, EL_EXIT_OSERR, "", "out of memory");
    for (size_t i = 0, first; v->sets.v && i < n && told < TOLD_MAX;) {
        struct rank_set *s = &v->sets.v[v->sets.n++];
        first = i;
        i = rank_files_set(all, n, i, s);
        s->counted = random && all[first].sure && all[first].whole;
        size_t before = v->findings_n;
        check_set(v, &all[first], i - first, s);
        told += v->findings_n > before;
        if (s->uncounted && !v->uncounted)
            snprintf(v->uncounted_like, sizeof v->uncounted_like, "%s", s->name);
        v->uncounted += s->uncounted ? i - first : 0;
    }
    el_free(v->mem, all);
}

/* A Trainer's ranks keep the state of their random numbers; its arguments, and what DeepSpeed writes beside it, tell
 * how many there were. */
static void check_random(struct verify *v, const struct inspect *l)
{
    uint64_t n = 0, number;
    char why[160];
    struct fmt_missing missing = {0};
    size_t last = 0, says = 0;
    uint64_t ranks = told_ranks(v, l, &says);
    for (size_t i = 0; i < l->n; i++) {
        const char *at = l->names[i];
        if (!rank_files_take(&at, "rng_state_", &number) || strcmp(at, ".pth") != 0)
            continue;
        last = number >= n ? i : last;
        n = number >= n ? number + 1 : n;
    }
    if (!n || n >= ranks)
        return;
    fmt_missing_add(&missing, n, ranks);
    snprintf(why, sizeof why, "there were %llu ranks, as %.80s says", (unsigned long long)ranks,
             verify_counts_last_part(l->names[says]));
    tell_ranks(v, l->names[last], &missing, why);
}

/* --- hints ----------------------------------------------------------------------------------------------------------
 */

/* `latest` of DeepSpeed, wherever it lies, names a folder beside it. */
static void verify_counts_check_latest(struct verify *v, const struct inspect *l, const char *name)
{
    char *text, words[300], shown[EL_SHOW_MAX];
    size_t n, folder = folder_of(name);
    if (verify_read(l, name, CKPT_PATH_MAX, v->mem, &text, &n) < 0)
        return;
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
        text[--n] = 0;
    char path[CKPT_PATH_MAX];
    bool file = snprintf(path, sizeof path, "%.*s%s", (int)folder, name, text) < (int)sizeof path &&
                inspect_find(l, path) != SIZE_MAX;
    if (!n || ckpt_path_fault(text) || (!file && !has_below(l, name, folder, text))) {
        snprintf(words, sizeof words, n ? "it names \"%s\", which is not there" : "it is empty%s",
                 n ? el_show(text, shown) : "");
        verify_find(v, n ? CKPT_INCOMPLETE : CKPT_DAMAGED, name, words);
    }
    el_free(v->mem, text);
}

void verify_counts(struct verify *v, const struct inspect *l)
{
    if (l->one || l->format == CKPT_FORMAT_ELRUN)
        return;
    check_deepspeed(v, l);
    check_numbers(v, l);
    check_random(v, l);
    verify_folders(v, l);
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(verify_counts_last_part(l->names[i]), CKPT_LATEST_FILE) == 0)
            verify_counts_check_latest(v, l, l->names[i]);
}
