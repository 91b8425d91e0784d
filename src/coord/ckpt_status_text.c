#include "coord/ckpt_status_text.h"

#include <stdio.h>

#include "coord/status_text.h"
#include "util/paint.h"
#include "util/parse.h"

enum { OLD_MS = 3600000 };

static const char *size_text(uint64_t bytes, char to[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;
    for (; v >= 1000 && u + 1 < sizeof units / sizeof units[0]; u++)
        v /= 1024;
    snprintf(to, 32, u && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return to;
}

static void ckpt_status_text_label(struct el_buf *out, bool colour, const char *name)
{
    el_buf_puts(out, "  ");
    el_paint(out, colour, TONE_FAINT, 10, name);
}

/* "step 1200, 3.2 s old" */
static void ckpt_status_text_put_step(struct el_buf *out, int64_t step, int64_t age_ms, const char *unknown)
{
    char age[16];
    if (step < 0)
        el_buf_puts(out, "none");
    else if (age_ms < 0)
        el_buf_printf(out, "step %lld, %s", (long long)step, unknown);
    else
        el_buf_printf(out, "step %lld, %s old", (long long)step, status_text_time((unsigned long long)age_ms, age));
    el_buf_puts(out, "\n");
}

void ckpt_status_text_progress(const struct msg_ckpt_node *n, char *to, size_t room)
{
    char done[32], all[32];
    if (n->writing < 0)
        snprintf(to, room, "waiting for the disk");
    else
        snprintf(to, room, "writing step %lld: %s of %s (%.0f %%)", (long long)n->writing,
                 size_text(n->done_bytes, done), size_text(n->all_bytes, all),
                 n->all_bytes ? 100.0 * (double)n->done_bytes / (double)n->all_bytes : 0.0);
}

static void put_newest_on_disk(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    ckpt_status_text_label(out, colour, "disk");
    if (*n->dir)
        ckpt_status_text_put_step(out, n->disk_step, n->disk_age_ms, "of an earlier time");
    else
        el_buf_puts(out, "not written: no --ckpt-dir was given\n");
}

static void put_disk(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    char shown[4 * 400], progress[128];
    put_newest_on_disk(n, colour, out);
    if (!*n->dir)
        return;
    ckpt_status_text_label(out, colour, "directory");
    el_buf_printf(out, "%s\n", el_show_path(n->dir, shown, sizeof shown));
    if (n->writing >= 0) {
        ckpt_status_text_progress(n, progress, sizeof progress);
        ckpt_status_text_label(out, colour, "now");
        el_buf_printf(out, "%s\n", progress);
    }
    if (n->failed >= 0) {
        ckpt_status_text_label(out, colour, "failed");
        snprintf(progress, sizeof progress, "step %lld: ", (long long)n->failed);
        el_paint(out, colour, TONE_BAD, 0, progress);
        el_paint(out, colour, TONE_BAD, 0, el_show_path(n->why, shown, sizeof shown));
        el_buf_puts(out, "\n");
    }
}

static void put_name(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    char shown[4 * MSG_RUN_ID_MAX + 1];
    el_buf_puts(out, "job ");
    el_paint(out, colour, TONE_STRONG, 0, el_show_path(n->run_id, shown, sizeof shown));
    el_buf_printf(out, ", node %llu: %s (pid %llu), %llu worker%s\n", (unsigned long long)n->group_rank,
                  el_show_path(n->host, shown, sizeof shown), (unsigned long long)n->pid,
                  (unsigned long long)n->workers, n->workers == 1 ? "" : "s");
}

static void put_newest_in_memory(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    ckpt_status_text_label(out, colour, "memory");
    ckpt_status_text_put_step(out, n->step, n->age_ms, "read from disk");
}

void ckpt_status_text_newest(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    put_name(n, colour, out);
    put_newest_in_memory(n, colour, out);
    put_newest_on_disk(n, colour, out);
}

void ckpt_status_text_node(const struct msg_ckpt_node *n, bool colour, struct el_buf *out)
{
    char used[32], budget[32], line[128];
    put_name(n, colour, out);
    if (!n->budget_bytes) {
        ckpt_status_text_label(out, colour, "snapshots");
        el_buf_puts(out, "off: neither --ckpt-mem nor --ckpt-dir was given\n");
        return;
    }
    put_newest_in_memory(n, colour, out);
    ckpt_status_text_label(out, colour, "slots");
    el_buf_printf(out, "%s of %s\n", size_text(n->used_bytes, used), size_text(n->budget_bytes, budget));
    put_disk(n, colour, out);
    snprintf(line, sizeof line, "\n  %6s  %-8s %9s  %-28s %s", "RANK", "MEMORY", "AGE", "SLOTS", "WORKER");
    el_paint(out, colour, TONE_FAINT, 0, line);
    el_buf_puts(out, "\n");
}

static void slot_text(const char *state, int64_t step, char to[48])
{
    char shown[64];
    el_show_path(state, shown, sizeof shown);
    if (step < 0)
        snprintf(to, 48, "%.16s", shown);
    else
        snprintf(to, 48, "%.16s %lld", shown, (long long)step);
}

void ckpt_status_text_worker(const struct msg_ckpt_worker *w, bool colour, struct el_buf *out)
{
    char first[48], second[48], both[100] = "none", age[16] = "", step[32] = "-", phase[64];
    bool old = w->age_ms > OLD_MS;
    if (w->step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)w->step);
    if (w->step >= 0 && w->age_ms >= 0)
        status_text_time((unsigned long long)w->age_ms, age);
    if (*w->slot0) {
        slot_text(w->slot0, w->step0, first);
        slot_text(w->slot1, w->step1, second);
        snprintf(both, sizeof both, "%s, %s", first, second);
    }
    el_buf_printf(out, "  %6llu  %-8s %s%9s%s  %-28s ", (unsigned long long)w->rank, step,
                  old && colour ? "\033[33m" : "", age, old && colour ? "\033[0m" : "", both);
    if (!w->here)
        el_paint(out, colour, TONE_FAINT, 0, "not connected");
    else if (w->live_step >= 0)
        el_buf_printf(out, "%s, after step %lld", el_show_path(w->phase, phase, sizeof phase), (long long)w->live_step);
    else
        el_buf_puts(out, "connected");
    el_buf_puts(out, "\n");
}
