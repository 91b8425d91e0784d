/* Who ended a worker, of which class its failure is, and the choice among failures.  Real last output: test_corpus.c.
 */
#include "failure/failure.h"
#include "lib/tap.h"
#include "sys/kmsg.h"
#include "util/array.h"

#include <signal.h>

/* --- who did it, and of which class --- */

static struct failure make(enum failure_end end, int code, el_usec at_ms, const char *message)
{
    struct failure f;
    failure_init(&f);
    f.end = end;
    f.code = code;
    f.at = EL_SEC(1000) + EL_MS(at_ms);
    f.elapsed = EL_SEC(500);
    f.wall_usec = INT64_C(1700000000000000) + (int64_t)EL_MS(at_ms);
    f.message = (char *)(uintptr_t)message;
    return f;
}

static void test_judge(void)
{
    static const struct {
        enum failure_end end;
        int code;
        bool stopped, oom;
        enum failure_by by;
        enum failure_class class;
        const char *why;
    } rows[] = {
        {FAILURE_EXIT, 1, false, false, FAILURE_BY_ITSELF, FAILURE_CLASS_UNKNOWN, "an exit code"},
        {FAILURE_SIGNAL, 11, false, false, FAILURE_BY_ITSELF, FAILURE_CLASS_UNKNOWN, "a crash"},
        {FAILURE_SIGNAL, 15, true, false, FAILURE_BY_ELRUN, FAILURE_CLASS_UNKNOWN, "SIGTERM from elrun"},
        {FAILURE_EXIT, 1, true, false, FAILURE_BY_ELRUN, FAILURE_CLASS_UNKNOWN,
         "a handler's exit after elrun's SIGTERM"},
        {FAILURE_SIGNAL, 9, true, true, FAILURE_BY_ELRUN, FAILURE_CLASS_UNKNOWN,
         "elrun's SIGKILL while another was OOM"},
        {FAILURE_SIGNAL, 15, false, false, FAILURE_BY_OUTSIDE, FAILURE_CLASS_OUTSIDE, "SIGTERM from somebody"},
        {FAILURE_SIGNAL, 9, false, false, FAILURE_BY_OUTSIDE, FAILURE_CLASS_OUTSIDE, "SIGKILL from somebody"},
        {FAILURE_SIGNAL, 9, false, true, FAILURE_BY_OOM, FAILURE_CLASS_OOM_HOST, "the out-of-memory killer"},
        {FAILURE_EXIT, 137, false, true, FAILURE_BY_OOM, FAILURE_CLASS_OOM_HOST, "the same, seen through a shell"},
        {FAILURE_EXIT, 137, false, false, FAILURE_BY_ITSELF, FAILURE_CLASS_UNKNOWN, "137 alone says nothing"},
        {FAILURE_SIGNAL, 15, false, true, FAILURE_BY_OUTSIDE, FAILURE_CLASS_OUTSIDE, "SIGTERM is never the OOM killer"},
        {FAILURE_UNKNOWN, 0, false, false, FAILURE_BY_ITSELF, FAILURE_CLASS_UNKNOWN, "a status that was lost"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct failure f = make(rows[i].end, rows[i].code, 0, NULL);
        failure_judge(&f, rows[i].stopped, rows[i].oom);
        ok(f.by == rows[i].by && f.class == rows[i].class, rows[i].why);
    }
    struct failure f = make(FAILURE_EXIT, 1, 5000, "ValueError: x");
    f.file_sec = 1700000002;
    f.stop_wall_usec = INT64_C(1700000003000000);
    failure_judge(&f, true, false);
    is_num(f.by, FAILURE_BY_ITSELF, "its error file is older than elrun's signal: it failed by itself");
    f.file_sec = 1700000003;
    failure_judge(&f, true, false);
    is_num(f.by, FAILURE_BY_ELRUN, "in the same second nothing is proved");
}

/* What a worker leaves that ends with these words. */
static struct failure said(el_usec at_ms, const char *words, struct el_mem *mem)
{
    static const char head[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    g()\n";
    struct failure f = make(FAILURE_EXIT, 1, at_ms, NULL);
    struct el_buf text = EL_BUF_INIT(mem, 0);
    bool raw = strncmp(words, "NVRM: ", 6) == 0 || strncmp(words, "terminate ", 10) == 0;
    el_buf_printf(&text, "%s%s\n", raw ? "" : head, words);
    failure_add_stderr(&f, text.v, text.len, mem);
    el_buf_free(&text);
    return f;
}

/* Rules in short; a real message for each: test/data, read by test_corpus.c. */
static const struct {
    const char *message, *class;
    bool follower;
} rules[] = {
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out of GPU memory", false},
    {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0)", "out of GPU memory", false},
    {"RuntimeError: CUDA error: out of memory", "out of GPU memory", false},
    {"RuntimeError: HIP out of memory. Tried to allocate 256.00 MiB", "out of GPU memory", false},
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you "
     "tried to allocate 4294967296 bytes.",
     "out of memory", false},
    {"MemoryError", "out of memory", false},
    {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", "out of memory",
     false},
    {"OSError: [Errno 12] Cannot allocate memory", "out of memory", false},
    {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "hardware suspect", false},
    {"RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "hardware suspect", false},
    {"NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.", "hardware suspect", false},
    {"RuntimeError: CUDA error: hardware stack error", "unknown", false},
    {"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
     "[10.0.0.1]:31417",
     "network", true},
    {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error [10.0.0.1]:1: Connection reset "
     "by peer",
     "network", true},
    {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Write error [10.0.0.1]:1: Broken pipe",
     "network", true},
    {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:2: Connection refused",
     "network", true},
    {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for "
     "recv operation to complete",
     "hang", true},
    {"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network "
     "error, "
     "NCCL version 2.18.1",
     "network", true},
    {"torch.distributed.DistBackendError: NCCL error: socketProgress: Connection closed by remote peer n1<3>",
     "network", true},
    {"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 0] Watchdog caught "
     "collective operation timeout: WorkNCCL(SeqNum=5, "
     "OpType=ALLREDUCE)",
     "hang", true},
    {"RuntimeError: [TCPStore] recvValue failed: Connection reset by peer", "network", true},
    {"torch.distributed.DistNetworkError: The client socket has timed out after 60000ms", "network", true},
    {"torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined.", "hang",
     true},
    {"torch.distributed.DistBackendError: NCCL error: unhandled system error", "network", false},
    {"ConnectionResetError: [Errno 104] Connection reset by peer", "network", true},
    {"ConnectionRefusedError: [Errno 111] Connection refused", "network", true},
    {"RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks", "network", true},
    {"mpi4py.MPI.Exception: MPI_ERR_PROC_FAILED: Process Failure", "network", true},
    {"mpi4py.MPI.Exception: MPI_ERR_REVOKED: Communication Object Revoked", "network", true},
    {"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = "
     "StatusCode.UNAVAILABLE\n\tdetails = \"Socket closed\"",
     "network", true},
    {"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = "
     "StatusCode.UNAVAILABLE\n\tdetails = \"failed to connect to all addresses\"",
     "network", false},
    {"OSError: [Errno 113] No route to host", "network", false},
    {"KeyboardInterrupt", "killed from outside", false},
    {"RuntimeError: something else", "unknown", false},
    {"RuntimeError: step 6: lost a rank: Connection closed by peer", "network", true},
    {"ValueError: step 6: [../third_party/gloo/gloo/transport/tcp/pair.cc:1] Connection closed by peer", "network",
     true},
    {"ValueError: the log says: Connection closed by peer", "code error", false},
};

static void test_rules(void)
{
    struct el_mem mem = EL_MEM_INIT(0);
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct failure f = said(0, rules[i].message, &mem);
        failure_judge(&f, false, false);
        is_str(failure_class_text(f.class), rules[i].class, rules[i].message);
        is_num(f.follower, rules[i].follower, "  a follower of somebody else's failure, or not");
        failure_free(&f, &mem);
    }
    static const char code[] =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\n    x = \"CUDA out of memory\"\n"
        "TypeError: y\n";
    struct failure f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, code, sizeof code - 1, &mem);
    failure_judge(&f, false, false);
    is_num(f.class, FAILURE_CLASS_CODE, "what stands in the source lines of a traceback decides nothing");
    failure_free(&f, &mem);
    f = said(0, "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. ", &mem);
    failure_judge(&f, false, true);
    is_num(f.class, FAILURE_CLASS_OOM_HOST, "a data loader that the out-of-memory killer took");
    failure_judge(&f, false, false);
    is_num(f.class, FAILURE_CLASS_UNKNOWN, "no out-of-memory kill was counted: not guessed");
    f.xid = 79;
    failure_judge(&f, false, false);
    is_num(f.class, FAILURE_CLASS_HARDWARE, "the kernel log says that its GPU is gone");
    ok(strstr(failure_advice(&f), "restart the host"), "with the advice of that Xid");
    f.xid = 31;
    failure_judge(&f, false, false);
    is_num(f.class, FAILURE_CLASS_UNKNOWN, "an Xid that programs cause makes no host suspect");
    failure_free(&f, &mem);
    is_num(mem.used_bytes, 0, "memory came back");
}

