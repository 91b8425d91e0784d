/* crc: rates of CRC32C on one core, beside what merely reads (a sum of words) and memcpy: of bytes that lie in memory,
 * and of 4 MiB that lie in the processor's cache.  A JSON line. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ckpt/crc32c.h"
#include "ckpt/crc_table.h"

enum { BYTES = 256 << 20, PIECE = 4 << 20, ROUNDS = 7 };

/* What the core has worked, whoever else wants it. */
static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned char *from, *to;
static volatile uint32_t sink; /* keeps the compiler from leaving the work out */

static uint32_t sum(const void *bytes, size_t n)
{
    const uint64_t *word = bytes;
    uint64_t lane[4] = {0};
    for (size_t i = 0; i + 4 <= n / sizeof *word; i += 4)
        for (size_t k = 0; k < 4; k++)
            lane[k] += word[i + k];
    return (uint32_t)(lane[0] + lane[1] + lane[2] + lane[3]);
}

static void by_hardware(size_t at)
{
    sink ^= crc32c(0, from + at, PIECE);
}

static void by_table(size_t at)
{
    sink ^= crc_table_run(crc_table_castagnoli, 0, from + at, PIECE);
}

static void by_sum(size_t at)
{
    sink ^= sum(from + at, PIECE);
}

static void by_copy(size_t at)
{
    memcpy(to + at, from + at, PIECE);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of ROUNDS, 1e9 bytes a second; cached: the same piece again and again. */
static double rate(void (*run)(size_t at), bool cached)
{
    double v[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_sec();
        for (size_t at = 0; at < BYTES; at += PIECE)
            run(cached ? 0 : at);
        v[i] = BYTES / (now_sec() - begin) / 1e9;
    }
    qsort(v, ROUNDS, sizeof *v, ascending);
    return v[ROUNDS / 2];
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(size_t at);
    } ways[] = {{"crc", by_hardware}, {"table", by_table}, {"sum", by_sum}, {"memcpy", by_copy}};
    from = malloc(BYTES);
    to = malloc(BYTES);
    if (!from || !to)
        return 71;
    memset(from, 7, BYTES);
    memset(to, 7, BYTES);
    printf("{\"what\": \"crc32c\", \"way\": \"%s\"", crc32c_way());
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        printf(", \"%s_gb_s\": %.2f, \"%s_cached_gb_s\": %.2f", ways[i].name, rate(ways[i].run, false), ways[i].name,
               rate(ways[i].run, true));
    puts("}");
    return 0;
}
