#include "conf/endpoint.h"
#include "conf/scheduler.h"
#include "lib/tap.h"
#include "util/addr.h"
#include "util/array.h"

#define WORDS_MAX 16
static struct run_conf conf;
static struct endpoint ep;
static struct el_err err;

/* Words divided by blanks; "~" stands for a blank inside a word. */
static int split(const char *from, char *text, size_t size, char **v)
{
    int n = 0;
    snprintf(text, size, "%s", from ? from : "");
    for (char *p = text; *p && n < WORDS_MAX;) {
        v[n++] = p;
        for (; *p && *p != ' '; p++)
            if (*p == '~')
                *p = ' ';
        if (*p)
            *p++ = 0;
    }
    v[n] = NULL;
    return n;
}

/* This host: node0.cluster, 10.0.0.5 and fd00::5.  found: what the endpoint's name resolves to, one address; NULL: no
 * answer. */
static int decide(const char *words, const char *variables, const char *found)
{
    static char text[2][1024];
    static char *argv[WORDS_MAX + 1], *env[WORDS_MAX + 1];
    static uint8_t own[2][16], other[1][16];
    struct endpoint_facts facts = {.hostname = "node0.cluster",
                                   .own = (const uint8_t(*)[16])own,
                                   .own_n = 2,
                                   .found = (const uint8_t(*)[16])other,
                                   .found_n = found != NULL};
    int n = split(words, text[0], sizeof text[0], argv);
    split(variables, text[1], sizeof text[1], env);
    el_addr_parse("10.0.0.5", own[0]);
    el_addr_parse("fd00::5", own[1]);
    if (found)
        el_addr_parse(found, other[0]);
    memset(&err, 0, sizeof err);
    if (conf_parse(n, argv, env, &conf, &err) != CONF_DO_RUN || endpoint_choose(&conf, env, 1000, &ep, &err))
        return -1;
    return endpoint_place(&conf, &facts, &ep, &err);
}

/* --- where ---------------------------------------------------------------------------------------------------------
 */

/* The result as "HOST static node1:29500 rank 0 id none". */
static const char *result(void)
{
    static const char *const kinds[] = {"ALONE", "HOST", "JOIN"};
    static char text[600];
    char rank[24] = "";
    if (ep.kind == ENDPOINT_ALONE)
        return "ALONE";
    if (ep.node_rank >= 0)
        snprintf(rank, sizeof rank, " rank %d", ep.node_rank);
    snprintf(text, sizeof text, "%s%s%s %s:%u%s", kinds[ep.kind], ep.is_static ? " static" : "",
             ep.here_only ? " here" : "", ep.host, ep.port, rank);
    return text;
}

