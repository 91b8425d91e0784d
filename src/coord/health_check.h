/* A health check of several nodes, pure: each node checks itself, then pairs of nodes try their network, round after
 * round as the plan wants (probe/plan.h), then each node reads its counters once more; then there is a verdict.
 *
 *     local -> pairs -> … -> after -> over
 *
 * What a node should do now is health_check_order(), computed when it is sent: a node that comes back gets it again.  A
 * node that is not heard (AWAY) may stand still, and so may we: results that are missing for that reason are held
 * against nobody.  Who is who, and what follows from the verdict, is the coordinator's business (health.c). */
#ifndef COORD_HEALTH_CHECK_H
#define COORD_HEALTH_CHECK_H
#include <stdbool.h>

#include "probe/verdict.h"
#include "coord/health.h"
#include "control/msg.h"
#include "util/buf.h"
#include "util/mem.h"
#include "util/time.h"

#define HEALTH_CHECK_MARGIN      EL_SEC(2)  /* beyond the time that nodes have, and beyond the limit of silence */
#define HEALTH_CHECK_LOCAL_LIMIT EL_SEC(90) /* for checks of a node by itself */
#define HEALTH_CHECK_AWAY_LIMIT  EL_SEC(20) /* a node that is not heard is waited for: it may stand still */
#define HEALTH_CHECK_KEPT_MAX    16384      /* bytes of lines of a node that are kept for the report */
#define HEALTH_CHECK_KEPT_ALL    131072     /* … where all are */
#define HEALTH_CHECK_NONE        UINT32_MAX

enum health_check_kind {
    HEALTH_CHECK_LOCAL,
    HEALTH_CHECK_PAIR,
    HEALTH_CHECK_REST, /* others are paired */
    HEALTH_CHECK_AFTER,
};

/* Of a rail of a pair, or of a node's own checks. */
enum health_check_outcome {
    HEALTH_CHECK_OK,
    HEALTH_CHECK_FAILED,
    HEALTH_CHECK_BROKEN,    /* it was stopped, or stood still */
    HEALTH_CHECK_UNDECIDED, /* checks: some could not be judged, and none has failed */
    HEALTH_CHECK_OUTCOMES,
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

struct health_check_conf {
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

struct health_check;

/* NULL: no memory. */
struct health_check *health_check_new(const struct health_check_conf *conf, struct el_mem *mem, el_usec now);
void health_check_free(struct health_check *p);

/* Who a node is, before anything else: its host's name, and its address as the others know it ("": none). */
void health_check_name(struct health_check *p, unsigned node, const char *host, const char *addr);

/* … and what the rack or switch is called that it stands behind; "": not known. */
void health_check_domain(struct health_check *p, unsigned node, const char *label);

/* … and which host it comes from, as we see it; 0: one of its own. */
void health_check_place(struct health_check *p, unsigned node, uint64_t host);

/* What is to be told after one of the calls below. */
enum health_check_news {
    HEALTH_CHECK_SAME,
    HEALTH_CHECK_ORDER, /* the order of health_check_told() has changed */
    HEALTH_CHECK_STAGE, /* a new stage: everybody's order has */
    HEALTH_CHECK_OVER,
};

enum health_check_news health_check_result(struct health_check *p, unsigned node, const struct msg_probe_result *m,
                                           el_usec now);
enum health_check_news health_check_id(struct health_check *p, unsigned node, const struct msg_probe_id *m);
unsigned health_check_told(const struct health_check *p);
/* It cannot be heard; it is heard again; it has said goodbye, or its process has ended without a word. */
enum health_check_news health_check_away(struct health_check *p, unsigned node, el_usec now);
void health_check_back(struct health_check *p, unsigned node);
enum health_check_news health_check_left(struct health_check *p, unsigned node, bool goodbye, el_usec now);
/* We stood still for so long. */
void health_check_gap(struct health_check *p, el_usec gap);
enum health_check_news health_check_timeout(struct health_check *p, el_usec now);
el_usec health_check_deadline(const struct health_check *p);

/* Strings in *out live until the next call. */
void health_check_order(struct health_check *p, unsigned node, el_usec now, struct msg *out);
/* "health check: round 2: c00 with c02, c01 with c03; 2 are good so far; 3 of 4 nodes have answered, at most 12 s more,
 * at most 8 rounds": fits into MSG_TEXT_MAX. */
void health_check_text(const struct health_check *p, el_usec now, char *to, size_t room);

bool health_check_is_over(const struct health_check *p);
/* Once it is over.  *text: one line without the node's name, "" if it is good; it lives until the next call. */
enum health_verdict health_check_verdict(struct health_check *p, unsigned node, const char **text);
bool health_check_warned(const struct health_check *p, unsigned node); /* its own checks had warnings */
const char *health_check_host(const struct health_check *p, unsigned node);
/* One line about all nodes: "3 nodes are good, 1 is bad". */
void health_check_summary(struct health_check *p, char *to, size_t room);
struct plan *health_check_plan(struct health_check *p);  /* NULL before the first pairs */
bool health_check_is_nccl(const struct health_check *p); /* what the pairs exchanged data with; else TCP */
const struct health_check_conf *health_check_conf(const struct health_check *p);
/* The lines of probe/wire.h that a node's own checks have told and that are worth telling. */
const char *health_check_kept(const struct health_check *p, unsigned node);

/* What it was judged before, as it says; NULL: nothing. */
const char *health_check_note(const struct health_check *p, unsigned node);

const char *health_verdict_name(enum health_verdict v);
void health_check_check(const struct health_check *p);

#endif
