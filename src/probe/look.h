#ifndef PROBE_LOOK_H
#define PROBE_LOOK_H
#include <stdbool.h>

/* Who reads a report: all false and 0 where nothing is known of that. */
struct report_look {
    bool colour;      /* terminal that wants colours (console_wants_colour) */
    bool utf8;        /* it can show blocks; else figures alone */
    unsigned columns; /* of the terminal; 0: not one, nothing is cut */
};

#endif
