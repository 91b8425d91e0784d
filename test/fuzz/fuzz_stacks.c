/* Any bytes as the output of several ranks (0xff parts them): nobody is lost, stacks lie inside, the line is text. */
#include <assert.h>
#include <stdint.h>

#include "failure/stacks.h"

enum { RANKS = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct stacks_rank v[RANKS];
    struct el_mem mem = EL_MEM_INIT(1 << 20);
    struct el_buf raw = EL_BUF_INIT(&mem, 0), line = EL_BUF_INIT(&mem, 1 << 19);
    struct stacks s;
    unsigned count = 0, seen = 0;
    if (n > 1 << 17 || el_buf_put(&raw, data, n) || !raw.v)
        return 0;
    for (size_t i = 0, from = 0; i <= n && count < RANKS; i++)
        if (i == n || data[i] == 0xff) {
            v[count] = (struct stacks_rank){count * 3 + (count > 5), {raw.v + from, i - from}};
            count++;
            from = i + 1;
        }
    int bad = stacks_group(&s, v, count, &mem);
    for (unsigned g = 0; !bad && g < s.groups_count; g++) {
        const struct stacks_group *x = &s.group[g];
        assert(x->ranks_count && (x->kind != STACKS_DUMP || x->stack.n));
        assert(!x->stack.n || (x->stack.p >= raw.v && x->stack.p + x->stack.n <= raw.v + n));
        for (unsigned i = 1; i < x->ranks_count; i++)
            assert(x->ranks[i] > x->ranks[i - 1]);
        seen += x->ranks_count;
    }
    assert(bad || seen == count);
    stacks_line(&s, &line);
    stacks_free(&s, &mem);
    el_buf_free(&line);
    el_buf_free(&raw);
    assert(!mem.used_bytes);
    return 0;
}
