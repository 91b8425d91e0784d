#include "failure/usage_error.h"

#include <string.h>

#include "util/array.h"

static bool usage_error_has_any(struct text line, const char *const *words, size_t n)
{
    for (size_t i = 0; line.n && i < n; i++)
        if (text_find(line, words[i]))
            return true;
    return false;
}

bool usage_error_does_without(struct text line)
{
    static const char *const on[] = {"default", "ontinuing", "gnoring", "kipping", "alling back", "fallback"};
    static const char *const denied[] = {"not ", "annot", "failed"};
    return usage_error_has_any(line, on, COUNT_OF(on)) && !usage_error_has_any(line, denied, COUNT_OF(denied));
}

bool usage_error_is_of_other(struct text tail, const char *program)
{
    static const char *const starts[] = {"usage: ", "Usage: "};
    struct text line, name = {0};
    while (text_line(&tail, &line)) {
        const char *at = text_find(line, ".py: error: ");
        for (size_t i = 0; i < COUNT_OF(starts); i++)
            if (text_starts(line, starts[i]))
                name = (struct text){line.p + strlen(starts[i]), line.n - strlen(starts[i])};
        if (at)
            name = (struct text){line.p, (size_t)(at - line.p) + 3};
    }
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == ' ')
            name.n = i;
    size_t all = program ? strlen(program) : 0;
    if (name.n <= 3 || memcmp(name.p + name.n - 3, ".py", 3) != 0 || !all)
        return false;
    name.n -= 3;
    all -= all > 3 && strcmp(program + all - 3, ".py") == 0 ? 3 : 0;
    if (all < name.n || memcmp(program + all - name.n, name.p, name.n) != 0)
        return !(name.n == 8 && memcmp(name.p, "__main__", 8) == 0); /* of a package, or a folder */
    return all > name.n && !strchr("/.", program[all - name.n - 1]);
}

const char *usage_error_program(const char *script, char *const *args, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        size_t len = strlen(args[i]);
        if (len > 3 && strcmp(args[i] + len - 3, ".py") == 0)
            return NULL;
    }
    return script;
}
