/* What gc may delete: every rule, and for all small cases that the newest valid one of a run stays.
 * Seen to fail: with runs compared, with invalid ones counted as newer, with `<=` for `<`. */
#include "ckpt/retain.h"
#include "lib/tap.h"
#include "util/array.h"

static const char *why(const struct retain_item *v, size_t n, int64_t step)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].step == step)
            return v[i].why;
    return "?";
}

static void test_rules(void)
{
    struct retain_item v[] = {
        {.step = 1000, .run = 1, .valid = true, .ours = true},
        {.step = 9, .run = 0, .valid = true, .ours = true},
        {.step = 100, .run = 0, .valid = true, .ours = true},
        {.step = 20, .run = 0, .valid = true, .ours = true, .pinned = true},
        {.step = 30, .run = 0, .valid = true, .ours = true, .leased = true},
        {.step = 40, .run = 0, .valid = true, .ours = true},
        {.step = 200, .run = 0, .ours = true},
        {.step = 50, .run = 0, .valid = true},
        {.step = 90, .run = 0, .valid = true, .ours = true},
        {.step = -1, .run = 0, .valid = true, .ours = true},
        {.step = 60, .run = 0, .valid = true, .ours = true},
        {.step = 300, .run = 0, .valid = true, .ours = true, .behind = true},
        {.step = 61, .run = 0, .valid = true, .ours = true, .behind = true},
    };
    const struct retain_rule rule = {.keep_last = 2, .keep_every = 40};
    is_num(retain_choose(v, COUNT_OF(v), &rule), 3, "three go");
    is_str(why(v, COUNT_OF(v), 9), NULL, "by number: 9 is older than 100");
    is_str(why(v, COUNT_OF(v), 100), "among the newest", "the newest");
    is_str(why(v, COUNT_OF(v), 90), "among the newest", "the one before");
    is_str(why(v, COUNT_OF(v), 60), NULL, "but no third one");
    is_str(why(v, COUNT_OF(v), 1000), "among the newest", "that of another run is not compared with them");
    is_str(why(v, COUNT_OF(v), 20), "pinned", "a pin");
    is_str(why(v, COUNT_OF(v), 30), "being read", "a lease");
    is_str(why(v, COUNT_OF(v), 40), "kept by its number", "a multiple");
    is_str(why(v, COUNT_OF(v), 200), "not valid",
           "what is not valid is left alone, and nothing is older because of it");
    is_str(why(v, COUNT_OF(v), 50), "of another run", "what is not ours");
    is_str(why(v, COUNT_OF(v), -1), "without a step", "what has no step");
    is_str(why(v, COUNT_OF(v), 300), "a lower step was written later, and its run is not as far again",
           "what the job has gone back behind stays, and nothing is older because of it");
    is_str(why(v, COUNT_OF(v), 61), NULL, "until it is as far again");
}

/* Five checkpoints of two runs, each valid or not, ours or not, pinned or not: 2^20 cases. */
static void test_all(void)
{
    unsigned bad = 0;
    for (unsigned bits = 0; bits < 1u << 20; bits++) {
        struct retain_item v[5];
        const struct retain_rule rule = {.keep_last = 1};
        for (unsigned i = 0; i < 5; i++) {
            unsigned b = bits >> (4 * i);
            v[i] = (struct retain_item){.step = i * 10, .run = b & 1, .valid = b & 2, .ours = b & 4, .pinned = b & 8};
        }
        retain_choose(v, 5, &rule);
        for (unsigned i = 0; i < 5; i++) {
            bool newer = false;
            for (unsigned k = i + 1; k < 5; k++)
                newer |= v[k].valid && v[k].run == v[i].run && v[k].why;
            bad += !v[i].why && (!v[i].valid || !v[i].ours || v[i].pinned || !newer);
        }
    }
    is_num(bad, 0, "what goes is valid, ours, not pinned, and a newer valid one of its run stays");
}

int main(void)
{
    test_rules();
    test_all();
    return done();
}
