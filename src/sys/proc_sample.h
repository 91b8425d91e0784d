/* What processes were doing at one moment, as the kernel tells it: asleep in which function, running, stopped, held in
 * state D.  proc_sample.c is pure: the texts of /proc/<pid>/stat and wchan go in, a line for people comes out.
 * proc_sample_io.c reads them.
 *
 * Only these two files are read, since they may be read beside any process: those that show its memory (cmdline,
 * environ, maps) or its registers (stack, syscall) take locks that a process in state D can hold for ever. */
#ifndef SYS_PROC_SAMPLE_H
#define SYS_PROC_SAMPLE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/buf.h"
#include "util/time.h"

#define PROC_SAMPLE_WCHAN_MAX   40
#define PROC_SAMPLE_GROUPS_MAX  6   /* told one by one; the rest is counted */
#define PROC_SAMPLE_THREADS_MAX 512 /* of one process */

/* In the order in which they are told: what stands still explains more than what waits for it. */
enum proc_sample_doing {
    PROC_SAMPLE_STOPPED,  /* state T: by SIGSTOP or another signal that stops */
    PROC_SAMPLE_TRACED,   /* a debugger holds it */
    PROC_SAMPLE_FROZEN,   /* its cgroup is frozen */
    PROC_SAMPLE_HELD,     /* state D: in the kernel, for a device or a file system */
    PROC_SAMPLE_RUNNING,  /* on a processor, or ready for one */
    PROC_SAMPLE_SLEEPING, /* waits: wchan says in which function of the kernel */
    PROC_SAMPLE_ENDED,    /* a zombie */
    PROC_SAMPLE_UNSEEN,   /* not looked at, or there is no /proc */
};

struct proc_sample_one {
    unsigned id; /* what the text calls it: a rank */
    enum proc_sample_doing doing;
    uint64_t cpu_ticks; /* used since its start, all threads */
    unsigned threads;
    char wchan[PROC_SAMPLE_WCHAN_MAX]; /* "" = not known */
};

/* Fills all but the id.  stat: the text of /proc/<pid>/stat; wchan: of /proc/<pid>/wchan, "" if it could not be read.
 */
void proc_sample_parse(struct proc_sample_one *one, const char *stat, const char *wchan);

/* Appends "rank 3 stopped by a signal; ranks 0-2,4 asleep in futex_wait_queue", by ascending id as given, with `noun`
 * in front of each ("rank", "thread"); those that ended or were not seen are left out.  Nothing if nobody is left. */
void proc_sample_text(struct el_buf *out, const char *noun, const struct proc_sample_one *one, unsigned n);

/* Somebody neither runs nor waits, but is held: worth a word even where nobody failed. */
bool proc_sample_is_notable(const struct proc_sample_one *one, unsigned n);

/* Per cent of one processor that it used between two looks, `since` apart; 0 if it was not seen both times. */
unsigned proc_sample_busy_percent(const struct proc_sample_one *before, const struct proc_sample_one *now,
                                  el_usec since, long ticks_per_second);

/* --- proc_sample_io.c --- */

/* The two files of a process, open: the first look at a process costs the kernel 50 us, each read of what is open 3 us
 * (measured).  They stay those of this process when its number is given to another one. */
struct proc_sample_source {
    int stat_fd, wchan_fd; /* -1: could not be opened */
};
void proc_sample_open(struct proc_sample_source *s, const char *proc, pid_t pid); /* proc is "/proc" but in tests */
void proc_sample_close(struct proc_sample_source *s);
/* Never waits.  One that is gone, or was not opened, is PROC_SAMPLE_UNSEEN. */
void proc_sample_look_open(struct proc_sample_one *one, const struct proc_sample_source *s);
/* The same of one that is not open. */
void proc_sample_look(struct proc_sample_one *one, const char *proc, pid_t pid);

/* The threads of a process, at most max, until the deadline (loop_clock()); ids are their numbers from 0.  How many
 * were looked at. */
unsigned proc_sample_look_threads(struct proc_sample_one *one, unsigned max, const char *proc, pid_t pid,
                                  el_usec deadline);

#endif
