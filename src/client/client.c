#include "client/client.h"

#include <stddef.h>

#ifndef CLIENT_MODULES
#define CLIENT_MODULES X(__init__) /* for who looks at this file alone: the Makefile names all that are there */
#endif

#define X(module)                                                                                                      \
    __asm__(".pushsection .rodata.client,\"a\",@progbits\n"                                                            \
            ".hidden client_py_" #module ", client_py_" #module "_end\n"                                               \
            ".globl client_py_" #module ", client_py_" #module "_end\n"                                                \
            "client_py_" #module ": .incbin \"src/client/elrun/" #module ".py\"\n"                                     \
            "client_py_" #module "_end:\n"                                                                             \
            ".popsection\n");                                                                                          \
    extern const char client_py_##module[], client_py_##module##_end[];
CLIENT_MODULES
#undef X

const struct client_file client_files[] = {
#define X(module) {#module ".py", client_py_##module, client_py_##module##_end},
    CLIENT_MODULES
#undef X
    {.name = NULL},
};
