/* The coordinator core of one job: members, rounds, ranks, budget, end (doc/design.md, "Coordinator").
 *
 *     rebuilding -> waiting -> (probing ->) opening -> recording -> running -> stopping -> (waiting | recording the end
 * -> ending -> over)
 *
 * Orders are state: what a member should do now is rdzv_order(), computed when it is sent, so that nothing is lost with
 * a connection and nothing is queued for a slow one.  A message to all is one action; the shell walks the members and
 * asks for each one's own order.
 *
 * Whoever speaks is named by a connection number that the shell never uses twice (0 is none).  After RDZV_DO_BIND the
 * shell passes the member's number along with it. */
#ifndef COORD_RDZV_H
#define COORD_RDZV_H
#include <stdbool.h>
#include <stdint.h>

#include "probe/look.h"
#include "control/msg.h"
#include "event/notes.h"
#include "util/mem.h"
#include "util/rng.h"
#include "util/time.h"

#define RDZV_ACTIONS_MAX      24
#define RDZV_NOTES_MAX        10
#define RDZV_ROLES_MAX        32                  /* different --role in one job */
#define RDZV_JUMP_MAX         (UINT64_C(1) << 32) /* rounds that an agent may know of, and the coordinator not */
#define RDZV_STORE_LIMIT      EL_SEC(5)           /* OPEN_STORE to STORE_READY */
#define RDZV_END_LIMIT        EL_SEC(5)           /* END is repeated so long to whoever has not acknowledged it */
#define RDZV_STOP_MARGIN      EL_SEC(30) /* beyond the grace: then a member that has not stopped counts as lost */
#define RDZV_JOURNAL_RETRY    EL_SEC(1)
#define RDZV_TELL_EVERY       EL_SEC(1)           /* waiting members are told of changes no more often */
#define RDZV_OPEN_RETRY       EL_MS(100)          /* rounds that cannot be opened: from the second on, doubling … */
#define RDZV_OPEN_RETRY_MAX   EL_SEC(5)           /* … to this */
#define RDZV_ASIDE_MAX        64                  /* hosts that are set aside at a time; no more are */
#define RDZV_WHY_MAX          160                 /* bytes of the reason */
#define RDZV_INCIDENTS_MAX    16                  /* of one round; more are counted */
#define RDZV_DOCUMENTS_MAX    ((size_t)384 << 10) /* bytes of their records; as REPORT_ROWs they fit a connection */
#define RDZV_REPORT_ROWS      9 /* of them in the report: the cause and as many others as a summary shows one by one */
#define RDZV_FATES_MAX        (1u << 20) /* workers of which it is kept, by rank, who failed and who was stopped */
#define RDZV_PROBE_REPORT_MAX ((size_t)512 << 10) /* bytes of a health check's report; it fits a connection */
#define RDZV_NONE             UINT32_MAX

enum rdzv_state {
    RDZV_REBUILDING, /* hears what members of an earlier coordinator report */
    RDZV_WAITING,    /* no round; members gather */
    RDZV_PROBING,    /* a health check runs */
    RDZV_OPENING,    /* members are chosen, group rank 0 opens the store */
    RDZV_RECORDING,  /* the journal writes the round */
    RDZV_RUNNING,    /* WORLD is out */
    RDZV_STOPPING,   /* STOP is out */
    RDZV_CLOSING,    /* the journal writes the end */
    RDZV_ENDING,     /* END is out */
    RDZV_OVER,
    RDZV_STATES,
};

/* One row for each job-wide setting is in MSG_SETTINGS.  Members must agree with the first in min, max, unit and
 * max_restarts; in the others the first one's value holds. */
struct rdzv_settings {
#define F(T, kind, name, limit, must) uint64_t name;
    MSG_SETTINGS(F, rdzv_settings)
#undef F
};

struct rdzv_conf {
    char run_id[MSG_RUN_ID_MAX + 1];
    uint64_t coord;           /* 64 random bits of this start */
    uint64_t token_start;     /* start value for tokens */
    struct rdzv_settings set; /* checked by rdzv_settings_check() */
    unsigned room;            /* members and spares at most; rdzv_room() */
    uint64_t seen;            /* round numbers up to this one have been given out by this coordinator */
    /* No round of this job can be running that the journal does not name (a journal is kept, or the coordinator
     * listened for a keep-alive limit before the job's first HELLO).  Else nothing is completed until listening_since +
     * limit. */
    bool surely_new;
    el_usec listening_since;
    struct report_look look; /* of whoever reads what is printed here */
    uint64_t own_instance;   /* the agent of this process, which prints what is for the job's user; 0: there is none */
    char own_process[MSG_PROCESS_MAX +
                     1]; /* coordinator_mark_self() of this process, for WORLD; "" without such an agent */
    struct el_mem *sums; /* pays for what is remembered of parts to compare them; NULL: who pays for all */
    uint64_t
        dead_number;    /* of the round in which the coordinator before this one was hosted by an agent that is dead, */
    uint64_t dead_rank; /* … as that group rank; 0: nothing is known */
};

