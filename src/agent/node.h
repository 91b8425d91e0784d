/* What the files of the agent's shell share: agent_io.c (loop and core), workers_io.c (processes), report_io.c
 * (evidence and words).  Nobody else includes this. */
#ifndef AGENT_NODE_H
#define AGENT_NODE_H
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <stdbool.h>

#include "history/goodput.h"
#include "agent/agent.h"
#include "conf/conf.h"
#include "output/console.h"
#include "failure/evidence.h"
#include "failure/failure.h"
#include "failure/summary.h"
#include "conf/endpoint.h"
#include "agent/health.h"
#include "sys/host.h"
#include "member/membership.h"
#include "agent/run_folder.h"
#include "agent/snapshot_service.h"
#include "snapshot/slot_table.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "sys/cgroup.h"
#include "proc/guard.h"
#include "sys/numa.h"
#include "output/output.h"
#include "proc/reap.h"
#include "proc/spawn.h"
#include "store/server.h"
#include "event/hooks.h"
#include "event/event_log.h"

#define NODE_WAIT_REPORT    EL_SEC(30) /* a wait at the store that is older is reported while it goes on */
#define NODE_INBOX_MAX      64
#define NODE_FILES_OWN      32 /* descriptors, about: what elrun needs without workers, */
#define NODE_FILES_EACH     10 /* and for a worker: two pipes, two logs, two of /proc, its clients at the store, */
#define NODE_FILES_SNAP     6  /* with --ckpt-mem its connection, status page, two slots and their readers */
#define NODE_LAST_LINE_TIME EL_SEC(10) /* a line that stood there for so long before the end does not explain it */
#define NODE_NOTE_TIME      EL_SEC(2) /* so long the others may take to end before it is said that they are waited for */
#define NODE_WIPE_TIME      EL_MS(200) /* for taking the status line away before elrun is stopped */
#define NODE_EVIDENCE_MAX   16         /* failures of one attempt whose files and tails are read; the rest is counted */
#define NODE_LINGER_TIME    EL_SEC(1)  /* who ends so long after its last word perhaps ended of something else */
#define NODE_EVIDENCE_TIME  EL_SEC(5)  /* for reading them */
#define NODE_PREPARE_TIME   EL_SEC(60) /* for making logs and port */
#define NODE_PUBLISH_TIME   EL_SEC(5)  /* for the error file that elrun's own parent asked for */
#define NODE_FLUSH_TIME     EL_SEC(20) /* for writing out what is queued, at the end */
#define NODE_SWEEPS_MAX     100        /* looks for what hooks left behind, at the end, */
#define NODE_SWEEP_EVERY    EL_MS(10)  /* so often */
#define NODE_EVENTS_TIME    EL_SEC(5)  /* for the same of --events */

struct worker {
    pid_t pid;    /* of this attempt; 0 = not started */
    bool guarded; /* the guard knows its group */
    el_usec started;
    bool ended;
    el_usec ended_at;
    bool bad;          /* ended, and not with 0 */
    bool gone_first;   /* … or had said that it will, before elrun's first signal, but that was seen only later */
    bool in_vain;      /* its last output only says that it waited for a peer in vain; known once they were looked at */
    bool late;         /* … of these: the time of a collective ran out */
    bool fenced;       /* … by SIGKILL, and the guard's fence had fallen: it was elrun's */
    bool stderr_shown; /* … and its last output is on the console */
    struct failure failure; /* filled then */
};

/* One failure whose evidence is being read.  It owns what its thread uses: a file system that stands still may keep it
 * beyond its attempt. */
/* A look, in a pool of its own, at the source of the exception that a worker has printed. */
struct handled {
    struct pool_job job;
    struct handler_place place;
    enum handler handler, elsewhere; /* elsewhere: what it means if it is no text of the worker's script */
    enum handler_own own;
    bool reading;
    void (*done)(void *ctx);
    void *ctx;
};
/* Is there one to be looked at?  Then done() is called later.  What is known without is told at once. */
void handled_ask(struct node *n, struct handled *s, struct failure *f, void (*done)(void *ctx), void *ctx);
void handled_tell(const struct handled *s, struct failure *f);

