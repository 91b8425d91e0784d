/* Was the exception that a Python program has printed caught, and did the program go on?  Its source says so: the
 * traceback begins in the frame that printed it, and in that frame's text stands which "try" is around the line. */
#ifndef FAILURE_HANDLER_H
#define FAILURE_HANDLER_H
#include <stdbool.h>

#include "util/text.h"

#define HANDLER_PATH_MAX   4096
#define HANDLER_SOURCE_MAX (1 << 20) /* bytes of a source file that are looked at */

enum handler {
    HANDLER_UNKNOWN,
    HANDLER_NONE,      /* in the main module, and nothing is around it that could catch it: it ended the program */
    HANDLER_ELSEWHERE, /* it begins in the module of another program, which shares the stderr, or of one that the script
                          imports: what ends the script itself begins there */
    HANDLER_GOES_ON,   /* an "except" that catches this type is around it, and does not leave */
};

struct handler_place {
    char path[HANDLER_PATH_MAX]; /* as Python printed it */
    char words[256];             /* its line, as Python printed it; "" = it was not there */
    char type[128];              /* of the exception */
    unsigned line;
    bool module; /* else the body of a function */
    bool caught; /* who printed it says that it was caught in this frame */
};

/* The worker's program. */
struct handler_program {
    const char *name; /* the script as it was named, or the module; NULL = not known */
    bool module;
    const char *folder; /* where it was started; "" = not known */
};

enum handler_own { HANDLER_OWN_UNKNOWN, HANDLER_OWN, HANDLER_OTHERS };

/* Where the last traceback of a chain begins.  false: that is not known, or it may be another process's, whose paths
 * are not to be opened.  type: of the exception, if the stack does not say it.  *own: is it the file of the program
 * itself? p->words "" where the file is not to be read. */
bool handler_place(struct text stack, const char *type, const struct handler_program *program, struct handler_place *p,
                   enum handler_own *own);

/* What the file says of it, if that could be read (n 0 = not); UNKNOWN if its line is another one by now. */
enum handler handler_find(struct text source, const struct handler_place *p);

#endif
