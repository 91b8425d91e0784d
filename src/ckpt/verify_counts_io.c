/* As many files as there were ranks: names say which rank wrote a file, and what is in the files how many there were.
 */
#include <stdio.h>
#include <string.h>

#include "ckpt/verify_private.h"
#include "util/parse.h"
#include "util/sort.h"

enum { TOLD_MAX = 20, RANKS_MAX = 100000 };

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* "words" and a number; *at moves behind it. */
static bool take(const char **at, const char *words, uint64_t *number)
{
    size_t n = 0;
    if (!starts(*at, words))
        return false;
    *at += strlen(words);
    while ((*at)[n] >= '0' && (*at)[n] <= '9')
        n++;
    if (!n || n > 6 || el_parse_u64n(*at, n, number))
        return false;
    *at += n;
    return true;
}

/* --- DeepSpeed ---------------------------------------------------------------------------------------------------- */

enum shard_kind { SHARD_NONE, SHARD_OPTIMIZER, SHARD_PARAMETERS, SHARD_MODEL };

/* zero_pp_rank_1_mp_rank_00_optim_states.pt: the optimizer of data rank 1; …_model_states.pt: its parameters, of ZeRO
 * stage 3; mp_rank_00_model_states.pt: what all data ranks have alike. */
static enum shard_kind shard_of(const char *name, uint64_t *data, uint64_t *model)
{
    const char *at = last_part(name), *zero = strstr(at, "zero_pp_rank_");
    *data = 0;
    if (zero && zero - at <= 5)
        at = zero;
    bool ranked = take(&at, "zero_pp_rank_", data);
    if (!take(&at, ranked ? "_mp_rank_" : "mp_rank_", model))
        return SHARD_NONE;
    if (strcmp(at, "_optim_states.pt") == 0)
        return ranked ? SHARD_OPTIMIZER : SHARD_NONE;
    return strcmp(at, "_model_states.pt") != 0 ? SHARD_NONE : ranked ? SHARD_PARAMETERS : SHARD_MODEL;
}

