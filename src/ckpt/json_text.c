#include "ckpt/json_text.h"

#include <string.h>

#include "util/utf8.h"

enum expect { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COMMA_OR_END };
enum step { GO_ON, DONE, CUT, BROKEN };

struct json_text_scan {
    const char *p;
    size_t n, at;
    enum expect expect;
    const char *key;
    bool asked;  /* the value that follows is that of `key` */
    bool number; /* and was a number */
    unsigned depth;
    char open[JSON_TEXT_DEPTH_MAX];
};

static bool json_text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct json_text_scan *s)
{
    while (s->at < s->n && strchr(" \t\n\r", s->p[s->at]) && s->p[s->at])
        s->at++;
}

/* Behind a backslash. */
static enum step json_text_escape(struct json_text_scan *s)
{
    if (s->at == s->n)
        return CUT;
    char c = s->p[s->at];
    if (!c || !strchr("\"\\/bfnrtu", c))
        return BROKEN;
    s->at++;
    for (int i = 0; c == 'u' && i < 4; i++, s->at++) {
        if (s->at == s->n)
            return CUT;
        char h = s->p[s->at];
        if (!json_text_is_digit(h) && !(h >= 'a' && h <= 'f') && !(h >= 'A' && h <= 'F'))
            return BROKEN;
    }
    return GO_ON;
}

static enum step string(struct json_text_scan *s)
{
    enum step r = GO_ON;
    s->at++;
    while (!r) {
        if (s->at == s->n)
            return CUT;
        char c = s->p[s->at];
        size_t k = el_utf8(s->p + s->at, s->n - s->at);
        if (c == '"')
            return s->at++, GO_ON;
        if (!k && s->n - s->at < 4)
            return CUT;
        if (!k || (unsigned char)c < ' ')
            return BROKEN;
        s->at += k;
        if (c == '\\')
            r = json_text_escape(s);
    }
    return r;
}

static enum step json_text_digits(struct json_text_scan *s)
{
    if (s->at == s->n)
        return CUT;
    if (!json_text_is_digit(s->p[s->at]))
        return BROKEN;
    while (s->at < s->n && json_text_is_digit(s->p[s->at]))
        s->at++;
    return GO_ON;
}

static bool next_is(const struct json_text_scan *s, const char *any)
{
    return s->at < s->n && s->p[s->at] && strchr(any, s->p[s->at]);
}

static enum step json_text_number(struct json_text_scan *s)
{
    bool zero = next_is(s, "0");
    enum step r = json_text_digits(s);
    if (!r && zero && s->p[s->at - 1] != '0')
        r = BROKEN;
    if (!r && next_is(s, ".")) {
        s->at++;
        r = json_text_digits(s);
    }
    if (!r && next_is(s, "eE")) {
        s->at++;
        s->at += next_is(s, "+-");
        r = json_text_digits(s);
    }
    return r;
}

static enum step json_text_word(struct json_text_scan *s)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t left = s->n - s->at, k = strlen(words[i]);
        if (memcmp(s->p + s->at, words[i], left < k ? left : k) != 0)
            continue;
        s->at += left < k ? left : k;
        return left < k ? CUT : GO_ON;
    }
    return BROKEN;
}

static enum step json_text_push(struct json_text_scan *s, char c)
{
    if (s->depth == JSON_TEXT_DEPTH_MAX)
        return BROKEN;
    s->open[s->depth++] = c;
    s->expect = c == '{' ? KEY_OR_END : VALUE_OR_END;
    s->asked = false;
    s->at++;
    return GO_ON;
}

static enum step value(struct json_text_scan *s)
{
    char c = s->p[s->at];
    enum step r = GO_ON;
    if (c == '{' || c == '[')
        return json_text_push(s, c);
    if (c == '"') {
        r = string(s);
    } else if (json_text_is_digit(c) || c == '-') {
        s->at += c == '-';
        r = c == '-' && next_is(s, "I") ? json_text_word(s) : json_text_number(s);
        s->number |= s->asked;
    } else {
        r = json_text_word(s);
    }
    s->asked = false;
    s->expect = COMMA_OR_END;
    return !r && !s->depth ? DONE : r;
}

static enum step key(struct json_text_scan *s)
{
    size_t from = s->at + 1, k = strlen(s->key);
    if (s->p[s->at] != '"')
        return BROKEN;
    enum step r = string(s);
    if (r)
        return r;
    s->asked = s->depth == 1 && s->at - 1 - from == k && memcmp(s->p + from, s->key, k) == 0;
    skip_space(s);
    if (s->at == s->n)
        return CUT;
    if (s->p[s->at] != ':')
        return BROKEN;
    s->at++;
    s->expect = VALUE;
    return GO_ON;
}

static enum step json_text_step(struct json_text_scan *s)
{
    skip_space(s);
    if (s->at == s->n)
        return CUT;
    char c = s->p[s->at], open = s->depth ? s->open[s->depth - 1] : 0;
    bool may_end = s->expect == VALUE_OR_END || s->expect == KEY_OR_END || s->expect == COMMA_OR_END;
    if (may_end && ((c == '}' && open == '{') || (c == ']' && open == '['))) {
        s->at++;
        s->expect = COMMA_OR_END;
        return --s->depth ? GO_ON : DONE;
    }
    if (s->expect == COMMA_OR_END) {
        s->at += c == ',';
        s->expect = open == '{' ? KEY : VALUE;
        return c == ',' ? GO_ON : BROKEN;
    }
    return s->expect == KEY || s->expect == KEY_OR_END ? key(s) : value(s);
}

void json_text_look(struct json_text *to, const char *text, size_t n, const char *name)
{
    struct json_text_scan s = {.p = text, .n = n, .key = name};
    enum step r = GO_ON;
    s.at = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    skip_space(&s);
    *to = (struct json_text){.begin = s.at, .object = s.at < n && text[s.at] == '{'};
    bool list = s.at < n && (to->object || text[s.at] == '[');
    while (!r)
        r = json_text_step(&s);
    if (r == DONE)
        skip_space(&s);
    to->number = s.number;
    to->at = s.at;
    to->kind = r == CUT                                           ? JSON_TEXT_CUT
               : r == BROKEN                                      ? JSON_TEXT_BROKEN
               : s.at == n                                        ? JSON_TEXT_WHOLE
               : list && (text[s.at] == '{' || text[s.at] == '[') ? JSON_TEXT_LOG
                                                                  : JSON_TEXT_BROKEN;
}
