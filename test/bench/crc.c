/* crc: rates of CRC32C on one core, beside memcpy of the same bytes: a JSON line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ckpt/crc32c.h"
#include "ckpt/crc_table.h"

enum { BYTES = 256 << 20, PIECE = 4 << 20, ROUNDS = 7 };

static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned char *from, *to;
static volatile uint32_t sink; /* keeps the compiler from leaving the work out */

static void by_hardware(void)
{
    for (size_t at = 0; at < BYTES; at += PIECE)
        sink ^= crc32c(0, from + at, PIECE);
}

static void by_table(void)
{
    for (size_t at = 0; at < BYTES; at += PIECE)
        sink ^= crc_table_run(crc_table_castagnoli, 0, from + at, PIECE);
}

static void by_copy(void)
{
    memcpy(to, from, BYTES);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of ROUNDS, 1e9 bytes a second. */
static double rate(void (*run)(void))
{
    double v[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_sec();
        run();
        v[i] = BYTES / (now_sec() - begin) / 1e9;
    }
    qsort(v, ROUNDS, sizeof *v, ascending);
    return v[ROUNDS / 2];
}

int main(void)
{
    from = malloc(BYTES);
    to = malloc(BYTES);
    if (!from || !to)
        return 71;
    memset(from, 7, BYTES);
    memset(to, 7, BYTES);
    double hardware = rate(by_hardware), table = rate(by_table), copy = rate(by_copy);
    printf("{\"what\": \"crc32c\", \"way\": \"%s\", \"crc_gb_s\": %.2f, \"table_gb_s\": %.2f, \"memcpy_gb_s\": %.2f}\n",
           crc32c_way(), hardware, table, copy);
    return 0;
}
