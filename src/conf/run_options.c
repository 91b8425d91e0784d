#include "conf/run_options.h"

#include <assert.h>
#include <stddef.h>

#include "conf/conf.h"

#define AT(field) offsetof(struct run_conf, field)
#define YEAR      (366u * 86400u)

#define WHAT   "What to run:"
#define MANY   "How many, and how often:"
#define OUTPUT "Output and logs:"
#define EVENTS "Events and hooks:"
#define PLACE  "Processors and terminal:"
#define STOP   "Stopping:"
#define RDZV   "Rendezvous and addresses (several nodes):"
#define ROUNDS "Rounds (several nodes):"
#define HEALTH "Health of the nodes:"
#define CKPT   "Snapshots in memory:"
#define ELRUN  "What only elrun has:"
#define OLD    "Accepted, because scripts say so:"
#define SELF   "About elrun:"

static_assert(EL_SLOTS_MAX == 4096, "the text of --nproc-per-node and --local-ranks-filter says so");

/* Defaults that are text here are converted like typed ones.  A row without `env` has no PET_ variable in torchrun
 * either. */
/* clang-format off */
static const struct opt_row rows[] = {
    {.name = "module", .letter = 'm', .type = OPT_FLAG, .group = WHAT, .env = "PET_MODULE", .offset = AT(module),
     .help = "SCRIPT is the name of a module: python -u -m SCRIPT"},
    {.name = "no-python", .type = OPT_FLAG, .group = WHAT, .env = "PET_NO_PYTHON", .offset = AT(no_python),
     .help = "SCRIPT is a program that is started itself; it is searched on PATH"},
    {.name = "run-path", .type = OPT_FLAG, .group = WHAT, .env = "PET_RUN_PATH", .offset = AT(run_path),
     .help = "SCRIPT is a Python file, whatever --no-python and --module say: python -u SCRIPT"},

    {.name = "nproc-per-node", .type = OPT_CUSTOM, .arg = "N", .choices = "cpu|gpu|xpu|auto", .def = "1", .group = MANY,
     .env = "PET_NPROC_PER_NODE", .set = conf_set_nproc,
     .help = "Workers on this node: 1 to 4096, or cpu, gpu, xpu for as many as there are, or auto: GPUs if there are any, "
             "else CPUs"},
    {.name = "nnodes", .type = OPT_CUSTOM, .arg = "N|MIN:MAX", .def = "1", .group = MANY, .env = "PET_NNODES",
     .set = conf_set_nnodes, .help = "Nodes of the job, or the smallest and the largest number"},
    {.name = "max-restarts", .type = OPT_UINT, .arg = "N", .max = INT32_MAX, .def = "0", .group = MANY,
     .env = "PET_MAX_RESTARTS", .offset = AT(max_restarts),
     .help = "How often all workers are started again after one has failed"},
    {.name = "restart-policy", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "KIND", .choices = "smart|always|never",
     .def = "smart", .group = MANY, .offset = AT(restart_policy),
     .help = "smart: not where a restart cannot help, such as an import error; always: as torchrun, whatever happened; "
             "never"},
    {.name = "restart-window", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "0",
     .group = MANY, .offset = AT(restart_window),
     .help = "Count only restarts of the last so many seconds against --max-restarts; 0: all of the job"},
    {.name = "max-fruitless-restarts", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "N", .max = INT32_MAX, .def = "10",
     .group = MANY, .offset = AT(max_fruitless),
     .help = "Give up after more than so many rounds in a row that ended within a minute, for whatever reason"},
    {.name = "standalone", .type = OPT_FLAG, .group = MANY, .env = "PET_STANDALONE", .offset = AT(standalone),
     .help = "One node, a random run id and free ports; the rendezvous options do not count"},
    {.name = "role", .type = OPT_STRING, .arg = "NAME", .def = "default", .group = MANY, .env = "PET_ROLE",
     .offset = AT(role), .help = "What the workers are called in ROLE_NAME and in front of their lines"},

    {.name = "log-dir", .type = OPT_STRING, .arg = "DIR", .group = OUTPUT, .env = "PET_LOG_DIR", .offset = AT(output.log_dir),
     .help = "Where the log tree is made; without it in a new temporary directory, which is removed if it stays empty"},
    {.name = "redirects", .letter = 'r', .type = OPT_CUSTOM, .arg = "SPEC", .def = "0", .group = OUTPUT,
     .env = "PET_REDIRECTS", .set = conf_set_redirects,
     .help = "Streams that go to files instead of the console: 0 none, 1 stdout, 2 stderr, 3 both; or for some local ranks, "
             "as in 0:3,12:1"},
    {.name = "tee", .letter = 't', .type = OPT_CUSTOM, .arg = "SPEC", .def = "0", .group = OUTPUT, .env = "PET_TEE",
     .set = conf_set_tee, .help = "Streams that go to files and to the console, each line with a prefix; SPEC as above"},
    {.name = "local-ranks-filter", .type = OPT_CUSTOM, .arg = "RANKS", .group = OUTPUT, .env = "PET_LOCAL_RANKS_FILTER",
     .set = conf_set_ranks_filter, .help = "Only these local ranks reach the console, as in 0,1"},
    {.name = "log-line-prefix-template", .type = OPT_STRING, .arg = "TEXT", .def = "", .group = OUTPUT,
     .env = "PET_LOG_LINE_PREFIX_TEMPLATE", .env_other = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .offset = AT(output.prefix_template),
     .help = "What stands before each line of --tee; knows ${role_name}, ${local_rank}, ${rank}, ${hostname}"},
    {.name = "duplicate-stdout-filters", .type = OPT_STRING, .arg = "LIST", .def = "", .group = OUTPUT,
     .env = "PET_DUPLICATE_STDOUT_FILTERS", .offset = AT(output.filter_stdout),
     .help = "Lines of --tee with one of these strings also go to one filtered_stdout.log; \",,\" is a comma"},
    {.name = "duplicate-stderr-filters", .type = OPT_STRING, .arg = "LIST", .def = "", .group = OUTPUT,
     .env = "PET_DUPLICATE_STDERR_FILTERS", .offset = AT(output.filter_stderr), .help = "The same for stderr"},
    {.name = "capture-stderr", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "yes|no", .choices = "no|yes", .def = "yes",
     .group = OUTPUT, .offset = AT(output.capture_stderr),
     .help = "Where stderr is a terminal, give each worker one of its own and read it on the way, so that the failure report "
             "can show its last lines"},
    {.name = "quiet", .letter = 'q', .type = OPT_FLAG, .origin = OPT_ELRUN, .group = OUTPUT, .offset = AT(quiet),
     .help = "Of elrun's own lines only errors and the failure report"},
    {.name = "verbose", .letter = 'v', .type = OPT_COUNT, .origin = OPT_ELRUN, .group = OUTPUT, .offset = AT(verbose),
     .help = "More of elrun's own lines; -vv even more"},
    {.name = "log-format", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "text|json", .choices = "text|json",
     .def = "text", .group = OUTPUT, .set = conf_set_log_format, .help = "How elrun's own lines look"},

    {.name = "step-pattern", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "TEXT", .group = OUTPUT,
     .set = conf_set_step_pattern,
     .help = "Read the number of the training step where %d stands in such lines of one rank, as in \"step %d\", for the "
             "account of time"},
    {.name = "step-rank", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "first|last", .choices = "first|last",
     .def = "first", .group = OUTPUT, .offset = AT(step_rank), .help = "Which rank of the job prints those lines"},

    {.name = "events", .type = OPT_STRING, .origin = OPT_ELRUN, .arg = "FILE|fd:N", .group = EVENTS, .offset = AT(events),
     .help = "Append a JSON line to FILE, or to an open descriptor, for everything that happens: elrun-events(5)"},

    {.name = "hook", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "EVENT=CMD", .group = EVENTS, .set = conf_set_hook,
     .help = "Run a shell command at pre-start, post-start, pre-stop, post-stop, round, incident, node-bad or end, with the "
             "event as JSON on its standard input; may be repeated; a pre-start that fails ends the start"},
    {.name = "on-incident", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "CMD", .group = EVENTS,
     .set = conf_set_on_incident, .help = "The same as --hook incident=CMD"},
    {.name = "hook-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .min = EL_MS(1),
     .max = EL_SEC(86400), .def = "30", .group = EVENTS, .offset = AT(hook_timeout),
     .help = "A hook that takes longer is ended, and has failed"},

    {.name = "numa-binding", .type = OPT_CHOICE, .arg = "MODE", .choices = "off|node|socket|exclusive|core-complex",
     .def = "off", .group = PLACE, .offset = AT(numa),
     .help = "Keep each worker on the processors near its GPU: node, socket, exclusive or core-complex"},
    {.name = "virtual-local-rank", .type = OPT_FLAG, .group = PLACE, .env = "PET_VIRTUAL_LOCAL_RANK",
     .offset = AT(virtual_local_rank), .help = "LOCAL_RANK is 0 in every worker and each sees only its own GPU"},
    {.name = "interactive", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .group = PLACE, .set = conf_set_interactive,
     .help = "Local rank 0 gets the terminal, for pdb and Ctrl-C; by itself with one worker on a terminal"},
    {.name = "no-interactive", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .group = PLACE, .set = conf_set_no_interactive,
     .help = "It does not"},

    {.name = "shutdown-timeout", .type = OPT_DURATION, .arg = "SECONDS", .max = EL_SEC(YEAR), .def = "30", .group = STOP,
     .env = "PET_SHUTDOWN_TIMEOUT", .env_other = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", .offset = AT(shutdown_timeout),
     .help = "From the first signal to SIGKILL, whatever the reason for stopping"},
    {.name = "hang-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = EL_SEC(YEAR), .def = "0",
     .group = STOP, .offset = AT(hang_timeout),
     .help = "Workers that all print nothing and use no processor for so long count as hung: their stacks are printed and "
             "they are started again; 0: never; 300 suits most jobs"},
    {.name = "signals-to-handle", .type = OPT_CUSTOM, .arg = "NAMES", .def = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .group = STOP, .env = "PET_SIGNALS_TO_HANDLE", .set = conf_set_signals,
     .help = "Signals that make elrun stop its workers with the same signal and end"},
    {.name = "exit-code", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "KIND", .choices = "worker|torchrun|class",
     .def = "worker", .group = STOP, .offset = AT(exit_code),
     .help = "Exit status after a failure: the worker's own, torchrun's 1, or a class for schedulers (elrun help "
             "exit-status)"},

    {.name = "rdzv-backend", .type = OPT_CUSTOM, .arg = "static|c10d", .choices = "static|c10d", .def = "static",
     .group = RDZV, .env = "PET_RDZV_BACKEND", .set = conf_set_rdzv_backend, 
     .help = "How the nodes find each other; static wants a --node-rank on each (elrun help rendezvous)"},
    {.name = "rdzv-endpoint", .type = OPT_CUSTOM, .arg = "HOST[:PORT]", .def = "", .group = RDZV,
     .env = "PET_RDZV_ENDPOINT", .set = conf_set_rdzv_endpoint, 
     .help = "Where the nodes meet: the host that runs the coordinator; the port is 29400 unless named"},
    {.name = "rdzv-id", .type = OPT_STRING, .arg = "ID", .def = "none", .group = RDZV, .env = "PET_RDZV_ID",
     .offset = AT(rdzv_id), .help = "Name of the job, the same on all nodes; it begins the name of the log folder"},
    {.name = "rdzv-conf", .type = OPT_CUSTOM, .arg = "KEY=VALUE,...", .def = "", .group = RDZV, .env = "PET_RDZV_CONF",
     .set = conf_set_rdzv_conf,
     .help = "join_timeout=600, last_call_timeout=30, keep_alive_interval=1 (seconds), keep_alive_max_attempt=5, is_host, "
             "use_hostname and torchrun's other keys; an unknown one is an error"},
    {.name = "node-rank", .type = OPT_UINT, .arg = "N", .max = RUN_NNODES_MAX - 1, .def = "0", .group = RDZV,
     .env = "PET_NODE_RANK", .offset = AT(node_rank), 
     .help = "Place of this node among the nodes"},
    {.name = "master-addr", .type = OPT_CUSTOM, .arg = "HOST", .group = RDZV, .env = "PET_MASTER_ADDR",
     .set = conf_set_master_addr, .help = "MASTER_ADDR of the workers with the static back end [default: 127.0.0.1]"},
    {.name = "master-port", .type = OPT_CUSTOM, .arg = "PORT", .group = RDZV, .env = "PET_MASTER_PORT",
     .set = conf_set_master_port, .help = "Port of the workers' store; without it a free one"},
    {.name = "local-addr", .type = OPT_CUSTOM, .arg = "HOST", .group = RDZV, .env = "PET_LOCAL_ADDR",
     .set = conf_set_local_addr, .help = "Address of this node that the others are told"},
    {.name = "worker-store", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "agent|trainer", .choices = "trainer|agent",
     .def = "agent", .group = RDZV, .offset = AT(worker_store),
     .help = "Who serves the workers' key-value store: elrun, or the worker of rank 0"},

    {.name = "settle", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "3",
     .group = ROUNDS, .offset = AT(settle),
     .help = "The first round of MIN:MAX nodes starts when at least MIN are there and nobody has joined for so long"},
    {.name = "node-unit", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "N", .min = 1, .max = RUN_NNODES_MAX, .def = "1",
     .group = ROUNDS, .offset = AT(node_unit), .help = "Rounds have a multiple of N nodes; what is left over waits as a spare"},
    {.name = "replace-wait", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "0",
     .group = ROUNDS, .offset = AT(replace_wait),
     .help = "After the loss of a node wait so long for another one before the rest goes on without it"},
    {.name = "scale-up-delay", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "1",
     .group = ROUNDS, .offset = AT(scale_up_delay),
     .help = "A running round takes newcomers in so long after the last of them came"},
    {.name = "stable-window", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "0",
     .group = ROUNDS, .offset = AT(stable_window), .help = "And not before it has run so long"},
    {.name = "boundary-wait", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "0",
     .group = ROUNDS, .offset = AT(boundary_wait),
     .help = "Before a planned change let workers that listen to the Python package elrun finish their step, for so long at most"},
    {.name = "quarantine", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX, .def = "0",
     .group = ROUNDS, .offset = AT(quarantine),
     .help = "How long a host that was set aside for suspect hardware is taken only if too few others are there; 0: until "
             "the job ends"},
    {.name = "on-text-suspect", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "report|act", .choices = "report|act",
     .def = "report", .group = ROUNDS, .offset = AT(on_text_suspect),
     .help = "Where only what a worker printed makes its host's hardware suspect: say so, or set the host aside as if the "
             "kernel had said it"},
    {.name = "reconnect-grace", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX,
     .def = "100ms", .group = ROUNDS, .offset = AT(reconnect_grace),
     .help = "A node whose connection broke counts as lost if it is not back by then"},
    {.name = "coordinator-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX,
     .def = "0", .group = ROUNDS, .offset = AT(coordinator_timeout),
     .help = "How long workers run on while the coordinator is gone; 0: as join_timeout"},
    {.name = "store-allow", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "round|any|NETWORK", .choices = "round|any",
     .def = "round", .group = ROUNDS, .set = conf_set_store_allow,
     .help = "Who may connect to the store of the workers: the nodes of the round, anybody, or a network such as 10.0.0.0/8"},

    {.name = "control-allow", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "NETWORK[,...]", .group = ROUNDS,
     .set = conf_set_control_allow,
     .help = "Where connections to the coordinator may come from, besides this host; without it, from anywhere"},

    {.name = "health-check", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "WHEN", .choices = "off|start|restart|always",
     .def = "off", .group = HEALTH, .offset = AT(health_check),
     .help = "Check each node, and the network in pairs of nodes, before the first round (start), also after a failure of "
             "hardware or network (restart), or before every round (always)"},
    {.name = "network-check", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .group = HEALTH, .set = conf_set_network_check,
     .help = "The same as --health-check=start, as dlrover-run has it"},
    {.name = "on-bad", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "exclude|stop|park", .choices = "exclude|stop|park",
     .def = "exclude", .group = HEALTH, .offset = AT(on_bad),
     .help = "A node that is judged bad leaves with status 72, or the job ends, or it waits as a spare of last resort"},
    {.name = "on-straggler", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "warn|exclude", .choices = "warn|exclude",
     .def = "warn", .group = HEALTH, .offset = AT(on_straggler),
     .help = "The same for a node that is slow, if enough others are there"},
    {.name = "exclude-straggler", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .group = HEALTH,
     .set = conf_set_exclude_straggler, .help = "The same as --on-straggler=exclude"},
    {.name = "on-undecided", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "warn|stop", .choices = "warn|stop",
     .def = "warn", .group = HEALTH, .offset = AT(on_undecided),
     .help = "Where the check cannot tell who is bad, start all the same, or end the job"},
    {.name = "probe-backend", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "KIND", .choices = "auto|nccl|tcp",
     .def = "auto", .group = HEALTH, .offset = AT(probe_backend),
     .help = "What pairs of nodes exchange data with: the job's NCCL, sockets, or NCCL where there are GPUs"},
    {.name = "probe-rounds", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "N", .max = 1000000, .def = "8", .group = HEALTH,
     .offset = AT(probe_rounds), .help = "At most so many rounds of pairs; 0: until everything is known"},
    {.name = "probe-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .min = EL_SEC(1),
     .max = RUN_WAIT_MAX, .def = "300", .group = HEALTH, .offset = AT(probe_timeout),
     .help = "The check takes no longer; what is not known by then stays undecided"},
    {.name = "probe-checks", .type = OPT_STRING, .origin = OPT_ELRUN, .arg = "LIST", .group = HEALTH,
     .offset = AT(probe_checks),
     .help = "Checks and groups of checks of each node, with commas; -NAME leaves one out"},
    {.name = "probe-limits", .type = OPT_PATH, .origin = OPT_ELRUN, .arg = "FILE", .group = HEALTH,
     .offset = AT(probe_limits), .help = "JSON with limits of its own for them"},
    {.name = "probe-state-dir", .type = OPT_PATH, .origin = OPT_ELRUN, .arg = "DIR", .group = HEALTH,
     .offset = AT(probe_state_dir), .help = "Remember the verdicts on this node there, and tell of those of the past"},
    {.name = "probe-baseline", .type = OPT_PATH, .origin = OPT_ELRUN, .arg = "FILE", .group = HEALTH,
     .offset = AT(probe_baseline),
     .help = "What healthy nodes of this hardware measure (elrun probe --save-baseline): what is worse is slow"},
    {.name = "probe-domain", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "LABEL", .group = HEALTH,
     .set = conf_set_probe_domain,
     .help = "Rack or switch of this node: a way between two of them that is bad is held against no node"},
    {.name = "probe-rails", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "N|LIST", .group = HEALTH,
     .set = conf_set_probe_rails,
     .help = "Connections of a pair over tcp, each judged by itself: so many, or one over each of these interfaces"},
    {.name = "probe-quick", .type = OPT_FLAG, .origin = OPT_ELRUN, .group = HEALTH, .offset = AT(probe_quick),
     .help = "Less of everything: one round of pairs if all goes well"},
    {.name = "ckpt-mem", .type = OPT_CUSTOM, .origin = OPT_ELRUN, .arg = "SIZE|P%", .group = CKPT, .set = conf_set_ckpt_mem,
     .help = "Memory of this node for snapshots that the training script takes with the Python package elrun: elrun-worker(7)"},
    {.name = "ckpt-dir", .type = OPT_STRING, .origin = OPT_ELRUN, .arg = "DIR", .group = CKPT, .offset = AT(ckpt_dir),
     .help = "Write the snapshots there for which the script says so, and the last one when the job ends badly"},
    {.name = "ckpt-keep-last", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "K", .max = 1000000, .def = "0", .group = CKPT,
     .offset = AT(ckpt_keep_last), .help = "Delete this job's older checkpoints when a new one is there; 0: none"},
    {.name = "ckpt-layout", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "elrun|megatron", .choices = "elrun|megatron",
     .def = "elrun", .group = CKPT, .offset = AT(ckpt_layout),
     .help = "Names of directories and files: step-000001200 with safetensors, or iter_0001200 as Megatron loads it"},
    {.name = "ckpt-store", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "shared|local", .choices = "shared|local",
     .def = "shared", .group = CKPT, .offset = AT(ckpt_store),
     .help = "Is the directory one for all nodes, or has each node a disk of its own?"},
    {.name = "ckpt-commit", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "rename|marker", .choices = "rename|marker",
     .def = "rename", .group = CKPT, .offset = AT(ckpt_commit),
     .help = "What makes it a checkpoint: a rename, or its manifest where renames of directories are not atomic"},
    {.name = "emergency-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .max = RUN_WAIT_MAX,
     .def = "25", .group = CKPT, .offset = AT(emergency_timeout),
     .help = "A job that ends badly, or a node that leaves, waits so long for its newest snapshot to be on disk; 0: not"},
    {.name = "ckpt-busy", .type = OPT_CHOICE, .origin = OPT_ELRUN, .arg = "skip|wait", .choices = "skip|wait", .def = "skip",
     .group = CKPT, .offset = AT(ckpt_busy),
     .help = "If a snapshot is due before the last one is done with: leave it out, or wait"},
    {.name = "ckpt-check", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "N", .max = 1000000, .def = "0", .group = CKPT,
     .offset = AT(ckpt_check),
     .help = "Read every Nth snapshot back and compare it with the script's objects: slow, for a first day; 0: never"},
    {.name = "ckpt-restore-timeout", .type = OPT_DURATION, .origin = OPT_ELRUN, .arg = "SECONDS", .min = EL_MS(1),
     .max = RUN_WAIT_MAX, .def = "600", .group = CKPT, .offset = AT(ckpt_restore_timeout),
     .help = "From the first rank's restore() to the last one's; later the restore has failed"},
    {.name = "ckpt-max-rollback", .type = OPT_UINT, .origin = OPT_ELRUN, .arg = "N", .max = INT32_MAX, .def = "0", .group = CKPT,
     .offset = AT(ckpt_max_rollback), .help = "Fail rather than go back by more than so many steps; without it: by any number"},
    {.name = "allow-fresh", .type = OPT_FLAG, .origin = OPT_ELRUN, .group = CKPT, .offset = AT(allow_fresh),
     .help = "Where snapshots were taken and none is left that every rank can have, begin at the beginning instead of failing"},

    {.name = "monitor-interval", .type = OPT_DURATION, .arg = "SECONDS", .min = 1, .max = EL_SEC(YEAR), .def = "0.1",
     .group = OLD, .env = "PET_MONITOR_INTERVAL", .offset = OPT_NOWHERE,
     .help = "No effect: elrun does not poll, it is told at once when a worker ends"},
    {.name = "start-method", .type = OPT_CHOICE, .arg = "METHOD", .choices = "spawn|fork|forkserver", .def = "spawn",
     .group = OLD, .env = "PET_START_METHOD", .offset = OPT_NOWHERE,
     .help = "spawn, fork or forkserver; no effect: workers are always separate programs"},
    {.name = "event-log-handler", .type = OPT_CUSTOM, .arg = "null|console", .choices = "null|console", .def = "null",
     .group = OLD, .env = "PET_EVENT_LOG_HANDLER", .set = conf_set_events, .help = "console is the same as --verbose"},
    {.name = "logs-specs", .type = OPT_CUSTOM, .arg = "NAME", .group = OLD, .set = conf_set_logs_specs,
     .help = "Refused: elrun loads no Python plug-ins"},
    {.name = "use-env", .type = OPT_FLAG, .group = OLD, .env = "PET_USE_ENV", .offset = AT(use_env),
     .help = "No effect: the local rank is always in LOCAL_RANK"},

    {.name = "help", .letter = 'h', .type = OPT_STOP, .group = SELF, .offset = OPT_NOWHERE, .help = "Print this text"},
    {.name = "version", .type = OPT_STOP, .origin = OPT_ELRUN, .group = SELF, .offset = OPT_NOWHERE,
     .help = "Print the version"},
    {.name = "print-completion", .type = OPT_STOP, .arg = "bash|zsh|fish", .choices = "bash|zsh|fish", .group = SELF,
     .offset = AT(completion), .help = "Print the completion script for a shell"},
};
/* clang-format on */

