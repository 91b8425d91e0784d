/* elrun.py, the module that a training script imports; its text is part of the binary. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H
#include <stddef.h>

extern const char client_module[], client_module_end[];

#endif
