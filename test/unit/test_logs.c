/* Logs for `elrun logs`: any bytes become a text that a message carries unchanged; where the last lines begin. */
#include "agent/logs.h"

#include <string.h>

#include "lib/tap.h"
#include "util/rng.h"

#define BAD "\xef\xbf\xbd"

static char text[MSG_STREAM_MAX + 1];

static void test_text(void)
{
    static const struct {
        const char *name, *bytes;
        size_t n, used_more, used_last; /* used: if more may come, and if not */
        const char *want;               /* of the last */
    } rows[] = {
        {"plain", "abc\n", 4, 4, 4, "abc\n"},
        {"nothing", "", 0, 0, 0, ""},
        {"NUL", "a\0b", 3, 3, 3, "a" BAD "b"},
        {"two bytes", "\xc3\xa9", 2, 2, 2, "\xc3\xa9"},
        {"half a character at the end", "a\xc3", 2, 1, 2, "a" BAD},
        {"three of four bytes", "\xf0\x9f\x98", 3, 0, 3, BAD BAD BAD},
        {"half a character in the middle", "\xc3z", 2, 2, 2, BAD "z"},
        {"a byte that begins none", "\xff", 1, 1, 1, BAD},
        {"a byte that goes on none", "\x80", 1, 1, 1, BAD},
        {"one beyond Unicode", "\xf5\x80", 2, 2, 2, BAD BAD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t more = logs_text(rows[i].bytes, rows[i].n, false, text);
        size_t last = logs_text(rows[i].bytes, rows[i].n, true, text);
        ok(more == rows[i].used_more && last == rows[i].used_last && strcmp(text, rows[i].want) == 0, rows[i].name);
    }
}

/* Whatever the bytes and the sizes of the pieces: no byte is left out, and the codec changes nothing. */
static void test_carried(void)
{
    static char bytes[3 * MSG_STREAM_MAX];
    struct el_rng rng = {.state = 7};
    unsigned stuck = 0, changed = 0;
    for (unsigned turn = 0; turn < 200; turn++) {
        size_t n = el_rng_next(&rng) % sizeof bytes, at = 0;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(turn % 3 ? el_rng_next(&rng) : turn % 2 ? 0xff : 'x');
        while (at < n) {
            struct el_buf frame = EL_BUF_INIT(NULL, 0);
            struct msg m = {.type = MSG_LOGS_TEXT, .u.logs_text = {.stream = 1, .text = text}}, back;
            struct msg_decoder d = {.greeted = true};
            struct el_err e = {0};
            size_t used = logs_text(bytes + at, n - at, true, text);
            if (!used) {
                stuck++;
                break;
            }
            at += used;
            msg_encode(&m, &frame);
            if (msg_consume(&d, frame.v, frame.len, &back, &e) <= 0 || strcmp(back.u.logs_text.text, text) != 0)
                changed++;
            else
                msg_release(&back);
            el_buf_free(&frame);
        }
    }
    is_num(stuck, 0, "there is always a next piece");
    is_num(changed, 0, "each one arrives as it was made");
}

static void test_last(void)
{
    static const struct {
        const char *bytes;
        uint64_t lines;
        size_t from;
    } rows[] = {
        {"", 5, 0},          {"a\nb\nc\n", 0, 6}, {"a\nb\nc\n", 1, 4}, {"a\nb\nc\n", 2, 2},
        {"a\nb\nc\n", 3, 0}, {"a\nb\nc\n", 9, 0}, {"a\nb\nc", 1, 4},   {"a\nb\nc", 2, 2},
        {"\n\n\n", 1, 2},    {"\n", 1, 0},        {"no end", 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ok(logs_last(rows[i].bytes, strlen(rows[i].bytes), rows[i].lines) == rows[i].from,
           "where the last lines begin");
    uint64_t lines = 3;
    ok(logs_back("c\nd", 3, &lines) == SIZE_MAX && lines == 2, "a block without enough ends of lines: counted");
    is_num(logs_back("a\nb\n", 4, &lines), 2, "and the count goes on in the block before");
}

int main(void)
{
    test_text();
    test_carried();
    test_last();
    return done();
}
