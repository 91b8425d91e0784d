/* InfiniBand and RoCE ports, and network interfaces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/collect.h"
#include "probe/facts.h"
#include "probe/sysread.h"
#include "util/file.h"
#include "util/scan.h"

#define IB_ROOT  "/sys/class/infiniband"
#define NET_ROOT "/sys/class/net"

enum { PORT_DISABLED = 3, PORT_ACTIVE = 4, TEXT_ROOM = 256, NAME_ROOM = 128 };

/* --- InfiniBand --------------------------------------------------------------------------------------------------- */

static const struct {
    enum check check;
    const char *file;
} ib_counters[] = {
    {CHECK_IB_LINK_DOWNED, "counters/link_downed"},
    {CHECK_IB_SYMBOL_ERRORS, "counters/symbol_error"},
    {CHECK_IB_RCV_ERRORS, "counters/port_rcv_errors"},
    {CHECK_IB_DISCARDS, "counters/port_xmit_discards"},
    {CHECK_IB_INTEGRITY, "counters/local_link_integrity_errors"},
    {CHECK_IB_RECOVERY, "counters/link_error_recovery"},
    {CHECK_IB_OUT_OF_SEQUENCE, "hw_counters/out_of_sequence"},
    {CHECK_IB_SEQUENCE_ERRORS, "hw_counters/packet_seq_err"},
    {CHECK_IB_ACK_TIMEOUTS, "hw_counters/local_ack_timeout_err"},
    {CHECK_IB_RNR_RETRIES, "hw_counters/rnr_nak_retry_err"},
};

struct ib_walk {
    const char *device;
    unsigned active;
    char firmware[FACT_MAX]; /* of all devices; several are told apart by commas */
};

/* Without the newline; "" if it is not there. */
static bool port_file(const struct collect *c, const char *device, const char *port, const char *file, char *to,
                      size_t room)
{
    char text[TEXT_ROOM];
    to[0] = 0;
    return file_readf(text, sizeof text, c->root, IB_ROOT "/%s/ports/%s/%s", device, port, file) > 0 &&
           scan_line(text, to, room);
}

static void active_port(const struct collect *c, const char *device, const char *port, const char *on)
{
    char rate[TEXT_ROOM], layer[TEXT_ROOM];
    double gbits;
    unsigned lanes;
    port_file(c, device, port, "rate", rate, sizeof rate);
    port_file(c, device, port, "link_layer", layer, sizeof layer);
    if (!sysread_port_rate(rate, &gbits, &lanes))
        return;
    struct finding f = finding_value(CHECK_IB_RATE, on, gbits);
    finding_say(&f, "%s", rate);
    c->finding(c->ctx, &f);
    if (!lanes || strcmp(layer, "InfiniBand") != 0)
        return; /* one lane is what Ethernet often has */
    f = finding_value(CHECK_IB_LANES, on, lanes);
    finding_say(&f, "%s", rate);
    c->finding(c->ctx, &f);
}

static void one_port(const struct collect *c, const char *port, void *ctx)
{
    struct ib_walk *w = ctx;
    char on[NAME_ROOM], state[TEXT_ROOM], physical[TEXT_ROOM], text[TEXT_ROOM];
    unsigned number, phys = 0;
    uint64_t count;
    snprintf(on, sizeof on, "%s/%s", w->device, port);
    port_file(c, w->device, port, "phys_state", physical, sizeof physical);
    if (!port_file(c, w->device, port, "state", state, sizeof state) || !sysread_port_state(state, &number)) {
        collect_unchecked(c, CHECK_IB_STATE, on, "its state cannot be read");
        return;
    }
    sysread_port_state(physical, &phys);
    if (number < PORT_ACTIVE && phys == PORT_DISABLED) {
        collect_unchecked(c, CHECK_IB_STATE, on, "it is switched off");
        return;
    }
    struct finding f = finding_value(CHECK_IB_STATE, on, number);
    finding_say(&f, "%s%s%s", state, *physical ? ", link " : "", physical);
    c->finding(c->ctx, &f);
    if (number == PORT_ACTIVE) {
        w->active++;
        active_port(c, w->device, port, on);
    }
    for (size_t i = 0; i < sizeof ib_counters / sizeof ib_counters[0]; i++)
        if (port_file(c, w->device, port, ib_counters[i].file, text, sizeof text) && sysread_count(text, &count))
            collect_value(c, ib_counters[i].check, on, (double)count);
}

static void collect_ports_one_device(const struct collect *c, const char *device, void *ctx)
{
    struct ib_walk *w = ctx;
    char path[NAME_ROOM + 64], text[TEXT_ROOM], firmware[32];
    w->device = device;
    snprintf(path, sizeof path, IB_ROOT "/%.100s/ports", device);
    collect_each(c, path, one_port, w);
    size_t used = strlen(w->firmware);
    if (file_readf(text, sizeof text, c->root, IB_ROOT "/%s/fw_ver", device) > 0 &&
        scan_line(text, firmware, sizeof firmware) && !strstr(w->firmware, firmware))
        snprintf(w->firmware + used, sizeof w->firmware - used, "%s%s", used ? ", " : "", firmware);
}

