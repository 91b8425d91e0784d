/* What a node is and runs, in words: to be compared over nodes (versions.h), and to tell whether a baseline was made on
 * the same hardware (baseline.h).  A child says each as a line "fact" with these names. */
#ifndef PROBE_FACTS_H
#define PROBE_FACTS_H
#include <stdbool.h>

#define FACT_MAX 256 /* bytes with the 0 */

/* X(ID, name, kind, words).  SOFTWARE and HARDWARE are compared over nodes; PLACE is only told; SIZE is hardware too,
 * but differs a little from host to host. */
#define FACT_LIST(X)                                                                                                   \
    X(KERNEL, "kernel", SOFTWARE, "kernel")                                                                            \
    X(PYTHON, "python", SOFTWARE, "Python")                                                                            \
    X(TORCH, "torch", SOFTWARE, "PyTorch")                                                                             \
    X(GPU_DRIVER, "gpu_driver", SOFTWARE, "GPU driver")                                                                \
    X(GPU_VBIOS, "gpu_vbios", SOFTWARE, "GPU firmware")                                                                \
    X(GPU_ECC_MODE, "gpu_ecc_mode", SOFTWARE, "ECC of the GPUs")                                                       \
    X(GPU_PERSISTENCE, "gpu_persistence", SOFTWARE, "persistence of the GPUs")                                         \
    X(CUDA_DRIVER, "cuda_driver", SOFTWARE, "CUDA of the driver")                                                      \
    X(CUDA, "cuda", SOFTWARE, "CUDA runtime")                                                                          \
    X(CUDA_PATH, "cuda_path", PLACE, "CUDA runtime's file")                                                            \
    X(NCCL_PATH, "nccl_path", PLACE, "NCCL's file")                                                                    \
    X(NCCL, "nccl", SOFTWARE, "NCCL")                                                                                  \
    X(IB_FIRMWARE, "ib_firmware", SOFTWARE, "InfiniBand firmware")                                                     \
    X(CPU, "cpu", HARDWARE, "processor")                                                                               \
    X(CORES, "cores", HARDWARE, "processors")                                                                          \
    X(MEMORY, "memory_gib", SIZE, "GiB of memory")                                                                     \
    X(GPU_NAME, "gpu_name", HARDWARE, "GPU")                                                                           \
    X(GPU_COUNT, "gpu_count", HARDWARE, "number of GPUs")                                                              \
    X(IB_PORTS, "ib_ports", HARDWARE, "active InfiniBand ports")                                                       \
    X(NIC, "nic", HARDWARE, "network cards")

enum fact {
#define X(id, name, kind, words) FACT_##id,
    FACT_LIST(X)
#undef X
        FACTS
};

enum fact_kind { FACT_KIND_SOFTWARE, FACT_KIND_HARDWARE, FACT_KIND_SIZE, FACT_KIND_PLACE };

struct fact_row {
    const char *name;
    enum fact_kind kind;
    const char *words;
};
extern const struct fact_row fact_rows[FACTS];

/* "": not known. */
struct facts {
    char v[FACTS][FACT_MAX];
};

/* The value is cut where it does not fit, what is not plain text becomes '?'.  False: no fact has this name. */
bool facts_set(struct facts *f, const char *name, const char *value);

#endif
