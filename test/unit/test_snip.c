/* What does not fit ends behind a whole word, never within a character. */
#include "util/snip.h"

#include <string.h>

#include "lib/tap.h"
#include "util/utf8.h"

static bool is_whole(const char *text)
{
    for (size_t n; *text; text += n)
        if (!(n = el_utf8(text, strlen(text))))
            return false;
    return true;
}

int main(void)
{
    char to[40], all[400];
    is_str(el_snip(to, sizeof to, "rank %u: %s", 3, "it is gone"), "rank 3: it is gone", "what fits stays");
    is_str(el_snip(to, sizeof to, "%s", "123456789 123456789 123456789 123456789"),
           "123456789 123456789 123456789 123456789", "to the last byte");
    is_str(el_snip(to, sizeof to, "%s", "123456789 123456789 123456789 1234567890"), "123456789 123456789 123456789…",
           "one more, and the last word goes");
    is_str(el_snip(to, sizeof to, "%s", "KeyError: {'state': {0: {'step': 1, 'exp_avg': 2}}}"),
           "KeyError: {'state': {0: {'step': 1,…", "in the middle of a dict");
    is_str(el_snip(to, sizeof to, "%s", "one two three four five six seven    eight"),
           "one two three four five six seven…", "blanks at the end go with it");
    is_str(el_snip(to, 24, "%s", "12345678901234567890123456789"), "12345678901234567890…",
           "a word that is longer than that is cut");
    unsigned bad = 0;
    memset(all, 'x', sizeof all - 1);
    all[sizeof all - 1] = 0;
    for (size_t i = 0; i + 4 < sizeof all; i++) { /* characters of 1 to 4 bytes, wherever the cut falls */
        static const char *const some[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", " "};
        const char *c = some[i * i % 7 % 5];
        memcpy(all + i, c, strlen(c));
        i += strlen(c) - 1;
    }
    for (size_t size = EL_SNIP_MIN; size < sizeof all; size++) {
        char room[sizeof all];
        el_snip(room, size, "%s", all);
        bad += strlen(room) >= size || !is_whole(room) || strcmp(room + strlen(room) - 3, "…") != 0 ||
               strncmp(room, all, strlen(room) - 3) != 0;
    }
    is_num(bad, 0, "in every room it is whole characters of the text, and the sign");
    return done();
}
