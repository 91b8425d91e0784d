/* What follows from failures: the rules of failure/restart_policy.h, each with the case that it must not catch. */
#include "failure/restart_policy.h"
#include "lib/tap.h"
#include "util/array.h"

static struct restart_history history;
static struct restart_verdict verdict;

static struct failure failure(const char *type, unsigned line, el_usec elapsed)
{
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    f.class = FAILURE_CLASS_CODE;
    f.elapsed = elapsed;
    f.found.kind = TRACEBACK_PYTHON;
    snprintf(f.found.type, sizeof f.found.type, "%s", type);
    snprintf(f.found.file, sizeof f.found.file, "/home/me/train.py");
    f.found.line = line;
    return f;
}

static struct restart_digest one(const char *type, unsigned line, double s, uint64_t node)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    struct failure f = failure(type, line, (el_usec)(s * 1e6));
    restart_add(&d, &f, node);
    return d;
}

static struct restart_digest two(const char *type, unsigned line, double s)
{
    struct restart_digest d = one(type, line, s, 1), again = d;
    restart_merge(&d, &again);
    return d;
}

static enum restart_next next(unsigned workers, unsigned nodes, const struct restart_digest *d)
{
    const struct restart_round r = {.workers = workers, .nodes = nodes, .lasted = d->elapsed};
    restart_next(&r, d, &history, &verdict);
    return verdict.next;
}

static enum restart_next alone(struct restart_digest d) /* the first round of a job of eight workers on one node */
{
    history = (struct restart_history){.longest = 0};
    return next(8, 1, &d);
}

static void test_at_once(void)
{
    static const char *const text[] = {"SyntaxError",
                                       "IndentationError",
                                       "ImportError",
                                       "ModuleNotFoundError",
                                       "NameError",
                                       "pkg.errors.ImportError",
                                       "getopt.GetoptError",
                                       "omegaconf.errors.ConfigKeyError",
                                       "draccus.utils.DecodingError"};
    for (size_t i = 0; i < COUNT_OF(text); i++)
        is_num(alone(one(text[i], 3, 2, 1)), RESTART_STOP, text[i]);
    is_str(
        verdict.why,
        "no restart: DecodingError at train.py:3 after 2.0 s: a fault of the program or its command line, which would "
        "come again (--restart-policy=always restarts all the same)",
        "why, for a person");
    is_num(alone(one("TypeError", 3, 2, 1)), RESTART_RESTART, "TypeError of one of eight: perhaps its data");
    is_num(alone(two("TypeError", 3, 2)), RESTART_STOP, "of two at one place: the program");
    is_num(alone(two("AttributeError", 3, 2)), RESTART_STOP, "AttributeError alike");
    is_num(alone(one("UnboundLocalError", 3, 2, 1)), RESTART_RESTART, "the way taken decides, not the text");
    struct restart_digest d = one("TypeError", 3, 2, 1), other = one("TypeError", 4, 2, 1);
    restart_merge(&d, &other);
    is_num(alone(d), RESTART_RESTART, "two at two places");
    d = one("TypeError", 3, 2, 1);
    history = (struct restart_history){.longest = 0};
    is_num(next(1, 1, &d), RESTART_STOP, "TypeError of the only worker");
    static const char *const open[] = {"ValueError", "IndexError", "KeyError", "AssertionError"};
    for (size_t i = 0; i < COUNT_OF(open); i++)
        is_num(alone(two(open[i], 3, 2)), RESTART_RESTART, open[i]);
}

static void test_speaks_against(void)
{
    struct restart_digest d = one("ImportError", 3, 2, 1), other = one("ValueError", 3, 2, 1);
    restart_merge(&d, &other);
    is_num(alone(d), RESTART_RESTART, "another worker ended otherwise");
    d = one("ImportError", 3, 2, 1);
    restart_passed(&d);
    is_num(alone(d), RESTART_RESTART, "another worker succeeded");
    d = one("ImportError", 3, 2, 1);
    struct failure f = failure("DistNetworkError", 9, EL_SEC(2));
    f.class = FAILURE_CLASS_NETWORK;
    f.follower = true;
    restart_add(&d, &f, 1);
    is_num(alone(d), RESTART_RESTART, "another worker was left waiting for a peer: it had got further");
    f.by = FAILURE_BY_ELRUN;
    d = one("ImportError", 3, 2, 1);
    restart_add(&d, &f, 1);
    is_num(alone(d), RESTART_STOP, "one that elrun stopped says nothing");
    is_num(alone(one("ImportError", 3, 601, 1)), RESTART_RESTART, "after ten minutes it was no mistake in starting");
    d = one("ImportError", 3, 2, 1);
    history = (struct restart_history){.longest = EL_SEC(100)};
    is_num(next(8, 1, &d), RESTART_RESTART, "an earlier round got further");
    history = (struct restart_history){.longest = EL_SEC(4)};
    is_num(next(8, 1, &d), RESTART_STOP, "but not much");
}

