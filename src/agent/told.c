#include "agent/told.h"

#include <stddef.h>
#include <string.h>

#include "incident/text.h"

static const char stopping[] = "stopping: ";

/* "rank N on HOST failed: " */
static bool is_cause(const char *text)
{
    size_t digits = 0;
    if (strncmp(text, "rank ", 5) != 0)
        return false;
    text += 5;
    while (text[digits] >= '0' && text[digits] <= '9')
        digits++;
    return digits && strncmp(text + digits, " on ", 4) == 0 &&
           text_find((struct text){text, strlen(text)}, " failed: ");
}

const char *told_stop(const char *line)
{
    if (strncmp(line, stopping, sizeof stopping - 1) != 0 || !is_cause(line + sizeof stopping - 1))
        return NULL;
    return line + sizeof stopping - 1;
}

/* Where a cause begins in it, of which told is the beginning. */
static char *find(char *line, const char *told, size_t len)
{
    if (is_cause(line) && strncmp(line, told, len) == 0)
        return line;
    for (char *at = line; *at; at++)
        if (strncmp(at, ": rank ", 7) == 0 && is_cause(at + 2) && strncmp(at + 2, told, len) == 0)
            return at + 2;
    return NULL;
}

bool told_cut(char *line, const char *told, bool reported)
{
    size_t len = told ? strlen(told) : 0;
    char *at = len || reported ? find(line, reported ? "" : told, reported ? 0 : len) : NULL;
    if (!at)
        return true;
    const char *news = !reported && strncmp(at + len, ": ", 2) == 0 ? at + len + 2 : "";
    memmove(at, news, strlen(news) + 1);
    if (!*at && at > line)
        at[-2] = 0; /* the colon before it */
    return *line;
}
