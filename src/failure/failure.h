/* One worker's failure with its evidence, and which of several is the cause.  The same record serves the report of one
 * node, the event line and the relay between nodes: a new fact is a new field here, never a second struct. */
#ifndef FAILURE_FAILURE_H
#define FAILURE_FAILURE_H
#include <stdbool.h>
#include <stdint.h>

#include "failure/class.h"
#include "failure/classify.h"
#include "failure/errfile.h"
#include "failure/handler.h"
#include "failure/traceback.h"
#include "util/exit.h"
#include "util/mem.h"
#include "util/time.h"

struct kmsg_log;

#define FAILURE_ENDING EL_SEC(5) /* behind an exception so long for the clean-up at exit */

enum failure_end {
    FAILURE_UNKNOWN,     /* the status could not be collected; never taken for success */
    FAILURE_EXIT,        /* code: 1..255 */
    FAILURE_SIGNAL,      /* code: the signal's number */
    FAILURE_NOT_STARTED, /* code: exit status of util/exit.h; message says why */
};

enum failure_by { /* who ended it */
                  FAILURE_BY_ITSELF,
                  FAILURE_BY_ELRUN,   /* stopped by elrun: a consequence, never a cause */
                  FAILURE_BY_OOM,     /* the kernel's out-of-memory killer, by the cgroup's counter */
                  FAILURE_BY_OUTSIDE, /* SIGKILL, SIGTERM, … that elrun did not send; who did is not guessed */
};

enum failure_watch {                           /* could stderr be read? */
                     FAILURE_WATCH_NOT_LOOKED, /* nobody tried: enough others failed before it */
                     FAILURE_WATCH_YES,
                     FAILURE_WATCH_TERMINAL, /* stderr is a terminal and was left alone */
                     FAILURE_WATCH_NO,       /* stderr goes where elrun cannot read it back */
                     FAILURE_WATCH_UNTOLD,   /* only how it ended has come from its node: that is the message */
};

enum failure_from { FAILURE_FROM_FILE, FAILURE_FROM_STDERR, FAILURE_FROM_STDOUT };

enum failure_oom {                      /* what the kernel's log says of this process and the out-of-memory killer */
                   FAILURE_OOM_NOTHING, /* it cannot be read, or has no word of it: only the counter is known */
                   FAILURE_OOM_CHOSEN,  /* this process was chosen */
                   FAILURE_OOM_OTHERS,  /* every kill is there, and none was of this process */
};

struct failure {
    /* who; role and host are borrowed and outlive the record */
    unsigned rank, local_rank, node_rank;
    int pid;
    const char *role, *host;
    const char *program; /* its script or module of Python, borrowed the same; NULL = something else, or not known */
    char *error_file;    /* path given to the worker; NULL = none; failure_set_line() */
    char *log_file;      /* where its stderr is kept; NULL = nowhere; failure_set_line() */
    char *log_dir;       /* of several nodes: where its own has its logs; the same */
    unsigned restart;    /* TORCHELASTIC_RESTART_COUNT of that attempt */
    uint64_t round;

    /* how it ended */
    enum failure_end end;
    int code; /* 1..255, or the signal's number, or a status of util/exit.h */
    bool core_dumped;
    enum failure_by by;
    enum failure_class class;
    bool hung;          /* elrun ended it, because all workers of its node stood still */
    bool odd;           /* hung: it stood elsewhere than most, and so keeps them waiting */
    bool absent;        /* elrun stopped it, and it did not come where others waited: failure/absent.h */
    bool perhaps_late;  /* absent: others of its node were as silent, so that it may have come, but late */
    bool follower;      /* its message only says that a peer went away: named as cause only if nobody else is there */
    bool private_link;  /* follower: the connection may be one of its own, to a service: named before other followers */
    el_usec at;         /* monotonic: when the end was seen */
    int64_t wall_usec;  /* the same moment on the wall clock, since 1970 */
    char time_text[32]; /* local time for people, "2026-11-21_20:36:48" */
    int64_t stop_wall_usec; /* when elrun first signalled it, on the wall clock; -1 = never, or not known */
    el_usec elapsed;        /* since the worker's start */
    el_usec said_at;        /* monotonic: when the last of its stderr was read; 0 = not known */
    el_usec failed_at;      /* read from a record, which has not all that tells it: failure_at(); 0 = it is none */

