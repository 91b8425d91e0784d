/* What has become of the last steps, for workers that come later.
 * Seen to fail: a list that keeps two words of one step, one that keeps the oldest when it is full. */
#include "agent/flush_results.h"

#include <string.h>

#include "lib/tap.h"

int main(void)
{
    struct flush_results f = {0};
    flush_results_add(&f, "persisted", 3, "");
    ok(f.n == 0, "what is not settled is not kept");
    flush_results_add(&f, "failed", 3, "no space left");
    flush_results_add(&f, "committed", 3, "ckpt/step-3");
    ok(f.n == 1 && strcmp(f.v[0].kind, "committed") == 0 && strcmp(f.v[0].why, "ckpt/step-3") == 0,
       "the last word of a step counts");
    for (int step = 4; step < 40; step++)
        flush_results_add(&f, "committed", step, "");
    ok(f.n == FLUSH_RESULTS_MAX && f.v[FLUSH_RESULTS_MAX - 1].step == 39 && f.v[0].step == 40 - (int)FLUSH_RESULTS_MAX,
       "the newest are kept");
    flush_results_forget_behind(&f, 30);
    ok(f.v[f.n - 1].step == 30 && f.n == 30 - (40 - FLUSH_RESULTS_MAX) + 1,
       "going back: later steps are not known any more");
    flush_results_forget_behind(&f, -1);
    ok(f.n == 0, "to the beginning: none is");
    return done();
}
