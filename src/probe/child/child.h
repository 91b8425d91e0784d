/* The GPU helper of the probe: a small dynamic program, embedded in elrun and started by it (helper.h), that opens the
 * job's own NVML, CUDA runtime and NCCL with dlopen.  Whatever hangs or crashes in a driver does it here.
 *
 * COMMAND LINE   elrun-gpu ROLE [KEY=VALUE ...]    no order on standard input, no configuration by the environment
 *
 *   nvml      what NVML says about every GPU of the node, no load: checks and facts
 *   burn      one GPU: FMA burn with a checksum, device and host copies; what the GPU says of itself meanwhile
 *   nicloop   all GPUs of the node in neighbour pairs, P2P and shared memory off: the traffic takes the NICs
 *   pair      one end of one rail of a pair of nodes
 *
 *   gpu=N           burn, pair: CUDA device (local rank); what CUDA_VISIBLE_DEVICES makes of it        [0]
 *   rail=N          pair: printed with metrics                                                          [gpu]
 *   expect=N        nvml: so many GPUs there must be; 0: any number                                     [0]
 *   id=HEX          pair: guest end (rank 1).  Without it: host end (rank 0), which prints the id line
 *   purelib=DIR     site-packages of the job's Python, where pip puts NVIDIA's libraries
 *   nccl=FILE cuda=FILE nvml=FILE   these libraries and no other
 *   quick=1         burn, nicloop, pair: a fifth of the time, no 1 GiB step
 *   burn_ms=N       burn: how long                                                                      [1000]
 *   init_ms=N       the CUDA context, or until the two ends have met                                    [60000]
 *   step_ms=N       each step after that                                                                [20000]
 *   grace_ms=N      for ncclCommAbort after a deadline                                                  [5000]
 *
 * RESULTS   JSON lines on descriptor 3, of the kinds that wire.h reads:
 *   {"t":"hello","pid","gpu","bus","cudart","cudart_version","driver_version","nccl","nccl_version"}
 *             as soon as the libraries and the device are open (nvml: "driver" alone)
 *   {"t":"id","id":"256 hex digits"}                        pair, host end
 *   {"t":"init","ms","interface"}                           the communicator is ready
 *   {"t":"m","name","rail","n","min","median","p95","unit"} lat_us, bw64m, bw1g, nic_loop, burn, copy_d2d, copy_h2d,
 *                                                           copy_d2h, gpu_clock
 *   {"t":"check","name","gpu","value","limit","text"}       a number to be judged by probe/check.h's limits, or a
 * counter
 *   {"t":"check","name","gpu","state":"unchecked","text"}   why there is none
 *   {"t":"fact","name","value"}    to compare over nodes: nccl, cuda, cuda_driver, gpu_driver, gpu_name, gpu_vbios,
 *                                  gpu_count, gpu_ecc_mode, gpu_persistence; to be told: nccl_path, cuda_path
 *   {"t":"err","stage","code","name","text","class","advice"}   classes: FAULT_LIST below
 *   {"t":"end","ok"}               the last line; a step that was not reached has none
 *
 * STANDARD ERROR   NCCL's warnings and what libraries print; for a person.
 *
 * STATUS   0 done (checks may be bad) · 1 a line "err" says why · 2 wrong words · 124 a deadline of its own passed
 * (line "err" with class "timeout" or "stalled" before it).  Results are written before anything is torn down, and
 * nothing is: the kernel does that at _exit. */
#ifndef CHILD_H
#define CHILD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lowglibc.h"

/* What an error means for the verdict: word, and whether it speaks against the node itself. */
#define FAULT_LIST(X)                                                                                                  \
    X(NONE, "none")                                                                                                    \
    X(MISSING, "missing")   /* no library, no GPU */                                                                   \
    X(MISMATCH, "mismatch") /* versions that do not go together: of nodes, or of driver and library */                 \
    X(CONFIG, "config")     /* a setting: interface, visible devices, wrong file */                                    \
    X(BUSY, "busy")         /* held by somebody else */                                                                \
    X(DRIVER, "driver")     /* the driver is wedged or half there */                                                   \
    X(FABRIC, "fabric")     /* NVSwitch fabric not up */                                                               \
    X(HARDWARE, "hardware") /* the GPU itself */                                                                       \
    X(NETWORK, "network")   /* the other end cannot be reached, or went away */                                        \
    X(SYSTEM, "system")     /* a system call failed: memory, descriptors, shared memory */                             \
    X(TIMEOUT, "timeout")   /* a deadline */                                                                           \
    X(STALLED, "stalled")   /* a deadline, but this process did not get a processor */                                 \
    X(INTERNAL, "internal")

enum fault {
#define X(name, word) FAULT_##name,
    FAULT_LIST(X)
#undef X
};

#endif
