/* The mark that an agent which hosts a coordinator leaves on its host while it does: one small file.  It outlives a
 * kill -9, and so tells the next agent that members of a coordinator of this job may be on their way back.  Without one
 * the first round need not wait for any.
 *
 * The text of a mark says whose it is, and until when somebody may come back because of it. */
#ifndef MEMBER_COORDINATOR_MARK_H
#define MEMBER_COORDINATOR_MARK_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/time.h"

#define COORDINATOR_MARK_TEXT_MAX 160
#define COORDINATOR_MARK_BOOT_MAX 64
#define COORDINATOR_MARK_REFRESH  EL_SEC(60) /* so often is it written anew */
#define COORDINATOR_MARK_SCAN_MAX 1024       /* names in the folder that are looked at for stale marks */

struct coordinator_mark {
    char boot[COORDINATOR_MARK_BOOT_MAX]; /* of the kernel: another one, and no process of then is left */
    uint64_t pid, start_ticks;
    uint64_t written_s, keep_s; /* since boot; members come back so long after the process has ended */
};

/* One line; returns to. */
const char *coordinator_mark_text(const struct coordinator_mark *m, char to[COORDINATOR_MARK_TEXT_MAX]);

/* False: this is no mark. */
bool coordinator_mark_parse(const char *text, struct coordinator_mark *out);

/* now: this boot, this moment.  lives: the process that wrote m is still there.  True: nobody comes back any more. */
bool coordinator_mark_is_stale(const struct coordinator_mark *m, const struct coordinator_mark *now, bool lives);

/* "elrun-<uid>-", with which the names of all marks of a user begin; and the whole name of one. */
void coordinator_mark_prefix(unsigned uid, char *to, size_t room);
void coordinator_mark_name(unsigned uid, int port, const char *run_id, char *to, size_t room);

/* coordinator_mark_io.c: for a thread of the pool. */
struct coordinator_mark_place {
    char folder[PATH_MAX];
    char name[NAME_MAX + 1];
    unsigned uid;
    uint64_t keep_s;
};

/* Fills *out: the folder is XDG_RUNTIME_DIR, else /dev/shm. */
void coordinator_mark_find(int port, const char *run_id, el_usec keep, struct coordinator_mark_place *out);

/* Removes stale marks of this user.  True: nobody can be on his way back: there is none of this job, or a stale one;
 * and this host has been up for longer than `limit`, so that what an earlier boot left behind elsewhere has fenced
 * itself. Writes nothing: of several agents that look at the same time one will have the port, and only that one leaves
 * a mark.
 */
bool coordinator_mark_look(const struct coordinator_mark_place *p, el_usec limit);

/* This process, in a line: pid, start, namespace of pids and boot.  coordinator_mark_is_dead(): it is of this host and
 * boot and of our namespace, and is not there any more; false also where that cannot be known. */
#define COORDINATOR_MARK_SELF_MAX 128
void coordinator_mark_self(char to[COORDINATOR_MARK_SELF_MAX]);
bool coordinator_mark_is_dead(const char *self);

/* Leaves the mark, in place of what was there, or writes it anew. */
void coordinator_mark_write(const struct coordinator_mark_place *p);
void coordinator_mark_drop(const struct coordinator_mark_place *p);

#endif
