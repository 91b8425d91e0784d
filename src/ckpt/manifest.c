#include "ckpt/manifest.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "ckpt/layout.h"
#include "ckpt/lineage.h"
#include "util/text.h"
#include "util/array.h"
#include "util/base64.h"
#include "util/parse.h"
#include "util/scan.h"
#include "util/sort.h"

enum { VERSION = 1, SELF_DIGITS = 8, DEPTH_MAX = 4, VALUES_MAX = 16 * MANIFEST_FILES_MAX };

#define FORMAT    "elrun-manifest"
#define SELF_MARK ",\"self_crc\":\""
#define SELF_END  "\"}\n"

static const struct el_field fields[] = {MANIFEST_FIELDS(EL_FIELD_ROW, manifest) EL_FIELD_END};

size_t manifest_chunks(uint64_t size, uint64_t chunk)
{
    assert(chunk);
    return (size_t)(size / chunk + (size % chunk != 0));
}

/* The check of the text with the eight digits at `digits` blank. */
static uint32_t self_crc(const char *text, size_t n, size_t digits)
{
    assert(digits + SELF_DIGITS <= n);
    uint32_t crc = crc32c(0, text, digits);
    crc = crc32c(crc, "        ", SELF_DIGITS);
    return crc32c(crc, text + digits + SELF_DIGITS, n - digits - SELF_DIGITS);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void manifest_put_string(struct el_buf *out, const char *before, const char *s)
{
    el_buf_puts(out, before);
    text_json(out, s ? s : "", s ? strlen(s) : 0);
}

/* Little endian, whatever the machine. */
static void put_chunks(struct el_buf *out, const struct manifest_file *f)
{
    unsigned char piece[3 * 256 * 4];
    for (size_t i = 0; i < f->chunks_n;) {
        size_t n = 0;
        for (; i < f->chunks_n && n < sizeof piece; i++)
            for (int shift = 0; shift < 32; shift += 8)
                piece[n++] = (unsigned char)(f->chunks[i] >> shift);
        el_base64_put(out, piece, n);
    }
}

static void put_file(struct el_buf *out, const struct manifest_file *f)
{
    assert(f->chunks_n == manifest_chunks(f->size, f->chunk));
    manifest_put_string(out, "\n{\"name\":", f->name);
    if (f->node && *f->node)
        manifest_put_string(out, ",\"node\":", f->node);
    el_buf_printf(out, ",\"size\":%llu,\"crc32c\":\"%08x\",\"chunk\":%llu,\"chunks\":\"", (unsigned long long)f->size,
                  f->crc, (unsigned long long)f->chunk);
    put_chunks(out, f);
    el_buf_puts(out, "\"}");
}

/* Parts are given in any order and written by part and shard: the same checkpoint, the same text. */
static int by_part(const void *a, const void *b)
{
    const struct manifest_part *x = a, *y = b;
    int c = strcmp(x->part, y->part);
    return c ? c : strcmp(x->shard_id, y->shard_id);
}

static void put_parts(struct el_buf *out, const struct manifest *m)
{
    el_buf_puts(out, ",\n\"parts\":{");
    el_sort(m->parts, m->parts_n, sizeof *m->parts, by_part);
    for (size_t i = 0; i < m->parts_n; i++) {
        const struct manifest_part *p = &m->parts[i];
        bool first = !i || strcmp(p[-1].part, p->part) != 0;
        assert(p->file < m->files_n);
        if (first) {
            manifest_put_string(out, i ? "},\n" : "\n", p->part);
            el_buf_puts(out, ":{");
        }
        manifest_put_string(out, first ? "" : ",", p->shard_id);
        manifest_put_string(out, ":", m->files[p->file].name);
    }
    el_buf_puts(out, m->parts_n ? "}}" : "}");
}

int manifest_put(const struct manifest *m, struct el_buf *out, struct el_err *e)
{
    size_t from = out->len;
    struct manifest head = *m;
    head.format = FORMAT;
    head.version = VERSION;
    el_fields_put(out, fields, &head);
    if (!out->full)
        out->len--; /* the object goes on */
    el_buf_puts(out, ",\n\"files\":[");
    for (size_t i = 0; i < m->files_n; i++) {
        el_buf_puts(out, i ? "," : "");
        put_file(out, &m->files[i]);
    }
    el_buf_puts(out, "]");
    if (m->parts_n)
        put_parts(out, m);
    el_buf_puts(out, SELF_MARK);
    size_t digits = out->len - from;
    el_buf_puts(out, "        " SELF_END);
    if (out->full)
        return el_fail(e, EL_EXIT_OSERR, "the manifest: out of memory");
    char hex[SELF_DIGITS + 1];
    snprintf(hex, sizeof hex, "%08x", self_crc(out->v + from, out->len - from, digits));
    memcpy(out->v + from + digits, hex, SELF_DIGITS);
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int check_self(struct manifest *m, const char *text, size_t n, struct el_err *e)
{
    size_t tail = strlen(SELF_MARK) + SELF_DIGITS + strlen(SELF_END);
    uint64_t said = 0;
    if (n < tail || memcmp(text + n - tail, SELF_MARK, strlen(SELF_MARK)) != 0 ||
        memcmp(text + n - strlen(SELF_END), SELF_END, strlen(SELF_END)) != 0)
        return ckpt_fail(e, CKPT_DAMAGED, "it does not end with its self_crc: torn, or edited by hand");
    size_t digits = n - strlen(SELF_END) - SELF_DIGITS;
    const char *at = text + digits;
    if (!scan_hex(&at, &said) || at != text + digits + SELF_DIGITS)
        return ckpt_fail(e, CKPT_DAMAGED, "its self_crc is no number: edited by hand");
    m->self_crc = self_crc(text, n, digits);
    if (m->self_crc != said)
        return ckpt_fail(e, CKPT_DAMAGED, "its text was changed after it was written: self_crc says %08llx, it is %08x",
                         (unsigned long long)said, m->self_crc);
    return 0;
}

static bool get_u64(const json_t *o, const char *name, uint64_t most, uint64_t *out)
{
    const json_t *v = json_object_get(o, name);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > most)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

/* The table of chunks, and that it adds up to the whole. */
static int read_chunks(struct manifest *m, struct manifest_file *f, const json_t *text, const char *shown,
                       struct el_err *e)
{
    size_t n = json_string_length(text);
    f->chunks_n = manifest_chunks(f->size, f->chunk);
    if (!json_is_string(text) || n != (f->chunks_n * 4 + 2) / 3 * 4)
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\" has %llu bytes, and not as many checksums as that makes chunks",
                         shown, (unsigned long long)f->size);
    f->chunks = el_alloc(m->mem, n / 4 * 3 + 4);
    if (!f->chunks)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    unsigned char *raw = (unsigned char *)f->chunks;
    if (el_base64_read(json_string_value(text), n, raw) != (long)(4 * f->chunks_n))
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\": its checksums are no base64", shown);
    uint32_t whole = 0;
    for (size_t i = 0; i < f->chunks_n; i++) {
        const unsigned char *p = raw + 4 * i;
        uint32_t crc = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        uint64_t left = f->size - i * f->chunk;
        f->chunks[i] = crc;
        whole = crc32c_combine(whole, crc, left < f->chunk ? left : f->chunk);
    }
    if (whole != f->crc)
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\": the checksums of its chunks make %08x, not %08x", shown, whole,
                         f->crc);
    return 0;
}

