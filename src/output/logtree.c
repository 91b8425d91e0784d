#include "output/logtree.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/rng.h"

#define CHANCE_CHARS     8u
#define RUN_ID_BYTES_MAX 96u

static void chance_text(char to[CHANCE_CHARS + 1], uint64_t chance)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    struct el_rng rng = {.state = chance};
    for (unsigned i = 0; i < CHANCE_CHARS; i++)
        to[i] = letters[el_rng_below(&rng, sizeof letters - 1)];
    to[CHANCE_CHARS] = 0;
}

static char tame(char c, bool first)
{
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("._-+=@", c));
    return plain && !(first && c == '.') ? c : '_';
}

size_t logtree_run_name(char to[LOGTREE_NAME_MAX], const char *run_id, uint64_t chance)
{
    static_assert(RUN_ID_BYTES_MAX + 1 + CHANCE_CHARS < LOGTREE_NAME_MAX, "the name fits");
    size_t n = strnlen(run_id, RUN_ID_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        to[i] = tame(run_id[i], i == 0);
    to[n++] = '_';
    chance_text(to + n, chance);
    return n + CHANCE_CHARS;
}

size_t logtree_temporary_name(char to[LOGTREE_NAME_MAX], uint64_t chance)
{
    memcpy(to, "elrun_", 6);
    chance_text(to + 6, chance);
    return 6 + CHANCE_CHARS;
}

size_t logtree_attempt_name(char to[LOGTREE_NAME_MAX], unsigned restart_count, unsigned round, bool repeated)
{
    int n = repeated ? snprintf(to, LOGTREE_NAME_MAX, "attempt_%u.round_%u", restart_count, round)
                     : snprintf(to, LOGTREE_NAME_MAX, "attempt_%u", restart_count);
    assert(n > 0 && n < (int)LOGTREE_NAME_MAX);
    return (size_t)n;
}

bool logtree_is_null(const char *log_dir)
{
    return log_dir && strcmp(log_dir, "/dev/null") == 0;
}
