#include "util/sockaddr.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
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

socklen_t el_addr_to_sockaddr(const struct el_addr *a, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (el_addr_is_v4(a->ip)) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(a->port);
        memcpy(&v4->sin_addr, a->ip + 12, 4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(a->port);
    memcpy(&v6->sin6_addr, a->ip, 16);
    return sizeof *v6;
}

const char *el_addr_interface(const uint8_t ip[16], char *name, size_t room_bytes)
{
    struct ifaddrs *all = NULL;
    name[0] = 0;
    if (getifaddrs(&all) < 0)
        return name;
    for (struct ifaddrs *a = all; a && !name[0]; a = a->ifa_next) {
        struct el_addr addr;
        if (a->ifa_addr && el_addr_from_sockaddr(a->ifa_addr, &addr) && !memcmp(addr.ip, ip, sizeof addr.ip))
            snprintf(name, room_bytes, "%s", a->ifa_name);
    }
    freeifaddrs(all);
    return name;
}

/* An address of a link alone needs more than its bytes. */
static bool is_for_others(const uint8_t ip[16])
{
    return el_addr_is_v4(ip) || !(ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80);
}

bool el_addr_of_interface(const char *name, const uint8_t like[16], uint8_t ip[16])
{
    struct ifaddrs *all = NULL;
    bool found = false, v4 = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (struct ifaddrs *a = all; a && !v4; a = a->ifa_next) {
        struct el_addr addr;
        if (strcmp(a->ifa_name, name) != 0 || !a->ifa_addr || !el_addr_from_sockaddr(a->ifa_addr, &addr) ||
            !is_for_others(addr.ip) || (like && el_addr_is_v4(like) != el_addr_is_v4(addr.ip)))
            continue;
        v4 = el_addr_is_v4(addr.ip);
        if (v4 || !found)
            memcpy(ip, addr.ip, sizeof addr.ip);
        found = true;
    }
    freeifaddrs(all);
    return found;
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
