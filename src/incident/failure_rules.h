/* The classes of failures by what was printed: one row, one reason.  The first row that matches decides.
 * Columns: name of the row; two texts that must both be there ("" = none); class; follower (says only that a peer is
 * gone). Each row has a test with a real message. */
#ifndef INCIDENT_FAILURE_RULES_H
#define INCIDENT_FAILURE_RULES_H

#define FAILURE_RULES(X)                                                                                               \
    X(CUDA_OOM, "OutOfMemoryError", "", OOM_GPU, false)                                                                \
    X(CUDA_OOM_OLD, "CUDA out of memory", "", OOM_GPU, false)                                                          \
    X(CUDA_OOM_DRIVER, "CUDA error: out of memory", "", OOM_GPU, false)                                                \
    X(HIP_OOM, "HIP out of memory", "", OOM_GPU, false)                                                                \
    X(CPU_OOM, "DefaultCPUAllocator: can't allocate memory", "", OOM_HOST, false)                                      \
    X(PYTHON_OOM, "MemoryError", "", OOM_HOST, false)                                                                  \
    X(CPLUS_OOM, "std::bad_alloc", "", OOM_HOST, false)                                                                \
    X(ERRNO_OOM, "Cannot allocate memory", "", OOM_HOST, false)                                                        \
    X(ECC, "uncorrectable ECC error", "", HARDWARE, false)                                                             \
    X(NVLINK, "uncorrectable NVLink error", "", HARDWARE, false)                                                       \
    X(BUS, "fallen off the bus", "", HARDWARE, false)                                                                  \
    X(CUDA_STATE, "CUDA error: hardware stack error", "", HARDWARE, false)                                             \
    X(GLOO_CLOSED, "gloo", "Connection closed by peer", NETWORK, true)                                                 \
    X(GLOO_RESET, "gloo", "Connection reset by peer", NETWORK, true)                                                   \
    X(GLOO_PIPE, "gloo", "Broken pipe", NETWORK, true)                                                                 \
    X(GLOO_REFUSED, "gloo", "Connection refused", NETWORK, true)                                                       \
    X(GLOO_TIMEOUT, "gloo", "Timed out waiting", HANG, true)                                                           \
    X(NCCL_REMOTE, "NCCL", "remote process exited or there was a network error", NETWORK, true)                        \
    X(NCCL_CLOSED, "NCCL", "Connection closed by remote peer", NETWORK, true)                                          \
    X(NCCL_WATCHDOG, "Watchdog caught collective operation timeout", "", HANG, true)                                   \
    X(STORE_RESET, "TCPStore", "Connection reset by peer", NETWORK, true)                                              \
    X(STORE_RECV, "DistNetworkError", "", NETWORK, true)                                                               \
    X(STORE_TIMEOUT, "DistStoreError", "", HANG, true)                                                                 \
    X(BACKEND, "DistBackendError", "", NETWORK, false)                                                                 \
    X(RESET, "ConnectionResetError", "", NETWORK, false)                                                               \
    X(REFUSED, "ConnectionRefusedError", "", NETWORK, false)                                                           \
    X(UNREACHABLE, "No route to host", "", NETWORK, false)                                                             \
    X(INTERRUPT, "KeyboardInterrupt", "", OUTSIDE, false)

/* Exceptions that say nothing about whether trying again would help: no code error. */
/* clang-format off */
#define FAILURE_OPEN_TYPES(X) \
    X("RuntimeError") \
    X("SystemExit") \
    X("OSError") \
    X("IOError") \
    X("BlockingIOError") \
    X("ChildProcessError") \
    X("BrokenPipeError") \
    X("ConnectionError") \
    X("ConnectionAbortedError") \
    X("FileExistsError") \
    X("FileNotFoundError") \
    X("InterruptedError") \
    X("IsADirectoryError") \
    X("NotADirectoryError") \
    X("PermissionError") \
    X("ProcessLookupError") \
    X("TimeoutError") \
    X("AcceleratorError") \
    X("ExceptionGroup") \
    X("BaseExceptionGroup") \
    X("ChildFailedError")
/* clang-format on */

#endif
