/* What persist_io.c (one node alone) and saving_io.c (one of several) share. */
#ifndef AGENT_PERSIST_PRIVATE_H
#define AGENT_PERSIST_PRIVATE_H
#include "agent/node.h"
#include "snapshot/disk.h"
#include "snapshot/keeper.h"
#include "snapshot/persist.h"
#include "snapshot/vault.h"

struct persisting {
    struct node *node;
    struct disk *disk;
    struct el_mem mem;
    struct persist *core;
    struct chest **chest; /* by worker; what is being written from */
    struct disk_files *files;
    struct disk_about about;
    uint64_t bytes, counter;
    el_usec began;
    bool last_words; /* the workers are ending: the newest step is to be on disk */
    bool failed;     /* the last one could not be written */
    struct loop_timer *tick;
    const char *layout_id;
    char progress[96];
    bool shown;
    el_usec on_disk_at; /* the newest checkpoint that was committed here: when, and what was said of it */
    char said[CKPT_PATH_MAX + 700];
    int64_t failed_step; /* the last one that is not on disk, and why; KEEPER_NO_STEP: none since */
    char failed_why[MSG_TEXT_MAX + 1];
    int64_t owed; /* the script wanted it on disk, where neither it nor a later one is, and why; KEEPER_NO_STEP: none */
    char owed_why[MSG_TEXT_MAX + 1];

    uint64_t asked, answered; /* several nodes: operators' wishes, and the last one that has its answer */
    int answer_status;
    char answer[CKPT_PATH_MAX + 700];

    bool sets_aside;        /* as soon as the disk has nothing to do: what is beyond this step and not of its lineage */
    bool clears;            /* … which is being done */
    struct disk_about back; /* what all went on from last, and the lineage of what follows */

    void (*left)(struct node *n); /* who waits for the end of all this */
    int64_t given_up;             /* the step that nobody waits for any more; KEEPER_NO_STEP: none */
    unsigned signals;             /* that would have ended the job, so far; and the last of them */
    int signal;
    el_usec left_at; /* … until then; EL_NEVER: as long as bytes move */
    uint64_t seen_bytes;
    el_usec moved;

    struct saver *saver; /* saving_io.c; NULL: this node is alone */
};

/* persist_say_io.c */
/* promised: to the script, which was not kept. */
void persisting_say_failed(struct persisting *p, int64_t step, bool lastwords, bool promised, const char *why);
void persisting_say_committed(struct persisting *p, bool existed, const char *trouble);
void persisting_owe(struct persisting *p, int64_t step, const char *why); /* a promise to the script is not kept */
void persisting_show(struct persisting *p); /* how far a long write is, in the status line */
/* Among several nodes: what has become of a step, for people and workers that ask here. */
void persisting_note_saved(struct persisting *p, const struct member_save *x, const char *where);
bool persisting_note_answer(struct persisting *p, const struct member_save *x); /* it is to the last wish */
void persisting_note_failed(struct persisting *p, int64_t step, const char *why);
const char *persisting_size(uint64_t bytes, char to[32]);

/* persist_io.c */
struct disk_files *persisting_new_files(struct persisting *p, size_t n);
/* Adds what lies in a slot to p->files; number: of its file, where the script has not named it. */
void persisting_add_file(struct persisting *p, const struct keeper_source *from, unsigned number);
bool persisting_own_names(struct persisting *p); /* false: no memory */
void persisting_let_go(struct persisting *p);    /* of the slots that were written from */
void persisting_forget_files(struct persisting *p);
void persisting_tick_at(struct persisting *p, el_usec at);

/* saving_io.c */
int saver_init(struct persisting *p, struct el_err *e);
void saver_free(struct persisting *p);
void saver_round(struct persisting *p);
void saver_committed(struct persisting *p); /* a slot; or it has turned out to be none */
uint64_t saver_ask(struct persisting *p);   /* the newest step of all nodes, on disk: persisting.answered */
void saver_ended(struct persisting *p);     /* no worker is left */
void saver_written(struct persisting *p, bool good, int broken, const struct el_err *e);
void saver_published(struct persisting *p, bool good, bool existed, const char *trouble, const struct el_err *e);
void saver_disk_is_free(struct persisting *p);
void saver_went_back(struct persisting *p);
void saver_moved(struct persisting *p, uint64_t bytes);

#endif
