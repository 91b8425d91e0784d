/* Where the workers of an attempt meet: MASTER_ADDR and MASTER_PORT.  Either elrun's own store, a new and empty one for
 * each attempt, or a port that is kept free for the store of worker rank 0 (--worker-store). */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/node.h"
#include "store/server.h"
#include "util/sockaddr.h"

#define WORKER_STORE_OWN_ADDRESSES_MAX 64

const char *worker_store_address(const struct node *n)
{
    return n->conf->master_addr ? n->conf->master_addr : "127.0.0.1";
}

/* --- elrun's store --- */

/* The addresses of this host: who comes from elsewhere is no worker of a job of one node. */
static size_t own_addresses(struct el_cidr *list)
{
    uint8_t ip[WORKER_STORE_OWN_ADDRESSES_MAX][16];
    size_t n = el_addr_own(ip, WORKER_STORE_OWN_ADDRESSES_MAX);
    for (size_t i = 0; i < n; i++) {
        memcpy(list[i].ip, ip[i], sizeof list[i].ip);
        list[i].bits = 128;
    }
    return n;
}

static int open_store(struct node *n, struct el_err *e)
{
    struct el_cidr own[WORKER_STORE_OWN_ADDRESSES_MAX];
    uint8_t ip[16];
    const char *addr = worker_store_address(n);
    bool numeric = el_addr_parse(addr, ip);
    bool loopback = (numeric && el_addr_is_loopback(ip)) || strcmp(addr, "localhost") == 0;
    struct store_server_conf conf = {
        .bind = loopback ? NULL : "::", /* an address, or a name that the workers will look up: any of ours */
        .port = n->conf->master_port > 0 ? n->conf->master_port : 0,
        .allow = own,
        .allow_n = loopback ? 0 : own_addresses(own),
        .wait_report = NODE_WAIT_REPORT,
        .world_size = n->nproc,
        .name = "worker store",
    };
    n->store = store_server_new(n->loop, &conf, e);
    if (!n->store)
        return -1;
    n->port = store_server_port(n->store);
    return 0;
}

void worker_store_worker(struct node *n, unsigned slot)
{
    if (n->membership)
        membership_worker(n->membership, n->worker[slot].pid, workers_rank(n, slot));
    else if (n->store)
        store_server_worker(n->store, (uint32_t)n->worker[slot].pid, slot);
}

void worker_store_note_missing(struct node *n)
{
    if (n->missing.len)
        return;
    if (n->membership)
        membership_missing(n->membership, &n->missing);
    else if (n->store)
        store_server_missing(n->store, &n->missing);
}

/* --- a port for worker rank 0 --- */

/* Bound with SO_REUSEADDR and never listened on: torch binds and listens on the same port beside us, and the kernel
 * gives it to nobody else meanwhile (torchrun's free port is found, closed and announced, which is a race). */
static int reserve_port(int want, int *port, struct el_err *e)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)want)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)want)};
    int family = AF_INET6, one = 1, off = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(family = AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    socklen_t size = family == AF_INET6 ? sizeof v6 : sizeof v4;
    struct sockaddr *a = family == AF_INET6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    if (bind(fd, a, size) < 0 || getsockname(fd, a, &size) < 0) {
        int sys = errno;
        close(fd);
        return el_fail_sys(e, EL_EXIT_CONFIG, sys, "port %d for worker rank 0", want);
    }
    *port = ntohs(family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    return fd;
}

/* --- both --- */

int worker_store_open(struct node *n, struct el_err *e)
{
    worker_store_close(n);
    if (n->conf->worker_store == CONF_STORE_AGENT) {
        if (open_store(n, e) == 0)
            return 0;
    } else {
        n->port_fd = reserve_port(n->conf->master_port > 0 ? n->conf->master_port : 0, &n->port, e);
        if (n->port_fd >= 0)
            return 0;
    }
    size_t len = strlen(e->text);
    if (e->sys == EADDRINUSE && n->conf->master_port > 0)
        snprintf(e->text + len, sizeof e->text - len, "; give another --master-port, or none for a free one");
    return -1;
}

void worker_store_close(struct node *n)
{
    store_server_free(n->store);
    n->store = NULL;
    if (n->port_fd >= 0)
        close(n->port_fd);
    n->port_fd = -1;
}
