/* What is in one file: its name says what should be, its first bytes what is. */
#include <string.h>

#include "ckpt/json_text.h"
#include "ckpt/sha256.h"
#include "ckpt/sniff.h"
#include "ckpt/verify_private.h"
#include "util/parse.h"

enum { TEXT_MAX = 64 << 20, PICKLE_FILE_MAX = 256 << 20, SAMPLE = 4096, PIECE = 1 << 20, GLANCE_MAX = 64 << 20 };

#define TRAINER_STATE "trainer_state.json"

static bool vouched(const struct verify_job *j)
{
    return !j->l->why.status && manifest_find(&j->l->manifest.m, j->l->names[j->file]) != NULL;
}

/* A large blob of a hub's cache is called by its SHA-256. */
static const char *sum_of(const struct verify_job *j)
{
    const char *real = j->l->hub ? j->l->reals[j->file] : NULL, *last = real ? strrchr(real, '/') : NULL;
    return last && strlen(last) == SHA256_HEX && strspn(last + 1, "0123456789abcdef") == SHA256_HEX - 1 ? last + 1
                                                                                                        : NULL;
}

/* Nothing but a manifest, or the name of a blob, has checksums of it. */
static bool is_bare(const struct verify_job *j)
{
    return !vouched(j) && !sum_of(j);
}

int verify_zip(struct verify_job *j, struct inspect_file *f, bool tensors)
{
    struct zip z;
    if (zip_open(&z, &j->mem, &f->bytes, &j->err))
        return -1;
    int r = 0;
    for (size_t i = 0; !r && i < z.n; i++) {
        uint64_t at;
        r = j->v->deep ? zip_check(&z, &f->bytes, &z.members[i], &j->err)
                       : zip_place(&z, &f->bytes, &z.members[i], &at, &j->err);
        j->silent_bytes += j->v->deep && !z.members[i].crc && !vouched(j) ? z.members[i].bytes : 0;
    }
    if (!r && tensors)
        r = fmt_torch_tensors(&j->tensors, j->l->names[j->file], f->base, &f->bytes, &z, &j->counts, &j->err);
    zip_close(&z);
    return r;
}

/* Archives that are none of torch.save, such as those of numpy: the places of their members. */
static void check_archive(struct verify_job *j, struct inspect_file *f)
{
    struct zip z;
    uint64_t at;
    if (zip_open(&z, &j->mem, &f->bytes, &j->err))
        return;
    if (zip_find_end(&z, "/data.pkl")) {
        zip_close(&z);
        verify_zip(j, f, true);
        return;
    }
    for (size_t i = 0; i < z.n; i++) {
        bool sums = j->v->deep && z.members[i].method == 0;
        if (sums ? zip_check(&z, &f->bytes, &z.members[i], &j->err)
                 : zip_place(&z, &f->bytes, &z.members[i], &at, &j->err))
            break;
        j->silent_bytes += sums && !z.members[i].crc && !vouched(j) ? z.members[i].bytes : 0;
    }
    zip_close(&z);
}

static char *whole_text(struct verify_job *j, struct inspect_file *f)
{
    char *text = el_alloc(&j->mem, (size_t)f->bytes.bytes);
    if (!text)
        el_fail(&j->err, EL_EXIT_OSERR, "out of memory");
    else if (f->bytes.read(f->bytes.ctx, 0, text, (size_t)f->bytes.bytes, &j->err))
        el_free(&j->mem, text), text = NULL;
    return text;
}

