#include "failure/termination_msg.h"

#include <assert.h>
#include <string.h>

#include "util/text.h"

#define TERMINATION_MSG_LEAST 64

static const char *lines_of(const struct failure *f)
{
    return !f ? "" : f->stack ? f->stack : f->tail ? f->tail : "";
}

/* Where the last lines begin of which room bytes hold all, each with its newline. */
static const char *termination_msg_last_lines(const char *text, size_t room)
{
    size_t n = strlen(text);
    const char *from = text + n;
    while (n && text[n - 1] == '\n')
        n--;
    for (size_t at = n; at > 0; at--) {
        if (n - (at - 1) + 1 > room)
            break;
        if (at == 1 || text[at - 2] == '\n')
            from = text + at - 1;
    }
    return from;
}

int termination_msg_text(const char *why, const struct failure *cause, size_t limit, struct el_buf *out)
{
    char line[TERMINATION_MSG_MAX / 2];
    assert(limit >= TERMINATION_MSG_LEAST && limit <= TERMINATION_MSG_MAX);
    size_t most = limit / 2 < sizeof line ? limit / 2 : sizeof line;
    text_copy(line, most, why, strlen(why));
    size_t used = strlen(line) + 1;
    int bad = el_buf_printf(out, "%s\n", line);
    const char *advice = cause ? failure_advice(cause) : "";
    size_t n = strlen(advice) + strlen("advice: \n");
    if (*advice && used + n <= limit) {
        bad |= el_buf_printf(out, "advice: %s\n", advice);
        used += n;
    }
    const char *from = termination_msg_last_lines(lines_of(cause), limit - used);
    n = strlen(from);
    while (n && from[n - 1] == '\n')
        n--;
    if (n) {
        bad |= el_buf_put(out, from, n);
        bad |= el_buf_puts(out, "\n");
    }
    return bad ? -1 : 0;
}