static int cause_of(struct failure *all, unsigned n)
{
    const struct failure *refs[8];
    for (unsigned i = 0; i < n; i++) {
        all[i].rank = i;
        failure_judge(&all[i], all[i].stop_wall_usec >= 0, false);
        refs[i] = &all[i];
    }
    return failure_cause(refs, n);
}

static void test_cause(void)
{
    const char *gloo =
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:3";
    struct failure a[3] = {make(FAILURE_EXIT, 1, 30, NULL), make(FAILURE_EXIT, 3, 10, NULL),
                           make(FAILURE_SIGNAL, 9, 20, NULL)};
    is_num(cause_of(a, 3), 1, "the earliest");
    a[1].stop_wall_usec = 0;
    is_num(cause_of(a, 3), 2, "but not if elrun had signalled it");
    a[0].stop_wall_usec = a[2].stop_wall_usec = 0;
    is_num(cause_of(a, 3), -1, "all were stopped: none");
    is_num(failure_cause(NULL, 0), -1, "nobody failed");
    struct el_mem mem = EL_MEM_INIT(0);
    struct failure b[2] = {said(10, gloo, &mem), make(FAILURE_SIGNAL, 9, 15, NULL)};
    is_num(cause_of(b, 2), 1, "a rank whose peer went away is not the cause, though it ended first");
    struct failure c[2] = {said(10, gloo, &mem), said(20, gloo, &mem)};
    is_num(cause_of(c, 2), 0, "only followers: the earliest of them");
    failure_free(&b[0], &mem);
    failure_free(&c[0], &mem);
    failure_free(&c[1], &mem);
    struct failure d[2] = {make(FAILURE_EXIT, 1, 5000, NULL), make(FAILURE_EXIT, 1, 9000, "ValueError: x")};
    d[1].file_sec = 1700000001;
    is_num(cause_of(d, 2), 1, "its error file says that it failed long before it ended");
    d[1].file_sec = 1700000009;
    is_num(cause_of(d, 2), 0, "an error file from after its end changes nothing");
    d[1].file_sec = 1600000000;
    is_num(cause_of(d, 2), 0, "nor one from before its start");
    struct failure e[2] = {make(FAILURE_EXIT, 1, 5, NULL), make(FAILURE_EXIT, 1, 5, NULL)};
    is_num(cause_of(e, 2), 0, "at the same moment: the lower rank");
}

