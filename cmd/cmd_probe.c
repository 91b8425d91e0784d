/* elrun probe: is this node, or are these nodes, fit for a job? */
#include <stddef.h>
#include <string.h>

#include "probe.h"
#include "probe/pair_tcp.h"
#include "proc/gpu.h"
#include "util/auto.h"
#include "util/parse.h"

#define AT(field)                  .origin = OPT_ELRUN, .offset = offsetof(struct probe_conf, field)
#define STRING(field, word, value) .name = word, .type = OPT_STRING, .arg = value, AT(field)

#define WHAT  "What is looked at:"
#define PAIRS "Pairs of nodes:"
#define SHOW  "What is made of it:"

/* clang-format off */
static const struct opt_row rows[] = {
    {STRING(checks, "checks", "LIST"), .group = WHAT,
     .help = "Only these checks or groups of checks, with commas between them; a - in front leaves one out; "
             "elrun help checks lists them"},
    {STRING(limits, "limits", "FILE"), .group = WHAT, .help = "Limits of this site in JSON: what counts as wrong"},
    {.name = "backend", .type = OPT_CHOICE, .arg = "KIND", .choices = "auto|nccl|tcp", .def = "auto", .group = WHAT, AT(backend),
     .help = "nccl: GPUs too, and pairs by the job's own NCCL; tcp: neither; auto: nccl where there are GPUs"},
    {.name = "gpus", .type = OPT_UINT, .arg = "N", .max = GPU_MAX, .group = WHAT, AT(gpus),
     .help = "So many GPUs there must be on each node; fewer are a finding"},
    {.name = "quick", .type = OPT_FLAG, .group = WHAT, AT(quick),
     .help = "Smaller amounts, shorter measurements, no second arrangement of healthy nodes"},
    {STRING(ckpt_dir, "checkpoint-dir", "DIR"), .group = WHAT, .help = "Look at the file system of this folder, too"},
    {STRING(nccl_lib, "nccl-lib", "FILE"), .group = WHAT, .env = "ELRUN_NCCL_LIB",
     .help = "The NCCL library, in place of the one beside the job's torch"},
    {STRING(cuda_lib, "cuda-lib", "FILE"), .group = WHAT, .env = "ELRUN_CUDA_LIB", .help = "The same for the CUDA runtime"},
    {STRING(helper_dir, "helper-dir", "DIR"), .group = WHAT,
     .help = "Put the program that works on GPUs into a file there instead of into memory"},

    {.name = "probe-timeout", .type = OPT_DURATION, .arg = "TIME", .min = EL_SEC(1), .max = EL_SEC(86400), .def = "10m",
     .group = PAIRS, AT(timeout), .help = "For all of it; what is not known by then is undecided"},
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
    {STRING(state_dir, "state-dir", "DIR"), .group = SHOW, .help = "Remember verdicts there, and tell a node that has failed before"},
    {STRING(baseline, "baseline", "FILE"), .group = SHOW,
     .help = "Measurements of healthy nodes of the same hardware: makes slowness known even on one node"},
    {STRING(save_baseline, "save-baseline", "FILE"), .group = SHOW, .help = "Write such a file from this node's measurements, if it is healthy"},
    COMMAND_HELP_ROW,
};
/* clang-format on */

static const struct opt_table options = {
    .command = "elrun probe",
    .operands = "",
    .about =
        "Looks whether this node is fit for a job: hardware errors, ports and links, memory, disks, limits, GPUs.  "
        "Prints verdicts with what was measured, the limit, and what to do.",
    .notes =
        "Exit status: 0 all is well, 1 this node (where the whole verdict is printed: some node) is bad, 2 usage, 3 "
        "undecided, with --strict also warnings, 69 the probe could not run, 130 Ctrl-C.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int run(const struct call *call, struct el_err *e)
{
    struct probe_conf conf = {0};
    struct opt_result r;
    int go = command_options(&cmd_probe, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next < call->argc)
        return el_fail(e, EL_EXIT_USAGE, "probe takes no operand");
    return probe_alone(&conf, call, e);
}

const struct command cmd_probe = {.name = "probe",
                                  .summary = "find out whether nodes are fit for a job, and which is not",
                                  .options = &options,
                                  .words = "",
                                  .run = run};
