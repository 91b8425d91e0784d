/* What a failure means for elrun's exit status, and what to do about it. */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "failure/failure.h"
#include "util/text.h"
#include "sys/xid.h"
#include "util/array.h"

/* What the kernel sends to a program that reached a limit, or whose own timer ran out. */
const char *failure_limit_text(int number)
{
    switch (number) {
    case SIGXFSZ: return "a file of it would have become larger than is allowed: ulimit -f";
    case SIGXCPU: return "it has used all the processor time that is allowed: ulimit -t";
    case SIGALRM:
    case SIGVTALRM:
    case SIGPROF: return "a timer of the program ran out (alarm, setitimer), and nothing in it handles that";
    default: return NULL;
    }
}

static int class_status(enum failure_class c)
{
    switch (c) {
#define X(name, text, status)                                                                                          \
    case FAILURE_CLASS_##name: return status;
        FAILURE_CLASS_LIST(X)
#undef X
    }
    return 1;
}

int failure_exit_status(const struct failure *f, enum failure_status_as how)
{
    if (how == FAILURE_AS_TORCHRUN)
        return 1;
    if (how == FAILURE_AS_CLASS && f->end != FAILURE_NOT_STARTED)
        return class_status(f->class);
    switch (f->end) {
    case FAILURE_EXIT:
    case FAILURE_NOT_STARTED: assert(f->code > 0 && f->code < 256); return f->code;
    case FAILURE_SIGNAL: return failure_was_left(f) ? 1 : EL_EXIT_SIGNAL(f->code);
    case FAILURE_UNKNOWN: break;
    }
    return EL_EXIT_SOFTWARE;
}

const char *failure_class_text(enum failure_class c)
{
    switch (c) {
#define X(name, text, status)                                                                                          \
    case FAILURE_CLASS_##name: return text;
        FAILURE_CLASS_LIST(X)
#undef X
    }
    return "";
}

static bool sends_itself(const struct failure *f)
{
    const struct text stack = {f->stack, f->stack ? strlen(f->stack) : 0};
    return stack.n && (text_find(stack, "os.kill(os.getpid(),") || text_find(stack, "signal.raise_signal("));
}

bool failure_interrupts_itself(const struct failure *f)
{
    static const char *const handlers[] = {"sig", "handle", "nterrupt", "stop", "exit", "kill", "term", "down"};
    struct text rest = {f->stack, f->stack ? strlen(f->stack) : 0}, line, function = {0};
    bool raises = false;
    if (f->end != FAILURE_SIGNAL || f->code != SIGINT || f->found.kind != TRACEBACK_PYTHON || f->found.chained ||
        strcmp(f->found.type, "KeyboardInterrupt") != 0)
        return false;
    while (text_line(&rest, &line)) {
        const char *frame = text_find(line, "  File \""), *in = frame ? text_find(line, ", in ") : NULL;
        if (frame)
            function = (struct text){in ? in : line.p, in ? (size_t)(line.p + line.n - in) : 0};
        raises = frame ? false : raises || text_find(line, "raise KeyboardInterrupt");
    }
    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        raises = raises && !text_find(function, handlers[i]);
    return raises && function.n;
}

/* It waited for a key of the program's own: PyTorch waits for its keys in functions of its own. */
static bool waits_for_key(const struct failure *f)
{
    struct text rest = {f->stack, f->stack ? strlen(f->stack) : 0}, line, frame = {0};
    const struct text said = {f->message, f->message ? strlen(f->message) : 0};
    if (f->rule != CLASSIFY_STORE_TIMEOUT || !text_find(said, "keys: "))
        return false;
    while (text_line(&rest, &line))
        frame = text_find(line, "  File \"") ? line : frame;
    return frame.n && !text_find(frame, "/torch/");
}

const char *failure_advice(const struct failure *f)
{
    if (f->end == FAILURE_SIGNAL && f->code == SIGBUS)
        return "shared memory may be full: give the container a larger /dev/shm";
    if (f->end == FAILURE_SIGNAL && failure_limit_text(f->code))
        return failure_limit_text(f->code);
    if (f->class == FAILURE_CLASS_HARDWARE && xid_is_suspect(f->xid))
        return xid_advice(f->xid);
    if (f->unended[0] && f->hung)
        return "Python does not exit while a thread runs that is no daemon: have it end, or start it with daemon=True";
    if (f->thread[0] && (f->hung || failure_by_thread(f)))
        return "an exception ends only the thread that raised it, and who waits for that one waits for ever: catch it "
               "there, and raise it again in the main thread";
    if (f->absent && f->perhaps_late)
        return "of these ranks one did not come: look at what each did at that moment; one that had come late may have "
               "waited, too";
    if (f->absent)
        return "look at what this rank did at that moment: the others waited for it until their time ran out";
    if (f->left)
        return "a rank that ends early leaves the others in their collectives: give all ranks the same number of "
               "steps, "
               "or let them wait for each other (a barrier, Join) before they end";
    if (f->sign[0] && classify_is_helper(f->rule) && f->by != FAILURE_BY_OOM) /* it says of what the helper died */
        return "";
    if (waits_for_key(f))
        return "no rank has set this key in the store: look for the line that sets it, and for the rank that should "
               "have "
               "come there";
    if (classify_advice(f->rule)[0] && classify_class(f->rule) == f->class)
        return classify_advice(f->rule);
    switch (f->class) {
    case FAILURE_CLASS_OOM_HOST: return "give the job more memory, or use fewer data loader workers or smaller buffers";
    case FAILURE_CLASS_OOM_GPU: return "use a smaller batch, or see what else uses this GPU";
    case FAILURE_CLASS_HARDWARE:
        return f->witnessed ? "have this host's GPUs checked before the next start"
                            : "only the program's words say so, and the host stays in use (--on-text-suspect): elrun "
                              "probe checks it";
    case FAILURE_CLASS_NETWORK:
        return f->private_link ? "the other end of a connection that this rank made itself, it seems, is gone: see the "
                                 "service there"
               : f->follower   ? "the other end of a connection is gone, and no rank failed by itself: did one leave "
                                 "early, or a service end?"
                               : "";
    case FAILURE_CLASS_HANG: return "a peer did not take part: look for the rank that printed last or not at all";
    case FAILURE_CLASS_OUTSIDE:
        if (sends_itself(f))
            return "the program sent this signal to itself, by its traceback";
        return "elrun did not send this signal: ask the scheduler or the host's administrator";
    case FAILURE_CLASS_CODE:
    case FAILURE_CLASS_UNKNOWN: break;
    }
    return "";
}
