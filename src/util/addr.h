/* Numeric network addresses as bytes: a v4 address is kept as v6 maps it, so one comparison serves both.  Pure: text to
 * bytes and back, no resolver. */
#ifndef UTIL_ADDR_H
#define UTIL_ADDR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

struct el_addr {
    uint8_t ip[16];
    uint16_t port; /* 0 = none */
};

/* A network: the first `bits` of ip count. */
struct el_cidr {
    uint8_t ip[16];
    uint8_t bits;
};

#define EL_ADDR_TEXT_MAX 56 /* "[" 45 "]:65535" and the 0 */

/* "10.0.0.5", "fe80::1"; no brackets, no zone, no name.  False: it is not an address. */
bool el_addr_parse(const char *text, uint8_t ip[16]);
bool el_addr_is_v4(const uint8_t ip[16]);
bool el_addr_is_loopback(const uint8_t ip[16]);
bool el_addr_is_any(const uint8_t ip[16]); /* 0.0.0.0 or :: */

/* "10.0.0.5:29400", "[fe80::1]:29400"; without the port (and the brackets) if it is 0.  Returns text. */
const char *el_addr_text(const struct el_addr *a, char text[EL_ADDR_TEXT_MAX]);

/* "10.0.0.0/8", "fd00::/8", or an address alone.  Bits set behind the length are an error, so that a slip shows. */
int el_cidr_parse(const char *text, struct el_cidr *out, struct el_err *e);
bool el_cidr_has(const struct el_cidr *c, const uint8_t ip[16]);

#endif
