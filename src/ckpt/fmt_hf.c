/* Notes in JSON: the index of a Hugging Face directory, and the boxes of torch's sharded safetensors. */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/json_limit.h"
#include "util/parse.h"

enum { VALUES_MAX = 8000000, DEPTH_MAX = 6 };

static json_t *fmt_hf_load(const char *what, const char *json, size_t n, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    json_error_t why;
    if (!json_limit_holds(json, n, VALUES_MAX, DEPTH_MAX)) {
        ckpt_fail(e, CKPT_UNSUPPORTED, "%s has more values than %d, or is nested deeper than %d", what, (int)VALUES_MAX,
                  (int)DEPTH_MAX);
        return NULL;
    }
    json_t *tree = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    if (!tree)
        ckpt_fail(e, CKPT_DAMAGED, "%s is no JSON: byte %d: %s", what, why.position, el_show(why.text, shown));
    return tree;
}

int fmt_index(const char *json, size_t n, int (*each)(void *arg, const char *tensor, const char *file), void *arg,
              struct el_err *e)
{
    json_t *tree = fmt_hf_load("the index", json, n, e), *map = json_object_get(tree, "weight_map"), *v;
    const char *name;
    int r = 0;
    if (tree && !json_is_object(map))
        r = ckpt_fail(e, CKPT_DAMAGED, "the index has no weight_map");
    json_object_foreach(map, name, v)
    {
        if (r)
            break;
        r = json_is_string(v) ? each(arg, name, json_string_value(v))
                              : ckpt_fail(e, CKPT_DAMAGED, "the index has no file name for a tensor");
    }
    json_decref(tree);
    return tree ? r : -1;
}

/* Where the piece begins, for a tensor of this rank; false: the note does not say. */
static bool read_box(const json_t *note, const struct safetensors_tensor *t, uint64_t from[SAFETENSORS_RANK_MAX])
{
    const json_t *at = json_object_get(json_object_get(note, t->name), "saved_offsets");
    if (!json_is_array(at) || json_array_size(at) != t->rank)
        return false;
    for (unsigned i = 0; i < t->rank; i++) {
        const json_t *v = json_array_get(at, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return false;
        from[i] = (uint64_t)json_integer_value(v);
    }
    return true;
}

int fmt_st_tensors(struct tensors *to, const char *file, const struct safetensors *s, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    const char *text = safetensors_pair(s, "DCP_SHARDING_INFO");
    json_t *note = text ? fmt_hf_load("DCP_SHARDING_INFO", text, strlen(text), e) : NULL;
    int r = text && !note ? -1 : 0;
    for (size_t i = 0; !r && i < s->tensors_n; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        uint64_t from[SAFETENSORS_RANK_MAX];
        /* torch's reader looks every tensor of such a file up. */
        if (note && !read_box(note, t, from))
            r = ckpt_fail(e, CKPT_DAMAGED, "DCP_SHARDING_INFO has no offsets for tensor \"%s\"",
                          el_show(t->name, shown));
        struct tensor x = {.name = t->name,
                           .dtype = safetensors_dtype_name(t->dtype),
                           .file = file,
                           .rank = t->rank,
                           .size = t->shape,
                           .from = note ? from : NULL,
                           .place = TENSOR_RAW,
                           .at = s->data_at + t->begin,
                           .bytes = t->end - t->begin};
        if (!r)
            r = tensors_add(to, &x, e);
    }
    json_decref(note);
    return r;
}
