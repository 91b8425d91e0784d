#include "ckpt/zip_read.h"

#include <assert.h>
#include <string.h>

#include "ckpt/crc_table.h"
#include "util/parse.h"
#include "util/sort.h"

enum {
    END_BYTES = 22,
    COMMENT_MAX = 65535,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    DIRECTORY_MAX = 256 << 20,
    PIECE = 1 << 20,
};

static uint64_t le(const void *at, unsigned n)
{
    const unsigned char *p = at;
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

struct zip_read_end {
    uint64_t members, bytes, at; /* of the directory */
};

static int truncated(const struct ckpt_bytes *file, struct el_err *e)
{
    return ckpt_fail(e, CKPT_DAMAGED,
                     "truncated: the file ends at byte %llu without the directory that ends a zip archive",
                     (unsigned long long)file->bytes);
}

/* The large numbers stand in a record of their own, which a locator in front of the end names. */
static int read_end64(const struct ckpt_bytes *file, const char *locator, struct zip_read_end *to, struct el_err *e)
{
    char b[END64_BYTES];
    uint64_t at = le(locator + 8, 8);
    if (le(locator + 16, 4) > 1)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "a zip archive of several disks");
    if (at > file->bytes || file->bytes - at < END64_BYTES)
        return truncated(file, e);
    if (file->read(file->ctx, at, b, sizeof b, e))
        return -1;
    if (memcmp(b, "PK\6\6", 4) != 0)
        return ckpt_fail(e, CKPT_DAMAGED, "byte %llu should begin the Zip64 directory's end", (unsigned long long)at);
    *to = (struct zip_read_end){le(b + 32, 8), le(b + 40, 8), le(b + 48, 8)};
    return 0;
}

