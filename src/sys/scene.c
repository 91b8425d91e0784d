#include "sys/scene.h"

#include <string.h>

#include "sys/procstat.h"
#include "util/ranges.h"

/* Frozen tasks look asleep (version 2) or held (version 1): the function tells. */
static bool is_frozen(const char *wchan)
{
    return strncmp(wchan, "do_freezer_trap", 15) == 0 || strncmp(wchan, "__refrigerator", 14) == 0;
}

static enum scene_doing doing_of(char state, const char *wchan)
{
    switch (state) {
    case 'T': return SCENE_STOPPED;
    case 't': return SCENE_TRACED;
    case 'R': return SCENE_RUNNING;
    case 'D': return is_frozen(wchan) ? SCENE_FROZEN : SCENE_HELD;
    case 'S':
    case 'I': return is_frozen(wchan) ? SCENE_FROZEN : SCENE_SLEEPING;
    case 'Z':
    case 'X': return SCENE_ENDED;
    default: return SCENE_UNSEEN;
    }
}

/* The name of a function, nothing else; the kernel writes "0" for none. */
static void copy_wchan(char to[SCENE_WCHAN_MAX], const char *from)
{
    size_t n = 0;
    for (char c; n + 1 < SCENE_WCHAN_MAX && (c = from[n]) != 0; n++) {
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

void scene_parse(struct scene_one *one, const char *stat, const char *wchan)
{
    struct procstat_stat st;
    *one = (struct scene_one){.id = one->id, .doing = SCENE_UNSEEN};
    if (procstat_stat(&st, stat) < 0)
        return;
    copy_wchan(one->wchan, wchan);
    one->doing = doing_of(st.state, one->wchan);
    one->cpu_ticks = st.utime_ticks + st.stime_ticks;
    one->threads = st.threads;
    if (one->doing != SCENE_HELD && one->doing != SCENE_SLEEPING)
        one->wchan[0] = 0;
}

bool scene_is_notable(const struct scene_one *one, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (one[i].doing <= SCENE_HELD)
            return true;
    return false;
}

static const char *doing_text(const struct scene_one *one)
{
    switch (one->doing) {
    case SCENE_STOPPED: return "stopped by a signal (SIGSTOP or the like)";
    case SCENE_TRACED: return "held by a debugger";
    case SCENE_FROZEN: return "frozen by its cgroup";
    case SCENE_HELD: return one->wchan[0] ? "in state D in " : "in state D";
    case SCENE_RUNNING: return "running";
    case SCENE_SLEEPING: return one->wchan[0] ? "asleep in " : "asleep";
    case SCENE_ENDED:
    case SCENE_UNSEEN: break;
    }
    return "";
}

static bool same(const struct scene_one *a, const struct scene_one *b)
{
    return a->doing == b->doing && strcmp(a->wchan, b->wchan) == 0;
}

/* The groups told so far, by their first members. */
struct told {
    unsigned n, first[SCENE_GROUPS_MAX];
};

static bool is_told(const struct told *t, const struct scene_one *one, unsigned i)
{
    for (unsigned k = 0; k < t->n; k++)
        if (same(&one[t->first[k]], &one[i]))
            return true;
    return false;
}

static void put_group(struct el_buf *out, const char *noun, const struct scene_one *one, unsigned first, unsigned n)
{
    struct el_ranges r = {0};
    unsigned count = 0;
    for (unsigned i = first; i < n; i++)
        count += same(&one[first], &one[i]);
    el_buf_printf(out, "%s%s ", noun, count == 1 ? "" : "s");
    for (unsigned i = first; i < n; i++)
        if (same(&one[first], &one[i]))
            el_ranges_add(&r, out, one[i].id);
    el_ranges_end(&r, out);
    el_buf_printf(out, " %s%s", doing_text(&one[first]), one[first].wchan);
}

void scene_text(struct el_buf *out, const char *noun, const struct scene_one *one, unsigned n)
{
    struct told told = {0};
    unsigned more = 0;
    for (unsigned doing = SCENE_STOPPED; doing <= SCENE_SLEEPING; doing++)
        for (unsigned i = 0; i < n; i++) {
            if (one[i].doing != doing || is_told(&told, one, i))
                continue;
            if (told.n == SCENE_GROUPS_MAX) {
                more++;
                continue;
            }
            el_buf_puts(out, told.n ? "; " : "");
            put_group(out, noun, one, i, n);
            told.first[told.n++] = i;
        }
    if (more)
        el_buf_printf(out, "; %u more elsewhere", more);
}

unsigned scene_busy_percent(const struct scene_one *before, const struct scene_one *now, el_usec since,
                            long ticks_per_second)
{
    bool seen = before->doing < SCENE_ENDED && now->doing < SCENE_ENDED && now->cpu_ticks >= before->cpu_ticks;
    if (!seen || !since || ticks_per_second <= 0)
        return 0;
    double used_usec = (double)(now->cpu_ticks - before->cpu_ticks) * 1e6 / (double)ticks_per_second;
    return (unsigned)(used_usec * 100 / (double)since);
}
