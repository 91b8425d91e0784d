/* Whose process is at the other end of a TCP connection within this host. */
#ifndef LOOP_PEER_UID_H
#define LOOP_PEER_UID_H
#include <stdbool.h>

/* The other end is on this host, and a process of a user has it who is neither ours nor root.  What cannot be found out
 * (another network namespace, no netlink) is no proof of that. */
bool peer_is_foreign(int fd);

#endif
