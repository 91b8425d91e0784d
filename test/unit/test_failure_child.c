/* A child process of the worker's own, which died of an exception and said so on the worker's stderr: the worker only
 * says by which command. */
#include "failure/failure.h"
#include "lib/tap.h"

#include <string.h>

#define CHILD(words)                                                                                                   \
    "Traceback (most recent call last):\n  File \"/w/load.py\", line 3, in <module>\n    main()\n"                     \
    "  File \"/w/load.py\", line 2, in main\n    x()\n" words "\n"
#define CALLED                                                                                                         \
    "Traceback (most recent call last):\n  File \"/w/train.py\", line 5, in <module>\n    subprocess.run(c, "          \
    "check=True)\n"                                                                                                    \
    "  File \"/usr/lib/python3.11/subprocess.py\", line 571, in run\n    raise CalledProcessError(retcode, "           \
    "process.args,\n"                                                                                                  \
    "subprocess.CalledProcessError: Command '['python', 'load.py']' returned non-zero exit status 1.\n"
#define CLOSED                                                                                                         \
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "              \
    "[127.0.0.1]:27557."

static struct failure says(const char *words)
{
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    failure_add_stderr(&f, words, strlen(words), NULL);
    failure_judge(&f, false, false);
    return f;
}

/* A handler of its own error may lose a peer, and log that: what ended the program is what it raised. */
static void test_own(void)
{
    struct failure f =
        says("2026-11-27 13:35:23,100 ERROR barrier before the exit failed: " CLOSED "\n"
             "Traceback (most recent call last):\n  File \"/w/train.py\", line 20, in <module>\n    train()\n"
             "  File \"/w/train.py\", line 12, in train\n    raise RuntimeError(f\"loss is NaN at step {step}\")\n"
             "RuntimeError: loss is NaN at step 3\n");
    ok(!f.follower && f.rule == CLASSIFY_NONE, "a loss that was logged while its own error was handled");
    is_str(f.message, "RuntimeError: loss is NaN at step 3", "its own is the cause");
    failure_free(&f, NULL);
    f = says("2026-11-27 14:20:36,801 WARNING no hint\nERROR hint failed\n"
             "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in hint\n    store.get(\"hint\")\n"
             "torch.distributed.DistStoreError: wait timeout after 2000ms, keys: /hint\n"
             "Traceback (most recent call last):\n  File \"/w/train.py\", line 12, in train\n"
             "    raise RuntimeError(f\"loss is NaN at step {step}\")\nRuntimeError: loss is NaN at step 3\n");
    ok(!f.follower && f.rule == CLASSIFY_NONE, "a key of the store that was not there, and was logged");
    is_str(f.message, "RuntimeError: loss is NaN at step 3", "its own is the cause");
    failure_free(&f, NULL);
}

int main(void)
{
    test_own();
    struct failure f = says("step 3\n" CHILD("FileNotFoundError: [Errno 2] No such file: 'x'") CALLED);
    ok(f.message && strncmp(f.message, "subprocess.CalledProcessError: Command", 38) == 0,
       "the worker's own exception");
    is_str(f.sign, "FileNotFoundError: [Errno 2] No such file: 'x' (load.py:2)", "the child's is the evidence");
    is_str(f.survived, "", "and is told once");
    failure_free(&f, NULL);
    f = says(CHILD("ValueError: x") "\nmake: *** [all] Error 1\n" CALLED);
    is_str(f.sign, "ValueError: x (load.py:2)", "a line of a program between them");
    failure_free(&f, NULL);
    f = says(CHILD("ValueError: x") "epoch 1\nepoch 2\nepoch 3\nepoch 4\nepoch 5\n" CALLED);
    is_str(f.sign, "", "an exception of long ago is not the child's");
    failure_free(&f, NULL);
    f = says("cp: cannot stat 'x'\n" CALLED);
    is_str(f.sign, "", "a child that printed none");
    failure_free(&f, NULL);
    f = says(CHILD("ValueError: x") "Traceback (most recent call last):\n  File \"/w/t.py\", line 9, in f\n    g()\n"
                                    "KeyError: 'y'\n");
    is_str(f.sign, "", "another exception says nothing of a child");
    failure_free(&f, NULL);
    f = says("warming the cache\nTraceback (most recent call last):\n  File \"/w/t.py\", line 2, in f\n    d['y']\n"
             "KeyError: 'y'\n" CALLED);
    is_str(f.sign, "", "an exception that a program has caught and printed is not what ended the child");
    is_num(f.class, FAILURE_CLASS_UNKNOWN, "and its class not the worker's");
    failure_free(&f, NULL);
    f = says("Traceback (most recent call last):\n  File \"/w/train.py\", line 2, in <module>\n    d['y']\n"
             "KeyError: 'y'\n" CALLED);
    is_str(f.sign, "", "nor is what the worker's own script has caught");
    is_num(f.class, FAILURE_CLASS_UNKNOWN, "and its class neither");
    failure_free(&f, NULL);
    f = says("Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run_module_as_main\n"
             "  File \"/w/load.py\", line 3, in <module>\n    main()\nValueError: x\n" CALLED);
    is_str(f.sign, "ValueError: x (load.py:3)", "a child that was started as a module");
    is_num(f.class, FAILURE_CLASS_CODE, "and its class counts");
    failure_free(&f, NULL);
    f = says(CHILD(CLOSED) CALLED);
    ok(f.follower && f.rule == CLASSIFY_GLOO_CLOSED, "a child that lost its peer: another rank made it so");
    ok(!f.private_link, "and it is no connection of the worker's own");
    failure_free(&f, NULL);
    return done();
}
