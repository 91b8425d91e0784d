/* Which files an earlier checkpoint has and a later one lacks, against the same said plainly: every kind compared with
 * all names of all checkpoints, over random ones.  Seen to fail: with names of two runs taken for one; with the folder
 * taken for a word; with an entry counted twice that has names alike in both ways; with sets that differ in their
 * numbers taken for one; with a suffix taken for a second word. */
#include "ckpt/file_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"
#include "util/array.h"

enum { ENTRIES = 9, NAMES = 8 };

static struct el_mem mem = EL_MEM_INIT(64u << 20);

/* --- plainly ------------------------------------------------------------------------------------------------------ */

static bool has(const struct scan_entry *y, const struct kind *k)
{
    return k->set ? rank_files_find(&y->sets, y->step, k->set, k->of->step) != NULL
                  : usual_files_count(&y->usual, k->name) > 0;
}

static bool of_run(const struct scan_entry *y, const struct scan_entry *x)
{
    return y->state == SCAN_VALID && strcmp(y->run_id, x->run_id) == 0;
}

static bool is_lone(const struct scan *s, const struct kind *k)
{
    for (size_t i = 0; i < s->n; i++)
        if (&s->v[i] != k->of && of_run(&s->v[i], k->of) && has(&s->v[i], k))
            return false;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *suffix(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    return dot ? dot : name + strlen(name);
}

static bool is_alike(const char *a, const char *b)
{
    size_t same = 0, i = 0;
    bool word = false;
    if (strcmp(suffix(a), suffix(b)) != 0)
        return false;
    while (a[i] && b[i] && (a[i] == b[i] || (is_word(a[i]) && is_word(b[i]))))
        i++;
    if (!a[i] && !b[i])
        return true;
    for (i = 0; a + i < suffix(a) && a[i] == b[i]; i++) {
        same = a[i] == '/' || (!is_word(a[i]) && word) ? i + 1 : same;
        word = a[i] != '/' && (word || is_word(a[i]));
    }
    return same && a[same - 1] != '/' && !strchr(a + same, '/') && !strchr(b + same, '/');
}

static bool has_alike(const struct scan *s, const struct scan_entry *y, const char *name)
{
    for (size_t i = 0; i < y->sets.n; i++)
        if (is_alike(y->sets.v[i].name, name) && is_lone(s, &(struct kind){y, &y->sets.v[i], y->sets.v[i].name, false}))
            return true;
    for (size_t i = 0; i < y->usual.n; i = usual_files_next(&y->usual, i))
        if (is_alike(y->usual.v[i], name) && is_lone(s, &(struct kind){y, NULL, y->usual.v[i], false}))
            return true;
    return false;
}

static bool is_anew(const struct scan *s, const struct kind *k)
{
    unsigned n = 0;
    for (size_t i = s->n; &s->v[i - 1] != k->of; i--)
        n += of_run(&s->v[i - 1], k->of) && has_alike(s, &s->v[i - 1], k->name);
    return n >= 2 && is_lone(s, k);
}

static const char *lacks(const struct scan *s, const struct scan_entry *x, const struct scan_entry *y)
{
    const char *name;
    for (size_t i = 0; i < x->sets.n; i++) {
        const struct rank_set *set = &x->sets.v[i];
        struct kind k = {x, set, set->name, false};
        if (set->zero && set->many && !has(y, &k) && !file_kinds_random(y, set->name) && !is_anew(s, &k))
            return set->name;
    }
    for (size_t i = 0; (name = usual_files_lacks(&x->usual, &y->usual, &i));)
        if (!file_kinds_random(y, name) && !is_anew(s, &(struct kind){x, NULL, name, false}))
            return name;
    return NULL;
}

/* --- random checkpoints ------------------------------------------------------------------------------------------- */

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static const char *one(const char *const *v, unsigned n)
{
    return v[draw(n)];
}
#define ONE(...)                                                                                                       \
    one((const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))

/* How the names of one root are made. */
struct style {
    const char *folder, *word, *apart, *suffix;
    bool decimal;
};

static void draw_style(struct style *to)
{
    *to = (struct style){ONE("", "", "a/", "a/b-c/", "mp_rank_00/"), ONE("eval", "run", "-x", "b", ""),
                         ONE("-", "_", "", "."),
                         ONE(".pt", ".bin", "", ".x-y", "_rank_0.pt", "_rank_0.pt", "-rank1.pt"), draw(2)};
}

static void draw_name(int64_t step, const struct style *of, char to[120])
{
    char number[8], of_step[24], hash[9];
    snprintf(number, sizeof number, "%u", draw(3) ? draw(4) : draw(1000));
    snprintf(of_step, sizeof of_step, "%lld", (long long)step);
    snprintf(hash, sizeof hash, of->decimal ? "%.*u" : "%.*x", draw(3) ? 6 : 7, draw(900000));
    if (!draw(9))
        hash[0] = 0;
    switch (draw(12)) {
    default: snprintf(to, 120, "%s%s%s%s%s", of->folder, of->word, of->apart, hash, of->suffix); break;
    case 0: /* with a hash, or the name of a run */
    case 1:
        snprintf(to, 120, "%s%s%s%s%s%s%s", ONE("", "", "a/", "a/b-c/", "mp_rank_00/"), ONE("eval", "run", "-x", "b"),
                 ONE("-", "_", "", "."), ONE("ab3f", "c09d", "0a", "1", "sunny", number, of_step), ONE("-", "", "."),
                 ONE("fox", "", "7", of_step, "owl"), ONE(".pt", ".bin", "", ".x-y"));
        break;
    case 2: /* of ranks */
    case 3:
        snprintf(to, 120, "%s%s%s%s%s", ONE("", "", "mp_rank_01/", "a/"), ONE("model_", "m-", "step_"),
                 ONE("", of_step, "ab3f", "5"), ONE("_rank_", "_rank", "tp_", "_tp"), number);
        snprintf(to + strlen(to), 40, "%s", ONE(".pt", ".bin", "_0.pt"));
        break;
    case 4:
        snprintf(to, 120, "%s",
                 ONE("rng_state.pth", "rng_state_0.pth", "rng_state_1.pth", "scheduler.bin", "config.json",
                     "mp_rank_00/distrib_optim.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"));
        break;
    case 5: snprintf(to, 120, "%s%s%s", ONE("optimizer", "model-", "x.y"), number, ONE(".pt", ".bin", "-1.pt")); break;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void fill(struct scan *s, struct scan_entry *v)
{
    struct el_err e = {0};
    unsigned runs = 1 + draw(2), most = 1 + draw(NAMES);
    struct style style[2];
    draw_style(&style[0]);
    draw_style(&style[1]);
    *s = (struct scan){.mem = &mem, .v = v, .n = 1 + draw(ENTRIES)};
    for (size_t i = 0; i < s->n; i++) {
        char text[NAMES][120];
        const char *names[NAMES];
        size_t n = draw(most);
        int64_t step = draw(4) ? 10 * (int64_t)i : (int64_t)i;
        for (size_t k = 0; k < n; k++) {
            draw_name(step, &style[draw(2)], text[k]);
            names[k] = text[k];
        }
        qsort(names, n, sizeof *names, by_text);
        size_t kept = 0;
        for (size_t k = 0; k < n; k++)
            if (!kept || strcmp(names[kept - 1], names[k]) != 0)
                names[kept++] = names[k];
        size_t run = i ? draw(runs) : 0;
        v[i] = (struct scan_entry){
            .step = step, .state = draw(6) ? SCAN_VALID : SCAN_FOREIGN, .run_id = run ? "a" : "b", .run = run};
        if (rank_files_sets(&v[i].sets, names, kept, &mem, &e) || usual_files_take(&v[i].usual, names, kept, &mem, &e))
            printf("# %s\n", e.text);
    }
}

static void clear(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        rank_files_sets_free(&s->v[i].sets, &mem);
        usual_files_free(&s->v[i].usual, &mem);
    }
}

/* Of "run.pt" the dot divides the first word from no other: it begins like none of them. */
static void test_suffix(void)
{
    static const char *const names[] = {"run.x1.pt", "run.pt", "run.old-owl.pt"};
    struct scan_entry v[3];
    struct scan s = {.mem = &mem, .v = v, .n = 3};
    struct file_kinds k;
    struct el_err e = {0};
    for (size_t i = 0; i < 3; i++) {
        v[i] = (struct scan_entry){.step = (int64_t)i, .run_id = "a"};
        usual_files_take(&v[i].usual, &names[i], 1, &mem, &e);
    }
    is_num(file_kinds_open(&k, &s, &mem, &e), 0, e.text);
    const struct kind *lost = file_kinds_lacks(&k, &v[0], &v[2]);
    is_str(lost ? lost->name : NULL, "run.x1.pt", "one newer one alone has a name like it");
    is_str(lacks(&s, &v[0], &v[2]), "run.x1.pt", "said plainly");
    file_kinds_close(&k);
    clear(&s);
}

int main(void)
{
    test_suffix();
    unsigned pairs = 0, lacking = 0, anew = 0, bad = 0;
    for (unsigned round = 0; round < 6000; round++) {
        struct scan_entry v[ENTRIES];
        struct scan s;
        struct file_kinds k;
        struct el_err e = {0};
        fill(&s, v);
        bad += file_kinds_open(&k, &s, &mem, &e) != 0;
        for (size_t x = 0; x < s.n; x++)
            for (size_t y = x + 1; y < s.n; y++) {
                if (v[x].state != SCAN_VALID || !of_run(&v[y], &v[x]))
                    continue;
                const char *want = lacks(&s, &v[x], &v[y]);
                const struct kind *got = file_kinds_lacks(&k, &v[x], &v[y]);
                bool only = got && file_kinds_only(got);
                for (size_t z = x + 1; only && z < s.n; z++)
                    bad += of_run(&v[z], &v[x]) && !lacks(&s, &v[x], &v[z]);
                bad += (got != NULL) != (want != NULL) || (got && strcmp(got->name, want) != 0);
                pairs++;
                lacking += want != NULL;
            }
        for (size_t x = 0; x < s.n; x++)
            for (size_t i = 0; v[x].state == SCAN_VALID && i < v[x].usual.n; i++)
                anew += is_anew(&s, &(struct kind){&v[x], NULL, v[x].usual.v[i], false});
        file_kinds_close(&k);
        clear(&s);
    }
    printf("# %u pairs, %u lacking, %u names anew\n", pairs, lacking, anew);
    is_num(bad, 0, "what a later one lacks, by each pair of random checkpoints");
    ok(lacking > pairs / 10 && lacking < pairs - pairs / 10 && anew > 200, "some lack something, some do not");
    return done();
}
