/* What health_check.c (stages, time, verdict) and health_check_report.c (what nodes say) share. */
#ifndef COORD_HEALTH_CHECK_PRIVATE_H
#define COORD_HEALTH_CHECK_PRIVATE_H
#include "probe/baseline.h"
#include "probe/clocks.h"
#include "probe/history.h"
#include "probe/report.h"
#include "coord/health_check.h"

/* What a node tells of itself is kept up to here, however many pages it sends: each value twice, for it may have to
 * begin again. */
enum { HEALTH_CHECK_MEASURED_MAX = 2 * PLAN_RAILS_MAX * METRIC_COUNT };

enum health_check_presence { HEALTH_CHECK_HERE, HEALTH_CHECK_IS_AWAY, HEALTH_CHECK_GONE };

struct health_check_node {
    uint64_t place;
    char host[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1], domain[MSG_NAME_MAX];
    enum health_check_presence presence;
    el_usec away_since;
    bool done;         /* with this stage */
    unsigned pages;    /* of its results that have come */
    unsigned measured; /* values that it has told of itself */
    unsigned gpus;
    unsigned pair; /* of this round; HEALTH_CHECK_NONE: it rests */
    bool guest;
    bool goodbye;      /* presence GONE: it said so */
    uint32_t parted;   /* rails on which its partner's end is over, and not well: nobody is there to meet */
    bool strayed;      /* in this stage it was away, or we were, by whom ids come, and it was not done: its partner may
                          have waited in vain, and nobody is to blame */
    struct el_buf ids; /* host end: of the rails, as orders have them */
    uint32_t ids_had;  /* bits */
    struct el_buf kept;
    size_t kept_before; /* bytes, of earlier stages: a stage that is told again begins there */
    enum health_check_outcome local, after;
    bool warned, warned_before;
    int64_t wall_us; /* probe/clocks.h */
    char note[HISTORY_NOTE_MAX];
    char reason[MSG_TEXT_MAX + 1];
};

struct health_check_measured { /* by a node alone */
    unsigned node, rail;
    enum metric metric;
    uint32_t milli;
};

struct health_check {
    struct health_check_conf conf;
    struct el_mem *mem;
    struct plan *plan;
    struct health_check_node *node;
    struct el_buf measured;           /* struct health_check_measured */
    uint32_t reference[METRIC_COUNT]; /* probe/baseline.h */
    enum health_check_kind kind;      /* of the stage; REST is none of one */
    unsigned stage, round;
    bool nccl; /* what the pairs exchange data with */
    const struct plan_pair *pair;
    unsigned pairs;
    struct pair_result *said; /* two for each pair: of a, of b */
    unsigned waiting;         /* nodes that are here and have not answered */
    unsigned asked;           /* … and those that were asked */
    el_usec until, all_until; /* without the margin */
    el_usec stood;            /* so long we stood still in this stage */
    unsigned told;
    bool over, late;                       /* late: the time for all was used up */
    char pairs_text[REPORT_ROUND_MAX + 1]; /* which pairs this round has: told with every order */
    char text[MSG_TEXT_MAX + 1];
};

/* health_check_report.c */
void health_check_take_stage(struct health_check *p);     /* a stage begins: nothing has been said */
void health_check_compare_clocks(struct health_check *p); /* at the end of the nodes' own checks */
void health_check_number_domains(struct health_check *p); /* for the plan */
struct pair_result *health_check_said(struct health_check *p, unsigned node);

/* Until the stage ends (health_check_text.c). */
uint64_t health_check_left_ms(const struct health_check *p, el_usec now);

#endif
