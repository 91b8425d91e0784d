/* What a program's source says of the exception that it has printed. */
#include "failure/handler.h"

#include "lib/tap.h"
#include "util/array.h"

#define TB   "Traceback (most recent call last):\n"
#define MAIN "  File \"/w/train.py\", line 3, in <module>\n    import flash\n"
#define LOAD "  File \"/w/data.py\", line 9, in load\n    x = y\n"

static const struct {
    const char *why, *stack, *program, *path, *words;
    unsigned line;
    bool module, own;
} places[] = {
    {"the module of the script", TB MAIN LOAD "KeyError: 1\n", "train.py", "/w/train.py", "import flash", 3, true,
     true},
    {"... by torch's ranks", "[rank1]: " TB "[rank1]: " MAIN "KeyError: 1\n", "a/train.py", "/w/train.py", "", 3, true,
     true},
    {"... of python -m", TB "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n" MAIN "E\n", "w.train",
     "/w/train.py", "import flash", 3, true, true},
    {"... a package", TB "  File \"/p/pack/__main__.py\", line 2, in <module>\n    f()\nE\n", "org.pack",
     "/p/pack/__main__.py", "f()", 2, true, true},
    {"another program's", TB MAIN "KeyError: 1\n", "/w/x/strain.py", "/w/train.py", "import flash", 3, true, false},
    {"... or nobody knows whose", TB MAIN "KeyError: 1\n", NULL, "/w/train.py", "import flash", 3, true, false},
    {"a function", TB LOAD "KeyError: 1\n", "train.py", "/w/data.py", "x = y", 9, false, false},
    {"of several the last", TB LOAD "KeyError: 1\n\nDuring handling of the above\n\n" TB MAIN "E\n", "train.py",
     "/w/train.py", "import flash", 3, true, true},
    {"no file", TB "  File \"<string>\", line 1, in <module>\nE\n", "a.py", "<string>", "", 1, true, false},
    {"no traceback", "E\n", NULL, NULL, NULL, 0, false, false},
};

