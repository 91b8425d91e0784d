#include "probe/helper.h"

#include <assert.h>
#include <stdio.h>

struct helper_words {
    struct helper_argv *a;
    unsigned n;
    size_t used;
};

/* "key=value", or only key if value is NULL; false: no room. */
static bool helper_add(struct helper_words *w, const char *key, const char *value)
{
    struct helper_argv *a = w->a;
    assert(w->n < HELPER_ARGV_MAX);
    size_t room = sizeof a->text - w->used;
    int n = snprintf(a->text + w->used, room, "%s%s%s", key, value ? "=" : "", value ? value : "");
    if (n < 0 || (size_t)n >= room)
        return false;
    a->argv[w->n++] = a->text + w->used;
    a->argv[w->n] = NULL;
    w->used += (size_t)n + 1;
    return true;
}

static bool add_text(struct helper_words *w, const char *key, const char *value)
{
    return !value || !*value || helper_add(w, key, value);
}

static bool add_number(struct helper_words *w, const char *key, unsigned value)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", value);
    return helper_add(w, key, digits);
}

int helper_argv(const struct helper_order *o, struct helper_argv *a, struct el_err *e)
{
    static const char *const role[] = {
        [HELPER_NVML] = "nvml", [HELPER_BURN] = "burn", [HELPER_NICLOOP] = "nicloop", [HELPER_PAIR] = "pair"};
    assert((size_t)o->role < sizeof role / sizeof role[0]);
    struct helper_words w = {.a = a};
    bool fits = helper_add(&w, HELPER_NAME, NULL) && helper_add(&w, role[o->role], NULL) &&
                add_number(&w, "gpu", o->gpu) && add_number(&w, "rail", o->rail) &&
                add_text(&w, "purelib", o->purelib) && add_text(&w, "nccl", o->nccl) && add_text(&w, "cuda", o->cuda) &&
                add_text(&w, "nvml", o->nvml) && add_text(&w, "id", o->id) &&
                (!o->expect || add_number(&w, "expect", o->expect)) && (!o->quick || add_number(&w, "quick", 1)) &&
                (!o->init_ms || add_number(&w, "init_ms", o->init_ms)) &&
                (!o->step_ms || add_number(&w, "step_ms", o->step_ms)) &&
                (!o->grace_ms || add_number(&w, "grace_ms", o->grace_ms));
    return fits ? 0 : el_fail(e, EL_EXIT_USAGE, "a library path for the GPU probe is too long");
}