static int manifest_read_file(struct manifest *m, struct manifest_file *f, const json_t *o, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    uint64_t crc = 0;
    f->name = json_string_value(json_object_get(o, "name"));
    if (!f->name)
        return ckpt_fail(e, CKPT_DAMAGED, "file %zu has no name", (size_t)(f - m->files));
    el_show(f->name, shown);
    const char *fault = ckpt_path_fault(f->name), *node = json_string_value(json_object_get(o, "node"));
    if (fault || strcmp(f->name, CKPT_MANIFEST_FILE) == 0)
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\" cannot be part of a checkpoint: %s", shown,
                         fault ? fault : "it is the manifest");
    f->node = node ? node : "";
    const char *at = json_string_value(json_object_get(o, "crc32c"));
    if (!at || strlen(at) != 8 || !scan_hex(&at, &crc) || *at)
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\": crc32c is no 8 hexadecimal digits", shown);
    f->crc = (uint32_t)crc;
    if (!get_u64(o, "size", INT64_MAX, &f->size))
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\" has no size", shown);
    if (!get_u64(o, "chunk", MANIFEST_CHUNK_MAX, &f->chunk) || f->chunk < MANIFEST_CHUNK_MIN)
        return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\": chunk is no size from %u bytes to 1 GiB", shown,
                         MANIFEST_CHUNK_MIN);
    return read_chunks(m, f, json_object_get(o, "chunks"), shown, e);
}