/* What the journal keeps of a job. */
struct rdzv_record {
    char run_id[MSG_RUN_ID_MAX + 1];
    uint64_t number, coord;
    uint64_t restarts, fruitless, charged; /* charged: number of the last round that cost a restart */
    uint64_t world_first, world_last;
    uint64_t min, max; /* as set by `elrun scale`; 0: as configured */
    bool ended;
    unsigned status;
    char text[MSG_TEXT_MAX + 1];
    char aside[256]; /* hosts that are set aside, a line each; as many as fit */
};

enum rdzv_event_type {
    RDZV_EV_HELLO,     /* conn, peer, msg */
    RDZV_EV_MSG,       /* conn, member, msg: anything else from a member */
    RDZV_EV_COMMAND,   /* conn, peer, msg: SCALE, DRAIN, STOP_JOB, RESTART; who may do that is checked by the shell */
    RDZV_EV_CLOSED,    /* conn, member */
    RDZV_EV_JOURNALED, /* ok, serial: of the RDZV_DO_JOURNAL that is answered */
    RDZV_EV_TIMEOUT,
};

/* Both ends of an accepted connection, in text. */
struct rdzv_peer {
    const char *remote, *local;
    bool same_host;
};

struct rdzv_event {
    enum rdzv_event_type type;
    uint64_t conn;
    unsigned member;
    const struct msg *msg;
    struct rdzv_peer peer;
    uint64_t serial;
    bool ok;
};

enum rdzv_action_type {
    RDZV_DO_BIND,       /* conn speaks for member from now on */
    RDZV_DO_CLOSE,      /* close conn; its CLOSED need not be reported */
    RDZV_DO_REFUSE,     /* send rdzv_answer() (REFUSED) to conn, then close it */
    RDZV_DO_REPLY,      /* send rdzv_answer() (DONE) to conn */
    RDZV_DO_BEAT,       /* answer the HEARTBEAT that was the event */
    RDZV_DO_GOODBYE,    /* send rdzv_goodbye() to member */
    RDZV_DO_ORDER,      /* send rdzv_order() to member */
    RDZV_DO_ORDER_EACH, /* to each member that is connected, 256 in a turn of the loop; a new one begins from the front
                         */
    RDZV_DO_JOURNAL,    /* write rdzv_record() durably, answer JOURNALED with serial (at once if no journal is kept) */
    RDZV_DO_NOTE,       /* rdzv_note(r, note): one line and its name for log, --events and --hook */
    RDZV_DO_REPORT,     /* a round with failures is closed: tell rdzv_report() here, and to rdzv_report_member() */
    RDZV_DO_REPORT_TO,  /* the same to member alone: rank 0's node, whose connection may have lost it */
    RDZV_DO_PROBE_REPORT, /* a health check is over: tell rdzv_probe_page() here, and to rdzv_probe_reader() */
    RDZV_DO_OVER,         /* everybody knows the end, or 5 s are over: nobody needs this coordinator any more */
};

struct rdzv_action {
    enum rdzv_action_type type;
    unsigned member, note;
    uint64_t conn, serial;
};

struct rdzv_actions {
    unsigned n;
    struct rdzv_action v[RDZV_ACTIONS_MAX];
};

struct rdzv_note {
    enum note_type type;
    unsigned member;             /* RDZV_NONE: of the job */
    char host[MSG_NAME_MAX + 1]; /* of the member; "" if there is none */
    uint64_t number;             /* of the round; 0: none yet */
    char text[MSG_TEXT_MAX + 1];
};

struct rdzv; /* rdzv_private.h; opaque for shells */

/* Fills *out from a HELLO, or fails saying which setting contradicts which. */
int rdzv_settings_check(const struct rdzv_settings *s, struct el_err *e);
void rdzv_settings_take(const struct msg_hello *h, struct rdzv_settings *out);
unsigned rdzv_room(const struct rdzv_settings *s);

/* All memory is had here.  record: what the journal knew of this job, or NULL.  NULL when memory is refused. */
struct rdzv *rdzv_new(const struct rdzv_conf *conf, const struct rdzv_record *record, el_usec now, struct el_mem *mem);
void rdzv_free(struct rdzv *r);

/* out->n is set to 0 first.  msg and peer belong to the caller and are not kept. */
void rdzv_step(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out);
el_usec rdzv_deadline(const struct rdzv *r);
/* Asserts what must hold.  It walks all members, so rdzv_step() calls it once in as many steps as the job may have
 * members: in a job of a few nodes nearly always, and with 10,000 for the price of one member a step. */
