/* Where this run meets the other nodes, and which part it plays there: from the options, the environment and what the
 * shell knows of this host.  Pure: names are looked up by the shell.
 *
 *     endpoint_choose()          once; ENDPOINT_ALONE is final
 *     endpoint_wants_lookup()    true: resolve .host, and hand over what was found (nothing, if it has no answer yet)
 *     endpoint_place()           HOST, JOIN or ALONE; again after each later look-up, because a name may get an answer
 * late
 *
 * ENDPOINT_HOST says that this agent is on the endpoint's host: it tries to listen there and hosts the coordinator; if
 * the port is taken it joins whoever listens. */
#ifndef CONF_ENDPOINT_H
#define CONF_ENDPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "control/msg.h"

#define ENDPOINT_PORT        29400 /* torchrun's for c10d */
#define ENDPOINT_STATIC_PORT 29500

enum endpoint_kind {
    ENDPOINT_ALONE, /* one node that needs nobody: no coordinator, no sockets for it */
    ENDPOINT_HOST,  /* listen on .port (here_only: on loopback), be the coordinator, and join it */
    ENDPOINT_JOIN,  /* connect to .host and .port */
};

/* What the shell knows.  Addresses as el_addr_parse() writes them. */
struct endpoint_facts {
    const char *hostname;     /* gethostname() */
    const uint8_t (*own)[16]; /* of this host's interfaces */
    size_t own_n;
    const uint8_t (*found)[16]; /* of .host, by the last look-up; 0: not asked, or no answer */
    size_t found_n;
};

struct endpoint {
    enum endpoint_kind kind;
    bool is_static;           /* node rank 0 is on .host */
    bool here_only;           /* nobody named an endpoint: agents of this host only */
    const char *from;         /* who named it: "--rdzv-endpoint", "MASTER_ADDR", …; "" with here_only */
    char host[CONF_HOST_MAX]; /* name or address, without brackets */
    unsigned port;            /* 1 … 65535 */
    int node_rank;            /* -1: none */
    bool node_rank_given;     /* false: 0 of the static back end is only its default */
    char run_id[MSG_RUN_ID_MAX + 1];
    char note[160]; /* one line that the user must see; "" if there is none */
};

/* uid: of this process.  -1 and *e: the line and status to end with (2, 78). */
int endpoint_choose(const struct run_conf *conf, char *const *env, unsigned uid, struct endpoint *out,
                    struct el_err *e);

/* Neither a number, nor "localhost", nor this host's own name. */
bool endpoint_wants_lookup(const struct endpoint *ep, const struct endpoint_facts *facts);

/* The name is this host's own: to be looked up all the same, since another host may have it too. */
bool endpoint_wants_proof(const struct endpoint *ep, const struct endpoint_facts *facts);

/* Decides kind, unless it is ALONE; note, where two hosts have the endpoint's name.  -1 and *e: static node 0 is not on
 * the endpoint's host (78). */
int endpoint_place(const struct run_conf *conf, const struct endpoint_facts *facts, struct endpoint *ep,
                   struct el_err *e);

/* Script and words, divided by blanks, cut where room ends: what a refusal names.  Returns out. */
const char *endpoint_command(const struct run_conf *conf, char *out, size_t room_bytes);

#endif