struct evidence_job {
    struct node *node; /* NULL: nobody waits for it any more */
    unsigned slot;
    struct pool_job job;
    struct errfile file;
    char path[PATH_MAX]; /* of the error file */
    bool reading, tail_asked, tailing;
    struct handled handled;
};

#define PERSISTING_OWES_MAX 512u

struct node {
    const struct run_conf *conf;
    char **env;
    unsigned nproc;
    struct agent core;
    struct agent_event inbox[NODE_INBOX_MAX];
    unsigned inbox_head, inbox_count;
    bool draining;
    struct agent_actions after_reap; /* what the core ordered at a zombie, but for its group's sweep */

    struct endpoint place; /* alone, or where the job's coordinator is */
    struct health *health;
    struct membership *membership;      /* NULL: alone */
    char farewell[MSG_TEXT_MAX + 1];    /* what the coordinator said of the end */
    struct logs *logs;                  /* logs_io.c; NULL: alone */
    struct run_folder *folder;          /* run_folder_io.c; NULL: it could not be made, and nobody has to have it */
    struct snapshot_service *snapshots; /* snapshot_service_io.c; NULL: none are taken */
    struct restore restore;             /* alone: what a coordinator has for a round */
    struct restore_stock stock;         /* … and what it was told last */
    struct el_mem ckpt_mem;
    int64_t gone_back;             /* the step that all ranks went on from last */
    bool gone_fresh;               /* … or none, and that is as it should be */
    struct member_taken taken;     /* which steps the workers have, as it was told last */
    struct replicas *replicas;     /* replica_tables_io.c; NULL: no snapshots are taken */
    struct member_digests digests; /* as it was told last, */
    char *digests_text;
    char taken_whole[COMMON_STEP_STEPS_TEXT + 1], taken_coming[COMMON_STEP_STEPS_TEXT + 1];
    uint64_t gone_attempt;       /* of the agreement in which they did */
    struct emergency_io *words;  /* emergency_io.c; NULL: nothing is captured */
    struct flush_io *persisting; /* flush_io.c; NULL: nothing is written to disk */
    struct ckpt_asks *asks;      /* ckpt_control_io.c; NULL: no snapshots are taken */
    struct incidents *incidents; /* incident_io.c; NULL: alone */

    struct loop *loop;
    struct loop_timer *deadline, *prepare_timer;
    bool preparing;     /* the output makes the folders of an attempt */
    bool prepare_again; /* for the next attempt: that one was given up */
    struct pool *pool;
    struct pool *sources; /* of one thread: the program's files may lie where nothing moves any more */
    struct console *console;
    struct event_log *trace;     /* --events; NULL: nobody wants them */
    struct event_log *log_trace; /* the same in the run's folder of --log-dir; NULL: not there (yet) */
    el_usec began;               /* when the first event was, for what is written there later */
    int64_t began_wall_usec;
    struct event_job_started job; /* of the coordinator that is hosted here, once it has a job */
    bool job_known;

    /* emit_io.c */
    struct hooks *hooks; /* --hook; NULL: there are none */
    struct loop_timer *sweep_timer;
    unsigned sweeps;   /* so far, of what hooks and helpers left */
    char end_why[512]; /* of agent_ended; "": all is well */
    bool owes;         /* it succeeded, but for what was promised: */
    char owed[PERSISTING_OWES_MAX];
    void (*told)(void *node); /* hooks and events are done with */
    enum agent_state shown;   /* on the status line */
    struct console_status status_line;
    struct output *output;
    struct reap *reap;
    struct guard *guard;
    el_usec fence_at; /* what the guard was told last: from then on it kills */
    bool fence_fell;  /* in this attempt: elrun was there too late to set another one */
    struct cgroup *cgroup;
    struct hang_watch *hang;           /* hang_io.c; NULL: nobody looks */
    struct cannot_exit_watch *unended; /* cannot_exit_io.c */
    struct loop_timer *last_one;       /* only one worker still runs */
    struct consequence *consequence;   /* consequence_io.c */

