/* Which libraries are opened: those that the job will open (in this order: the option; beside the job's Python; where
 * the loader looks). */
#ifndef CHILD_LIBS_H
#define CHILD_LIBS_H
#include "child.h"

struct lib {
    void *handle;
    char path[512]; /* as the loader sees it */
};

/* Each ends the process with a line "err" if there is none, or if the one that the job would get cannot be loaded. */
void lib_open_nccl(const char *option, const char *purelib, struct lib *out);
/* The same NCCL where it is only asked for its version: false if there is none, or none that can be loaded. */
bool lib_try_nccl(const char *option, const char *purelib, struct lib *out);
/* major: CUDA version that NCCL was built for, tried first; 0: not known. */
void lib_open_cudart(const char *option, const char *purelib, int major, struct lib *out);
/* handle NULL if there is none; why: the loader's words. */
void lib_open_nvml(const char *option, struct lib *out, char *why, size_t room);

/* A function; NULL if the library has none of that name. */
void *lib_symbol(const struct lib *l, const char *name);

/* The 12 of "NCCL version 2.28.9+cuda12.9", which stands in the library's constants; 0: not found. */
int lib_cuda_major(const char *path);

#endif
