/* Has a rank that still runs raised what will end it? */
#include "failure/exiting.h"
#include "lib/tap.h"
#include "util/array.h"

#include <string.h>

#define HEAD   "Traceback (most recent call last):\n"
#define MODULE "  File \"/w/train.py\", line 9, in <module>\n    main()\n"
#define INNER  "  File \"/w/train.py\", line 5, in main\n    raise ValueError(\"bad batch\")\n"
#define ERROR  "ValueError: bad batch\n"

static const struct {
    const char *said;
    bool ends;
    const char *about;
} rows[] = {
    {HEAD MODULE INNER ERROR, true, "from the module on"},
    {"loading\n" HEAD MODULE INNER ERROR
     "/usr/lib/python3.11/tempfile.py:934: ResourceWarning: Implicitly cleaning up\n",
     true, "a warning of the clean-up behind it"},
    {"[rank1]: " HEAD "[rank1]: " MODULE "[rank1]: " INNER "[rank1]: " ERROR, true, "as torch prints it"},
    {HEAD "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n" INNER ERROR, true, "of python -m"},
    {HEAD INNER
     "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n" HEAD MODULE INNER ERROR,
     true, "the last of a chain decides"},
    {HEAD INNER ERROR, false, "caught in a function, and printed"},
    {HEAD MODULE INNER ERROR "2026-11-27 10:00:00,123 INFO epoch 1\n", false, "it goes on"},
    {HEAD MODULE INNER, false, "not all of it is there"},
    {"ERROR train: evaluation failed\n" HEAD MODULE INNER ERROR, false, "a logger's"},
    {"Exception in thread Thread-1 (f):\n" HEAD MODULE INNER ERROR, false, "of a thread"},
    {HEAD MODULE INNER "ConnectionResetError: [Errno 104] Connection reset by peer\n", false, "a consequence itself"},
    {"KeyError: 'x'\n", false, "no traceback"},
    {"", false, "nothing"},
};

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct failure f;
        failure_init(&f);
        failure_add_stderr(&f, rows[i].said, strlen(rows[i].said), NULL);
        is_num(exiting_raised(&f), rows[i].ends, rows[i].about);
        if (i == 0) {
            char text[80];
            exiting_text(&f, text, sizeof text);
            is_str(text, "ValueError: bad batch (train.py:5)", "and what it raised");
        }
        failure_free(&f, NULL);
    }
    return done();
}
