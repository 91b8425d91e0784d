/* What is said of checkpoints, to people, to workers and to files of events; and how far a long write is. */
#include <stdio.h>

#include "agent/flush_private.h"
#include "util/log.h"
#include "util/snip.h"

#define PROGRESS_AFTER EL_SEC(1) /* what takes longer is shown on a terminal */

const char *flush_io_size(uint64_t bytes, char to[32])
{
    double v = (double)bytes;
    const char *unit = bytes < 1000000 ? "kB" : bytes < 1000000000 ? "MB" : "GB";
    snprintf(to, 32, "%.3g %s", v / (bytes < 1000000 ? 1e3 : bytes < 1000000000 ? 1e6 : 1e9), unit);
    return to;
}

void flush_io_owe(struct flush_io *p, int64_t step, const char *why)
{
    if (step <= flush_on_disk(p->core) || step < p->owed)
        return;
    p->owed = step;
    snprintf(p->owed_why, sizeof p->owed_why, "%s", why);
}

static void flush_say_keep(struct flush_io *p, int64_t step)
{
    p->failed_step = SLOT_TABLE_NO_STEP;
    p->owed = step >= p->owed ? SLOT_TABLE_NO_STEP : p->owed;
}

bool flush_io_owes(const struct node *n, char to[PERSISTING_OWES_MAX])
{
    const struct flush_io *p = n->persisting;
    if (!p || p->owed == SLOT_TABLE_NO_STEP)
        return false;
    el_snip(to, PERSISTING_OWES_MAX,
            "the script wanted step %lld on disk (persist=True), and neither it nor a later one is there: %s",
            (long long)p->owed, p->owed_why);
    return true;
}

void flush_io_say_failed(struct flush_io *p, int64_t step, bool emergency, bool promised, const char *why)
{
    el_log(EL_WARN, "checkpoint: step %lld is not on disk: %s", (long long)step, why);
    emit_checkpoint(p->node, &(struct event_checkpoint){
                                 .step = (uint64_t)step, .state = "failed", .emergency = emergency, .text = why});
    snapshot_service_event(p->node->snapshots, "failed", step, why);
    p->failed_step = step;
    snprintf(p->failed_why, sizeof p->failed_why, "%s", why);
    if (promised)
        flush_io_owe(p, step, why);
    ckpt_news(p->node);
}

void flush_io_say_committed(struct flush_io *p, bool existed, const char *trouble)
{
    char where[CKPT_PATH_MAX + 512], name[CKPT_PATH_MAX], size[32];
    el_usec took = loop_clock() - p->began;
    ckpt_step_name((enum ckpt_layout)p->node->conf->ckpt_layout, p->about.step, name);
    snprintf(where, sizeof where, "%.400s/%.100s", p->node->conf->ckpt_dir, name);
    if (existed)
        snprintf(p->said, sizeof p->said, "step %lld was there already, and is valid: %s", (long long)p->about.step,
                 where);
    else
        snprintf(p->said, sizeof p->said, "step %lld%s is on disk: %s in %.1f s, %s", (long long)p->about.step,
                 p->about.emergency ? " (emergency)" : "", flush_io_size(p->bytes, size), (double)took / EL_SEC(1),
                 where);
    emergency_io_say(p->node, "checkpoint: %s", p->said);
    if (*trouble)
        el_log(EL_WARN, "checkpoint: %s", trouble);
    emit_checkpoint(p->node, &(struct event_checkpoint){.step = (uint64_t)p->about.step,
                                                        .state = "committed",
                                                        .emergency = p->about.emergency,
                                                        .bytes = p->bytes,
                                                        .elapsed_us = took,
                                                        .text = where});
    snapshot_service_event(p->node->snapshots, "committed", p->about.step, where);
    p->on_disk_at = loop_clock();
    flush_say_keep(p, p->about.step);
    ckpt_news(p->node);
}

void flush_io_note_saved(struct flush_io *p, const struct member_save *x, const char *where)
{
    char size[32];
    if (x->over_existed)
        snprintf(p->said, sizeof p->said, "step %lld was there already, and is valid: %s", (long long)x->over_step,
                 where);
    else if (x->over_bytes)
        snprintf(p->said, sizeof p->said, "step %lld%s is on disk: %s in %.1f s, %s", (long long)x->over_step,
                 x->over_emergency ? " (emergency)" : "", flush_io_size(x->over_bytes, size), (double)x->over_ms / 1e3,
                 where);
    else if (flush_on_disk(p->core) != x->over_step) /* else more is known of it */
        snprintf(p->said, sizeof p->said, "step %lld is on disk: %s", (long long)x->over_step, where);
    p->on_disk_at = flush_on_disk(p->core) == x->over_step ? p->on_disk_at : loop_clock();
    flush_say_keep(p, x->over_step);
}

void flush_io_note_failed(struct flush_io *p, int64_t step, const char *why)
{
    el_log(EL_DEBUG, "checkpoint: step %lld is not on disk: %s", (long long)step, why);
    snapshot_service_event(p->node->snapshots, "failed", step, why);
    p->failed_step = step;
    snprintf(p->failed_why, sizeof p->failed_why, "%s", why);
    ckpt_news(p->node);
}

bool flush_io_note_answer(struct flush_io *p, const struct member_save *x)
{
    if (!x->over_ask || x->over_ask != p->asked)
        return false;
    p->answered = x->over_ask;
    p->answer_status = x->over_good ? 0 : x->over_step == MEMBER_NO_STEP ? CKPT_INCOMPLETE : EL_EXIT_CANTCREAT;
    if (x->over_good || x->over_step == MEMBER_NO_STEP)
        snprintf(p->answer, sizeof p->answer, "%s", x->over_good ? p->said : x->over_text);
    else
        snprintf(p->answer, sizeof p->answer, "step %lld is not on disk: %s", (long long)x->over_step, x->over_text);
    return true;
}

/* The status line tells how far a long write is. */
void flush_io_show(struct flush_io *p)
{
    uint64_t now, all;
    char size[32];
    struct console_status st = p->node->status_line;
    disk_progress(p->disk, &now, &all);
    bool show = disk_is_busy(p->disk) && loop_clock() - p->began >= PROGRESS_AFTER;
    if (!show && !p->shown)
        return;
    p->shown = show;
    if (show) {
        snprintf(p->progress, sizeof p->progress, "%s%swriting step %lld, %u%% of %s", st.state ? st.state : "",
                 st.state ? ", " : "", (long long)p->about.step,
                 (unsigned)(all ? (double)now * 100 / (double)all : 100), flush_io_size(p->bytes, size));
        st.state = p->progress;
        st.since = p->began;
    }
    console_status(p->node->console, &st);
}
