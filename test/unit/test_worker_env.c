#include "conf/worker_env.h"
#include "util/env.h"

#include "lib/tap.h"

static const struct worker_place place = {
    .rank = 5,
    .local_rank = 1,
    .group_rank = 2,
    .role_rank = 5,
    .world = 8,
    .local_world = 2,
    .group_world = 4,
    .role_world = 8,
    .role = "default",
    .master_addr = "10.0.0.7",
    .master_port = 29511,
    .restart_count = 3,
    .max_restarts = 9,
    .run_id = "job-1",
    .use_agent_store = true,
    .error_file = "/logs/1/error.json",
    .signals_to_handle = "SIGTERM,SIGINT",
    .round = 4,
    .coord = 0xabcdef,
    .world_first = 16,
    .world_previous = 6,
};

static struct el_mem mem;

static unsigned length(char *const *env)
{
    unsigned n = 0;
    while (env[n])
        n++;
    return n;
}

static void test_table(void)
{
    static const struct {
        const char *name, *value;
    } want[] = {
        {"RANK", "5"},
        {"LOCAL_RANK", "1"},
        {"GROUP_RANK", "2"},
        {"GROUP_WORLD_SIZE", "4"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"WORLD_SIZE", "8"},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", "5"},
        {"ROLE_WORLD_SIZE", "8"},
        {"MASTER_ADDR", "10.0.0.7"},
        {"MASTER_PORT", "29511"},
        {"TORCHELASTIC_RESTART_COUNT", "3"},
        {"TORCHELASTIC_MAX_RESTARTS", "9"},
        {"TORCHELASTIC_RUN_ID", "job-1"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "1"},
        {"PYTHONFAULTHANDLER", "1"},
        {"ELRUN_ROUND", "4.0000000000abcdef"},
        {"ELRUN_WORLD_SIZE_FIRST", "16"},
        {"ELRUN_WORLD_SIZE_PREVIOUS", "6"},
    };
    char *none[] = {NULL};
    char **env = worker_env_new(&mem, none, &place, NULL);
    for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
        is_str(env_get(env, want[i].name), want[i].value, want[i].name);
    is_num(length(env), sizeof want / sizeof *want, "and no other variable");
    unsigned rows = 0;
    for (const struct worker_env_row *r = worker_env_table; r->name; r++, rows++)
        ok(r->meaning && r->meaning[0], r->name);
    is_num(rows, 27, "the table has four rows more: the device, two for snapshots, and the secret that is taken out");
    el_free(&mem, env);
}

static void test_snapshots(void)
{
    char *parent[] = {"PYTHONPATH=/mine", "ELRUN_SOCK=/stale", NULL};
    struct worker_place with = place;
    with.snapshot_socket = "/run/sock";
    with.python_path = "/run/py:/mine";
    char **env = worker_env_new(NULL, parent, &with, NULL);
    is_str(env_get(env, "ELRUN_SOCK"), "/run/sock", "with snapshots a worker has its agent's socket");
    is_str(env_get(env, "PYTHONPATH"), "/run/py:/mine", "and the module in front of what was inherited");
    el_free(NULL, env);
    env = worker_env_new(NULL, parent, &place, NULL);
    is_str(env_get(env, "PYTHONPATH"), "/mine", "without, PYTHONPATH is as it was");
    is_str(env_get(env, "ELRUN_SOCK"), NULL, "and a socket of another elrun is none of this one's");
    el_free(NULL, env);
}

