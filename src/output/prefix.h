/* What stands in front of a teed line.  Templates follow Python's string.Template.safe_substitute, as torchrun's do. */
#ifndef OUTPUT_PREFIX_H
#define OUTPUT_PREFIX_H
#include <stddef.h>

#define PREFIX_DEFAULT   "[${role_name}${local_rank}]:"
#define PREFIX_BYTES_MAX 512u /* with its 0; a longer one is cut */

struct prefix_values {
    const char *role_name, *hostname;
    unsigned local_rank, rank;
};

/* ${role_name} ${local_rank} ${rank} ${hostname}, also without braces; "$$" is "$"; anything else stays as it is,
 * newlines become spaces.  An empty template is the default.  to is always ended; returns the length. */
size_t prefix_format(char *to, size_t size, const char *template, const struct prefix_values *v);

#endif
