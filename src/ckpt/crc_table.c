#include "ckpt/crc_table.h"

/* A check is linear: the entry of a byte is the sum of those of its bits.  So each table is made by the compiler from
 * eight numbers, and all of them together are one chain: each is the one before, moved by one bit through the
 * polynomial (which is the first). */
#define BIT(b, mask, v) (((b) & (mask)) ? (v) : 0)
#define E1(b, v0, v1, v2, v3, v4, v5, v6, v7)                                                                          \
    BIT(b, 128, v0) ^ BIT(b, 64, v1) ^ BIT(b, 32, v2) ^ BIT(b, 16, v3) ^ BIT(b, 8, v4) ^ BIT(b, 4, v5) ^               \
        BIT(b, 2, v6) ^ BIT(b, 1, v7)
#define E4(b, ...)  E1(b, __VA_ARGS__), E1(b + 1, __VA_ARGS__), E1(b + 2, __VA_ARGS__), E1(b + 3, __VA_ARGS__)
#define E16(b, ...) E4(b, __VA_ARGS__), E4(b + 4, __VA_ARGS__), E4(b + 8, __VA_ARGS__), E4(b + 12, __VA_ARGS__)
#define E64(b, ...) E16(b, __VA_ARGS__), E16(b + 16, __VA_ARGS__), E16(b + 32, __VA_ARGS__), E16(b + 48, __VA_ARGS__)
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__), E64(192, __VA_ARGS__)                        \
    }

const crc_table crc_table_castagnoli = {
    ROW(0x82f63b78u, 0x417b1dbcu, 0x20bd8edeu, 0x105ec76fu, 0x8ad958cfu, 0xc79a971fu, 0xe13b70f7u, 0xf26b8303u),
    ROW(0xfbc3faf9u, 0xff17c604u, 0x7f8be302u, 0x3fc5f181u, 0x9d14c3b8u, 0x4e8a61dcu, 0x274530eeu, 0x13a29877u),
    ROW(0x8b277743u, 0xc76580d9u, 0xe144fb14u, 0x70a27d8au, 0x38513ec5u, 0x9edea41au, 0x4f6f520du, 0xa541927eu),
    ROW(0x52a0c93fu, 0xaba65fe7u, 0xd725148bu, 0xe964b13du, 0xf64463e6u, 0x7b2231f3u, 0xbf672381u, 0xdd45aab8u),
    ROW(0x6ea2d55cu, 0x37516aaeu, 0x1ba8b557u, 0x8f2261d3u, 0xc5670b91u, 0xe045beb0u, 0x7022df58u, 0x38116facu),
    ROW(0x1c08b7d6u, 0x0e045bebu, 0x85f4168du, 0xc00c303eu, 0x6006181fu, 0xb2f53777u, 0xdb8ca0c3u, 0xef306b19u),
    ROW(0xf56e0ef4u, 0x7ab7077au, 0x3d5b83bdu, 0x9c5bfaa6u, 0x4e2dfd53u, 0xa5e0c5d1u, 0xd0065990u, 0x68032cc8u),
    ROW(0x34019664u, 0x1a00cb32u, 0x0d006599u, 0x847609b4u, 0x423b04dau, 0x211d826du, 0x9278fa4eu, 0x493c7d27u),
};

const crc_table crc_table_zip = {
    ROW(0xedb88320u, 0x76dc4190u, 0x3b6e20c8u, 0x1db71064u, 0x0edb8832u, 0x076dc419u, 0xee0e612cu, 0x77073096u),
    ROW(0x3b83984bu, 0xf0794f05u, 0x958424a2u, 0x4ac21251u, 0xc8d98a08u, 0x646cc504u, 0x32366282u, 0x191b3141u),
    ROW(0xe1351b80u, 0x709a8dc0u, 0x384d46e0u, 0x1c26a370u, 0x0e1351b8u, 0x0709a8dcu, 0x0384d46eu, 0x01c26a37u),
    ROW(0xed59b63bu, 0x9b14583du, 0xa032af3eu, 0x5019579fu, 0xc5b428efu, 0x8f629757u, 0xaa09c88bu, 0xb8bc6765u),
    ROW(0xb1e6b092u, 0x58f35849u, 0xc1c12f04u, 0x60e09782u, 0x30704bc1u, 0xf580a6c0u, 0x7ac05360u, 0x3d6029b0u),
    ROW(0x1eb014d8u, 0x0f580a6cu, 0x07ac0536u, 0x03d6029bu, 0xec53826du, 0x9b914216u, 0x4dc8a10bu, 0xcb5cd3a5u),
    ROW(0x8816eaf2u, 0x440b7579u, 0xcfbd399cu, 0x67de9cceu, 0x33ef4e67u, 0xf44f2413u, 0x979f1129u, 0xa6770bb4u),
    ROW(0x533b85dau, 0x299dc2edu, 0xf9766256u, 0x7cbb312bu, 0xd3e51bb5u, 0x844a0efau, 0x4225077du, 0xccaa009eu),
};

static uint32_t le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc_table_run(const crc_table t, uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a = le32(p) ^ crc, b = le32(p + 4);
        crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^ t[3][b & 255] ^
              t[2][b >> 8 & 255] ^ t[1][b >> 16 & 255] ^ t[0][b >> 24];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ t[0][(crc ^ *p) & 255];
    return ~crc;
}
