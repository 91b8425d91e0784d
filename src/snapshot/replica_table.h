/* The tensors of a part that must be alike on all ranks, as a text with one line for each, sorted by name:
 *
 *     5c1b2f0093d1aa07 net.0.bias
 *
 * a digest of its name, type, shape and bytes, and the name as it is shown to people.  Two nodes that hold different
 * ones of a part are asked for theirs piece by piece; whoever asks compares them.  Pure. */
#ifndef SNAPSHOT_REPLICA_TABLE_H
#define SNAPSHOT_REPLICA_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"

#define REPLICA_TABLE_MAX ((size_t)16 << 20) /* bytes: of more than 100,000 tensors */
#define ALIKE_NAMED_MAX   3                  /* tensors that differ are named, of more their number is said */

struct alike_row {
    uint64_t digest;
    char name[EL_SHOW_MAX];
};

/* Names of tensors that differ, as text: "a", "b", "c" and 4 more. */
struct alike_names {
    char *to;
    size_t size, at, n; /* n: of all */
};

void alike_name(struct alike_names *l, const char *shown);
void alike_names_end(struct alike_names *l);

/* Sorts the rows.  NULL: no memory, or it is longer than REPLICA_TABLE_MAX; else el_free(NULL, table). */
char *alike_table(struct alike_row *row, size_t n);

/* Lines of tensors with names behind `after` ("": all), as many as fit; *more: others follow.  Returns to. */
const char *replica_table_lines(const char *table, const char *after, char *to, size_t size, bool *more);

/* Lines of both sides with names behind `after`.  Who has more to come is compared up to the last name that both have
 * told: after becomes that.  True: that is all; false: the next lines are wanted.  What is not written as above ends
 * the lines, and nothing follows. */
bool replica_table_compare(const char *const lines[2], const bool more[2], char after[EL_SHOW_MAX],
                           struct alike_names *found);

#endif
