/* elrun probe: is this node, or are these nodes, fit for a job? */
#include <stddef.h>
#include <string.h>

#include "conf/conf.h"
#include "agent/health.h"
#include "probe.h"
#include "probe/pair_tcp.h"
#include "sys/gpu.h"
#include "util/array.h"
#include "util/parse.h"

#define AT(field)                  .origin = OPT_ELRUN, .offset = offsetof(struct probe_conf, field)
#define STRING(field, word, value) .name = word, .type = OPT_STRING, .arg = value, AT(field)
#define PATH(field, word, value)   .name = word, .type = OPT_PATH, .arg = value, AT(field)

#define WHAT  "What is looked at:"
#define MANY  "Several nodes:"
#define PAIRS "Measurements and time:"
#define SHOW  "What is made of it:"

static int set_pair_bytes(void *target, const char *value, struct el_err *e)
{
    struct probe_conf *conf = target;
    uint64_t n = 0;
    if (el_parse_size(value, &n) || !n || n > PAIR_BYTES_MAX)
        return el_fail(e, EL_EXIT_USAGE, "want an amount such as 64MiB, at most 1TiB");
    conf->pair_bytes = n;
    return 0;
}

static int set_rails(void *target, const char *value, struct el_err *e)
{
    struct probe_conf *conf = target;
    return probe_rails_parse(value, &conf->rails, e);
}

static int set_domain(void *target, const char *value, struct el_err *e)
{
    struct probe_conf *conf = target;
    conf->domain = value;
    return conf_check_domain(value, e);
}

/* clang-format off */
static const struct opt_row rows[] = {
    {STRING(checks, "checks", "LIST"), .group = WHAT,
     .help = "Only these checks or groups of checks, with commas between them; a - in front leaves one out; "
             "elrun help checks lists them"},
    {PATH(limits, "limits", "FILE"), .group = WHAT, .help = "Limits of this site in JSON: what counts as wrong"},
    {.name = "backend", .type = OPT_CHOICE, .arg = "KIND", .choices = "auto|nccl|tcp", .def = "auto", .group = WHAT, AT(backend),
     .help = "nccl: GPUs too, and pairs by the job's own NCCL; tcp: neither; auto: nccl where there are GPUs"},
    {.name = "gpus", .type = OPT_UINT, .arg = "N", .max = GPU_MAX, .group = WHAT, AT(gpus),
     .help = "So many GPUs there must be on each node; fewer are a finding"},
    {.name = "quick", .type = OPT_FLAG, .group = WHAT, AT(quick),
     .help = "Smaller amounts, shorter measurements, no second arrangement of healthy nodes"},
    {PATH(ckpt_dir, "checkpoint-dir", "DIR"), .group = WHAT, .help = "Look at the file system of this folder, too"},
    {PATH(nccl_lib, "nccl-lib", "FILE"), .group = WHAT, .env = "ELRUN_NCCL_LIB",
     .help = "The NCCL library, in place of the one beside the job's torch"},
    {PATH(cuda_lib, "cuda-lib", "FILE"), .group = WHAT, .env = "ELRUN_CUDA_LIB", .help = "The same for the CUDA runtime"},
    {PATH(helper_dir, "helper-dir", "DIR"), .group = WHAT,
     .help = "Put the program that works on GPUs into a file there instead of into memory"},

    {STRING(nnodes, "nnodes", "N"), .def = "1", .env = "PET_NNODES", .group = MANY,
     .help = "Nodes that are probed together: start it on each; 1: this one alone"},
    {STRING(rdzv_endpoint, "rdzv-endpoint", "HOST[:PORT]"), .env = "PET_RDZV_ENDPOINT", .group = MANY, .help = "Where the nodes meet"},
    {STRING(rdzv_id, "rdzv-id", "ID"), .env = "PET_RDZV_ID", .group = MANY, .help = "Name of this probe, the same on all nodes"},
    {STRING(node_rank, "node-rank", "N"), .env = "PET_NODE_RANK", .group = MANY,
     .help = "Place of this node among the nodes; neighbours are paired first"},
    {STRING(local_addr, "local-addr", "HOST"), .env = "PET_LOCAL_ADDR", .group = MANY,
     .help = "Address of this node that the others are told; pairs run over its interface"},
    {.name = "domain", .type = OPT_CUSTOM, .arg = "LABEL", .origin = OPT_ELRUN, .set = set_domain, .group = MANY,
     .help = "Rack or switch of this node: a way between two of them that is bad is held against no node"},

    {.name = "probe-rounds", .type = OPT_UINT, .arg = "N", .max = 10000, .def = "8", .group = PAIRS, AT(rounds),
     .help = "At most so many rounds of pairs; 0: as many as it takes"},
    {.name = "probe-timeout", .type = OPT_DURATION, .arg = "TIME", .min = EL_SEC(1), .max = EL_SEC(86400), .def = "10m",
     .group = PAIRS, AT(timeout), .help = "For all of it; what is not known by then is undecided"},
    {.name = "pair-bytes", .type = OPT_CUSTOM, .arg = "SIZE", .origin = OPT_ELRUN, .set = set_pair_bytes, .group = PAIRS,
     .help = "With tcp: amount of one measurement [default: 64MiB, with --quick 16MiB]"},
    {.name = "pair-time", .type = OPT_DURATION, .arg = "TIME", .min = EL_MS(1), .max = EL_SEC(30), .group = PAIRS, AT(pair_spend),
     .help = "With tcp: about so long for the bandwidth of a pair [default: 5s, with --quick 1s]"},
    {.name = "probe-rails", .type = OPT_CUSTOM, .arg = "N|LIST", .origin = OPT_ELRUN, .set = set_rails, .group = PAIRS,
     .help = "With tcp: connections of a pair, each judged by itself: so many, or one over each of these interfaces [default: 1]"},
    {.name = "straggler-k", .type = OPT_UINT, .arg = "N", .max = 100, .def = "3", .group = PAIRS, AT(straggler_k),
     .help = "A node is slow beyond so many times the usual spread (MAD) from the median"},
    {.name = "straggler-min", .type = OPT_UINT, .arg = "PERCENT", .max = 90, .def = "10", .group = PAIRS,
     AT(straggler_min), .help = "And never if it is less than this behind"},

    {.name = "json", .type = OPT_FLAG, .group = SHOW, AT(json), .help = "As one JSON object"},
    {.name = "all", .type = OPT_FLAG, .group = SHOW, AT(all), .help = "Every check, not only those that are not in order"},
    {.name = "strict", .type = OPT_FLAG, .group = SHOW, AT(strict), .help = "Warnings end with status 3, too"},
    {.name = "on-straggler", .type = OPT_CHOICE, .arg = "WHAT", .choices = "warn|exclude", .def = "warn", .group = SHOW,
     AT(on_straggler), .help = "exclude: a slow node is as bad as a broken one"},
    {.name = "exclude-straggler", .type = OPT_FLAG, .group = SHOW, AT(exclude_straggler), .help = "The same as --on-straggler=exclude"},
    {PATH(state_dir, "state-dir", "DIR"), .group = SHOW, .help = "Remember verdicts there, and tell a node that has failed before"},
    {PATH(baseline, "baseline", "FILE"), .group = SHOW,
     .help = "Measurements of healthy nodes of the same hardware: makes slowness known even on one node"},
    {PATH(save_baseline, "save-baseline", "FILE"), .group = SHOW, .help = "Write such a file from this node's measurements, if it is healthy"},
    COMMAND_HELP_ROW,
};
/* clang-format on */