    /* workers_io.c */
    struct worker *worker; /* nproc */
    struct worker *before; /* those of the attempt before: why there is a restart, if it cannot be made */
    struct host_python python;
    char program[HOST_PATH_MAX]; /* what is executed */
    struct numa_plan *numa;      /* nproc, or NULL */
    int report_fd[2];            /* spawn reports of the children: read end, write end */
    struct loop_fd *report_watch;
    int null_fd;
    int terminal_fd;      /* --interactive: the terminal of local rank 0, else -1 */
    struct ctrl_c *typed; /* its Ctrl-C, while that goes to the only worker; else NULL */
    pid_t own_group;
    bool suspending; /* the workers stand, elrun is about to */
    bool has_proc;   /* /proc is there: leftovers can be found by their session */
    struct rlimit old_files;
    char run_id[64];
    uint64_t coord;
    bool said_threads;

    /* worker_store_io.c */
    struct store_server *store; /* of this attempt; NULL: worker rank 0 serves */
    int port_fd;                /* that keeps the port for worker rank 0 meanwhile, or -1 */
    int port;                   /* MASTER_PORT */
    struct el_buf missing;      /* who had not come to the store when the first worker failed */

    /* postmortem_io.c */
    int kmsg_fd; /* the kernel's log, or -1 */
    struct proc_sample_one
        *scene; /* nproc: what each was doing at scene_at, before the attempt's first signal (0: none yet) */
    el_usec scene_at;
    bool scene_new;                   /* not told yet */
    struct proc_sample_source *sight; /* nproc: of the workers of this attempt */
    struct loop_timer *sight_timer;
    struct postmortem_job *witness;

    /* report_io.c */
    struct goodput account;
    struct steps steps;    /* --step-pattern */
    bool steps_here;       /* the rank that tells of them is, in this attempt */
    uint64_t steps_before; /* made in earlier ones */
    struct evidence_oom oom;
    int64_t oom_before;
    struct el_err error; /* of a cause that is not a worker: spawn, prepare */
    struct evidence_job *evidence[NODE_EVIDENCE_MAX];
    unsigned evidence_count;
    struct loop_timer *evidence_timer;
    struct loop_timer *note_timer; /* somebody failed; the others still run */
    unsigned note_slot;
    bool note_due;                   /* … and that has not been said */
    bool stop_due;                   /* for whom the workers are stopped has not: the report is near */
    bool stop_said;                  /* it has, by a line of its own */
    char stop_why[MSG_TEXT_MAX + 1]; /* which is this; "": nobody on another node has failed in this round */
    bool report_said;                /* of the attempt that failed, before the wait for the next one */
    bool collecting;
    struct restart_digest digest;    /* of the attempt that was collected last */
    const struct failure **failures; /* nproc; filled while a report is made */
    struct pool_job publish;
    const struct failure *publish_cause;
    struct el_buf termination_text; /* for the termination log; as publish_error */
    struct el_err publish_error;    /* the thread's until publishing is false */
    bool publishing, publish_late;
    char host[256];
    char kept_logs[PATH_MAX];
    int status; /* elrun's exit status, once ended */
};

/* agent_io.c: an event for the core, dealt with before this returns unless a step is under way. */
void node_feed(struct node *n, const struct agent_event *ev);

/* agent_io.c: the hooks that a start waits for are done; trouble: NULL, or why it may not be. */
void node_may_start(struct node *n, unsigned attempt, const char *trouble);

/* emit_io.c: what happens, as events and for hooks */
int emit_open(struct node *n, struct el_err *e); /* first of all: a user's descriptor has its number still */
int emit_init(struct node *n, struct el_err *e);
int emit_hooks(struct node *n, struct el_err *e); /* once there are reaper and guard */
void emit_time_so_far(struct node *n);            /* one line, beside each summary but the last */
void emit_free(struct node *n);                   /* the hooks; the events are the shell's */
void emit_begin(struct node *n);
void emit_moved(struct node *n, enum agent_state before); /* the core's state is another one */
void emit_unfit(struct node *n, const char *why);         /* a health check says so */
void emit_prepared(struct node *n);                       /* an attempt's logs are there: node_may_start() follows */
void emit_worker_started(struct node *n, unsigned slot);
void emit_all_started(struct node *n);
void emit_worker_ended(struct node *n, unsigned slot, const struct reap_end *end);
void emit_worker_failed(struct node *n, const char *how, unsigned slot);
void emit_incidents(struct node *n, const struct failure *cause); /* the evidence is complete */
void emit_restart(struct node *n, const char *why);
void emit_checkpoint(struct node *n, const struct event_checkpoint *c);
void emit_differ(struct node *n,
                 const struct slot_table_pair *x); /* ranks of this node share a part that is not alike */