    /* evidence; the pointers are paid by the el_mem given to the functions below; NULL = none */
    enum failure_watch watch;
    enum errfile_state file_state;
    int64_t file_sec; /* time stamp in the error file, -1 = none */
    char *message;    /* one line: "ValueError: bad shape" */
    char *stack;      /* traceback, from the error file, else from stderr, else from stdout */
    enum failure_from stack_from;
    char *tail; /* last lines of stderr, or of stdout where stderr is silent, if there is no traceback */
    enum failure_from tail_from; /* one of the two */
    char *behind;           /* of stderr, behind the line that names the exception of stack: its message's, or not */
    struct traceback found; /* what it said; kind NONE if nothing was found */
    char *siblings;         /* one line: what the others of its node did at that moment, by sys/proc_sample.h */
    char *left;   /* follower or hung: who had ended with 0 before, "rank 1 had ended with 0, 3.2 s before"; or after */
    char *core;   /* one line: where its core is, or who has it; by sys/corefile.h */
    char *kernel; /* lines of the kernel's log about this worker, or about this host's hardware since it runs */
    enum failure_oom oom;
    unsigned xid;         /* the gravest in the kernel's log since its start, else in stderr (sys/xid.h), 0 = none */
    bool witnessed;       /* class HARDWARE: not its words alone say so, but the kernel too */
    bool xid_own;         /* it names this worker; else it names no process: some GPU of this host */
    char xid_device[20];  /* PCI address */
    bool raised;          /* its stderr ends with an exception that nobody caught, of whichever thread */
    bool spoke_first;     /* nothing came on its stderr after elrun's first signal */
    bool went_on;         /* perhaps: other lines came between that and its end, or it was a warning */
    bool lingered;        /* ... or a while without any */
    bool gave_up;         /* went_on: the last of those lines tells of an error, or of the end */
    bool aside;           /* it had printed that exception, and its end has another reason */
    enum handler handler; /* what its source says of that exception */
    bool helper;          /* what refused its command line was another program, by its name */
    el_usec first; /* when the first worker of the attempt failed, at the earliest; 0 = not known, or by a time-out */
    el_usec quiet; /* nothing had come on that stream for so long when it ended; 0 = not known */
    bool texts_short;                 /* memory for some of the texts was refused */
    enum classify_rule words;         /* the row that its last output fits */
    enum classify_rule rule;          /* the row that decided the class: that one, or one of its exit code */
    bool words_private;               /* classify.h: private_link of that row */
    bool logged;                      /* the exception was caught, and printed by a logger */
    char survived[CLASSIFY_SIGN_MAX]; /* an exception that it had printed before, and gone on: "KeyError: 'x' (a.py:3)"
                                       */
    char earlier[CLASSIFY_SIGN_MAX];  /* the same, right before what was found */
    char unended[CLASSIFY_SIGN_MAX];  /* the same of one that ended its main thread, while others kept it alive, until
                                         a signal had all stacks printed; "" = none */
    char child[64];                 /* the type of the exception that ended a child process, which decides; "" = none */
    char thread[CLASSIFY_SIGN_MAX]; /* the same of a thread of it, whose end ends no program; "" = none */
    char sign[CLASSIFY_SIGN_MAX];   /* a line of its output outside the traceback that says why; "" = none */
};

void failure_init(struct failure *f);
void failure_free(struct failure *f, struct el_mem *mem);

/* Keeps a copy of text in *place, which is &f->error_file, log_file, log_dir, siblings, left or core; NULL clears it.
 */
void failure_set_line(struct failure *f, char **place, const char *text, struct el_mem *mem);

