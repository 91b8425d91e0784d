#include "util/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_entry(int folder, const char *name, dev_t device, unsigned depth);

/* No opendir(): it allocates.  An entry that cannot be removed stays, and so does its folder. */
static void remove_entries(int folder, dev_t device, unsigned depth)
{
    _Alignas(struct dirent64) char room[2048];
    ssize_t n;
    while ((n = getdents64(folder, room, sizeof room)) > 0)
        for (char *at = room; at < room + n;) {
            const struct dirent64 *x = (const struct dirent64 *)(void *)at;
            if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
                (void)remove_entry(folder, x->d_name, device, depth);
            at += x->d_reclen;
        }
}

/* device 0: whichever it lies on. */
static int remove_entry(int folder, const char *name, dev_t device, unsigned depth)
{
    struct stat st;
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && depth && fstat(fd, &st) == 0 && (!device || st.st_dev == device))
        remove_entries(fd, st.st_dev, depth - 1);
    if (fd >= 0)
        close(fd);
    return unlinkat(folder, name, AT_REMOVEDIR);
}

int tree_remove(const char *path)
{
    return remove_entry(AT_FDCWD, path, 0, TREE_DEPTH_MAX);
}