/* What the files of one folder have and say. */
struct shards {
    size_t first, end; /* names of the look */
    size_t folder_n;   /* bytes of its name, with the slash */
    size_t optimizers, parameters, models;
    uint64_t data, model, stage; /* how many ranks there were */
    bool universal;              /* divided anew: each parameter has a folder */
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "bf16_zero_…" or "zero_…", as those that are there are called. */
static void shard_name(const struct look *l, const struct shards *s, enum shard_kind kind, uint64_t data,
                       uint64_t model, char out[CKPT_PATH_MAX])
{
    const char *prefix = "";
    int prefix_n = 0;
    uint64_t x, y;
    for (size_t i = s->first; i < s->end && kind != SHARD_MODEL && !prefix_n; i++)
        if (shard_of(l->names[i], &x, &y) == kind) {
            prefix = last_part(l->names[i]);
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

static void check_kind(struct verify *v, const struct look *l, const struct shards *s, enum shard_kind kind)
{
    char path[CKPT_PATH_MAX], text[200];
    uint64_t data = kind == SHARD_MODEL ? 1 : s->data;
    unsigned told = 0;
    for (uint64_t m = 0; m < s->model; m++)
        for (uint64_t d = 0; d < data && told < TOLD_MAX; d++) {
            shard_name(l, s, kind, d, m, path);
            if (look_find(l, path) != SIZE_MAX)
                continue;
            snprintf(text, sizeof text, "it is missing: there were %llu data parallel ranks and %llu of the model",
                     (unsigned long long)s->data, (unsigned long long)s->model);
            verify_find(v, CKPT_INCOMPLETE, path, text);
            told++;
        }
}

/* Files of another world beside them are what another run has left. */
static void check_worlds(struct verify *v, const struct look *l, const struct shards *s)
{
    uint64_t data, model, partitions = 0;
    for (size_t i = s->first; i < s->end; i++) {
        const struct fmt_counts *c = &v->counts[i];
        if (shard_of(l->names[i], &data, &model) != SHARD_OPTIMIZER || !c->partitions)
            continue;
        if (partitions && c->partitions != partitions) {
            verify_find(v, CKPT_DAMAGED, l->names[i], "it is of another world size than its neighbours");
            return;
        }
        partitions = c->partitions;
    }
}

static void check_shards(struct verify *v, const struct look *l, const struct shards *s)
{
    char folder[CKPT_PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(s->folder_n ? s->folder_n - 1 : 0), l->names[s->first]);
    if (s->data > RANKS_MAX || s->model > RANKS_MAX || s->data * s->model > RANKS_MAX) {
        verify_find(v, CKPT_UNSUPPORTED, folder, "it is of more than 100000 ranks, which are not checked");
        return;
    }
    check_worlds(v, l, s);
    if (s->models || (s->optimizers && !s->parameters && s->stage < 3))
        check_kind(v, l, s, SHARD_MODEL);
    if (s->parameters || s->stage >= 3)
        check_kind(v, l, s, SHARD_PARAMETERS);
    if (s->optimizers || (s->stage && !s->universal))
        check_kind(v, l, s, SHARD_OPTIMIZER);
}

static void see_shard(const struct verify *v, const struct look *l, size_t i, struct shards *s)
{
    const struct fmt_counts *c = &v->counts[i];
    uint64_t data, model;
    enum shard_kind kind = shard_of(l->names[i], &data, &model);
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
    return (size_t)(last_part(name) - name);
}

static bool has_below(const struct look *l, const char *folder, size_t n, const char *name)
{
    char path[CKPT_PATH_MAX];
    const char *key = path;
    if (snprintf(path, sizeof path, "%.*s%s/", (int)n, folder, name) >= (int)sizeof path)
        return false;
    size_t i = el_first(l->names, l->n, sizeof *l->names, &key, by_text);
    return i < l->n && starts(l->names[i], path);
}

/* Each folder that has such files.  Names are sorted, so what lies in a folder lies together, but for its folders. */
static void check_deepspeed(struct verify *v, const struct look *l)
{
    uint64_t data, model;
    for (size_t i = 0; i < l->n; i++) {
        size_t n = folder_of(l->names[i]);
        if (shard_of(l->names[i], &data, &model) == SHARD_NONE)
            continue;
        struct shards s = {.first = i, .folder_n = n, .universal = has_below(l, l->names[i], n, "zero")};
        size_t last = i;
        for (size_t k = i; k < l->n && strncmp(l->names[k], l->names[i], n) == 0; k++)
            if (folder_of(l->names[k]) == n) {
                see_shard(v, l, k, &s);
                last = k;
            }
        s.end = last + 1;
        check_shards(v, l, &s);
        i = last;
    }
}

/* --- numbers of ranks ----------------------------------------------------------------------------------------------
 */

/* rng_state_3.pth, random_states_3.pkl, pytorch_model_fsdp_rank3.bin, consolidated.03.pth, model_tp3.pt; of DeepSpeed
 * layer_04-model_01-model_states.pt and layer_4_expert_7_mp_rank_00_model_states.pt. */
struct ranked {
    const char *name;
    size_t of;      /* the look's */
    size_t at, end; /* the number in it */
    uint64_t number;
    bool sure;
    bool whole; /* of all ranks, not only of those in one direction */
    bool meta;  /* consolidated.03.pth */
    bool from0; /* only where there is a number 0 */
};

/* The same kinds of parallel ranks, without the word. */
static const char *const directions[] = {"tp", "mp", "pp", "dp", "ep", "cp", "shard", "part"};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "tp3", "tp_3", "tp-3", behind anything but a letter. */
static bool take_direction(const char *name, const char *last, struct ranked *to)
{
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++) {
        size_t n = strlen(directions[i]);
        for (const char *at = strstr(last, directions[i]); at; at = strstr(at + 1, directions[i])) {
            const char *number = at + n + (at[n] == '_' || at[n] == '-'), *end = number;
            if ((at > last && is_letter(at[-1])) || !take(&end, "", &to->number) ||
                (*end != '.' && *end != '_' && *end != '-'))
                continue;
            to->at = (size_t)(number - name);
            to->end = (size_t)(end - name);
            to->from0 = true;
            return true;
        }
    }
    return false;
}

/* "tp_rank_3" is one of those in a direction, "local_rank_3" of a node: their number is not that of all. */
static bool is_of_some(const char *last, const char *rank)
{
    size_t n = (size_t)(rank - last);
    if (n && (rank[-1] == '_' || rank[-1] == '-'))
        n--;
    if (n >= 5 && (strncmp(last + n - 5, "local", 5) == 0))
        return true;
    if (n >= 4 && strncmp(last + n - 4, "node", 4) == 0)
        return true;
    return n >= 2 && last[n - 1] == 'p' && (n == 2 || !is_letter(last[n - 3]));
}

/* sure: nothing else is called so.  "rank" may also be that of a matrix: lora_rank_64.safetensors. */
static bool is_ranked(const char *name, struct ranked *to)
{
    static const struct {
        const char *begin, *words;
        bool sure, whole, meta;
    } kinds[] = {
        {"rng_state_", "rng_state_", true, true, false},
        {"random_states_", "random_states_", true, true, false},
        {"consolidated.", "consolidated.", true, false, true},
        {"", "expp_rank_", true, false, false},
        {"layer_", "_expert_", true, false, false},
        {"layer_", "-model_", true, false, false},
        {"", "rank", false, true, false},
        {"", "rank_", false, true, false},
        {"", "rank-", false, true, false},
    };
    const char *last = last_part(name);
    uint64_t data, model;
    *to = (struct ranked){.name = name};
    if (shard_of(name, &data, &model) != SHARD_NONE || starts(last, "mp_rank_"))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *at = starts(last, kinds[i].begin) ? strstr(last, kinds[i].words) : NULL, *end = at;
        if (!at || !take(&end, kinds[i].words, &to->number) || (*end != '.' && *end != '_' && *end != '-') ||
            (!kinds[i].sure && strstr(end, "rank")))
            continue;
        to->at = (size_t)(at - name) + strlen(kinds[i].words);
        to->end = (size_t)(end - name);
        to->sure = kinds[i].sure;
        to->whole = kinds[i].whole && !is_of_some(last, at);
        to->meta = kinds[i].meta;
        return true;
    }
    return take_direction(name, last, to);
}

/* Those whose names say how many there are have been looked at: fmt_gaps(). */
static bool is_counted(const struct ranked *x)
{
    struct fmt_member m;
    return fmt_member(x->name, &m) && m.number_at == x->at;
}

static int same_set(const struct ranked *x, const struct ranked *y)
{
    size_t n = x->at < y->at ? x->at : y->at;
    int c = memcmp(x->name, y->name, n);
    if (!c && x->at != y->at)
        c = x->at < y->at ? -1 : 1;
    return c ? c : strcmp(x->name + x->end, y->name + y->end);
}

static int by_set(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int c = same_set(x, y);
    return c ? c : x->number < y->number ? -1 : x->number > y->number;
}

/* How many ranks there were, by what is in the files; 0: they do not say. */
static uint64_t world_of(const struct verify *v, const struct ranked *set, size_t n)
{
    uint64_t world = 0;
    bool each = n > 1; /* one alone may have been written for all */
    for (size_t i = 0; i < n && set[i].whole; i++) {
        const struct fmt_counts *c = &v->counts[set[i].of];
        each = each || c->rank;
        world = c->world > world ? c->world : world;
    }
    return each && world <= RANKS_MAX ? world : 0;
}

/* Ranks are counted from 0: a number that is missing below the highest is a file that is, and so is one below the
 * number of ranks that the others tell. */
static bool is_uncounted(const struct ranked *set, size_t n, uint64_t world)
{
    bool one_of_more = n > 1 || set[0].from0; /* rank 0 alone may have written for all */
    return !world && !set[0].sure && one_of_more;
}

static void check_set(struct verify *v, const struct ranked *set, size_t n)
{
    char text[200];
    uint64_t most = set[n - 1].number, world = world_of(v, set, n), gap = 0;
    while (gap < n && set[gap].number == gap)
        gap++;
    bool inner = gap < n, half = n >= 2 && 2 * n >= most + 1;
    if (inner && (set[0].sure || (half && (!set[0].from0 || set[0].number == 0)) || world > most))
        snprintf(text, sizeof text, "the file of rank %llu beside it is missing: there is one of rank %llu",
                 (unsigned long long)gap, (unsigned long long)most);
    else if (!inner && world > n)
        snprintf(text, sizeof text, "the file of rank %llu beside it is missing: there were %llu ranks, as it says",
                 (unsigned long long)gap, (unsigned long long)world);
    else if (!inner && set[0].meta && (n & (n - 1)))
        snprintf(text, sizeof text,
                 "the file of rank %llu beside it is missing: there are %zu, and their number must be a power of 2",
                 (unsigned long long)gap, n);
    else {
        if (!inner && is_uncounted(set, n, world)) {
            if (!v->uncounted)
                snprintf(v->uncounted_like, sizeof v->uncounted_like, "%s", set[n - 1].name);
            v->uncounted += n;
        }
        return;
    }
    verify_find(v, CKPT_INCOMPLETE, set[n - 1].name, text);
}

static void check_numbers(struct verify *v, const struct look *l)
{
    struct ranked *all = el_alloc(v->mem, l->n * sizeof *all);
    size_t n = 0;
    unsigned told = 0;
    for (size_t i = 0; all && i < l->n; i++) {
        if (fmt_kind(l->names[i]) == FMT_LEFTOVER || !is_ranked(l->names[i], &all[n]) || is_counted(&all[n]))
            continue;
        all[n++].of = i;
    }
    el_sort(all, n, sizeof *all, by_set);
    for (size_t i = 0, first; i < n && told < TOLD_MAX;) {
        for (first = i; i < n && same_set(&all[i], &all[first]) == 0;)
            i++;
        size_t before = v->findings_n;
        check_set(v, &all[first], i - first);
        told += v->findings_n > before;
    }
    el_free(v->mem, all);
}

/* A Trainer's ranks keep the state of their random numbers; its arguments, and what DeepSpeed writes beside it, tell
 * how many there were. */
static void check_random(struct verify *v, const struct look *l)
{
    uint64_t ranks = 0, n = 0, number;
    char text[240];
    size_t last = 0, says = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct fmt_counts *c = &v->counts[i];
        const char *at = l->names[i];
        uint64_t told = c->processes > c->data_ranks ? c->processes : c->data_ranks;
        says = told > ranks ? i : says;
        ranks = told > ranks ? told : ranks;
        if (!take(&at, "rng_state_", &number) || strcmp(at, ".pth") != 0)
            continue;
        last = number >= n ? i : last;
        n = number >= n ? number + 1 : n;
    }
    if (!n || n >= ranks)
        return;
    snprintf(text, sizeof text, "the file of rank %llu beside it is missing: there were %llu ranks, as %.80s says",
             (unsigned long long)n, (unsigned long long)ranks, last_part(l->names[says]));
    verify_find(v, CKPT_INCOMPLETE, l->names[last], text);
}

