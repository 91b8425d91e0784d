#include "client/client.h"

__asm__(".pushsection .rodata.client,\"a\",@progbits\n"
        ".globl client_module, client_module_end\n"
        ".hidden client_module, client_module_end\n"
        "client_module: .incbin \"src/client/elrun.py\"\n"
        "client_module_end:\n"
        ".popsection\n");
