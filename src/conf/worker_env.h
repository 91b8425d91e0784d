/* The environment of a worker: what elrun inherited, with the rows of one table added, replaced or taken out.
 * A variable that is not in the table is neither set nor changed (torchrun's names, and elrun's own). */
#ifndef CONF_WORKER_ENV_H
#define CONF_WORKER_ENV_H
#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/mem.h"

/* Where a worker stands in its round.  Strings may be NULL where the comment says so. */
struct worker_place {
    unsigned rank, local_rank, group_rank, role_rank;
    unsigned world, local_world, group_world, role_world;
    const char *role;
    const char *master_addr;
    unsigned master_port;
    unsigned restart_count, max_restarts;
    const char *run_id;
    bool use_agent_store;
    const char *error_file;        /* NULL: no logs are kept, the variable is empty */
    const char *signals_to_handle; /* as given on the command line */
    bool virtual_local_rank;       /* LOCAL_RANK 0 and one visible device each */
    uint64_t round, coord;         /* the round is this pair */
    unsigned world_first;          /* world size of the job's first round */
    const char *snapshot_socket;   /* NULL: no snapshots are taken */
    const char *python_path;       /* the whole of PYTHONPATH; NULL: as inherited */
    unsigned world_previous;       /* of the round before this one; in the first round: world */
};

/* How a row comes about. */
enum worker_env_rule {
    WORKER_ENV_SET,     /* always, whatever was inherited */
    WORKER_ENV_DEFAULT, /* only if nothing was inherited: the user's value wins */
    WORKER_ENV_OURS,    /* set, or not there: an inherited one was meant for another elrun's worker */
    WORKER_ENV_REMOVED, /* never reaches a worker */
};

struct worker_env_row {
    const char *name;
    enum worker_env_rule rule;
    const char *meaning; /* one sentence; elrun.1 is checked against the names */
};

/* The table, ended by a NULL name. */
extern const struct worker_env_row worker_env_table[];

/* Whether the workers get OMP_NUM_THREADS=1 from us, as from torchrun: several workers, and nothing inherited.
 * The agent says so once, in one line. */
bool worker_env_limits_threads(char *const *inherited, unsigned local_world);

/* The worker's envp, NULL at the end: one block of mem, to be freed by el_free(mem, envp).  The inherited strings are
 * not copied and must outlive it.  NULL and *e if the memory's limit is reached, or if --virtual-local-rank asks for a
 * device that CUDA_VISIBLE_DEVICES does not have. */
char **worker_env_new(struct el_mem *mem, char *const *inherited, const struct worker_place *place, struct el_err *e);

#endif
