/* What a program's source says of the exception that it has printed. */
#include "failure/handler.h"

#include "lib/tap.h"
#include "util/array.h"

#define TB   "Traceback (most recent call last):\n"
#define MAIN "  File \"/w/train.py\", line 3, in <module>\n    import flash\n"
#define LOAD "  File \"/w/data.py\", line 9, in load\n    x = y\n"

#define SITE  "  File \"/v/lib/python3.12/site-packages/torch/rpc.py\", line 9, in "
#define CHAIN "\nDuring handling of the above exception, another exception occurred:\n\n"

static const struct {
    const char *why, *stack, *program, *path, *words;
    unsigned line;
    bool module;
    enum handler_own own;
    bool run_as_module;
    const char *type;
} places[] = {
    {"the script", TB MAIN LOAD "KeyError: 1\n", "train.py", "/w/train.py", "import flash", 3, true, HANDLER_OWN, false,
     NULL},
    {"... by torch's ranks", "[rank1]: " TB "[rank1]: " MAIN "KeyError: 1\n", "./train.py", "/w/train.py", "", 3, true,
     HANDLER_OWN, false, NULL},
    {"... of python -m", TB "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n" MAIN "E\n", "w.train",
     "/w/train.py", "import flash", 3, true, HANDLER_OWN, true, NULL},
    {"... a package", TB "  File \"/p/org/pack/__main__.py\", line 2, in <module>\n    f()\nE\n", "org.pack",
     "/p/org/pack/__main__.py", "f()", 2, true, HANDLER_OWN, true, NULL},
    {"... a package of that name elsewhere", TB "  File \"/p/pack/__main__.py\", line 2, in <module>\n    f()\nE\n",
     "org.pack", "/p/pack/__main__.py", "f()", 2, true, HANDLER_OWN_UNKNOWN, true, NULL},
    {"... a folder", TB "  File \"/w/x/__main__.py\", line 2, in <module>\n    f()\nE\n", "x/", "/w/x/__main__.py",
     "f()", 2, true, HANDLER_OWN, false, NULL},
    {"... compiled", TB MAIN "KeyError: 1\n", "/w/train.pyc", "/w/train.py", "import flash", 3, true, HANDLER_OWN,
     false, NULL},
    {"a script of that name elsewhere", TB MAIN "KeyError: 1\n", "/x/train.py", "/w/train.py", "import flash", 3, true,
     HANDLER_OWN_UNKNOWN, false, NULL},
    {"another program's", TB MAIN "KeyError: 1\n", "/w/x/strain.py", "/w/train.py", "import flash", 3, true,
     HANDLER_OTHERS, false, NULL},
    {"... or nobody knows whose", TB MAIN "KeyError: 1\n", NULL, "/w/train.py", "import flash", 3, true,
     HANDLER_OWN_UNKNOWN, false, NULL},
    {"a function", TB LOAD "KeyError: 1\n", "train.py", "/w/data.py", "x = y", 9, false, HANDLER_OTHERS, false, NULL},
    {"a function of a name like runpy's", TB "  File \"/w/data.py\", line 9, in _run_epoch\n    x = y\n" LOAD "E\n",
     "train.py", "/w/data.py", "x = y", 9, false, HANDLER_OTHERS, false, NULL},
    {"of several the last", TB LOAD "KeyError: 1\n" CHAIN TB MAIN "x.MyError: 1\n", "train.py", "/w/train.py",
     "import flash", 3, true, HANDLER_OWN, false, "x.MyError"},
    {"one in the message of another", TB MAIN "SubprocException: In a subprocess:\n\n" TB LOAD "E: 1\n", "train.py",
     NULL, NULL, 0, false, HANDLER_OWN_UNKNOWN, false, NULL},
    {"... of another process, and what came of it", TB SITE "_worker\n" LOAD "E: 1\n\"\"\"\n" CHAIN TB MAIN "E: 1\n",
     "train.py", "/w/train.py", "import flash", 3, true, HANDLER_OWN, false, NULL},
    {"of an installed package", TB SITE "_run_function\n    f()\n" LOAD "E: 1\n", "train.py", NULL, NULL, 0, false,
     HANDLER_OWN_UNKNOWN, false, NULL},
    {"... another program", TB SITE "<module>\n    f()\n" LOAD "E: 1\n", "train.py",
     "/v/lib/python3.12/site-packages/torch/rpc.py", "", 9, true, HANDLER_OTHERS, false, NULL},
    {"... that is the worker's", TB SITE "<module>\n    f()\n" LOAD "E: 1\n", "torch.rpc",
     "/v/lib/python3.12/site-packages/torch/rpc.py", "f()", 9, true, HANDLER_OWN, true, NULL},
    {"loguru marks who caught it",
     TB "\n" MAIN "    \u2514 <module>\n\n> File \"/w/data.py\", line 8, in load\n    z()\n    \u2514 1\n\n" LOAD
        "\nE: 1\n",
     "train.py", "/w/data.py", "z()", 8, false, HANDLER_OTHERS, false, NULL},
    {"no file", TB "  File \"<string>\", line 1, in <module>\nE\n", "a.py", "<string>", "", 1, true, HANDLER_OTHERS,
     false, NULL},
    {"no traceback", "E\n", NULL, NULL, NULL, 0, false, HANDLER_OWN_UNKNOWN, false, NULL},
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
     HANDLER_UNKNOWN},
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
#define TRY(what, behind) "try:\n    x()\nexcept Exception:\n    print_exc()\n    " what "\n" behind
#define DEF(what, behind) "def f():\n    try:\n        x()\n    except Exception:\n        print_exc()\n" what behind
    {"a status", "KeyError", "rc = 0\n" TRY("rc = 1", "sys.exit(rc)\n"), 3, true, HANDLER_UNKNOWN},
    {"... a while later", "KeyError", TRY("rc = 1", "a()\nb()\nc()\nd()\ne()\nif rc:\n    bye()\n"), 2, true,
     HANDLER_UNKNOWN},
    {"... of a function", "KeyError",
     DEF("        status = 1\n", "    a()\n    b()\n    c()\n    d()\n    send(status)\n"), 3, false, HANDLER_UNKNOWN},
    {"... of an object", "KeyError", DEF("        self.ok = False\n", "    a()\n    if not self.ok:\n        b()\n"), 3,
     false, HANDLER_UNKNOWN},
    {"... that is only quoted", "KeyError", TRY("rc = 1", "a()\nprint('rc', \"rc\")  # rc\n"), 2, true,
     HANDLER_GOES_ON},
    {"... of another name", "KeyError", TRY("rc = 1", "a()\nprint(rcs, src)\n"), 2, true, HANDLER_GOES_ON},
    {"an argument, or a comparison, is none", "KeyError", TRY("p(a=1, b=2); c == 1", "use(a, b, c)\n"), 2, true,
     HANDLER_GOES_ON},
    {"more names than are kept", "KeyError", TRY("a, b, c, d, e, f, g, h, i = z", "p()\n"), 2, true, HANDLER_UNKNOWN},
    {"a function's name is another one's behind it", "KeyError",
     DEF("        rc = 1\n", "    a()\n\ndef g(rc):\n    return rc\n"), 3, false, HANDLER_GOES_ON},
    {"it leaves behind the try", "KeyError", TRY("p()", "q()\nsys.exit(1)\n"), 2, true, HANDLER_UNKNOWN},
    {"... out of the block", "KeyError",
     "if a:\n    try:\n        x()\n    except Exception:\n        p()\nraise SystemExit\n", 3, true, HANDLER_UNKNOWN},
    {"... in a condition, which need not hold", "KeyError", TRY("p()", "if a:\n    sys.exit(1)\nq()\n"), 2, true,
     HANDLER_GOES_ON},
    {"... by MPI", "KeyError", "try:\n    x()\nexcept Exception:\n    MPI.COMM_WORLD.Abort(1)\ny()\n", 2, true,
     HANDLER_UNKNOWN},
    {"... in a loop", "KeyError",
     "def f():\n  for i in a:\n    try:\n      x()\n    except Exception:\n      p()\n    return\n", 4, false,
     HANDLER_UNKNOWN},
    {"the loop's condition", "KeyError",
     "while running:\n    try:\n        x()\n    except Exception:\n        p()\n        running = False\n    "
     "q()\nr()\n",
     3, true, HANDLER_UNKNOWN},
    {"... asked for in it", "KeyError",
     "while True:\n    if over: bye()\n    try:\n        x()\n    except Exception:\n        over = True\n    "
     "q()\nr()\n",
     4, true, HANDLER_UNKNOWN},
    {"a last attempt", "KeyError",
     "for i in a:\n    try:\n        x()\n        break\n    except Exception:\n        p()\nelse:\n    "
     "sys.exit(1)\nq()\n",
     3, true, HANDLER_UNKNOWN},
    {"... without else", "KeyError",
     "for i in a:\n    try:\n        x()\n        break\n    except Exception:\n        p()\nsys.exit(1)\n", 3, true,
     HANDLER_UNKNOWN},
    {"a loop that always goes on", "KeyError",
     "for i in a:\n    try:\n        x()\n    except Exception:\n        p()\nsys.exit(0)\n", 3, true, HANDLER_GOES_ON},
    {"a text at the line's beginning", "KeyError",
     "try:\n    a(\"\"\"\nb's\n\"\"\")\n    x()\nexcept Exception:\n    p()\ny()\n", 5, true, HANDLER_GOES_ON},
    {"... behind it", "KeyError", "try:\n    x()\n    a('''\nb\n''')\nexcept Exception:\n    p()\ny()\n", 2, true,
     HANDLER_GOES_ON},
    {"... that looks like a try", "KeyError", "'''\ntry:\n'''\nif a:\n    x()\n", 5, true, HANDLER_NONE},
    {"... and does not end", "KeyError", "x()\na = '''\n", 1, true, HANDLER_UNKNOWN},
    {"... the line itself", "KeyError", "a = '''\nx()\n'''\n", 2, true, HANDLER_UNKNOWN},
    {"an argument at the line's beginning", "KeyError", "try:\n    a(\nb)\n    x()\nexcept Exception:\n    p()\ny()\n",
     4, true, HANDLER_GOES_ON},
    {"the line is one", "KeyError", "try:\n    a(b,\nx()\n)\nexcept Exception:\n    p()\ny()\n", 3, true,
     HANDLER_GOES_ON},
    {"a line that goes on", "KeyError", "try:\n    a = \\\nb\n    x()\nexcept Exception:\n    p()\ny()\n", 4, true,
     HANDLER_GOES_ON},
    {"one of a package has the name of Python's", "requests.exceptions.ConnectionError",
     "try:\n    x()\nexcept ConnectionError:\n    p()\ny()\n", 2, true, HANDLER_UNKNOWN},
    {"... TimeoutError", "concurrent.futures._base.TimeoutError", "try:\n    x()\nexcept TimeoutError:\n    p()\ny()\n",
     2, true, HANDLER_UNKNOWN},
    {"... a child of Python's", "redis.exceptions.ConnectionError", "try:\n    x()\nexcept OSError:\n    p()\ny()\n", 2,
     true, HANDLER_UNKNOWN},
    {"... of the clause", "ConnectionError", "try:\n    x()\nexcept requests.ConnectionError:\n    p()\ny()\n", 2, true,
     HANDLER_UNKNOWN},
    {"of the same package", "requests.exceptions.ConnectionError",
     "try:\n    x()\nexcept requests.ConnectionError:\n    p()\ny()\n", 2, true, HANDLER_GOES_ON},
    {"a package's, which is known", "torch.OutOfMemoryError", "try:\n    x()\nexcept RuntimeError:\n    p()\ny()\n", 2,
     true, HANDLER_GOES_ON},
    {"a task is cancelled", "asyncio.exceptions.CancelledError", "try:\n    x()\nexcept Exception:\n    p()\ny()\n", 2,
     true, HANDLER_UNKNOWN},
    {"the next method's decorator", "KeyError",
     "class A:\n  def f():\n    try:\n      x()\n    except Exception:\n      p()\n\n  @g\n  async def h():\n    q()\n",
     4, false, HANDLER_UNKNOWN},
    {"... an asynchronous function", "KeyError", DEF("", "\nasync def h():\n    q()\n"), 3, false, HANDLER_UNKNOWN},
    {"... the program", "KeyError", DEF("", "\nif __name__ == '__main__':\n    f()\n"), 3, false, HANDLER_UNKNOWN},
};

