#include "probe/rails.h"

#include <stdio.h>
#include <string.h>

#include "util/parse.h"

static int wrong(struct el_err *e)
{
    return el_fail(e, EL_EXIT_USAGE, "want a number of connections, 1 to %d, or interfaces such as eth1,eth2",
                   PLAN_RAILS_MAX);
}

static int take_name(struct probe_rails *r, const char *name, size_t n, struct el_err *e)
{
    uint64_t number;
    if (r->n == PLAN_RAILS_MAX || !n || n >= RAILS_NAME_MAX || *name == '-' || el_parse_u64n(name, n, &number) == 0)
        return wrong(e);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == '/' || name[i] == 0x7f)
            return wrong(e);
    for (unsigned i = 0; i < r->n; i++)
        if (strlen(r->name[i]) == n && memcmp(r->name[i], name, n) == 0)
            return el_fail(e, EL_EXIT_USAGE, "\"%.*s\" stands there twice", (int)n, name);
    snprintf(r->name[r->n++], RAILS_NAME_MAX, "%.*s", (int)n, name);
    return 0;
}

int probe_rails_parse(const char *text, struct probe_rails *out, struct el_err *e)
{
    struct probe_rails r = {.named = true};
    uint64_t count;
    if (el_parse_u64(text, &count) == 0) {
        if (!count || count > PLAN_RAILS_MAX)
            return wrong(e);
        *out = (struct probe_rails){.n = (unsigned)count};
        return 0;
    }
    for (const char *at = text;; at++) {
        const char *comma = strchr(at, ',');
        size_t n = comma ? (size_t)(comma - at) : strlen(at);
        if (take_name(&r, at, n, e) < 0)
            return -1;
        at += n;
        if (!*at)
            break;
    }
    *out = r;
    return 0;
}

const char *probe_rails_name(const struct probe_rails *r, unsigned rail)
{
    return r && r->named && rail < r->n ? r->name[rail] : NULL;
}
