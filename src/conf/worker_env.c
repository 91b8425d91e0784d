#include "conf/worker_env.h"

#include "util/env.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/opt.h"

/* X(name, rule, meaning), in the order of the manual. */
#define ENV_LIST(X)                                                                                                    \
    X(RANK, SET, "number of this worker in the job, from 0")                                                           \
    X(LOCAL_RANK, SET, "number of this worker on its node, from 0; always 0 with --virtual-local-rank")                \
    X(GROUP_RANK, SET, "number of this node in the round")                                                             \
    X(GROUP_WORLD_SIZE, SET, "number of nodes in the round")                                                           \
    X(LOCAL_WORLD_SIZE, SET, "number of workers of this node")                                                         \
    X(WORLD_SIZE, SET, "number of workers of the job")                                                                 \
    X(ROLE_NAME, SET, "the string of --role")                                                                          \
    X(ROLE_RANK, SET, "number of this worker among those of its role")                                                 \
    X(ROLE_WORLD_SIZE, SET, "number of workers of this role")                                                          \
    X(MASTER_ADDR, SET, "address of the store of the round")                                                           \
    X(MASTER_PORT, SET, "port of the store of the round")                                                              \
    X(TORCHELASTIC_RESTART_COUNT, SET, "restarts of the job so far, the same number on all nodes")                     \
    X(TORCHELASTIC_MAX_RESTARTS, SET, "the number of --max-restarts")                                                  \
    X(TORCHELASTIC_RUN_ID, SET, "the id of the job")                                                                   \
    X(TORCHELASTIC_USE_AGENT_STORE, SET, "True if elrun hosts the store, False if worker 0 does")                      \
    X(TORCHELASTIC_ERROR_FILE, SET, "file into which torch's @record writes an exception; empty if no logs are kept")  \
    X(TORCHELASTIC_SIGNALS_TO_HANDLE, SET, "the list of --signals-to-handle")                                          \
    X(TORCH_NCCL_ASYNC_ERROR_HANDLING, DEFAULT, "1, unless inherited")                                                 \
    X(OMP_NUM_THREADS, DEFAULT, "1 if the node has more than one worker, unless inherited")                            \
    X(CUDA_VISIBLE_DEVICES, SET,                                                                                       \
      "with --virtual-local-rank this worker's entry of the inherited list; else inherited")                           \
    X(PYTHONFAULTHANDLER, DEFAULT, "1, unless inherited")                                                              \
    X(ELRUN_ROUND, SET, "the round: its number, a point, 16 hexadecimal digits of the coordinator's term")             \
    X(ELRUN_WORLD_SIZE_FIRST, SET, "world size of the job's first round")                                              \
    X(ELRUN_WORLD_SIZE_PREVIOUS, SET, "world size of the round before this one; in the first round WORLD_SIZE")        \
    X(ELRUN_SOCK, OURS,                                                                                                \
      "with --ckpt-mem, --ckpt-dir or --boundary-wait: the socket at which the Python package elrun reaches its "      \
      "agent")                                                                                                         \
    X(PYTHONPATH, SET, "the folder of the Python package elrun, in front of what was inherited")                       \
    X(ELRUN_SECRET, REMOVED, "taken out: a worker has no use for the secret of the job")

enum env_id {
#define X(name, rule, meaning) ENV_ID_##name,
    ENV_LIST(X)
#undef X
        ENV_ID_COUNT
};

const struct worker_env_row worker_env_table[] = {
#define X(name, rule, meaning) {#name, WORKER_ENV_##rule, meaning},
    ENV_LIST(X)
#undef X
        {NULL, WORKER_ENV_SET, NULL},
};

/* n bytes at s; s is NULL if the variable stays as it was inherited. */
struct value {
    const char *s;
    size_t n;
};

static struct value text(const char *s)
{
    return (struct value){s, s ? strlen(s) : 0};
}

bool worker_env_limits_threads(char *const *inherited, unsigned local_world)
{
    return local_world > 1 && !env_get(inherited, "OMP_NUM_THREADS");
}