static const struct place_case {
    const char *words, *variables, *found, *want;
} place_cases[] = {
    /* one node */
    {"t.py", NULL, NULL, "ALONE"},
    {"--standalone t.py", "PET_RDZV_ENDPOINT=node9:1", NULL, "ALONE"},
    {"--master-addr=10.0.0.9 --master-port=29500 t.py", NULL, NULL, "ALONE"},
    {"t.py", "SLURM_JOB_NUM_NODES=3", NULL, "ALONE"},
    {"t.py", "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1", NULL, "ALONE"},
    {"--standalone t.py", "SLURM_STEP_NUM_TASKS=4", NULL, "ALONE"},
    {"--nproc-per-node=2 t.py", "SLURM_STEP_NUM_TASKS=4", NULL,
     "78: Slurm has started this command 4 times (SLURM_STEP_NUM_TASKS), and each would be a job of its own; one job: "
     "--nnodes=N --rdzv-endpoint=HOST, the same on all, such as $(scontrol show hostnames $SLURM_JOB_NODELIST | head "
     "-n1); separate jobs: --standalone"},
    {"t.py", "OMPI_COMM_WORLD_SIZE=2", NULL,
     "78: Open MPI has started this command 2 times (OMPI_COMM_WORLD_SIZE), and each would be a job of its own; one "
     "job: "
     "--nnodes=N --rdzv-endpoint=HOST, the same on all, such as the first host's name; separate jobs: --standalone"},
    {"--rdzv-backend=c10d t.py", NULL, NULL, "ALONE"},
    {"--rdzv-backend=c10d --rdzv-endpoint=localhost:0 t.py", NULL, NULL, "ALONE"},
    {"--rdzv-backend=c10d --rdzv-endpoint=node0:29400 t.py", NULL, NULL, "ALONE"},
    {"--rdzv-backend=c10d --rdzv-endpoint=alias t.py", NULL, "10.0.0.5", "ALONE"},
    {"--rdzv-backend=c10d --rdzv-endpoint=node9 t.py", NULL, "10.0.0.9", "JOIN node9:29400"},
    {"--rdzv-backend=c10d --rdzv-endpoint=node9 --rdzv-id= t.py", NULL, "10.0.0.9", "ALONE"},
    {"--rdzv-backend=c10d --rdzv-endpoint=localhost --rdzv-conf is_host=0 t.py", NULL, NULL, "JOIN localhost:29400"},
    {"--rdzv-backend=static --rdzv-endpoint=node9:29500 t.py", NULL, "10.0.0.9", "ALONE"},

    /* several nodes, an endpoint */
    {"--nnodes=2 --rdzv-endpoint=node0 t.py", NULL, NULL, "HOST node0:29400"},
    {"--nnodes=2 --rdzv-endpoint=NODE0.Cluster.:7 t.py", NULL, NULL, "HOST NODE0.Cluster.:7"},
    {"--nnodes=2 --rdzv-endpoint=node0.other t.py", NULL, NULL, "JOIN node0.other:29400"},
    {"--nnodes=2 --rdzv-endpoint=node0.other t.py", NULL, "10.0.0.5", "HOST node0.other:29400"},
    {"--nnodes=2 --rdzv-endpoint=node t.py", NULL, NULL, "JOIN node:29400"},
    {"--nnodes=2 --rdzv-endpoint=cluster t.py", NULL, NULL, "JOIN cluster:29400"},
    {"--nnodes=2 --rdzv-endpoint=. t.py", NULL, NULL, "JOIN .:29400"},
    {"--nnodes=2 --rdzv-endpoint=node1:29500 t.py", NULL, "10.0.0.6", "JOIN node1:29500"},
    {"--nnodes=2 --rdzv-endpoint=node1 t.py", NULL, "127.0.1.1",
     "HOST node1:29400"}, /* the own name, by Debian's habit */
    {"--nnodes=2 --rdzv-endpoint=10.0.0.5:1 t.py", NULL, NULL, "HOST 10.0.0.5:1"},
    {"--nnodes=2 --rdzv-endpoint=10.0.0.6:1 t.py", NULL, NULL, "JOIN 10.0.0.6:1"},
    {"--nnodes=2 --rdzv-endpoint=[fd00::5]:7 t.py", NULL, NULL, "HOST fd00::5:7"},
    {"--nnodes=2 --rdzv-endpoint=fd00:0:0::5 t.py", NULL, NULL, "HOST fd00:0:0::5:29400"},
    {"--nnodes=2 --rdzv-endpoint=[fd00::6]:7 t.py", NULL, NULL, "JOIN fd00::6:7"},
    {"--nnodes=2 --rdzv-endpoint=[fe80::6%eth0]:7 t.py", NULL, NULL, "JOIN fe80::6%eth0:7"},
    {"--nnodes=2 --rdzv-endpoint=127.0.0.1 t.py", NULL, NULL, "HOST 127.0.0.1:29400"},
    {"--nnodes=2 --rdzv-endpoint=[::1]:5 t.py", NULL, NULL, "HOST ::1:5"},
    {"--nnodes=2 --rdzv-endpoint=0.0.0.0 t.py", NULL, NULL, "HOST 0.0.0.0:29400"},
    {"--nnodes=2 --rdzv-endpoint=LocalHost t.py", NULL, NULL, "HOST LocalHost:29400"},
    {"--nnodes=2 --rdzv-endpoint=a.localhost t.py", NULL, NULL, "HOST a.localhost:29400"},
    {"--nnodes=2 --rdzv-endpoint=notlocalhost t.py", NULL, "10.0.0.6", "JOIN notlocalhost:29400"},
    {"--nnodes=2 --rdzv-endpoint=:7 t.py", NULL, NULL, "HOST localhost:7"},
    {"--nnodes=2 --rdzv-endpoint=node1 --rdzv-conf is_host=1 t.py", NULL, "10.0.0.6", "HOST node1:29400"},
    {"--nnodes=2 --rdzv-endpoint=node0 --rdzv-conf is_host=0 t.py", NULL, NULL, "JOIN node0:29400"},
    {"--nnodes=2 --rdzv-endpoint=node0 --node-rank=7 t.py", NULL, NULL, "HOST node0:29400 rank 7"},
    {"--nnodes=2 --rdzv-endpoint=node0 --rdzv-backend=c10d --rdzv-conf rank=1 t.py", NULL, NULL, "HOST node0:29400"},

    /* who names it, in order */
    {"--nnodes=2 t.py", "PET_RDZV_ENDPOINT=node1:7 PET_MASTER_ADDR=node2 MASTER_ADDR=node3", NULL, "JOIN node1:7"},
    {"--nnodes=2 --node-rank=1 t.py", "PET_MASTER_ADDR=node2 PET_MASTER_PORT=9 MASTER_ADDR=node3", NULL,
     "JOIN static node2:9 rank 1"},
    {"--nnodes=2 --node-rank=1 t.py", "MASTER_ADDR=node3 MASTER_PORT=8", NULL, "JOIN static node3:8 rank 1"},
    {"--nnodes=2 --node-rank=1 t.py", "MASTER_ADDR=node3", NULL, "JOIN static node3:29500 rank 1"},
    {"--nnodes=2 --rdzv-backend=c10d t.py", "PET_MASTER_ADDR=node2 MASTER_ADDR=node3", NULL, "JOIN node2:29400"},
    {"--nnodes=2 --rdzv-backend=c10d t.py", "MASTER_ADDR=node3", NULL, "HOST here localhost:29400"},
    {"--nnodes=2 --node-rank=1 --master-addr=[fd00::6] t.py", NULL, NULL, "JOIN static fd00::6:29500 rank 1"},
    {"--nnodes=2 t.py", "SLURM_JOB_NUM_NODES=2 PET_RDZV_ENDPOINT=node0", NULL, "HOST node0:29400"},

    /* static */
    {"--nnodes=2 --master-addr=node0 t.py", NULL, NULL, "HOST static node0:29500 rank 0"},
    {"--nnodes=2 --rdzv-backend=static --rdzv-endpoint=node1:5 --node-rank=1 t.py", NULL, "10.0.0.6",
     "JOIN static node1:5 rank 1"},
    {"--nnodes=2 --rdzv-backend=static --rdzv-endpoint=node1:5 --rdzv-conf rank=1 t.py", NULL, "10.0.0.6",
     "JOIN static node1:5 rank 1"},
    {"--nnodes=2 --master-addr=node0 --node-rank=1 t.py", NULL, NULL, "HOST static node0:29500 rank 1"},
    {"--nnodes=2 --master-addr=vip --node-rank=0 --rdzv-conf is_host=1 t.py", NULL, "10.0.0.9",
     "HOST static vip:29500 rank 0"},
    {"--nnodes=2 --master-addr=late --node-rank=0 t.py", NULL, NULL, "HOST static late:29500 rank 0"},
    {"--nnodes=2 --master-addr=late t.py", NULL, NULL, "JOIN static late:29500 rank 0"},
    {"--nnodes=2 --rdzv-backend=static t.py", NULL, NULL, "HOST static here localhost:29500 rank 0"},

    /* nobody names it */
    {"--nnodes=1:2 t.py", NULL, NULL, "HOST here localhost:29400"},
    {"--nnodes=1:2 --master-port=7 t.py", NULL, NULL, "HOST here localhost:7"},
    {"--nnodes=1:2 --rdzv-conf is_host=false t.py", NULL, NULL, "JOIN here localhost:29400"},
    {"--nnodes=1:2 t.py", "SLURM_JOB_NUM_NODES=1", NULL, "HOST here localhost:29400"},

    /* refused */
    {"--nnodes=1:3 t.py", "SLURM_JOB_NUM_NODES=3", NULL,
     "78: --nnodes=1:3 without --rdzv-endpoint, but Slurm says in SLURM_JOB_NUM_NODES that there is more than one "
     "host: they "
     "would not find each other; want --rdzv-endpoint=HOST, the same on all, such as "
     "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)"},
    {"--nnodes=2 --rdzv-backend=static t.py", "VC_WORKER_NUM=2", NULL,
     "78: --nnodes=2:2 without --rdzv-endpoint, but Volcano says in VC_WORKER_NUM that there is more than one host: "
     "they "
     "would not find each other; want --rdzv-endpoint=HOST, the same on all, such as the name of the first pod"},
    {"--nnodes=2 --rdzv-endpoint=node0:0 t.py", NULL, NULL,
     "78: --rdzv-endpoint=node0:0: port 0 is a different one each time, where the other nodes would not find it; want "
     "a "
     "port from 1 to 65535, or none for 29400"},
    {"--nnodes=2 --master-addr=node1 t.py", NULL, "10.0.0.6",
     "78: no --node-rank, so this is node 0: it must be on the host of --master-addr, node1, which is not this one "
     "(node0.cluster); want --node-rank 1 here, or --rdzv-conf is_host=true if that is this host after all"},
    {"--nnodes=4 --rdzv-backend=static --rdzv-endpoint=10.0.0.6:5 --node-rank=0 t.py", NULL, NULL,
     "78: --node-rank=0: it must be on the host of --rdzv-endpoint, 10.0.0.6, which is not this one (node0.cluster); "
     "want "
     "--node-rank from 1 to 3 here, or --rdzv-conf is_host=true if that is this host after all"},
    {"--nnodes=2 --master-addr=node1 --node-rank=2 t.py", NULL, NULL,
     "78: --node-rank=2: with --nnodes=2 and the static back end want 0 to 1"},
    {"--node-rank=1 t.py", NULL, NULL, "78: --node-rank=1: with --nnodes=1 there is only node 0"},
    {"--rdzv-backend=c10d --rdzv-endpoint=node0 --node-rank=1 t.py", NULL, NULL,
     "78: --node-rank=1: with --nnodes=1 there is only node 0"},
    {"--nnodes=2 --rdzv-endpoint=node0 --rdzv-id= t.py", NULL, NULL,
     "78: --rdzv-id is empty: the nodes of a job know each other by it; want a name, the same on all nodes"},
    {"--nnodes=2 --rdzv-endpoint=node0 --rdzv-id=a\x01z t.py", NULL, NULL,
     "2: --rdzv-id=a\\x01z: want at most 128 bytes of UTF-8 without control characters"},
    {"--nnodes=2 --rdzv-endpoint=node0 --rdzv-id=a\xff t.py", NULL, NULL,
     "2: --rdzv-id=a\\xff: want at most 128 bytes of UTF-8 without control characters"},
    {"--nnodes=2 t.py", "MASTER_ADDR=node1:5", NULL,
     "2: MASTER_ADDR=node1:5: want a host name or an address, without a port"},
    {"--nnodes=2 t.py", "MASTER_ADDR=node1 MASTER_PORT=x", NULL, "2: MASTER_PORT=x: want a port from 1 to 65535"},
    {"--nnodes=2 t.py", "MASTER_ADDR=node1 MASTER_PORT=0", NULL, "2: MASTER_PORT=0: want a port from 1 to 65535"},
};

