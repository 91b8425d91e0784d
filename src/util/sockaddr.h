/* Between the kernel's socket addresses and ours (addr.h). */
#ifndef UTIL_SOCKADDR_H
#define UTIL_SOCKADDR_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "util/addr.h"

/* False: neither v4 nor v6. */
bool el_addr_from_sockaddr(const struct sockaddr *a, struct el_addr *out);

/* The addresses of this host's interfaces, loopback included; returns how many. */
size_t el_addr_own(uint8_t (*list)[16], size_t room);

#endif
