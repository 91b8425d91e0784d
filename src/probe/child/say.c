#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void text_put(char *out, size_t room, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, room, fmt, ap);
    va_end(ap);
}

/* Room for the closing brace and the newline is always left. */
static void say_put(struct say_line *l, const char *bytes, size_t n)
{
    if (l->n + n + 3 > sizeof l->text)
        return;
    memcpy(l->text + l->n, bytes, n);
    l->n += n;
}

static void say_put_key(struct say_line *l, const char *key)
{
    say_put(l, ",\"", 2);
    say_put(l, key, strlen(key));
    say_put(l, "\":", 2);
}

/* Driver texts may hold anything: what is not printable ASCII becomes '?', so that the line is JSON whatever it was. */
static void say_put_string(struct say_line *l, const char *s)
{
    size_t n = strlen(s);
    if (l->n + 2 * n + 8 > sizeof l->text)
        n = l->n + 8 < sizeof l->text ? (sizeof l->text - l->n - 8) / 2 : 0;
    say_put(l, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '"' || c == '\\')
            say_put(l, "\\", 1);
        else if (c == '\n' || c == '\t')
            c = ' ';
        else if (c < 0x20 || c > 0x7e)
            c = '?';
        say_put(l, &c, 1);
    }
    say_put(l, "\"", 1);
}

void line_begin(struct say_line *l, const char *type)
{
    l->n = 0;
    say_put(l, "{\"t\":", 5);
    say_put_string(l, type);
}

void line_str(struct say_line *l, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    say_put_key(l, key);
    say_put_string(l, value);
}

void line_int(struct say_line *l, const char *key, long long value)
{
    char digits[32];
    text_put(digits, sizeof digits, "%lld", value);
    say_put_key(l, key);
    say_put(l, digits, strlen(digits));
}

void line_num(struct say_line *l, const char *key, double value)
{
    if (!(value - value == 0)) /* neither infinite nor not a number */
        return;
    char digits[40];
    text_put(digits, sizeof digits, "%.10g", value);
    say_put_key(l, key);
    say_put(l, digits, strlen(digits));
}

void line_bool(struct say_line *l, const char *key, bool value)
{
    say_put_key(l, key);
    say_put(l, value ? "true" : "false", value ? 4 : 5);
}

void line_end(struct say_line *l)
{
    memcpy(l->text + l->n, "}\n", 2);
    l->n += 2;
    ssize_t n = write(SAY_FD, l->text, l->n);
    (void)n; /* nobody listens: elrun is gone, and its death ends this process */
}

static void check_begin(struct say_line *l, const char *name, int gpu)
{
    line_begin(l, "check");
    line_str(l, "name", name);
    if (gpu >= 0)
        line_int(l, "gpu", gpu);
}

void say_value(const char *name, int gpu, double value, double limit, const char *text)
{
    struct say_line l;
    check_begin(&l, name, gpu);
    line_num(&l, "value", value);
    line_num(&l, "limit", limit);
    line_str(&l, "text", text);
    line_end(&l);
}

void say_state(const char *name, int gpu, const char *state, const char *text)
{
    struct say_line l;
    check_begin(&l, name, gpu);
    line_str(&l, "state", state);
    line_str(&l, "text", text);
    line_end(&l);
}

void say_fact(const char *name, const char *value)
{
    struct say_line l;
    line_begin(&l, "fact");
    line_str(&l, "name", name);
    line_str(&l, "value", value);
    line_end(&l);
}

void say_metric(const char *name, int rail, double *v, unsigned n, const char *unit)
{
    for (unsigned i = 1; i < n; i++) /* a few hundred at most */
        for (unsigned k = i; k > 0 && v[k] < v[k - 1]; k--) {
            double swap = v[k];
            v[k] = v[k - 1];
            v[k - 1] = swap;
        }
    unsigned p95 = (n * 95 + 99) / 100;
    struct say_line l;
    line_begin(&l, "m");
    line_str(&l, "name", name);
    line_int(&l, "rail", rail);
    line_int(&l, "n", n);
    line_num(&l, "min", v[0]);
    line_num(&l, "median", n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2);
    line_num(&l, "p95", v[p95 ? p95 - 1 : 0]);
    line_str(&l, "unit", unit);
    line_end(&l);
}
