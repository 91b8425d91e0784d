/* What a probe measures: one table of all metrics.  Values are whole thousandths of the metric's unit (3.1 GB/s is
 * 3100), so that verdicts are the same with every compiler; 0 means "not measured". */
#ifndef PROBE_METRIC_H
#define PROBE_METRIC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a pair: measured between two nodes, once for each rail.  Of a node: measured on one node alone, once for each GPU,
 * or once (rail 0) where it is about the host. */
enum metric_of { METRIC_OF_PAIR, METRIC_OF_NODE };
enum metric_better { METRIC_HIGHER, METRIC_LOWER };

/* enumerator, name in results, unit, of what, which way is better, floor, words for a person.
 * floor: a difference below so many thousandths of the unit is never held against anybody.  -1: nodes are not compared
 * by it, it is only told. */
#define METRIC_LIST(X)                                                                                                 \
    X(METRIC_LAT, "lat_us", "us", METRIC_OF_PAIR, METRIC_LOWER, 5000, "latency")                                       \
    X(METRIC_BW64M, "bw64m", "GB/s", METRIC_OF_PAIR, METRIC_HIGHER, 0, "bandwidth")                                    \
    X(METRIC_BW1G, "bw1g", "GB/s", METRIC_OF_PAIR, METRIC_HIGHER, 0, "bandwidth (1 GiB)")                              \
    X(METRIC_TCP_LAT, "tcp_lat_us", "us", METRIC_OF_PAIR, METRIC_LOWER, 100000, "TCP latency")                         \
    X(METRIC_TCP_BW64M, "tcp_bw64m", "GB/s", METRIC_OF_PAIR, METRIC_HIGHER, 0, "TCP bandwidth")                        \
    X(METRIC_TCP_RETRANS, "tcp_retrans", "", METRIC_OF_PAIR, METRIC_LOWER, -1, "TCP segments sent again")              \
    X(METRIC_TCP_LOSS, "tcp_loss", "%", METRIC_OF_PAIR, METRIC_LOWER, 2000, "lost TCP segments")                       \
    X(METRIC_BURN, "burn", "TFLOP/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "GPU arithmetic")                              \
    X(METRIC_COPY_D2D, "copy_d2d", "GB/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "copy inside the GPU")                    \
    X(METRIC_COPY_H2D, "copy_h2d", "GB/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "copy to the GPU")                        \
    X(METRIC_COPY_D2H, "copy_d2h", "GB/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "copy from the GPU")                      \
    X(METRIC_GPU_CLOCK, "gpu_clock", "MHz", METRIC_OF_NODE, METRIC_HIGHER, 0, "GPU clock under load")                  \
    X(METRIC_NIC_LOOP, "nic_loop", "GB/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "loop through the NIC")                   \
    X(METRIC_HOST_MEM, "host_mem", "GB/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "host memory")                            \
    X(METRIC_CPU, "cpu", "GFLOP/s", METRIC_OF_NODE, METRIC_HIGHER, 0, "CPU arithmetic")

enum metric {
#define METRIC_ENUM(id, name, unit, of, better, floor, words) id,
    METRIC_LIST(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

/* The pair metrics stand first: arrays of pair results have this size. */
#define METRIC_PAIR_COUNT METRIC_BURN

struct metric_info {
    const char *name, *unit, *words;
    enum metric_of of;
    enum metric_better better;
    long floor_milli; /* -1: not compared */
};

const struct metric_info *metric_info(enum metric m);

/* The metric of that name, METRIC_COUNT if there is none. */
enum metric metric_find(const char *name, size_t n);

/* Thousandths of a measured value: rounded, what is negative or not a number is 0, what is too large the largest. */
uint32_t metric_milli(double value);

/* Is `a` worse than `b`? */
bool metric_worse(enum metric m, uint32_t a, uint32_t b);

#define METRIC_SMALL    100 /* thousandths: of less GB/s people speak in MB/s */
#define METRIC_TEXT_MAX 32

/* "47.2 GB/s", "12.5 us"; "-" if it was not measured. */
const char *metric_text(enum metric m, uint32_t milli, char to[METRIC_TEXT_MAX]);

#endif
