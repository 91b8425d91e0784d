/* The help text of a command, from its rows. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "util/opt.h"

#define WIDTH  100 /* columns of the terminal that the text is made for */
#define COLUMN 32  /* where the sentences begin */

static void pad(struct el_buf *out, size_t from, size_t to)
{
    for (; from < to; from++)
        el_buf_put(out, " ", 1);
}

/* "[default: 1]" is one word. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    char end = *s == '[' ? ']' : ' ';
    while (s[n] && s[n] != end)
        n++;
    while (s[n] && s[n] != ' ')
        n++;
    return n;
}

void opt_wrap(struct el_buf *out, const char *text, size_t column, size_t indent)
{
    assert(indent < WIDTH);
    bool first = true;
    while (*text) {
        size_t n = word_length(text);
        if (!first && column + 1 + n > WIDTH) {
            el_buf_put(out, "\n", 1);
            pad(out, 0, indent);
            column = indent;
        } else if (!first) {
            el_buf_put(out, " ", 1);
            column++;
        }
        el_buf_put(out, text, n);
        column += n;
        first = false;
        for (text += n; *text == ' ';)
            text++;
    }
    el_buf_put(out, "\n", 1);
}

static void help_row(const struct opt_row *row, struct el_buf *out)
{
    size_t start = out->len;
    if (row->letter)
        el_buf_printf(out, "  -%c, ", row->letter);
    else
        el_buf_puts(out, "      ");
    el_buf_printf(out, "--%s%s%s", row->name, row->arg ? "=" : "", row->arg ? row->arg : "");
    size_t column = out->len - start;
    if (column + 2 > COLUMN) {
        el_buf_put(out, "\n", 1);
        column = 0;
    }
    pad(out, column, COLUMN);
    struct el_buf text = EL_BUF_INIT(out->mem, 1024);
    el_buf_puts(&text, row->help);
    if (row->def && *row->def)
        el_buf_printf(&text, " [default: %s]", row->def);
    opt_wrap(out, el_buf_cstr(&text), COLUMN, COLUMN);
    el_buf_free(&text);
}

/* Paragraphs are divided by newlines; one that begins with a space is printed as it is. */
static void help_text(const char *text, struct el_buf *out)
{
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        struct el_buf line = EL_BUF_INIT(out->mem, 4096);
        el_buf_put(&line, text, n);
        if (*text == ' ' || !n)
            el_buf_printf(out, "%s\n", el_buf_cstr(&line));
        else
            opt_wrap(out, el_buf_cstr(&line), 0, 0);
        el_buf_free(&line);
        text += n + (end != NULL);
    }
}

void opt_help(const struct opt_table *t, struct el_buf *out)
{
    const char *group = "";
    el_buf_printf(out, "Usage: %s%s%s%s\n\n", t->command, t->n ? " [OPTION ...]" : "", *t->operands ? " " : "",
                  t->operands);
    help_text(t->about, out);
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->rows[i].group, group) != 0)
            el_buf_printf(out, "\n%s\n", group = t->rows[i].group);
        help_row(&t->rows[i], out);
    }
    if (t->notes) {
        el_buf_put(out, "\n", 1);
        help_text(t->notes, out);
    }
}
