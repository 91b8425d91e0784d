#include "sys/proc_sample.h"

#include <string.h>

#include "sys/procstat.h"
#include "util/ranges.h"

/* Frozen tasks look asleep (version 2) or held (version 1): the function tells. */
static bool is_frozen(const char *wchan)
{
    return strncmp(wchan, "do_freezer_trap", 15) == 0 || strncmp(wchan, "__refrigerator", 14) == 0;
}

static enum proc_sample_doing doing_of(char state, const char *wchan)
{
    switch (state) {
    case 'T': return PROC_SAMPLE_STOPPED;
    case 't': return PROC_SAMPLE_TRACED;
    case 'R': return PROC_SAMPLE_RUNNING;
    case 'D': return is_frozen(wchan) ? PROC_SAMPLE_FROZEN : PROC_SAMPLE_HELD;
    case 'S':
    case 'I': return is_frozen(wchan) ? PROC_SAMPLE_FROZEN : PROC_SAMPLE_SLEEPING;
    case 'Z':
    case 'X': return PROC_SAMPLE_ENDED;
    default: return PROC_SAMPLE_UNSEEN;
    }
}

/* The name of a function, nothing else; the kernel writes "0" for none. */
static void copy_wchan(char to[PROC_SAMPLE_WCHAN_MAX], const char *from)
{
    size_t n = 0;
    for (char c; n + 1 < PROC_SAMPLE_WCHAN_MAX && (c = from[n]) != 0; n++) {
        bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
        if (!name)
            break;
        to[n] = c;
    }
    to[n] = 0;
    if (to[0] >= '0' && to[0] <= '9')
        to[0] = 0;
    char *clone = strchr(to, '.'); /* "do_poll.constprop.0": what the compiler made of it says nothing */
    if (clone)
        *clone = 0;
}

void proc_sample_parse(struct proc_sample_one *one, const char *stat, const char *wchan)
{
    struct procstat_stat st;
    *one = (struct proc_sample_one){.id = one->id, .doing = PROC_SAMPLE_UNSEEN};
    if (procstat_stat(&st, stat) < 0)
        return;
    copy_wchan(one->wchan, wchan);
    one->doing = doing_of(st.state, one->wchan);
    one->cpu_ticks = st.utime_ticks + st.stime_ticks;
    one->threads = st.threads;
    if (one->doing != PROC_SAMPLE_HELD && one->doing != PROC_SAMPLE_SLEEPING)
        one->wchan[0] = 0;
}

bool proc_sample_is_notable(const struct proc_sample_one *one, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (one[i].doing <= PROC_SAMPLE_HELD)
            return true;
    return false;
}

static const char *doing_text(const struct proc_sample_one *one)
{
    switch (one->doing) {
    case PROC_SAMPLE_STOPPED: return "stopped by a signal (SIGSTOP or the like)";
    case PROC_SAMPLE_TRACED: return "held by a debugger";
    case PROC_SAMPLE_FROZEN: return "frozen by its cgroup";
    case PROC_SAMPLE_HELD: return one->wchan[0] ? "in state D in " : "in state D";
    case PROC_SAMPLE_RUNNING: return "running";
    case PROC_SAMPLE_SLEEPING: return one->wchan[0] ? "asleep in " : "asleep";
    case PROC_SAMPLE_ENDED:
    case PROC_SAMPLE_UNSEEN: break;
    }
    return "";
}

static bool proc_sample_same(const struct proc_sample_one *a, const struct proc_sample_one *b)
{
    return a->doing == b->doing && strcmp(a->wchan, b->wchan) == 0;
}

/* The groups told so far, by their first members. */
struct proc_sample_told {
    unsigned n, first[PROC_SAMPLE_GROUPS_MAX];
};

static bool proc_sample_is_told(const struct proc_sample_told *t, const struct proc_sample_one *one, unsigned i)
{
    for (unsigned k = 0; k < t->n; k++)
        if (proc_sample_same(&one[t->first[k]], &one[i]))
            return true;
    return false;
}

static void proc_sample_put_group(struct el_buf *out, const char *noun, const struct proc_sample_one *one,
                                  unsigned first, unsigned n)
{
    struct el_ranges r = {0};
    unsigned count = 0;
    for (unsigned i = first; i < n; i++)
        count += proc_sample_same(&one[first], &one[i]);
    el_buf_printf(out, "%s%s ", noun, count == 1 ? "" : "s");
    for (unsigned i = first; i < n; i++)
        if (proc_sample_same(&one[first], &one[i]))
            el_ranges_add(&r, out, one[i].id);
    el_ranges_end(&r, out);
    el_buf_printf(out, " %s%s", doing_text(&one[first]), one[first].wchan);
}

void proc_sample_text(struct el_buf *out, const char *noun, const struct proc_sample_one *one, unsigned n)
{
    struct proc_sample_told told = {0};
    unsigned more = 0;
    for (unsigned doing = PROC_SAMPLE_STOPPED; doing <= PROC_SAMPLE_SLEEPING; doing++)
        for (unsigned i = 0; i < n; i++) {
            if (one[i].doing != doing || proc_sample_is_told(&told, one, i))
                continue;
            if (told.n == PROC_SAMPLE_GROUPS_MAX) {
                more++;
                continue;
            }
            el_buf_puts(out, told.n ? "; " : "");
            proc_sample_put_group(out, noun, one, i, n);
            told.first[told.n++] = i;
        }
    if (more)
        el_buf_printf(out, "; %u more elsewhere", more);
}

unsigned proc_sample_busy_percent(const struct proc_sample_one *before, const struct proc_sample_one *now,
                                  el_usec since, long ticks_per_second)
{
    bool seen =
        before->doing < PROC_SAMPLE_ENDED && now->doing < PROC_SAMPLE_ENDED && now->cpu_ticks >= before->cpu_ticks;
    if (!seen || !since || ticks_per_second <= 0)
        return 0;
    double used_usec = (double)(now->cpu_ticks - before->cpu_ticks) * 1e6 / (double)ticks_per_second;
    return (unsigned)(used_usec * 100 / (double)since);
}
