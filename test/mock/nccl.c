/* NCCL for two ranks, which moves the bytes over a TCP connection as real NCCL does without InfiniBand.  Nothing
 * blocks: connecting and moving go on in ncclCommGetAsyncError.  The interface is NCCL_SOCKET_IFNAME's, else the first
 * that is up and no loopback, else loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>

#include "mock.h"

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };

/* Stands in the constants as in the real one: the helper looks for it. */
extern const char mock_version_text[];
EXPORT const char mock_version_text[] = "NCCL version 2.28.9+cuda12.9";

struct id {
    char bytes[128];
};

struct comm {
    int rank, listener, fd; /* -1: none */
    struct sockaddr_in peer;
    bool greeted_out, greeted_in;
    uint32_t version_in;
    size_t got; /* of version_in */
    int failed;
    /* the all-gather under way */
    const char *out;
    char *in;
    size_t to_send, to_receive;
    bool corrupt;
    struct comm *twin; /* the other rank is in this process */
};

static char last_error[256];
static int host_listener = -1;
static char interface_name[IFNAMSIZ];
static unsigned group_depth;

static void log_line(const char *level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void log_line(const char *level, const char *fmt, ...)
{
    const char *name = getenv("NCCL_DEBUG_FILE"), *wanted = getenv("NCCL_DEBUG");
    static FILE *file;
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (strcmp(level, "WARN") == 0)
        snprintf(last_error, sizeof last_error, "%s", text);
    else if (!wanted || strcmp(wanted, "INFO") != 0)
        return;
    if (!file)
        file = name ? fopen(name, "w") : stdout;
    if (file) {
        fprintf(file, "mockhost:%d:%d [0] NCCL %s %s\n", (int)getpid(), (int)getpid(), level, text);
        fflush(file);
    }
}

#define WARN(...) log_line("WARN", __VA_ARGS__)
#define INFO(...) log_line("INFO", __VA_ARGS__)

/* The GPU of the helper, by its command line. */
static int own_gpu(void)
{
    static int gpu = -1;
    char words[8192];
    FILE *file = gpu < 0 ? fopen("/proc/self/cmdline", "r") : NULL;
    if (!file)
        return gpu;
    size_t n = fread(words, 1, sizeof words - 1, file);
    words[n] = 0;
    for (const char *at = words; at < words + n; at += strlen(at) + 1)
        if (strncmp(at, "gpu=", 4) == 0)
            gpu = (int)strtol(at + 4, NULL, 10);
    fclose(file);
    return gpu;
}

static bool variable_is(const char *name, const char *value)
{
    const char *got = getenv(name);
    return got && strcmp(got, value) == 0;
}

static struct mock_act act;
#define RULES(name)                                                                                                    \
    act = mock_call(#name, own_gpu());                                                                                 \
    if (act.fail) {                                                                                                    \
        WARN(#name ": the mock was told to fail with %d", act.fail);                                                   \
        return act.fail;                                                                                               \
    }

static bool find_interface(struct in_addr *out)
{
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *all, *best = NULL;
    if (getifaddrs(&all) < 0)
        return false;
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
            continue;
        if (wanted && strncmp(i->ifa_name, wanted, strlen(wanted)) != 0)
            continue;
        if (!best || (best->ifa_flags & IFF_LOOPBACK))
            best = i;
    }
    if (best) {
        struct sockaddr_in at;
        memcpy(&at, best->ifa_addr, sizeof at);
        *out = at.sin_addr;
        snprintf(interface_name, sizeof interface_name, "%s", best->ifa_name);
    }
    freeifaddrs(all);
    return best != NULL;
}

static int bootstrap(struct in_addr *at)
{
    char text[INET_ADDRSTRLEN];
    if (!find_interface(at)) {
        WARN("Bootstrap : no socket interface found");
        return INVALID_USAGE;
    }
    INFO("Bootstrap: Using %s:%s<0>", interface_name, inet_ntop(AF_INET, at, text, sizeof text));
    return SUCCESS;
}

EXPORT int ncclGetVersion(int *out);
EXPORT int ncclGetVersion(int *out)
{
    RULES(ncclGetVersion)
    *out = (int)mock_number("MOCK_NCCL", 22809);
    return SUCCESS;
}

EXPORT const char *ncclGetErrorString(int code);
EXPORT const char *ncclGetErrorString(int code)
{
    return code == REMOTE_ERROR ? "remote process exited or there was a network error" : "unhandled error";
}

EXPORT const char *ncclGetLastError(void *comm);
EXPORT const char *ncclGetLastError(void *comm)
{
    (void)comm;
    return last_error;
}

EXPORT int ncclGetUniqueId(struct id *out);
EXPORT int ncclGetUniqueId(struct id *out)
{
    RULES(ncclGetUniqueId)
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    int rc = bootstrap(&at.sin_addr);
    if (rc != SUCCESS)
        return rc;
    host_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (host_listener < 0 || bind(host_listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(host_listener, 1) < 0 || getsockname(host_listener, (struct sockaddr *)&at, &n) < 0)
        return SYSTEM_ERROR;
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &at, sizeof at);
    return SUCCESS;
}

static int fail(struct comm *c, int code)
{
    c->failed = code;
    return code;
}

static int lost(struct comm *c, ssize_t n)
{
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EINPROGRESS || errno == ENOTCONN))
        return IN_PROGRESS;
    WARN("socketProgress: Connection closed by remote peer (%s)", n < 0 ? strerror(errno) : "end of stream");
    return fail(c, REMOTE_ERROR);
}

