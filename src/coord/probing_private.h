/* What probing.c (stages, time, verdict) and probing_take.c (what nodes say) share. */
#ifndef COORD_PROBING_PRIVATE_H
#define COORD_PROBING_PRIVATE_H
#include "probe/baseline.h"
#include "probe/clocks.h"
#include "probe/history.h"
#include "probe/report.h"
#include "coord/probing.h"

/* What a node tells of itself is kept up to here, however many pages it sends: each value twice, for it may have to
 * begin again. */
enum { PROBING_MEASURED_MAX = 2 * PLAN_RAILS_MAX * METRIC_COUNT };

enum probing_presence { PROBING_HERE, PROBING_IS_AWAY, PROBING_GONE };

struct probing_node {
    uint64_t place;
    char host[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1], domain[MSG_NAME_MAX];
    enum probing_presence presence;
    el_usec away_since;
    bool done;         /* with this stage */
    unsigned pages;    /* of its results that have come */
    unsigned measured; /* values that it has told of itself */
    unsigned gpus;
    unsigned pair; /* of this round; PROBING_NONE: it rests */
    bool guest;
    bool goodbye;      /* presence GONE: it said so */
    uint32_t parted;   /* rails on which its partner's end is over, and not well: nobody is there to meet */
    bool strayed;      /* in this stage it was away, or we were, by whom ids come, and it was not done: its partner may
                          have waited in vain, and nobody is to blame */
    struct el_buf ids; /* host end: of the rails, as orders have them */
    uint32_t ids_had;  /* bits */
    struct el_buf kept;
    size_t kept_before; /* bytes, of earlier stages: a stage that is told again begins there */
    enum probing_outcome local, after;
    bool warned, warned_before;
    int64_t wall_us; /* probe/clocks.h */
    char note[HISTORY_NOTE_MAX];
    char reason[MSG_TEXT_MAX + 1];
};

struct probing_measured { /* by a node alone */
    unsigned node, rail;
    enum metric metric;
    uint32_t milli;
};

struct probing {
    struct probing_conf conf;
    struct el_mem *mem;
    struct plan *plan;
    struct probing_node *node;
    struct el_buf measured;           /* struct probing_measured */
    uint32_t reference[METRIC_COUNT]; /* probe/baseline.h */
    enum probing_kind kind;           /* of the stage; REST is none of one */
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

/* probing_take.c */
void probing_take_stage(struct probing *p);     /* a stage begins: nothing has been said */
void probing_compare_clocks(struct probing *p); /* at the end of the nodes' own checks */
void probing_number_domains(struct probing *p); /* for the plan */
struct pair_result *probing_said(struct probing *p, unsigned node);

/* Until the stage ends (probing_text.c). */
uint64_t probing_left_ms(const struct probing *p, el_usec now);

#endif
