/* The mark that an agent which hosts a coordinator leaves on its host while it does: one small file.  It outlives a
 * kill -9, and so tells the next agent that members of a coordinator of this job may be on their way back.  Without one
 * the first round need not wait for any.
 *
 * The text of a mark says whose it is, and until when somebody may come back because of it. */
#ifndef MEMBER_MARK_H
#define MEMBER_MARK_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/time.h"

#define MARK_TEXT_MAX 160
#define MARK_BOOT_MAX 64
#define MARK_REFRESH  EL_SEC(60) /* so often is it written anew */
#define MARK_SCAN_MAX 1024       /* names in the folder that are looked at for stale marks */

struct mark {
    char boot[MARK_BOOT_MAX]; /* of the kernel: another one, and no process of then is left */
    uint64_t pid, start_ticks;
    uint64_t written_s, keep_s; /* since boot; members come back so long after the process has ended */
};

/* One line; returns to. */
const char *mark_text(const struct mark *m, char to[MARK_TEXT_MAX]);

/* False: this is no mark. */
bool mark_parse(const char *text, struct mark *out);

/* now: this boot, this moment.  lives: the process that wrote m is still there.  True: nobody comes back any more. */
bool mark_is_stale(const struct mark *m, const struct mark *now, bool lives);

/* "elrun-<uid>-", with which the names of all marks of a user begin; and the whole name of one. */
void mark_prefix(unsigned uid, char *to, size_t room);
void mark_name(unsigned uid, int port, const char *run_id, char *to, size_t room);

/* mark_io.c: for a thread of the pool. */
struct mark_place {
    char folder[PATH_MAX];
    char name[NAME_MAX + 1];
    unsigned uid;
    uint64_t keep_s;
};

/* Fills *out: the folder is XDG_RUNTIME_DIR, else /dev/shm. */
void mark_find(int port, const char *run_id, el_usec keep, struct mark_place *out);

/* Removes stale marks of this user.  True: nobody can be on his way back: there is none of this job, or a stale one;
 * and this host has been up for longer than `limit`, so that what an earlier boot left behind elsewhere has fenced
 * itself. Writes nothing: of several agents that look at the same time one will have the port, and only that one leaves
 * a mark.
 */
bool mark_look(const struct mark_place *p, el_usec limit);

/* This process, in a line: pid, start, namespace of pids and boot.  mark_is_dead(): it is of this host and boot and of
 * our namespace, and is not there any more; false also where that cannot be known. */
#define MARK_SELF_MAX 128
void mark_self(char to[MARK_SELF_MAX]);
bool mark_is_dead(const char *self);

/* Leaves the mark, in place of what was there, or writes it anew. */
void mark_write(const struct mark_place *p);
void mark_drop(const struct mark_place *p);

#endif
