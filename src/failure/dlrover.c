#include "failure/dlrover.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "sys/signame.h"
#include "util/parse.h"

static int dlrover_put_message(struct el_buf *out, const struct failure *f)
{
    char text[DLROVER_MESSAGE_MAX + 1], name[SIGNAME_MAX];
    const char *said = f->message ? f->message : f->found.message[0] ? f->found.message : NULL;
    if (said)
        text_copy(text, sizeof text, said, strlen(said));
    else if (f->end == FAILURE_SIGNAL) /* torch's own words where nothing is known */
        snprintf(text, sizeof text, "Signal %d (%s) received by PID %d", f->code, signame(f->code, name), f->pid);
    else if (f->end == FAILURE_EXIT)
        snprintf(text, sizeof text, "exit code %d", f->code);
    else
        snprintf(text, sizeof text, f->end == FAILURE_NOT_STARTED ? "could not be started" : "exit status unknown");
    return text_json(out, text, strlen(text));
}

static int put_failure(struct el_buf *out, const struct failure *f, bool first)
{
    char when[sizeof f->time_text];
    snprintf(when, sizeof when, "%s", f->time_text);
    for (char *c = when; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    int code = f->end == FAILURE_SIGNAL ? -f->code : f->end == FAILURE_UNKNOWN ? -1 : f->code;
    int bad = el_buf_printf(out, "%s\"%u\": {\"local_rank\": %u, \"exitcode\": %d, \"message\": ", first ? "" : ", ",
                            f->rank, f->local_rank, code);
    bad |= dlrover_put_message(out, f);
    bad |= el_buf_puts(out, ", \"datetime\": ");
    bad |= text_json(out, when, strlen(when));
    return bad | el_buf_puts(out, "}");
}

int dlrover_line(const char *job, const char *node, unsigned restart, const struct failure *const *failures,
                 unsigned count, struct el_buf *out)
{
    char shown[EL_SHOW_MAX];
    unsigned put = 0;
    int bad = el_buf_printf(out, "%s ", el_show(job, shown));
    bad |= el_buf_printf(out, "%s restart %u fails: {", el_show(node, shown), restart);
    for (unsigned i = 0; i < count && put < DLROVER_RANKS_MAX; i++)
        if (failures[i]->by != FAILURE_BY_ELRUN)
            bad |= put_failure(out, failures[i], put++ == 0);
    bad |= el_buf_puts(out, "}");
    return bad || out->full ? -1 : 0;
}
