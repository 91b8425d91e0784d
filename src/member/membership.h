/* This node among the others: the shell of the pure core member.h.  It owns the link to the coordinator, the lease at
 * the store's host, the round's store if it is here with the leases of the others, and the coordinator if it is hosted
 * here. */
#ifndef MEMBER_MEMBERSHIP_H
#define MEMBER_MEMBERSHIP_H
#include <stdbool.h>

#include "conf/conf.h"
#include "member/member.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "util/buf.h"
#include "util/err.h"

struct membership;

/* What the node does for it; each is called in the loop's thread, never inside a call of membership_…(). */
struct membership_ops {
    void (*start)(void *ctx);                           /* an attempt with membership_world() */
    void (*stop)(void *ctx, int signal, el_usec grace); /* grace 0: SIGKILL at once */
    void (*fence)(void *ctx, el_usec at); /* member_fence_at() has changed; may be called inside membership_…() */
    bool (*is_host)(void *ctx, const struct el_addr *found, size_t n); /* do these make this host the endpoint's? */
    /* A planned change: MEMBER_DO_NOTICE, answered by membership_live() and membership_at_boundary(); NULL: it is not
     * planned any more. */
    void (*notice)(void *ctx, const struct member_notice *n, const char *text);
    void (*exit)(void *ctx, unsigned status, const char *text);
    void (*say)(void *ctx, const char *line); /* on the console; may be called inside membership_…() */
    void (*incidents)(void *ctx);             /* membership_incident() for each failure; inside membership_…() */
    void (*report)(void *ctx, const struct msg *msg); /* REPORT or a row of it, PROBE_PAGE: this process prints it */
    /* A stage of a health check, or more ids of its pair; end and forget it; say PROBE_ID or PROBE_RESULT with
     * membership_logs(): these four may be called inside membership_…(). */
    void (*probe)(void *ctx, const struct msg_probe *order);
    void (*probe_stop)(void *ctx);
    void (*probe_tell)(void *ctx, bool ids);
    /* All that follows a step on which the job agrees: offer it to the workers; let them go on; STOCK anew.  May be
     * called inside membership_…(). */
    void (*restore)(void *ctx, const struct restore_stock *decided, const char *text);
    void (*go)(void *ctx);
    void (*restock)(void *ctx);
    /* Saving a step: say CKPT_PART or CKPT_FILE with membership_logs(); CKPT_WRITE, CKPT_FILE and CKPT_PUBLISH as they
     * came; forget the order; what has become of a step.  May be called inside membership_…(). */
    void (*saving_tell)(void *ctx, bool files);
    void (*saving_order)(void *ctx, const struct msg *msg);
    void (*unsave)(void *ctx);
    void (*saved)(void *ctx, const struct member_save *save);
    /* The step that all nodes have: CKPT_COMMON. */
    void (*common)(void *ctx, const struct msg_ckpt_common *c);
    /* Which tensors of a part: CKPT_DIFFER; say CKPT_TENSORS with membership_logs().  May be called inside
     * membership_…(). */
    void (*differ)(void *ctx, const struct msg_ckpt_differ *ask);
    /* Emergency checkpoint: CKPT_CAPTURE as it came, NULL: the coordinator is gone; answered by membership_stand(). May
     * be called inside membership_…(). */
    void (*words)(void *ctx, const struct msg_ckpt_capture *order);
    void (*verdict)(void *ctx, const struct msg_probe_verdict *v);
    /* LOGS and LOGS_NEXT from the coordinator; NULL: the link is gone, and with it all who read. */
    void (*logs)(void *ctx, const struct msg *msg);
    /* From the coordinator that is hosted here, as coordinator_conf's. */
    void (*note)(void *ctx, const char *run_id, const struct rdzv_note *note, int status);
    void (*began)(void *ctx, const char *run_id, const struct rdzv_settings *set);
};

struct membership_conf {
    const struct run_conf *run;
    const char *host; /* of the coordinator */
    int port;
    bool hosts_coordinator; /* the endpoint is on this host */
    bool is_static;         /* the store of each round is at host and port, too */
    bool here_only;         /* … and nobody from elsewhere is expected */
    bool announce_hostname; /* --rdzv-conf use_hostname=1 */
    const char *hostname;
    struct member_conf member; /* all but hosts_coordinator */
};

struct membership *membership_new(struct loop *l, struct pool *p, const struct membership_conf *conf,
                                  const struct membership_ops *ops, void *ctx, struct el_err *e);
void membership_free(struct membership *m);
void membership_begin(struct membership *m);

/* What happens on this node. */
void membership_started(struct membership *m);
/* A worker listens to notices; which step they are in; all that listen stand at the boundary. */
void membership_aware(struct membership *m);
void membership_live(struct membership *m, int64_t step, bool deaf, bool past);
void membership_at_boundary(struct membership *m);
void membership_probe_id(struct membership *m);
void membership_probed(struct membership *m);
/* All workers ask what to go back to; all have read it. */
void membership_stock(struct membership *m, const struct restore_stock *stock);
void membership_read(struct membership *m);
void membership_reads(struct membership *m); /* not yet, but bytes come from disk */
/* What the workers have left in memory: the caller's, until the next one; an order to write or publish is carried out,
 * or *why not; so many bytes are written. */
void membership_held(struct membership *m, const struct member_held *held);
el_usec membership_away(const struct membership *m); /* so long there has been no coordinator; 0: there is one */
void membership_went_back(struct membership *m, int64_t step);                 /* the script has, by itself */
void membership_taken(struct membership *m, const struct member_taken *taken); /* the caller's, until the next one */
/* The same of what ranks of other nodes must have alike. */
void membership_digests(struct membership *m, const struct member_digests *digests);
void membership_stand(struct membership *m, const struct member_stand *stand); /* the caller's, until the next one */
void membership_saved(struct membership *m, bool good, bool existed, const char *why);
void membership_moved(struct membership *m, uint64_t bytes);
void membership_failed(struct membership *m, const struct member_incident *incident);
void membership_closed(struct membership *m, const struct member_event *closed); /* MEMBER_EV_CLOSED */
/* From within ops.incidents(): sends it, with round and time filled in. */
void membership_incident(struct membership *m, el_usec at, struct msg_incident *x);
/* A moment of this node's clock on the coordinator's, and so far off it may be (member.h). */
void membership_on_clock(const struct membership *m, el_usec at, uint64_t *time_us, uint64_t *error_us);
/* The attempt was stopped by one elsewhere, which only says that the time of a collective ran out. */
bool membership_is_late(const struct membership *m);
bool membership_was_told(const struct membership *m); /* by the coordinator how the job has ended */
void membership_signal(struct membership *m, int signal);
bool membership_stays(
    const struct membership *m); /* only for its coordinator; the second signal from then on ends it */

/* The slice to run; valid from start() to the next one. */
const struct msg_world *membership_world(const struct membership *m);
bool membership_hosts(const struct membership *m); /* the job's coordinator is in this process */

/* If the round's store is here: who has not come, as store_server_missing(); and that a worker was started. */
void membership_missing(struct membership *m, struct el_buf *out);
void membership_worker(struct membership *m, int pid, unsigned rank);

/* LOGS_TEXT, PROBE_ID, PROBE_RESULT to the coordinator; and how many commands are being sent output by the one that is
 * hosted here. */
void membership_logs(struct membership *m, const struct msg *msg);
unsigned membership_readers(const struct membership *m);

const char *membership_state(const struct membership *m);

#endif