/* clang-format off */
static const struct opt_hint hints[] = {
    {"-n", "--nproc-per-node"},      {"-np", "--nproc-per-node"},           {"-ppn", "--nproc-per-node"},
    {"--np", "--nproc-per-node"},    {"--num-processes", "--nproc-per-node"}, {"--num_processes", "--nproc-per-node"},
    {"--gpus", "--nproc-per-node"},  {"--num-gpus", "--nproc-per-node"},    {"--num_gpus", "--nproc-per-node"},
    {"--workers", "--nproc-per-node"}, {"-N", "--nnodes"},                  {"--num-nodes", "--nnodes"},
    {"--num_nodes", "--nnodes"},     {"--num-machines", "--nnodes"},        {"--num_machines", "--nnodes"},
    {"-V", "--version"},
};
/* clang-format on */

const struct opt_table run_options = {
    .command = "elrun [run]",
    .foreign = true,
    .operands = "SCRIPT [ARG ...]",
    .about =
        "Starts SCRIPT in as many processes as asked for, with the environment that PyTorch's distributed packages "
        "expect, watches them, and starts all of them again if one fails. What follows SCRIPT belongs to SCRIPT.",
    .notes = "Names may be written with _ for -, and cut short as torchrun allows. Defaults of torchrun's options can "
             "be set "
             "in the environment: PET_NPROC_PER_NODE=4 is --nproc-per-node=4. The manual is elrun(1).",
    .rows = rows,
    .n = sizeof rows / sizeof rows[0],
    .hints = hints,
    .hints_count = sizeof hints / sizeof hints[0],
};
