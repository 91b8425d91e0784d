/* Lines about an attempt beside its report. */
#include <string.h>

#include "agent/node.h"

/* Whom the others were waiting for when the first one failed: a start that never came about is explained by this. */
void report_missing(struct node *n)
{
    const char *at = el_buf_cstr(&n->missing);
    for (size_t len; (len = strcspn(at, "\n")) > 0; at += len + (at[len] == '\n'))
        el_log(EL_INFO, "store, when the first worker failed: %.*s", (int)len, at);
}

void report_stuck(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++) {
        char what[160];
        if (!reap_pid(n->reap, i))
            continue;
        reap_describe(reap_pid(n->reap, i), what, sizeof what);
        el_log(EL_ERROR,
               "rank %u: %s is still there 10 s after SIGKILL: the kernel holds it (a device or a file system)", i,
               what);
    }
    if (!n->core.group.up)
        el_log(EL_ERROR, "%u process%s left by workers survive%s SIGKILL", n->core.group.left,
               n->core.group.left == 1 ? "" : "es", n->core.group.left == 1 ? "s" : "");
}
