#include "ckpt/fmt.h"

#include <assert.h>
#include <string.h>

#include "ckpt/layout.h"

const char *ckpt_format_word(enum ckpt_format f)
{
    static const char *const words[CKPT_FORMATS_COUNT] = {
#define X(NAME, word) word,
        CKPT_FORMATS(X)
#undef X
    };
    assert(f < CKPT_FORMATS_COUNT);
    return words[f];
}

static bool fmt_ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);
    return n >= k && strcmp(s + n - k, with) == 0;
}

static bool fmt_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *fmt_find(const char *s, const char *what)
{
    while (*s && !fmt_starts(s, what))
        s++;
    return *s ? s : NULL;
}

static const char *fmt_last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* "model.safetensors.index.json", "pytorch_model.bin.index.json", "diffusion….safetensors.index.fp16.json". */
static bool is_index(const char *last)
{
    const char *at = fmt_find(last, ".index.");
    return at && fmt_ends(last, ".json") &&
           ((at - last > 12 && strncmp(at - 12, ".safetensors", 12) == 0) ||
            (at - last > 4 && strncmp(at - 4, ".bin", 4) == 0));
}

enum fmt_kind fmt_kind(const char *name)
{
    static const struct {
        const char *end;
        enum fmt_kind kind;
    } ends_of[] = {
        {".tmp", FMT_LEFTOVER},
        {".temp", FMT_LEFTOVER},
        {".part", FMT_LEFTOVER},
        {".partial", FMT_LEFTOVER},
        {".incomplete", FMT_LEFTOVER},
        {".lock", FMT_LEFTOVER},
        {".distcp", FMT_DCP_DATA},
        {".json", FMT_JSON},
        {".pt", FMT_ZIP},
        {".pth", FMT_ZIP},
        {".ckpt", FMT_ZIP},
        {".bin", FMT_ZIP},
        {".pth.tar", FMT_ZIP},
        {".pt.tar", FMT_ZIP},
        {".ckpt.tar", FMT_ZIP},
        {".th", FMT_ZIP},
        {".pkl", FMT_DATA},
        {".pickle", FMT_DATA},
        {".npy", FMT_DATA},
        {".npz", FMT_DATA},
    };
    const char *last = fmt_last_part(name);
    if (fmt_ends(last, ".safetensors") || fmt_starts(last, "flat_param.") || fmt_starts(last, "optim_param.") ||
        strcmp(last, "buffers") == 0)
        return FMT_SAFETENSORS;
    if (is_index(last))
        return FMT_INDEX;
    if (strcmp(last, ".metadata") == 0)
        return FMT_DCP_METADATA;
    for (size_t i = 0; i < sizeof ends_of / sizeof ends_of[0]; i++)
        if (fmt_ends(last, ends_of[i].end))
            return ends_of[i].kind;
    return FMT_OTHER;
}

bool fmt_is_state(enum fmt_kind kind)
{
    return kind == FMT_SAFETENSORS || kind == FMT_ZIP || kind == FMT_INDEX || kind == FMT_DCP_METADATA ||
           kind == FMT_DCP_DATA;
}

static bool is_deepspeed(const char *last)
{
    return (fmt_ends(last, "_model_states.pt") || fmt_ends(last, "_optim_states.pt")) &&
           fmt_find(last, "mp_rank_") != NULL;
}

/* What is special is asked first: Megatron, ATorch and the others keep their files in the formats of others, and a
 * Trainer all kinds of them. */
enum ckpt_format fmt_detect(const char *const *names, size_t n)
{
    bool dcp = false, st = false, sets = false, zip = false, atorch = false, megatron = false, common = false,
         deepspeed = false, trainer = false;
    for (size_t i = 0; i < n; i++) {
        enum fmt_kind kind = fmt_kind(names[i]);
        struct fmt_member m;
        dcp |= kind == FMT_DCP_METADATA || kind == FMT_DCP_DATA;
        st |= kind == FMT_SAFETENSORS;
        zip |= kind == FMT_ZIP;
        sets |= kind == FMT_INDEX || (kind == FMT_SAFETENSORS && fmt_member(names[i], &m));
        atorch |= fmt_starts(names[i], "flat_param.") || fmt_starts(names[i], "flat_meta.");
        megatron |= fmt_starts(names[i], "mp_rank_") || strcmp(names[i], "metadata.json") == 0;
        common |= strcmp(names[i], "common.pt") == 0 || fmt_starts(names[i], "mp_rank_");
        deepspeed |= is_deepspeed(fmt_last_part(names[i]));
        trainer |= strcmp(names[i], "trainer_state.json") == 0;
    }
    return atorch                                             ? CKPT_FORMAT_ATORCH
           : trainer                                          ? CKPT_FORMAT_TRAINER
           : deepspeed                                        ? CKPT_FORMAT_DEEPSPEED
           : (megatron && (dcp || common)) || (dcp && common) ? CKPT_FORMAT_MEGATRON
           : dcp                                              ? CKPT_FORMAT_DCP
           : sets                                             ? CKPT_FORMAT_HF
           : st                                               ? CKPT_FORMAT_SAFETENSORS
           : zip                                              ? CKPT_FORMAT_TORCH
                                                              : CKPT_FORMAT_NONE;
}
