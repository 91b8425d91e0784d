#include "conf/conf.h"
#include "conf/run_options.h"
#include "lib/tap.h"
#include "util/array.h"
#include "util/log.h"

#define WORDS_MAX 40
static struct run_conf conf;
static struct el_err err;
static char said[256];

static void keep(void *ctx, enum el_level level, const char *text)
{
    (void)ctx;
    snprintf(said, sizeof said, "%s%s", level == EL_WARN ? "warning: " : "", text);
}

/* Words and variables divided by blanks; "~" stands for a blank inside a word. */
static int split(const char *from, char *text, size_t size, char **v)
{
    int n = 0;
    snprintf(text, size, "%s", from ? from : "");
    for (char *p = text; *p && n < WORDS_MAX;) {
        v[n++] = p;
        while (*p && *p != ' ') {
            if (*p == '~')
                *p = ' ';
            p++;
        }
        if (*p)
            *p++ = 0;
    }
    v[n] = NULL;
    return n;
}

static int parse(const char *words, const char *variables)
{
    static char text[2][512];
    static char *v[2][WORDS_MAX + 1];
    int n = split(words, text[0], sizeof text[0], v[0]);
    split(variables, text[1], sizeof text[1], v[1]);
    memset(&err, 0, sizeof err);
    return conf_parse(n, v[0], v[1], &conf, &err);
}

static void test_defaults(void)
{
    is_num(parse("train.py", NULL), CONF_DO_RUN, "a script alone");
    ok(conf.entry == CONF_SCRIPT && !strcmp(conf.script, "train.py") && conf.args_count == 0 && !conf.args[0],
       "script, no words");
    ok(conf.nproc_kind == CONF_NPROC_NUMBER && conf.nproc == 1 && conf.nnodes_min == 1 && conf.nnodes_max == 1,
       "one of all");
    ok(conf.max_restarts == 0 && conf.shutdown_timeout == EL_SEC(30) && !strcmp(conf.role, "default"),
       "no restart, 30 s");
    ok(conf.output.redirects.all && conf.output.redirects.value[0] == OUTPUT_STD_NONE && conf.output.tee.all &&
           !conf.output.ranks_filtered,
       "output inherited");
    ok(conf.worker_store == CONF_STORE_AGENT && conf.exit_code == FAILURE_AS_WORKER && conf.numa == NUMA_OFF,
       "elrun's own");
    ok(conf.interactive == CONF_AUTO && !conf.output.log_dir && !conf.quiet && !conf.verbose && !conf.log_json,
       "terminal and log");
    ok(conf.handled[15] && conf.handled[2] && conf.handled[1] && conf.handled[3] && !conf.handled[10], "four signals");
    ok(conf.run_id_random && !strcmp(conf.rdzv_backend, "c10d") && conf.master_port == -1,
       "one node is as --standalone");
    is_str(conf.signals_to_handle, "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals as text");
    ok(!*conf.output.prefix_template && !*conf.output.filter_stdout && !*conf.output.filter_stderr, "no filters");
}

static void test_script(void)
{
    ok(!parse("train.py --r=16 --nproc-per-node=x -- -m", NULL) && conf.args_count == 4 &&
           !strcmp(conf.args[0], "--r=16") && !strcmp(conf.args[2], "--") && !conf.args[4],
       "what follows the script is the script's, with its own --");
    ok(!parse("-- --odd.py -- x", NULL) && !strcmp(conf.script, "--odd.py") && conf.args_count == 2,
       "-- before the script is dropped");
    ok(!parse("-m package.mod a", NULL) && conf.entry == CONF_MODULE && !strcmp(conf.script, "package.mod"), "-m");
    ok(!parse("--no_python ./prog", NULL) && conf.entry == CONF_PROGRAM, "--no-python");
    ok(!parse("--run-path --no-python -m a.py", NULL) && conf.entry == CONF_SCRIPT, "--run-path wins");
    ok(!parse("--use_env t.py", NULL) && conf.use_env, "torch.distributed.launch's --use_env");
    ok(!parse("-", NULL) && !strcmp(conf.script, "-"), "the script on stdin");
}

