/* What the kernel's log says about why processes ended: records of /dev/kmsg become facts.  kmsg.c is pure; kmsg_io.c
 * reads. */
#ifndef SYS_KMSG_H
#define SYS_KMSG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KMSG_TEXT_MAX    256
#define KMSG_FACTS_MAX   128        /* kept of one look; the rest is counted */
#define KMSG_RECORD_MAX  8192       /* the kernel writes no longer ones */
#define KMSG_RECORDS_MAX (1u << 17) /* looked at in one go: more than its ring can hold */

enum kmsg_kind {
    KMSG_OTHER,
    KMSG_OOM,      /* the out-of-memory killer chose pid */
    KMSG_XID,      /* NVIDIA's driver (sys/xid.h): number, device, and the process if it knows it */
    KMSG_HARDWARE, /* machine check, memory or link error that was not corrected; pid if a process was told */
    KMSG_CRASH,    /* segfault and the like of the thread pid; says in which library */
};

struct kmsg_fact {
    enum kmsg_kind kind;
    int pid; /* as the kernel's first pid namespace counts; 0 = none is named */
    unsigned xid;
    uint64_t seq, usec; /* number of the record; its time since boot */
    char device[20];    /* "0000:3b:00", "" = none is named */
    char comm[20];
    char text[KMSG_TEXT_MAX]; /* the message, for people */
};

/* One record as read() gives it: "4,1234,5678901,-;message\n SUBSYSTEM=…\n".  False if it says nothing that is wanted,
 * or comes from a program that only writes to the log. */
bool kmsg_parse(struct kmsg_fact *fact, const char *bytes, size_t n);

/* What was read. */
struct kmsg_log {
    bool whole;     /* nothing was overwritten, refused or cut: what is not here was not said */
    bool pids_ours; /* its pids are those that elrun sees */
    unsigned n, left_out;
    struct kmsg_fact fact[KMSG_FACTS_MAX];
};

void kmsg_add(struct kmsg_log *log, const char *bytes, size_t n);

/* The first fact of that kind that names this process, or NULL. */
const struct kmsg_fact *kmsg_of(const struct kmsg_log *log, enum kmsg_kind kind, int pid);
/* How many facts of the kind there are. */
unsigned kmsg_count(const struct kmsg_log *log, enum kmsg_kind kind);

/* --- kmsg_io.c --- */

/* A descriptor behind the newest record, or -1 where the log may not be read: no such device, no right (sysctl
 * kernel.dmesg_restrict), a container's stand-in.  path is "/dev/kmsg" but in tests. */
int kmsg_open(const char *path);
/* To the oldest record that is there. */
void kmsg_rewind(int fd);
/* Forgets what has been written since. */
void kmsg_skip(int fd);
/* Takes all that was written since; never waits for more.  May take milliseconds: for a pool thread. */
void kmsg_read(int fd, struct kmsg_log *log);

#endif
