/* The classes of failures by what was printed: one row, one reason, and each row has a real message in test/data.
 * The first row that fits decides, so the grave and the particular stand before the general.
 *
 * Columns: name; scope; two texts that must both be there ("" = none); class; follower; advice ("" = the class's own).
 * scope: TYPE   a is the last part of the exception's type, b stands in its words
 *        WORDS  both stand in the words of an exception or of C++'s terminate (its message, all lines of it), but for
 *               Python's own kinds of program error, whose words may quote anything
 *        FRAME  a is the last part of the exception's type, b stands in its traceback
 *        LINE   as WORDS, or both stand in one line near the end of stderr: for lines that nobody prints who goes on
 * follower: says only that a peer is gone or did not come.  Such a worker is named as cause only if nobody else is
 * there: who made it so is another rank, and its own words are the better ones. */
#ifndef FAILURE_FAILURE_RULES_H
#define FAILURE_FAILURE_RULES_H

#define FAILURE_ADVICE_SHM                                                                                             \
    "raise the limit of shared memory: a larger /dev/shm (docker: --shm-size), or fewer loader workers"
#define FAILURE_ADVICE_PORT                                                                                            \
    "the port is taken: end what holds it, or give another --master-port (elrun's own choice is free)"
#define FAILURE_ADVICE_ADDRESS                                                                                         \
    "run once with CUDA_LAUNCH_BLOCKING=1 for the true line; if always on one GPU, have that GPU checked"
#define FAILURE_ADVICE_ASSERT                                                                                          \
    "an index or label is out of range: the assertion's line says which; run once with CUDA_LAUNCH_BLOCKING=1"
#define FAILURE_ADVICE_FABRIC "start nvidia-fabricmanager on this host, of the same version as the driver"
#define FAILURE_ADVICE_IB                                                                                              \
    "check this host's InfiniBand or RoCE ports (ibstat, link counters) and those of the peer in the line"
#define FAILURE_ADVICE_HELPER                                                                                          \
    "a helper process was killed: if its memory grew, the out-of-memory killer is likely (see dmesg)"
#define FAILURE_ADVICE_MEMORY                                                                                          \
    "a request for memory was refused: give the job more, or use fewer data loader workers or smaller buffers, and "   \
    "see its limits (ulimit -v)"
#define FAILURE_ADVICE_PROCESSES                                                                                       \
    "no process or thread more was allowed: see ulimit -u, and pids.max of the cgroup; each rank may start several "   \
    "for each processor (OMP_NUM_THREADS, loader workers)"
#define FAILURE_ADVICE_LOADER                                                                                          \
    "a data loader's process ended by itself with this exit code, nobody killed it: see what it printed, and who "     \
    "calls exit() there; with num_workers=0 it happens in the rank"
#define FAILURE_ADVICE_POOL                                                                                            \
    "a worker process of the pool died, and these words do not tell of what: of a signal (a crash; the out-of-memory " \
    "killer, see dmesg), or by an exit of its own"
#define FAILURE_ADVICE_UNPRINTED                                                                                       \
    "another exception came while this one was printed, likely from a data loader whose worker process had died: if "  \
    "its memory grew, see dmesg for the out-of-memory killer"

#define FAILURE_ADVICE_RESOLVE "a host name could not be resolved on this host: see its DNS"
#define FAILURE_ADVICE_SERVICE                                                                                         \
    "a service refuses or does not answer for now: let one rank fetch and the others wait, or keep a copy on the "     \
    "hosts"
#define FAILURE_ADVICE_CRLF                                                                                            \
    "a script has the line ends of Windows, and its first line or its commands end with a carriage return: dos2unix"
#define FAILURE_ADVICE_BUILDING                                                                                        \
    "another process held this file or was still building it: build it before the job, or in one rank while the "      \
    "others wait"