static void test_written(void)
{
    static const struct {
        const char *type, *message;
        enum restart_next next;
    } cases[] = {
        {"TypeError", "train() got an unexpected keyword argument 'widht'", RESTART_STOP},
        {"TypeError", "train() missing 1 required positional argument: 'width'", RESTART_STOP},
        {"TypeError", "train() missing 1 required keyword-only argument: 'width'", RESTART_STOP},
        {"TypeError", "train() takes 0 positional arguments but 1 was given", RESTART_STOP},
        {"TypeError", "train() got multiple values for argument 'width'", RESTART_STOP},
        {"TypeError", "Model() takes no arguments", RESTART_STOP},
        {"AttributeError", "module 'torch' has no attribute 'relu7'", RESTART_STOP},
        {"AttributeError", "type object 'Model' has no attribute 'load'", RESTART_STOP},
        {"AttributeError", "'NoneType' object has no attribute 'shape'", RESTART_RESTART},
        {"TypeError", "unsupported operand type(s) for +: 'int' and 'str'", RESTART_RESTART},
        {"ValueError", "train() takes 0 positional arguments but 1 was given", RESTART_RESTART},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct restart_digest d = {.kind = RESTART_SILENT};
        struct failure f = failure(cases[i].type, 7, EL_SEC(1));
        snprintf(f.found.message, sizeof f.found.message, "%s", cases[i].message);
        restart_add(&d, &f, 1);
        is_num(alone(d), cases[i].next, cases[i].message);
    }
}

static void test_no_traceback(void)
{
    static const struct {
        const char *said;
        int code;
        enum restart_next next;
    } cases[] = {
        {"train.py: error: unrecognized arguments: --lr", 2, RESTART_STOP},
        {"train.py: error: unrecognized arguments: --lr", 1, RESTART_RESTART},
        {"cannot connect", 2, RESTART_RESTART},
        {"/usr/bin/python3: can't open file '/home/me/none.py': [Errno 2] No such file or directory", 2, RESTART_STOP},
        {"/usr/bin/python3: No module named none", 1, RESTART_STOP},
        {"/usr/bin/python3: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module named "
         "'a')",
         1, RESTART_STOP},
        {"No module named none", 1, RESTART_RESTART},
        {"", 2, RESTART_RESTART},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct restart_digest d = {.kind = RESTART_SILENT};
        struct failure f = failure("", 0, EL_SEC(1));
        f.class = FAILURE_CLASS_UNKNOWN;
        f.found = (struct traceback){.kind = TRACEBACK_NONE};
        f.code = cases[i].code;
        snprintf(f.found.message, sizeof f.found.message, "%s", cases[i].said);
        restart_add(&d, &f, 1);
        is_num(alone(d), cases[i].next, cases[i].said);
    }
    struct restart_digest d = {.kind = RESTART_SILENT};
    struct failure f = failure("ImportError", 3, EL_SEC(1));
    f.code = 3;
    restart_add(&d, &f, 1);
    is_num(alone(d), RESTART_RESTART, "after a status of its own choice a traceback proves nothing");
    d = (struct restart_digest){.kind = RESTART_SILENT};
    is_num(alone(d), RESTART_RESTART, "nothing is known");
}

static enum restart_next twice(const char *a, unsigned line_a, double s_a, const char *b, unsigned line_b, double s_b)
{
    struct restart_digest d = one(a, line_a, s_a, 1);
    history = (struct restart_history){.longest = 0};
    next(8, 1, &d);
    d = one(b, line_b, s_b, 1);
    return next(8, 1, &d);
}

