/* A cgroup of version 2 per worker, where the kernel and the rights allow one: the only way to kill a tree that left
 * its group and its session.  Hosts with version 1 often have a version 2 tree beside it, without controllers: that is
 * enough for cgroup.kill.  Where no cgroup can be made, everything here answers "no" quietly. */
#ifndef SYS_CGROUP_H
#define SYS_CGROUP_H
#include <stddef.h>

#define CGROUP_PATH_MAX 4096 /* bytes, with the 0 */

/* Pure.  From the texts of /proc/self/mountinfo and /proc/self/cgroup: the folder of our own version 2 cgroup.
 * -1 if there is none, or if it lies outside of what is mounted here. */
int cgroup_own(const char *mountinfo, const char *self_cgroup, char *path, size_t room_bytes);

/* Pure.  Our own version 1 cgroup of a controller ("memory", "cpu"), the same way. */
int cgroup_own_v1(const char *mountinfo, const char *self_cgroup, const char *controller, char *path,
                  size_t room_bytes);

/* Pure.  Where the first hierarchy of that controller (NULL: version 2) is mounted here; -1 if it is not. */
int cgroup_mount(const char *mountinfo, const char *controller, char *path, size_t room_bytes);

/* The rest is cgroup_io.c. */

/* The two texts, from <proc>/self ("/proc" but in tests). */
struct cgroup_texts {
    char *mountinfo; /* hosts with many containers have long mount tables */
    char self[8192];
};
/* 0, or -1 if one of them cannot be read.  cgroup_texts_free() in both cases. */
int cgroup_texts_read(struct cgroup_texts *x, const char *proc);
void cgroup_texts_free(struct cgroup_texts *x);

struct cgroup;

/* A new leaf below our own cgroup, or NULL with one line for debugging.  The name is one path component. */
struct cgroup *cgroup_new(const char *name);

/* The path of its folder. */
const char *cgroup_path(const struct cgroup *g);

/* Descriptor of its folder, close-on-exec: spawn_worker() lets a child be born in it (clone3, CLONE_INTO_CGROUP).
 * Moving a process there later by cgroup.procs takes 10 ms and more: the kernel waits for every CPU (measured). */
int cgroup_folder_fd(const struct cgroup *g);

/* Descriptor of its cgroup.kill, opened for writing, close-on-exec, or -1 (kernel before 5.14).  Writing "1" kills all
 * that is in the cgroup; the guard holds a copy and calls cgroup_kill_by() when elrun is gone. */
int cgroup_kill_fd(const struct cgroup *g);
int cgroup_kill_by(int kill_fd);

/* SIGKILL to everything in the cgroup, by the list of its processes until the list stays the same.  Not by cgroup.kill:
 * that is for the end only, since a kernel that has killed a cgroup so kills whatever is born into it afterwards (6.18,
 * measured: clone3 compares the kill count of the parent's cgroup with that of the child's).  0: all of it has the
 * signal, and is gone when cgroup_populated() says 0; -1: it could not be sent. */
int cgroup_kill(struct cgroup *g);

/* 1 if processes are in it, 0 if none, -1 if that cannot be read. */
int cgroup_populated(const struct cgroup *g);

/* Closes the descriptors, removes the folder if it is empty.  g may be NULL. */
void cgroup_free(struct cgroup *g);

#endif