struct named {
    const char *name;
    size_t at;
};

static int manifest_by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int read_files(struct manifest *m, const json_t *list, struct named **names, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MANIFEST_FILES_MAX)
        return ckpt_fail(e, CKPT_DAMAGED, "it has no list of files, or one of more than %u", MANIFEST_FILES_MAX);
    m->files = el_alloc(m->mem, n * sizeof *m->files);
    *names = el_alloc(m->mem, n * sizeof **names);
    if (!m->files || !*names)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < n; i++) {
        m->files_n++; /* also if it is only half read: manifest_free() */
        if (manifest_read_file(m, &m->files[i], json_array_get(list, i), e))
            return -1;
        (*names)[i] = (struct named){m->files[i].name, i};
    }
    el_sort(*names, n, sizeof **names, manifest_by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp((*names)[i - 1].name, (*names)[i].name) == 0)
            return ckpt_fail(e, CKPT_DAMAGED, "file \"%s\" is named twice", el_show((*names)[i].name, shown));
    return 0;
}

static int manifest_with_name(const void *item, const void *name)
{
    return strcmp(((const struct named *)item)->name, name);
}

static const struct named *find_name(const struct named *v, size_t n, const char *name)
{
    size_t i = el_first(v, n, sizeof *v, name, manifest_with_name);
    return i < n && strcmp(v[i].name, name) == 0 ? &v[i] : NULL;
}

static int manifest_read_parts(struct manifest *m, json_t *parts, const struct named *names, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    const char *part, *shard;
    json_t *shards, *file;
    size_t n = 0;
    if (!parts)
        return 0;
    json_object_foreach(parts, part, shards) n += json_object_size(shards);
    m->parts = el_alloc(m->mem, n * sizeof *m->parts);
    if (!m->parts)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    json_object_foreach(parts, part, shards)
    {
        json_object_foreach(shards, shard, file)
        {
            const char *name = json_string_value(file);
            const struct named *at = name ? find_name(names, m->files_n, name) : NULL;
            if (!at)
                return ckpt_fail(e, CKPT_DAMAGED, "part \"%s\" is in a file that is not listed", el_show(part, shown));
            m->parts[m->parts_n++] = (struct manifest_part){part, shard, at->at};
        }
    }
    return 0;
}

int manifest_read(struct manifest *m, struct el_mem *mem, const char *text, size_t n, struct el_err *e)
{
    const struct el_fields_limit limit = {VALUES_MAX, DEPTH_MAX};
    struct el_err why = {0};
    *m = (struct manifest){.mem = mem};
    if (n > MANIFEST_BYTES_MAX)
        return ckpt_fail(e, CKPT_DAMAGED, "it has %zu bytes", n);
    if (check_self(m, text, n, e))
        return -1;
    uint32_t self = m->self_crc;
    struct named *names = NULL;
    if (el_fields_get("the manifest", fields, text, n, limit, m, &m->tree, &why))
        return ckpt_fail(e, CKPT_DAMAGED, "%s", why.text);
    assert(m->self_crc == self);
    if (strcmp(m->format, FORMAT) != 0)
        return ckpt_fail(e, CKPT_DAMAGED, "its format is not " FORMAT);
    if (m->version != VERSION)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "it has version %llu, and this elrun knows %d",
                         (unsigned long long)m->version, VERSION);
    int r = read_files(m, json_object_get(m->tree, "files"), &names, e);
    if (!r)
        r = manifest_read_parts(m, json_object_get(m->tree, "parts"), names, e);
    el_free(mem, names);
    return r;
}

void manifest_free(struct manifest *m)
{
    for (size_t i = 0; m->tree && i < m->files_n; i++)
        el_free(m->mem, m->files[i].chunks);
    if (m->tree) {
        el_free(m->mem, m->files);
        el_free(m->mem, m->parts);
    }
    el_fields_release(&m->tree);
    *m = (struct manifest){0};
}

const struct manifest_file *manifest_find(const struct manifest *m, const char *name)
{
    for (size_t i = 0; i < m->files_n; i++)
        if (strcmp(m->files[i].name, name) == 0)
            return &m->files[i];
    return NULL;
}

uint64_t manifest_lineage(const struct manifest *m)
{
    return m->lineage ? m->lineage : lineage_of_epoch(m->epoch ? m->epoch : "");
}
