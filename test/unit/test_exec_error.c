/* Why a file that is there cannot be executed. */
#include "sys/exec_error.h"

#include <elf.h>
#include <errno.h>

#include "lib/tap.h"

static char out[400];

static const char *why(const char *head, size_t n, int sys)
{
    return exec_error_reason(head, n, sys, out, sizeof out) ? out : "(nothing)";
}

int main(void)
{
    static const char crlf[] = "#!/bin/sh\r\necho hi\r\n", args[] = "#! /usr/bin/python3 -u\r\n",
                      gone[] = "#!/opt/none/python3\n1\n";
    is_str(
        why(crlf, sizeof crlf - 1, ENOENT),
        "its #! line ends with a carriage return, so that the kernel looks for the interpreter \"/bin/sh\\r\": save it "
        "with Unix line ends (dos2unix)",
        "a carriage return");
    is_str(why(args, sizeof args - 1, ENOENT),
           "the interpreter of its #! line, \"/usr/bin/python3\": No such file or directory",
           "behind arguments it does not matter to the kernel");
    is_str(why(gone, sizeof gone - 1, ENOENT),
           "the interpreter of its #! line, \"/opt/none/python3\": No such file or directory", "a missing interpreter");
    is_str(why(gone, sizeof gone - 1, EACCES),
           "the interpreter of its #! line, \"/opt/none/python3\": Permission denied", "one that may not be executed");
    is_str(why(gone, sizeof gone - 1, E2BIG), "(nothing)", "another reason");
    is_str(why("#!\n", 3, ENOENT), "(nothing)", "no interpreter at all");
    is_str(why("print(1)\n", 9, ENOEXEC), "(nothing)", "no script");
    struct {
        Elf64_Ehdr h;
        Elf64_Phdr p;
        char name[28];
    } elf = {.h = {.e_ident = ELFMAG, .e_machine = 183, .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 1},
             .p = {.p_type = PT_INTERP, .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), .p_filesz = 28},
             .name = "/lib/ld-musl-x86_64.so.1"};
    elf.h.e_ident[EI_CLASS] = ELFCLASS64;
    is_str(why((const char *)&elf, sizeof elf, ENOENT),
           "its loader \"/lib/ld-musl-x86_64.so.1\" is not on this host: it was built for another C library",
           "a program without its loader");
    is_str(why((const char *)&elf, sizeof elf, ENOEXEC),
           "it is a program for another kind of processor (ELF machine 183)", "one for another processor");
    elf.p.p_filesz = 1u << 30;
    is_str(why((const char *)&elf, sizeof elf, ENOENT), "(nothing)", "a torn one");
    return done();
}