void collect_infiniband(const struct collect *c)
{
    struct ib_walk w = {.active = 0};
    char text[32];
    int devices = collect_each(c, IB_ROOT, collect_ports_one_device, &w);
    struct finding f = finding_value(CHECK_IB_PORTS, "", w.active);
    if (devices <= 0) {
        f.state = FINDING_UNCHECKED; /* check_judge() knows whether some are wanted */
        finding_say(&f, "this host has no InfiniBand or RoCE device");
    }
    c->finding(c->ctx, &f);
    snprintf(text, sizeof text, "%u", w.active);
    c->fact(c->ctx, "ib_ports", text);
    c->fact(c->ctx, "ib_firmware", w.firmware);
}

/* --- interfaces --------------------------------------------------------------------------------------------------- */

#define SPEEDS_MAX 64

struct net_walk {
    bool virtual_too; /* a container, which has nothing else */
    unsigned cards, n;
    uint64_t speed[SPEEDS_MAX];
};

static bool net_file(const struct collect *c, const char *name, const char *file, char *to, size_t room)
{
    char text[TEXT_ROOM];
    to[0] = 0;
    return file_readf(text, sizeof text, c->root, NET_ROOT "/%s/%s", name, file) > 0 && scan_line(text, to, room);
}

static bool is_card(const struct collect *c, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, NET_ROOT "/%s/device", name);
    if (collect_has(c, path))
        return true;
    snprintf(path, sizeof path, NET_ROOT "/%s/bonding", name);
    return collect_has(c, path);
}

/* One end of a veth pair, or of a VLAN: it has another interface below it. */
static bool has_peer(const struct collect *c, const char *name)
{
    char own[32], link[32];
    return net_file(c, name, "ifindex", own, sizeof own) && net_file(c, name, "iflink", link, sizeof link) &&
           strcmp(own, link) != 0;
}

static void count_cards(const struct collect *c, const char *name, void *ctx)
{
    struct net_walk *w = ctx;
    w->cards += is_card(c, name);
}

static void one_interface(const struct collect *c, const char *name, void *ctx)
{
    struct net_walk *w = ctx;
    char text[TEXT_ROOM];
    const char *at = text + 2;
    uint64_t flags = 0, number;
    if (!is_card(c, name) && !(w->virtual_too && has_peer(c, name)))
        return;
    if (net_file(c, name, "carrier_changes", text, sizeof text) && sysread_count(text, &number))
        collect_value(c, CHECK_ETH_FLAPS, name, (double)number);
    if (!net_file(c, name, "flags", text, sizeof text) || strncmp(text, "0x", 2) != 0 || !scan_hex(&at, &flags) ||
        !(flags & 1))
        return; /* switched off: nobody wants to use it */
    net_file(c, name, "operstate", text, sizeof text);
    bool up = sysread_oper_up(text);
    struct finding f = finding_value(CHECK_ETH_STATE, name, up);
    finding_say(&f, "%s", text);
    c->finding(c->ctx, &f);
    if (!up || !net_file(c, name, "speed", text, sizeof text) || !sysread_count(text, &number) || number > 100000000)
        return; /* "-1": not known */
    collect_value(c, CHECK_ETH_SPEED, name, (double)number);
    if (w->n < SPEEDS_MAX && is_card(c, name))
        w->speed[w->n++] = number;
}

static int fastest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* "2 x 100000 Mb/s, 1 x 25000 Mb/s" */
static void tell_cards(const struct collect *c, struct net_walk *w)
{
    char text[FACT_MAX] = "";
    size_t used = 0;
    qsort(w->speed, w->n, sizeof w->speed[0], fastest_first);
    for (unsigned i = 0, same; i < w->n && used < sizeof text; i += same) {
        for (same = 1; i + same < w->n && w->speed[i + same] == w->speed[i];)
            same++;
        int n = snprintf(text + used, sizeof text - used, "%s%u x %llu Mb/s", used ? ", " : "", same,
                         (unsigned long long)w->speed[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    c->fact(c->ctx, "nic", text);
}

void collect_ethernet(const struct collect *c)
{
    struct net_walk w = {.cards = 0};
    int n = collect_each(c, NET_ROOT, count_cards, &w);
    if (n < 0) {
        collect_unchecked(c, CHECK_ETH_STATE, "", "/sys/class/net cannot be read");
        return;
    }
    w.virtual_too = !w.cards;
    collect_each(c, NET_ROOT, one_interface, &w);
    tell_cards(c, &w);
}
