/* Any bytes as a journal: nothing is read outside them, what is taken can be written and read again, and what was
 * counted as good is read the same way alone. */
#include <stdlib.h>
#include <string.h>

#include "coord/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void again(void *ctx, const struct rdzv_record *r)
{
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    struct rdzv_record back;
    if (journal_encode(r, &line) || line.len > JOURNAL_LINE_MAX || !journal_decode(line.v, line.len - 1, &back) ||
        strcmp(back.run_id, r->run_id) != 0 || strcmp(back.text, r->text) != 0 || back.number != r->number)
        abort();
    el_buf_free(&line);
    ++*(unsigned *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    unsigned records = 0, same = 0;
    size_t good = 0, good_again = 0;
    struct el_err e = {0};
    int bad = journal_read((const char *)bytes, n, again, &records, &good, &e);
    if (good > n || (bad && !e.status))
        abort();
    if (!bad && (journal_read((const char *)bytes, good, again, &same, &good_again, &e) || good_again != good ||
                 same != records))
        abort();
    return 0;
}
