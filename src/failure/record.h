/* A failure as one JSON object, and back: what an agent sends to its coordinator, what stands in events, what
 * `elrun report` reads later.  The document is always whole.  Where it would become larger than it may, the long texts
 * lose their middle, say so where it was, and "shortened" is true: first the last output, then the traceback (its first
 * lines and its end stay), then the message, at last the paths. */
#ifndef FAILURE_RECORD_H
#define FAILURE_RECORD_H
#include <stddef.h>

#include "failure/failure.h"
#include "util/buf.h"
#include "util/err.h"

#define RECORD_BYTES_MAX   (48u * 1024) /* of a document on its way between nodes */
#define RECORD_BYTES_LEAST (12u * 1024) /* every failure can be brought down to this */
#define RECORD_READ_MAX    (1u << 20)   /* a document that is read */
#define RECORD_ROLE_MAX    64
#define RECORD_HOST_MAX    256

/* A failure that was read.  failure.role and failure.host point into the record: it is not to be copied. */
struct record {
    struct failure failure;
    char role[RECORD_ROLE_MAX + 1], host[RECORD_HOST_MAX + 1];
};

/* Appends the object on one line, at most limit_bytes (from RECORD_BYTES_LEAST up).  Bytes that are not UTF-8 are
 * replaced.  0, or -1 when memory was refused, and nothing is appended. */
int record_write(const struct failure *f, size_t limit_bytes, struct el_buf *out);

/* Whatever is missing, of another type or out of range is as failure_init() has it; texts are clean (util/text.h),
 * and what is one line is one.  -1 and *e: no JSON object, too large, or no memory; *r can be freed in any case. */
int record_read(struct record *r, const char *json, size_t n, struct el_mem *mem, struct el_err *e);
void record_free(struct record *r, struct el_mem *mem);

/* As it stands in the document. */
const char *record_by_word(enum failure_by by);

#endif
