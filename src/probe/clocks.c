#include "probe/clocks.h"

#include <stdio.h>
#include <string.h>

#include "util/parse.h"

static const char name[] = "clock_us";

void clocks_line(int64_t wall_us, char text[CLOCKS_TEXT], struct probe_wire *w)
{
    snprintf(text, CLOCKS_TEXT, "%lld", (long long)wall_us);
    wire_init(w, WIRE_FACT);
    w->u.fact.name = name;
    w->u.fact.value = text;
}

bool clocks_take(const struct probe_wire *w, int64_t *wall_us)
{
    int64_t value;
    if (w->type != WIRE_FACT || strcmp(w->u.fact.name, name) != 0 || el_parse_i64(w->u.fact.value, &value) ||
        value < -INT64_MAX / 4 || value > INT64_MAX / 4)
        return false;
    *wall_us = value;
    return true;
}

/* The k-th smallest, by halves. */
static int64_t select_kth(int64_t *v, unsigned n, unsigned k)
{
    unsigned from = 0, to = n;
    while (to - from > 1) {
        int64_t pivot = v[from + (to - from) / 2];
        unsigned below = from, above = to;
        for (unsigned i = from; i < above;) {
            int64_t x = v[i];
            if (x < pivot) {
                v[i++] = v[below];
                v[below++] = x;
            } else if (x > pivot) {
                v[i] = v[--above];
                v[above] = x;
            } else {
                i++;
            }
        }
        if (k < below)
            to = below;
        else if (k >= above)
            from = above;
        else
            return pivot;
    }
    return v[from];
}

int64_t clocks_usual(int64_t *wall_us, unsigned n)
{
    unsigned known = 0;
    for (unsigned i = 0; i < n; i++)
        if (wall_us[i] != CLOCKS_UNKNOWN)
            wall_us[known++] = wall_us[i];
    if (known < 2)
        return CLOCKS_UNKNOWN;
    return known == 2 ? wall_us[0] : select_kth(wall_us, known, (known - 1) / 2);
}

struct finding clocks_finding(int64_t wall_us, int64_t usual_us)
{
    if (wall_us == CLOCKS_UNKNOWN || usual_us == CLOCKS_UNKNOWN)
        return finding_unchecked(CHECK_CLOCK_OFFSET, "", "it was not compared with the others'");
    int64_t ahead = wall_us - usual_us;
    struct finding f = finding_value(CHECK_CLOCK_OFFSET, "", (double)(ahead < 0 ? -ahead : ahead) / 1e6);
    finding_say(&f, "%s the others", ahead < 0 ? "behind" : "ahead of");
    return f;
}
