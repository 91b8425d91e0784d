/* Cyclic redundancy checks by tables, eight bytes at a time: any machine can, about 2 GB/s. */
#ifndef CKPT_CRC_TABLE_H
#define CKPT_CRC_TABLE_H
#include <stddef.h>
#include <stdint.h>

typedef uint32_t crc_table[8][256];

extern const crc_table crc_table_castagnoli; /* CRC32C: iSCSI, elrun's manifest */
extern const crc_table crc_table_zip;        /* CRC-32: zip, gzip */

/* The check of what came before (0 at the start), continued over n bytes. */
uint32_t crc_table_run(const crc_table t, uint32_t crc, const void *bytes, size_t n);

#endif
