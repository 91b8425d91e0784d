/* Whether a text is JSON as Python writes and reads it: with NaN and Infinity, numbers of any length and any escape,
 * which the parser of documents refuses.  It takes no memory. */
#ifndef CKPT_JSON_TEXT_H
#define CKPT_JSON_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#define JSON_TEXT_DEPTH_MAX 1000 /* about as deep as Python goes */

enum json_text_kind {
    JSON_TEXT_WHOLE,
    JSON_TEXT_CUT,    /* it goes on behind the end */
    JSON_TEXT_BROKEN, /* at `at` is what cannot be there */
    JSON_TEXT_LOG,    /* at `at` begins another object or array: a log, which may end anywhere */
};

struct json_text {
    enum json_text_kind kind;
    size_t begin, at; /* behind spaces and a byte order mark; see above */
    bool object;
    bool number; /* it has the key that was asked for, at its top, with a number */
};

void json_text_look(struct json_text *to, const char *text, size_t n, const char *key);

#endif