static void test_place(void)
{
    for (size_t i = 0; i < COUNT_OF(place_cases); i++) {
        const struct place_case *c = &place_cases[i];
        char name[400], got[600];
        int r = decide(c->words, c->variables, c->found);
        if (r)
            snprintf(got, sizeof got, "%d: %s", err.status, err.text);
        else
            snprintf(got, sizeof got, "%s", result());
        snprintf(name, sizeof name, "%s | %s | %s", c->words, c->variables ? c->variables : "-",
                 c->found ? c->found : "-");
        for (char *p = name; *p; p++)
            if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
                *p = '?';
        is_str(got, c->want, name);
    }
}

static void test_lookup(void)
{
    static const uint8_t none[1][16];
    struct endpoint_facts facts = {.hostname = "node0.cluster", .own = none, .found = none};
    static const struct {
        const char *words;
        bool want;
    } cases[] = {
        {"t.py", false},
        {"--nnodes=2 t.py", false},
        {"--nnodes=2 --rdzv-endpoint=node0 t.py", false},
        {"--nnodes=2 --rdzv-endpoint=10.0.0.9 t.py", false},
        {"--nnodes=2 --rdzv-endpoint=[fe80::1%eth0]:1 t.py", false},
        {"--nnodes=2 --rdzv-endpoint=node1 t.py", true},
        {"--rdzv-backend=c10d --rdzv-endpoint=node1 t.py", true},
        {"--rdzv-backend=static --rdzv-endpoint=node1:1 t.py", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        decide(cases[i].words, NULL, NULL);
        is_num(endpoint_wants_lookup(&ep, &facts), cases[i].want, cases[i].words);
    }
    decide("--nnodes=2 --rdzv-endpoint=node0:7 t.py", NULL, "10.0.0.5");
    ok(ep.kind == ENDPOINT_HOST && !ep.note[0], "the own name, and its address is the own one");
    decide("--nnodes=2 --rdzv-endpoint=node0:7 t.py", NULL, "127.0.1.1");
    ok(ep.kind == ENDPOINT_HOST && !ep.note[0], "or that of the loop");
    decide("--nnodes=2 --rdzv-endpoint=node0:7 t.py", NULL, "10.0.0.9");
    is_str(
        ep.note,
        "two hosts are named node0.cluster: this one, and the one at 10.0.0.9:7 that --rdzv-endpoint leads to; give an "
        "address",
        "the own name, and the address of another host: two have that name");
    is_num(ep.kind, ENDPOINT_HOST, "which of them is meant is not guessed");
    decide("--nnodes=2 --node-rank=1 --master-addr=node0 --master-port=7 t.py", NULL, "10.0.0.9");
    is_num(ep.kind, ENDPOINT_JOIN, "but for node 1 of the static back end, which is not node 0");
    decide("--nnodes=2 --rdzv-endpoint=late t.py", NULL, NULL);
    uint8_t self[1][16];
    el_addr_parse("127.0.1.1", self[0]);
    facts.found = (const uint8_t(*)[16])self;
    facts.found_n = 1;
    ok(ep.kind == ENDPOINT_JOIN && !endpoint_place(&conf, &facts, &ep, &err) && ep.kind == ENDPOINT_HOST,
       "a name that gets its answer late");
    decide("--nnodes=2 --master-addr=late t.py", NULL, NULL);
    el_addr_parse("10.0.0.9", self[0]);
    ok(ep.kind == ENDPOINT_JOIN && endpoint_place(&conf, &facts, &ep, &err) == -1 && err.status == EL_EXIT_CONFIG,
       "and which shows that node 0 is elsewhere");
}

/* --- the job's name ------------------------------------------------------------------------------------------------
 */

static void test_run_id(void)
{
    char first[MSG_RUN_ID_MAX + 1];
    decide("--nnodes=1:2 t.py --lr 1", NULL, NULL);
    snprintf(first, sizeof first, "%s", ep.run_id);
    is_str(ep.run_id, "local-1000-4ee62a3be1a8bdcc", "uid and a hash of the command line");
    is_str(ep.note, "no --rdzv-endpoint: only agents on this host can join (localhost:29400)", "one line says so");
    decide("--nnodes=1:2 --node-rank=1 --nproc-per-node=4 --log-dir=x t.py --lr 1", NULL, NULL);
    is_str(ep.run_id, first, "options of one node do not count");
    decide("--nnodes=1:2 t.py --lr 2", NULL, NULL);
    ok(strcmp(ep.run_id, first) != 0, "other words are another job");
    decide("--nnodes=1:2 t.py --lr1", NULL, NULL);
    ok(strcmp(ep.run_id, first) != 0, "so are the same bytes in other words");
    decide("--nnodes=1:2 -m t.py --lr 1", NULL, NULL);
    ok(strcmp(ep.run_id, first) != 0, "so is a module of that name");
    decide("--nnodes=1:2 --rdzv-id=mine t.py", NULL, NULL);
    is_str(ep.run_id, "mine", "a name that somebody chose stays");
    decide("--nnodes=1:2 --rdzv-id=none t.py", NULL, NULL);
    is_str(ep.run_id, "none", "also this one");
    decide("--nnodes=1:2 --rdzv-id= t.py --lr 1", NULL, NULL);
    ok(strncmp(ep.run_id, "local-1000-", 11) == 0, "an empty one is none");
    decide("--nnodes=2 --rdzv-endpoint=node0 t.py", NULL, NULL);
    ok(!strcmp(ep.run_id, "none") && !*ep.note, "torchrun's default where an endpoint is named");
}

static void test_command(void)
{
    char text[12];
    decide("--nnodes=2 t.py --lr 1", NULL, NULL);
    is_str(endpoint_command(&conf, text, sizeof text), "t.py --lr 1", "script and words");
    is_str(endpoint_command(&conf, text, 8), "t.py --", "cut in a word");
    is_str(endpoint_command(&conf, text, 5), "t.py", "cut between words");
    is_str(endpoint_command(&conf, text, 1), "", "no room");
    char more[128];
    decide("--nnodes=2 t.py --hf-token=abc --wandb_api_key abc x --db-PASSWORD abc --secrets --lr 1 --token", NULL,
           NULL);
    is_str(endpoint_command(&conf, more, sizeof more),
           "t.py --hf-token=*** --wandb_api_key *** x --db-PASSWORD *** --secrets --lr 1 --token",
           "what is for nobody else is not shown");
}

/* --- schedulers ----------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *env, *variable;
    unsigned hosts;
} scheduler_cases[] = {
    {"", NULL, 0},
    {"SLURM_JOB_NUM_NODES=1 SLURM_NNODES=1", NULL, 0},
    {"SLURM_STEP_NUM_NODES=1 SLURM_JOB_NUM_NODES=4", "SLURM_JOB_NUM_NODES", 4},
    {"SLURM_NNODES=4 SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NUM_NODES", 2},
    {"SLURM_NNODES=x", NULL, 0},
    {"SLURM_NNODES=99999999", "SLURM_NNODES", 65536},
    {"PBS_NUM_NODES=2", "PBS_NUM_NODES", 2},
    {"LSB_MCPU_HOSTS=a~4~b~4", "LSB_MCPU_HOSTS", 2},
    {"LSB_MCPU_HOSTS=a~8~", NULL, 0},
    {"LSB_HOSTS=a~a~a", NULL, 0},
    {"LSB_HOSTS=a~a~b", "LSB_HOSTS", 2},
    {"LSB_HOSTS=", NULL, 0},
    {"NHOSTS=3", "NHOSTS", 3},
    {"FLUX_JOB_NNODES=3", "FLUX_JOB_NNODES", 3},
    {"SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_HOSTS", 2},
    {"SM_HOSTS=[\"algo-1\"]", NULL, 0},
    {"SKYPILOT_NUM_NODES=2", "SKYPILOT_NUM_NODES", 2},
    {"AZUREML_NODE_COUNT=2", "AZUREML_NODE_COUNT", 2},
    {"VC_WORKER_NUM=2", "VC_WORKER_NUM", 2},
    {"WORLD_SIZE=2", NULL, 0},
    {"WORLD_SIZE=2 KUBERNETES_SERVICE_HOST=10.0.0.1", "WORLD_SIZE", 2},
    {"OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=8", NULL, 0},
    {"OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=4", "OMPI_COMM_WORLD_SIZE", 2},
    {"OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=0", NULL, 0},
    {"PMI_SIZE=3", NULL, 0},
    {"PMI_SIZE=3 MPI_LOCALNRANKS=2", "PMI_SIZE", 2},
};

static void test_schedulers(void)
{
    for (size_t i = 0; i < COUNT_OF(scheduler_cases); i++) {
        char text[256], *env[WORDS_MAX + 1];
        struct scheduler_finding found = {.variable = NULL};
        split(scheduler_cases[i].env, text, sizeof text, env);
        bool any = scheduler_find(env, &found);
        is_str(any ? found.variable : NULL, scheduler_cases[i].variable, scheduler_cases[i].env);
        is_num(found.hosts, scheduler_cases[i].hosts, "so many hosts");
        ok(!any || (*found.system && *found.advice), "and what to do");
    }
}

int main(void)
{
    test_place();
    test_lookup();
    test_run_id();
    test_command();
    test_schedulers();
    return done();
}