void emit_end(struct node *n, const char *why);
void emit_finish(struct node *n, void (*told)(void *node)); /* the last hooks; then all is written */
void emit_guard(struct node *n);                            /* there is a new one */
bool emit_close(struct node *n);                            /* false: a writer stands in a write that does not return */
void emit_job_note(void *node, const char *run_id, const struct rdzv_note *note, int status);
void emit_job_began(void *node, const char *run_id, const struct rdzv_settings *set);

/* managed_io.c: one of several nodes */
int managed_find(struct node *n, struct el_err *e); /* fills n->place */
int managed_init(struct node *n, struct el_err *e);
void managed_note(struct node *n, unsigned slot);
void managed_result(struct node *n);
void managed_prepared(struct node *n); /* an attempt's log files are there */

/* logs_io.c: workers' output for `elrun logs` */
int logs_init(struct node *n, struct el_err *e);
void logs_free(struct node *n);
void logs_message(struct node *n, const struct msg *msg); /* LOGS, LOGS_NEXT; NULL: the link is gone */
void logs_attempt(struct node *n);                        /* log files of the present round are there */
void logs_attempt_ended(struct node *n);                  /* no worker writes to them any more */
/* Who reads gets the rest of it, as far as that takes no longer than a moment; then left(), later. */
void logs_leave(struct node *n, void (*left)(struct node *n));

/* incident_io.c: failures of several nodes */
int incident_init(struct node *n, struct el_err *e);
void incident_free(struct node *n);
void incident_closed(struct node *n, struct member_event *ev); /* fills what STOPPED says */
void incident_tell(void *node);                                /* INCIDENT for each failure of the last attempt */
void incident_report(void *node, const struct msg *m);         /* REPORT or a row of it, to be printed here */
bool incident_is_printed(const struct node *n);                /* that of the last round */
bool incident_printed_before(const struct node *n);            /* … of the one before it */
/* Leaves the failures of the report that was printed last out of line; false: nothing is left to say. */
bool incident_cut(const struct node *n, char *line);

/* workers_io.c */
unsigned workers_rank(const struct node *n, unsigned slot); /* global rank in the present attempt */
void workers_make_run_id(struct node *n);
const char *workers_run_id(const struct node *n);
int workers_init(struct node *n, struct el_err *e);
void workers_free(struct node *n);
int workers_prepare(struct node *n, struct el_err *e); /* the port of a new attempt */
void workers_act(struct node *n, const struct worker_group_action *a);
void workers_forward(struct node *n, int signal);
void workers_suspend(struct node *n);
bool workers_typed(struct node *n); /* the only worker has ended: a short while after Ctrl-C? */
void workers_close(struct node *n); /* the attempt is closed */
void workers_child(struct node *n); /* SIGCHLD */

/* consequence_io.c: AGENT_DO_LOOK */
/* Ranks that end with 0 while others go on: last_running_io.c. */
int last_running_init(struct node *n, struct el_err *e);
void last_running_free(struct node *n);
void last_running_ended(struct node *n, unsigned slot); /* … or failed */
void last_running_explain(struct node *n);              /* judged: who had left before a rank that lost its peer */

/* cannot_exit_io.c: a worker that has raised, and stands */
int cannot_exit_init(struct node *n, struct el_err *e);
void cannot_exit_begin(struct node *n); /* all workers of an attempt are up */
void cannot_exit_free(struct node *n);

int consequence_init(struct node *n, struct el_err *e);
void consequence_free(struct node *n);
void consequence_look(struct node *n, unsigned slot);    /* AGENT_EV_LOOKED follows */
int consequence_halting(struct node *n);                 /* a slot that has raised, and is about to end; -1: none */
void consequence_drained(struct node *n, unsigned slot); /* its output has ended */
void consequence_forget(struct node *n);                 /* another attempt begins */
bool consequence_is_late(const struct node *n); /* none has failed by itself or left, and the time of one ran out */

