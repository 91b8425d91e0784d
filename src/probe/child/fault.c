#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "say.h"
#include "watch.h"

#define ADVICE_DRIVER_OLD                                                                                              \
    "install a driver that is new enough for this CUDA runtime, or a framework built for an older one"
#define ADVICE_HARDWARE "reset the GPU (nvidia-smi -r); if it comes back, have it replaced"
#define ADVICE_BUSY     "end what holds the GPU (nvidia-smi, fuser -v /dev/nvidia*), or set the compute mode to default"
#define ADVICE_WEDGED   "look at dmesg for Xid, then reset the GPU or restart the host"
#define ADVICE_MPS      "restart the MPS control daemon, or run without it"
#define ADVICE_BUG      "a bug of the probe or of the library: please report it with this line"
#define ADVICE_NCCL_LOG "see NCCL's warnings above this line"

/* code, name, meaning, advice.  The driver's CUresult has the same numbers. */
/* clang-format off */
static const struct fault_row cuda_row[] = {
    {1, "cudaErrorInvalidValue", FAULT_INTERNAL, ADVICE_BUG},
    {2, "cudaErrorMemoryAllocation", FAULT_BUSY, "the GPU's memory is taken: end what holds it (nvidia-smi)"},
    {3, "cudaErrorInitializationError", FAULT_DRIVER, ADVICE_WEDGED},
    {34, "cudaErrorStubLibrary", FAULT_CONFIG, "a stub libcuda.so.1 is found first: take the stubs folder out of LD_LIBRARY_PATH"},
    {35, "cudaErrorInsufficientDriver", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {36, "cudaErrorCallRequiresNewerDriver", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {46, "cudaErrorDevicesUnavailable", FAULT_BUSY, ADVICE_BUSY},
    {98, "cudaErrorInvalidDeviceFunction", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {100, "cudaErrorNoDevice", FAULT_MISSING, "no GPU is visible: look at nvidia-smi, CUDA_VISIBLE_DEVICES and the container's devices"},
    {101, "cudaErrorInvalidDevice", FAULT_MISSING, "there are fewer GPUs than processes: look at nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {200, "cudaErrorInvalidKernelImage", FAULT_INTERNAL, ADVICE_BUG},
    {201, "cudaErrorDeviceUninitialized", FAULT_DRIVER, ADVICE_WEDGED},
    {205, "cudaErrorMapBufferObjectFailed", FAULT_DRIVER, ADVICE_WEDGED},
    {209, "cudaErrorNoKernelImageForDevice", FAULT_MISMATCH, "this CUDA runtime is too old for this GPU"},
    {214, "cudaErrorECCUncorrectable", FAULT_HARDWARE, ADVICE_HARDWARE},
    {216, "cudaErrorDeviceAlreadyInUse", FAULT_BUSY, ADVICE_BUSY},
    {218, "cudaErrorInvalidPtx", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {220, "cudaErrorNvlinkUncorrectable", FAULT_HARDWARE, "check NVLink (nvidia-smi nvlink -e), then reset the GPU"},
    {221, "cudaErrorJitCompilerNotFound", FAULT_CONFIG, "the driver's libnvidia-ptxjitcompiler.so.1 is missing: give it to the container too"},
    {222, "cudaErrorUnsupportedPtxVersion", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {226, "cudaErrorContained", FAULT_HARDWARE, ADVICE_HARDWARE},
    {304, "cudaErrorOperatingSystem", FAULT_SYSTEM, "look at dmesg, /dev/nvidia-uvm and the container's devices"},
    {600, "cudaErrorNotReady", FAULT_INTERNAL, ADVICE_BUG},
    {700, "cudaErrorIllegalAddress", FAULT_HARDWARE, ADVICE_HARDWARE},
    {701, "cudaErrorLaunchOutOfResources", FAULT_INTERNAL, ADVICE_BUG},
    {702, "cudaErrorLaunchTimeout", FAULT_BUSY, "a display uses this GPU and limits how long kernels may run"},
    {710, "cudaErrorAssert", FAULT_INTERNAL, ADVICE_BUG},
    {714, "cudaErrorHardwareStackError", FAULT_HARDWARE, ADVICE_HARDWARE},
    {715, "cudaErrorIllegalInstruction", FAULT_HARDWARE, ADVICE_HARDWARE},
    {716, "cudaErrorMisalignedAddress", FAULT_HARDWARE, ADVICE_HARDWARE},
    {717, "cudaErrorInvalidAddressSpace", FAULT_HARDWARE, ADVICE_HARDWARE},
    {718, "cudaErrorInvalidPc", FAULT_HARDWARE, ADVICE_HARDWARE},
    {719, "cudaErrorLaunchFailure", FAULT_HARDWARE, ADVICE_HARDWARE},
    {800, "cudaErrorNotPermitted", FAULT_CONFIG, "the container or its cgroup does not allow it"},
    {801, "cudaErrorNotSupported", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {802, "cudaErrorSystemNotReady", FAULT_FABRIC, "start the fabric manager (systemctl start nvidia-fabricmanager), of the driver's own version"},
    {803, "cudaErrorSystemDriverMismatch", FAULT_MISMATCH, "libcuda and the kernel module are of different versions: restart the host after a driver update, or give the container the host's libcuda"},
    {804, "cudaErrorCompatNotSupportedOnDevice", FAULT_MISMATCH, "take the CUDA compatibility library (/usr/local/cuda/compat) out of LD_LIBRARY_PATH: this GPU does not support it"},
    {805, "cudaErrorMpsConnectionFailed", FAULT_CONFIG, ADVICE_MPS},
    {806, "cudaErrorMpsRpcFailure", FAULT_CONFIG, ADVICE_MPS},
    {807, "cudaErrorMpsServerNotReady", FAULT_CONFIG, ADVICE_MPS},
    {808, "cudaErrorMpsMaxClientsReached", FAULT_BUSY, ADVICE_MPS},
    {809, "cudaErrorMpsMaxConnectionsReached", FAULT_BUSY, ADVICE_MPS},
    {999, "cudaErrorUnknown", FAULT_DRIVER, "often a missing /dev/nvidia-uvm (nvidia-modprobe -u) or a wedged driver: look at dmesg, restart the host"},
};

static const struct fault_row nccl_row[] = {
    {1, "ncclUnhandledCudaError", FAULT_DRIVER, ADVICE_WEDGED},
    {2, "ncclSystemError", FAULT_SYSTEM, ADVICE_NCCL_LOG},
    {3, "ncclInternalError", FAULT_INTERNAL, ADVICE_NCCL_LOG},
    {4, "ncclInvalidArgument", FAULT_CONFIG, ADVICE_NCCL_LOG},
    {5, "ncclInvalidUsage", FAULT_CONFIG, "most often different NCCL versions or a wrong NCCL_SOCKET_IFNAME: see NCCL's warnings above this line"},
    {6, "ncclRemoteError", FAULT_NETWORK, "the other end failed or its network did: see its own report"},
    {7, "ncclInProgress", FAULT_INTERNAL, ADVICE_BUG},
};

static const struct fault_row nvml_row[] = {
    {1, "NVML_ERROR_UNINITIALIZED", FAULT_INTERNAL, ADVICE_BUG},
    {2, "NVML_ERROR_INVALID_ARGUMENT", FAULT_INTERNAL, ADVICE_BUG},
    {3, "NVML_ERROR_NOT_SUPPORTED", FAULT_NONE, NULL},
    {4, "NVML_ERROR_NO_PERMISSION", FAULT_CONFIG, "run the probe as root, or allow it in the container"},
    {6, "NVML_ERROR_NOT_FOUND", FAULT_MISSING, "look at nvidia-smi and the container's devices"},
    {8, "NVML_ERROR_INSUFFICIENT_POWER", FAULT_HARDWARE, "check the GPU's power cables"},
    {9, "NVML_ERROR_DRIVER_NOT_LOADED", FAULT_DRIVER, "load the driver (modprobe nvidia) and look at dmesg"},
    {10, "NVML_ERROR_TIMEOUT", FAULT_DRIVER, ADVICE_WEDGED},
    {11, "NVML_ERROR_IRQ_ISSUE", FAULT_DRIVER, ADVICE_WEDGED},
    {12, "NVML_ERROR_LIBRARY_NOT_FOUND", FAULT_MISSING, "the driver's libraries are incomplete: install it again"},
    {13, "NVML_ERROR_FUNCTION_NOT_FOUND", FAULT_NONE, NULL},
    {14, "NVML_ERROR_CORRUPTED_INFOROM", FAULT_HARDWARE, "have the GPU replaced"},
    {15, "NVML_ERROR_GPU_IS_LOST", FAULT_HARDWARE, "the GPU has fallen off the bus: restart the host; if it comes back, have the GPU replaced"},
    {16, "NVML_ERROR_RESET_REQUIRED", FAULT_HARDWARE, "reset the GPU (nvidia-smi -r)"},
    {17, "NVML_ERROR_OPERATING_SYSTEM", FAULT_SYSTEM, "the container or its cgroup blocks the GPU: look at /dev/nvidia*"},
    {18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH", FAULT_MISMATCH, "the kernel module is of another version than libnvidia-ml: restart the host after a driver update"},
    {19, "NVML_ERROR_IN_USE", FAULT_BUSY, ADVICE_BUSY},
    {20, "NVML_ERROR_MEMORY", FAULT_SYSTEM, "out of memory"},
    {23, "NVML_ERROR_INSUFFICIENT_RESOURCES", FAULT_SYSTEM, ADVICE_WEDGED},
    {999, "NVML_ERROR_UNKNOWN", FAULT_DRIVER, ADVICE_WEDGED},
};

/* Phrases of NCCL's last error and warnings; the first that is found counts. */
static const struct fault_row phrase_row[] = {
    {0, "Mismatched NCCL version", FAULT_MISMATCH, "give both nodes the same NCCL (the facts \"nccl\" of the nodes say which they have)"},
    {0, "mismatched NCCL version", FAULT_MISMATCH, "give both nodes the same NCCL (the facts \"nccl\" of the nodes say which they have)"},
    {0, "Mismatched NCCL git version", FAULT_MISMATCH, "give both nodes the same NCCL: these are builds of different sources"},
    {0, "no socket interface found", FAULT_CONFIG, "set NCCL_SOCKET_IFNAME to an interface that exists and is up"},
    {0, "Duplicate GPU detected", FAULT_CONFIG, "two processes got the same GPU: look at CUDA_VISIBLE_DEVICES"},
    {0, "driver version is insufficient", FAULT_MISMATCH, ADVICE_DRIVER_OLD},
    {0, "stub library", FAULT_CONFIG, "a stub libcuda.so.1 is found first: take the stubs folder out of LD_LIBRARY_PATH"},
    {0, "system not yet initialized", FAULT_FABRIC, "start the fabric manager (systemctl start nvidia-fabricmanager), of the driver's own version"},
    {0, "uncorrectable", FAULT_HARDWARE, ADVICE_HARDWARE},
    {0, "busy or unavailable", FAULT_BUSY, ADVICE_BUSY},
    {0, "No space left on device", FAULT_SYSTEM, "make /dev/shm larger (docker run --shm-size=1g)"},
    {0, "Cannot allocate memory", FAULT_SYSTEM, "raise the limit of locked memory (ulimit -l unlimited)"},
    {0, "Too many open files", FAULT_SYSTEM, "raise the limit of open files (ulimit -n 65536)"},
    {0, "out of memory", FAULT_BUSY, "the GPU's memory is taken: end what holds it (nvidia-smi)"},
    {0, "Connection refused", FAULT_NETWORK, "the other end's port is closed: a firewall, or the other end has failed"},
    {0, "Connection reset", FAULT_NETWORK, "the other end went away: see its own report"},
    {0, "Connection closed", FAULT_NETWORK, "the other end went away: see its own report"},
    {0, "closed by remote peer", FAULT_NETWORK, "the other end went away: see its own report"},
    {0, "timed out", FAULT_NETWORK, "a firewall between the nodes, or the wrong interface (NCCL_SOCKET_IFNAME)"},
    {0, "No route to host", FAULT_NETWORK, "a firewall between the nodes, or the wrong interface (NCCL_SOCKET_IFNAME)"},
    {0, "Network is unreachable", FAULT_NETWORK, "the wrong interface: set NCCL_SOCKET_IFNAME"},
};
/* clang-format on */

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

const struct fault_row *fault_find(enum fault_lib lib, int code)
{
    static const struct fault_row other = {0, "code that the probe does not know", FAULT_INTERNAL, ADVICE_BUG};
    const struct fault_row *row = lib == LIB_CUDA ? cuda_row : lib == LIB_NCCL ? nccl_row : nvml_row;
    size_t n = lib == LIB_CUDA ? ROWS(cuda_row) : lib == LIB_NCCL ? ROWS(nccl_row) : ROWS(nvml_row);
    for (size_t i = 0; i < n; i++)
        if (row[i].code == code)
            return &row[i];
    return &other;
}

const struct fault_row *fault_phrase(const char *text)
{
    for (size_t i = 0; text && i < ROWS(phrase_row); i++)
        if (strstr(text, phrase_row[i].name))
            return &phrase_row[i];
    return NULL;
}

const char *fault_word(enum fault f)
{
    static const char *const word[] = {
#define X(name, text) [FAULT_##name] = (text),
        FAULT_LIST(X)
#undef X
    };
    return word[f];
}

void fault_say(const char *stage, int code, const char *name, enum fault f, const char *text, const char *advice)
{
    struct say_line l;
    line_begin(&l, "err");
    line_str(&l, "stage", stage);
    line_int(&l, "code", code);
    line_str(&l, "name", name);
    line_str(&l, "class", fault_word(f));
    line_str(&l, "text", text);
    line_str(&l, "advice", advice);
    line_end(&l);
}

void fault_die(const char *stage, enum fault_lib lib, int code, const char *text)
{
    watch_end();
    log_relay();
    const struct fault_row *row = fault_find(lib, code), *said = NULL;
    if (lib == LIB_NCCL) {
        said = fault_phrase(text);
        if (!said)
            said = fault_phrase(log_warnings());
    }
    const struct fault_row *means = said ? said : row;
    fault_say(stage, code, row->name, means->fault, text, means->advice);
    _exit(1);
}

void fault_die_plain(const char *stage, enum fault f, const char *advice, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    watch_end();
    log_relay();
    fault_say(stage, 0, NULL, f, text, advice);
    _exit(1);
}
