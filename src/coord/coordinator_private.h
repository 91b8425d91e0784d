/* What the files of the coordinator's shell share. */
#ifndef COORD_COORDINATOR_PRIVATE_H
#define COORD_COORDINATOR_PRIVATE_H
#include "loop/conn.h"
#include "coord/coordinator.h"
#include "coord/journal.h"
#include "coord/rdzv.h"

#define COORDINATOR_SLICE  256  /* messages of one walk in a turn of the loop */
#define COORDINATOR_PIECE  4096 /* bytes of one connection in a turn: as many messages as others wait for */
#define COORDINATOR_BIRTHS 8    /* jobs that begin in a turn: a large one takes milliseconds */
#define COORDINATOR_PURSES 4096 /* lists of addresses, by hash: a job's nodes are as many */

/* What the jobs that one address has begun, and its connections, may take together, however many they are. */
struct purse {
    struct purse *next;
    struct coordinator *c;
    uint8_t ip[16];
    unsigned users;          /* its jobs and connections */
    struct el_mem mem, sums; /* of its jobs */
    struct el_mem conns;     /* of its connections: messages that are half sent, or not read */
};

struct job {
    struct coordinator *c;
    struct rdzv *r;
    uint64_t id; /* never used twice */
    bool walks;  /* an order goes to each member: from `walk` on */
    unsigned walk;
    uint64_t journaled; /* serial to be answered, without a journal; 0: none */
    bool over;
    el_usec forget_at;
    struct purse *purse;
};

enum peer_role {
    PEER_NEW,     /* its first message has not come */
    PEER_AGENT,   /* bound to a member */
    PEER_COMMAND, /* has asked something */
    PEER_CLOSING, /* all is said: until it closes too, so that nothing of what was sent is lost by a reset */
};

struct peer {
    struct conn conn;
    struct coordinator *c;
    uint64_t id; /* the connection's number for the cores */
    enum peer_role role;
    struct msg_decoder decoder;
    struct el_buf in; /* the beginning of a message */
    struct el_addr addr;
    struct purse *purse;
    el_usec unread; /* COMMAND: since then rows wait that it does not read; 0: none do */
    char remote[EL_ADDR_TEXT_MAX], local[EL_ADDR_TEXT_MAX]; /* without ports */
    bool same_host, greeted;
    bool waits;   /* NEW: what it has said is heard in a later turn */
    uint64_t job; /* AGENT: its job's id */
    unsigned member;
    el_usec until;            /* NEW, CLOSING: closed then */
    struct peer *prev, *next; /* in the list of its role, oldest first; AGENT: in none */
    struct peer_list *list;
    struct {
        bool watch;
        char run_id[MSG_RUN_ID_MAX + 1]; /* "": all jobs */
        size_t job;                      /* next row: index of the job; member 0: its head, i + 1: member i */
        unsigned member;
        bool active;
        el_usec at; /* the next rows */
    } status;
    struct {
        uint64_t agent; /* the connection of who reads the files for it; 0: this is no reader */
        uint64_t rank;
        el_usec heard; /* when it last took something */
    } reader;          /* its number is `id` */
};

struct peer_list {
    struct peer *first, *last;
    unsigned n;
};

struct coordinator {
    struct loop *loop;
    struct coordinator_conf conf;
    char name[64];
    struct el_mem mem;
    uint64_t coord; /* 64 random bits of this start */
    struct el_rng rng;
    el_usec since;
    struct journal *journal;
    struct journal_set known; /* what the journal knew at the start */
    struct job *job[COORDINATOR_JOBS_MAX];
    size_t jobs;
    struct purse *purses[COORDINATOR_PURSES];
    uint64_t purse_seed[2];
    uint64_t job_ids;
    struct peer **slot; /* connections by the low bits of their number */
    uint32_t *free_slot;
    unsigned slots, free_slots;
    uint64_t conns;
    struct peer_list fresh, asking, closing;
    unsigned readers; /* of those that ask */
    unsigned waiting; /* of the fresh */
    unsigned births;  /* in the turn that began at birth_turn */
    el_usec birth_turn;
    struct loop_timer *timer;
    struct el_buf out; /* the message being sent */
    char piece[COORDINATOR_PIECE];
    const struct peer *hearing; /* what it has sent is at hand */
    struct {
        el_usec second;
        unsigned lines, dropped;
    } brake;
};

/* job_memory_io.c */
struct purse *job_memory_of(struct coordinator *c,
                            const struct el_addr *addr); /* one more user of it; NULL: no memory */
void job_memory_leave(struct purse *of);                 /* one less; of may be NULL */
/* A job that never formed a round goes, because others need `what` of it.  False: there is none. */
bool job_memory_give_up_one(struct coordinator *c, const char *what);

/* coordinator_io.c */
struct job *coordinator_job(struct coordinator *c, const char *run_id);
void coordinator_job_free(struct coordinator *c, size_t i); /* its members are cut off */
void coordinator_step(struct coordinator *c, struct job *job, const struct rdzv_event *ev);
void coordinator_hello(struct coordinator *c, struct peer *p, const struct msg *m);
void coordinator_closed(struct coordinator *c, uint64_t job, unsigned member, uint64_t conn);
struct job *coordinator_job_by_id(struct coordinator *c, uint64_t id);
void coordinator_rearm(struct coordinator *c);
/* Before something that takes time and comes from many: an order that is on its way to each goes on. */
void coordinator_hurry(struct coordinator *c, struct job *job);
/* Lines that strangers can cause: so many a second, then they are counted. */
void coordinator_say(struct coordinator *c, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* coordinator_peer_io.c */
struct peer *peer_find(struct coordinator *c, uint64_t id);
void peer_move(struct peer *p, enum peer_role role);
void peer_free(struct peer *p);
void peer_send(struct peer *p, const struct msg *m);
void peer_finish(struct peer *p); /* nothing more is said to it */
void peer_refuse(struct peer *p, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *peer_name(const struct peer *p, char text[EL_ADDR_TEXT_MAX]);
struct rdzv_peer peer_ends(const struct peer *p);
void peer_hear_waiting(struct coordinator *c); /* as many as have a turn now */

/* coordinator_command_io.c */
void command_take(struct coordinator *c, struct peer *p, const struct msg *m);
void command_done(struct peer *p, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void command_rows(struct coordinator *c, el_usec now); /* rows that are due */
el_usec command_deadline(const struct coordinator *c);

/* coordinator_logs_io.c: a worker's output on its way from the agent that reads it to a command */
void reader_ask(struct coordinator *c, struct peer *p, struct job *job, const struct msg_logs *m);
void reader_text(struct coordinator *c, const struct peer *agent, const struct msg_logs_text *m);
void reader_next(struct peer *p, const struct msg_logs_next *m);
void reader_beat(struct peer *p, el_usec now); /* a reader whose time has come */
/* The peer says and hears nothing more: its agent is told of a reader, its readers of an agent. */
void reader_forget(struct peer *p);

#endif