static int take_guest(struct comm *c)
{
    c->fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return c->fd >= 0 ? SUCCESS : IN_PROGRESS;
}

/* Until both versions have crossed. */
static int greet(struct comm *c)
{
    uint32_t own = (uint32_t)mock_number("MOCK_NCCL", 22809);
    if (c->fd < 0 && take_guest(c) != SUCCESS)
        return IN_PROGRESS;
    if (!c->greeted_out) {
        ssize_t n = send(c->fd, &own, sizeof own, MSG_NOSIGNAL);
        if (n != sizeof own)
            return lost(c, n);
        c->greeted_out = true;
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    }
    while (c->got < sizeof own) {
        ssize_t n = recv(c->fd, (char *)&c->version_in + c->got, sizeof own - c->got, 0);
        if (n <= 0)
            return lost(c, n);
        c->got += (size_t)n;
    }
    c->greeted_in = true;
    INFO("Using network Socket");
    if (c->version_in != own) {
        WARN("Mismatched NCCL version detected : rank %d %u rank %d %u", c->rank, own, 1 - c->rank, c->version_in);
        return fail(c, INVALID_USAGE);
    }
    return SUCCESS;
}

static int move(struct comm *c)
{
    while (c->to_send > 0 || c->to_receive > 0) {
        ssize_t out = c->to_send ? send(c->fd, c->out, c->to_send, MSG_NOSIGNAL) : 0;
        if (c->to_send && out <= 0 && lost(c, out) != IN_PROGRESS)
            return c->failed;
        ssize_t in = c->to_receive ? recv(c->fd, c->in, c->to_receive, 0) : 0;
        if (c->to_receive && in <= 0 && lost(c, in) != IN_PROGRESS)
            return c->failed;
        if (out > 0)
            c->out += out, c->to_send -= (size_t)out;
        if (in > 0) {
            if (c->corrupt)
                c->in[in / 2] ^= 0x20, c->corrupt = false;
            c->in += in, c->to_receive -= (size_t)in;
        }
        if (out <= 0 && in <= 0)
            return IN_PROGRESS;
    }
    return SUCCESS;
}

EXPORT int ncclCommGetAsyncError(void *comm, int *state);
EXPORT int ncclCommGetAsyncError(void *comm, int *state)
{
    struct comm *c = comm;
    RULES(ncclCommGetAsyncError)
    *state = c->failed ? c->failed : c->twin ? SUCCESS : c->greeted_in ? move(c) : greet(c);
    return SUCCESS;
}

static int comm_new(void **out, struct id id, int rank)
{
    struct in_addr own;
    struct comm *c = calloc(1, sizeof *c);
    if (!c)
        return SYSTEM_ERROR;
    c->rank = rank;
    c->listener = host_listener;
    c->fd = -1;
    memcpy(&c->peer, id.bytes, sizeof c->peer);
    *out = c;
    if (rank == 0)
        return IN_PROGRESS;
    int rc = bootstrap(&own);
    if (rc != SUCCESS)
        return rc;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c->fd, (struct sockaddr *)&c->peer, sizeof c->peer) < 0) {
        WARN("socketPollConnect: connect to the root failed : %s", strerror(errno));
        return fail(c, SYSTEM_ERROR);
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    return IN_PROGRESS;
}

