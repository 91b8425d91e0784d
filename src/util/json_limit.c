#include "util/json_limit.h"

bool json_limit_holds(const char *text, size_t n, unsigned values_max, unsigned depth_max)
{
    unsigned values = 0, depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\')
                i++;
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        depth += c == '{' || c == '[';
        depth -= (c == '}' || c == ']') && depth;
        values += c == ',' || c == '{' || c == '[';
        if (depth > depth_max || values > values_max)
            return false;
    }
    return true;
}