static void test_two_rounds(void)
{
    is_num(twice("ValueError", 3, 10, "ValueError", 3, 20), RESTART_STOP, "the same within twice the time");
    is_str(verdict.why,
           "no restart: two rounds in a row ended so: ValueError at train.py:3, after 10.0 s and after 20.0 s "
           "(--restart-policy=always restarts all the same)",
           "why");
    is_num(twice("ValueError", 3, 10, "ValueError", 3, 1), RESTART_STOP, "sooner");
    is_num(twice("ValueError", 3, 10, "ValueError", 3, 21.5), RESTART_RESTART, "later: it had got further");
    is_num(twice("ValueError", 3, 0.02, "ValueError", 3, 0.9), RESTART_STOP, "a second is no difference");
    is_num(twice("ValueError", 3, 10, "ValueError", 4, 10), RESTART_RESTART, "another line");
    is_num(twice("ValueError", 3, 10, "KeyError", 3, 10), RESTART_RESTART, "another exception");
    is_num(twice("TypeError", 3, 10, "TypeError", 3, 10), RESTART_STOP, "TypeError of the same one twice");
    is_num(twice("ImportError", 3, 7000, "ImportError", 3, 7000), RESTART_STOP, "ImportError late, twice");
    struct restart_digest d = one("ValueError", 3, 10, 1), other = one("KeyError", 3, 10, 1);
    history = (struct restart_history){.longest = 0};
    next(8, 1, &d);
    restart_other_end(&history, EL_SEC(5));
    is_num(next(8, 1, &d), RESTART_RESTART, "a round between them that a lost node ended");
    restart_merge(&d, &other);
    is_num(next(8, 1, &d), RESTART_RESTART, "something else beside it");
    is_num(next(8, 1, &d), RESTART_RESTART, "twice the same mixture is not one exception");
}

static enum restart_next nodes(uint64_t first, uint64_t second, bool both)
{
    struct restart_digest d = one("ValueError", 3, 10, first), other = one("ValueError", 3, 10, 9);
    history = (struct restart_history){.longest = 0};
    if (both)
        restart_merge(&d, &other);
    next(8, 3, &d);
    d = one("ValueError", 3, 10, second);
    return next(8, 3, &d);
}

static void test_nodes(void)
{
    is_num(nodes(1, 1, false), RESTART_RESTART, "twice on one node of three: perhaps the node");
    is_num(nodes(1, 2, false), RESTART_STOP, "on one, then on another");
    is_num(nodes(1, 1, true), RESTART_STOP, "on two in the first round");
}

static void test_hardware(void)
{
    struct restart_digest d = one("TypeError", 3, 2, 1);
    struct failure f = failure("AcceleratorError", 3, EL_SEC(2));
    f.class = FAILURE_CLASS_HARDWARE;
    f.message = "CUDA error: uncorrectable ECC error encountered";
    struct restart_digest words = d;
    restart_add(&words, &f, 1);
    is_num(words.hardware, false, "words alone set no host aside");
    f.witnessed = true;
    restart_add(&d, &f, 1);
    is_num(alone(d), RESTART_SET_ASIDE, "a hardware suspect, whatever else was seen");
    is_str(d.evidence, f.message, "its words are kept");
    struct restart_digest all = {.kind = RESTART_SILENT};
    restart_merge(&all, &d);
    ok(all.hardware && !strcmp(all.evidence, f.message), "also in the digest of the round");
}

static void test_policies(void)
{
    const struct restart_digest import = one("ImportError", 3, 2, 1);
    struct restart_digest bad = import;
    bad.hardware = true;
    struct restart_round r = {.policy = RESTART_ALWAYS, .workers = 2, .nodes = 1};
    history = (struct restart_history){.longest = 0};
    restart_next(&r, &import, &history, &verdict);
    restart_next(&r, &import, &history, &verdict);
    ok(verdict.next == RESTART_RESTART && !verdict.why[0], "always");
    restart_next(&r, &bad, &history, &verdict);
    is_num(verdict.next, RESTART_RESTART, "sets nobody aside");
    r.policy = RESTART_NEVER;
    struct restart_digest killed = {.kind = RESTART_OTHER};
    restart_next(&r, &killed, &history, &verdict);
    ok(verdict.next == RESTART_STOP && !strcmp(verdict.why, "no restart: --restart-policy=never"), "never");
    is_str(restart_policy_name(RESTART_NEVER), "never", "its name");
}

