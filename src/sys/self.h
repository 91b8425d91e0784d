/* The program that runs, to be executed again in a hidden role (spawn_conf.exec_fd): opened once, before any change of
 * directory; works without a /proc and after the file was replaced by a newer one. */
#ifndef SYS_SELF_H
#define SYS_SELF_H
#include "util/err.h"

/* First thing in main.  A failure shows in self_fd(). */
void self_open(void);

/* Close-on-exec, above the standard streams; or -1 and *e. */
int self_fd(struct el_err *e);

#endif
