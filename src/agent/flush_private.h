/* What flush_io.c (one node alone) and ckpt_writer_io.c (one of several) share. */
#ifndef AGENT_FLUSH_PRIVATE_H
#define AGENT_FLUSH_PRIVATE_H
#include "agent/node.h"
#include "snapshot/disk.h"
#include "snapshot/slot_table.h"
#include "snapshot/flush.h"
#include "snapshot/shm_slots.h"

struct flush_io {
    struct node *node;
    struct disk *disk;
    struct el_mem mem;
    struct flush *core;
    struct chest **chest; /* by worker; what is being written from */
    struct disk_files *files;
    struct disk_about about;
    uint64_t bytes, counter;
    el_usec began;
    bool emergency; /* the workers are ending: the newest step is to be on disk */
    bool failed;    /* the last one could not be written */
    struct loop_timer *tick;
    const char *layout_id;
    char progress[96];
    bool shown;
    el_usec on_disk_at; /* the newest checkpoint that was committed here: when, and what was said of it */
    char said[CKPT_PATH_MAX + 700];
    int64_t failed_step; /* the last one that is not on disk, and why; SLOT_TABLE_NO_STEP: none since */
    char failed_why[MSG_TEXT_MAX + 1];
    int64_t
        owed; /* the script wanted it on disk, where neither it nor a later one is, and why; SLOT_TABLE_NO_STEP: none */
    char owed_why[MSG_TEXT_MAX + 1];

    uint64_t asked, answered; /* several nodes: operators' wishes, and the last one that has its answer */
    int answer_status;
    char answer[CKPT_PATH_MAX + 700];

    bool sets_aside;        /* as soon as the disk has nothing to do: what is beyond this step and not of its lineage */
    bool clears;            /* … which is being done */
    struct disk_about back; /* what all went on from last, and the lineage of what follows */

    void (*left)(struct node *n); /* who waits for the end of all this */
    int64_t given_up;             /* the step that nobody waits for any more; SLOT_TABLE_NO_STEP: none */
    unsigned signals;             /* that would have ended the job, so far; and the last of them */
    int signal;
    el_usec left_at; /* … until then; EL_NEVER: as long as bytes move */
    uint64_t seen_bytes;
    el_usec moved;

    struct ckpt_writer *saver; /* ckpt_writer_io.c; NULL: this node is alone */
};

/* flush_say_io.c */
/* promised: to the script, which was not kept. */
void flush_io_say_failed(struct flush_io *p, int64_t step, bool emergency, bool promised, const char *why);
void flush_io_say_committed(struct flush_io *p, bool existed, const char *trouble);
void flush_io_owe(struct flush_io *p, int64_t step, const char *why); /* a promise to the script is not kept */
void flush_io_show(struct flush_io *p);                               /* how far a long write is, in the status line */
/* Among several nodes: what has become of a step, for people and workers that ask here. */
void flush_io_note_saved(struct flush_io *p, const struct member_save *x, const char *where);
bool flush_io_note_answer(struct flush_io *p, const struct member_save *x); /* it is to the last wish */
void flush_io_note_failed(struct flush_io *p, int64_t step, const char *why);
const char *flush_io_size(uint64_t bytes, char to[32]);

/* flush_io.c */
struct disk_files *flush_io_new_files(struct flush_io *p, size_t n);
/* Adds what lies in a slot to p->files; number: of its file, where the script has not named it. */
void flush_io_add_file(struct flush_io *p, const struct slot_table_source *from, unsigned number);
bool flush_io_own_names(struct flush_io *p); /* false: no memory */
void flush_io_let_go(struct flush_io *p);    /* of the slots that were written from */
void flush_io_forget_files(struct flush_io *p);
void flush_io_tick_at(struct flush_io *p, el_usec at);

/* ckpt_writer_io.c */
int ckpt_writer_init(struct flush_io *p, struct el_err *e);
void ckpt_writer_free(struct flush_io *p);
void ckpt_writer_round(struct flush_io *p);
void ckpt_writer_committed(struct flush_io *p); /* a slot; or it has turned out to be none */
uint64_t ckpt_writer_ask(struct flush_io *p);   /* the newest step of all nodes, on disk: persisting.answered */
void ckpt_writer_ended(struct flush_io *p);     /* no worker is left */
void ckpt_writer_written(struct flush_io *p, bool good, int broken, const struct el_err *e);
void ckpt_writer_published(struct flush_io *p, bool good, bool existed, const char *trouble, const struct el_err *e);
void ckpt_writer_disk_is_free(struct flush_io *p);
void ckpt_writer_went_back(struct flush_io *p);
void ckpt_writer_moved(struct flush_io *p, uint64_t bytes);

#endif
