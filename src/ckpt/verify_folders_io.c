/* Folders of a Trainer, of accelerate and of Megatron's distributed form: what one of their files says of the others. A
 * save that was ended halfway leaves the first of them and not the last. */
#include <stdio.h>
#include <string.h>

#include "ckpt/verify_private.h"
#include "util/parse.h"

static bool verify_folders_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *verify_folders_last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool verify_folders_has(const struct inspect *l, const char *name)
{
    return inspect_find(l, name) != SIZE_MAX;
}

/* One whose name, with its folders, begins so. */
static bool has_some(const struct inspect *l, const char *begin)
{
    for (size_t i = 0; i < l->n; i++)
        if (verify_folders_starts(l->names[i], begin) && fmt_kind(l->names[i]) != FMT_LEFTOVER)
            return true;
    return false;
}

/* Not what else is saved with them. */
static bool is_weights(const char *name)
{
    static const char *const others[] = {"optimizer",          "scheduler",     "rng_state", "random_states",
                                         "dl_state_dict",      "training_args", "scaler",    "sampler",
                                         "custom_checkpoint_", "tokenizer"};
    enum fmt_kind kind = fmt_kind(name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (verify_folders_starts(name, others[i]) || verify_folders_starts(verify_folders_last_part(name), others[i]))
            return false;
    return fmt_is_state(kind) && kind != FMT_INDEX;
}

static bool has_weights(const struct inspect *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (is_weights(l->names[i]))
            return true;
    return false;
}

/* In one file, in files of ranks ("rank0-of-4-optimizer.pt"), in a folder, or in those of DeepSpeed. */
static bool has_optimizer(const struct inspect *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *last = verify_folders_last_part(l->names[i]);
        if (verify_folders_starts(l->names[i], "optimizer") || verify_folders_starts(l->names[i], "global_step") ||
            strstr(last, "optimizer") || strstr(last, "_optim_states.pt") || strstr(last, "_model_states.pt"))
            return true;
    }
    return false;
}

/* --- a Trainer ---------------------------------------------------------------------------------------------------- */

/* "checkpoint-500": so a Trainer calls its folders. */
static bool is_called_so(const struct inspect *l)
{
    const char *last = verify_folders_last_part(l->dir);
    return verify_folders_starts(last, "checkpoint-") && last[11] &&
           strspn(last + 11, "0123456789") == strlen(last + 11);
}

/* trainer_state.json is written last.  A model alone has none, nor has one that was saved for use, with its arguments;
 * a loop of somebody's own has an optimizer and a schedule, but neither a Trainer's arguments nor its random numbers.
 */
static void check_unfinished(struct verify *v, const struct inspect *l)
{
    bool arguments = verify_folders_has(l, "training_args.bin"),
         random = verify_folders_has(l, "rng_state.pth") || has_some(l, "rng_state_");
    bool state = verify_folders_has(l, "optimizer.pt") || verify_folders_has(l, "scheduler.pt") || random ||
                 has_some(l, "global_step") || verify_folders_has(l, "scaler.pt") || has_some(l, "optimizer_0/") ||
                 has_some(l, "pytorch_model_fsdp_0/") || verify_folders_has(l, "optimizer.bin");
    if (verify_folders_has(l, "trainer_state.json") || l->others)
        return;
    if ((arguments && (state || is_called_so(l))) ||
        (random && verify_folders_has(l, "optimizer.pt") && verify_folders_has(l, "scheduler.pt")))
        verify_find(v, CKPT_INCOMPLETE, "trainer_state.json", "it is missing: a Trainer writes it last");
}

