#include "probe/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* kernel 6.3 */
#endif

/* The program itself, made by the same make (Makefile: elrun-gpu). */
extern const char helper_elf[], helper_elf_end[];
__asm__(".pushsection .rodata.helper,\"a\",@progbits\n"
        ".globl helper_elf, helper_elf_end\n"
        ".hidden helper_elf, helper_elf_end\n"
        "helper_elf: .incbin \"" HELPER_ELF "\"\n"
        "helper_elf_end:\n"
        ".popsection\n");

static int helper_write_all(int fd)
{
    for (const char *at = helper_elf; at < helper_elf_end;) {
        ssize_t n = write(fd, at, (size_t)(helper_elf_end - at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
    }
    return 0;
}

static int close_keeping_errno(int fd)
{
    int sys = errno;
    close(fd);
    errno = sys;
    return -1;
}

/* Sealed: nobody can change the program between here and exec. */
static int open_memory(void)
{
    int fd = memfd_create(HELPER_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(HELPER_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (helper_write_all(fd) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return close_keeping_errno(fd);
    return fd;
}

/* A file that is still open for writing cannot be executed (ETXTBSY): it is opened again for reading by `path`, which
 * in a folder of several users may be another file by now. */
static int open_same(int fd, const char *path)
{
    struct stat ours, found;
    int again = open(path, O_RDONLY | O_CLOEXEC);
    if (again < 0)
        return -1;
    if (fstat(fd, &ours) == 0 && fstat(again, &found) == 0 && ours.st_dev == found.st_dev &&
        ours.st_ino == found.st_ino)
        return again;
    errno = ESTALE;
    return close_keeping_errno(again);
}

static int fill_and_reopen(int fd, const char *path)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOEXEC)) {
        errno = EACCES;
        return -1;
    }
    if (fchmod(fd, 0700) < 0 || helper_write_all(fd) < 0)
        return -1;
    return open_same(fd, path);
}

static int helper_open_file(const char *dir)
{
    char path[4096];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700), result = -1;
    if (fd >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        result = fill_and_reopen(fd, path);
        close_keeping_errno(fd);
        if (result >= 0 || errno != ENOENT) /* ENOENT: there is no /proc */
            return result;
    }
    /* File systems without nameless files, a root without /proc: a name for a moment. */
    if ((size_t)snprintf(path, sizeof path, "%s/.%s.XXXXXX", dir, HELPER_NAME) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if ((fd = mkostemp(path, O_CLOEXEC)) < 0)
        return -1;
    result = fill_and_reopen(fd, path);
    close_keeping_errno(fd);
    int sys = errno;
    unlink(path);
    errno = sys;
    return result;
}

int helper_open(const char *dir, struct el_err *e)
{
    if (dir) {
        int fd = helper_open_file(dir);
        return fd >= 0 ? fd : el_fail_sys(e, EL_EXIT_OSERR, errno, "cannot put the GPU helper into \"%s\"", dir);
    }
    int fd = open_memory(), first = errno;
    if (fd >= 0)
        return fd;
    const char *const folder[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm", "."};
    for (size_t i = 0; i < sizeof folder / sizeof folder[0]; i++)
        if (folder[i] && *folder[i] && (fd = helper_open_file(folder[i])) >= 0)
            return fd;
    return el_fail_sys(e, EL_EXIT_OSERR, first,
                       "no place to execute the GPU helper from (name a folder with --helper-dir); a memory file");
}
