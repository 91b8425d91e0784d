/* Old seccomp profiles (Docker before 20.10.10) refuse clone3 with EPERM; the C library falls back to clone on ENOSYS
 * only, and so neither elrun nor a worker can make a thread. */
#ifndef SYS_CLONE_H
#define SYS_CLONE_H
#include <stdbool.h>

/* Makes the refusal one that the C library understands, for this process and all that it starts.  True if that was
 * necessary; then no_new_privs is set.  Before there is a second thread. */
bool clone_settle(void);

#endif
