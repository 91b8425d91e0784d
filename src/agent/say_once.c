#include "agent/say_once.h"

#include <stddef.h>
#include <string.h>

#include "util/text.h"

static const char stopping[] = "stopping: ";

/* The length of "rank N on HOST failed: ", with which it begins; 0: with something else. */
static size_t head_of(const char *text)
{
    size_t digits = 0;
    if (strncmp(text, "rank ", 5) != 0)
        return 0;
    while (text[5 + digits] >= '0' && text[5 + digits] <= '9')
        digits++;
    if (!digits || strncmp(text + 5 + digits, " on ", 4) != 0)
        return 0;
    const char *failed = text_find((struct text){text, strlen(text)}, " failed: ");
    return failed ? (size_t)(failed - text) + 9 : 0;
}

const char *say_once_stop(const char *line)
{
    if (strncmp(line, stopping, sizeof stopping - 1) != 0 || !head_of(line + sizeof stopping - 1))
        return NULL;
    return line + sizeof stopping - 1;
}

/* Where the cause with this head begins in it. */
static char *say_once_find(char *line, const char *head, size_t len)
{
    if (strncmp(line, head, len) == 0)
        return line;
    for (char *at = line; *at; at++)
        if (strncmp(at, ": ", 2) == 0 && strncmp(at + 2, head, len) == 0)
            return at + 2;
    return NULL;
}

/* A piece of a cause ends here: not in the middle of a word or of a number. */
static bool say_once_is_edge(const char *at)
{
    return !*at || *at == ';' || strncmp(at, ": ", 2) == 0 || strncmp(at, ", ", 2) == 0 || strncmp(at, " (", 2) == 0;
}

/* What goes on behind a cause of which told is the beginning; NULL: it is not. */
static char *news_behind(char *at, const char *told)
{
    size_t len = strlen(told);
    if (strncmp(at, told, len) != 0 || !say_once_is_edge(at + len))
        return NULL;
    at += len;
    return *at == ';' || *at == ':' ? at : at + strlen(at);
}

/* … behind one that has been told in full: what the line has of it may be less, or cut short. */
static char *rest_behind(char *at, const char *told, size_t head)
{
    size_t same = head;
    while (at[same] && at[same] == told[same])
        same++;
    while (same > head && !(say_once_is_edge(at + same) && say_once_is_edge(told + same)))
        same--;
    bool ends = at[same] == ';' && told[same] != ';';
    return at + (ends ? same : strlen(at));
}

bool say_once_cut(char *line, const char *told, bool in_full)
{
    size_t head = told ? head_of(told) : 0;
    char *at = head ? say_once_find(line, told, head) : NULL;
    const char *news = at ? in_full ? rest_behind(at, told, head) : news_behind(at, told) : NULL;
    if (!news)
        return true;
    if (*news == ':')
        news += 2;
    else if (at > line)
        at -= 2; /* the colon before it */
    else
        news += strspn(news, "; ");
    memmove(at, news, strlen(news) + 1);
    return *line;
}
