/* A directory as a struct ckpt_fs: system calls, none of which leaves it.  Every path is opened from the root's own
 * descriptor with openat2(RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS); where the kernel has no openat2, component by
 * component with O_NOFOLLOW.
 *
 * Files are written past the page cache (O_DIRECT) as far as addresses and lengths are multiples of 4096 and the file
 * system takes it, else through it, and dropped from it after the sync. */
#ifndef CKPT_ROOT_H
#define CKPT_ROOT_H
#include "ckpt/fs.h"

#define ROOT_DIRECT_BYTES 4096

struct root {
    int fd;
    char *name;            /* as the user wrote it */
    _Atomic bool by_parts; /* no openat2 here; several threads may find out at once */
    bool no_direct;        /* tests: as if the file system did not know O_DIRECT */
};

/* The directory itself may be named through links.  make: it and its parents are made if they are not there. */
int root_open(struct root *r, const char *path, bool make, struct el_err *e);
void root_close(struct root *r);

/* -1: under its name there is nothing any more, or another directory; what is written would be where nobody looks. */
int root_stands(const struct root *r, struct el_err *e);

/* The table; it is valid as long as the root. */
struct ckpt_fs root_table(struct root *r);

#endif