/* A Trainer saves its schedule with the optimizer, and goes on without both if one of them is not there. */
static void check_optimizer(struct verify *v, const struct inspect *l)
{
    if (l->others || !verify_folders_has(l, "trainer_state.json"))
        return;
    bool optimizer = has_optimizer(l), random = verify_folders_has(l, "rng_state.pth") || has_some(l, "rng_state_");
    if (!optimizer && (verify_folders_has(l, "scheduler.pt") || random))
        verify_find(v, CKPT_INCOMPLETE, "",
                    verify_folders_has(l, "scheduler.pt") ? "there is a scheduler.pt, but no optimizer"
                                                          : "there is the state of random numbers, but no optimizer");
    else if (verify_folders_has(l, "optimizer.pt") && !verify_folders_has(l, "scheduler.pt"))
        verify_find(v, CKPT_INCOMPLETE, "", "there is an optimizer.pt, but no scheduler.pt");
}

/* What says that a model is there, without one. */
static void check_model(struct verify *v, const struct inspect *l)
{
    bool state = verify_folders_has(l, "trainer_state.json"), adapter = verify_folders_has(l, "adapter_config.json");
    if (l->n && (state || adapter) && !l->others && !has_weights(l))
        verify_find(v, CKPT_INCOMPLETE, "",
                    adapter ? "there is an adapter_config.json, but no adapter_model"
                            : "there is a trainer_state.json, but no weights of a model");
}

/* transformers writes the index behind the files of a model, and reads none of them without it. */
static void verify_folders_check_shards(struct verify *v, const struct inspect *l)
{
    static const char *const models[] = {"model", "pytorch_model"};
    bool folder = verify_folders_has(l, "trainer_state.json") || verify_folders_has(l, "config.json") ||
                  verify_folders_has(l, "training_args.bin");
    for (size_t i = 0; folder && !l->others && i < l->n; i++) {
        struct fmt_member m;
        if (strchr(l->names[i], '/') || !fmt_is_state(fmt_kind(l->names[i])) || !fmt_member(l->names[i], &m) || m.n < 2)
            continue;
        for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
            char index[80], text[160];
            size_t n = strlen(models[k]);
            if (!verify_folders_starts(l->names[i], models[k]) || m.number_at != n + 1 || l->names[i][n] != '-')
                continue;
            snprintf(index, sizeof index, "%s%.40s.index", models[k], l->names[i] + m.count_end);
            if (has_some(l, index))
                return;
            snprintf(text, sizeof text, "it is missing: the model is in %llu files, of which it is the list",
                     (unsigned long long)m.n);
            strcat(index, ".json");
            verify_find(v, CKPT_INCOMPLETE, index, text);
            return;
        }
    }
}

/* --- accelerate --------------------------------------------------------------------------------------------------- */

/* The first of several is called without a number. */
static void check_first(struct verify *v, const struct inspect *l)
{
    static const char *const of[][2] = {{"model.safetensors", "model_1.safetensors"},
                                        {"pytorch_model.bin", "pytorch_model_1.bin"},
                                        {"optimizer.bin", "optimizer_1.bin"},
                                        {"scheduler.bin", "scheduler_1.bin"}};
    char text[80];
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        if (verify_folders_has(l, of[i][0]) || !verify_folders_has(l, of[i][1]))
            continue;
        snprintf(text, sizeof text, "it is missing: there is %s", of[i][1]);
        verify_find(v, CKPT_INCOMPLETE, of[i][0], text);
    }
}

