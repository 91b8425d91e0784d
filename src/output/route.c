#include "output/route.h"

#include <assert.h>

static struct route route_of_stream(const struct route_in *in)
{
    if (in->teed && in->shown)
        return (struct route){
            .kind = ROUTE_PIPE, .to_file = in->logs, .to_console = true, .to_filter = in->logs && in->filter};
    /* A teed rank that is not shown only has its file. */
    if ((in->redirected || in->teed) && in->watched)
        return (struct route){.kind = ROUTE_PIPE, .to_file = in->logs};
    if (in->redirected || in->teed)
        return (struct route){.kind = in->logs ? ROUTE_FILE : ROUTE_NULL};
    /* Nobody shall see the stderr of a rank that is not shown, but if it fails, its traceback is wanted. */
    if (!in->shown)
        return (struct route){.kind = in->is_stderr || in->watched ? ROUTE_PIPE : ROUTE_NULL};
    if (!in->is_stderr && in->watched && !in->terminal)
        return (struct route){.kind = ROUTE_PIPE, .to_console = true, .raw = true};
    if (!in->is_stderr)
        return (struct route){.kind = ROUTE_INHERIT};
    if (!in->terminal)
        return (struct route){.kind = ROUTE_PIPE, .to_console = true, .raw = true};
    if (in->capture)
        return (struct route){.kind = ROUTE_PTY, .to_console = true, .raw = true};
    return (struct route){.kind = ROUTE_INHERIT};
}

struct route route_decide(const struct route_in *in)
{
    struct route r = route_of_stream(in);
    bool read = r.kind == ROUTE_PIPE || r.kind == ROUTE_PTY;
    assert(read || (!r.to_file && !r.to_console && !r.to_filter));
    assert(!r.raw || r.to_console);
    return r;
}
