/* A health check of several nodes, pure: each node checks itself, then pairs of nodes try their network, round after
 * round as the plan wants (probe/plan.h), then each node reads its counters once more; then there is a verdict.
 *
 *     local -> pairs -> … -> after -> over
 *
 * What a node should do now is probing_order(), computed when it is sent: a node that comes back gets it again.  A node
 * that is not heard (AWAY) may stand still, and so may we: results that are missing for that reason are held against
 * nobody.  Who is who, and what follows from the verdict, is the coordinator's business (health.c). */
#ifndef COORD_PROBING_H
#define COORD_PROBING_H
#include <stdbool.h>

#include "probe/verdict.h"
#include "coord/health.h"
#include "control/msg.h"
#include "util/buf.h"
#include "util/mem.h"
#include "util/time.h"

#define PROBING_MARGIN      EL_SEC(2)  /* beyond the time that nodes have, and beyond the limit of silence */
#define PROBING_LOCAL_LIMIT EL_SEC(90) /* for checks of a node by itself */
#define PROBING_AWAY_LIMIT  EL_SEC(20) /* a node that is not heard is waited for: it may stand still */
#define PROBING_KEPT_MAX    16384      /* bytes of lines of a node that are kept for the report */
#define PROBING_KEPT_ALL    131072     /* … where all are */
#define PROBING_NONE        UINT32_MAX

enum probing_kind {
    PROBING_LOCAL,
    PROBING_PAIR,
    PROBING_REST, /* others are paired */
    PROBING_AFTER,
};

/* Of a rail of a pair, or of a node's own checks. */
enum probing_outcome {
    PROBING_OK,
    PROBING_FAILED,
    PROBING_BROKEN,    /* it was stopped, or stood still */
    PROBING_UNDECIDED, /* checks: some could not be judged, and none has failed */
    PROBING_OUTCOMES,
};

enum health_verdict {
    HEALTH_GOOD,
    HEALTH_SLOW,
    HEALTH_BAD,
    HEALTH_UNDECIDED,
    HEALTH_LEFT,     /* its process ended before it was judged */
    HEALTH_ABSENT,   /* it said goodbye before it was */
    HEALTH_LOST,     /* it was not heard any more before it was */
    HEALTH_VERDICTS, /* msg.h has this number, too */
};

struct probing_conf {
    uint64_t number, coord, probe; /* the round that is to be formed, and the check's own number */
    unsigned nodes;
    enum health_backend backend;
    bool quick;
    bool all;       /* lines of checks that are in order are kept, too */
    unsigned rails; /* of a pair over TCP; 0: 1 */
    unsigned rounds_max;
    unsigned straggler_k, straggler_min; /* 0: as the plan has it */
    el_usec timeout;                     /* of all of it */
    el_usec silence;                     /* so long a node may be silent before it counts as away */
};

struct probing;

/* NULL: no memory. */
struct probing *probing_new(const struct probing_conf *conf, struct el_mem *mem, el_usec now);
void probing_free(struct probing *p);

/* Who a node is, before anything else: its host's name, and its address as the others know it ("": none). */
void probing_name(struct probing *p, unsigned node, const char *host, const char *addr);

/* … and what the rack or switch is called that it stands behind; "": not known. */
void probing_domain(struct probing *p, unsigned node, const char *label);

/* … and which host it comes from, as we see it; 0: one of its own. */
void probing_place(struct probing *p, unsigned node, uint64_t host);

/* What is to be told after one of the calls below. */
enum probing_news {
    PROBING_SAME,
    PROBING_ORDER, /* the order of probing_told() has changed */
    PROBING_STAGE, /* a new stage: everybody's order has */
    PROBING_OVER,
};

enum probing_news probing_result(struct probing *p, unsigned node, const struct msg_probe_result *m, el_usec now);
enum probing_news probing_id(struct probing *p, unsigned node, const struct msg_probe_id *m);
unsigned probing_told(const struct probing *p);
/* It cannot be heard; it is heard again; it has said goodbye, or its process has ended without a word. */
enum probing_news probing_away(struct probing *p, unsigned node, el_usec now);
void probing_back(struct probing *p, unsigned node);
enum probing_news probing_left(struct probing *p, unsigned node, bool goodbye, el_usec now);
/* We stood still for so long. */
void probing_gap(struct probing *p, el_usec gap);
enum probing_news probing_timeout(struct probing *p, el_usec now);
el_usec probing_deadline(const struct probing *p);

/* Strings in *out live until the next call. */
void probing_order(struct probing *p, unsigned node, el_usec now, struct msg *out);
/* "health check: round 2: c00 with c02, c01 with c03; 2 are good so far; 3 of 4 nodes have answered, at most 12 s more,
 * at most 8 rounds": fits into MSG_TEXT_MAX. */
void probing_text(const struct probing *p, el_usec now, char *to, size_t room);
/* What this node does: "checks itself", "is paired with node2", "waits for the others". */
void probing_doing(const struct probing *p, unsigned node, char *to, size_t room);

bool probing_is_over(const struct probing *p);
/* Once it is over.  *text: one line without the node's name, "" if it is good; it lives until the next call. */
enum health_verdict probing_verdict(struct probing *p, unsigned node, const char **text);
bool probing_warned(const struct probing *p, unsigned node); /* its own checks had warnings */
const char *probing_host(const struct probing *p, unsigned node);
/* One line about all nodes: "3 nodes are good, 1 is bad". */
void probing_summary(struct probing *p, char *to, size_t room);
struct plan *probing_plan(struct probing *p);  /* NULL before the first pairs */
bool probing_is_nccl(const struct probing *p); /* what the pairs exchanged data with; else TCP */
const struct probing_conf *probing_conf(const struct probing *p);
/* The lines of probe/wire.h that a node's own checks have told and that are worth telling. */
const char *probing_kept(const struct probing *p, unsigned node);

/* What it was judged before, as it says; NULL: nothing. */
const char *probing_note(const struct probing *p, unsigned node);

const char *health_verdict_name(enum health_verdict v);
void probing_check(const struct probing *p);

#endif
