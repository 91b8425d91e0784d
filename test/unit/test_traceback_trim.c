/* Long tracebacks made short: what stays, what is counted. */
#include "failure/traceback_trim.h"
#include "lib/tap.h"

static const char *fold(const char *text, unsigned most)
{
    static char out[8192];
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    traceback_trim_stack((struct text){text, strlen(text)}, most, &b);
    snprintf(out, sizeof out, "%s", el_buf_cstr(&b));
    el_buf_free(&b);
    return out;
}

#define U(n) "  File \"/home/u/t.py\", line " #n ", in f" #n "\n    call()\n    ^^^^^^\n"
#define L(n) "  File \"/v/site-packages/torch/m.py\", line " #n ", in g" #n "\n    call()\n"

int main(void)
{
    static const char python[] = "Traceback (most recent call last):\n" U(1) U(2) U(3) L(1) U(4) U(5) L(2) L(3)
        L(4) "RuntimeError: sizes\nmore\n";
    is_str(fold(python, 100), python, "what is short enough stays as it is");
    is_str(fold(python, 10),
           "Traceback (most recent call last):\n    [… 1 frame …]\n" U(2) U(3) "    [… 1 frame …]\n" U(4)
               U(5) "    [… 1 frame …]\n" L(3) L(4) "RuntimeError: sizes\nmore\n",
           "the user's own last frames, then the libraries' last");
    static const char fatal[] =
        "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
        "  File \"/v/site-packages/torch/m.py\", line 1 in a\n  File \"/v/site-packages/torch/m.py\", line 2 in b\n"
        "  File \"/v/site-packages/torch/m.py\", line 3 in c\n  File \"/home/u/t.py\", line 4 in d\n"
        "  File \"/home/u/t.py\", line 5 in <module>\n";
    is_str(fold(fatal, 5),
           "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
           "  File \"/v/site-packages/torch/m.py\", line 1 in a\n  File \"/v/site-packages/torch/m.py\", line 2 in b\n"
           "    [… 1 frame …]\n  File \"/home/u/t.py\", line 4 in d\n  File \"/home/u/t.py\", line 5 in <module>\n",
           "faulthandler's order: the innermost is the first");
    static const char cplus[] = "terminate called after throwing an instance of 'c10::Error'\n  what():  x\n"
                                "frame #0: a\nframe #1: b\nframe #2: c\nframe #3: d\nframe #4: e\nframe #5: f\n"
                                "frame #6: g\nframe #7: h\nframe #8: i\n";
    is_str(fold(cplus, 5),
           "terminate called after throwing an instance of 'c10::Error'\n  what():  x\nframe #0: a\nframe #1: b\n"
           "frame #2: c\nframe #3: d\n    [… 3 lines …]\nframe #7: h\nframe #8: i\n",
           "a C++ stack");
    static const char prefix[] = "[rank1]: Traceback (most recent call last):\n"
                                 "[rank1]:   File \"/v/site-packages/a.py\", line 1, in a\n[rank1]:     x()\n"
                                 "[rank1]:   File \"/v/site-packages/a.py\", line 2, in b\n[rank1]:     y()\n"
                                 "[rank1]:   File \"/v/site-packages/a.py\", line 3, in c\n[rank1]:     z()\n"
                                 "[rank1]: ValueError: x\n";
    is_str(fold(prefix, 3),
           "[rank1]: Traceback (most recent call last):\n    [… 1 frame …]\n"
           "[rank1]:   File \"/v/site-packages/a.py\", line 2, in b\n[rank1]:     y()\n"
           "[rank1]:   File \"/v/site-packages/a.py\", line 3, in c\n[rank1]:     z()\n[rank1]: ValueError: x\n",
           "behind a prefix");
#define FRAME(n)                                                                                                                                  \
    "│ /home/u/t.py:" #n " in f" #n "        │\n│                             │\n│   1 import os               │\n"                     \
    "│ ❱ " #n " │   x(y)               │\n│ ╭──── locals ────╮          │\n│ │ y = 3 in 4     │          │\n" \
    "│ ╰────────────────╯          │\n"
#define SHORT(n) "│ /home/u/t.py:" #n " in f" #n "        │\n│ ❱ " #n " │   x(y)               │\n"
#define UPPER    "╭─ Traceback (most recent call last) ─╮\n"
#define LOWER    "╰─────────────────────────────╯\n"
    is_str(fold(UPPER FRAME(1) FRAME(2) FRAME(3) LOWER "KeyError: 'x'\n", 10),
           UPPER SHORT(1) SHORT(2) SHORT(3) "    [… 9 lines …]\n" LOWER "KeyError: 'x'\n",
           "a box: the place and the line of each frame, the last ones too");
    is_str(
        fold(UPPER FRAME(1) FRAME(2) FRAME(3) FRAME(4) FRAME(5) FRAME(6) FRAME(7) FRAME(8) FRAME(9) LOWER
             "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n" UPPER FRAME(5)
                 LOWER "ValueError: y\n",
             10),
        UPPER SHORT(2) SHORT(3) SHORT(4) SHORT(5) SHORT(6) SHORT(7) SHORT(8) SHORT(
            9) "    [… 29 lines …]\n" LOWER
               "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n" UPPER SHORT(
                   5) "    [… 3 lines …]\n" LOWER "ValueError: y\n",
        "two boxes, one with many frames");
    is_str(fold("", 0), "", "nothing");
    is_str(fold("one", 0), "one\n", "no newline at the end");
    return done();
}
