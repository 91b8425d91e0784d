/* Lines on descriptor 3.  A line is one write, so that those of two threads do not mix. */
#ifndef CHILD_SAY_H
#define CHILD_SAY_H
#include "child.h"

#define SAY_FD 3

struct say_line {
    char text[3072];
    size_t n;
};

void line_begin(struct say_line *l, const char *type);
void line_str(struct say_line *l, const char *key, const char *value); /* NULL or "": left out */
void line_int(struct say_line *l, const char *key, long long value);
void line_num(struct say_line *l, const char *key, double value); /* not finite: left out */
void line_bool(struct say_line *l, const char *key, bool value);
void line_end(struct say_line *l);

/* A check of check.h with a number, which whoever started us judges; gpu -1: of the node; limit: the check's own,
 * NAN: none; text: more than the number says, NULL or "": nothing. */
void say_value(const char *name, int gpu, double value, double limit, const char *text);
/* One that has none: "unchecked" and why, mostly. */
void say_state(const char *name, int gpu, const char *state, const char *text);

/* Of the node, to compare over nodes. */
void say_fact(const char *name, const char *value);

/* Sorts values; n > 0. */
void say_metric(const char *name, int rail, double *values, unsigned n, const char *unit);

/* printf into a fixed room; cuts. */
void text_put(char *out, size_t room, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
