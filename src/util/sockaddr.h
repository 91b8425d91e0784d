/* Between the kernel's socket addresses and ours (addr.h). */
#ifndef UTIL_SOCKADDR_H
#define UTIL_SOCKADDR_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "util/addr.h"

/* False: neither v4 nor v6. */
bool el_addr_from_sockaddr(const struct sockaddr *a, struct el_addr *out);

/* Returns the length. */
socklen_t el_addr_to_sockaddr(const struct el_addr *a, struct sockaddr_storage *out);

/* The interface that has this address, "" if none has.  Returns name. */
const char *el_addr_interface(const uint8_t ip[16], char *name, size_t room_bytes);

/* An address of the interface of that name that others can be told: IPv4 first, or of the family of `like` (NULL: any).
 * False: it is not there, or has none. */
bool el_addr_of_interface(const char *name, const uint8_t like[16], uint8_t ip[16]);

/* The addresses of this host's interfaces, loopback included; returns how many. */
size_t el_addr_own(uint8_t (*list)[16], size_t room);

#endif