/* hang_io.c */
int hang_watch_init(struct node *n, struct el_err *e);
void hang_watch_free(struct node *n);
void hang_watch_begin(struct node *n); /* all workers of an attempt are up */
void hang_watch_end(struct node *n);

/* ckpt_io.c: snapshots, which are this node's, as part of the job */
int ckpt_folder(struct node *n, struct el_err *e); /* before the workers' guard, which removes it after a SIGKILL */
int ckpt_init(struct node *n, struct el_err *e);
void ckpt_free(struct node *n);  /* after pool_free() */
void ckpt_round(struct node *n); /* before its workers are started */
/* What all ranks go back to: its told, told_lineage, fresh. */
void ckpt_decided(struct node *n, const struct restore_stock *decided, const char *text);
void ckpt_notice(struct node *n, const struct member_notice *notice); /* of a planned change; NULL: none any more */

/* emergency_io.c: what live workers hold, before they are stopped */
bool emergency_io_wanted(const struct node *n);
int emergency_io_init(struct node *n, struct el_err *e);
void emergency_io_free(struct node *n);
void emergency_io_begin(struct node *n);         /* AGENT_EV_CAPTURED follows */
el_usec emergency_io_took(const struct node *n); /* of --emergency-timeout, in this attempt */
/* One of several nodes: what the coordinator orders, NULL: it is gone; and that nothing is held back here. */
void emergency_io_order(struct node *n, const struct msg_ckpt_capture *order);
void emergency_io_pass(struct node *n);
/* At once, or when it is said who has failed: emergency_io_noted(). */
void emergency_io_say(struct node *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emergency_io_noted(struct node *n);
void emergency_io_ended(struct node *n, unsigned slot);                          /* its process has */
bool emergency_io_has_failed(const struct node *n, unsigned slot);               /* it has said so */
void emergency_io_amend(const struct node *n, unsigned slot, struct failure *f); /* … and so failed then */
void emergency_io_round(struct node *n);

/* replica_tables_io.c: whether ranks of other nodes hold the same as those of this one */
int replica_tables_init(struct node *n, struct el_err *e);
void replica_tables_free(struct node *n);
void replica_tables_round(struct node *n);
void replica_tables_digested(struct node *n, const struct slot_table_event *ev);
void replica_tables_asked(struct node *n, const struct msg_ckpt_differ *ask); /* answered at once */
void ckpt_common(struct node *n, const struct msg_ckpt_common *c);            /* ckpt_io.c: which step all nodes have */

/* flush_io.c: snapshots on their way to --ckpt-dir; nothing without it */
int flush_io_init(struct node *n, struct el_err *e);
void flush_io_free(struct node *n);
const struct ckpt_fs *flush_io_root(const struct node *n); /* NULL: no --ckpt-dir */
void flush_io_committed(struct node *n, unsigned worker, unsigned slot);
void flush_io_round(struct node *n); /* workers are about to be started */
/* All ranks go on from this step, and train that lineage; by_itself: their script has gone back to it. */
void flush_io_went_back(struct node *n, int64_t step, uint64_t lineage, bool by_itself);
/* A rank has left out what is wanted on disk; why is kept. */
void flush_io_unmet(struct node *n, int64_t step, uint64_t lineage, const char *why);
void flush_io_passed(struct node *n);             /* a rank has gone by a step, or is not waited for any more */
void flush_io_emergency(struct node *n);          /* they are being stopped, or have ended */
void flush_io_signal(struct node *n, int signal); /* one that ends the job */
void flush_io_ended(struct node *n);              /* none is left */
void flush_io_leave(struct node *n,
                    void (*left)(struct node *n)); /* … for good: left() when all is on disk, or later */
/* The last step that the script wanted on disk is not there, nor is a later one: which, and why. */
bool flush_io_owes(const struct node *n, char to[PERSISTING_OWES_MAX]);

/* The newest step that is in memory is wanted on disk, also if that failed before: which (SLOT_TABLE_NO_STEP: none is
 * there).  What becomes of it is seen by flush_io_view(); ckpt_news() is called when something has.  Among several
 * nodes the newest that all of them hold together is meant, whatever this one holds: *ask is then answered by the view,
 * but 0 before the first round. */
int64_t flush_io_save(struct node *n, uint64_t *ask);
struct flush_io_view {
    bool here, idle;          /* --ckpt-dir is given; nothing is wanted or written */
    int64_t writing, on_disk; /* SLOT_TABLE_NO_STEP: none; here and below */
    uint64_t done_bytes, all_bytes;
    el_usec on_disk_at;
    const char *said; /* of the one on disk: one line */
    int64_t failed;
    const char *why;
    uint64_t answered; /* ask of flush_io_save() */
    int answer_status;
    const char *answer;
};
void flush_io_view(const struct node *n, struct flush_io_view *v);

/* ckpt_control_io.c: `elrun ckpt status` and `elrun ckpt save` on this host */
int ckpt_asks_init(struct node *n, struct el_err *e);
void ckpt_asks_free(struct node *n);
void ckpt_asks_committed(struct node *n, unsigned worker, unsigned slot);
void ckpt_news(struct node *n); /* of what is on disk, or is not */

/* ckpt_writer_io.c: the same over several nodes, as the membership orders it */
void ckpt_writer_tell(struct node *n, bool files);
uint64_t ckpt_writer_list(const struct node *n, const struct slot_table_source **piece,
                          unsigned *pieces); /* 0: none yet */
void ckpt_writer_order(struct node *n, const struct msg *msg);
void ckpt_writer_forget(struct node *n);
void ckpt_writer_over(struct node *n, const struct member_save *x);

/* worker_store_io.c */
const char *worker_store_address(const struct node *n); /* MASTER_ADDR */
int worker_store_open(struct node *n, struct el_err *e);
void worker_store_close(struct node *n);                 /* cuts what is still connected */
void worker_store_worker(struct node *n, unsigned slot); /* it has been started */
void worker_store_note_missing(struct node *n);

/* postmortem_io.c: what others than a failed worker say of its end */
int postmortem_init(struct node *n, struct el_err *e);
void postmortem_free(struct node *n);
void postmortem_attempt(struct node *n);                   /* a new one begins */
void postmortem_started(struct node *n);                   /* all its workers are there */
void postmortem_before_signal(struct node *n, int signal); /* to all workers */
void postmortem_after_signal(struct node *n);
void postmortem_collect(struct node *n); /* report_drained() follows when it is complete */
bool postmortem_complete(const struct node *n);
void postmortem_tell(struct node *n,
                     int64_t oom_kills); /* to the failures; kills by the counter since the attempt began */

/* report_io.c */
int report_init(struct node *n, struct el_err *e);
void report_free(struct node *n);
void report_ended(struct node *n, unsigned slot, const struct reap_end *end); /* any leader's end */
void report_note(struct node *n, unsigned slot);
void report_announce(struct node *n); /* something is said before the report comes: who has failed, in front of it */
bool report_was_signalled(const struct node *n, unsigned slot); /* by elrun, before its end */
void report_collect(struct node *n);                            /* answers AGENT_EV_COLLECTED */
void report_drained(void *node);                                /* callbacks of the output */
void report_rank_drained(void *node, unsigned slot);
void report_restart(struct node *n);
/* a new attempt is wanted */
void report_missing(struct node *n);
void report_stuck(struct node *n);
void report_wait(struct node *n);   /* … and comes later: says so */
void report_forget(struct node *n); /* it can begin: the failures of the last one are over */
/* Where descriptors have run out: how many these workers need. */
void report_files(const struct node *n, struct el_err *e);
const char *report_logs(const struct node *n); /* where there is something to look at; NULL: nowhere */
void report_print(struct node *n, const struct failure_report *r);
void report_verdict(struct node *n, struct el_buf *out); /* the present attempt's failure in one line */
int report_failure_status(struct node *n);               /* what it means as an exit status */
void report_end(struct node *n); /* everything is gone: flush, say the last lines, stop the loop */

#endif
