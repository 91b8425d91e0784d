/* Restart budget, with and without a window, and the table that finds members. */
#include "coord/budget.h"

#include "lib/tap.h"
#include "coord/id_table.h"
#include "util/rng.h"

static void test_budget(void)
{
    struct budget b;
    ok(budget_init(&b, 2, 0, 3, 0, 0, 0, NULL) == 0, "two restarts for ever");
    ok(budget_charge(&b, 1) && budget_charge(&b, 2) && !budget_charge(&b, EL_SEC(100000)),
       "the third is refused, always");
    is_num(b.used, 2, "and not counted");
    budget_free(&b, NULL);
    ok(budget_init(&b, 2, EL_SEC(60), 3, 0, 0, 0, NULL) == 0, "two restarts in a minute");
    ok(budget_charge(&b, EL_SEC(1)) && budget_charge(&b, EL_SEC(30)) && !budget_charge(&b, EL_SEC(60)),
       "third too soon");
    ok(budget_charge(&b, EL_SEC(61)) && !budget_charge(&b, EL_SEC(89)), "the first is forgotten at its second");
    ok(budget_charge(&b, EL_SEC(90)), "then the second");
    is_num(b.used, 4, "TORCHELASTIC_RESTART_COUNT counts all of them");
    budget_free(&b, NULL);
    ok(budget_init(&b, 2, EL_SEC(60), 3, 9, 0, EL_SEC(5), NULL) == 0, "after a restart of the coordinator");
    ok(!budget_left(&b, EL_SEC(10)) && !budget_charge(&b, EL_SEC(10)), "old ones count from now");
    ok(budget_left(&b, EL_SEC(65)) && budget_charge(&b, EL_SEC(65)), "and no longer than others");
    budget_free(&b, NULL);
    ok(budget_init(&b, 0, EL_SEC(60), 3, 0, 0, 0, NULL) == 0 && !budget_charge(&b, 1), "no restarts");
    budget_free(&b, NULL);
    struct el_mem none = EL_MEM_INIT(1);
    ok(budget_init(&b, 2, 0, 3, 0, 0, 0, &none) < 0, "no memory is a result");
}

static void test_fruitless(void)
{
    struct budget b;
    budget_init(&b, 9, 0, 2, 0, 0, 0, NULL);
    ok(budget_lived(&b, EL_SEC(1), EL_SEC(60), BUDGET_NO_STEPS) &&
           budget_lived(&b, EL_SEC(59), EL_SEC(60), BUDGET_NO_STEPS),
       "two short rounds are allowed");
    ok(!budget_lived(&b, EL_SEC(2), EL_SEC(60), BUDGET_NO_STEPS), "three in a row are too many");
    ok(budget_lived(&b, EL_SEC(60), EL_SEC(60), BUDGET_NO_STEPS) && b.fruitless == 0, "a long one makes good for them");
    ok(budget_lived(&b, EL_SEC(1), EL_SEC(60), 0) && b.fruitless == 1, "no step");
    ok(budget_lived(&b, EL_SEC(1), EL_SEC(60), 1) && b.fruitless == 0, "a new step is fruit, however short the round");
    ok(budget_lived(&b, EL_SEC(3600), EL_SEC(60), 0) && b.fruitless == 1, "an hour without a step is none");
    budget_free(&b, NULL);
}

/* Against an array that is searched from the front. */
static void test_table(void)
{
    enum { N = 200 };
    struct id_table t;
    uint32_t model[N];
    struct el_rng rng = {7};
    unsigned wrong = 0, used = 0;
    ok(id_table_init(&t, N, NULL) == 0, "a table");
    for (unsigned i = 0; i < N; i++)
        model[i] = ID_TABLE_NONE;
    for (unsigned step = 0; step < 100000; step++) {
        unsigned k = (unsigned)el_rng_below(&rng, N);
        uint64_t key = k % 2 ? k : (uint64_t)k << 40;
        used += model[k] == ID_TABLE_NONE;
        model[k] = el_rng_below(&rng, 2) ? step : ID_TABLE_NONE;
        used -= model[k] == ID_TABLE_NONE;
        if (model[k] == ID_TABLE_NONE)
            id_table_drop(&t, key);
        else
            id_table_put(&t, key, step);
        unsigned other = (unsigned)el_rng_below(&rng, N);
        wrong += id_table_get(&t, other % 2 ? other : (uint64_t)other << 40) != model[other];
        wrong += t.used != used;
    }
    is_num(wrong, 0, "100,000 changes and look-ups agree with an array");
    id_table_free(&t, NULL);
}

int main(void)
{
    test_budget();
    test_fruitless();
    test_table();
    return done();
}
