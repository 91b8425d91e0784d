/* The all-gather that a pair of ranks is judged by: sizes, counts and times. */
#ifndef CHILD_GATHER_H
#define CHILD_GATHER_H
#include "child.h"
#include "cuda.h"
#include "libs.h"

#define NCCL_ID_BYTES 128
struct nccl_id {
    char bytes[NCCL_ID_BYTES];
};

enum { NCCL_IN_PROGRESS = 7, NCCL_INT8 = 0 };

/* All return an ncclResult_t.  The second word: must it be there? */
#define NCCL_LIST(X)                                                                                                   \
    X(ncclGetVersion, true, (int *))                                                                                   \
    X(ncclGetUniqueId, true, (struct nccl_id *))                                                                       \
    X(ncclCommInitRank, true, (void **, int, struct nccl_id, int))                                                     \
    X(ncclCommInitRankConfig, false, (void **, int, struct nccl_id, int, void *)) /* 2.14 */                           \
    X(ncclCommInitAll, true, (void **, int, const int *))                                                              \
    X(ncclCommGetAsyncError, true, (void *, int *))                                                                    \
    X(ncclCommAbort, true, (void *))                                                                                   \
    X(ncclAllGather, true, (const void *, void *, size_t, int, void *, void *))                                        \
    X(ncclGroupStart, true, (void))                                                                                    \
    X(ncclGroupEnd, true, (void))

struct nccl {
    struct lib lib;
    int version;
#define X(name, must, arguments) int(*name) arguments;
    NCCL_LIST(X)
#undef X
    const char *(*ncclGetErrorString)(int);
    const char *(*ncclGetLastError)(void *); /* 2.13; NULL before */
};

void nccl_open(struct nccl *nc, const char *option, const char *purelib);
/* Ends the process if code is an error. */
void nccl_must(const struct nccl *nc, int code);

/* The ranks of this process in a communicator of two. */
struct gather {
    const struct cuda *cu;
    const struct nccl *nc;
    unsigned local, first; /* how many ranks are here, and the first of them */
    struct gather_rank {
        int device;
        void *comm, *stream;
        char *buffer; /* of the all-gather, in place: all ranks' parts */
    } rank[2];
    char *host; /* page-locked */
    void *events[CUDA_EVENTS_MAX + 1];
};

/* comm and device of each rank are set: makes the rest. */
void gather_prepare(struct gather *g);

/* Waits until NCCL has done what it was asked. */
void gather_settle(const struct gather *g);

struct gather_plan {
    int rail;
    bool quick;
    unsigned init_ms, step_ms;
    const char *only; /* NULL: all steps; else the name of the one bandwidth metric */
};

/* Runs and prints the steps; ends the process with the line that says why it could not. */
void gather_run(struct gather *g, const struct gather_plan *p);

/* Gives the memory of the GPUs back. */
void gather_release(struct gather *g);

#endif
