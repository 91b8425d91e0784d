/* Another attempt that waits: what made the last one fail has to pass. */
#include "agent/node.h"

void report_wait(struct node *n)
{
    struct el_buf why = EL_BUF_INIT(NULL, 0);
    report_verdict(n, &why);
    el_log(EL_INFO, "%s; this may pass by itself: restart %u of %u in %u s", el_buf_cstr(&why), n->core.restarts + 1,
           n->conf->max_restarts, (unsigned)(n->core.verdict.wait / EL_SEC(1)));
    el_buf_free(&why);
}