static struct restart_digest said(const char *words)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    struct failure f = failure("", 3, 1000000);
    f.found.kind = TRACEBACK_NONE;
    char text[600];
    snprintf(text, sizeof text,
             "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 3, in main\n%s\n", words);
    failure_add_stderr(&f, text, strlen(text), NULL);
    failure_judge(&f, false, false);
    restart_add(&d, &f, 1);
    failure_free(&f, NULL);
    return d;
}

static struct restart_digest printed(const char *text)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    struct failure f = failure("", 3, 1000000);
    f.found.kind = TRACEBACK_NONE;
    failure_add_stderr(&f, text, strlen(text), NULL);
    failure_judge(&f, false, false);
    restart_add(&d, &f, 1);
    failure_free(&f, NULL);
    return d;
}

static void test_passing(void)
{
    static const char *const words[] = {
        "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://hub/x",
        "httpx.HTTPStatusError: Client error '429 Too Many Requests' for url 'https://hub/x'",
        "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
        "botocore.exceptions.ClientError: An error occurred (ThrottlingException) when calling the X operation: Slow",
        "google.api_core.exceptions.ServiceUnavailable: 503 GET https://storage.googleapis.com/x: no",
        "aiohttp.client_exceptions.ClientResponseError: 429, message='', url='https://hub/x'",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "filelock._error.Timeout: The file lock '/cache/x.lock' could not be acquired.",
        "ImportError: /home/me/.cache/torch_extensions/py310_cu121/a/a.so: undefined symbol: _ZN1aE",
        "OSError: [Errno 26] Text file busy: '/tmp/a'",
        "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub",
    };
    history = (struct restart_history){.longest = 0};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct restart_digest d = said(words[i]);
        is_num(d.kind, RESTART_PASSING, words[i]);
        is_num(next(8, 1, &d), RESTART_RESTART, "is tried again, however often it comes");
        is_num(verdict.wait, i > 4 ? RESTART_BACK_OFF_MAX : RESTART_BACK_OFF << i, "after a wait that has a bound");
    }
    struct restart_digest symbol = said("ImportError: /usr/lib/a.so: undefined symbol: _ZN1aE");
    is_num(symbol.kind, RESTART_TEXT, "a symbol that an installed library lacks does not pass");
    is_num(said("RuntimeError: 429 samples are too many").kind, RESTART_OTHER, "a number alone is no refusal");
    is_num(said("RuntimeError: the batch is odd").kind, RESTART_OTHER, "RuntimeError is tried again");
    is_num(said("RuntimeError: CUDA error: device-side assert triggered").kind, RESTART_CODE,
           "... unless its words name a mistake of the program: as the manual has it");
    is_num(said("ValueError: Too Many Requests").kind, RESTART_CODE, "the program's own error may quote anything");
    is_num(said("ConnectionError: Offline mode is enabled.").kind, RESTART_CODE, "nor does a setting pass");
    is_num(printed("step 3\nERROR: 503 Server Error: Service Unavailable for url: https://hub/x\n").kind,
           RESTART_PASSING, "without a traceback, in the last line");
    is_num(printed("WARNING: 429 Too Many Requests, trying again\nstep 3\n").kind, RESTART_OTHER,
           "but not in a line of which it is not the end");
    next(8, 1, &symbol);
    struct restart_digest again = said(words[0]);
    next(8, 1, &again);
    is_num(verdict.wait, RESTART_BACK_OFF, "after something else the wait is short again");
    is_num(
        said("requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://hub/x\n\nThe above "
             "exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
             "  File \"/home/me/train.py\", line 9, in load\n"
             "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset")
            .kind,
        RESTART_PASSING, "an exception made of one that passes");
}

#define HELP         "usage: report_tool [-h]\nreport_tool: error: unrecognized arguments: --gpu\n"
#define IMPORT       "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nImportError: no x\n"
#define CHILD(words) "Traceback (most recent call last):\n  File \"/l.py\", line 3, in <module>\n" words "\n"
#define CALLED                                                                                                         \
    "Traceback (most recent call last):\n  File \"/w/train.py\", line 5, in main\n    subprocess.check_call(c)\n"      \
    "subprocess.CalledProcessError: Command '['python', 't.py']' returned non-zero exit status 1.\n"
