/* What elrun says to a person.  The core formats one line and hands it to a sink; only the sink knows a clock, a colour
 * or a descriptor.  Before a sink is set, lines are dropped: the core is silent in tests. */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

enum el_level { EL_ERROR, EL_WARN, EL_INFO, EL_DEBUG };

/* text: one line without newline, at most 2047 bytes, valid only during the call. */
typedef void el_log_sink(void *ctx, enum el_level level, const char *text);

void el_log_set(el_log_sink *sink, void *ctx, enum el_level most);
enum el_level el_log_level(void);
void el_log(enum el_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