static const struct opt_table options = {
    .command = "elrun probe",
    .operands = "",
    .about =
        "Looks whether this node is fit for a job: hardware errors, ports and links, memory, disks, limits, GPUs; with "
        "--nnodes also each pair of nodes that it takes to know which node or link is sick or slow.  "
        "Prints verdicts with what was measured, the limit, and what to do.",
    .notes =
        "Exit status: 0 all is well, 1 this node (where the whole verdict is printed: some node) is bad, 2 usage, 3 "
        "undecided, with --strict also warnings, 69 the probe could not run, 130 Ctrl-C.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int probe_nodes(const struct probe_conf *c, const struct call *call, struct el_err *e)
{
    struct health_nodes nodes = {
        .nnodes = c->nnodes,
        .rdzv_endpoint = c->rdzv_endpoint,
        .rdzv_id = c->rdzv_id,
        .node_rank = c->node_rank,
        .local_addr = c->local_addr,
        .domain = c->domain,
        .rounds = c->rounds,
        .timeout = c->timeout,
        .straggler_k = c->straggler_k,
        .straggler_min = c->straggler_min,
        .backend = c->backend,
        .quick = c->quick,
        .strict = c->strict,
        .json = c->json,
        .all = c->all,
        .rails = c->rails,
        .exclude_straggler = c->exclude_straggler,
        .checks = c->checks,
        .limits = c->limits,
        .local = {.gpus = c->gpus,
                  .pair_bytes = c->pair_bytes,
                  .pair_spend = c->pair_spend,
                  .ckpt_dir = c->ckpt_dir,
                  .helper_dir = c->helper_dir,
                  .nccl_lib = c->nccl_lib,
                  .cuda_lib = c->cuda_lib,
                  .state_dir = c->state_dir,
                  .baseline = c->baseline,
                  .save_baseline = c->save_baseline},
    };
    return health_probe_nodes(&nodes, call->env, e);
}

static bool was_typed(const struct opt_result *r, const char *name)
{
    const struct opt_row *row = opt_find(&options, name);
    return row && r->seen[row - rows] == 2;
}

/* Somebody who means several nodes and forgets to say how many would be told that all is well with one. */
static int check_nodes(const struct opt_result *r, struct el_err *e)
{
    static const char *const words[] = {"rdzv-endpoint", "rdzv-id", "node-rank", "local-addr", "domain", "probe-rails"};
    const struct opt_row *nnodes = opt_find(&options, "nnodes");
    for (size_t i = 0; i < COUNT_OF(words) && !r->seen[nnodes - rows]; i++)
        if (was_typed(r, words[i]))
            return el_fail(e, EL_EXIT_USAGE, "--%s is for several nodes: say how many with --nnodes=N", words[i]);
    return 0;
}

static int cmd_probe_run(const struct call *call, struct el_err *e)
{
    struct probe_conf conf = {0};
    struct opt_result r;
    int go = command_options(&cmd_probe, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next < call->argc)
        return el_fail(e, EL_EXIT_USAGE, "probe takes no operand");
    if (check_nodes(&r, e) < 0)
        return -1;
    conf.exclude_straggler |= conf.on_straggler == PROBE_EXCLUDE_STRAGGLER;
    return strcmp(conf.nnodes, "1") == 0 ? probe_alone(&conf, call, e) : probe_nodes(&conf, call, e);
}

const struct command cmd_probe = {.name = "probe",
                                  .summary = "find out whether nodes are fit for a job, and which is not",
                                  .options = &options,
                                  .words = "",
                                  .run = cmd_probe_run};
