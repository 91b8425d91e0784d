/* The command of a worker.  ${local_rank} and $$ are replaced as torchrun does it: by the rules of Python's
 * string.Template.safe_substitute, in every word behind the program, the script's name included. */
#ifndef CONF_ARGV_H
#define CONF_ARGV_H
#include "conf/conf.h"
#include "util/err.h"
#include "util/mem.h"

struct argv_plan {
    enum conf_entry entry;
    const char *python; /* the interpreter; unused with CONF_PROGRAM */
    const char *script; /* file, module name or program */
    char *const *args;  /* what follows, NULL at the end; may be NULL */
};

/* The worker's argv, NULL at the end: one block of mem, to be freed by el_free(mem, argv).  The words are bytes: what
 * is not UTF-8 passes unchanged.  NULL and *e only if the memory's limit is reached. */
char **argv_worker(struct el_mem *mem, const struct argv_plan *plan, unsigned local_rank, struct el_err *e);

#endif
