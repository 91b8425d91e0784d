#include "util/sockaddr.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

bool el_addr_from_sockaddr(const struct sockaddr *a, struct el_addr *out)
{
    memset(out, 0, sizeof *out);
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a;
        memcpy(out->ip, &v6->sin6_addr, sizeof out->ip);
        out->port = ntohs(v6->sin6_port);
        return true;
    }
    if (a->sa_family != AF_INET)
        return false;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;
    out->ip[10] = out->ip[11] = 0xff;
    memcpy(out->ip + 12, &v4->sin_addr, 4);
    out->port = ntohs(v4->sin_port);
    return true;
}

size_t el_addr_own(uint8_t (*list)[16], size_t room)
{
    struct ifaddrs *all = NULL;
    size_t n = 0;
    if (getifaddrs(&all) < 0)
        return 0;
    for (struct ifaddrs *a = all; a && n < room; a = a->ifa_next) {
        struct el_addr addr;
        if (a->ifa_addr && el_addr_from_sockaddr(a->ifa_addr, &addr))
            memcpy(list[n++], addr.ip, sizeof addr.ip);
    }
    freeifaddrs(all);
    return n;
}
