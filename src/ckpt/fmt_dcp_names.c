/* What .metadata would have Python import.  It has no checksum: a bit that has flipped in a name is seen here, or by
 * the job that resumes. */
#include <stdio.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/parse.h"

static const char *const known[] = {
    FMT_DCP_MODULE " Metadata",
    FMT_DCP_MODULE " MetadataIndex",
    FMT_DCP_MODULE " TensorStorageMetadata",
    FMT_DCP_MODULE " BytesStorageMetadata",
    FMT_DCP_MODULE " ChunkStorageMetadata",
    FMT_DCP_MODULE " TensorProperties",
    FMT_DCP_MODULE " _MEM_FORMAT_ENCODING",
    FMT_DCP_MODULE " StorageMeta",
    "torch.distributed.checkpoint.filesystem _StorageInfo",
    "torch.serialization _get_layout",
    "torch Size",
    "torch float32",
    "torch float64",
    "torch float16",
    "torch bfloat16",
    "torch int64",
    "torch int32",
    "torch uint8",
    "torch bool",
    "torch strided",
    "collections OrderedDict",
    "pathlib PosixPath",
    "pathlib._local PosixPath",
};

/* Of those that write such files, in their own classes or those of their storage. */
static const char *const packages[] = {
    "torch",
    "collections",
    "builtins",
    "__builtin__",
    "pathlib",
    "copyreg",
    "_codecs",
    "enum",
    "datetime",
    "uuid",
    "typing",
    "numpy",
    "fsspec",
    "s3fs",
    "gcsfs",
    "upath",
    "s3torchconnector",
    "megatron",
    "nemo",
    "lightning",
    "torchao",
    "torchtitan",
    "transformer_engine",
    "transformers",
    "accelerate",
    "torch_xla",
    "verl",
    "atorch",
    "pytorch_lightning",
    "composer",
    "torchsnapshot",
    "lightning_fabric",
    "colossalai",
    "deepspeed",
    "nvidia_resiliency_ext",
};

static bool fmt_dcp_names_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One byte differs, and not one digit from another: that is a name, too. */
static bool almost(const char *x, size_t n, const char *y)
{
    size_t differ = 0;
    if (n != strlen(y))
        return false;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i] && (differ++ || (fmt_dcp_names_is_digit(x[i]) && fmt_dcp_names_is_digit(y[i]))))
            return false;
    return differ == 1;
}

/* Letters, digits, "_", dots between them, and one space; a letter may be of any language. */
static bool fmt_dcp_names_is_name(const struct pickle_node *x)
{
    size_t spaces = 0;
    for (size_t i = 0; i < x->text_n; i++) {
        char c = x->text[i];
        spaces += c == ' ';
        if (!(c & '\x80') && !fmt_dcp_names_is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !strchr("_. <>", c ? c : '\n'))
            return false;
    }
    return spaces == 1 && x->text[0] != ' ' && x->text[x->text_n - 1] != ' ';
}

static bool is_of_package(const char *text)
{
    size_t n = strcspn(text, ". ");
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++)
        if (strlen(packages[i]) == n && memcmp(packages[i], text, n) == 0)
            return true;
    return false;
}

bool fmt_dcp_is_torch(const char *text)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i]) == 0)
            return true;
    return false;
}

int fmt_dcp_names(const struct pickle *p, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    for (const struct pickle_node *x = p->globals; x; x = x->fn) {
        if (!fmt_dcp_names_is_name(x))
            return ckpt_fail(e, CKPT_DAMAGED, "its pickle names a class \"%s\", which can be none",
                             el_show(x->text, shown));
        for (size_t i = 0; !fmt_dcp_is_torch(x->text) && i < sizeof known / sizeof known[0]; i++)
            if (almost(x->text, x->text_n, known[i]))
                return ckpt_fail(e, CKPT_DAMAGED, "its pickle names \"%s\", of which one byte is not that of \"%s\"",
                                 el_show(x->text, shown), known[i]);
        if (!is_of_package(x->text))
            return ckpt_fail(e, CKPT_UNSUPPORTED,
                             "its pickle names \"%s\", which is of no module that writes such files",
                             el_show(x->text, shown));
    }
    return 0;
}

/* What is compared is bounded: a few bytes can name one long path a million times. */
enum { PATH_MAX_BYTES = 1024 };
#define WORK_MAX ((uint64_t)1 << 30)

/* ("model", "layers", 0) is "model.layers.0"; 0: it is longer, or something else. */
static size_t fmt_dcp_names_join(const struct pickle_node *path, char to[PATH_MAX_BYTES])
{
    size_t n = 0;
    const struct pickle_node *x;
    for (size_t i = 0; (x = pickle_item(path, i)); i++) {
        size_t left = PATH_MAX_BYTES - n;
        int k = x->kind == PICKLE_TEXT && x->text_n < left
                    ? snprintf(to + n, left, "%s%.*s", i ? "." : "", (int)x->text_n, x->text)
                : x->kind == PICKLE_INT ? snprintf(to + n, left, "%s%lld", i ? "." : "", (long long)x->number)
                                        : -1;
        if (k < 0 || (size_t)k >= left)
            return 0;
        n += (size_t)k;
    }
    return n;
}

/* The only byte that differs; n: there is none, or there are more. */
static size_t one_differs(const char *x, const char *y, size_t n)
{
    size_t differ = 0, at = n;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i]) {
            differ++;
            at = i;
        }
    return differ == 1 ? at : n;
}

int fmt_dcp_paths(const struct pickle_node *paths, struct el_err *e)
{
    char path[PATH_MAX_BYTES], shown[EL_SHOW_MAX], key[EL_SHOW_MAX];
    uint64_t work = 0;
    bool dots = false; /* somebody else may join with another letter */
    struct el_err dot = {0};
    for (size_t i = 0; paths && paths->kind == PICKLE_DICT && i + 1 < paths->items_n && work < WORK_MAX; i += 2) {
        const struct pickle_node *of = paths->items[i];
        size_t n = of->kind == PICKLE_TEXT ? fmt_dcp_names_join(paths->items[i + 1], path) : 0;
        work += 64 + n;
        if (!n || n != of->text_n)
            continue;
        size_t at = one_differs(path, of->text, n);
        dots |= memcmp(path, of->text, n) == 0 && pickle_item(paths->items[i + 1], 1);
        if (at == n)
            continue;
        struct el_err *to = path[at] == '.' ? &dot : e;
        el_show(path, shown);
        memcpy(path, of->text, n);
        ckpt_fail(to, CKPT_DAMAGED, "the name \"%s\" differs in one byte from that of its path, \"%s\"",
                  el_show(path, key), shown);
        if (to == e)
            return -1;
    }
    if (dots && dot.status)
        return ckpt_fail(e, dot.status, "%s", dot.text);
    return 0;
}
