/* The list of members of a zip archive, Zip64 or not, as torch.save writes it: stored, not compressed.  Nothing is
 * unpacked, nothing is trusted: each place lies within the file. */
#ifndef CKPT_ZIP_READ_H
#define CKPT_ZIP_READ_H
#include "ckpt/ckpt.h"
#include "util/mem.h"

#define ZIP_MEMBERS_MAX 1000000u

struct zip_member {
    const char *name; /* ends with 0 */
    uint64_t header_at;
    uint64_t bytes;
    uint32_t crc;    /* CRC-32; 0: the writer left it out, or there is nothing */
    uint16_t method; /* 0: stored */
};

struct zip {
    struct el_mem *mem;
    struct zip_member *members;        /* as the directory has them */
    const struct zip_member **by_name; /* the same, sorted */
    size_t n;
    uint64_t directory_at;
    char *directory; /* as it is in the file; names are in it */
};

/* Reads the directory at the file's end.  No two members share a byte.  -1: CKPT_DAMAGED (truncated, mostly),
 * CKPT_UNSUPPORTED (of several disks, encrypted, more members than ZIP_MEMBERS_MAX), an error of the disk. */
int zip_open(struct zip *z, struct el_mem *mem, const struct ckpt_bytes *file, struct el_err *e);
void zip_close(struct zip *z);

/* NULL: none. */
const struct zip_member *zip_find(const struct zip *z, const char *name);
/* The first whose name ends so: torch puts the archive's name in front. */
const struct zip_member *zip_find_end(const struct zip *z, const char *end);

/* Where its bytes begin; checked against its local header and the places of the others. */
int zip_place(const struct zip *z, const struct ckpt_bytes *file, const struct zip_member *m, uint64_t *at,
              struct el_err *e);

/* Every byte of a stored member against its CRC-32. */
int zip_check(const struct zip *z, const struct ckpt_bytes *file, const struct zip_member *m, struct el_err *e);

#endif