#define CONTEXT "\n\nDuring handling of the above exception, another exception occurred:\n\n"
#define DIRECT  "\n\nThe above exception was the direct cause of the following exception:\n\n"
#define HEAD    "Traceback (most recent call last):\n  File \"t.py\", line 7, in g\n    h()\n"
#define CLOSED                                                                                                         \
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1"

/* Whose fault is a chain of exceptions? */
static void test_chains(void)
{
    static const struct {
        const char *words;
        bool follower;
        const char *message, *why;
    } chains[] = {
        {CLOSED CONTEXT HEAD "KeyError: 'wandb_run'", true, CLOSED, "a clean-up that fails after the peer was gone"},
        {CLOSED DIRECT HEAD "TrainingError: step 3 failed", true, CLOSED,
         "the program's own word for a peer that is gone"},
        {"KeyError: 'cache'" CONTEXT HEAD CLOSED CONTEXT HEAD "KeyError: 'wandb_run'", true, CLOSED,
         "a look into a cache before explains nothing"},
        {"ValueError: bad shard 17" CONTEXT HEAD CLOSED CONTEXT HEAD "KeyError: 'wandb_run'", false,
         "KeyError: 'wandb_run'", "it had an error of its own before the peer was gone"},
        {"ConnectionResetError: [Errno 104] Connection reset by peer" CONTEXT HEAD "ValueError: no shard", false,
         "ValueError: no shard", "a connection of its own, and an error in what handles that"},
    };
    struct el_mem mem = EL_MEM_INIT(0);
    for (size_t i = 0; i < COUNT_OF(chains); i++) {
        struct failure f = said(0, chains[i].words, &mem);
        failure_judge(&f, false, false);
        is_num(f.follower, chains[i].follower, chains[i].why);
        is_str(f.message, chains[i].message, "... and what is shown of it");
        failure_free(&f, &mem);
    }
    is_num(mem.used_bytes, 0, "memory came back");
}

/* Of those that lost a connection, one that may have been its own goes before those that lost a peer. */
static void test_private(void)
{
    static const char own[] = "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 1, in f\n"
                              "[rank1]:     c.recv(1)\n[rank1]: ConnectionResetError: [Errno 104] Connection reset by "
                              "peer\n",
                      torch[] =
                          "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    g()\n"
                          "  File \"/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line "
                          "3, in all_reduce\n    work.wait()\n"
                          "ConnectionResetError: [Errno 104] Connection reset by peer\n";
    struct el_mem mem = EL_MEM_INIT(0);
    struct failure a[3] = {said(10, CLOSED, &mem), make(FAILURE_EXIT, 1, 20, NULL), make(FAILURE_EXIT, 1, 30, NULL)};
    failure_add_stderr(&a[1], torch, sizeof torch - 1, &mem);
    failure_add_stderr(&a[2], own, sizeof own - 1, &mem);
    is_num(cause_of(a, 3), 2, "the one whose connection was not torch's");
    ok(a[2].follower && a[2].private_link && !a[1].private_link && !a[0].private_link,
       "it waits for others all the same");
    for (int i = 0; i < 3; i++)
        failure_free(&a[i], &mem);
    is_num(mem.used_bytes, 0, "memory came back");
}