#define ENCODING                                                                                                       \
    "SyntaxError: Non-UTF-8 code starting with '\\xff' in file /w/t.py on line 1, but no encoding declared\n"
#define STEPS "2026-11-27 03:47:15,100 INFO step 1 loss 0.1\n2026-11-27 03:47:15,200 INFO step 2 loss 0.1\n"

static enum restart_next ended(int code, const char *text, bool lingered)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = code;
    f.elapsed = EL_SEC(1);
    failure_add_stderr(&f, text, strlen(text), NULL);
    if (lingered)
        failure_lingered(&f);
    failure_judge(&f, false, false);
    restart_add(&d, &f, 1);
    failure_free(&f, NULL);
    return next(8, 1, &d);
}

/* What refuses a restart at once must be the end of what was said: a helper's error, or one that was survived, is not.
 */
static void test_behind(void)
{
    static const struct {
        const char *why, *text;
        int code;
        bool lingered;
        enum restart_next first, second;
    } cases[] = {
        {"arguments, at the end", HELP, 2, false, RESTART_STOP, RESTART_STOP},
        {"... and a while without a word", HELP, 2, true, RESTART_RESTART, RESTART_STOP},
        {"... and another status", HELP, 1, true, RESTART_RESTART, RESTART_RESTART},
        {"... and log lines behind", HELP STEPS, 2, false, RESTART_RESTART, RESTART_STOP},
        {"... the last of them an error", HELP STEPS "2026-11-27 03:47:16 ERROR license lost\n", 2, false,
         RESTART_RESTART, RESTART_RESTART},
        {"... and foot lines behind",
         HELP "\nwandb: done\nException ignored in: <f>\n" IMPORT "a.py:3: UserWarning: resource_tracker: leaked\n"
              "  warnings.warn(\n",
         2, false, RESTART_STOP, RESTART_STOP},
        {"docopt's", "Usage:\n  t.py --lr=<x>\n", 1, false, RESTART_STOP, RESTART_STOP},
        {"an exception of a parser, and a slow end",
         "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\ngetopt.GetoptError: option --lrr not "
         "recognized\n",
         1, true, RESTART_STOP, RESTART_STOP},
        {"a type that others raise, too",
         "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nValueError: Some specified arguments "
         "are "
         "not used by the HfArgumentParser: ['--lrr', '1']\n",
         1, false, RESTART_STOP, RESTART_STOP},
        {"an import, at the end", IMPORT, 1, false, RESTART_STOP, RESTART_STOP},
        {"an import of a child process", CHILD("ImportError: no x") CALLED, 1, false, RESTART_STOP, RESTART_STOP},
        {"another error of a child process", CHILD("KeyError: 'x'") CALLED, 1, false, RESTART_RESTART, RESTART_STOP},
        {"a file that Python cannot decode", ENCODING, 1, false, RESTART_STOP, RESTART_STOP},
        {"... and log lines behind", ENCODING STEPS, 1, false, RESTART_RESTART, RESTART_RESTART},
        {"... with faulthandler's stacks behind",
         IMPORT "Fatal Python error: _enter_buffered_busy: x\nPython runtime state: finalizing (tstate=0x1)\n\n"
                "Current thread 0x1 (most recent call first):\n<no Python frame>\n",
         1, false, RESTART_STOP, RESTART_STOP},
        {"... and log lines behind", IMPORT STEPS, 1, false, RESTART_RESTART, RESTART_STOP},
        {"... and a bar of progress behind", IMPORT "  2026-11-27 9%|# | 9/99 [00:01<00:09, 9.1it/s]\n" STEPS, 1, false,
         RESTART_RESTART, RESTART_STOP},
        {"... and a while without a word", IMPORT, 1, true, RESTART_RESTART, RESTART_STOP},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        history = (struct restart_history){.longest = 0};
        is_num(ended(cases[i].code, cases[i].text, cases[i].lingered), cases[i].first, cases[i].why);
        is_num(ended(cases[i].code, cases[i].text, cases[i].lingered), cases[i].second, "... and when it comes again");
    }
}

int main(void)
{
    test_behind();
    test_passing();
    test_at_once();
    test_speaks_against();
    test_written();
    test_no_traceback();
    test_two_rounds();
    test_nodes();
    test_hardware();
    test_policies();
    return done();
}