static bool worker_env_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The local rank's entry of a comma list; torchrun counts commas and cuts white space, whatever the entries are. */
static struct value list_entry(const char *list, unsigned index, unsigned *entries)
{
    struct value v = {NULL, 0};
    *entries = 0;
    for (const char *p = list;; p++) {
        const char *end = strchr(p, ',');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        if ((*entries)++ == index) {
            v = (struct value){p, n};
            while (v.n && worker_env_blank(v.s[v.n - 1]))
                v.n--;
            for (; v.n && worker_env_blank(*v.s); v.n--)
                v.s++;
        }
        if (!end)
            return v;
        p = end;
    }
}

static int cuda_device(char *const *inherited, const struct worker_place *p, char *room, size_t size, struct value *v,
                       struct el_err *e)
{
    const char *list = env_get(inherited, "CUDA_VISIBLE_DEVICES");
    *v = (struct value){NULL, 0};
    if (!p->virtual_local_rank)
        return 0;
    if (!list) {
        snprintf(room, size, "%u", p->local_rank);
        *v = text(room);
        return 0;
    }
    unsigned entries;
    *v = list_entry(list, p->local_rank, &entries);
    if (v->s)
        return 0;
    return el_fail(e, EL_EXIT_CONFIG,
                   "--virtual-local-rank: no device for local rank %u: CUDA_VISIBLE_DEVICES=%.200s "
                   "lists %u",
                   p->local_rank, list, entries);
}

static struct value worker_env_number(char *room, size_t size, unsigned n)
{
    snprintf(room, size, "%u", n);
    return text(room);
}

/* What the row says for this place; room holds it if it is not a string of the place. */
static struct value row_value(enum env_id id, const struct worker_place *p, char *room, size_t size)
{
    switch (id) {
    case ENV_ID_RANK: return worker_env_number(room, size, p->rank);
    case ENV_ID_LOCAL_RANK: return worker_env_number(room, size, p->virtual_local_rank ? 0 : p->local_rank);
    case ENV_ID_GROUP_RANK: return worker_env_number(room, size, p->group_rank);
    case ENV_ID_GROUP_WORLD_SIZE: return worker_env_number(room, size, p->group_world);
    case ENV_ID_LOCAL_WORLD_SIZE: return worker_env_number(room, size, p->local_world);
    case ENV_ID_WORLD_SIZE: return worker_env_number(room, size, p->world);
    case ENV_ID_ROLE_NAME: return text(p->role);
    case ENV_ID_ROLE_RANK: return worker_env_number(room, size, p->role_rank);
    case ENV_ID_ROLE_WORLD_SIZE: return worker_env_number(room, size, p->role_world);
    case ENV_ID_MASTER_ADDR: return text(p->master_addr);
    case ENV_ID_MASTER_PORT: return worker_env_number(room, size, p->master_port);
    case ENV_ID_TORCHELASTIC_RESTART_COUNT: return worker_env_number(room, size, p->restart_count);
    case ENV_ID_TORCHELASTIC_MAX_RESTARTS: return worker_env_number(room, size, p->max_restarts);
    case ENV_ID_TORCHELASTIC_RUN_ID: return text(p->run_id);
    case ENV_ID_TORCHELASTIC_USE_AGENT_STORE: return text(p->use_agent_store ? "True" : "False");
    case ENV_ID_TORCHELASTIC_ERROR_FILE: return text(p->error_file ? p->error_file : "");
    case ENV_ID_TORCHELASTIC_SIGNALS_TO_HANDLE: return text(p->signals_to_handle);
    case ENV_ID_OMP_NUM_THREADS: return text(p->local_world > 1 ? "1" : NULL);
    case ENV_ID_TORCH_NCCL_ASYNC_ERROR_HANDLING:
    case ENV_ID_PYTHONFAULTHANDLER: return text("1");
    case ENV_ID_ELRUN_ROUND:
        snprintf(room, size, "%llu.%016llx", (unsigned long long)p->round, (unsigned long long)p->coord);
        return text(room);
    case ENV_ID_ELRUN_WORLD_SIZE_FIRST: return worker_env_number(room, size, p->world_first);
    case ENV_ID_ELRUN_WORLD_SIZE_PREVIOUS: return worker_env_number(room, size, p->world_previous);
    case ENV_ID_ELRUN_SOCK: return text(p->snapshot_socket);
    case ENV_ID_PYTHONPATH: return text(p->python_path);
    case ENV_ID_CUDA_VISIBLE_DEVICES: /* depends on what was inherited: cuda_device() */
    case ENV_ID_ELRUN_SECRET:
    case ENV_ID_COUNT: break;
    }
    return (struct value){NULL, 0};
}

