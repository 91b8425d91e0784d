/* What libraries print when they refuse a command line, as it is: known as that, and the line shown says what is wrong.
 */
#include "failure/last_line.h"

#include "failure/restart_policy.h"
#include "lib/tap.h"
#include "util/array.h"

#define CYCLOPTS(words) "╭─ Error ──────────────╮\n│ " words "   │\n╰──────────────────────╯\n"

static const struct {
    const char *name;
    int code;
    const char *text, *line;
} cases[] = {
    {"typer", 2,
     "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n"
     "╭─ Error ──────────────────────────────────────────────────────────────────────╮\n"
     "│ Invalid value for '--lr': Input should be a valid number, unable to parse    │\n"
     "│ string as a number                                                           │\n"
     "╰──────────────────────────────────────────────────────────────────────────────╯\n",
     "Invalid value for '--lr': Input should be a valid number, unable to parse string as a number"},
    {"typer without UTF-8", 2,
     "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n+- Error ---------------+\n"
     "| No such option: --lrr |\n+-----------------------+\n",
     "No such option: --lrr"},
    {"tyro", 2,
     "╭─ Unrecognized options ─────────────────╮\n│ Unrecognized options: --lrr, 1         │\n"
     "│ ────────────────────────────────────── │\n│ Perhaps you meant:                     │\n"
     "│     --lr FLOAT                         │\n│         (default: 0.1)                 │\n"
     "│ ────────────────────────────────────── │\n│ For full helptext, run train.py --help │\n"
     "╰────────────────────────────────────────╯\n",
     "Unrecognized options: --lrr, 1"},
    {"click", 2, "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option '--lrr'.\n",
     "Error: No such option '--lrr'."},
    {"hydra", 1,
     "Could not override 'lrr'.\nTo append to your config use +lrr=1\nKey 'lrr' not in 'C'\n    full_key: lrr\n"
     "    object_type=C\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
     "Key 'lrr' not in 'C' full_key: lrr"},
    {"hydra's grammar", 1,
     "Error parsing override 'foo'\nmissing EQUAL at '<EOF>'\n"
     "See https://hydra.cc/docs/1.2/advanced/override_grammar/basic for details\n\n"
     "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
     "missing EQUAL at '<EOF>'"},
    {"hydra's search", 1,
     "Cannot find primary config 'none'. Check that it's in your config search path.\n\nConfig search path:\n"
     "\tprovider=hydra, path=pkg://hydra.conf\n\tprovider=schema, path=structured://\n\n"
     "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
     "Cannot find primary config 'none'. Check that it's in your config search path."},
    {"fire", 2,
     "ERROR: Could not consume arg: --lrr=1\nUsage: train.py -\n\nFor detailed information on this command, run:\n"
     "  train.py - --help\n",
     "ERROR: Could not consume arg: --lrr=1"},
    {"absl", 1,
     "FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?\n"
     "Pass --helpshort or --helpfull to see help on flags.\n",
     "FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?"},
    {"absl's UsageError", 1,
     "\n       USAGE: train.py [flags]\nflags:\n\ntrain.py:\n  --lr: rate\n    (default: '3')\n\nTry --helpfull to get "
     "a list "
     "of all flags.\nToo many command-line arguments.\n",
     "Too many command-line arguments."},
    {"cyclopts, a value", 2, CYCLOPTS("Invalid value for --lr: unable to convert \"x\" into float."),
     "Invalid value for --lr: unable to convert \"x\" into float."},
    {"cyclopts, a choice", 2, CYCLOPTS("Invalid value \"c\" for --mode. Choose from: \"a\", \"b\"."),
     "Invalid value \"c\" for --mode. Choose from: \"a\", \"b\"."},
    {"cyclopts 3, a choice", 1,
     CYCLOPTS("Invalid value for \"--mode\": unable to convert \"c\" into one of {'a', 'b'}."),
     "Invalid value for \"--mode\": unable to convert \"c\" into one of {'a', 'b'}."},
    {"cyclopts, a place", 2, CYCLOPTS("Invalid value for STEPS: unable to convert \"x\" into int."),
     "Invalid value for STEPS: unable to convert \"x\" into int."},
    {"cyclopts, an option", 2, CYCLOPTS("Unknown option: --lrr. Did you mean --lr?"),
     "Unknown option: --lrr. Did you mean --lr?"},
    {"cyclopts 3, an option", 1, CYCLOPTS("Unknown option: \"--lrr\". Did you mean \"--lr\"?"),
     "Unknown option: \"--lrr\". Did you mean \"--lr\"?"},
    {"cyclopts, what is lacking", 2, CYCLOPTS("Parameter --steps requires an argument."),
     "Parameter --steps requires an argument."},
    {"cyclopts, what a command lacks", 2, CYCLOPTS("Command \"go\" parameter --n requires an argument."),
     "Command \"go\" parameter --n requires an argument."},
    {"cyclopts, a command", 2, CYCLOPTS("Unknown command \"goo\". Did you mean \"go\"? Available commands: go."),
     "Unknown command \"goo\". Did you mean \"go\"? Available commands: go."},
    {"cyclopts, too many", 2, CYCLOPTS("Unused Tokens: ['4']."), "Unused Tokens: ['4']."},
    {"jsonargparse", 2,
     "usage: train.py [--config CONFIG] [--lr LR]\ntip: For details of accepted options run: train.py --help\n"
     "error: Parser key \"lr\":\n  Expected a <class 'float'>. Got value: x\n",
     "error: Parser key \"lr\": Expected a <class 'float'>. Got value: x"},
    {"argparse with its own status", 64, "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lrr\n",
     "train.py: error: unrecognized arguments: --lrr"},
};

