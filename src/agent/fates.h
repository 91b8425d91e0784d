/* What has become of the last steps that were to be on disk.  It is told to the workers that are there (EVENT), and
 * they may be killed before they ask; so those that are started after them are told once more.  The list is pure;
 * fates_io.c tells it. */
#ifndef AGENT_FATES_H
#define AGENT_FATES_H
#include <stdint.h>

struct run_conf;
struct wmsg_event;
struct wsock;

#define FATES_MAX  16u /* a new connection takes so many packets at once, whatever its buffers are */
#define FATES_TEXT 512u

struct fate {
    int64_t step;
    char kind[32], why[FATES_TEXT]; /* of the EVENT */
};

struct fates {
    unsigned n;
    struct fate v[FATES_MAX]; /* the oldest first */
};

/* The last word of a step counts; what is not settled by it ("persisted") is not kept. */
void fates_add(struct fates *f, const char *kind, int64_t step, const char *why);
/* The job has gone back: later steps will be other ones. */
void fates_forget_behind(struct fates *f, int64_t step);

/* To all workers, now. */
void fates_event(struct fates *f, struct wsock *sock, unsigned workers, const struct wmsg_event *ev);
/* To one who is new. */
void fates_welcome(const struct fates *f, struct wsock *sock, unsigned worker);
/* What they go back to is a checkpoint, of an earlier job perhaps. */
void fates_found(struct fates *f, struct wsock *sock, unsigned workers, const struct run_conf *run, int64_t step);

#endif
