/* Where one standard stream of one worker leads: torchrun's rules for --redirects and --tee as a function. */
#ifndef OUTPUT_ROUTE_H
#define OUTPUT_ROUTE_H
#include <stdbool.h>

enum route_kind {
    ROUTE_INHERIT, /* what elrun has */
    ROUTE_NULL,    /* the null device */
    ROUTE_FILE,    /* straight to the log file */
    ROUTE_PIPE,    /* elrun reads it */
    ROUTE_PTY      /* elrun reads it, the worker sees a terminal */
};

struct route_in {
    bool is_stderr;
    bool redirected, teed; /* --redirects, --tee */
    bool shown;            /* not left out by --local-ranks-filter */
    bool logs;             /* there is a log directory */
    bool terminal;         /* this stream of elrun is a terminal */
    bool capture;          /* --capture-stderr */
    bool watched;          /* elrun reads its lines (--step-pattern) */
    bool filter;           /* --duplicate-…-filters for this stream */
};

struct route {
    enum route_kind kind;
    bool to_file; /* elrun writes the log file */
    bool to_console;
    bool to_filter;
    bool raw; /* on the console without prefix, bytes unchanged */
};

struct route route_decide(const struct route_in *in);

#endif