static enum restart_kind kind_of(struct failure *f, int code, const char *text)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    failure_init(f);
    f->end = FAILURE_EXIT;
    f->code = code;
    failure_add_stderr(f, text, strlen(text), NULL);
    failure_judge(f, false, false);
    restart_add(&d, f, 1);
    return d.kind;
}

/* After a warning the program went on: it is not what was wrong. */
static const struct {
    const char *name, *text, *line;
} warnings[] = {
    {"a warning, then a code",
     "/x/train.py:12: UserWarning: the scheduler was stepped before the optimizer\n  warnings.warn(\n", ""},
    {"a warning behind what was wrong",
     "cannot open shard 7\n/x/y.py:1: FutureWarning: `torch.load` with `weights_only=False`\n  warnings.warn(text)\n",
     "cannot open shard 7"},
    {"warnings of torch and of loggers",
     "[rank0]:[W1127 02:13:06.123456789 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group() was not called\n"
     "W1127 02:13:06.123000 4717 torch/distributed/x.py:1] it is slow\n"
     "2026-11-27 02:13:06,123 - WARNING - cache is cold\nWARNING:root:no GPU\n"
     "2026-11-27 02:13:06,123 WARNING train: again\n[W socket.cpp:697] [c10d] cannot connect, trying again\n",
     ""},
    {"a notice, after which it went on",
     "Failed to load the fast kernel: no module 'kernels'\n"
     "[rank0]:[W1127 10:15:18.130536212 reducer.cpp:1529] Warning: find_unused_parameters=True was specified\n",
     ""},
    {"an error before a warning of the end",
     "cannot open shard 7\n"
     "[rank0]:[W1127 02:13:06.123456789 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group() was not called\n",
     "cannot open shard 7"},
    {"one of Lightning, without its type",
     "cannot open shard 7\n/x/site-packages/lightning/y.py:21: `isinstance(x, Leaf)` is deprecated, use z.\n",
     "cannot open shard 7"},
    {"a place of another library",
     "loading shard 3\n/opt/v/lib/python3.11/site-packages/mytrainer/main.py:33: no shard is "
     "left in s3://b/x\n",
     "/opt/v/lib/python3.11/site-packages/mytrainer/main.py:33: no shard is left in s3://b/x"},
    {"an error behind a place",
     "loading shard 3\n/opt/v/lib/python3.11/site-packages/mytrainer/main.py:33: ERROR: no "
     "shard is left in s3://b/x\n",
     "/opt/v/lib/python3.11/site-packages/mytrainer/main.py:33: ERROR: no shard is left in s3://b/x"},
    {"an error of Lightning", "loading shard 3\n/x/site-packages/pytorch_lightning/y.py:33: ERROR: no shard is left\n",
     "/x/site-packages/pytorch_lightning/y.py:33: ERROR: no shard is left"},
    {"one of Lightning's Fabric", "cannot open shard 7\n/x/site-packages/lightning_fabric/y.py:21: it is deprecated\n",
     "cannot open shard 7"},
    {"a place of the program's own", "/home/me/data.py:21: no shard is left\n",
     "/home/me/data.py:21: no shard is left"},
    {"an error that speaks of a warning", "fatal: treated as an error: the Warning: above\n",
     "fatal: treated as an error: the Warning: above"},
};