static const struct {
    const char *why, *type, *source;
    unsigned line;
    bool module;
    enum handler want;
} sources[] = {
    {"nothing is around it", "KeyError", "import a\nx()\n", 2, true, HANDLER_NONE},
    {"a condition is", "KeyError", "if 1:\n    a()\n    # try:\n    x()\n", 4, true, HANDLER_NONE},
    {"it may be caught in a function's caller", "KeyError", "def f():\n    x()\n", 2, false, HANDLER_UNKNOWN},
    {"caught, and it goes on", "ModuleNotFoundError", "try:\n    x()\nexcept ImportError:\n    p()\ny()\n", 2, true,
     HANDLER_GOES_ON},
    {"... in one line each", "KeyError", "try: x()\nexcept: p()\ny()\n", 1, true, HANDLER_GOES_ON},
    {"... by a tuple with a name", "json.JSONDecodeError",
     "try:\n  x()\nexcept (OSError, json.JSONDecodeError) as e:\n  p()\ny()\n", 2, true, HANDLER_GOES_ON},
    {"... in a function", "KeyError",
     "def main():\n  for i in a:\n    try:\n      x()\n    except Exception as e:\n      p()\n", 4, false,
     HANDLER_GOES_ON},
    {"... by the second clause", "KeyError",
     "try:\n    x()\nexcept KeyboardInterrupt:\n    raise\nexcept Exception:\n    p()\ny()\n", 2, true,
     HANDLER_GOES_ON},
    {"it leaves", "KeyError", "try:\n    x()\nexcept Exception:\n    p()\n    sys.exit(1)\n", 2, true, HANDLER_UNKNOWN},
    {"it only says so", "KeyError",
     "try:\n    x()\nexcept Exception as e:\n    log.error(\"eval failed, can't \\\" stop\", 'exit')  # raise\ny()\n",
     2, true, HANDLER_GOES_ON},
    {"it says so, and leaves", "KeyError", "try:\n    x()\nexcept Exception as e:\n    p('a'); sys.exit(\"b\")\n", 2,
     true, HANDLER_UNKNOWN},
    {"quotes that do not end", "KeyError", "try:\n    x()\nexcept Exception as e:\n    p('a\\\ny()", 2, true,
     HANDLER_GOES_ON},
    {"nothing comes behind it", "KeyError", "try:\n    x()\nexcept Exception:\n    p()\n\ndef f():\n    q()\n", 2, true,
     HANDLER_UNKNOWN},
    {"it closes its connections", "KeyError",
     "try:\n    x()\nexcept Exception:\n    p()\nq()\ndist.destroy_process_group()\n", 2, true, HANDLER_UNKNOWN},
    {"... at the end of the try", "KeyError",
     "try:\n    x()\nexcept Exception:\n    p()\nfinally:\n    shutdown()\nq()\n", 2, true, HANDLER_UNKNOWN},
    {"... but not in the middle of a loop", "KeyError",
     "for i in a:\n    try:\n        x()\n    except Exception:\n        p()\ndist.destroy_process_group()\n", 3, true,
     HANDLER_GOES_ON},
    {"it is raised again", "KeyError", "try:\n    x()\nexcept Exception:\n    p()\n    raise\n", 2, true,
     HANDLER_UNKNOWN},
    {"the clause is another one's", "KeyError", "try:\n    x()\nexcept KeyboardInterrupt:\n    p()\n", 2, true,
     HANDLER_NONE},
    {"the clause may be another one's", "KeyError", "try:\n    x()\nexcept MyError:\n    p()\n", 2, true,
     HANDLER_UNKNOWN},
    {"an outer one may have caught it first", "KeyError",
     "try:\n    try:\n        x()\n    except MyError:\n        p()\nexcept Exception:\n    q()\n", 3, true,
     HANDLER_UNKNOWN},
    {"a group's clause", "KeyError", "try:\n    x()\nexcept* KeyError:\n    p()\n", 2, true, HANDLER_UNKNOWN},
    {"only cleared up", "KeyError", "try:\n    x()\nfinally:\n    p()\n", 2, true, HANDLER_NONE},
    {"raised in the clause", "KeyError", "try:\n    a()\nexcept OSError:\n    x()\n", 4, true, HANDLER_NONE},
    {"behind the try", "KeyError", "try:\n    a()\nexcept KeyError:\n    p()\nif 1:\n    x()\n", 6, true, HANDLER_NONE},
    {"a context may catch", "KeyError", "with guard():\n    x()\n", 2, true, HANDLER_UNKNOWN},
    {"another text by now", "KeyError", "import a\nxx()\n", 2, true, HANDLER_UNKNOWN},
    {"no such line", "KeyError", "import a\n", 9, true, HANDLER_UNKNOWN},
    {"an empty file", "KeyError", "", 1, true, HANDLER_UNKNOWN},
    {"a clause that is cut off", "KeyError", "try:\n    x()\nexcept (", 2, true, HANDLER_UNKNOWN},
};

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct handler_place p = {0};
        bool own = false;
        const struct text stack = {places[i].stack, strlen(places[i].stack)};
        is_num(handler_place(stack, "KeyError", places[i].program, &p, &own), places[i].path != NULL, places[i].why);
        if (!places[i].path)
            continue;
        is_str(p.path, places[i].path, "... its file");
        is_num(p.line, places[i].line, "... its line");
        is_num(p.module, places[i].module, "... the module itself");
        is_num(own, places[i].own, "... of the worker's own script");
        if (*places[i].words)
            is_str(p.words, places[i].words, "... its text");
    }
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        struct handler_place p = {.line = sources[i].line, .module = sources[i].module};
        const struct text source = {sources[i].source, strlen(sources[i].source)};
        snprintf(p.words, sizeof p.words, "%s", strstr(sources[i].source, "try: x()") ? "try: x()" : "x()");
        snprintf(p.type, sizeof p.type, "%s", sources[i].type);
        is_num(handler_find(source, &p), sources[i].want, sources[i].why);
    }
    return done();
}
