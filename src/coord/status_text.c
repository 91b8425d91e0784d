#include "coord/status_text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/paint.h"
#include "util/parse.h"

enum { WIDE_COLUMNS = 132, HOST_WIDTH = 20, STALE_MS = 3000, STATES_MAX = 16 };

/* --- rows in ------------------------------------------------------------------------------------------------------ */

/* What a stranger calls himself must not draw on the terminal. */
#define COPY(to, from) el_show_path((from) ? (from) : "", to, sizeof to)

void status_text_job(struct status_text *o, const struct msg_status_job *j)
{
    o->job = *j;
    COPY(o->run_id, j->run_id);
    COPY(o->state, j->state);
    COPY(o->text, j->text);
    COPY(o->cause, j->cause);
    COPY(o->aside, j->aside);
    COPY(o->master_addr, j->master_addr);
    o->job.run_id = o->run_id;
    o->job.state = o->state;
    o->job.text = o->text;
    o->job.cause = o->cause;
    o->job.aside = o->aside;
    o->job.master_addr = o->master_addr;
    o->n = 0;
}

int status_text_member(struct status_text *o, const struct msg_status_member *m)
{
    if (o->n == o->room) {
        size_t room = o->room ? 2 * o->room : 64;
        struct status_text_member *more = el_realloc(o->mem, o->member, room * sizeof *more);
        if (!more)
            return -1;
        o->member = more;
        o->room = room;
    }
    struct status_text_member *x = &o->member[o->n++];
    COPY(x->host, m->host);
    COPY(x->addr, m->addr);
    COPY(x->state, m->state);
    x->node_rank = (int)m->node_rank;
    x->group_rank = (int)m->group_rank;
    x->slots = (unsigned)m->slots;
    x->rank_base = (unsigned)m->rank_base;
    x->heard_ms = m->heard_ms;
    return 0;
}