EXPORT int ncclCommInitRankConfig(void **out, int n, struct id id, int rank, const void *config);
EXPORT int ncclCommInitRankConfig(void **out, int n, struct id id, int rank, const void *config)
{
    struct {
        size_t size;
        unsigned magic, version;
        int blocking;
    } c;
    RULES(ncclCommInitRankConfig)
    memcpy(&c, config, sizeof c);
    if (getenv("NCCL_COMM_ID") || getenv("NCCL_COMM_BLOCKING") || getenv("NCCL_PROFILER_PLUGIN") ||
        !variable_is("NCCL_RAS_ENABLE", "0")) {
        WARN("the environment is not as the helper should have made it");
        return INVALID_USAGE;
    }
    if (n != 2 || c.size != 24 || c.magic != 0xcafebeef || c.version != 21400 || c.blocking != 0)
        return INVALID_ARGUMENT;
    return comm_new(out, id, rank);
}

/* Blocks, as it did before 2.14. */
EXPORT int ncclCommInitRank(void **out, int n, struct id id, int rank);
EXPORT int ncclCommInitRank(void **out, int n, struct id id, int rank)
{
    RULES(ncclCommInitRank)
    int rc = n == 2 ? comm_new(out, id, rank) : INVALID_ARGUMENT;
    while (rc == IN_PROGRESS) {
        usleep(1000);
        rc = greet(*out);
    }
    return rc;
}

EXPORT int ncclCommInitAll(void **out, int n, const int *devices);
EXPORT int ncclCommInitAll(void **out, int n, const int *devices)
{
    (void)devices;
    RULES(ncclCommInitAll)
    if (!variable_is("NCCL_P2P_DISABLE", "1") || !variable_is("NCCL_SHM_DISABLE", "1")) {
        WARN("the loop would not take the network cards");
        return INVALID_USAGE;
    }
    struct comm *both = calloc(2, sizeof *both);
    if (!both || n != 2)
        return INVALID_ARGUMENT;
    for (int i = 0; i < 2; i++) {
        both[i] = (struct comm){.rank = i, .fd = -1, .listener = -1, .twin = &both[1 - i]};
        out[i] = &both[i];
    }
    return SUCCESS;
}

EXPORT int ncclCommAbort(void *comm);
EXPORT int ncclCommAbort(void *comm)
{
    struct comm *c = comm;
    RULES(ncclCommAbort)
    if (c->fd >= 0)
        shutdown(c->fd, SHUT_RDWR);
    return SUCCESS;
}

EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupStart(void)
{
    RULES(ncclGroupStart)
    group_depth++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void);
EXPORT int ncclGroupEnd(void)
{
    RULES(ncclGroupEnd)
    group_depth--;
    return SUCCESS;
}

EXPORT int ncclAllGather(const void *send_at, void *receive_at, size_t n, int type, void *comm, void *stream);
EXPORT int ncclAllGather(const void *send_at, void *receive_at, size_t n, int type, void *comm, void *stream)
{
    (void)stream;
    struct comm *c = comm;
    RULES(ncclAllGather)
    if (type != 0)
        return INVALID_ARGUMENT;
    char *all = receive_at;
    if (c->twin) { /* the second of the two calls has both ends at hand */
        c->out = send_at;
        c->in = all + (size_t)(1 - c->rank) * n;
        if (group_depth > 0 && c->rank == 1) {
            memcpy(c->in, c->twin->out, n);
            memcpy(c->twin->in, c->out, n);
            if (act.corrupt)
                c->in[n / 2] ^= 0x20;
        }
        return SUCCESS;
    }
    memmove(all + (size_t)c->rank * n, send_at, n);
    c->out = all + (size_t)c->rank * n;
    c->in = all + (size_t)(1 - c->rank) * n;
    c->to_send = c->to_receive = n;
    c->corrupt = act.corrupt;
    return IN_PROGRESS;
}