/* clang-format off */
#define FAILURE_RULES(X) \
    /* Hardware: the GPU, its links, its driver's state.  No program can do these things to a healthy GPU. */ \
    X(ECC,            LINE,  "uncorrectable ECC error", "",                 HARDWARE, false, "") \
    X(NVLINK,         LINE,  "uncorrectable NVLink error", "",              HARDWARE, false, "") \
    X(BUS,            LINE,  "GPU has fallen off the bus", "",              HARDWARE, false, "") \
    X(GPU_LOST,       LINE,  "GPU is lost", "",                             HARDWARE, false, "") \
    X(GPU_HANDLE,     LINE,  "Unable to determine the device handle", "",   HARDWARE, false, "") \
    X(NVML_UNKNOWN,   LINE,  "Failed to initialize NVML", "Unknown Error",  HARDWARE, false, "") \
    X(CUDA_CONTAINED, WORDS, "hardware error", "peer GPU memory",           HARDWARE, false, "") \
    /* 999 comes from a driver or a GPU that is out of order: the same program works on another host. */ \
    X(CUDA_UNKNOWN,   WORDS, "CUDA error: unknown error", "",               HARDWARE, false, "") \
    X(CUDA_999,       LINE,  "Cuda failure 999", "",                        HARDWARE, false, "") \
    X(CUDA_RT_999,    WORDS, "cuda runtime error (999)", "",                HARDWARE, false, "") \
    X(CUDA_NOT_READY, LINE,  "802", "system not yet initialized",           HARDWARE, false, FAILURE_ADVICE_FABRIC) \
    X(CUDA_BUSY,      WORDS, "CUDA-capable device(s) is/are busy or unavailable", "", HARDWARE, false, \
      "another process holds this GPU: see nvidia-smi on this host") \
    X(CUDA_NO_DEVICE, WORDS, "no CUDA-capable device is detected", "",      HARDWARE, false, \
      "see nvidia-smi on this host, and CUDA_VISIBLE_DEVICES") \
    X(IB_HCA,         LINE,  "Got async event", "local catastrophic error", HARDWARE, false, FAILURE_ADVICE_IB) \
    X(CUDA_RT_30,     WORDS, "cuda runtime error (30)", "unknown error",    HARDWARE, false, "") \
    X(CUDA_INIT,      WORDS, "CUDA driver initialization failed", "",       HARDWARE, false, \
      "see nvidia-smi on this host, and CUDA_VISIBLE_DEVICES") \
    X(HIP_HW,         WORDS, "HIP error: ", "hardware",                     HARDWARE, false, "") \
    /* Memory of the GPU, by whoever asked for it. */ \
    X(GPU_OOM_TYPE,   TYPE,  "OutOfMemoryError", "",                        OOM_GPU, false, "") \
    X(GPU_OOM,        WORDS, " out of memory. Tried to allocate", "",       OOM_GPU, false, "") \
    X(CUDA_OOM_OLD,   WORDS, "CUDA out of memory", "",                      OOM_GPU, false, "") \
    X(CUDA_OOM_CALL,  WORDS, "CUDA error: out of memory", "",               OOM_GPU, false, "") \
    X(CUDA_OOM_RT,    WORDS, "cuda runtime error (2)", "out of memory",     OOM_GPU, false, "") \
    X(CUDA_OOM_NAME,  WORDS, "CUDA_ERROR_OUT_OF_MEMORY", "",                OOM_GPU, false, "") \
    X(NCCL_OOM,       LINE,  "Cuda failure", "out of memory",               OOM_GPU, false, "") \
    X(HIP_OOM,        WORDS, "HIP out of memory", "",                       OOM_GPU, false, "") \
    X(CUBLAS_ALLOC,   WORDS, "CUBLAS_STATUS_ALLOC_FAILED", "",              OOM_GPU, false, "") \
    X(CUDNN_ALLOC,    WORDS, "CUDNN_STATUS_ALLOC_FAILED", "",               OOM_GPU, false, "") \
    X(XLA_OOM,        WORDS, "RESOURCE_EXHAUSTED: Out of memory", "",       OOM_GPU, false, "") \
    /* Memory of the host. */ \
    X(SLURM_OOM,      LINE,  "slurmstepd: error: Detected", "oom",          OOM_HOST, false, "") \
    X(LOADER_BUS,     WORDS, "is killed by signal: Bus error", "",          OOM_HOST, false, FAILURE_ADVICE_SHM) \
    X(LOADER_SHM,     LINE,  "insufficient shared memory (shm)", "",        OOM_HOST, false, FAILURE_ADVICE_SHM) \
    X(TORCH_SHM,      WORDS, "unable to write to file </torch_", "",        OOM_HOST, false, FAILURE_ADVICE_SHM) \
    X(CPU_OOM,        WORDS, "DefaultCPUAllocator: can't allocate memory", "", OOM_HOST, false, FAILURE_ADVICE_MEMORY) \
    /* classify.c: of the kinds above and below, if it asked for more than hosts have. */ \
    X(HUGE_OOM,       TYPE,  "(ten TiB and more)", "",              CODE, false, "a size, a shape or a dtype is wrong: it asked for more memory than a host has") \
    X(PYTHON_OOM,     TYPE,  "MemoryError", "",                             OOM_HOST, false, FAILURE_ADVICE_MEMORY) \
    X(NUMPY_OOM,      TYPE,  "_ArrayMemoryError", "",                       OOM_HOST, false, FAILURE_ADVICE_MEMORY) \
    X(CPLUS_OOM,      WORDS, "std::bad_alloc", "",                          OOM_HOST, false, FAILURE_ADVICE_MEMORY) \
    X(ERRNO_OOM,      WORDS, "Cannot allocate memory", "",                  OOM_HOST, false, FAILURE_ADVICE_MEMORY) \
    /* Ended by a scheduler or a person. */ \
    X(SLURM_CANCEL,   LINE,  "slurmstepd: error: ***", " CANCELLED AT ",    OUTSIDE, false, "") \
    X(SUBMITIT,       LINE,  "submitit WARNING", "this job is preempted",   OUTSIDE, false, "") \
    X(TORCHRUN_SIGNAL, TYPE, "SignalException", "got signal: ",             OUTSIDE, false, "") \
    X(INTERRUPT,      TYPE,  "KeyboardInterrupt", "",                       OUTSIDE, false, "") \
    /* The program's own error, though the exception's type alone does not say so. */ \
    X(CUDA_ASSERT,    WORDS, "device-side assert triggered", "",            CODE, false, FAILURE_ADVICE_ASSERT) \
    X(CUDA_ASSERTION, LINE,  ": block: [", "Assertion `",                   CODE, false, FAILURE_ADVICE_ASSERT) \
    X(CUDA_ORDINAL,   WORDS, "invalid device ordinal", "",                  CODE, false, \
      "more workers than visible GPUs: --nproc-per-node=gpu, or see CUDA_VISIBLE_DEVICES") \
    X(CUDA_IMAGE,     WORDS, "no kernel image is available for execution", "", CODE, false, \
      "this build of PyTorch or of an extension is not for this GPU") \
    X(HIP_IMAGE,      WORDS, "HIP error: invalid device function", "",      CODE, false, \
      "this build of PyTorch or of an extension is not for this GPU") \
    X(NCCL_USAGE,     LINE,  "ncclInvalidUsage", "",                        CODE, false, "") \
    X(NCCL_DUPLICATE, LINE,  "NCCL", "Duplicate GPU detected",              CODE, false, \
      "two ranks use one GPU: set the device by LOCAL_RANK; on two nodes: they have one host name (hostname, or NCCL_HOSTID)") \
    X(NO_BACKEND,     WORDS, "Distributed package doesn't have", "built in", CODE, false, "") \
    X(STATE_DICT,     WORDS, "Error(s) in loading state_dict for", "",      CODE, false, "") \
    X(SHAPES,         WORDS, "shapes cannot be multiplied", "",             CODE, false, "") \
    X(SIZES,          WORDS, "must match the size of tensor", "",           CODE, false, "") \
    X(SAME_DEVICE,    WORDS, "Expected all tensors to be on the same device", "", CODE, false, "") \
    X(DDP_UNUSED,     WORDS, "Expected to have finished reduction in the prior iteration", "", CODE, false, \
      "DistributedDataParallel(find_unused_parameters=True), or use every parameter in the loss") \
    X(BACKWARD_TWICE, WORDS, "Trying to backward through the graph a second time", "", CODE, false, "") \
    /* Not the network, though it looks so: a data loader's process died while it handed over a batch. */ \
    X(SHARER_RESET,   FRAME, "ConnectionResetError", "/multiprocessing/resource_sharer.py", UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(SHARER_REFUSED, FRAME, "ConnectionRefusedError", "/multiprocessing/resource_sharer.py", UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(SHARER_GONE,    FRAME, "FileNotFoundError", "/multiprocessing/resource_sharer.py", UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(SHARER_EOF,     FRAME, "EOFError", "/multiprocessing/connection.py",  UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    /* gRPC says it of a peer that ended, with the status UNAVAILABLE. */ \
    X(GRPC_CLOSED,    WORDS, "Socket closed", "",                           NETWORK, true, "") \
    /* A service that refuses for a while, or is not found for now: trying again later helps (FAILURE_PASSING). */ \
    X(OFFLINE,        WORDS, "ffline mode is enabled", "",                  CODE, false, "HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set") \
    X(TOO_MANY,       WORDS, "Too Many Requests", "",                       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(TOO_MANY_TYPE,  TYPE,  "TooManyRequests", "",                         NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(HTTP_429,       WORDS, "HTTP Error 429", "",                          NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(CODE_429,       WORDS, "Error code: 429", "",                         NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(STATUS_429,     WORDS, "429", "tatus",                                NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(CLIENT_429,     TYPE,  "ClientResponseError", "429",                  NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RETRIES_429,    WORDS, "too many 429 error responses", "",            NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RATE_LIMIT_TYPE, TYPE, "RateLimitError", "",                          NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RATE_LIMIT,     WORDS, "ate limit", "exceeded",                       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RATE_LIMITED,   WORDS, "429", "ate limit",                            NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RATE_LIMIT_HIT, WORDS, "ate limit reached", "",                       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(REQUEST_TIMEOUT, WORDS, "408 Client Error", "",                       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(CURL_429,       LINE,  "requested URL returned error: 429", "",       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(CURL_5XX,       LINE,  "requested URL returned error: 5", "",         NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(SERVER_ERROR,   WORDS, " Server Error", " for url",                   NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(SERVER_ERROR_X, WORDS, "Server error '5", "",                         NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(HTTP_5XX,       WORDS, "HTTP Error 5", "",                            NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(STATUS_5XX,     WORDS, "HTTP status 5", "",                           NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RETRIES_5XX,    WORDS, "too many 5", "error responses",               NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(UNAVAILABLE,    WORDS, "Service Unavailable", "",                     NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(UNAVAILABLE_NOW, WORDS, "Service Temporarily Unavailable", "",        NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(UNAVAILABLE_ONE, WORDS, "ServiceUnavailable", "",                     NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(UNAVAILABLE_RPC, WORDS, "StatusCode.UNAVAILABLE", "",                 NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(EXHAUSTED_RPC,  WORDS, "StatusCode.RESOURCE_EXHAUSTED", "",           NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(EXHAUSTED,      TYPE,  "ResourceExhausted", "429",                    NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(DEADLINE,       TYPE,  "DeadlineExceeded", "504",                     NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(BAD_GATEWAY,    WORDS, "Bad Gateway", "",                             NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(BAD_GATEWAY_TYPE, TYPE, "BadGateway", "",                             NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(GATEWAY_TIME,   WORDS, "Gateway Time", "",                            NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(GATEWAY_TYPE,   TYPE,  "GatewayTimeout", "",                          NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(INTERNAL,       WORDS, "Internal Server Error", "",                   NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(INTERNAL_TYPE,  TYPE,  "InternalServerError", "",                     NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(OVERLOADED,     TYPE,  "OverloadedError", "",                         NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(S3_SLOW_DOWN,   WORDS, "SlowDown", "",                                NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(S3_SLOW_NAME,   WORDS, "SLOW_DOWN", "",                               NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(S3_REDUCE,      WORDS, "reduce your request rate", "",                NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(THROTTLING,     WORDS, "Throttling", "",                              NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(THROTTLED,      WORDS, "hrottled", "",                                NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_LIMIT,      WORDS, "An error occurred (RequestLimitExceeded", "", NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_THROUGHPUT, WORDS, "An error occurred (ProvisionedThroughputExceeded", "", NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_TIMEOUT,    WORDS, "An error occurred (RequestTimeout", "",       NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_TOO_MANY,   WORDS, "An error occurred (TooManyRequests", "",      NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_INTERNAL,   WORDS, "An error occurred (Internal", "",             NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_5XX,        WORDS, "An error occurred (5", "",                    NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_429,        WORDS, "An error occurred (429", "",                  NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AWS_CONNECTION, WORDS, "AWS Error NETWORK_CONNECTION", "",            NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(AZURE_BUSY,     WORDS, "ServerBusy", "",                              NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(HUB_ENTRY,      TYPE,  "LocalEntryNotFoundError", "",                 NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(HUB_CONNECT,    WORDS, "We couldn't connect to '", "",                NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(HUB_REACH,      WORDS, "Couldn't reach ", "Hub",                      NETWORK, false, FAILURE_ADVICE_SERVICE) \
    X(RESOLVE_NOW,    WORDS, "Temporary failure in name resolution", "",    NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    X(RESOLVE_NAME,   WORDS, "Name or service not known", "",               NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    X(RESOLVE_ADDRESS, WORDS, "No address associated with hostname", "",    NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    X(RESOLVE_FAILED, WORDS, "Failed to resolve '", "",                     NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    X(RESOLVE_CURL,   LINE,  "Could not resolve host", "",                  NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    /* Not a file: the kernel refuses one process or thread more. */ \
    X(FORK_LIMIT,     FRAME, "BlockingIOError", "os.fork(",                 UNKNOWN, false, FAILURE_ADVICE_PROCESSES) \
    X(FORK_LIMIT_EXEC, FRAME, "BlockingIOError", "fork_exec(",              UNKNOWN, false, FAILURE_ADVICE_PROCESSES) \
    X(THREAD_LIMIT,   WORDS, "can't start new thread", "",                  UNKNOWN, false, FAILURE_ADVICE_PROCESSES) \
    /* A file that another process still writes or holds. */ \
    X(FILE_LOCK,      TYPE,  "Timeout", "could not be acquired",            UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(FILE_BLOCKED,   TYPE,  "BlockingIOError", "",                         UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(SQLITE_LOCKED,  WORDS, "database is locked", "",                      UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(TEXT_BUSY,      WORDS, "Text file busy", "",                          UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(SO_SHORT,       TYPE,  "ImportError", "file too short",               UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(SO_SHORT_OTHER, WORDS, "file too short", "",                          UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(EXTENSION,      FRAME, "ImportError", "/torch_extensions/",           UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(EXTENSION_LOAD, FRAME, "ImportError", "/torch/utils/cpp_extension.py", UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(EXTENSION_NONE, FRAME, "ModuleNotFoundError", "in _import_module_from_library", UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(EXTENSION_FILE, TYPE,  "FileNotFoundError", "torch_extensions",       UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(EXTENSION_OS,   TYPE,  "OSError", "torch_extensions",                 UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(INDUCTOR,       FRAME, "ImportError", "/torchinductor_",              UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(INDUCTOR_FILE,  TYPE,  "FileNotFoundError", "/torchinductor_",        UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    X(TRITON_FILE,    TYPE,  "FileNotFoundError", ".triton/cache",          UNKNOWN, false, FAILURE_ADVICE_BUILDING) \
    /* A collective that did not end: a rank is missing, and it is not this one. */ \
    X(WATCHDOG,       LINE,  "Watchdog caught collective operation timeout", "", HANG, true, "") \
    X(WATCHDOG_DOWN,  LINE,  "Some NCCL operations have failed or timed out", "", HANG, true, "") \
    X(WATCHDOG_HEART, LINE,  "ProcessGroupNCCL", "watchdog got stuck for",  HANG, true, "") \
    X(WATCHDOG_BEAT,  LINE,  "ProcessGroupNCCL", "Heartbeat monitor timed out", HANG, true, "") \
    X(WATCHDOG_OTHER, LINE,  "ProcessGroupNCCL", "dump signal",             HANG, true, "") \
    X(MONITORED_CAME, WORDS, "successfully reached monitoredBarrier", "",  HANG, true, "") \
    X(MONITORED,      WORDS, "monitoredBarrier", "",                        HANG, true, \
      "the message names the ranks that did not come: look at their output") \
    X(GLOO_TIMEOUT,   WORDS, "gloo", "Timed out waiting",                   HANG, true, "") \
    X(GLOO_APP,       WORDS, "gloo", "Application timeout caused pair closure", HANG, true, "") \
    X(STORE_BARRIER,  WORDS, "in store based barrier", "",                  HANG, true, "") \
    X(STORE_TIMEOUT,  TYPE,  "DistStoreError", "",                          HANG, true, "") \
    X(STORE_SOCKET,   WORDS, "RuntimeError: Socket Timeout", "",            HANG, true, "") \
    X(HCCL_SOCKET,    LINE,  "EI0006", "",                                  HANG, true, "") \
    X(HCCL_NOTIFY,    LINE,  "EI0002", "",                                  HANG, true, "") \
    X(HCCL_STUCK,     LINE,  "hccl", "task timeout occurred",               HANG, true, "") \
    X(LOADER_TIMEOUT, WORDS, "DataLoader timed out after", "",              HANG, false, \
      "a data loader's worker did not deliver: slow storage, or a deadlock in it") \
    X(FAULTHANDLER,   TYPE,  "Timeout", "",                                 HANG, false, \
      "the program's own time limit ran out: its stacks say where it stood") \
    /* The network: a peer that is gone.  Its end is the cause, not these words about it. */ \
    X(GLOO_CLOSED,    WORDS, "gloo", "Connection closed by peer",           NETWORK, true, "") \
    X(GLOO_RESET,     WORDS, "gloo", "Connection reset by peer",            NETWORK, true, "") \
    X(GLOO_PIPE,      WORDS, "gloo", "Broken pipe",                         NETWORK, true, "") \
    X(GLOO_REFUSED,   WORDS, "gloo", "Connection refused",                  NETWORK, true, "") \
    X(NCCL_REMOTE,    LINE,  "NCCL", "remote process exited or there was a network error", NETWORK, true, "") \
    X(NCCL_CLOSED,    LINE,  "NCCL", "Connection closed by remote peer",    NETWORK, true, "") \
    X(NCCL_RESET,     LINE,  "NCCL", "Connection reset by peer",            NETWORK, true, "") \
    X(NCCL_PIPE,      LINE,  "NCCL", "Broken pipe",                         NETWORK, true, "") \
    /* 12: the retries to the peer ran out; 5: flushed, because the connection had failed before. */ \
    X(IB_RETRY,       LINE,  "Got completion from peer", "status=12",       NETWORK, true, FAILURE_ADVICE_IB) \
    X(IB_RETRY_OLD,   LINE,  "Got completion from peer", "error 12",        NETWORK, true, FAILURE_ADVICE_IB) \
    X(IB_FLUSH,       LINE,  "Got completion from peer", "status=5",        NETWORK, true, FAILURE_ADVICE_IB) \
    X(IB_FLUSH_OLD,   LINE,  "Got completion from peer", "error 5",         NETWORK, true, FAILURE_ADVICE_IB) \
    X(UCX_RESET,      LINE,  "Connection reset by remote peer", "",         NETWORK, true, "") \
    X(UCX_ENDPOINT,   LINE,  "UCX", "Endpoint timeout",                     NETWORK, true, "") \
    X(NCCL_REMOTE_NAME, LINE, "ncclRemoteError", "",                        NETWORK, true, "") \
    X(MPI_FAILED,     LINE,  "MPI_ERR_PROC_FAILED", "",                     NETWORK, true, "") \
    X(MPI_REVOKED,    LINE,  "MPI_ERR_REVOKED", "",                         NETWORK, true, "") \
    X(MPI_LOST,       LINE,  "lost communication with", "process",          NETWORK, true, "") \
    X(RPC_GONE,       WORDS, "this error originated at tensorpipe", "",     NETWORK, true, "") \
    X(HOROVOD,        TYPE,  "HorovodInternalError", "",                    NETWORK, true, "") \
    X(HOROVOD_DOWN,   WORDS, "Horovod has been shut down", "",              NETWORK, true, "") \
    X(GLOO_RESET_TYPE, TYPE, "ConnectionResetError", "Gloo",                NETWORK, true, "") \
    X(STORE_RESET,    WORDS, "TCPStore", "Connection reset by peer",        NETWORK, true, "") \
    /* PyTorch 1.13 and older: the store has no type of its own for it. */ \
    X(STORE_OLD_RESET, WORDS, "RuntimeError: Connection reset by peer", "", NETWORK, true, "") \
    X(STORE_OLD_PIPE, WORDS, "RuntimeError: Broken pipe", "",               NETWORK, true, "") \
    X(STORE_OLD_STOP, WORDS, "Stop_waiting response is expected", "",       NETWORK, true, "") \
    X(PORT_TAKEN,     WORDS, "server socket has failed to listen", "",      NETWORK, false, FAILURE_ADVICE_PORT) \
    X(STORE_RECV,     TYPE,  "DistNetworkError", "",                        NETWORK, true, "") \
    /* The network on this host or on the way. */ \
    X(IB_OTHER,       LINE,  "Got completion from peer", "",                NETWORK, false, FAILURE_ADVICE_IB) \
    X(IB_QP,          LINE,  "Call to ibv_modify_qp failed", "",            NETWORK, false, FAILURE_ADVICE_IB) \
    X(IB_CALL,        LINE,  "NCCL WARN Call to ibv_", " failed",           NETWORK, false, FAILURE_ADVICE_IB) \
    X(IB_FATAL,       LINE,  "NET/IB", "async fatal event",               NETWORK, false, FAILURE_ADVICE_IB) \
    X(GLOO_MESH,      LINE,  "Gloo connectFullMesh failed", "",            NETWORK, true, \
      "see that this host's own name and address can be reached from the others (GLOO_SOCKET_IFNAME)") \
    X(IB_ASYNC,       LINE,  "NET/IB", "Got async",                         NETWORK, false, FAILURE_ADVICE_IB) \
    X(NCCL_CONNECT,   LINE,  "NCCL WARN", "socketStartConnect: Connect to", NETWORK, false, "") \
    X(NCCL_SYSTEM,    WORDS, "NCCL", "unhandled system error",              NETWORK, false, \
      "run once with NCCL_DEBUG=WARN: the line in front says which call failed") \
    /* Of another rank, or of a service: if no rank has an error of its own, this one is named. */ \
    X(RESET,          TYPE,  "ConnectionResetError", "",                    NETWORK, true, "") \
    X(REFUSED,        TYPE,  "ConnectionRefusedError", "",                  NETWORK, true, "") \
    X(ABORTED,        TYPE,  "ConnectionAbortedError", "",                  NETWORK, true, "") \
    X(PIPE,           TYPE,  "BrokenPipeError", "",                         NETWORK, true, "") \
    X(CONNECTION,     TYPE,  "ConnectionError", "",                         NETWORK, false, "") \
    X(DISCONNECTED,   TYPE,  "RemoteDisconnected", "",                      NETWORK, false, "") \
    X(CONNECT_TIMEOUT, TYPE, "ConnectTimeout", "",                          NETWORK, false, "") \
    X(READ_TIMEOUT,   TYPE,  "ReadTimeout", "",                             NETWORK, false, "") \
    X(READ_TIMED_OUT, TYPE,  "ReadTimeoutError", "",                        NETWORK, false, "") \
    X(CONNECT_TIMED_OUT, TYPE, "ConnectTimeoutError", "",                   NETWORK, false, "") \
    X(MAX_RETRIES,    TYPE,  "MaxRetryError", "",                           NETWORK, false, "") \
    X(PROTOCOL,       TYPE,  "ProtocolError", "",                           NETWORK, false, "") \
    X(INCOMPLETE,     TYPE,  "IncompleteRead", "",                          NETWORK, false, "") \
    X(CHUNKED,        TYPE,  "ChunkedEncodingError", "",                    NETWORK, false, "") \
    X(AIO_CONNECT,    TYPE,  "ClientConnectorError", "",                    NETWORK, false, "") \
    X(S3_ENDPOINT,    TYPE,  "EndpointConnectionError", "",                 NETWORK, false, "") \
    X(TIMED_OUT,      TYPE,  "TimeoutError", "timed out",                   NETWORK, false, "") \
    X(RESOLVE,        TYPE,  "gaierror", "",                                NETWORK, false, FAILURE_ADVICE_RESOLVE) \
    X(HTTPX_CONNECT,  TYPE,  "ConnectError", "",                            NETWORK, false, "") \
    X(HTTPX_READ,     TYPE,  "ReadError", "",                               NETWORK, false, "") \
    X(HTTPX_PROTOCOL, TYPE,  "RemoteProtocolError", "",                     NETWORK, false, "") \
    X(API_CONNECTION, TYPE,  "APIConnectionError", "",                      NETWORK, false, "") \
    X(API_TIMEOUT,    TYPE,  "APITimeoutError", "",                         NETWORK, false, "") \
    X(AIO_GONE,       TYPE,  "ServerDisconnectedError", "",                 NETWORK, false, "") \
    X(AIO_TIMEOUT,    TYPE,  "ServerTimeoutError", "",                      NETWORK, false, "") \
    X(AIO_DNS,        TYPE,  "ClientConnectorDNSError", "",                 NETWORK, false, "") \
    X(AIO_PAYLOAD,    TYPE,  "ClientPayloadError", "",                      NETWORK, false, "") \
    X(S3_CLOSED,      TYPE,  "ConnectionClosedError", "",                   NETWORK, false, "") \
    X(S3_STREAM,      TYPE,  "ResponseStreamingError", "",                  NETWORK, false, "") \
    X(AZURE_REQUEST,  TYPE,  "ServiceRequestError", "",                     NETWORK, false, "") \
    X(AZURE_RESPONSE, TYPE,  "ServiceResponseError", "",                    NETWORK, false, "") \
    X(URL,            TYPE,  "URLError", "urlopen error [Errno",            NETWORK, false, "") \
    /* Told again by the program, or by a library that is not known. */ \
    X(CLOSED_WORDS,   WORDS, "Connection closed by peer", "",               NETWORK, true, "") \
    X(RESET_WORDS,    WORDS, "Connection reset by peer", "",                NETWORK, true, "") \
    X(UNREACHABLE,    WORDS, "No route to host", "",                        NETWORK, false, "") \
    X(NET_UNREACHABLE, WORDS, "Network is unreachable", "",                 NETWORK, false, "") \
    X(ETIMEDOUT,      WORDS, "[Errno 110] Connection timed out", "",        NETWORK, false, "") \
    X(STALE,          WORDS, "Stale file handle", "",                       NETWORK, false, \
      "a network file system changed under the program: mount it again on this host") \
    X(ENDPOINT,       WORDS, "Transport endpoint is not connected", "",     NETWORK, false, \
      "a network file system went away: mount it again on this host") \
    /* Known, and open who is to blame: no class, but an advice. */ \
    X(LOADER_KILLED,  WORDS, "is killed by signal: Killed", "",             UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(LOADER_EXIT,    WORDS, "DataLoader worker", "exited unexpectedly with exit code", UNKNOWN, false, FAILURE_ADVICE_LOADER) \
    X(LOADER_GONE,    WORDS, "DataLoader worker", "exited unexpectedly",    UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(POOL_BROKEN,    TYPE,  "BrokenProcessPool", "",                       UNKNOWN, false, FAILURE_ADVICE_POOL) \
    X(SPAWN_KILLED,   TYPE,  "ProcessExitedException", "SIGKILL",           UNKNOWN, false, FAILURE_ADVICE_HELPER) \
    X(CUDA_ADDRESS,   WORDS, "an illegal memory access was encountered", "", UNKNOWN, false, FAILURE_ADVICE_ADDRESS) \
    X(CUDA_ALIGN,     WORDS, "misaligned address", "",                      UNKNOWN, false, FAILURE_ADVICE_ADDRESS) \
    X(CUDA_LAUNCH,    WORDS, "unspecified launch failure", "",              UNKNOWN, false, FAILURE_ADVICE_ADDRESS) \
    X(CUDA_ILLEGAL,   WORDS, "an illegal instruction was encountered", "",  UNKNOWN, false, FAILURE_ADVICE_ADDRESS) \
    X(CUDA_STACK,     WORDS, "CUDA error: hardware stack error", "",        UNKNOWN, false, FAILURE_ADVICE_ADDRESS) \
    X(ROCM_FAULT,     LINE,  "Memory access fault by GPU", "",              UNKNOWN, false, \
      "an illegal address; if always on one GPU, have that GPU checked") \
    X(NCCL_INTERNAL,  WORDS, "ncclInternalError", "",                       UNKNOWN, false, \
      "run once with NCCL_DEBUG=WARN: the line in front says what failed") \
    X(DISK_FULL,      WORDS, "No space left on device", "",                 UNKNOWN, false, \
      "a disk is full: see df -h and df -i on this host") \
    X(MANY_FILES,     WORDS, "Too many open files", "",                     UNKNOWN, false, \
      "raise the limit (ulimit -n), or torch.multiprocessing.set_sharing_strategy('file_system')")

/* Failures that pass by themselves: the program is right, and its turn comes later.  From (with) the first row to the
 * second. */
#define FAILURE_PASSING(X) X(TOO_MANY, RESOLVE_CURL) X(FILE_LOCK, TRITON_FILE) X(CONNECTION, URL)

/* Followers whose words do not tell a collective's connection from one that the program made itself: outside
 * torch.distributed it may well be a service that is gone, and then no other rank is to blame. */
#define FAILURE_ANY_CONNECTION(X) X(GRPC_CLOSED) X(RESET) X(REFUSED) X(ABORTED) X(PIPE) X(CLOSED_WORDS) X(RESET_WORDS)

/* Exceptions of libraries that refuse a command line or a configuration. */
#define FAILURE_USAGE_TYPES(X) \
    X("ConfigCompositionException") X("OverrideParseException") X("MissingConfigException") \
    X("UnrecognizedFlagError") X("IllegalFlagValueError") X("ArgumentError") X("UsageError") X("BadParameter") \
    X("MissingParameter") X("NoSuchOption") X("BadOptionUsage") X("BadArgumentUsage") X("NoSuchCommand") \
    X("GetoptError") X("ConfigKeyError") X("ConfigAttributeError") X("MissingMandatoryValue") X("DecodingError") \
    X("ParsingError")

/* Kinds of Python's own program errors: the class is clear whatever the words are.  plain: often raised and caught in
 * the ordinary course of things, so that one which was only being handled explains nothing. */
#define FAILURE_CODE_TYPES(X) \
    X("SyntaxError", false) X("IndentationError", false) X("TabError", false) X("NameError", false) \
    X("UnboundLocalError", false) X("TypeError", false) X("ValueError", false) X("AssertionError", false) \
    X("ZeroDivisionError", false) X("OverflowError", false) X("FloatingPointError", false) \
    X("NotImplementedError", false) X("RecursionError", false) X("UnicodeDecodeError", false) \
    X("UnicodeEncodeError", false) X("JSONDecodeError", false) X("ImportError", true) \
    X("ModuleNotFoundError", true) X("AttributeError", true) X("KeyError", true) X("IndexError", true) \
    X("LookupError", true) X("StopIteration", true)

/* Exceptions that say nothing about whether trying again would help: no code error without a row of their own. */
#define FAILURE_OPEN_TYPES(X) \
    X("Exception") X("RuntimeError") X("SystemExit") X("OSError") X("IOError") X("BlockingIOError") \
    X("ChildProcessError") X("BrokenPipeError") X("ConnectionError") X("ConnectionAbortedError") \
    X("FileExistsError") X("FileNotFoundError") X("InterruptedError") X("IsADirectoryError") \
    X("NotADirectoryError") X("PermissionError") X("ProcessLookupError") X("TimeoutError") X("timeout") \
    X("EOFError") X("UnpicklingError") X("BadZipFile") X("CalledProcessError") X("TimeoutExpired") \
    X("AcceleratorError") X("DistBackendError") X("DistError") X("ExceptionGroup") X("BaseExceptionGroup") \
    X("ChildFailedError") X("ProcessExitedException") X("ProcessRaisedException") X("BrokenProcessPool") \
    X("XlaRuntimeError") X("HTTPError") X("URLError") X("SSLError") \
    X("RendezvousClosedError") X("RendezvousConnectionError") X("RendezvousTimeoutError")

/* Command lines that were refused, by whichever library: the exit status is as the library or the program likes it. */
#define FAILURE_ANY_CODE 256
#define FAILURE_ADVICE_USAGE "the command line is wrong: see the line above"
#define FAILURE_USAGES(X) \
    X(ARGPARSE,       "usage: ", ": error: ") \
    /* The usage is longer than what is looked at. */ \
    X(ARGPARSE_UNKNOWN, ": error: unrecognized arguments: ", "") \
    X(ARGPARSE_MISSING, ": error: the following arguments are required: ", "") \
    X(ARGPARSE_VALUE, ": error: argument ", "") \
    X(ARGPARSE_AMBIGUOUS, ": error: ambiguous option: ", "") \
    X(JSONARGPARSE,   "usage: ", "\nerror: ") \
    X(CLICK,          "Usage: ", "\nError: ") \
    X(TYPER,          "Usage: ", "─ Error ─") \
    X(TYPER_ASCII,    "Usage: ", "+- Error -") \
    /* Both in one line of a box; the boxes of programs look alike. */ \
    X(CYCLOPTS_VALUE, " for --", "│ Invalid value ") \
    X(CYCLOPTS_VALUE_3, " for \"--", "│ Invalid value ") /* as version 3 writes it */ \
    X(CYCLOPTS_CONVERT, ": unable to convert \"", "│ Invalid value for ") \
    X(CYCLOPTS_OPTION, "", "│ Unknown option: -") \
    X(CYCLOPTS_OPTION_3, "", "│ Unknown option: \"-") \
    X(CYCLOPTS_COMMAND, " Available commands: ", "│ Unknown command \"") \
    X(CYCLOPTS_TOKENS, "", "│ Unused Tokens: ['") \
    X(CYCLOPTS_COMMAND_NEEDS, " requires an argument.", "│ Command \"") \
    X(CYCLOPTS_NEEDS, " requires an argument.", "│ Parameter ") \
    X(TYRO,           "For full helptext, ", "") \
    X(FIRE,           "ERROR: ", "For detailed information on this command, run:") \
    X(ABSL,           "FATAL Flags parsing error: ", "") \
    X(ABSL_USAGE,     " [flags]\nflags:", "  USAGE: ") \
    X(DOCOPT,         "Usage:\n", "") \
    X(HYDRA,          "Set the environment variable HYDRA_FULL_ERROR=1", "")

/* Exit codes with a meaning of their own: name, code, two texts of the last lines ("" = none), class, advice. */
#define FAILURE_EXITS(X) \
    X(NO_SCRIPT,      2,   "can't open file '", "No such file",     CODE, "there is no such script on this node") \
    /* GNU env shows it as \\r; bash names it as it would have to be written. */ \
    X(CRLF_ENV,       127, "\\r", ": No such file",                     CODE, FAILURE_ADVICE_CRLF) \
    X(CRLF_SHELL,     127, "$'\\r': command not found", "",             CODE, FAILURE_ADVICE_CRLF) \
    X(NO_COMMAND,     127, "", "",                                  CODE, "there is no such command on this node: see PATH") \
    X(CRLF_BASH,      126, "^M: bad interpreter", "",                   CODE, FAILURE_ADVICE_CRLF) \
    X(NO_INTERPRETER, 126, ": bad interpreter: ", "",                   CODE, "the interpreter of the script's #! line is not on this node") \
    X(NOT_EXECUTABLE, 126, "", "",                                  CODE, "the file is not executable") \
    /* Of a file that Python cannot decode: it has no place, and only as the last line is it the interpreter's. */ \
    X(UNREADABLE,     1,   "SyntaxError: ", "",                     CODE, "Python cannot read the file: see its encoding, which is UTF-8 where none is declared") \
    X(UNPRINTED,      1,   "object type name: ", "lost sys.stderr", UNKNOWN, FAILURE_ADVICE_UNPRINTED) \
    X(TIME_LIMIT,     124, "", "",                                  HANG, "this is what timeout(1) says when the time is over") \
    X(EXIT_HUP,       129, "", "",                                  OUTSIDE, "the program ended on SIGHUP: start the job with nohup, tmux or the scheduler") \
    X(EXIT_INT,       130, "", "",                                  OUTSIDE, "") \
    X(EXIT_TERM,      143, "", "",                                  OUTSIDE, "")
/* clang-format on */

#endif
