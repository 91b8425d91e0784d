#include "util/paint.h"

/* Characters, not bytes: what continues one is not counted. */
static int paint_columns(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void el_paint(struct el_buf *out, bool colour, enum el_tone tone, int width, const char *text)
{
    static const char *const codes[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m", "\033[1m"};
    bool painted = colour && tone != TONE_PLAIN;
    int n = paint_columns(text);
    if (-width > n)
        el_buf_printf(out, "%*s", -width - n, "");
    el_buf_printf(out, "%s%s%s", painted ? codes[tone] : "", text, painted ? "\033[0m" : "");
    if (n < width)
        el_buf_printf(out, "%*s", width - n, "");
}
