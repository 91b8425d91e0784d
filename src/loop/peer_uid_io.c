#include "loop/peer_uid.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union peer_uid_end {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A v4 address in v6 clothes is how a listener of "::" sees a socket of v4. */
static void peer_uid_put_end(const union peer_uid_end *e, __be32 ip[4], __be16 *port, unsigned char *family)
{
    if (e->sa.sa_family == AF_INET) {
        ip[0] = e->v4.sin_addr.s_addr;
        *port = e->v4.sin_port;
        *family = AF_INET;
        return;
    }
    bool mapped = IN6_IS_ADDR_V4MAPPED(&e->v6.sin6_addr);
    memcpy(ip, (const char *)&e->v6.sin6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    *port = e->v6.sin6_port;
    *family = mapped ? AF_INET : AF_INET6;
}

struct peer_uid_question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

/* The socket whose own end is theirs. */
static bool peer_uid_ask(const union peer_uid_end *theirs, const union peer_uid_end *ours, uint32_t *uid)
{
    struct peer_uid_question q = {
        .head = {.nlmsg_len = sizeof q, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST}};
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } a;
    unsigned char other;
    q.body.sdiag_protocol = IPPROTO_TCP;
    q.body.idiag_states = UINT32_MAX;
    q.body.id.idiag_cookie[0] = q.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    peer_uid_put_end(theirs, q.body.id.idiag_src, &q.body.id.idiag_sport, &q.body.sdiag_family);
    peer_uid_put_end(ours, q.body.id.idiag_dst, &q.body.id.idiag_dport, &other);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    ssize_t n = -1;
    if (fd >= 0 && send(fd, &q, sizeof q, 0) == (ssize_t)sizeof q)
        n = recv(fd, &a, sizeof a, MSG_DONTWAIT); /* the kernel answers within send() */
    if (fd >= 0)
        close(fd);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)) || a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return false;
    struct inet_diag_msg m;
    memcpy(&m, NLMSG_DATA(&a.head), sizeof m);
    *uid = m.idiag_uid;
    return m.idiag_inode != 0; /* else nobody has it open any more, and the number means nothing */
}

bool peer_is_foreign(int fd)
{
    union peer_uid_end theirs, ours;
    socklen_t n = sizeof theirs, k = sizeof ours;
    uint32_t uid;
    memset(&theirs, 0, sizeof theirs);
    memset(&ours, 0, sizeof ours);
    if (getpeername(fd, &theirs.sa, &n) || getsockname(fd, &ours.sa, &k))
        return false;
    if (theirs.sa.sa_family != AF_INET && theirs.sa.sa_family != AF_INET6)
        return false;
    return peer_uid_ask(&theirs, &ours, &uid) && uid != geteuid() && uid != 0;
}