void status_text_free(struct status_text *o)
{
    el_free(o->mem, o->member);
    o->member = NULL;
    o->n = o->room = 0;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

const char *status_text_time(unsigned long long ms, char to[16])
{
    unsigned long long s = ms / 1000;
    if (ms < 1000)
        snprintf(to, 16, "%llu ms", ms);
    else if (s < 100)
        snprintf(to, 16, "%llu.%llu s", s, ms % 1000 / 100);
    else if (s < 6000)
        snprintf(to, 16, "%llum%02llus", s / 60, s % 60);
    else if (s < 360000)
        snprintf(to, 16, "%lluh%02llum", s / 3600, s / 60 % 60);
    else
        snprintf(to, 16, "%llud%02lluh", s / 86400 % 1000000, s / 3600 % 24);
    return to;
}

static enum el_tone status_text_tone_of(const char *state)
{
    static const struct {
        const char *state;
        enum el_tone tone;
    } tones[] = {
        {"running", TONE_GOOD},  {"succeeded", TONE_GOOD},   {"over", TONE_FAINT},
        {"spare", TONE_FAINT},   {"reconnecting", TONE_BAD}, {"stuck", TONE_BAD},
        {"set aside", TONE_BAD}, {"doubted", TONE_BAD},      {"stopping an older round", TONE_BAD},
    };
    for (size_t i = 0; i < sizeof tones / sizeof tones[0]; i++)
        if (strcmp(state, tones[i].state) == 0)
            return tones[i].tone;
    return TONE_WAIT;
}

static void status_text_label(struct el_buf *out, bool colour, const char *name)
{
    el_buf_puts(out, "  ");
    el_paint(out, colour, TONE_FAINT, 10, name);
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

static void put_times(const struct status_text *o, bool colour, struct el_buf *out)
{
    const struct msg_status_job *j = &o->job;
    char a[16], b[16], c[16];
    unsigned long long sum = j->productive_ms + j->forming_ms + j->restarting_ms;
    status_text_label(out, colour, "time");
    el_buf_printf(out, "productive %s", status_text_time(j->productive_ms, a));
    if (sum)
        el_buf_printf(out, " (%llu%%)", (unsigned long long)(100.0 * (double)j->productive_ms / (double)sum));
    el_buf_printf(out, ", forming rounds %s, stopping them %s\n", status_text_time(j->forming_ms, b),
                  status_text_time(j->restarting_ms, c));
}

static void put_newest(struct el_buf *out, int64_t step, int64_t age_ms, const char *where)
{
    char age[16];
    if (step < 0)
        el_buf_printf(out, "none %s", where);
    else
        el_buf_printf(out, "step %lld %s, %s old", (long long)step, where, status_text_time((uint64_t)age_ms, age));
}

static void put_head(const struct status_text *o, bool colour, struct el_buf *out)
{
    const struct msg_status_job *j = &o->job;
    el_buf_puts(out, "job ");
    el_paint(out, colour, TONE_STRONG, 0, o->run_id);
    el_buf_puts(out, ": ");
    el_paint(out, colour, status_text_tone_of(o->state), 0, o->state);
    if (j->number)
        el_buf_printf(out, ", round %llu", (unsigned long long)j->number);
    if (strcmp(o->state, "over") == 0 || strcmp(o->state, "ending") == 0)
        el_buf_printf(out, ", status %llu", (unsigned long long)j->status);
    el_buf_puts(out, "\n");
    status_text_label(out, colour, "why");
    el_buf_printf(out, "%s\n", o->text);
    if (*o->cause) {
        status_text_label(out, colour, "cause");
        el_paint(out, colour, TONE_BAD, 0, o->cause);
        el_buf_puts(out, "\n");
    }
    status_text_label(out, colour, "nodes");
    el_buf_printf(out, "%llu here, %llu in the round, %llu spare; wanted %llu to %llu", (unsigned long long)j->members,
                  (unsigned long long)j->group_size, (unsigned long long)j->spares, (unsigned long long)j->min,
                  (unsigned long long)j->max);
    if (j->unit > 1)
        el_buf_printf(out, " in multiples of %llu", (unsigned long long)j->unit);
    el_buf_puts(out, "\n");
    if (j->group_size) {
        status_text_label(out, colour, "workers");
        el_buf_printf(out, strchr(o->master_addr, ':') ? "%llu, store at [%s]:%llu\n" : "%llu, store at %s:%llu\n",
                      (unsigned long long)j->world_size, o->master_addr, (unsigned long long)j->master_port);
    }
    status_text_label(out, colour, "restarts");
    el_buf_printf(out, "%llu of %llu used, %llu worker%s failed, %llu round%s without progress\n",
                  (unsigned long long)j->restarts, (unsigned long long)j->max_restarts,
                  (unsigned long long)j->incidents, j->incidents == 1 ? " has" : "s have",
                  (unsigned long long)j->fruitless, j->fruitless == 1 ? "" : "s");
    if (j->held_step >= 0 || j->disk_step >= 0) {
        status_text_label(out, colour, "snapshots");
        put_newest(out, j->held_step, j->held_age_ms, "in memory");
        el_buf_puts(out, "; ");
        put_newest(out, j->disk_step, j->disk_age_ms, "on disk");
        el_buf_puts(out, "\n");
    }
    if (*o->aside) {
        status_text_label(out, colour, "set aside");
        el_buf_printf(out, "%s\n", o->aside);
    }
    put_times(o, colour, out);
}

/* --- the nodes ---------------------------------------------------------------------------------------------------- */

/* The order of the table: by group rank, then the others as they came.  Group ranks are unique and below n if the
 * coordinator is right; who is not believed stands behind. */
static size_t *in_order(const struct status_text *o)
{
    size_t *order = el_alloc(o->mem, (2 * o->n + 1) * sizeof *order), at = 0;
    if (!order)
        return NULL;
    size_t *by_rank = order + o->n;
    for (size_t i = 0; i < o->n; i++)
        if (o->member[i].group_rank >= 0 && (size_t)o->member[i].group_rank < o->n)
            by_rank[o->member[i].group_rank] = i + 1;
    for (size_t r = 0; r < o->n; r++)
        if (by_rank[r])
            order[at++] = by_rank[r] - 1;
    for (size_t i = 0; i < o->n; i++) {
        int r = o->member[i].group_rank;
        bool listed = r >= 0 && (size_t)r < o->n && by_rank[r] == i + 1;
        if (!listed)
            order[at++] = i;
    }
    assert(at == o->n);
    return order;
}

static bool status_text_is_usual(const struct status_text_member *m)
{
    return (strcmp(m->state, "running") == 0 || strcmp(m->state, "spare") == 0) && m->heard_ms < STALE_MS;
}

static void status_text_put_titles(bool colour, unsigned sides, struct el_buf *out)
{
    el_buf_puts(out, "\n");
    for (unsigned i = 0; i < sides; i++) {
        char line[128];
        snprintf(line, sizeof line, "  %5s  %-13s %-*s %-16s %7s", "NODE", "RANKS", HOST_WIDTH, "HOST", "STATE",
                 "HEARD");
        el_paint(out, colour, TONE_FAINT, 0, line);
        el_buf_puts(out, i + 1 < sides ? "  " : "\n");
    }
}

static void status_text_put_member(const struct status_text_member *m, bool colour, struct el_buf *out)
{
    char rank[16] = "-", ranks[32] = "-", host[MSG_NAME_MAX + 1], heard[16];
    if (m->group_rank >= 0) {
        snprintf(rank, sizeof rank, "%d", m->group_rank);
        if (m->slots > 1)
            snprintf(ranks, sizeof ranks, "%u-%u", m->rank_base, m->rank_base + m->slots - 1);
        else
            snprintf(ranks, sizeof ranks, "%u", m->rank_base);
    }
    snprintf(host, sizeof host, "%s", m->host);
    if (strlen(host) > HOST_WIDTH)
        memcpy(host + HOST_WIDTH - 3, "...", 4);
    el_buf_printf(out, "  %5s  %-13s ", rank, ranks);
    el_paint(out, colour, TONE_PLAIN, HOST_WIDTH + 1, host);
    el_paint(out, colour, status_text_tone_of(m->state), 17, m->state);
    el_buf_printf(out, "%s%7s%s", colour && m->heard_ms >= STALE_MS ? "\033[33m" : "",
                  status_text_time(m->heard_ms, heard), colour && m->heard_ms >= STALE_MS ? "\033[0m" : "");
}

/* n nodes, one under the other; in two halves side by side if there is room and they are many. */
static void put_table(const struct status_text *o, const size_t *order, size_t n, bool colour, unsigned columns,
                      struct el_buf *out)
{
    unsigned sides = columns >= WIDE_COLUMNS && n > STATUS_TEXT_LISTED_MAX / 4 ? 2 : 1;
    size_t lines = (n + sides - 1) / sides;
    status_text_put_titles(colour, sides, out);
    for (size_t line = 0; line < lines; line++) {
        status_text_put_member(&o->member[order[line]], colour, out);
        if (sides == 2 && line + lines < n) {
            el_buf_puts(out, "  ");
            status_text_put_member(&o->member[order[line + lines]], colour, out);
        }
        el_buf_puts(out, "\n");
    }
}

/* "1021 running, 2 reconnecting; the longest silence is 1.2 s" */
static void status_text_put_summary(const struct status_text *o, bool colour, struct el_buf *out)
{
    struct {
        const char *state;
        size_t n;
    } seen[STATES_MAX] = {{NULL, 0}};
    unsigned long long silence = 0;
    size_t kinds = 0;
    char text[16], line[128];
    for (size_t i = 0; i < o->n; i++) {
        size_t k = 0;
        while (k < kinds && strcmp(seen[k].state, o->member[i].state) != 0)
            k++;
        if (k == kinds && kinds < STATES_MAX)
            seen[kinds++].state = o->member[i].state;
        if (k < kinds)
            seen[k].n++;
        silence = o->member[i].heard_ms > silence ? o->member[i].heard_ms : silence;
    }
    status_text_label(out, colour, "states");
    for (size_t k = 0; k < kinds; k++) {
        snprintf(line, sizeof line, "%zu %s", seen[k].n, seen[k].state);
        el_paint(out, colour, status_text_tone_of(seen[k].state), 0, line);
        el_buf_puts(out, k + 1 < kinds ? ", " : "");
    }
    el_buf_printf(out, "; the longest silence is %s\n", status_text_time(silence, text));
}

void status_text_text(const struct status_text *o, bool colour, unsigned columns, struct el_buf *out)
{
    put_head(o, colour, out);
    size_t *order = o->n ? in_order(o) : NULL;
    if (!order)
        return;
    size_t shown = o->n;
    if (o->n > STATUS_TEXT_LISTED_MAX) {
        size_t unusual = 0;
        status_text_put_summary(o, colour, out);
        for (size_t i = shown = 0; i < o->n; i++) {
            bool odd = !status_text_is_usual(&o->member[order[i]]);
            unusual += odd;
            if ((odd || i == 0) && shown < STATUS_TEXT_LISTED_MAX / 2)
                order[shown++] = order[i];
        }
        el_buf_printf(out, "\n  Of %zu nodes, node 0 and %zu that %s not running as the rest:\n", o->n, unusual,
                      unusual == 1 ? "is" : "are");
    }
    put_table(o, order, shown, colour, columns, out);
    if (o->n > STATUS_TEXT_LISTED_MAX)
        el_buf_puts(out, "  (--json lists all)\n");
    el_free(o->mem, order);
}