void rdzv_check(const struct rdzv *r);

/* The answer to LEAVING: perhaps its workers are on their way to a step boundary. */
void rdzv_goodbye(const struct rdzv *r, unsigned member, el_usec now, struct msg *out);

/* What member should do now: WAIT, OPEN_STORE, WORLD, NOTICE, STOP, KEEP or END.  Strings in *out live until the next
 * step. */
void rdzv_order(struct rdzv *r, unsigned member, el_usec now, struct msg *out);
/* The slice of seat i (0 … rdzv_size()-1) of the present round: what rdzv_order() gives its member while it runs. */
void rdzv_slice(const struct rdzv *r, unsigned i, struct msg *out);
void rdzv_record(const struct rdzv *r, struct rdzv_record *out);

/* For the shell's walks: members are numbered below rdzv_room_used(); conn 0: free, or not connected. */
unsigned rdzv_room_used(const struct rdzv *r);
uint64_t rdzv_conn(const struct rdzv *r, unsigned member);

/* Whose slice of the present or last round holds this rank: a member, or RDZV_NONE and *why, which lives until the next
 * call. */
unsigned rdzv_rank_member(struct rdzv *r, uint64_t rank, const char **why);

/* What is waited for, in one line: "2 of 3 nodes are here (min 2); …". */
const char *rdzv_wait_text(struct rdzv *r, el_usec now);

/* The report of the round that was closed last, message by message: REPORT (i 0), then REPORT_ROWs; false behind the
 * last.  Strings in *out live until the next call or step.  Its reader is the node of rank 0, or of the lowest rank
 * that is still here: a member, or RDZV_NONE. */
bool rdzv_report(struct rdzv *r, unsigned i, struct msg *out);
unsigned rdzv_report_member(const struct rdzv *r);
uint64_t rdzv_instance(const struct rdzv *r, unsigned member);

/* The verdict of the last health check on this member, if it has not been told it on this connection: goes before its
 * order. */
bool rdzv_probe_verdict(struct rdzv *r, unsigned member, struct msg *out);
/* RESTORE, if there is something about going back to a step that this member does not know: goes behind its order. */
bool rdzv_restore_word(const struct rdzv *r, unsigned member, struct msg *out);
/* What this member is to do for saving a step, message by message: false behind the last.  Goes before its order, which
 * may take from it what it is to write. */
bool rdzv_saving_word(struct rdzv *r, unsigned member, unsigned i, struct msg *out);
/* CKPT_CAPTURE, if there is something about an emergency checkpoint of live workers that this member does not know:
 * goes behind its order. */
/* Which step all nodes have; told once on a connection. */
bool rdzv_common_word(struct rdzv *r, unsigned member, struct msg *out);
/* CKPT_DIFFER, if this member is asked for tensors and was not yet on its connection; strings live until the next call.
 */
bool rdzv_comparing_word(struct rdzv *r, unsigned member, struct msg *out);
bool rdzv_emergency_word(const struct rdzv *r, unsigned member, struct msg *out);
/* The report of the last health check, page by page: false behind the last. */
bool rdzv_probe_page(struct rdzv *r, unsigned i, struct msg *out);
unsigned rdzv_probe_reader(const struct rdzv *r);

/* Rows for `elrun status`.  rdzv_status_member: false if the number is free. */
void rdzv_status_job(struct rdzv *r, el_usec now, struct msg *out);
bool rdzv_status_member(struct rdzv *r, unsigned member, el_usec now, struct msg *out);

/* No node is left, and no round: who comes next may begin anew.  Also true of a job that has ended for this reason. */
bool rdzv_is_deserted(const struct rdzv *r);
/* Has there been a round whose workers were started, of this coordinator or, by the journal, one before it?  What an
 * agent says of a round that nobody else knows is none. */
bool rdzv_has_formed(const struct rdzv *r);
/* Do the settings that it was started with fit the job's? */
bool rdzv_agrees(const struct rdzv *r, const struct msg_hello *h);

enum rdzv_state rdzv_state(const struct rdzv *r);
const char *rdzv_state_name(enum rdzv_state s);
const char *rdzv_note_name(enum note_type t);
const struct rdzv_note *rdzv_note(const struct rdzv *r, unsigned note);
const struct msg *rdzv_answer(const struct rdzv *r);
const char *rdzv_run_id(const struct rdzv *r);
unsigned rdzv_members(const struct rdzv *r);     /* connected or within their grace */
unsigned rdzv_size(const struct rdzv *r);        /* seats of the present or last round */
unsigned rdzv_exit_status(const struct rdzv *r); /* once ending */
/* Does a node that has a seat come from this address?  By its connection, not by what it says of itself. */
bool rdzv_is_member_addr(const struct rdzv *r, const char *remote);

#endif
