/* What health_io.c (orders of a coordinator) and health_alone_io.c (a job of one node) share.  Nobody else includes
 * this. */
#ifndef AGENT_HEALTH_PRIVATE_H
#define AGENT_HEALTH_PRIVATE_H
#include "agent/health.h"
#include "agent/health_files.h"
#include "sys/host.h"
#include "probe/node.h"
#include "coord/health_check.h"

struct rail {
    bool runs, done;
    char id[WIRE_ID_MAX + 1]; /* host end; "": not known yet */
    enum rail_outcome outcome;
    char reason[PLAN_REASON_MAX];
    struct el_buf lines; /* what it has measured */
};

struct health {
    struct node *n;
    struct check_conf checks;
    unsigned gpus;
    uint64_t quota_millis;
    char site[HOST_PATH_MAX]; /* where the job's Python has its packages; "": not known */
    struct probe_node *look;  /* this node by itself: from the first look to the last one of a check */
    bool looks, last_look;    /* a look is under way; the last one of a check */
    struct probe_node *pair;  /* its ends of the pairs of a stage */
    struct msg_probe order;   /* of the stage; its strings are not to be used, but: */
    char peer[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1];
    bool on;
    struct rail rail[PLAN_RAILS_MAX];
    struct pair_result result; /* of these */
    struct el_buf found;       /* of the look that is over: lines */
    enum health_check_outcome outcome;
    char reason[MSG_TEXT_MAX + 1];
    struct el_buf page;
    bool alone, last_alone;
    struct health_files *files;            /* NULL: none */
    uint64_t printed_coord, printed_probe; /* the verdict on stdout; 0: none yet */
};

/* The first look, or the last one of the same check: outcome and reason are there at its end.  False: it could not
 * begin, and they are there now. */
bool health_look(struct health *h, bool last);
/* A look of a job of one node is over. */
void health_alone_looked(struct health *h);

#endif