static void test_inherited(void)
{
    char *parent[] = {"HOME=/home/a",
                      "RANK=77",
                      "RANK=78",
                      "RANKING=1",
                      "ELRUN_SECRET=s3cret",
                      "ELRUN_NODE=n1",
                      "OMP_NUM_THREADS=",
                      "TORCH_NCCL_ASYNC_ERROR_HANDLING=3",
                      "PYTHONFAULTHANDLER=0",
                      "no-equals",
                      "CUDA_VISIBLE_DEVICES=4,5",
                      "TORCHELASTIC_TIMER_FILE=/t",
                      "PYTHONPATH=/p",
                      "X=\xff\xfe",
                      NULL};
    char **env = worker_env_new(&mem, parent, &place, NULL);
    is_str(env[0], "HOME=/home/a", "inherited entries stay, in their order");
    ok(env[0] == parent[0], "and are not copied");
    is_str(env_get(env, "RANK"), "5", "a row replaces what was inherited");
    unsigned ranks = 0, bare = 0;
    for (char **s = env; *s; s++) {
        ranks += strncmp(*s, "RANK=", 5) == 0;
        bare += strcmp(*s, "no-equals") == 0;
    }
    is_num(ranks, 1, "every copy of it");
    is_num(bare, 1, "an entry without = passes");
    is_str(env_get(env, "RANKING"), "1", "a longer name is another variable");
    ok(!env_get(env, "ELRUN_SECRET"), "the secret is taken out");
    is_str(env_get(env, "ELRUN_NODE"), "n1", "other ELRUN_ variables pass");
    is_str(env_get(env, "OMP_NUM_THREADS"), "", "set and empty counts as set, as in torchrun");
    is_str(env_get(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3", "the user's NCCL choice wins");
    is_str(env_get(env, "PYTHONFAULTHANDLER"), "0", "the user's fault handler choice wins");
    is_str(env_get(env, "CUDA_VISIBLE_DEVICES"), "4,5", "devices are inherited");
    is_str(env_get(env, "TORCHELASTIC_TIMER_FILE"), "/t", "the timer file is inherited");
    is_str(env_get(env, "PYTHONPATH"), "/p", "the path is inherited");
    is_str(env_get(env, "X"), "\xff\xfe", "bytes pass");
    el_free(&mem, env);
    is_num(mem.used_bytes, 0, "nothing is left allocated");
}

static void test_choices(void)
{
    char *none[] = {NULL}, *omp[] = {"OMP_NUM_THREADS=4", NULL};
    struct worker_place one = place;
    one.local_world = one.local_rank = 1;
    one.local_rank = 0;
    one.use_agent_store = false;
    one.error_file = NULL;
    one.role = "";
    char **env = worker_env_new(&mem, none, &one, NULL);
    ok(!env_get(env, "OMP_NUM_THREADS"), "one worker: threads are left alone");
    is_str(env_get(env, "TORCHELASTIC_USE_AGENT_STORE"), "False", "Python's spelling");
    is_str(env_get(env, "TORCHELASTIC_ERROR_FILE"), "", "no logs: empty, but there");
    is_str(env_get(env, "ROLE_NAME"), "", "an empty role");
    el_free(&mem, env);
    ok(!worker_env_limits_threads(none, 1) && worker_env_limits_threads(none, 2) && !worker_env_limits_threads(omp, 2),
       "the line about threads comes with several workers and nothing inherited");
    struct el_err e = {0};
    mem.fail_after = 0;
    ok(!worker_env_new(&mem, none, &place, &e) && e.status == EL_EXIT_OSERR, "no memory: an error");
    mem.fail_after = -1;
}

static void is_device(char *visible, unsigned local_rank, const char *want, const char *what)
{
    char *parent[] = {visible, NULL};
    struct worker_place p = place;
    p.virtual_local_rank = true;
    p.local_world = 8;
    p.local_rank = local_rank;
    struct el_err e = {0};
    char **env = worker_env_new(&mem, parent, &p, &e);
    is_str(env ? env_get(env, "CUDA_VISIBLE_DEVICES") : NULL, want, what);
    if (env)
        is_str(env_get(env, "LOCAL_RANK"), "0", "LOCAL_RANK is 0");
    else
        is_num(e.status, EL_EXIT_CONFIG, e.text);
    el_free(&mem, env);
}

int main(void)
{
    mem = EL_MEM_INIT(1 << 20);
    test_table();
    test_snapshots();
    test_inherited();
    test_choices();
    is_device(NULL, 3, "3", "no list: the local rank's own number");
    is_device("CUDA_VISIBLE_DEVICES=4,5,6,7", 2, "6", "the list's third entry");
    is_device("CUDA_VISIBLE_DEVICES=4, GPU-ab ,6", 1, "GPU-ab", "white space around an entry is cut");
    is_device("CUDA_VISIBLE_DEVICES=MIG-1/2/3", 0, "MIG-1/2/3", "a slice");
    is_device("CUDA_VISIBLE_DEVICES=", 0, "", "an empty list has one empty entry, as in torchrun");
    is_device("CUDA_VISIBLE_DEVICES=", 1, NULL, "and no second");
    is_device("CUDA_VISIBLE_DEVICES=0,1", 2, NULL, "beyond the list");
    return done();
}
