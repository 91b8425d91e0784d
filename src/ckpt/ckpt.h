/* Words that all parts of src/ckpt share. */
#ifndef CKPT_CKPT_H
#define CKPT_CKPT_H
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

/* What is said of a checkpoint, and the exit statuses of `elrun ckpt` (2 is usage, 64 to 78 as ever).  In an el_err
 * they stand as its status. */
#define CKPT_VERDICTS(X)                                                                                               \
    X(VALID, 0, "valid")                                                                                               \
    X(DAMAGED, 1, "damaged")                                                                                           \
    X(INCOMPLETE, 3, "incomplete")                                                                                     \
    X(UNSUPPORTED, 4, "unsupported")

enum ckpt_verdict {
#define X(NAME, number, word) CKPT_##NAME = (number),
    CKPT_VERDICTS(X)
#undef X
};

#define ckpt_fail(e, verdict, ...) el_fail((e), (enum el_exit)(verdict), __VA_ARGS__)

/* "valid" …; another number: "unreadable". */
const char *ckpt_verdict_word(int verdict);

/* Of two verdicts about parts of one thing, that of the whole: damaged before incomplete before what cannot be read,
 * and that before unsupported. */
int ckpt_verdict_worse(int a, int b);

/* Bytes of a file for a reader that jumps about in it.  read() fills n bytes from `at`, which lie within `bytes`: 0, or
 * -1 and *e (an error of the disk, or the file has become shorter). */
struct ckpt_bytes {
    void *ctx;
    uint64_t bytes;
    int (*read)(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e);
};

#endif