/* What its readers index by names. */
static bool is_object(const char *name, enum fmt_kind kind)
{
    static const char *const names[] = {TRAINER_STATE,           "config.json",
                                        "adapter_config.json",   "generation_config.json",
                                        "tokenizer_config.json", "training_args.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return kind == FMT_INDEX;
}

static void judge_json(struct verify_job *j, const struct json_text *x, enum fmt_kind kind, const struct sniff *s)
{
    const char *slash = strrchr(j->l->names[j->file], '/'), *name = slash ? slash + 1 : j->l->names[j->file];
    bool object = is_object(name, kind);
    char shown[EL_SHOW_MAX];
    el_show(s->begin, shown);
    if (x->kind == JSON_TEXT_CUT)
        ckpt_fail(&j->err, CKPT_DAMAGED, "truncated: its JSON does not end where the file does, at byte %zu", x->at);
    else if (x->kind == JSON_TEXT_BROKEN && x->at == x->begin && s->kind == SNIFF_TEXT)
        sniff_fail(s, &j->err);
    else if (x->kind == JSON_TEXT_BROKEN)
        ckpt_fail(&j->err, CKPT_DAMAGED, "it is no JSON: byte %zu cannot be there", x->at);
    else if (object && x->kind == JSON_TEXT_LOG)
        ckpt_fail(&j->err, CKPT_DAMAGED, "its JSON ends, and at byte %zu another one begins", x->at);
    else if (object && !x->object)
        ckpt_fail(&j->err, CKPT_DAMAGED, "it is JSON, but no object: it begins \"%s\"", shown);
    else if (strcmp(name, TRAINER_STATE) == 0 && !x->number)
        ckpt_fail(&j->err, CKPT_DAMAGED,
                  "it is no state of a Trainer, which has a number \"global_step\": it begins \"%s\"", shown);
}

static void check_json(struct verify_job *j, struct inspect_file *f, enum fmt_kind kind, const struct sniff *s)
{
    struct json_text x;
    char *text = f->bytes.bytes <= TEXT_MAX ? whole_text(j, f) : NULL;
    if (text) {
        json_text_look(&x, text, (size_t)f->bytes.bytes, "global_step");
        judge_json(j, &x, kind, s);
    }
    el_free(&j->mem, text);
    j->bare = is_bare(j);
}

/* Operations that are none of ours are no news of a pickle that is not torch's. */
static void check_pickle(struct verify_job *j, struct inspect_file *f)
{
    struct pickle p = {0};
    struct el_err why = {0};
    char *text = f->bytes.bytes <= PICKLE_FILE_MAX ? whole_text(j, f) : NULL;
    if (text && pickle_read(&p, &j->mem, text, (size_t)f->bytes.bytes, &why) && p.cut)
        ckpt_fail(&j->err, CKPT_DAMAGED, "truncated: its pickle does not end where the file does, at byte %llu",
                  (unsigned long long)f->bytes.bytes);
    pickle_free(&p);
    el_free(&j->mem, text);
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (100, 3), }: how many bytes that is.  false: of a type that is a
 * structure, or of Python's objects. */
static bool npy_bytes(const char *text, uint64_t *bytes)
{
    const char *type = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
    uint64_t n = 0;
    if (!type || !shape || !strchr("<>|=", type[10]) || !type[11] || type[11] == 'O')
        return false;
    const char *at = type + 12;
    while (*at >= '0' && *at <= '9' && n < 1000000)
        n = 10 * n + (uint64_t)(*at++ - '0');
    n *= type[11] == 'U' ? 4 : 1;
    for (at = shape + 10; *at && *at != ')'; at++) {
        uint64_t size = 0;
        if (*at < '0' || *at > '9')
            continue;
        for (; *at >= '0' && *at <= '9'; at++)
            if (__builtin_mul_overflow(size, 10u, &size) || __builtin_add_overflow(size, (uint64_t)(*at - '0'), &size))
                return false;
        at--;
        if (__builtin_mul_overflow(n, size, &n))
            return false;
    }
    *bytes = n;
    return *at == ')';
}

/* An array of numpy: what its header says, and as many bytes. */
static void check_npy(struct verify_job *j, struct inspect_file *f)
{
    char text[4096] = {0}, b[12] = {0};
    uint64_t header = 0, bytes = 0, all = f->bytes.bytes;
    size_t n = all < sizeof b ? (size_t)all : sizeof b;
    if (f->bytes.read(f->bytes.ctx, 0, b, n, &j->err))
        return;
    unsigned at = b[6] >= 2 ? 12 : 10;
    for (unsigned i = at; i-- > 8;)
        header = header << 8 | (unsigned char)b[i];
    header += at;
    n = all < at ? 0 : all - at < sizeof text - 1 ? (size_t)(all - at) : sizeof text - 1;
    n = header >= at && header - at < n ? (size_t)(header - at) : n;
    if (n && f->bytes.read(f->bytes.ctx, at, text, n, &j->err))
        return;
    bool known = header <= all && npy_bytes(text, &bytes) && !__builtin_add_overflow(header, bytes, &bytes);
    if (header > all || (known && bytes > all))
        ckpt_fail(&j->err, CKPT_DAMAGED, "truncated: its %s should end at byte %llu, the file ends at %llu",
                  header > all ? "header" : "array", (unsigned long long)(header > all ? header : bytes),
                  (unsigned long long)all);
}

/* A file of an unknown name may begin with zeros and be whole: its middle and its end are looked at, too. */
static bool more_than_zeros(struct verify_job *j, struct inspect_file *f)
{
    char b[SAMPLE];
    uint64_t n = f->bytes.bytes, at[] = {0, n / 2, n};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        size_t k = n < sizeof b ? (size_t)n : sizeof b;
        uint64_t from = at[i] + k > n ? n - k : at[i];
        if (f->bytes.read(f->bytes.ctx, from, b, k, &j->err) || b[0] || (k > 1 && memcmp(b, b + 1, k - 1) != 0))
            return true;
    }
    return false;
}