static void test_warnings(void)
{
    struct failure f;
    for (size_t i = 0; i < COUNT_OF(warnings); i++) {
        kind_of(&f, 3, warnings[i].text);
        is_str(f.found.message, warnings[i].line, warnings[i].name);
        ok(f.tail != NULL, "it stays as evidence");
        failure_free(&f, NULL);
    }
    kind_of(&f, 3, "cannot open shard 7\n");
    failure_silent_since(&f);
    is_str(f.found.message, "", "nor is a line of long ago");
    ok(f.tail && strstr(f.tail, "cannot open shard 7"), "it stays as evidence");
    failure_free(&f, NULL);
}

/* What stands behind the error, and says nothing of it. */
#define STAMP              "2026-11-27 03:47:14,599 "
#define JSON(level, words) "{\"ts\": 1, \"level\": \"" level "\", \"msg\": \"" words "\"}\n"
static const struct {
    const char *name, *text, *line;
} farewells[] = {
    {"a tracker that closes",
     "ERROR 2026-01-01 trainer: the rate must be positive\nwandb: View run at https://wandb.ai/x/y\n"
     "wandb: Synced 5 W&B file(s), 0 media file(s)\n",
     "ERROR 2026-01-01 trainer: the rate must be positive"},
    {"a tracker's own error", "step 3\nwandb: ERROR cannot upload\n", "wandb: ERROR cannot upload"},
    {"nothing but a tracker", "wandb: Synced 5 W&B file(s)\n", "wandb: Synced 5 W&B file(s)"},
    {"whom to tell",
     "FATAL: vocabulary of 32000, not 32001\n\nIf you think this is a bug, please open an issue at "
     "https://x/issues\n\n",
     "FATAL: vocabulary of 32000, not 32001"},
    {"both in one line", "step 3\nload failed; please open an issue at https://x/issues\n",
     "load failed; please open an issue at https://x/issues"},
    {"a record of lower level", JSON("warning", "slow batch") JSON("critical", "shard 7 is empty") JSON("info", "bye"),
     "{\"ts\": 1, \"level\": \"critical\", \"msg\": \"shard 7 is empty\"}"},
    {"the error is the last record", JSON("info", "step 3") JSON("ERROR", "shard 7 is empty"),
     "{\"ts\": 1, \"level\": \"ERROR\", \"msg\": \"shard 7 is empty\"}"},
    {"records behind which it went on",
     JSON("error", "retry") JSON("info", "a") JSON("info", "b") JSON("info", "c") JSON("info", "d"),
     "{\"ts\": 1, \"level\": \"info\", \"msg\": \"d\"}"},
    {"a record of logging", STAMP "ERROR train: shard 7 is empty\n" STAMP "INFO train: bye\n",
     "2026-11-27 03:47:14,599 ERROR train: shard 7 is empty"},
    {"of its plain form", "CRITICAL:root:shard 7 is empty\nINFO:root:bye\n", "CRITICAL:root:shard 7 is empty"},
    {"of loguru", STAMP "| ERROR    | m:f:3 - shard 7 is empty\n" STAMP "| INFO     | m:f:9 - bye\n",
     "2026-11-27 03:47:14,599 | ERROR    | m:f:3 - shard 7 is empty"},
    {"it went on for two lines", STAMP "ERROR retry\n" STAMP "INFO b\n" STAMP "INFO c\n",
     "2026-11-27 03:47:14,599 INFO c"},
    {"only the word", STAMP "WARN no ERROR\n" STAMP "INFO bye\n", "2026-11-27 03:47:14,599 INFO bye"},
    {"no level above another's word", "loss 0.1\n" JSON("info", "error"),
     "{\"ts\": 1, \"level\": \"info\", \"msg\": \"error\"}"},
};

