/* The disk side of snapshots: the directory of --ckpt-dir, and the thread that writes files of one checkpoint into it
 * and publishes it.  One thing at a time; what is to be written is decided elsewhere (flush.h).  Called in the loop's
 * thread only, and answers come there; neither the loop nor a worker ever waits for the disk. */
#ifndef SNAPSHOT_DISK_H
#define SNAPSHOT_DISK_H
#include "snapshot/commit.h"
#include "loop/pool.h"

struct disk;

struct disk_conf {
    const char *dir;
    enum ckpt_layout layout;
    enum commit_mode mode;
    const char *run_id; /* of the job, "": it has no name that would last */
    bool apart;         /* several nodes write one checkpoint: each order has a stage of its own */
    bool local;         /* … each node into a directory of its own: only the node's part is one */
    unsigned keep_last; /* of the checkpoints that this run wrote; 0: all */
    bool alone;         /* no other agent writes into the directory for this job */
};

/* One file: bytes that stay where they are until the answer, and what they were summed to (chunk_sums.h). */
struct disk_file {
    char name[512];
    const void *image;
    uint64_t bytes;
    const uint32_t *sums;
    const char *part, *shard_id;   /* for the manifest; the caller's, until publishing is over */
    const char *node;              /* "": a shared directory */
    struct manifest_file manifest; /* filled by writing; chunks belong to the files' owner: disk_files_free() */
};

struct disk_files {
    struct el_mem mem;
    struct disk_file *v;
    size_t n;
    struct disk_word *words; /* disk_files_keep() */
};

struct disk_about {
    int64_t step;
    uint64_t lineage;
    uint64_t number, coord, counter; /* of the round, and of the order to write */
    char nonce[CKPT_NONCE_MAX];
    uint64_t world, consumed_samples;
    const char *layout_id;
    bool emergency;
};

struct disk_ops {
    /* All files are written and synced, or *e.  broken: the file whose bytes are not what was summed, or -1. */
    void (*written)(void *ctx, bool good, int broken, const struct el_err *e);
    /* It is a checkpoint, or *e.  existed: somebody else's of the same step stands there.  trouble: what went wrong
     * behind the commit (the hint, old ones that could not be deleted), or "". */
    void (*published)(void *ctx, bool good, bool existed, const char *trouble, const struct el_err *e);
    /* What is to be said of it, or "".  NULL: nobody calls disk_clear() */
    void (*cleared)(void *ctx, const char *said);
};

#define DISK_OPEN_TIME EL_SEC(30)

/* Makes the directory if it is not there, and checks that it is one that can be written to and of this job: NULL and
 * *e, one line.  For the start, before the loop runs: it waits, DISK_OPEN_TIME at most. */
struct disk *disk_open(struct loop *l, struct pool *p, const struct disk_conf *conf, const struct disk_ops *ops,
                       void *ctx, struct el_err *e);
/* After pool_free(). */
void disk_free(struct disk *d);

/* Writes the files into the stage of this commit; then written().  first: nobody has opened the commit before.  The
 * files are the caller's until the answer to the last call that names them. */
void disk_write(struct disk *d, const struct disk_about *about, struct disk_files *files, bool first);

/* Manifest of these files, and the commit; then published().  With conf.local nothing older goes. */
void disk_publish(struct disk *d, const struct disk_about *about, struct disk_files *files);

/* Then cleared(), whatever came of it: DISCARD the stage of this commit, which will not become a checkpoint; TIDY away
 * old checkpoints, now that this step is one; set ASIDE those of later steps (-1: all), which are of a history that was
 * given up: by a rename, for another node's part of them may only be out of sight; but not those of its lineage (0:
 * none), which have been written since. */
enum disk_clear { DISK_DISCARD, DISK_TIDY, DISK_ASIDE };
void disk_clear(struct disk *d, enum disk_clear what, const struct disk_about *about);

/* What is being written is not wanted any more: it fails soon. */
void disk_stop(struct disk *d);
bool disk_is_busy(const struct disk *d);
/* Of what is being written: bytes so far, from any thread's view, and all. */
void disk_progress(const struct disk *d, uint64_t *done_bytes, uint64_t *all_bytes);
const struct ckpt_fs *disk_root(const struct disk *d);
void disk_files_free(struct disk_files *f);

/* A copy of the text that lives as long as the files; NULL: no memory. */
const char *disk_files_keep(struct disk_files *f, const char *text);

/* "shard-00003-model-00001-of-00001.safetensors": the file of the i-th piece, from 1. */
void disk_shard_name(uint64_t number, char out[512]);

#endif
