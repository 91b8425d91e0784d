/* Sets of files of ranks: what is one, how many it has, and which of another checkpoint is the same.
 * Seen to fail: with zeros in front counted as another number, without the number of the step, with any number taken
 * for that of the step, with members counted but not the highest number. */
#include "ckpt/rank_files.h"
#include "lib/tap.h"
#include "util/array.h"

static struct el_mem mem = EL_MEM_INIT(1 << 20);

static struct rank_sets sets_of(const char *const *names, size_t n)
{
    struct rank_sets s;
    struct el_err e = {0};
    ok(rank_files_sets(&s, names, n, &mem, &e) == 0, e.text);
    return s;
}

static void test_sets(void)
{
    static const char *const names[] = {"args.json",      "model_tp0.pt",   "model_tp00.pt", "model_tp2.pt",
                                        "optim_tp1.pt",   "w/model_tp0.pt", "m_rank0.pt",    "model_tp7.pt.tmp",
                                        "rank_0_of_4.pt", "rng_state_0.pth"};
    struct rank_sets s = sets_of(names, COUNT_OF(names));
    is_num(s.n, 5, "sets; a file left over and one that counts its set are in none");
    for (size_t i = 0; i < s.n; i++) {
        const struct rank_set *x = &s.v[i];
        printf("# %s: %llu, up to %llu\n", x->name, (unsigned long long)x->n, (unsigned long long)x->most);
        if (x->name[0] == 'm' && x->name[1] == 'o') {
            is_num(x->n, 2, "one number, with zeros in front or not, is one");
            is_num(x->most, 2, "the highest");
            ok(x->zero && x->many, "it begins at 0");
        } else if (x->name[0] == 'm') {
            ok(x->zero && !x->many, "one rank alone may have written for all");
        } else if (x->name[0] == 'o') {
            ok(!x->zero && x->many, "one direction has several by its name");
        }
    }
    rank_files_sets_free(&s, &mem);
    is_num(mem.used_bytes, 0, "all is given back");
}

static const char *found(const char *there, int64_t there_step, const char *here, int64_t step)
{
    struct rank_sets in = sets_of(&there, 1), x = sets_of(&here, 1);
    const char *name = rank_files_find(&in, there_step, &x.v[0], step) ? "found" : "none";
    rank_files_sets_free(&in, &mem);
    rank_files_sets_free(&x, &mem);
    return name;
}

static void test_find(void)
{
    is_str(found("a_tp0.pt", 10, "a_tp3.pt", 20), "found", "another number");
    is_str(found("a_tp0.pt", 10, "a_tp003.pt", 20), "found", "zeros in front");
    is_str(found("a_tp0.pt", 10, "b_tp0.pt", 20), "none", "another name");
    is_str(found("a_tp0.pt", 10, "w/a_tp0.pt", 20), "none", "another folder");
    is_str(found("a_tp0.pt", 10, "a_tp0.pth", 20), "none", "another suffix");
    is_str(found("a_10_tp0.pt", 10, "a_20_tp1.pt", 20), "found", "the number of the step");
    is_str(found("a_0010_tp0.pt", 10, "a_20_tp1.pt", 20), "found", "the number of the step, with zeros");
    is_str(found("a_10_tp0.pt", 10, "a_30_tp1.pt", 20), "none", "another number than that of the step");
    is_str(found("a_10_tp0.pt", 10, "a_20_tp1.pt", -1), "none", "no step");
    is_str(found("a_tp10.pt", 10, "a_tp20.pt", 20), "found", "a member called as the step is");
}

static void test_lacks(void)
{
    const struct rank_set four = {.n = 4, .most = 3, .zero = true}, three = {.n = 3, .most = 2, .zero = true},
                          gap = {.n = 3, .most = 3, .zero = true}, late = {.n = 3, .most = 3},
                          sizes = {.n = 2, .most = 64}, more = {.n = 3, .most = 128};
    ok(rank_files_lacks(&three, &four) && !rank_files_lacks(&four, &three), "fewer members");
    ok(rank_files_lacks(&three, &gap) && !rank_files_lacks(&gap, &three), "a higher number");
    ok(rank_files_lacks(&late, &four), "the first one");
    ok(!rank_files_lacks(&four, &four), "as many");
    ok(!rank_files_lacks(&sizes, &more), "without a number 0 they are none of ranks");
}

static void test_memory(void)
{
    static const char *const names[] = {"a_tp0.pt", "b_tp0.pt"};
    long n = 0;
    for (int r = -1; r && n < 20; n++) {
        struct el_err e = {0};
        struct rank_sets s;
        mem.fail_after = n;
        r = rank_files_sets(&s, names, COUNT_OF(names), &mem, &e);
        rank_files_sets_free(&s, &mem);
        if (mem.used_bytes || !r != !e.status)
            break;
    }
    mem.fail_after = -1;
    ok(n > 3 && n < 20, "each allocation may fail");
    is_num(mem.used_bytes, 0, "all is given back");
}

int main(void)
{
    test_sets();
    test_find();
    test_lacks();
    test_memory();
    return done();
}