/* More blocks than Python allows, and a "try" for each. */
static void look_deep(void)
{
    enum { DEPTHS = 130 };
    static char source[DEPTHS * (2 * DEPTHS + 32)];
    size_t n = 0;
    for (unsigned depths = 20; depths <= DEPTHS; depths += 55) {
        n = 0;
        for (unsigned i = 0; i < depths; i++)
            n += (size_t)snprintf(source + n, sizeof source - n, "%*stry:\n", (int)i, "");
        n += (size_t)snprintf(source + n, sizeof source - n, "%*sx()\n", (int)depths, "");
        for (unsigned i = depths; i-- > 0;)
            n += (size_t)snprintf(source + n, sizeof source - n, "%*sexcept OSError: p()\n", (int)i, "");
        n += (size_t)snprintf(source + n, sizeof source - n, "y()\n");
        struct handler_place p = {.line = depths + 1, .module = true, .words = "x()", .type = "OSError"};
        is_num(handler_find((struct text){source, n}, &p), depths < 64 ? HANDLER_GOES_ON : HANDLER_UNKNOWN,
               "tries in each other");
    }
}

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct handler_place p = {0};
        enum handler_own own = HANDLER_OWN_UNKNOWN;
        const struct text stack = {places[i].stack, strlen(places[i].stack)};
        const struct handler_program program = {places[i].program, places[i].run_as_module, "/w"};
        is_num(handler_place(stack, "KeyError", &program, &p, &own), places[i].path != NULL, places[i].why);
        if (!places[i].path)
            continue;
        is_str(p.path, places[i].path, "... its file");
        is_num(p.line, places[i].line, "... its line");
        is_num(p.module, places[i].module, "... the module itself");
        is_num(own, places[i].own, "... of the worker's own script");
        if (*places[i].words)
            is_str(p.words, places[i].words, "... its text");
        if (places[i].type)
            is_str(p.type, places[i].type, "... the type");
    }
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        struct handler_place p = {.line = sources[i].line, .module = sources[i].module};
        const struct text source = {sources[i].source, strlen(sources[i].source)};
        snprintf(p.words, sizeof p.words, "%s", strstr(sources[i].source, "try: x()") ? "try: x()" : "x()");
        snprintf(p.type, sizeof p.type, "%s", sources[i].type);
        is_num(handler_find(source, &p), sources[i].want, sources[i].why);
        p.caught = true; /* who printed it says so */
        is_num(handler_find(source, &p), sources[i].want == HANDLER_NONE ? HANDLER_UNKNOWN : sources[i].want,
               "... it was caught");
    }
    look_deep();
    return done();
}