/* Its own traceback was there before elrun's signal. */
static void test_raised(void)
{
    static const char
        own[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    g()\nValueError: x\n",
        closed[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    g()\n" CLOSED "\n",
        fallback[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nOSError: x\n"
                     "falling back to cpu\n",
        in_main[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in main\nOSError: x\n",
        mild[] = "WARNING:root:no apex\nTraceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"
                 "ImportError: x\n",
        grave[] = "ERROR:root:no data\nTraceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"
                  "ValueError: x\n",
        inner[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in get\n    g()\n"
                  "  File \"u.py\", line 1, in <module>\nImportError: x\n",
        chained[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in get\nKeyError: 1\n\n"
                    "During handling of the above exception, another exception occurred:\n\n"
                    "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n"
                    "ValueError: x\n",
        epochs[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nImportError: x\n"
                   "epoch 1\nepoch 2\nepoch 3\nepoch 4\nepoch 5\n";
    static const struct {
        enum failure_end end;
        int code;
        bool first;
        const char *text;
        enum failure_by by;
        bool left;
        const char *why;
    } rows[] = {
        {FAILURE_SIGNAL, 15, false, own, FAILURE_BY_ITSELF, true, "it raised and could not exit"},
        {FAILURE_EXIT, 1, true, own, FAILURE_BY_ITSELF, false, "it raised in the moment in which another one did"},
        {FAILURE_EXIT, 1, false, own, FAILURE_BY_ELRUN, false, "an exception that elrun's signal may have raised"},
        {FAILURE_EXIT, 3, true, own, FAILURE_BY_ELRUN, false, "the status is not that of an exception"},
        {FAILURE_EXIT, 1, true, closed, FAILURE_BY_ELRUN, false, "only a peer was gone"},
        {FAILURE_EXIT, 1, true, "bye\n", FAILURE_BY_ELRUN, false, "it raised nothing"},
        {FAILURE_SIGNAL, 15, false, mild, FAILURE_BY_ELRUN, false, "it logged a warning, and went on"},
        {FAILURE_SIGNAL, 15, false, grave, FAILURE_BY_ITSELF, true, "it logged an error, and could not exit"},
        {FAILURE_SIGNAL, 15, false, inner, FAILURE_BY_ELRUN, false, "a function had caught it"},
        {FAILURE_SIGNAL, 15, false, in_main, FAILURE_BY_ITSELF, true, "it printed that, and cleaned up"},
        {FAILURE_SIGNAL, 15, false, chained, FAILURE_BY_ITSELF, true, "a function had caught only the first one"},
        {FAILURE_SIGNAL, 15, false, fallback, FAILURE_BY_ELRUN, false, "it says that it goes on"},
        {FAILURE_SIGNAL, 15, false, epochs, FAILURE_BY_ELRUN, false, "it went on, and said so"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct failure f = make(rows[i].end, rows[i].code, 0, NULL);
        f.spoke_first = rows[i].first;
        failure_add_stderr(&f, rows[i].text, strlen(rows[i].text), NULL);
        failure_judge(&f, true, false);
        ok(f.by == rows[i].by && failure_was_left(&f) == rows[i].left, rows[i].why);
        if (rows[i].left)
            is_num(failure_exit_status(&f, FAILURE_AS_WORKER), 1, "... and has the status of its exception");
        failure_free(&f, NULL);
    }
}

/* What stands there when others fail explains that only if it is new, unless their time ran out. */
static void test_old(void)
{
    static const char own[] =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nValueError: x\n",
                      thread[] = "Exception in thread Thread-1:\nTraceback (most recent call last):\n  File \"t.py\", "
                                 "line 1, in run\nValueError: x\n";
    static const struct {
        const char *text;
        unsigned said_ms, first_ms;
        enum failure_by by;
        const char *why;
    } rows[] = {
        {own, 1000, 1700, FAILURE_BY_ITSELF, "it raised, and the others failed"},
        {own, 1000, 1900, FAILURE_BY_ELRUN, "it had caught that, and the others failed later"},
        {own, 1000, 0, FAILURE_BY_ITSELF, "the others ran out of time"},
        {own, 2500, 1000, FAILURE_BY_ITSELF, "it came behind the first end"},
        {thread, 1000, 3000, FAILURE_BY_ELRUN, "a thread had ended long before, and nobody missed it"},
        {thread, 1000, 0, FAILURE_BY_ITSELF, "a thread had ended, and the others ran out of time"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct failure f = make(FAILURE_SIGNAL, SIGTERM, 5000, NULL);
        f.first = rows[i].first_ms ? EL_SEC(1000) + EL_MS(rows[i].first_ms) : 0;
        failure_add_stderr(&f, rows[i].text, strlen(rows[i].text), NULL);
        failure_add_times(&f, EL_SEC(1000) + EL_MS(rows[i].said_ms), 0);
        failure_judge(&f, true, false);
        is_num(f.by, rows[i].by, rows[i].why);
        failure_free(&f, NULL);
    }
}

/* A thread of it raised, and its main thread waited: a guess, but a better one than who only lost a peer. */
static void test_thread(void)
{
    static const char thread[] = "Exception in thread Thread-1 (f):\nTraceback (most recent call last):\n"
                                 "  File \"/w/t.py\", line 4, in f\n    g()\nKeyError: 'image'\n",
                      main_said[] =
                          "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    g()\n",
                      dump[] =
                          "Fatal Python error: Aborted\n\nCurrent thread 0x00007fbb0991eb80 (most recent call first):\n"
                          "  File \"/w/t.py\", line 9 in get\n";
    enum { HUNG, LEFT, WENT_ON, LOST, OWN, ROWS };
    static const struct {
        enum failure_end end;
        int code;
        bool stopped;
        const char *more, *why;
    } rows[ROWS] = {
        [HUNG] = {FAILURE_SIGNAL, SIGABRT, true, dump, "it hung"},
        [LEFT] = {FAILURE_SIGNAL, SIGTERM, true, "", "elrun stopped it"},
        [WENT_ON] = {FAILURE_SIGNAL, SIGTERM, true, "INFO step 7 loss 0.1\n", "it had gone on, and was stopped"},
        [LOST] = {FAILURE_EXIT, 1, false, CLOSED "\n", "it lost a peer"},
        [OWN] = {FAILURE_EXIT, 1, false, "ValueError: x\n", "an exception ended it"},
    };
    struct failure all[ROWS];
    for (unsigned i = 0; i < ROWS; i++) {
        struct el_buf text = EL_BUF_INIT(NULL, 0);
        bool raised = rows[i].end == FAILURE_EXIT;
        el_buf_printf(&text, "%s%s%s", thread, raised ? main_said : "", rows[i].more);
        all[i] = make(rows[i].end, rows[i].code, 10 * i, NULL);
        all[i].rank = i;
        all[i].hung = i == HUNG;
        failure_add_stderr(&all[i], text.v, text.len, NULL);
        failure_judge(&all[i], rows[i].stopped, false);
        is_str(all[i].thread, "KeyError: 'image' (t.py:4)", rows[i].why);
        is_num(failure_by_thread(&all[i]), i == LEFT, "... is the thread its last word?");
        el_buf_free(&text);
    }
    ok(all[HUNG].odd && all[HUNG].by == FAILURE_BY_ELRUN, "it hung, and keeps the others waiting");
    ok(strstr(failure_advice(&all[HUNG]), "main thread"), "... and what to do");
    is_num(all[WENT_ON].by, FAILURE_BY_ELRUN, "who prints other lines afterwards was at work");
    ok(all[LOST].follower && all[LOST].private_link, "it only lost a peer, and is named before those that say no more");
    ok(!all[OWN].follower, "an exception of the main thread's is the cause");
    struct failure lost = said(1, CLOSED, NULL);
    failure_judge(&lost, false, false);
    is_num(failure_cause((const struct failure *const[]){&lost, &all[LEFT]}, 2), 1,
           "before one that lost a peer sooner");
    is_num(failure_cause((const struct failure *const[]){&all[LEFT], &all[OWN]}, 2), 1,
           "behind any that failed by itself");
    struct failure hung = make(FAILURE_SIGNAL, SIGABRT, 0, NULL);
    hung.hung = hung.odd = true;
    all[HUNG].rank = 1;
    failure_judge(&hung, true, false);
    is_num(failure_cause((const struct failure *const[]){&hung, &all[HUNG]}, 2), 1, "before one that hung elsewhere");
    failure_free(&lost, NULL);
    for (unsigned i = 0; i < ROWS; i++)
        failure_free(&all[i], NULL);
}

static void test_status(void)
{
    struct failure f = make(FAILURE_EXIT, 85, 0, NULL), s = make(FAILURE_SIGNAL, 9, 0, NULL),
                   u = make(FAILURE_UNKNOWN, 0, 0, NULL), n = make(FAILURE_NOT_STARTED, EL_EXIT_NOINPUT, 0, NULL);
    is_num(failure_exit_status(&f, FAILURE_AS_WORKER), 85, "the worker's own code");
    is_num(failure_exit_status(&s, FAILURE_AS_WORKER), 137, "128 + signal");
    is_num(failure_exit_status(&u, FAILURE_AS_WORKER), EL_EXIT_SOFTWARE, "unknown is never 0");
    is_num(failure_exit_status(&n, FAILURE_AS_WORKER), EL_EXIT_NOINPUT, "not started");
    is_num(failure_exit_status(&f, FAILURE_AS_TORCHRUN), 1, "as torchrun");
    is_num(failure_exit_status(&s, FAILURE_AS_TORCHRUN), 1, "as torchrun, a signal");
    is_num(failure_exit_status(&n, FAILURE_AS_CLASS), EL_EXIT_NOINPUT, "by class, not started");
    static const int want[] = {1, 65, 1, 1, 72, 75, 75, 75};
    for (int c = FAILURE_CLASS_UNKNOWN; c <= FAILURE_CLASS_HANG; c++) {
        f.class = (enum failure_class)c;
        is_num(failure_exit_status(&f, FAILURE_AS_CLASS), want[c], failure_class_text(f.class));
    }
}

/* 10 MB on one line: the ring holds its end only, without the type and without the frames. */
static void test_huge(void)
{
    size_t n = 10u << 20;
    char *v = malloc(n);
    memset(v, 'x', n);
    static const char head[] = "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\n    x\nValueError: ";
    memcpy(v, head, sizeof head - 1);
    v[n - 1] = '\n';
    struct el_mem mem = EL_MEM_INIT(1 << 20);
    struct failure f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, v, n, &mem);
    ok(!f.stack && f.tail && strlen(f.tail) <= 8192 && !f.texts_short, "its end is kept, bounded");
    failure_free(&f, &mem);
    f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, v, 60000, &mem);
    ok(f.stack && strncmp(f.message, "ValueError: xxx", 15) == 0 && strlen(f.message) < 1024, "60 KB on one line");
    is_str(f.found.file, "t.py", "with its frame");
    failure_free(&f, &mem);
    memset(v, 0xff, 65536);
    f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, v, 65536, &mem);
    ok(f.tail && strlen(f.tail) <= 8192, "64 KiB that are no UTF-8");
    failure_free(&f, &mem);
    is_num(mem.used_bytes, 0, "memory came back");
    free(v);
}

/* --- what others say --- */

static void kernel_says(struct kmsg_log *log, const char *message)
{
    char record[512];
    int n = snprintf(record, sizeof record, "4,%u,1,-;%s\n", log->n, message);
    kmsg_add(log, record, (size_t)n);
}

static enum failure_by killed(const struct kmsg_log *log, int pid, bool oom_rose, struct failure *f)
{
    *f = make(FAILURE_SIGNAL, SIGKILL, 0, NULL);
    f->pid = pid;
    failure_add_kernel(f, log, NULL);
    failure_judge(f, false, oom_rose);
    return f->by;
}

static void test_kernel_oom(void)
{
    static struct kmsg_log log;
    struct failure f;
    log = (struct kmsg_log){.whole = true, .pids_ours = true};
    is_num(killed(&log, 7, true, &f), FAILURE_BY_OOM,
           "the counter rose and the log is silent: the counter is believed");
    kernel_says(&log, "Memory cgroup out of memory: Killed process 8 (python) total-vm:1kB");
    is_num(killed(&log, 8, true, &f), FAILURE_BY_OOM, "the log names it");
    is_str(f.kernel, "Memory cgroup out of memory: Killed process 8 (python) total-vm:1kB", "its line is kept");
    failure_judge(&f, true, true);
    is_num(f.by, FAILURE_BY_OOM, "also where elrun was about to stop it");
    failure_free(&f, NULL);
    is_num(killed(&log, 7, true, &f), FAILURE_BY_OUTSIDE, "the log names another one: this one was killed by somebody");
    ok(!f.kernel, "and another one's line is not its");
    log.whole = false;
    is_num(killed(&log, 7, true, &f), FAILURE_BY_OOM, "unless some of the log was overwritten");
    log.whole = true;
    log.pids_ours = false;
    is_num(killed(&log, 8, true, &f), FAILURE_BY_OOM, "pids of another namespace name nobody: the counter decides");
    is_num(killed(&log, 8, false, &f), FAILURE_BY_OUTSIDE, "which did not rise");
    log.pids_ours = true;
    f = make(FAILURE_EXIT, 137, 0, NULL);
    f.pid = 7;
    failure_add_kernel(&f, &log, NULL);
    failure_judge(&f, false, true);
    is_num(f.by, FAILURE_BY_OOM, "exit code 137 of a shell: its child was chosen");
    static const struct {
        const char *message;
        bool its;
    } loader[] = {{"RuntimeError: DataLoader worker (pid(s) 8) exited unexpectedly", true},
                  {"RuntimeError: DataLoader worker (pid 8) is killed by signal: Killed.", true},
                  {"RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed.", false},
                  {"stupid 9, pid", false}};
    for (unsigned i = 0; i < COUNT_OF(loader); i++) {
        f = make(FAILURE_EXIT, 1, 0, loader[i].message);
        f.pid = 7;
        failure_add_kernel(&f, &log, NULL);
        is_num(f.kernel != NULL, loader[i].its, loader[i].message);
        f.message = NULL;
        failure_free(&f, NULL);
    }
}

static void test_kernel_hardware(void)
{
    static struct kmsg_log log;
    log = (struct kmsg_log){.whole = true, .pids_ours = true};
    kernel_says(&log, "NVRM: Xid (PCI:0000:3b:00): 31, pid=9, name=python, MMU Fault");
    kernel_says(&log, "python[9]: segfault at 0 ip 0 sp 0 error 4 in libx.so[0+1]");
    struct failure f = make(FAILURE_SIGNAL, SIGABRT, 0, NULL);
    f.pid = 7;
    failure_add_kernel(&f, &log, NULL);
    ok(!f.xid && !f.kernel, "what names another process is none of its evidence");
    kernel_says(&log, "NVRM: Xid (PCI:0000:3b:00): 63, row remapper pending");
    kernel_says(&log, "NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.");
    kernel_says(&log, "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (Reset)");
    failure_add_kernel(&f, &log, NULL);
    ok(f.xid == 79 && !f.xid_own, "of those that name nobody the gravest");
    is_str(f.xid_device, "0000:5e:00", "with its device");
    failure_judge(&f, false, false);
    is_num(f.class, FAILURE_CLASS_HARDWARE, "which makes the hardware suspect");
    failure_free(&f, NULL);
    kernel_says(&log, "NVRM: Xid (PCI:0000:3b:00): 13, pid=7, name=python, Graphics Exception");
    f = make(FAILURE_SIGNAL, SIGABRT, 0, NULL);
    f.pid = 7;
    failure_add_kernel(&f, &log, NULL);
    ok(f.xid == 13 && f.xid_own, "what names it counts more");
    for (int i = 0; i < 100; i++)
        kernel_says(&log, "NVRM: Xid (PCI:0000:3b:00): 13, pid=7, name=python, Graphics Exception");
    struct el_mem mem = EL_MEM_INIT(1 << 16);
    failure_free(&f, NULL);
    failure_add_kernel(&f, &log, &mem);
    ok(f.kernel && strlen(f.kernel) <= 4 * KMSG_TEXT_MAX, "a flood is bounded");
    failure_free(&f, &mem);
    is_num(mem.used_bytes, 0, "memory came back");
}

static void test_stdout(void)
{
    static const char traceback[] = "step 1\nTraceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
                                    "    f()\nKeyError: 'lr'\n";
    struct failure f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, "", 0, NULL);
    failure_add_stdout(&f, traceback, sizeof traceback - 1, NULL);
    ok(f.stack && f.stack_from == FAILURE_FROM_STDOUT, "a traceback on stdout is found");
    is_str(f.message, "KeyError: 'lr'", "with its message");
    failure_free(&f, NULL);
    f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, traceback, sizeof traceback - 1, NULL);
    failure_add_stdout(&f, "Traceback (most recent call last):\nOSError: old\n", 49, NULL);
    ok(f.stack_from == FAILURE_FROM_STDERR && strstr(f.stack, "KeyError"), "stderr's goes before it");
    failure_free(&f, NULL);
    f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stderr(&f, "warning: x\n", 11, NULL);
    failure_add_stdout(&f, "step 2\n", 7, NULL);
    ok(f.tail && f.tail_from == FAILURE_FROM_STDERR && !strcmp(f.tail, "warning: x"), "last lines: stderr's");
    failure_free(&f, NULL);
    f = make(FAILURE_EXIT, 1, 0, NULL);
    failure_add_stdout(&f, "step 2\n", 7, NULL);
    ok(f.tail && f.tail_from == FAILURE_FROM_STDOUT && !strcmp(f.tail, "step 2"), "stdout's where stderr is silent");
    failure_free(&f, NULL);
}

/* Whoever speaks of sick hardware need not have it. */
static void test_spoken_of(void)
{
    static const struct {
        const char *words;
        int code;
        const char *class, *about;
    } ends[] = {
        {"CUDA error: uncorrectable ECC error encountered\n", 1, "hardware suspect", "its last line says so"},
        {"CUDA error: uncorrectable ECC error encountered\nloss diverged, stopping\n", 1, "unknown", "it went on"},
        {"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nloss diverged, stopping\n", 1, "unknown",
         "a kernel line, and it went on"},
        {"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n", -SIGKILL, "killed from outside",
         "a kernel line, and somebody killed it"},
        {"INFO restored; the failure before was \"CUDA error: uncorrectable ECC error encountered\" on node7\n", 1,
         "unknown", "quoted"},
        {"config: {'on_error': {'if: uncorrectable ECC error': 'reboot'}}\n", 1, "unknown", "in a config"},
        {"usage: t.py [--on-xid ACTION]\n  --on-xid  what to do when a GPU is lost: GPU is lost\nt.py: error: "
         "unrecognized arguments: --foo\n",
         2, "code error", "in a help text"},
    };
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        bool signal = ends[i].code < 0;
        struct failure f = make(signal ? FAILURE_SIGNAL : FAILURE_EXIT, signal ? -ends[i].code : ends[i].code, 5, NULL);
        failure_add_stderr(&f, ends[i].words, strlen(ends[i].words), NULL);
        failure_judge(&f, false, false);
        is_str(failure_class_text(f.class), ends[i].class, ends[i].about);
        failure_free(&f, NULL);
    }
}

/* Nobody sent them: the kernel did, for what the program did. */
static void test_limits(void)
{
    static const int signals[] = {SIGXFSZ, SIGXCPU, SIGALRM};
    static const char *const advice[] = {"ulimit -f", "ulimit -t", "timer"};
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct failure f = make(FAILURE_SIGNAL, signals[i], 5, NULL);
        failure_judge(&f, false, false);
        ok(f.by == FAILURE_BY_ITSELF && strstr(failure_advice(&f), advice[i]), advice[i]);
        failure_free(&f, NULL);
    }
}

/* The main thread raised, and another one keeps the process alive: the stacks show it, when all are printed. */
static void test_unended(void)
{
    static const char raised[] =
        "Traceback (most recent call last):\n  File \"/w/t.py\", line 5, in <module>\n    f()\n"
        "ValueError: bad batch\n",
                      caught[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 5, in f\n    g()\n"
                                 "ValueError: bad batch\n",
                      dump[] = "Fatal Python error: Aborted\n\nThread 0x00007f4c (most recent call first):\n"
                               "  File \"/usr/lib/python3.11/threading.py\", line 975 in run\n\n"
                               "Current thread 0x00007fdc (most recent call first):\n"
                               "  File \"/usr/lib/python3.11/threading.py\", line 1583 in _shutdown\n",
                      at_work[] = "  File \"/w/t.py\", line 9 in <module>\n";
    const struct {
        const char *said, *more, *behind, *unended, *why;
    } rows[] = {
        {raised, "", "", "ValueError: bad batch (t.py:5)", "an exception, then Python's shutdown"},
        {raised, "", at_work, "", "caught, and the program goes on"},
        {raised, "2026-11-27 10:00:00 INFO epoch 1\n", "", "", "it had gone on, and ended later"},
        {caught, "", "", "", "caught in a function"},
        {"", "", "", "", "nothing was raised"},
    };
    struct failure all[COUNT_OF(rows)];
    for (unsigned i = 0; i < COUNT_OF(rows); i++) {
        struct el_buf text = EL_BUF_INIT(NULL, 0);
        el_buf_printf(&text, "%s%s%s%s", rows[i].said, rows[i].more, dump, rows[i].behind);
        all[i] = make(FAILURE_SIGNAL, SIGABRT, 10 - i, NULL);
        all[i].rank = COUNT_OF(rows) - i;
        all[i].hung = true;
        failure_add_stderr(&all[i], text.v, text.len, NULL);
        failure_judge(&all[i], true, false);
        is_str(all[i].unended, rows[i].unended, rows[i].why);
        el_buf_free(&text);
    }
    ok(all[0].odd && strstr(failure_advice(&all[0]), "daemon"), "... the others waited for it, and what to do");
    all[1].odd = true;
    is_num(failure_cause((const struct failure *const[]){&all[1], &all[0]}, 2), 1, "before one that stood elsewhere");
    for (unsigned i = 0; i < COUNT_OF(rows); i++)
        failure_free(&all[i], NULL);
}

/* A traceback stands there before the clean-up at exit: who raised first is the first, however long it cleans up. */
static void test_raised_first(void)
{
    static const char said[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 8, in <module>\n    f()\n"
                               "KeyError: 'labels'\n";
    struct failure all[2] = {make(FAILURE_EXIT, 1, 400, NULL), make(FAILURE_EXIT, 1, 1000, NULL)};
    const struct failure *const refs[] = {&all[0], &all[1]};
    failure_add_stderr(&all[1], said, sizeof said - 1, NULL);
    all[1].said_at = all[1].at - EL_MS(1000);
    for (size_t i = 0; i < 2; i++)
        failure_judge(&all[i], false, false);
    is_num(failure_at(&all[1]), all[1].said_at, "it had raised, and ended by that");
    is_num(failure_cause(refs, 2), 1, "... before another one gave up");
    all[1].said_at = all[0].at + 1;
    is_num(failure_cause(refs, 2), 0, "who raised later is later");
    all[1].at += EL_SEC(10);
    is_num(failure_at(&all[1]), all[1].at, "what it had printed long before was not its end");
    all[1].said_at = all[1].at - EL_SEC(1);
    all[1].code = 3;
    is_num(failure_at(&all[1]), all[1].at, "nor where it ended with another status");
    all[1].code = 1;
    all[1].wall_usec = all[1].stop_wall_usec = INT64_C(1700000011000000);
    is_num(failure_at(&all[1]), all[1].said_at, "a signal that came behind its end says nothing");
    all[1].stop_wall_usec--;
    is_num(failure_at(&all[1]), all[1].at, "nor where elrun has signalled it");
    all[1].stop_wall_usec = -1;
    all[1].went_on = true;
    is_num(failure_at(&all[1]), all[1].at, "nor if it had perhaps gone on");
    all[1].went_on = false;
    is_num(failure_at(&all[1]), all[1].said_at, "(else it was)");
    all[1].said_at = 0;
    is_num(failure_at(&all[1]), all[1].at, "nor is it known where elrun read nothing");
    failure_free(&all[1], NULL);
}

int main(void)
{
    test_raised_first();
    test_unended();
    test_limits();
    test_spoken_of();
    test_kernel_oom();
    test_kernel_hardware();
    test_stdout();
    test_judge();
    test_rules();
    test_cause();
    test_chains();
    test_private();
    test_raised();
    test_old();
    test_thread();
    test_status();
    test_huge();
    return done();
}
