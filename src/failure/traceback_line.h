/* What single lines of a Python, C++, Rust or Go program's last output looks like.  Private to traceback.c, what stands
 * beside it (classify.c, traceback_trim.c, stacks.c) and their tests. */
#ifndef FAILURE_TRACEBACK_LINE_H
#define FAILURE_TRACEBACK_LINE_H
#include <stdbool.h>

#include "util/text.h"

struct line_frame {
    struct text file, function; /* function.n 0 = none was named */
    unsigned line;
    bool user; /* neither an installed package nor Python itself */
};

/* `  File "train.py", line 3, in main` at the start of t; faulthandler's form without the comma too. */
bool line_is_frame(struct text t, struct line_frame *f);

/* The boxes of rich.traceback (typer, lightning, hydra): its first line, a line inside, a frame `│ train.py:8 in main
 * │`. */
bool line_opens_box(struct text t);
bool line_is_box(struct text t);
bool line_is_box_frame(struct text t, struct line_frame *f);

/* `ValueError: text`, `pkg.mod.Error`.  strict: only names that look like a class, for places where a log line may
 * stand. */
bool line_is_exception(struct text t, bool strict, struct text *type, struct text *message);

/* "During handling of …", "The above exception was the direct cause …", with anything in front. */
bool line_is_chain(struct text t);

/* A line that cannot belong to the message of an exception: a log line, a warning, another report's beginning. */
bool line_is_foreign(struct text t);

/* A logger's: it begins with a time or a level. */
bool line_is_record(struct text line);

/* Last output of C++ or the C library.  CPLUS: the exception's type is in *type if it was named. */
enum line_abort { LINE_NO_ABORT, LINE_CPLUS, LINE_ABORT };
enum line_abort line_is_abort(struct text t, struct text *type, struct text *message);

/* Rust: `thread 'main' panicked at src/main.rs:4:5:`, the words on the next line, as of 1.73; before it was `thread
 * 'main' panicked at 'words', src/main.rs:4:5`.  message.n 0: they come next. */
bool line_is_rust_panic(struct text t, struct line_frame *f, bool *in_main, struct text *message);

/* Go: a frame `\t/src/main.go:9 +0x1d` of the stack behind `panic: …`. */
bool line_is_go_frame(struct text t, struct line_frame *f);

/* Only white space. */
bool line_is_blank(struct text t);

/* Does t begin with the prefix, any digit standing for any digit (time stamps)?  Then *inside is what follows.
 * A line that ends within the prefix's trailing blanks is the prefix with nothing behind. */
bool line_strip(struct text t, struct text prefix, struct text *inside);

#endif