/* Its names of models, at the top. */
static bool has_model(const struct inspect *l)
{
    static const char *const begins[] = {"model.safetensors", "model_", "model-0", "pytorch_model"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (has_some(l, begins[i]))
            return true;
    return false;
}

/* Accelerator.save_state(): models, optimizers, schedules, samplers, the scale of gradients, and last the random
 * numbers of each rank.  A model that is not prepared has no optimizer, and an optimizer need have no schedule. */
static void check_accelerate(struct verify *v, const struct inspect *l)
{
    bool random = has_some(l, "random_states_"), optimizer = verify_folders_has(l, "optimizer.bin"),
         schedule = verify_folders_has(l, "scheduler.bin"), sampler = verify_folders_has(l, "sampler.bin");
    bool called_so = (optimizer || schedule) && has_model(l) && !verify_folders_has(l, "training_args.bin");
    if (l->others || !(random || sampler || called_so) || verify_folders_has(l, "trainer_state.json"))
        return;
    if (!has_weights(l) && (optimizer || schedule || sampler))
        verify_find(v, CKPT_INCOMPLETE, "",
                    optimizer  ? "there is an optimizer.bin, but no weights of a model"
                    : schedule ? "there is a scheduler.bin, but no weights of a model"
                               : "there is a sampler.bin, but no weights of a model");
    if (schedule && !has_optimizer(l))
        verify_find(v, CKPT_INCOMPLETE, "", "there is a scheduler.bin, but no optimizer");
    check_first(v, l);
    if (!random)
        verify_find(v, CKPT_INCOMPLETE, "random_states_0.pkl", "it is missing: accelerate writes it last");
}

/* --- Megatron ----------------------------------------------------------------------------------------------------- */

/* Its distributed form keeps beside the pieces what all ranks have alike, and last what wrote them; NeMo has the same
 * in a folder. */
static void check_common(struct verify *v, const struct inspect *l)
{
    char path[CKPT_PATH_MAX], *text;
    size_t n;
    for (size_t i = 0; i < l->n; i++) {
        int folder = (int)(verify_folders_last_part(l->names[i]) - l->names[i]);
        if (strcmp(l->names[i] + folder, ".metadata") != 0)
            continue;
        snprintf(path, sizeof path, "%.*scommon.pt", folder, l->names[i]);
        bool common = verify_folders_has(l, path);
        snprintf(path, sizeof path, "%.*smetadata.json", folder, l->names[i]);
        if (common && !verify_folders_has(l, path))
            verify_find(v, CKPT_INCOMPLETE, path, "it is missing: Megatron reads nothing without it");
        if (common || !verify_folders_has(l, path) || verify_read(l, path, CKPT_PATH_MAX, v->mem, &text, &n) < 0)
            continue;
        snprintf(path, sizeof path, "%.*scommon.pt", folder, l->names[i]);
        if (strstr(text, "\"sharded_backend\""))
            verify_find(v, CKPT_INCOMPLETE, path, "it is missing");
        el_free(v->mem, text);
    }
}

/* "epoch=1-step=10.ckpt", a folder: what is not divided among the ranks is in a file that Lightning writes last. */
static void check_lightning(struct verify *v, const struct inspect *l)
{
    const char *last = verify_folders_last_part(l->dir), *end = strstr(last, ".ckpt");
    if (strstr(last, "step=") && end && !end[5] && verify_folders_has(l, ".metadata") &&
        !verify_folders_has(l, "meta.pt") && !l->others)
        verify_find(v, CKPT_INCOMPLETE, "meta.pt", "it is missing: Lightning writes it last");
}

/* NeMo: a file beside the folder, which is there while it is written. */
static void check_marker(struct verify *v, const struct inspect *l)
{
    char path[CKPT_PATH_MAX], text[200], shown[EL_PATH_MAX];
    struct fs_stat st;
    if (!*l->dir || snprintf(path, sizeof path, "%s-unfinished", l->dir) >= (int)sizeof path ||
        l->fs->stat(l->fs->ctx, path, &st) < 0)
        return;
    snprintf(text, sizeof text, "%.120s beside it says that it was not written to its end",
             el_show_path(verify_folders_last_part(path), shown, sizeof shown));
    verify_find(v, CKPT_INCOMPLETE, "", text);
}

void verify_folders(struct verify *v, const struct inspect *l)
{
    check_unfinished(v, l);
    check_model(v, l);
    check_optimizer(v, l);
    verify_folders_check_shards(v, l);
    check_accelerate(v, l);
    check_common(v, l);
    check_lightning(v, l);
    check_marker(v, l);
}
