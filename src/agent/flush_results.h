/* What has become of the last steps that were to be on disk.  Workers are sent it at once (EVENT), and may be
 * killed before they ask; so those that are started after them are sent it once more.  The list is pure;
 * flush_results_io.c sends it. */
#ifndef AGENT_FLUSH_RESULTS_H
#define AGENT_FLUSH_RESULTS_H
#include <stdint.h>

struct run_conf;
struct wmsg_event;
struct worker_sock;

#define FLUSH_RESULTS_MAX  16u /* a new connection takes so many packets at once, whatever its buffers are */
#define FLUSH_RESULTS_TEXT 512u

struct fate {
    int64_t step;
    char kind[32], why[FLUSH_RESULTS_TEXT]; /* of the EVENT */
};

struct flush_results {
    unsigned n;
    struct fate v[FLUSH_RESULTS_MAX]; /* the oldest first */
};

/* The last word of a step counts; what is not settled by it ("persisted") is not kept. */
void flush_results_add(struct flush_results *f, const char *kind, int64_t step, const char *why);
/* The job has gone back: later steps will be other ones. */
void flush_results_forget_behind(struct flush_results *f, int64_t step);

/* To all workers, now. */
void flush_results_event(struct flush_results *f, struct worker_sock *sock, unsigned workers,
                         const struct wmsg_event *ev);
/* To one who is new. */
void flush_results_welcome(const struct flush_results *f, struct worker_sock *sock, unsigned worker);
/* What they go back to is a checkpoint, of an earlier job perhaps. */
void flush_results_found(struct flush_results *f, struct worker_sock *sock, unsigned workers,
                         const struct run_conf *run, int64_t step);

#endif
