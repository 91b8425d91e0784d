/* Files that checkpoints of one job have alike: which count, and what is called alike.
 * Seen to fail: with each digit taken for itself, with files of ranks, each member of numbered sets, or logs counted;
 * with no member of a set, with what may be none, with the folder of a rank compared, each of its files counted. */
#include "ckpt/usual_files.h"
#include "lib/tap.h"
#include "util/array.h"

static struct el_mem mem = EL_MEM_INIT(1 << 20);

static struct usual_files usual_of(const char *const *names, size_t n)
{
    struct usual_files u;
    struct el_err e = {0};
    ok(usual_files_take(&u, names, n, &mem, &e) == 0, e.text);
    return u;
}

static const char *lack(const struct usual_files *x, const struct usual_files *y)
{
    size_t from = 0;
    return usual_files_lacks(x, y, &from);
}

static void test_names(void)
{
    static const char *const names[] = {
        "config.json",
        "optimizer_10.bin",
        "optimizer_2.bin",
        "optimizer.bin",
        ".metadata",
        "weights",
        "sub/.metadata",
        "rng_state_0.pth", /* a rank's, from here on none is usual but one of each set */
        "model_tp0.pt",
        "best_2of3.pt",
        "__0_0.distcp",
        "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "notes.txt",
        "events.out.tfevents.1",
        "latest",
        "optimizer.pt.tmp",
        ".git/config.json",
        "sub/something",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors"};
    static const char *const later[] = {"optimizer_3.bin", "other.pt"}, *const stranger[] = {"other.pt", "config.pt"},
                             *const ten[] = {".metadata",
                                             "config.json",
                                             "model-00001-of-00002.safetensors",
                                             "optimizer_10.bin",
                                             "optimizer.bin",
                                             "best_1of3.pt",
                                             "global_step6/zero_pp_rank_0_mp_rank_00_optim_states.pt"};
    struct usual_files u = usual_of(names, COUNT_OF(names)), v = usual_of(later, COUNT_OF(later)),
                       w = usual_of(stranger, COUNT_OF(stranger)), two = usual_of(ten, COUNT_OF(ten));
    is_num(u.n, 10, "those that hold state or settings, and are not counted otherwise");
    is_num(usual_files_count(&u, "optimizer_7.bin"), 2, "numbers are all one");
    is_num(usual_files_count(&u, "optimizer_.bin"), 0, "but no number is none");
    is_num(usual_files_count(&u, "optimizer.bin"), 1, "nor is a name with one called as one without");
    ok(usual_files_has(&u, "optimizer_2.bin") && !usual_files_has(&u, "optimizer_3.bin"), "the very name");
    is_str(lack(&u, &two), "optimizer_2.bin", "of those called alike one that is not there");
    is_num(usual_files_count(&u, "model-00003-of-00004.safetensors"), 1,
           "a numbered set is one, whatever numbers it has");
    ok(lack(&u, &v) && strcmp(lack(&v, &u), "other.pt") == 0 && !lack(&u, &u), "what one lacks");
    ok(usual_files_kin(&u, &v) && usual_files_kin(&v, &u), "kin by one of them");
    ok(!usual_files_kin(&u, &w), "and strangers");
    size_t kinds = 0;
    for (size_t i = 0; i < u.n; i = usual_files_next(&u, i))
        kinds++;
    is_num(kinds, 9, "those called alike lie together");
    usual_files_free(&u, &mem);
    usual_files_free(&v, &mem);
    usual_files_free(&w, &mem);
    usual_files_free(&two, &mem);
    is_num(mem.used_bytes, 0, "all is given back");
}

static void test_many(void)
{
    static char text[USUAL_FILES_MAX + 1][16];
    static const char *names[USUAL_FILES_MAX + 1];
    for (unsigned i = 0; i <= USUAL_FILES_MAX; i++) {
        snprintf(text[i], sizeof text[i], "piece_%u.npy", i);
        names[i] = text[i];
    }
    struct usual_files u = usual_of(names, USUAL_FILES_MAX);
    is_num(u.n, USUAL_FILES_MAX, "as many as are compared");
    usual_files_free(&u, &mem);
    u = usual_of(names, USUAL_FILES_MAX + 1);
    is_num(u.n, 0, "one more, and none are");
    usual_files_free(&u, &mem);
    u = usual_of(names, 0);
    is_num(usual_files_count(&u, "a"), 0, "none");
    usual_files_free(&u, &mem);
}

/* However many ranks there are, in which directions, of which stage. */
static void test_ranks(void)
{
    static const char *const two[] = {"mp_rank_00/distrib_optim.pt",
                                      "mp_rank_01/distrib_optim.pt",
                                      "mp_rank_00/model_optim_rng.pt",
                                      "mp_rank_01/model_optim_rng.pt",
                                      "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt",
                                      "global_step5/zero_pp_rank_1_mp_rank_00_optim_states.pt",
                                      "mp_rank_00_model_states.pt",
                                      "mp_rank_01_model_states.pt",
                                      "mp_rank_00.pt",
                                      "mp_rank_01.pt",
                                      "opt_w2_r0.pt",
                                      "opt_w2_r1.pt"},
                             *const other[] = {"tp_rank_00_pp_rank_001/model_optim_rng.pt",
                                               "mp_rank_00_000/distrib_optim.pt",
                                               "global_step7/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
                                               "global_step7/zero_pp_rank_0_mp_rank_00_model_states.pt",
                                               "mp_rank_00.pt",
                                               "opt_w1_r0.pt"},
                             *const less[] = {"mp_rank_00/model_optim_rng.pt", "mp_rank_00_model_states.pt",
                                              "mp_rank_00.pt", "opt_w2_r0.pt"};
    struct usual_files u = usual_of(two, COUNT_OF(two)), v = usual_of(other, COUNT_OF(other)),
                       w = usual_of(less, COUNT_OF(less));
    size_t from = 0;
    is_num(u.n, 6, "of what each rank has one");
    ok(!lack(&u, &v) && !lack(&v, &u), "which is one kind");
    is_str(usual_files_lacks(&u, &w, &from), "mp_rank_00/distrib_optim.pt", "a kind of Megatron's that is not here");
    is_str(usual_files_lacks(&u, &w, &from), "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt",
           "one of DeepSpeed's");
    ok(!usual_files_lacks(&u, &w, &from), "and no other");
    usual_files_free(&u, &mem);
    usual_files_free(&v, &mem);
    usual_files_free(&w, &mem);
}

int main(void)
{
    test_names();
    test_ranks();
    test_many();
    return done();
}