/* --- hints ----------------------------------------------------------------------------------------------------------
 */

/* `latest` of DeepSpeed, wherever it lies, names a folder beside it. */
static void check_latest(struct verify *v, const struct look *l, const char *name)
{
    char *text, words[300], shown[EL_SHOW_MAX];
    size_t n, folder = folder_of(name);
    if (verify_read(l, name, CKPT_PATH_MAX, v->mem, &text, &n) < 0)
        return;
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
        text[--n] = 0;
    char path[CKPT_PATH_MAX];
    bool file = snprintf(path, sizeof path, "%.*s%s", (int)folder, name, text) < (int)sizeof path &&
                look_find(l, path) != SIZE_MAX;
    if (!n || ckpt_path_fault(text) || (!file && !has_below(l, name, folder, text))) {
        snprintf(words, sizeof words, n ? "it names \"%s\", which is not there" : "it is empty%s",
                 n ? el_show(text, shown) : "");
        verify_find(v, n ? CKPT_INCOMPLETE : CKPT_DAMAGED, name, words);
    }
    el_free(v->mem, text);
}

const struct scan_entry *verify_as_many(const struct scan *s, const char *name)
{
    const struct scan_entry *of = NULL, *like = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            of = &s->v[i];
    for (size_t i = 0; of && of->step >= 0 && i < s->n; i++) {
        const struct scan_entry *x = &s->v[i];
        bool there = x->state == SCAN_VALID || x->state == SCAN_FOREIGN;
        if (there && x->step >= 0 && x->step != of->step && x->format == of->format && x->files == of->files)
            like = x;
    }
    return like;
}

void verify_counts(struct verify *v, const struct look *l)
{
    if (l->one || l->format == CKPT_FORMAT_ELRUN)
        return;
    check_deepspeed(v, l);
    check_numbers(v, l);
    check_random(v, l);
    verify_folders(v, l);
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(last_part(l->names[i]), CKPT_LATEST_FILE) == 0)
            check_latest(v, l, l->names[i]);
}