static int zip_read_read_end(const struct ckpt_bytes *file, struct zip_read_end *to, struct el_mem *mem,
                             struct el_err *e)
{
    size_t n = file->bytes < END_BYTES + COMMENT_MAX + LOCATOR_BYTES ? (size_t)file->bytes
                                                                     : END_BYTES + COMMENT_MAX + LOCATOR_BYTES;
    if (n < END_BYTES)
        return truncated(file, e);
    char *tail = el_alloc(mem, n);
    if (!tail)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    int r = file->read(file->ctx, file->bytes - n, tail, n, e);
    size_t at = n - END_BYTES + 1;
    while (!r && at-- > 0)
        if (memcmp(tail + at, "PK\5\6", 4) == 0 && le(tail + at + 20, 2) == n - at - END_BYTES)
            break;
    if (!r && at == (size_t)-1)
        r = truncated(file, e);
    if (!r) {
        *to = (struct zip_read_end){le(tail + at + 10, 2), le(tail + at + 12, 4), le(tail + at + 16, 4)};
        const char *locator = at >= LOCATOR_BYTES ? tail + at - LOCATOR_BYTES : NULL;
        if (locator && memcmp(locator, "PK\6\7", 4) == 0)
            r = read_end64(file, locator, to, e);
    }
    el_free(mem, tail);
    return r;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

/* Sizes and places that did not fit 32 bits, in the order of the fields that say so. */
static bool read_extra(const char *p, size_t n, uint64_t *size, uint64_t *packed, uint64_t *header_at)
{
    uint64_t *const fields[] = {size, packed, header_at};
    for (size_t bytes; n >= 4; p += 4 + bytes, n -= 4 + bytes) {
        bytes = (size_t)le(p + 2, 2);
        if (bytes > n - 4)
            return false;
        if (le(p, 2) != 1)
            continue;
        size_t at = 0;
        for (unsigned i = 0; i < 3; i++) {
            if (*fields[i] != UINT32_MAX)
                continue;
            if (bytes - at < 8)
                return false;
            *fields[i] = le(p + 4 + at, 8);
            at += 8;
        }
    }
    return true;
}

static int zip_read_broken(const struct zip *z, size_t i, struct el_err *e)
{
    return ckpt_fail(e, CKPT_DAMAGED, "entry %zu of the zip directory at byte %llu is broken", i,
                     (unsigned long long)z->directory_at);
}

/* One entry at *at; the name moves to the front of its entry, so that a 0 fits behind it. */
static int read_entry(struct zip *z, size_t i, char **at, const char *end, struct el_err *e)
{
    char *p = *at;
    if (end - p < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
        return zip_read_broken(z, i, e);
    size_t name = (size_t)le(p + 28, 2), extra = (size_t)le(p + 30, 2), comment = (size_t)le(p + 32, 2);
    if ((size_t)(end - p) - ENTRY_BYTES < name + extra + comment)
        return zip_read_broken(z, i, e);
    uint64_t packed = le(p + 20, 4), size = le(p + 24, 4), header_at = le(p + 42, 4);
    struct zip_member *m = &z->members[i];
    *m = (struct zip_member){.name = p, .crc = (uint32_t)le(p + 16, 4), .method = (uint16_t)le(p + 10, 2)};
    if (le(p + 8, 2) & 1)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "entry %zu of the zip directory is encrypted", i);
    if (!read_extra(p + ENTRY_BYTES + name, extra, &size, &packed, &header_at) || (m->method == 0 && size != packed))
        return zip_read_broken(z, i, e);
    m->bytes = packed;
    m->header_at = header_at;
    if (header_at > z->directory_at || z->directory_at - header_at < LOCAL_BYTES ||
        packed > z->directory_at - header_at - LOCAL_BYTES)
        return ckpt_fail(e, CKPT_DAMAGED, "entry %zu of the zip directory: its bytes do not lie in front of it", i);
    memmove(p, p + ENTRY_BYTES, name);
    p[name] = 0;
    *at = p + ENTRY_BYTES + name + extra + comment;
    return 0;
}

static int zip_read_by_place(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a, *y = *(const struct zip_member *const *)b;
    return x->header_at < y->header_at ? -1 : x->header_at > y->header_at;
}

static int zip_read_by_name(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a, *y = *(const struct zip_member *const *)b;
    int c = strcmp(x->name, y->name);
    return c ? c : zip_read_by_place(a, b);
}

/* A small archive that names the same bytes a million times would take days to check. */
static int sort_members(struct zip *z, struct el_err *e)
{
    char shown[EL_SHOW_MAX], other[EL_SHOW_MAX];
    for (size_t i = 0; i < z->n; i++)
        z->by_name[i] = &z->members[i];
    el_sort(z->by_name, z->n, sizeof *z->by_name, zip_read_by_place);
    for (size_t i = 1; i < z->n; i++) {
        const struct zip_member *a = z->by_name[i - 1], *b = z->by_name[i];
        if (b->header_at - a->header_at < LOCAL_BYTES + strlen(a->name) + a->bytes)
            return ckpt_fail(e, CKPT_DAMAGED, "members %s and %s of the zip archive have the same bytes",
                             el_show(a->name, shown), el_show(b->name, other));
    }
    el_sort(z->by_name, z->n, sizeof *z->by_name, zip_read_by_name);
    return 0;
}

int zip_open(struct zip *z, struct el_mem *mem, const struct ckpt_bytes *file, struct el_err *e)
{
    struct zip_read_end end = {0};
    *z = (struct zip){.mem = mem};
    if (zip_read_read_end(file, &end, mem, e))
        return -1;
    if (end.at > file->bytes || end.bytes > file->bytes - end.at)
        return ckpt_fail(e, CKPT_DAMAGED, "the zip directory has bytes %llu-%llu, the file ends at %llu",
                         (unsigned long long)end.at, (unsigned long long)(end.at + end.bytes),
                         (unsigned long long)file->bytes);
    if (end.bytes > DIRECTORY_MAX || end.members > ZIP_MEMBERS_MAX)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "a zip archive of %llu members; at most %u are supported",
                         (unsigned long long)end.members, ZIP_MEMBERS_MAX);
    if (end.members > end.bytes / ENTRY_BYTES)
        return zip_read_broken(z, (size_t)(end.bytes / ENTRY_BYTES), e);
    z->directory_at = end.at;
    z->directory = el_alloc(mem, (size_t)end.bytes);
    z->members = el_alloc(mem, (size_t)end.members * sizeof *z->members);
    z->by_name = el_alloc(mem, (size_t)end.members * sizeof *z->by_name);
    int r = z->directory && z->members && z->by_name ? file->read(file->ctx, end.at, z->directory, (size_t)end.bytes, e)
                                                     : el_fail(e, EL_EXIT_OSERR, "out of memory");
    char *at = z->directory;
    for (; !r && z->n < end.members; z->n++)
        r = read_entry(z, z->n, &at, z->directory + end.bytes, e);
    if (!r)
        r = sort_members(z, e);
    if (r)
        zip_close(z);
    return r;
}