static void test_farewells(void)
{
    struct failure f;
    for (size_t i = 0; i < COUNT_OF(farewells); i++) {
        kind_of(&f, 3, farewells[i].text);
        is_str(f.found.message, farewells[i].line, farewells[i].name);
        failure_free(&f, NULL);
    }
}

/* CPython raised another one while it printed it: torch's data loader does so as a worker process of it dies. */
static void test_unprinted(void)
{
    struct failure f;
    kind_of(
        &f, 1,
        "Traceback (most recent call last):\nobject address  : 0x7fce5f0f7240\nobject type name: ConnectionResetError\n"
        "object repr     : ConnectionResetError(104, 'Connection reset by peer')\nlost sys.stderr\n");
    is_str(f.found.message, "object repr     : ConnectionResetError(104, 'Connection reset by peer')",
           "what was raised");
    ok(strstr(failure_advice(&f), "data loader"), "... and what it is likely of");
    failure_free(&f, NULL);
}

int main(void)
{
    struct failure f;
    test_unprinted();
    test_warnings();
    test_farewells();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        is_num(kind_of(&f, cases[i].code, cases[i].text), RESTART_TEXT, cases[i].name);
        is_num(f.class, FAILURE_CLASS_CODE, "its class");
        is_str(f.found.message, cases[i].line, "and the line shown");
        failure_free(&f, NULL);
    }
    is_num(kind_of(&f, 1, "Usage: see the manual\nbye\n"), RESTART_OTHER, "the word alone is no refusal");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 1,
                   "Error executing job with overrides: []\nTraceback (most recent call last):\n"
                   "  File \"/home/me/train.py\", line 11, in main\n    assert x\nAssertionError\n\n"
                   "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"),
           RESTART_CODE, "an exception under Hydra is no refusal");
    is_str(f.message, "AssertionError", "and Hydra's hint not its message");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 1,
                   "\n       USAGE: train.py [flags]\nflags:\n\ntrain.py:\n  --lr: rate\n\nhelper: no data\n"
                   "epoch 1\ncannot go on\n"),
           RESTART_CODE, "absl's help of a child, and then other words");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 1, "╭─ Error ──────╮\n│ no data is left │\n╰──────────────╯\n"), RESTART_OTHER,
           "a box of the program's own is no refusal");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 1, CYCLOPTS("Parameter server 10.0.0.2 does not answer")), RESTART_OTHER,
           "nor where it begins like one of cyclopts");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 3, CYCLOPTS("Parameter --steps requires an argument.")), RESTART_OTHER,
           "nor where it ends with a status that cyclopts has not");
    failure_free(&f, NULL);
    is_num(kind_of(&f, 1, CYCLOPTS("Invalid value in shard 7") "restored step 3 for --resume\n"), RESTART_OTHER,
           "nor where the other half stands in another line");
    failure_free(&f, NULL);
    kind_of(&f, 1, "───\n╰──╯\n");
    is_str(f.found.message, "╰──╯", "where nothing is said, the last line");
    failure_free(&f, NULL);
    return done();
}
