#include "ckpt/crc32c.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "ckpt/crc_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

typedef uint32_t way_fn(uint32_t crc, const unsigned char *p, size_t n);

struct crc32c_way {
    const char *name;
    way_fn *run;
};

static uint32_t run_table(uint32_t crc, const unsigned char *p, size_t n)
{
    return crc_table_run(crc_table_castagnoli, crc, p, n);
}

#if defined(__x86_64__)
/* The instruction takes three cycles but starts one each cycle: three lanes of LANE bytes side by side are three times
 * as fast as one.  Their results are joined by a multiplication without carry: with x^(8n-33) behind it, the next crc32
 * instruction moves a check over n bytes.  Three lanes within a page hide from the processor that the page is read from
 * end to end: it is told what comes AHEAD, or it would wait for memory, a third of its time. */
enum { LANE = 1024, AHEAD = 6 * LANE };
#define LANE_ONE 0x170076fau /* x^(8*LANE - 33) modulo the polynomial, bits reflected */
#define LANE_TWO 0xa51b6135u /* x^(16*LANE - 33) */

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t times(uint64_t crc, uint32_t power)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)power), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t run_sse42(uint32_t crc, const unsigned char *p, size_t n)
{
    uint64_t a = ~crc;
    for (; n && (uintptr_t)p % 8; n--, p++)
        a = _mm_crc32_u8((uint32_t)a, *p);
    for (; n >= 3 * LANE; n -= 3 * LANE, p += 3 * LANE) {
        uint64_t b = 0, c = 0;
        for (size_t i = 0; i < 3 * LANE; i += 64)
            _mm_prefetch((const char *)((uintptr_t)p + AHEAD + i), _MM_HINT_T0);
        for (size_t i = 0; i < LANE - 8; i += 8) {
            a = _mm_crc32_u64(a, load64(p + i));
            b = _mm_crc32_u64(b, load64(p + LANE + i));
            c = _mm_crc32_u64(c, load64(p + 2 * LANE + i));
        }
        a = _mm_crc32_u64(a, load64(p + LANE - 8));
        b = _mm_crc32_u64(b, load64(p + 2 * LANE - 8));
        a = _mm_crc32_u64(c, load64(p + 3 * LANE - 8) ^ times(a, LANE_TWO) ^ times(b, LANE_ONE));
    }
    for (; n >= 8; n -= 8, p += 8)
        a = _mm_crc32_u64(a, load64(p));
    for (; n; n--, p++)
        a = _mm_crc32_u8((uint32_t)a, *p);
    return ~(uint32_t)a;
}

static bool has_sse42(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) && (c & bit_PCLMUL);
}
#elif defined(__ARM_FEATURE_CRC32)
static uint32_t run_armv8(uint32_t crc, const unsigned char *p, size_t n)
{
    uint32_t a = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        a = __crc32cd(a, v);
    }
    for (; n; n--, p++)
        a = __crc32cb(a, *p);
    return ~a;
}
#endif

static const struct crc32c_way ways[] = {
    {"table", run_table},
#if defined(__x86_64__)
    {"sse4.2", run_sse42},
#elif defined(__ARM_FEATURE_CRC32)
    {"armv8", run_armv8},
#endif
};

/* Asked once: under a hypervisor the question costs more than a small check. */
static const struct crc32c_way *chosen(void)
{
    static atomic_int choice = -1;
    int i = atomic_load_explicit(&choice, memory_order_relaxed);
    if (i >= 0)
        return &ways[i];
#if defined(__x86_64__)
    i = has_sse42();
#elif defined(__ARM_FEATURE_CRC32)
    i = 1;
#else
    i = 0;
#endif
    atomic_store_explicit(&choice, i, memory_order_relaxed);
    return &ways[i];
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
    return chosen()->run(crc, bytes, n);
}

const char *crc32c_way(void)
{
    return chosen()->name;
}

/* a times b modulo the polynomial; the highest bit is that of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes)
{
    uint32_t square = 1u << 23; /* x^8: one byte */
    for (; b_bytes; b_bytes >>= 1) {
        if (b_bytes & 1)
            a = multiply(a, square);
        square = multiply(square, square);
    }
    return a ^ b;
}