void zip_close(struct zip *z)
{
    el_free(z->mem, z->directory);
    el_free(z->mem, z->members);
    el_free(z->mem, z->by_name);
    *z = (struct zip){0};
}

static int zip_read_with_name(const void *item, const void *name)
{
    return strcmp((*(const struct zip_member *const *)item)->name, name);
}

const struct zip_member *zip_find(const struct zip *z, const char *name)
{
    size_t i = el_first(z->by_name, z->n, sizeof *z->by_name, name, zip_read_with_name);
    return i < z->n && strcmp(z->by_name[i]->name, name) == 0 ? z->by_name[i] : NULL;
}

const struct zip_member *zip_find_end(const struct zip *z, const char *end)
{
    size_t k = strlen(end);
    for (size_t i = 0; i < z->n; i++) {
        size_t n = strlen(z->members[i].name);
        if (n >= k && strcmp(z->members[i].name + n - k, end) == 0)
            return &z->members[i];
    }
    return NULL;
}

int zip_place(const struct zip *z, const struct ckpt_bytes *file, const struct zip_member *m, uint64_t *at,
              struct el_err *e)
{
    char b[LOCAL_BYTES], shown[EL_SHOW_MAX];
    assert(m->header_at + LOCAL_BYTES <= file->bytes);
    if (file->read(file->ctx, m->header_at, b, sizeof b, e))
        return -1;
    uint64_t from = m->header_at + LOCAL_BYTES + le(b + 26, 2) + le(b + 28, 2);
    if (memcmp(b, "PK\3\4", 4) != 0 || le(b + 8, 2) != m->method || le(b + 26, 2) != strlen(m->name))
        return ckpt_fail(e, CKPT_DAMAGED, "member %s: byte %llu should begin its header", el_show(m->name, shown),
                         (unsigned long long)m->header_at);
    if (from > z->directory_at || m->bytes > z->directory_at - from)
        return ckpt_fail(e, CKPT_DAMAGED, "member %s: bytes %llu-%llu reach into the zip directory",
                         el_show(m->name, shown), (unsigned long long)from, (unsigned long long)(from + m->bytes));
    *at = from;
    return 0;
}

int zip_check(const struct zip *z, const struct ckpt_bytes *file, const struct zip_member *m, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    uint64_t at;
    uint32_t crc = 0;
    if (zip_place(z, file, m, &at, e))
        return -1;
    if (m->method != 0)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "member %s is compressed", el_show(m->name, shown));
    if (!m->crc)
        return 0;
    char *piece = el_alloc(z->mem, m->bytes < PIECE ? (size_t)m->bytes : PIECE);
    int r = piece ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (uint64_t done = 0; !r && done < m->bytes;) {
        size_t n = m->bytes - done < PIECE ? (size_t)(m->bytes - done) : PIECE;
        r = file->read(file->ctx, at + done, piece, n, e);
        if (!r)
            crc = crc_table_run(crc_table_zip, crc, piece, n);
        done += n;
    }
    el_free(z->mem, piece);
    if (!r && crc != m->crc)
        r = ckpt_fail(e, CKPT_DAMAGED, "member %s: bytes %llu-%llu have CRC-32 %08x, the zip directory says %08x",
                      el_show(m->name, shown), (unsigned long long)at, (unsigned long long)(at + m->bytes), crc,
                      m->crc);
    return r;
}