static bool verify_file_ends(const char *name, const char *with)
{
    size_t n = strlen(name), k = strlen(with);
    return n >= k && strcmp(name + n - k, with) == 0;
}

/* Where a web page, or a text, is what one would expect. */
static bool is_prose(const char *name)
{
    static const char *const kinds[] = {".md", ".html", ".htm", ".xml", ".svg", ".txt", ".rst", ".py"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (verify_file_ends(name, kinds[i]))
            return true;
    return false;
}

/* Files that are memory of a program, and may well be zeros or empty. */
static bool is_raw(const char *name)
{
    return verify_file_ends(name, ".swp") || verify_file_ends(name, ".raw") || verify_file_ends(name, ".dat");
}

/* So begins a pickle of protocol 0, which is a text and ends with its operation to stop.  What accelerate calls so is
 * of torch.save. */
static bool may_be_text(struct verify_job *j, struct inspect_file *f, enum fmt_kind kind, const struct sniff *s)
{
    const char *slash = strrchr(j->l->names[j->file], '/'), *name = slash ? slash + 1 : j->l->names[j->file];
    char last = 0;
    if (kind == FMT_ZIP)
        return s->begin[0] == '(';
    if ((s->begin[0] != '(' && s->begin[0] != 'c') || strncmp(name, "random_states_", 14) == 0)
        return false;
    return f->bytes.read(f->bytes.ctx, f->bytes.bytes - 1, &last, 1, &j->err) == 0 && last == '.';
}

/* What stands in the place of a file is told of any file; what is no state by its name may be empty, or a text. */
static bool verify_file_stands_in(struct verify_job *j, struct inspect_file *f, enum fmt_kind kind,
                                  const struct sniff *s)
{
    const char *name = j->l->names[j->file];
    bool data = fmt_is_state(kind) || kind == FMT_JSON || kind == FMT_DATA || j->l->one;
    bool binary = kind == FMT_SAFETENSORS || kind == FMT_DCP_METADATA || kind == FMT_DCP_DATA || kind == FMT_ZIP ||
                  kind == FMT_DATA;
    return (s->kind == SNIFF_EMPTY && data) ||
           (s->kind == SNIFF_ZEROS && (data || (!is_raw(name) && !more_than_zeros(j, f)))) ||
           s->kind == SNIFF_POINTER || (s->kind == SNIFF_DOCUMENT && (s->xml ? data : !is_prose(name))) ||
           (s->kind == SNIFF_TEXT && binary && !may_be_text(j, f, kind, s));
}

/* Bytes at - at + n are zeros; what cannot be read is none of them. */
static bool are_zeros(struct inspect_file *f, uint64_t at, char *to, size_t n)
{
    struct el_err e = {0};
    return f->bytes.read(f->bytes.ctx, at, to, n, &e) == 0 && !to[0] && memcmp(to, to + 1, n - 1) == 0;
}

/* Behind a right header nothing but zeros: so a file is whose data never reached the disk, or a model that was never
 * filled.  Places all over it are looked at first, and all of it only where these are zeros; of a large one with --deep
 * alone. */
static bool is_hollow(struct verify_job *j, struct inspect_file *f, const struct safetensors *s)
{
    uint64_t n = s->data_bytes, end = s->data_at + n;
    char *piece = n < SAMPLE || (n > GLANCE_MAX && !j->v->deep) ? NULL : el_alloc(&j->mem, PIECE);
    _Atomic uint64_t *done = f->done;
    f->done = NULL; /* these are not among the bytes that progress waits for */
    bool zeros = piece != NULL;
    for (unsigned i = 0; zeros && i < 16; i++)
        zeros = are_zeros(f, s->data_at + (n - SAMPLE) / 15 * i, piece, SAMPLE);
    for (uint64_t at = s->data_at; zeros && at < end; at += PIECE)
        zeros = are_zeros(f, at, piece, end - at < PIECE ? (size_t)(end - at) : PIECE);
    f->done = done;
    el_free(&j->mem, piece);
    return zeros;
}

static void check_safetensors(struct verify_job *j, struct inspect_file *f)
{
    struct safetensors s = {0};
    if (safetensors_read(&s, &j->mem, &f->bytes, &j->err) == 0) {
        fmt_st_tensors(&j->tensors, j->l->names[j->file], &s, &j->err);
        j->hollow = !vouched(j) && is_hollow(j, f, &s);
    }
    safetensors_free(&s);
    j->bare = is_bare(j);
}

/* What is in it concerns the other files: verify_dcp(). */
static void check_metadata(struct verify_job *j, const struct sniff *s, unsigned first)
{
    if (s->kind != SNIFF_PICKLE && s->kind != SNIFF_OLD)
        ckpt_fail(&j->err, CKPT_DAMAGED, "it is no pickle, as torch writes it: it begins with byte 0x%02x", first);
    j->bare = is_bare(j);
}

/* By what is in it. */
static void check_content(struct verify_job *j, struct inspect_file *f, enum fmt_kind kind, const struct sniff *s)
{
    if (s->kind == SNIFF_SAFETENSORS) {
        check_safetensors(j, f);
    } else if (s->kind == SNIFF_ZIP && kind == FMT_ZIP) {
        verify_zip(j, f, true);
    } else if (s->kind == SNIFF_ZIP) {
        check_archive(j, f);
    } else if (s->kind == SNIFF_OLD) {
        fmt_old_tensors(&j->tensors, j->l->names[j->file], &f->bytes, &j->counts, &j->err);
        j->bare = is_bare(j);
    } else if (s->kind == SNIFF_PICKLE) {
        check_pickle(j, f);
        j->bare = is_bare(j);
    } else if (s->kind == SNIFF_NPY) {
        check_npy(j, f);
    } else if (s->kind == SNIFF_PACKED && (kind == FMT_ZIP || j->l->one)) {
        ckpt_fail(&j->err, CKPT_UNSUPPORTED, "it is %s: unpack it to have it looked at", s->what);
    }
    if (kind == FMT_ZIP && !j->err.status && s->kind != SNIFF_ZIP && s->kind != SNIFF_OLD &&
        s->kind != SNIFF_SAFETENSORS) {
        if (f->bytes.bytes < 4)
            ckpt_fail(&j->err, CKPT_DAMAGED, "truncated: it has %llu bytes", (unsigned long long)f->bytes.bytes);
        else
            ckpt_fail(&j->err, CKPT_UNSUPPORTED, "it is no archive of torch.save%s",
                      s->kind == SNIFF_PICKLE ? ", but another pickle" : "");
    }
}

/* A file that a manifest vouches for may be called like an archive of torch.save and be something else: with
 * --ckpt-layout=megatron the script says what is in it.  Then its size and its checksums are all that there is to
 * compare; so it is for what is no state by its name. */
static bool is_opaque(struct verify_job *j, enum fmt_kind kind, const struct sniff *s)
{
    return vouched(j) && kind != FMT_SAFETENSORS && (kind != FMT_ZIP || (s->kind != SNIFF_ZIP && s->kind != SNIFF_OLD));
}

/* Of the right size, and not what it is called: what a loss of power leaves, or what the script has written.  The
 * manifest knows. */
static void check_beginning(struct verify_job *j, enum fmt_kind kind, const struct sniff *s)
{
    const struct manifest_file *m = manifest_find(&j->l->manifest.m, j->l->names[j->file]);
    struct el_err e = {0};
    size_t bad;
    if ((s->kind != SNIFF_ZEROS && kind != FMT_ZIP) || j->v->deep || !m->chunks_n || m->size != j->l->sizes[j->file] ||
        !check_chunks(j->l->fs, j->l->dir, m, 0, 1, &j->mem, &bad, &j->v->done, &e))
        return;
    const char *words = strstr(e.text, ": bytes "); /* the name is told already */
    ckpt_fail(&j->err, e.status, "%s", words ? words + 2 : e.text);
}

static void check_sum(struct verify_job *j, struct inspect_file *f, const char *sum)
{
    struct sha256 s;
    char hex[SHA256_HEX], *piece = el_alloc(&j->mem, PIECE);
    if (!piece)
        el_fail(&j->err, EL_EXIT_OSERR, "out of memory");
    sha256_begin(&s);
    for (uint64_t at = 0; at < f->bytes.bytes && !j->err.status; at += PIECE) {
        size_t n = f->bytes.bytes - at < PIECE ? (size_t)(f->bytes.bytes - at) : PIECE;
        if (f->bytes.read(f->bytes.ctx, at, piece, n, &j->err) == 0)
            sha256_add(&s, piece, n);
    }
    sha256_end(&s, hex);
    if (!j->err.status && strcmp(hex, sum) != 0)
        ckpt_fail(&j->err, CKPT_DAMAGED, "its bytes have SHA-256 %s, its blob is called %s", hex, sum);
    el_free(&j->mem, piece);
    j->silent_bytes = 0;
}

void verify_file(struct verify_job *j)
{
    enum fmt_kind kind = fmt_kind(j->l->names[j->file]);
    char head[SNIFF_BYTES];
    struct inspect_file f;
    struct sniff s;
    if (kind == FMT_LEFTOVER && !j->l->one)
        return;
    if (inspect_file_open(&f, j->l, j->l->names[j->file], &j->v->done, &j->err))
        return;
    size_t n = f.bytes.bytes < sizeof head ? (size_t)f.bytes.bytes : sizeof head;
    if (f.bytes.read(f.bytes.ctx, 0, head, n, &j->err) == 0) {
        sniff(&s, head, n);
        if ((fmt_is_state(kind) || kind == FMT_JSON || kind == FMT_DATA) && sniff_zeros_in_front(head, n))
            s.kind = SNIFF_ZEROS;
        if (is_opaque(j, kind, &s)) {
            check_beginning(j, kind, &s);
        } else if (verify_file_stands_in(j, &f, kind, &s)) {
            if (!j->err.status)
                sniff_fail(&s, &j->err);
        } else if (kind == FMT_SAFETENSORS && s.kind == SNIFF_ZIP) {
            ckpt_fail(&j->err, CKPT_DAMAGED, "it is a zip archive, as torch.save writes them, not safetensors");
        } else if (kind == FMT_SAFETENSORS) {
            check_safetensors(j, &f);
        } else if (kind == FMT_JSON || kind == FMT_INDEX) {
            check_json(j, &f, kind, &s);
        } else if (kind == FMT_DCP_METADATA) {
            check_metadata(j, &s, (unsigned char)head[0]);
        } else if (kind != FMT_DCP_DATA) {
            check_content(j, &f, kind, &s);
        }
        if (!j->err.status && j->v->deep && sum_of(j))
            check_sum(j, &f, sum_of(j));
    }
    inspect_file_close(&f);
}
