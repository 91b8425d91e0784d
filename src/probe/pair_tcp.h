/* One end of a pair of nodes over TCP: what is sent, how much of it, what is made of the times.  Pure; pair_tcp_io.c
 * has the sockets.  The host end listens and decides; the guest end, which was told where and with which token,
 * follows.
 *
 *   guest: "ELPAIR1\n" token          host: "ELPAIR1\n" token, each bit the other way round
 *   host: header LATENCY, then messages, each of which the guest sends back
 *   host: header EXCHANGE, then both send `bytes` to each other at the same time; again and again
 *   host: header END                  guest: header END */
#ifndef PROBE_PAIR_TCP_H
#define PROBE_PAIR_TCP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/addr.h"
#include "util/time.h"

#define PAIR_TOKEN_BYTES   16
#define PAIR_HELLO_BYTES   24
#define PAIR_HEADER_BYTES  16
#define PAIR_BLOCK_BYTES   (256u << 10) /* what is sent is a whole number of these */
#define PAIR_LATENCY_BYTES 1024
#define PAIR_WARM_UP       5
#define PAIR_PINGS         10 /* messages of a header; the time is looked at behind each */
#define PAIR_COUNT_MAX     1000
#define PAIR_BYTES_MAX     ((uint64_t)1 << 40)

/* --- where the host end is: "10.0.0.5:4711:00ff…", "[fe80::1]:4711:00ff…" --- */
struct pair_id {
    struct el_addr addr;
    uint8_t token[PAIR_TOKEN_BYTES];
};
void pair_id_text(const struct pair_id *id, char *to, size_t room_bytes);
bool pair_id_parse(const char *text, struct pair_id *out);

/* --- what is sent --- */
void pair_hello(const uint8_t token[PAIR_TOKEN_BYTES], bool host, uint8_t out[PAIR_HELLO_BYTES]);

enum pair_kind { PAIR_LATENCY = 1, PAIR_EXCHANGE, PAIR_END };
struct pair_header {
    enum pair_kind kind;
    uint32_t count; /* LATENCY: messages; EXCHANGE: which one, from 0 */
    uint64_t bytes; /* EXCHANGE: of each side */
};
void pair_header_put(const struct pair_header *h, uint8_t out[PAIR_HEADER_BYTES]);
/* False: no such header. */
bool pair_header_get(const uint8_t in[PAIR_HEADER_BYTES], struct pair_header *out);

/* The content: every block can be told from every other of this pair, direction, exchange and place.  pair_fill() once,
 * pair_stamp() for each block. */
void pair_fill(const uint8_t token[PAIR_TOKEN_BYTES], bool from_host, uint8_t block[PAIR_BLOCK_BYTES]);
void pair_stamp(uint8_t block[PAIR_BLOCK_BYTES], uint32_t exchange, uint64_t number);

/* --- how much of it --- */
struct pair_pace {
    uint64_t bytes; /* of an exchange, if there is time for it */
    unsigned count;
    el_usec spend;

    unsigned done; /* exchanges, warm-up and all */
    el_usec spent; /* time of those that count */
    uint64_t now;  /* bytes of the next one */
};
void pair_pace_init(struct pair_pace *p, uint64_t bytes, unsigned count, el_usec spend);
/* The bytes of the next exchange, 0: it is enough.  The first ones are small and grow; where the link is slow they stay
 * as small as they must. */
uint64_t pair_pace_next(const struct pair_pace *p);
/* It took so long.  On a way on which the rest of the warm-up would take all the time there is none. */
void pair_pace_took(struct pair_pace *p, el_usec took);
/* Does the next one count, or is it a warm-up? */
bool pair_pace_counts(const struct pair_pace *p);

/* --- times --- */
struct pair_times {
    unsigned n;
    double v[PAIR_COUNT_MAX];
};
struct pair_summary {
    unsigned n;
    double min, median, p95;
};
void pair_times_add(struct pair_times *t, double v);
/* Sorts; all 0 if there is none. */
struct pair_summary pair_times_of(struct pair_times *t);

/* What the kernel knows of a connection's segments (tcp_info): how many of a hundred were lost.  What the other end has
 * received twice was sent again for nothing.  Never 0: that would be "not measured". */
double pair_loss_percent(uint64_t sent, uint64_t sent_again, uint64_t received_twice);

/* --- a clock that does not run while this process stands still (SIGSTOP, a paused container) --- */
#define PAIR_LOOK EL_MS(250) /* waits are no longer than this, so what takes much longer was sleep */
struct pair_clock {
    el_usec now, real, slept;
};
void pair_clock_init(struct pair_clock *c, el_usec real);
el_usec pair_clock_at(struct pair_clock *c, el_usec real);

#endif
