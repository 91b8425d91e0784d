/* CRC32C and the CRC-32 of zip: published vectors, all lengths and alignments against a computation bit by bit, pieces
 * put together.  Seen to fail: another constant for a lane, lanes that are joined in another order. */
#include "ckpt/crc32c.h"
#include "ckpt/crc_table.h"
#include "lib/tap.h"
#include "util/rng.h"

static uint32_t bitwise(uint32_t polynomial, const unsigned char *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

/* RFC 3720, B.4, and the check value of the catalogues. */
static void test_vectors(void)
{
    unsigned char b[32];
    is_num(crc32c(0, "123456789", 9), 0xe3069283, "123456789");
    is_num(crc_table_run(crc_table_zip, 0, "123456789", 9), 0xcbf43926, "123456789, as zip has it");
    memset(b, 0, sizeof b);
    is_num(crc32c(0, b, 32), 0x8a9136aa, "32 times 0");
    memset(b, 0xff, sizeof b);
    is_num(crc32c(0, b, 32), 0x62a8ab43, "32 times ff");
    for (unsigned i = 0; i < 32; i++)
        b[i] = (unsigned char)i;
    is_num(crc32c(0, b, 32), 0x46dd794e, "ascending");
    for (unsigned i = 0; i < 32; i++)
        b[i] = (unsigned char)(31 - i);
    is_num(crc32c(0, b, 32), 0x113fdb5c, "descending");
    is_num(crc32c(0, "", 0), 0, "nothing");
    is_num(crc32c(77, "", 0), 77, "nothing more");
}

static void test_lengths(void)
{
    static unsigned char b[16384];
    struct el_rng rng = {1};
    unsigned wrong = 0, wrong_table = 0, wrong_zip = 0;
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (unsigned char)el_rng_next(&rng);
    for (size_t n = 0; n < 300; n++)
        for (size_t at = 0; at < 9; at++) {
            uint32_t want = bitwise(0x82f63b78, b + at, n);
            wrong += crc32c(0, b + at, n) != want;
            wrong_table += crc_table_run(crc_table_castagnoli, 0, b + at, n) != want;
            wrong_zip += crc_table_run(crc_table_zip, 0, b + at, n) != bitwise(0xedb88320, b + at, n);
        }
    for (size_t n = 3000; n < 16000; n += 331) /* one lane more or less, and what is left behind them */
        wrong += crc32c(0, b + n % 9, n) != bitwise(0x82f63b78, b + n % 9, n);
    is_num(wrong, 0, "every length and alignment");
    is_num(wrong_table, 0, "also by tables");
    is_num(wrong_zip, 0, "and with the polynomial of zip");
}

static void test_pieces(void)
{
    static unsigned char b[10000];
    struct el_rng rng = {2};
    unsigned wrong = 0, wrong_combined = 0;
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (unsigned char)el_rng_next(&rng);
    uint32_t whole = crc32c(0, b, sizeof b);
    for (size_t cut = 0; cut <= sizeof b; cut += 97) {
        uint32_t head = crc32c(0, b, cut);
        wrong += crc32c(head, b + cut, sizeof b - cut) != whole;
        wrong_combined += crc32c_combine(head, crc32c(0, b + cut, sizeof b - cut), sizeof b - cut) != whole;
    }
    is_num(wrong, 0, "in two pieces");
    is_num(wrong_combined, 0, "two pieces that were checked apart");
    /* 6 GiB of zeros, doubled up from one. */
    uint32_t zeros = crc32c(0, "", 1);
    uint64_t n = 1;
    for (; n < (uint64_t)2 << 30; n *= 2)
        zeros = crc32c_combine(zeros, zeros, n);
    uint32_t six = crc32c_combine(crc32c_combine(zeros, zeros, n), zeros, n);
    is_num(six, crc32c_combine(zeros, crc32c_combine(zeros, zeros, n), 2 * n), "lengths beyond 4 GiB");
}

int main(void)
{
    printf("# crc32c by %s\n", crc32c_way());
    test_vectors();
    test_lengths();
    test_pieces();
    return done();
}
