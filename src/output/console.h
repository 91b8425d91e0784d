/* elrun's own voice.  Lines for a person on stderr ("elrun: …", colours on a terminal), or JSON lines; a status line at
 * the bottom of a terminal.  It owns the two sinks through which everything reaches elrun's stdout and stderr. */
#ifndef OUTPUT_CONSOLE_H
#define OUTPUT_CONSOLE_H
#include <stdbool.h>

#include "loop/loop.h"
#include "loop/sink.h"
#include "util/err.h"
#include "util/log.h"

/* --- pure: one line (console.c) --- */
enum console_form { CONSOLE_PLAIN, CONSOLE_COLOUR, CONSOLE_JSON };
/* "elrun: text\n", "elrun: warning: text\n" …, coloured, or {"time":…,"level":…,"text":…}\n with invalid UTF-8
 * replaced. Control characters become '?' or \u00xx.  Cut at size, always with its newline (a JSON object stays one).
 * wall_ms: since 1970.  Returns the length without the 0. */
size_t console_line(char *to, size_t size, enum console_form form, enum el_level level, long long wall_ms,
                    const char *text);
/* "elrun: running, round 2, restarts 1/3, 4m05s", cut to one column less than the terminal has. */
struct console_status {
    const char *state; /* NULL: no status line */
    unsigned round;
    unsigned restarts, max_restarts;
    el_usec since; /* when this state began */
};
size_t console_status_line(char *to, size_t size, const struct console_status *st, el_usec now, unsigned columns,
                           bool colour);
/* NO_COLOR set and not empty, or TERM unset, empty or dumb: no colours. */
bool console_wants_colour(const char *no_color, const char *term);

/* --- the shell (console_io.c) --- */
struct console;
struct console_conf {
    bool quiet;       /* errors and warnings only, no status line */
    unsigned verbose; /* > 0: debug lines too */
    bool json;
    char *const *env; /* NO_COLOR, TERM; NULL: neither */
};
/* Becomes the sink of util/log until console_free(). */
struct console *console_new(struct loop *l, const struct console_conf *conf, struct el_err *e);
/* which: 1 or 2; the same sink if both lead to the same file, pipe or terminal. */
struct sink *console_sink(struct console *c, int which);
/* Before each own text: whoever has an unfinished line there ends it.  NULL: nobody. */
void console_before(struct console *c, void (*fn)(void *ctx), void *ctx);
/* Text of several lines (the failure table) on stderr, as it is, whole. */
void console_write(struct console *c, const char *text, size_t n);
bool console_is_json(const struct console *c);
/* stderr is a terminal on which colours are wanted. */
bool console_has_colour(const struct console *c);
/* Of the terminal that stderr is; 0: it is none, or does not know. */
unsigned console_columns(const struct console *c);

/* Shows this status and keeps its time running, on a terminal only; st NULL or st->state NULL takes it away.  The
 * strings must stay.  Hidden while workers write to that terminal by themselves: say so with console_status_hide(). */
void console_status(struct console *c, const struct console_status *st);
void console_status_hide(struct console *c, bool hide);

/* Takes the status line away, writes out what is queued for stderr, then fn(ctx), at the deadline at last; the line
 * comes back with console_resume().  One at a time. */
void console_pause(struct console *c, el_usec deadline, void (*fn)(void *ctx), void *ctx);
void console_resume(struct console *c);

/* Writes out what is queued, then fn(ctx, bytes that were left); at the deadline at last.  Log lines that come later
 * are still queued. */
void console_finish(struct console *c, el_usec deadline, void (*fn)(void *ctx, size_t left_bytes), void *ctx);
/* True if all threads could be ended; else leave by _exit(). */
bool console_free(struct console *c);

#endif