/* All rows for one worker, before they are laid out. */
struct rows {
    struct value v[ENV_ID_COUNT];
    char room[ENV_ID_COUNT][40];
    unsigned added;
    size_t bytes; /* of the strings to be added */
};

static int rows_fill(struct rows *r, char *const *inherited, const struct worker_place *p, struct el_err *e)
{
    r->added = 0;
    r->bytes = 0;
    for (unsigned i = 0; i < ENV_ID_COUNT; i++) {
        r->v[i] = row_value((enum env_id)i, p, r->room[i], sizeof r->room[i]);
        if (i == ENV_ID_CUDA_VISIBLE_DEVICES && cuda_device(inherited, p, r->room[i], sizeof r->room[i], &r->v[i], e))
            return -1;
        if (worker_env_table[i].rule == WORKER_ENV_DEFAULT && env_get(inherited, worker_env_table[i].name))
            r->v[i].s = NULL;
        if (!r->v[i].s)
            continue;
        r->added++;
        r->bytes += strlen(worker_env_table[i].name) + 1 + r->v[i].n + 1;
    }
    return 0;
}

/* Whether an inherited entry makes room for a row. */
static bool replaced(const struct rows *r, const char *entry)
{
    for (unsigned i = 0; i < ENV_ID_COUNT; i++) {
        size_t n = strlen(worker_env_table[i].name);
        if (strncmp(entry, worker_env_table[i].name, n) == 0 && entry[n] == '=')
            return r->v[i].s || worker_env_table[i].rule == WORKER_ENV_REMOVED ||
                   worker_env_table[i].rule == WORKER_ENV_OURS;
    }
    return false;
}

char **worker_env_new(struct el_mem *mem, char *const *inherited, const struct worker_place *p, struct el_err *e)
{
    assert(p->role && p->master_addr && p->run_id && p->signals_to_handle);
    assert(p->local_rank < p->local_world && p->rank < p->world);
    struct rows r;
    if (rows_fill(&r, inherited, p, e))
        return NULL;
    size_t kept = 0;
    for (char *const *s = inherited; *s; s++)
        kept += !replaced(&r, *s);
    size_t pointers = (kept + r.added + 1) * sizeof(char *);
    char **envp = el_alloc(mem, pointers + r.bytes);
    if (!envp) {
        el_fail(e, EL_EXIT_OSERR, "no memory for the environment of local rank %u (%zu bytes)", p->local_rank,
                pointers + r.bytes);
        return NULL;
    }
    char **slot = envp, *at = (char *)envp + pointers;
    for (char *const *s = inherited; *s; s++)
        if (!replaced(&r, *s))
            *slot++ = *s;
    for (unsigned i = 0; i < ENV_ID_COUNT; i++) {
        if (!r.v[i].s)
            continue;
        size_t n = strlen(worker_env_table[i].name);
        *slot++ = at;
        memcpy(at, worker_env_table[i].name, n);
        at[n] = '=';
        memcpy(at + n + 1, r.v[i].s, r.v[i].n);
        at += n + 1 + r.v[i].n;
        *at++ = 0;
    }
    assert(slot == envp + kept + r.added && at == (char *)envp + pointers + r.bytes);
    return envp; /* the last pointer is NULL already: the block came zeroed */
}
