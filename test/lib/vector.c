#include "lib/vector.h"

#include <string.h>

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

long vector_bytes(const char *line, char *out, size_t max)
{
    size_t n = 0;
    if (*line == '>' || *line == '<')
        line++;
    while (*line && *line != '#') {
        if (*line == ' ') {
            line++;
        } else if (*line == '\'') {
            for (line++; *line && *line != '\''; line++)
                if (n < max)
                    out[n++] = *line;
            if (!*line++)
                return -1;
        } else if (line[0] == '.' && line[1] == '.') {
            /* The byte before was the lowest of eight; one "00" was written already where the text is "00..". */
            for (int i = 0; i < 6 && n < max; i++)
                out[n++] = 0;
            line += 2;
        } else {
            int high = digit(line[0]), low = high < 0 ? -1 : digit(line[1]);
            if (low < 0 || n >= max)
                return -1;
            out[n++] = (char)(high * 16 + low);
            line += 2;
        }
    }
    return (long)n;
}
