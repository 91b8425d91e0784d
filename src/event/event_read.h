/* The lines of --events, read back: what event.h writes, what newer versions add to it, and everything else that may
 * stand in a file of that name. */
#ifndef EVENT_EVENT_READ_H
#define EVENT_EVENT_READ_H
#include <stddef.h>

#include "event/event.h"
#include "util/err.h"

/* An event that was read.  Its strings are cleaned of what a terminal would act on, and belong to it until
 * event_release(). */
struct event_read {
    struct event event;
    struct el_buf texts;
};

enum event_line {
    EVENT_LINE_READ,
    EVENT_LINE_UNKNOWN, /* an event that this version does not know, or a later EVENT_VERSION: skipped */
    EVENT_LINE_FOREIGN, /* no JSON object, or not one of ours */
};

/* One line without its newline.  A field that is missing or of another kind is 0, false, NULL or, where it may be null,
 * -1.  After EVENT_LINE_READ event_release(). */
enum event_line event_decode(const char *line, size_t n, struct event_read *out);
void event_release(struct event_read *r);

/* "2026-11-21T20:36:48.123456Z" to microseconds since 1970; -1 if it is none. */
int64_t event_time_parse(const char *text);

/* The number of this name in a JSON object; 0 if there is none. */
double event_number(const char *object, const char *name);

#endif