static void test_numbers(void)
{
    ok(!parse("--nproc 2 --max 3 --node 0 t.py", NULL) && conf.nproc == 2 && conf.max_restarts == 3,
       "prefixes that are in use");
    ok(!parse("--nproc_per_node=gpu t.py", NULL) && conf.nproc_kind == CONF_NPROC_GPU, "gpu");
    ok(!parse("--nproc_per_node=cpu t.py", NULL) && conf.nproc_kind == CONF_NPROC_CPU, "cpu");
    ok(!parse("--nproc_per_node=xpu t.py", NULL) && conf.nproc_kind == CONF_NPROC_XPU, "xpu");
    ok(!parse("--nproc_per_node=auto t.py", NULL) && conf.nproc_kind == CONF_NPROC_AUTO, "auto");
    ok(!parse("--nproc_per_node=4096 t.py", NULL) && conf.nproc == 4096, "as many as fit");
    ok(!parse("--nnodes 1:4 t.py", NULL) && conf.nnodes_min == 1 && conf.nnodes_max == 4, "a range of nodes");
    ok(!parse("--shutdown-timeout 0.5 t.py", NULL) && conf.shutdown_timeout == EL_MS(500), "half a second");
    ok(!parse("t.py", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7") && conf.shutdown_timeout == EL_SEC(7),
       "torch's own variable");
    ok(!parse("t.py", "PET_SHUTDOWN_TIMEOUT=8 TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7") && conf.shutdown_timeout == EL_SEC(8),
       "PET wins");
    ok(!parse("t.py", "PET_NPROC_PER_NODE=4 PET_MODULE=1 PET_STANDALONE=0") && conf.nproc == 4 &&
           conf.entry == CONF_MODULE && !conf.standalone,
       "PET variables");
    ok(!parse("--monitor-interval 5 --start-method fork t.py", NULL), "accepted without effect");
}

static void test_output(void)
{
    ok(!parse("-r3 -t 0:1,12:3 t.py", NULL) && conf.output.redirects.all && conf.output.redirects.value[0] == 3 &&
           !conf.output.tee.all && conf.output.tee.n == 13 && conf.output.tee.value[12] == 3 &&
           conf.output.tee.value[0] == 1 && conf.output.tee.value[5] == 0,
       "redirects for all, tee for some, two digits");
    ok(!parse("-r 4095:2 t.py", NULL) && conf.output.redirects.n == 4096 && conf.output.redirects.value[4095] == 2,
       "the last local rank");
    ok(!parse("-r 0:3,~1:1~ t.py", NULL) && conf.output.redirects.n == 2, "blanks in the list");
    ok(!parse("--local-ranks-filter 0,~7 t.py", NULL) && conf.output.ranks_filtered && conf.output.rank_shown[0] &&
           conf.output.rank_shown[7] && !conf.output.rank_shown[1],
       "filter");
    ok(!parse("--local-ranks-filter= t.py", NULL) && !conf.output.ranks_filtered, "an empty filter is none");
    ok(!parse("t.py", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=[x]") && !strcmp(conf.output.prefix_template, "[x]"),
       "template by variable");
    ok(!parse("--log-line-prefix-template=[y] t.py", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=[x]") &&
           !strcmp(conf.output.prefix_template, "[y]"),
       "the option wins");
    ok(!parse("-vv --log-format=json t.py", NULL) && conf.verbose == 2 && conf.log_json, "-vv, json");
    ok(!parse("--event-log-handler=console t.py", NULL) && conf.verbose == 1, "events on the console: --verbose");
    ok(!parse("t.py", "LOGLEVEL=DEBUG") && conf.verbose == 1, "LOGLEVEL=DEBUG is --verbose");
    ok(!parse("t.py", "LOGLEVEL=ERROR") && conf.quiet, "LOGLEVEL=ERROR is --quiet");
    ok(!parse("-q t.py", "LOGLEVEL=DEBUG") && conf.quiet && !conf.verbose, "-q wins");
    ok(!parse("-v t.py", "LOGLEVEL=ERROR") && !conf.quiet && conf.verbose, "-v wins");
    ok(!parse("--no-interactive --interactive t.py", NULL) && conf.interactive == CONF_YES, "the last of two");
    ok(!parse("--numa-binding core-complex --exit-code=class --worker-store trainer t.py", NULL) &&
           conf.numa == NUMA_CORE_COMPLEX && conf.exit_code == FAILURE_AS_CLASS &&
           conf.worker_store == CONF_STORE_TRAINER,
       "choices");
}

static void test_checkpoints(void)
{
    ok(!parse("--ckpt-mem=20% t.py", NULL) && conf.ckpt_mem_percent == 20 && !conf.ckpt_mem_bytes, "a share of memory");
    ok(!parse("--ckpt-mem=3G t.py", NULL) && !conf.ckpt_mem_percent && conf.ckpt_mem_bytes == (uint64_t)3 << 30,
       "a size");
    ok(!parse("--ckpt-dir=/d t.py", NULL) && conf.ckpt_mem_percent && !conf.ckpt_rollback_limited, "a directory alone");
    ok(!parse("--ckpt-dir=/d --ckpt-max-rollback=0 t.py", NULL) && conf.ckpt_rollback_limited &&
           !conf.ckpt_max_rollback,
       "no step back is a limit, too");
    ok(!parse("--ckpt-mem=3G --ckpt-check=5 t.py", NULL) && conf.ckpt_check == 5 && !parse("t.py", NULL) &&
           !conf.ckpt_check,
       "every fifth snapshot is compared; without a word none");
    ok(parse("--ckpt-mem=3G --ckpt-check=1000001 t.py", NULL) && parse("--ckpt-mem=3G --ckpt-check=-1 t.py", NULL),
       "not every so many");
    ok(parse("--ckpt-check=1 t.py", NULL) && parse("--ckpt-busy=wait t.py", NULL) &&
           parse("--ckpt-restore-timeout=5 t.py", NULL) && parse("--ckpt-max-rollback=1 t.py", NULL),
       "what is for snapshots wants some");
    ok(!parse("t.py", NULL) && !conf.ckpt_mem_percent && !conf.ckpt_mem_bytes && !conf.ckpt_dir, "off");
}

static void test_hooks(void)
{
    ok(parse("--hook pre-start=a=b --on-incident c --hook-timeout=90ms t.py", NULL) == CONF_DO_RUN, "hooks");
    is_num(conf.hooks_count, 2, "two of them");
    ok(conf.hooks[0].kind == HOOK_PRE_START && conf.hooks[1].kind == HOOK_INCIDENT, "their events");
    is_str(conf.hooks[0].text, "a=b", "the rest is the command");
    is_str(conf.hooks[1].text, "c", "an incident's");
    is_num(conf.hook_timeout, EL_MS(90), "their time");
    char words[HOOK_COMMANDS_MAX * 14 + 32] = "";
    for (int i = 0; i <= HOOK_COMMANDS_MAX; i++)
        strcat(words, "--hook=end=x ");
    strcat(words, "t.py");
    ok(parse(words, NULL) < 0, "one more than there is room for");
    is_str(err.text, "--hook=end=x: at most 32 hooks", "is refused");
}

static void test_signals(void)
{
    said[0] = 0;
    ok(!parse("--signals-to-handle SIGTERM,SIGUSR1 t.py", NULL) && conf.handled[15] && conf.handled[10] &&
           !conf.handled[2] && !said[0],
       "a list of signals");
    ok(!parse("--signals-to-handle SIGTERM,SIGNOSUCH t.py", NULL) && conf.handled[15], "an unknown name is left out");
    is_str(said, "warning: --signals-to-handle: SIGNOSUCH is no signal's name; it is left out", "with a warning");
    ok(!parse("--signals-to-handle SIGKILL t.py", NULL) && !conf.handled[9], "SIGKILL cannot be handled");
    is_str(said, "warning: --signals-to-handle: SIGKILL is a signal that elrun cannot handle; it is left out",
           "and is named");
}

static void test_rendezvous(void)
{
    ok(!parse("--rdzv-id job7 t.py", NULL) && !conf.run_id_random && !strcmp(conf.rdzv_id, "job7"),
       "a run id somebody chose stays");
    ok(!parse("--standalone --rdzv-id job7 t.py", NULL) && conf.run_id_random, "but not with --standalone");
    ok(!parse("--rdzv-id= t.py", NULL) && conf.run_id_random, "an empty one is random");
    ok(!parse("--rdzv_backend=c10d --rdzv_endpoint=[fe80::1%eth0]:29400 t.py", NULL) && conf.rdzv_port == 29400 &&
           !strcmp(conf.rdzv_host, "fe80::1%eth0") && !conf.run_id_random && !strcmp(conf.rdzv_id, "none"),
       "IPv6 endpoint");
    ok(!parse("--rdzv_backend=c10d --rdzv_endpoint=::1 t.py", NULL) && conf.rdzv_port == -1 &&
           !strcmp(conf.rdzv_host, "::1"),
       "IPv6 without brackets has no port");
    ok(!parse("--rdzv_backend=c10d --rdzv_endpoint=host t.py", NULL) && conf.rdzv_port == -1, "no port");
    ok(!parse("--rdzv_backend=c10d --rdzv_endpoint=:0 t.py", NULL) && conf.rdzv_port == 0 && !*conf.rdzv_host,
       "no host");
    ok(!parse("--master-port 29501 t.py", NULL) && !strcmp(conf.rdzv_backend, "static") && conf.rdzv_port == 29501 &&
           !strcmp(conf.rdzv_host, "127.0.0.1"),
       "a master port makes it static");
    ok(!parse("--master-port 0 t.py", NULL) && conf.master_port == -1 && !strcmp(conf.rdzv_backend, "c10d"),
       "0 is a free one");
    ok(!parse("--rdzv-endpoint h:7 t.py", NULL) && !strcmp(conf.rdzv_host, "h") && conf.rdzv_port == 7,
       "static with endpoint");
    ok(!parse("--rdzv-conf join_timeout=5,~is_host=True,store_type=tcp t.py", NULL), "known keys");
    ok(!parse("--rdzv-endpoint=h t.py", NULL) && !strcmp(conf.rdzv_host, "h") && conf.rdzv_port == -1 &&
           !conf.backend_given,
       "an endpoint without port, if nobody has said static");
    ok(!parse("t.py", "PET_RDZV_BACKEND=c10d PET_NODE_RANK=0") && conf.backend_given && conf.node_rank_given,
       "variables count as said");
    ok(!parse("--rdzv-backend=static --master-port=1 --rdzv-conf rank=2 t.py", NULL) && conf.node_rank == 2 &&
           conf.node_rank_given,
       "rank= is the node rank of the static back end");
    ok(!parse("--rdzv-backend=static --master-port=1 --rdzv-conf rank=2 --node-rank=1 t.py", NULL) &&
           conf.node_rank == 1,
       "--node-rank wins");
    ok(!parse("--rdzv-backend=c10d --rdzv-conf rank=2 t.py", NULL) && !conf.node_rank_given, "c10d knows no rank=");
}

static void test_rounds(void)
{
    ok(!parse("t.py", NULL) && conf.node_unit == 1 && conf.max_fruitless == 10 && conf.settle == EL_SEC(3) &&
           conf.scale_up_delay == EL_SEC(1) && conf.reconnect_grace == EL_MS(100) && !conf.replace_wait &&
           !conf.stable_window && !conf.boundary_wait && !conf.coordinator_timeout && !conf.restart_window,
       "defaults of rounds");
    ok(conf.join_timeout == EL_SEC(600) && conf.last_call == EL_SEC(30) && conf.keep_alive_interval == EL_SEC(1) &&
           conf.keep_alive_attempts == 5 && conf.is_host == CONF_AUTO && !conf.use_hostname && !conf.rdzv_idle,
       "defaults of --rdzv-conf");
    ok(!parse("t.py", "PET_RDZV_CONF=join_timeout=7,last_call_timeout=0,keep_alive_interval=0.2,"
                      "keep_alive_max_attempt=3,is_host=0,use_hostname=yes") &&
           conf.join_timeout == EL_SEC(7) && !conf.last_call && conf.keep_alive_interval == EL_MS(200) &&
           conf.keep_alive_attempts == 3 && conf.is_host == CONF_NO && conf.use_hostname,
       "each key that means something");
    ok(!parse("--rdzv-conf join_timeout=7,join_timeout=8,is_host=1 t.py", NULL) && conf.join_timeout == EL_SEC(8) &&
           conf.is_host == CONF_YES,
       "the last of two keys");
    said[0] = 0;
    conf_say_idle_keys(&conf);
    is_str(said, "", "nothing to say about keys that work");
    ok(!parse("--rdzv-conf timeout=5,timeout=900,join_timeout=1 t.py", NULL), "a key of torchrun's static back end");
    conf_say_idle_keys(&conf);
    is_str(said, "--rdzv-conf: timeout is accepted; elrun has nothing that it could change", "named once");
    ok(!parse("--rdzv-conf close_timeout=1,heartbeat_timeout=1,heartbeat=1,read_timeout=1,timeout=1,use_libuv=1,"
              "store_type=tcp t.py",
              NULL),
       "all that mean nothing here");
    conf_say_idle_keys(&conf);
    is_str(said,
           "--rdzv-conf: close_timeout, heartbeat_timeout, heartbeat, read_timeout, timeout, use_libuv, store_type "
           "are accepted; elrun has nothing that they could change",
           "all are named");
    ok(!parse("--store_allow any t.py", NULL) && conf.store_allow == CONF_ALLOW_ANY, "anybody");
    ok(!parse("--store-allow=10.0.0.0/8 t.py", NULL) && conf.store_allow == CONF_ALLOW_NET &&
           conf.store_net.bits == 104,
       "a network");
    ok(!parse("t.py", NULL) && conf.store_allow == CONF_ALLOW_ROUND, "the round's nodes");
}

/* clang-format off */
static const struct error_case {
    const char *words, *variables, *text;
} error_cases[] = {
    {NULL, NULL, "no script: say what to start, as in `elrun --nproc-per-node=2 train.py`"},
    {"--nproc 2", NULL, "no script: say what to start, as in `elrun --nproc-per-node=2 train.py`"},
    {"--", NULL, "no script: say what to start, as in `elrun --nproc-per-node=2 train.py`"},
    {"--nprc-per-node=2 t.py", NULL, "unknown option --nprc-per-node=2; did you mean --nproc-per-node?"},
    {"-np 2 t.py", NULL, "unknown option -np; did you mean --nproc-per-node?"},
    {"-n 2 t.py", NULL, "unknown option -n; did you mean --nproc-per-node?"},
    {"--r=16 t.py", NULL, "--r is ambiguous: it could be --run-path, --role, --redirects, --rdzv-backend, --rdzv-endpoint, "
                          "--rdzv-id, --rdzv-conf"},
    {"--worker t.py", NULL, "unknown option --worker; did you mean --worker-store?"},
    {"--nproc=0 t.py", NULL, "--nproc-per-node=0: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto"},
    {"--nproc=-1 t.py", NULL, "--nproc-per-node=-1: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto"},
    {"--nproc=99999 t.py", NULL, "--nproc-per-node=99999: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto"},
    {"--nproc=abc t.py", NULL, "--nproc-per-node=abc: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto"},
    {"t.py", "PET_NPROC_PER_NODE=abc",
     "PET_NPROC_PER_NODE=abc: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto"},
    {"t.py", "PET_NNODES=abc", "PET_NNODES=abc: want a number of nodes, such as 2, or MIN:MAX, such as 1:4"},
    {"--nnodes=1:2:3 t.py", NULL, "--nnodes=1:2:3: want a number of nodes, such as 2, or MIN:MAX, such as 1:4"},
    {"--nnodes=0 t.py", NULL, "--nnodes=0: want 1 <= MIN <= MAX <= 65536"},
    {"--nnodes=3:2 t.py", NULL, "--nnodes=3:2: want 1 <= MIN <= MAX <= 65536"},
    {"--max-restarts -1 t.py", NULL, "--max-restarts=-1: want a whole number from 0 to 2147483647"},
    {"--monitor-interval 0 t.py", NULL, "--monitor-interval=0: want a time from 0.000001 to 31622400 seconds"},
    {"--shutdown-timeout -1 t.py", NULL,
     "--shutdown-timeout=-1: want a time in seconds, such as 30 or 0.5, or with a unit, such as 500ms or 5m"},
    {"--start-method thread t.py", NULL, "--start-method=thread: want spawn, fork or forkserver"},
    {"--hook end t.py", NULL, "--hook=end: want EVENT=CMD, with one of pre-start, post-start, pre-stop, post-stop, round, "
                              "incident, node-bad and end"},
    {"--hook begin=true t.py", NULL, "--hook=begin=true: want EVENT=CMD, with one of pre-start, post-start, pre-stop, "
                                     "post-stop, round, incident, node-bad and end"},
    {"--ckpt-mem=0% t.py", NULL, "--ckpt-mem=0%: want a size, such as 500M or 16G (K, M, G, T), or a share of this host's memory from 1% to 95%"},
    {"--ckpt-mem=96% t.py", NULL, "--ckpt-mem=96%: want a size, such as 500M or 16G (K, M, G, T), or a share of this host's memory from 1% to 95%"},
    {"--ckpt-mem=1.5% t.py", NULL, "--ckpt-mem=1.5%: want a size, such as 500M or 16G (K, M, G, T), or a share of this host's memory from 1% to 95%"},
    {"--on-incident= t.py", NULL, "--on-incident=: the command is empty"},
    {"--hook-timeout 0 t.py", NULL, "--hook-timeout=0: want a time from 0.001000 to 86400 seconds"},
    {"-m --no-python t", NULL, "--module and --no-python exclude each other"},
    {"-q -v t.py", NULL, "--quiet and --verbose exclude each other"},
    {"-r 4 t.py", NULL, "--redirects=4: want 0, 1 (stdout), 2 (stderr) or 3 (both), or a list RANK:VALUE,... such as 0:3,12:1"},
    {"-r 0:3, t.py", NULL,
     "--redirects=0:3,: want 0, 1 (stdout), 2 (stderr) or 3 (both), or a list RANK:VALUE,... such as 0:3,12:1"},
    {"-t 4096:1 t.py", NULL, "--tee=4096:1: want local ranks from 0 to 4095"},
    {"--local-ranks-filter 0,x t.py", NULL, "--local-ranks-filter=0,x: want a list of local ranks from 0 to 4095, such as 0,1"},
    {"--logs-specs mine t.py", NULL, "--logs-specs=mine: elrun loads no Python plug-ins; see --log-dir, --redirects and --tee "
                                     "for what it does with logs"},
    {"--event-log-handler mine t.py", NULL, "--event-log-handler=mine: elrun loads no Python plug-ins; want null or console"},
    {"--rdzv-backend etcd-v2 t.py", NULL,
     "--rdzv-backend=etcd-v2: torchrun's etcd back ends speak a protocol that etcd 3.6 dropped; want c10d or static"},
    {"--rdzv-backend mine t.py", NULL, "--rdzv-backend=mine: elrun loads no Python plug-ins; want static or c10d"},
    {"--rdzv-endpoint h:70000 t.py", NULL,
     "--rdzv-endpoint=h:70000: want HOST:PORT, HOST or [IPv6 address]:PORT with a port from 0 to 65535"},
    {"--rdzv-endpoint h~h:1 t.py", NULL,
     "--rdzv-endpoint=h h:1: want HOST:PORT, HOST or [IPv6 address]:PORT with a port from 0 to 65535"},
    {"--rdzv-backend=static --rdzv-endpoint h t.py", NULL, "--rdzv-endpoint=h: the static back end wants HOST:PORT"},
    {"--rdzv-conf join_timout=5 t.py", NULL, "--rdzv-conf=join_timout=5: unknown key join_timout; did you mean join_timeout?"},
    {"--rdzv-conf join_timeout=x t.py", NULL, "--rdzv-conf=join_timeout=x: join_timeout wants a time in seconds, such as 30 or 0.5"},
    {"--rdzv-conf rank=0000000000000000000000000000000000000000000000000000000000000005 t.py", NULL,
     "--rdzv-conf=rank=0000000000000000000000000000000000000000000000000000000000000005: the value of rank is too long"},
    {"--rdzv-conf rank=x t.py", NULL, "--rdzv-conf=rank=x: rank wants a whole number"},
    {"--rdzv-conf rank=65536 t.py", NULL, "--rdzv-conf=rank=65536: rank wants a number from 0 to 65535"},
    {"--rdzv-conf keep_alive_interval=0 t.py", NULL,
     "--rdzv-conf=keep_alive_interval=0: keep_alive_interval wants at least 0.001 s"},
    {"--rdzv-conf keep_alive_max_attempt=0 t.py", NULL,
     "--rdzv-conf=keep_alive_max_attempt=0: keep_alive_max_attempt wants a number from 1 to 1000000"},
    {"--rdzv-conf store_type=file t.py", NULL,
     "--rdzv-conf=store_type=file: store_type wants tcp: agents and workers meet at a store over TCP, and no file is shared between them"},
    {"--node-unit=0 t.py", NULL, "--node-unit=0: want a whole number from 1 to 65536"},
    {"--max-restarts=1025 --restart-window=60 t.py", NULL, "--max-restarts=1025: with --restart-window want at most 1024"},
    {"--restart-policy=often t.py", NULL, "--restart-policy=often: want smart, always or never"},
    {"--settle=101d t.py", NULL, "--settle=101d: want a time from 0 to 8640000 seconds"},
    {"--settl=1 t.py", NULL, "unknown option --settl=1; did you mean --settle?"},
    {"--store-allow=10.0.0.1/8 t.py", NULL,
     "--store-allow=10.0.0.1/8: want round, any, or a network such as 10.0.0.0/8 or fd00::/8"},
    {"--store-allow=all t.py", NULL,
     "--store-allow=all: want round, any, or a network such as 10.0.0.0/8 or fd00::/8"},
    {"--rdzv-conf is_host=maybe t.py", NULL, "--rdzv-conf=is_host=maybe: is_host wants true or false"},
    {"--rdzv-conf timeout t.py", NULL, "--rdzv-conf=timeout: want KEY=VALUE,KEY=VALUE such as join_timeout=300,is_host=true"},
    {"--rdzv-conf timeout= t.py", NULL, "--rdzv-conf=timeout=: want KEY=VALUE,KEY=VALUE such as join_timeout=300,is_host=true"},
    {"--master-port x t.py", NULL, "--master-port=x: want a port from 1 to 65535, or 0 for a free one"},
    {"--master-port 65536 t.py", NULL, "--master-port=65536: want a port from 1 to 65535, or 0 for a free one"},
    {"--master-addr h:1 t.py", NULL, "--master-addr=h:1: want a host name or an address, without a port"},
    {"--local-addr= t.py", NULL, "--local-addr=: want a host name or an address, without a port"},
    {"--node-rank x t.py", NULL, "--node-rank=x: want a whole number from 0 to 65535"},
    {"--worker-store=me t.py", NULL, "--worker-store=me: want trainer or agent"},
    {"--standalone --nnodes=2 t.py", NULL, "--standalone and --nnodes=2:2 exclude each other"},
    {"--standalone=1 t.py", NULL, "--standalone takes no value, but was given \"1\""},
    {"t.py", "PET_STANDALONE=yes", "PET_STANDALONE=yes: want 1 or 0"},
};
/* clang-format on */

static void test_errors(void)
{
    for (size_t i = 0; i < COUNT_OF(error_cases); i++) {
        const struct error_case *c = &error_cases[i];
        int r = parse(c->words, c->variables);
        is_str(r == -1 && err.status == EL_EXIT_USAGE ? err.text : "(accepted)", c->text,
               c->words ? c->words : "nothing");
    }
    char *argv[] = {"", NULL};
    memset(&err, 0, sizeof err);
    ok(conf_parse(1, argv, NULL, &conf, &err) == -1 && !strcmp(err.text, "the script's name is empty"),
       "an empty script");
}

static void test_stops(void)
{
    is_num(parse("--help", "PET_NNODES=abc"), CONF_DO_HELP, "--help");
    is_num(parse("-h --zzz", NULL), CONF_DO_HELP, "-h");
    is_num(parse("--nnodes=2 --he", NULL), CONF_DO_HELP, "a prefix of --help");
    is_num(parse("--version", NULL), CONF_DO_VERSION, "--version");
    ok(parse("--print-completion zsh", NULL) == CONF_DO_COMPLETION && !strcmp(conf.completion, "zsh"),
       "--print-completion");
}

static void test_rows(void)
{
    for (size_t i = 0; i < run_options.n; i++) {
        const struct opt_row *row = &run_options.rows[i];
        char name[80];
        int fine = row->help && row->group && row->help[strlen(row->help) - 1] != '.' &&
                   !(row->origin == OPT_ELRUN && row->env);
        fine &= row->type != OPT_CHOICE || row->choices;
        fine &= row->type != OPT_CUSTOM || row->set;
        char variable[80] = "PET_";
        for (size_t j = 0; row->name[j]; j++)
            snprintf(variable + 4 + j, 2, "%c", row->name[j] == '-' ? '_' : row->name[j] - 'a' + 'A');
        fine &= !row->env || !strcmp(row->env, variable);
        for (size_t j = 0; j < i; j++)
            fine &= strcmp(row->name, run_options.rows[j].name) != 0 &&
                    (!row->letter || row->letter != run_options.rows[j].letter);
        snprintf(name, sizeof name, "row --%s is whole and alone", row->name);
        ok(fine, name);
    }
}

int main(void)
{
    el_log_set(keep, NULL, EL_INFO);
    test_defaults();
    test_script();
    test_numbers();
    test_output();
    test_checkpoints();
    test_hooks();
    test_signals();
    test_rendezvous();
    test_rounds();
    test_errors();
    test_stops();
    test_rows();
    return done();
}
