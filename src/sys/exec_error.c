#include "sys/exec_error.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 200 };

/* "#!/bin/sh\r": the interpreter's name as the kernel takes it, up to a blank or the line's end. */
static bool script_reason(const char *head, size_t n, int sys, char *out, size_t size)
{
    const char *from = head + 2, *end = memchr(head, '\n', n);
    end = end ? end : head + n;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    const char *stop = from;
    while (stop < end && *stop != ' ' && *stop != '\t' && *stop)
        stop++;
    bool cr = stop > from && stop[-1] == '\r';
    int len = (int)(stop - from) - cr;
    len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES;
    if (cr && sys == ENOENT)
        snprintf(
            out, size,
            "its #! line ends with a carriage return, so that the kernel looks for the interpreter \"%.*s\\r\": save "
            "it with Unix line ends (dos2unix)",
            len, from);
    else if (len > 0 && (sys == ENOENT || sys == EACCES || sys == ENOTDIR || sys == ELOOP))
        snprintf(out, size, "the interpreter of its #! line, \"%.*s\": %s", len, from,
                 sys == EACCES  ? "Permission denied"
                 : sys == ELOOP ? "Too many levels of symbolic links"
                                : "No such file or directory");
    else
        return false;
    return true;
}

/* A program that is there and was not found: its loader was not. */
static bool elf_reason(const char *head, size_t n, int sys, char *out, size_t size)
{
    Elf64_Ehdr h;
    if (n < sizeof h)
        return false;
    memcpy(&h, head, sizeof h);
    if (sys == ENOEXEC) {
        snprintf(out, size, "it is a program for another kind of processor (ELF machine %u)", h.e_machine);
        return true;
    }
    if (sys != ENOENT || h.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned i = 0; i < h.e_phnum && h.e_phoff + (i + 1) * sizeof(Elf64_Phdr) <= n; i++) {
        Elf64_Phdr p;
        memcpy(&p, head + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_INTERP || p.p_offset >= n || p.p_filesz > n - p.p_offset)
            continue;
        snprintf(out, size, "its loader \"%.*s\" is not on this host: it was built for another C library",
                 (int)p.p_filesz, head + p.p_offset);
        return true;
    }
    return false;
}

bool exec_error_reason(const char *head, size_t n, int sys, char *out, size_t size)
{
    if (n > 2 && memcmp(head, "#!", 2) == 0)
        return script_reason(head, n, sys, out, size);
    if (n > 4 && memcmp(head, ELFMAG, 4) == 0)
        return elf_reason(head, n, sys, out, size);
    return false;
}