/* Evidence, in any order, each at most once.  Called in the loop's thread with what a pool thread read. */
void failure_add_file(struct failure *f, const struct errfile *e, struct el_mem *mem);
/* The last bytes of stderr as the worker wrote them (at most 100 KiB are looked at). */
void failure_add_stderr(struct failure *f, const char *bytes, size_t n, struct el_mem *mem);
/* The same of stdout, after stderr: programs exist that print their traceback there.  Used only where stderr holds none
 * (its last lines only where stderr is silent). */
void failure_add_stdout(struct failure *f, const char *bytes, size_t n, struct el_mem *mem);
/* Its last line is old: it stays as evidence, and is not shown as what was wrong. */
void failure_silent_since(struct failure *f);
/* By itself it ended only a while after its last word: longer than an interpreter needs to come to its end. */
void failure_lingered(struct failure *f);
/* When the last bytes of its streams were read, on the clock of f->at; 0 = not known.  After the streams. */
void failure_add_times(struct failure *f, el_usec err_at, el_usec out_at);
/* What its source says of the exception with which its stderr ends.  After the streams.  If it went on, what it said
 * behind that is what counts. */
void failure_add_handler(struct failure *f, enum handler handler, struct el_mem *mem);
/* What the kernel's log has had since the worker's start. */
void failure_add_kernel(struct failure *f, const struct kmsg_log *log, struct el_mem *mem);

/* After the evidence: who ended it, and of which class it is.
 * stopped: elrun had signalled this worker before its end.  Such a worker is never a cause, unless its error file
 * proves that it had failed before the signal (stop_wall_usec), or its stderr does: it ends with an exception of its
 * own that nobody caught, and the signal ended it without another word, or came when all that had been said
 * (spoke_first) and it exited as one does after an exception; or the kernel says that it chose it, or it
 * hung. oom_rose: the count of out-of-memory kills of this node's cgroup is higher than when the worker started. */
void failure_judge(struct failure *f, bool stopped, bool oom_rose);

/* Judged: an exception ended it: it exited, or elrun's signal only ended what was left of it. */
bool failure_by_exception(const struct failure *f);
/* Judged: the latter.  Its exit status is taken for 1, as Python's would have been. */
bool failure_was_left(const struct failure *f);

/* Judged: a thread of it had ended by an exception, and it stood until elrun ended it: if nobody failed by itself, that
 * is likely what the others waited for.  It counts as left, and as follower. */
bool failure_by_thread(const struct failure *f);

/* SIGINT after a KeyboardInterrupt that the program raised in its own words, and in no handler of a signal. */
bool failure_interrupts_itself(const struct failure *f);

/* Judged: not just ended by elrun because of somebody else.  A worker that hung counts, though elrun ended it. */
bool failure_is_own(const struct failure *f);

/* When it failed at the latest, on this node's monotonic clock: by the error file's time stamp where that is earlier
 * than the end; of one that ended with 1 by itself when it had printed why, within FAILURE_ENDING before. */
el_usec failure_at(const struct failure *f);

/* The root cause among n judged failures of one node: not stopped by elrun; not a follower if there is another,
 * and of followers one whose connection may be its own, then one whose time ran out, since a connection is closed by
 * who ends of that; the earliest, by the error file's time stamp where that is earlier than the end; then the lowest
 * rank.  -1 = none. */
int failure_cause(const struct failure *const *all, unsigned n);

enum failure_status_as { FAILURE_AS_WORKER, FAILURE_AS_TORCHRUN, FAILURE_AS_CLASS }; /* --exit-code */

/* elrun's exit status for this root cause, (elrun(1), EXIT STATUS). */
int failure_exit_status(const struct failure *f, enum failure_status_as how);

/* A signal that a program brings upon itself; all others come from somebody. */
bool failure_is_crash(int signal);

/* What this signal says of a limit that was reached, or a timer; NULL: nothing. */
const char *failure_limit_text(int signal);

const char *failure_class_text(enum failure_class c);
/* What to do about it, one line; "" where the class knows nothing. */
const char *failure_advice(const struct failure *f);

#endif
