#include "probe/facts.h"

#include <string.h>

const struct fact_row fact_rows[FACTS] = {
#define X(id, name, kind, words) {name, FACT_KIND_##kind, words},
    FACT_LIST(X)
#undef X
};

bool facts_set(struct facts *f, const char *name, const char *value)
{
    for (unsigned i = 0; i < FACTS; i++) {
        if (strcmp(fact_rows[i].name, name) != 0)
            continue;
        size_t n = 0;
        for (; value[n] && n + 1 < FACT_MAX; n++)
            f->v[i][n] = value[n] >= ' ' && value[n] <= '~' ? value[n] : '?';
        f->v[i][n] = 0;
        return true;
    }
    return false;
}
