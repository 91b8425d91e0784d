/* The helper must run on hosts that are older than the one it was built on (floor: glibc 2.17), so the few functions
 * that have moved between libraries since are bound to the versions they were born with. */
#ifndef CHILD_LOWGLIBC_H
#define CHILD_LOWGLIBC_H

#if defined(__x86_64__)
#define GLIBC_BORN "GLIBC_2.2.5"
#else /* aarch64 */
#define GLIBC_BORN "GLIBC_2.17"
#endif

#define BORN(name) __asm__(".symver " #name "," #name "@" GLIBC_BORN)

BORN(dlopen);
BORN(dlsym);
BORN(dlerror);
BORN(dladdr);
BORN(pthread_create);

#endif
