#include "output/console.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

static const struct {
    const char *name, *label, *colour;
} levels[] = {
    [EL_ERROR] = {"error", "", "\033[1;31m"},
    [EL_WARN] = {"warning", "warning: ", "\033[33m"},
    [EL_INFO] = {"info", "", "\033[1m"},
    [EL_DEBUG] = {"debug", "debug: ", "\033[2m"},
};

struct console_text {
    char *v;
    size_t len, room; /* room for text; behind it lies the tail that must always fit */
};

static void console_put(struct console_text *t, const char *s, size_t n)
{
    if (n > t->room - t->len)
        n = t->room - t->len;
    memcpy(t->v + t->len, s, n);
    t->len += n;
}

static void puts_all(struct console_text *t, const char *s)
{
    console_put(t, s, strlen(s));
}

/* A whole character or nothing, so that cutting leaves valid JSON. */
static bool put_whole(struct console_text *t, const char *s, size_t n)
{
    if (n > t->room - t->len)
        return false;
    console_put(t, s, n);
    return true;
}

static void console_put_json(struct console_text *t, const char *s)
{
    while (*s) {
        char escaped[8];
        size_t n = el_utf8(s, SIZE_MAX);
        bool went;
        if (!n) {
            went = put_whole(t, "\\ufffd", 6);
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", *s);
            went = put_whole(t, escaped, 2);
        } else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*s);
            went = put_whole(t, escaped, 6);
        } else {
            went = put_whole(t, s, n);
        }
        if (!went)
            return;
        s += n;
    }
}

static void put_plain(struct console_text *t, const char *s)
{
    for (size_t n; *s; s += n) {
        n = el_utf8(s, SIZE_MAX);
        bool shown = n && (*s == '\t' || !el_utf8_steers(s, n));
        n = n ? n : 1;
        if (!put_whole(t, shown ? s : "?", shown ? n : 1))
            return;
    }
}

size_t console_line(char *to, size_t size, enum console_form form, enum el_level level, long long wall_ms,
                    const char *text)
{
    assert(size >= 128 && (size_t)level < sizeof levels / sizeof levels[0]);
    const char *tail = form == CONSOLE_JSON ? "\"}\n" : "\n";
    struct console_text t = {.v = to, .room = size - 1 - strlen(tail)};
    char head[96];
    switch (form) {
    case CONSOLE_JSON:
        snprintf(head, sizeof head, "{\"time\":%lld.%03lld,\"level\":\"%s\",\"text\":\"", wall_ms / 1000,
                 wall_ms % 1000, levels[level].name);
        puts_all(&t, head);
        console_put_json(&t, text);
        break;
    case CONSOLE_COLOUR:
        snprintf(head, sizeof head, "%selrun:\033[0m %s", levels[level].colour, levels[level].label);
        puts_all(&t, head);
        put_plain(&t, text);
        break;
    case CONSOLE_PLAIN:
        snprintf(head, sizeof head, "elrun: %s", levels[level].label);
        puts_all(&t, head);
        put_plain(&t, text);
        break;
    }
    t.room = size - 1;
    puts_all(&t, tail);
    to[t.len] = 0;
    return t.len;
}

static void age(char to[32], el_usec us)
{
    unsigned long long s = us / 1000000u;
    if (s < 60)
        snprintf(to, 32, "%llus", s);
    else if (s < 3600)
        snprintf(to, 32, "%llum%02llus", s / 60, s % 60);
    else
        snprintf(to, 32, "%lluh%02llum", s / 3600, s / 60 % 60);
}

size_t console_status_line(char *to, size_t size, const struct console_status *st, el_usec now, unsigned columns,
                           bool colour)
{
    static const char dim[] = "\033[2m", plain[] = "\033[0m";
    assert(size > sizeof dim + sizeof plain);
    char line[256], since[32];
    age(since, now > st->since ? now - st->since : 0);
    int n = snprintf(line, sizeof line, "elrun: %s, round %u, restarts %u/%u, %s", st->state, st->round, st->restarts,
                     st->max_restarts, since);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    /* The last column stays free: some terminals wrap as soon as it is written. */
    size_t most = columns > 1 ? columns - 1 : 0;
    len = len < most ? len : most;
    size_t room = size - sizeof dim - sizeof plain;
    len = len < room ? len : room;
    struct console_text t = {.v = to, .room = size - 1};
    puts_all(&t, colour ? dim : "");
    console_put(&t, line, len);
    puts_all(&t, colour ? plain : "");
    to[t.len] = 0;
    return t.len;
}

bool console_wants_colour(const char *no_color, const char *term)
{
    return !(no_color && no_color[0]) && term && term[0] && strcmp(term, "dumb") != 0;
}
