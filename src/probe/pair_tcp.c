#include "probe/pair_tcp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"
#include "util/rng.h"
#include "util/sort.h"

#define HELLO      "ELPAIR1\n"
#define HELLO_HEAD (PAIR_HELLO_BYTES - PAIR_TOKEN_BYTES)
#define SLEEP      EL_SEC(1)

/* --- ids --- */

void pair_id_text(const struct pair_id *id, char *to, size_t room_bytes)
{
    char addr[EL_ADDR_TEXT_MAX], hex[2 * PAIR_TOKEN_BYTES + 1];
    for (unsigned i = 0; i < PAIR_TOKEN_BYTES; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", id->token[i]);
    snprintf(to, room_bytes, "%s:%s", el_addr_text(&id->addr, addr), hex);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_token(const char *hex, uint8_t token[PAIR_TOKEN_BYTES])
{
    for (unsigned i = 0; i < PAIR_TOKEN_BYTES; i++) {
        int high = hex_value(hex[2 * i]), low = high < 0 ? -1 : hex_value(hex[2 * i + 1]);
        if (low < 0)
            return false;
        token[i] = (uint8_t)(high << 4 | low);
    }
    return !hex[2 * PAIR_TOKEN_BYTES];
}

bool pair_id_parse(const char *text, struct pair_id *out)
{
    const char *token = strrchr(text, ':'), *port = token;
    char ip[EL_ADDR_TEXT_MAX];
    uint64_t number;
    while (port && port > text && *--port != ':') {
    }
    if (!port || *port != ':' || el_parse_u64n(port + 1, (size_t)(token - port - 1), &number) || !number ||
        number > 65535)
        return false;
    bool v6 = text[0] == '[';
    size_t n = (size_t)(port - text);
    if (n >= sizeof ip || n < 3 || (v6 && port[-1] != ']'))
        return false;
    memcpy(ip, text + v6, n - 2 * (size_t)v6);
    ip[n - 2 * (size_t)v6] = 0;
    out->addr.port = (uint16_t)number;
    return el_addr_parse(ip, out->addr.ip) && el_addr_is_v4(out->addr.ip) == !v6 && parse_token(token + 1, out->token);
}

/* --- bytes --- */

static void pair_tcp_put_le(uint8_t *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t pair_tcp_get_le(const uint8_t *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

void pair_hello(const uint8_t token[PAIR_TOKEN_BYTES], bool host, uint8_t out[PAIR_HELLO_BYTES])
{
    memcpy(out, HELLO, HELLO_HEAD);
    for (unsigned i = 0; i < PAIR_TOKEN_BYTES; i++)
        out[HELLO_HEAD + i] = host ? (uint8_t)~token[i] : token[i];
}

void pair_header_put(const struct pair_header *h, uint8_t out[PAIR_HEADER_BYTES])
{
    pair_tcp_put_le(out, (uint64_t)h->kind, 4);
    pair_tcp_put_le(out + 4, h->count, 4);
    pair_tcp_put_le(out + 8, h->bytes, 8);
}

bool pair_header_get(const uint8_t in[PAIR_HEADER_BYTES], struct pair_header *out)
{
    uint64_t kind = pair_tcp_get_le(in, 4);
    *out = (struct pair_header){(enum pair_kind)kind, (uint32_t)pair_tcp_get_le(in + 4, 4), pair_tcp_get_le(in + 8, 8)};
    if (kind == PAIR_LATENCY)
        return out->count <= 100 * PAIR_COUNT_MAX && !out->bytes;
    if (kind == PAIR_EXCHANGE)
        return out->bytes && out->bytes <= PAIR_BYTES_MAX && out->bytes % PAIR_BLOCK_BYTES == 0;
    return kind == PAIR_END && !out->count && !out->bytes;
}

void pair_fill(const uint8_t token[PAIR_TOKEN_BYTES], bool from_host, uint8_t block[PAIR_BLOCK_BYTES])
{
    struct el_rng rng = {.state = pair_tcp_get_le(token, 8) + from_host};
    for (size_t i = 0; i < PAIR_BLOCK_BYTES; i += 8)
        pair_tcp_put_le(block + i, el_rng_next(&rng), 8);
}

void pair_stamp(uint8_t block[PAIR_BLOCK_BYTES], uint32_t exchange, uint64_t number)
{
    pair_tcp_put_le(block, exchange, 4);
    pair_tcp_put_le(block + 4, number, 8);
}

/* --- pace --- */

static uint64_t whole_blocks(uint64_t bytes)
{
    uint64_t blocks = bytes / PAIR_BLOCK_BYTES;
    return (blocks ? blocks : 1) * PAIR_BLOCK_BYTES;
}

void pair_pace_init(struct pair_pace *p, uint64_t bytes, unsigned count, el_usec spend)
{
    bytes = bytes < PAIR_BYTES_MAX ? bytes : PAIR_BYTES_MAX;
    count = count < PAIR_COUNT_MAX ? count : PAIR_COUNT_MAX;
    *p = (struct pair_pace){.bytes = whole_blocks(bytes), .count = count ? count : 1, .spend = spend};
    p->now = PAIR_BLOCK_BYTES;
}

bool pair_pace_counts(const struct pair_pace *p)
{
    return p->done >= PAIR_WARM_UP;
}

uint64_t pair_pace_next(const struct pair_pace *p)
{
    if (p->done >= PAIR_WARM_UP + p->count || (p->done > PAIR_WARM_UP && p->spent >= p->spend))
        return 0;
    return p->now;
}

void pair_pace_took(struct pair_pace *p, el_usec took)
{
    bool counts = pair_pace_counts(p);
    p->done++;
    if (counts) { /* all that count have one size, so that they can be compared */
        p->spent += took;
        return;
    }
    if (took * (el_usec)(PAIR_WARM_UP + 1 - p->done) > p->spend)
        p->done = PAIR_WARM_UP;
    el_usec each = p->spend / p->count;
    double fits = (double)p->now * (double)(each ? each : 1) / (double)(took ? took : 1);
    uint64_t most = fits < (double)p->bytes ? whole_blocks((uint64_t)fits) : p->bytes;
    uint64_t next = p->now > p->bytes / 4 ? p->bytes : p->now * 4;
    p->now = whole_blocks(next < most ? next : most);
    assert(p->now && p->now <= p->bytes);
}

/* --- times --- */

void pair_times_add(struct pair_times *t, double v)
{
    if (t->n < PAIR_COUNT_MAX)
        t->v[t->n++] = v;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct pair_summary pair_times_of(struct pair_times *t)
{
    if (!t->n)
        return (struct pair_summary){0};
    el_sort(t->v, t->n, sizeof t->v[0], by_size);
    double middle = t->n % 2 ? t->v[t->n / 2] : (t->v[t->n / 2 - 1] + t->v[t->n / 2]) / 2;
    return (struct pair_summary){.n = t->n, .min = t->v[0], .median = middle, .p95 = t->v[(t->n * 95 - 1) / 100]};
}

double pair_loss_percent(uint64_t sent, uint64_t sent_again, uint64_t received_twice)
{
    uint64_t lost = sent_again > received_twice ? sent_again - received_twice : 0;
    double percent = sent ? 100.0 * (double)(lost < sent ? lost : sent) / (double)sent : 0;
    return percent < 0.001 ? 0.001 : percent;
}

/* --- the clock --- */

void pair_clock_init(struct pair_clock *c, el_usec real)
{
    *c = (struct pair_clock){.now = real, .real = real};
}

el_usec pair_clock_at(struct pair_clock *c, el_usec real)
{
    el_usec gone = real > c->real ? real - c->real : 0;
    if (gone > PAIR_LOOK + SLEEP) {
        c->slept += gone - PAIR_LOOK;
        gone = PAIR_LOOK;
    }
    c->real = real > c->real ? real : c->real;
    return c->now += gone;
}
