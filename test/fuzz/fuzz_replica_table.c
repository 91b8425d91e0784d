/* Lines of tensors that two nodes tell: whatever they say, a comparison comes to its end; and a table that is told in
 * pieces of any size is as it would be told whole. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/replica_table.h"
#include "util/mem.h"

#define ROWS 32u

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Two texts, and bits that say who has more. */
static void hostile(const unsigned char *data, size_t n)
{
    char *text = el_alloc(NULL, n + 1), *other, after[EL_SHOW_MAX] = "", before[EL_SHOW_MAX], names[64];
    struct alike_names found = {.to = names, .size = sizeof names};
    memcpy(text, data + 1, n - 1);
    other = memchr(text, 0, n);
    const char *lines[2] = {text, (size_t)(other - text) + 1 < n ? other + 1 : ""};
    for (unsigned bits = data[0];; bits >>= 2) {
        memcpy(before, after, sizeof before);
        bool all = replica_table_compare(lines, (const bool[]){bits & 1, bits & 2}, after, &found);
        if (all)
            break;
        if (strcmp(after, before) <= 0 || !(bits & 3))
            abort();
    }
    alike_names_end(&found);
    el_free(NULL, text);
}

static size_t differing(char *const table[2], size_t room)
{
    char lines[2][4096], after[EL_SHOW_MAX] = "", names[64];
    struct alike_names found = {.to = names, .size = sizeof names};
    bool more[2], all = false;
    for (unsigned turn = 0; !all; turn++) {
        if (turn > 2 * ROWS)
            abort();
        for (unsigned i = 0; i < 2; i++)
            replica_table_lines(table[i], after, lines[i], room, &more[i]);
        all = replica_table_compare((const char *const[]){lines[0], lines[1]}, more, after, &found);
    }
    return found.n;
}

/* Two tables of names that are all different. */
static void told(const unsigned char *data, size_t n)
{
    struct alike_row row[2][ROWS];
    unsigned rows[2] = {0};
    char *table[2];
    for (size_t i = 1; i < n && i <= ROWS; i++)
        for (unsigned side = 0; side < 2; side++)
            if (data[i] >> side & 1) {
                struct alike_row *to = &row[side][rows[side]++];
                *to = (struct alike_row){.digest = data[i] >> 2 & side,
                                         .name = {(char)('a' + i / 8), (char)('a' + i % 8)}};
            }
    for (unsigned side = 0; side < 2; side++)
        table[side] = alike_table(row[side], rows[side]);
    if (table[0] && table[1] && differing(table, sizeof(char[4096])) != differing(table, 128 + data[0]))
        abort();
    el_free(NULL, table[0]);
    el_free(NULL, table[1]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (size < 2)
        return 0;
    hostile(data, size);
    told(data, size);
    return 0;
}
