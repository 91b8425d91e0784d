#include "ckpt/layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"
#include "util/utf8.h"

static const struct {
    const char *prefix;
    int digits; /* at least */
} names[] = {[CKPT_LAYOUT_ELRUN] = {"step-", 9}, [CKPT_LAYOUT_MEGATRON] = {"iter_", 7}};

void ckpt_step_name(enum ckpt_layout layout, int64_t step, char out[CKPT_PATH_MAX])
{
    assert(step >= 0 && step <= CKPT_STEP_MAX);
    snprintf(out, CKPT_PATH_MAX, "%s%0*lld", names[layout].prefix, names[layout].digits, (long long)step);
}

bool ckpt_step_of(const char *name, enum ckpt_layout *layout, int64_t *step)
{
    char again[CKPT_PATH_MAX];
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n = strlen(names[i].prefix);
        uint64_t v;
        if (strncmp(name, names[i].prefix, n) != 0 || el_parse_u64(name + n, &v) || v > CKPT_STEP_MAX)
            continue;
        ckpt_step_name((enum ckpt_layout)i, (int64_t)v, again);
        if (strcmp(name, again) != 0)
            continue;
        *layout = (enum ckpt_layout)i;
        *step = (int64_t)v;
        return true;
    }
    return false;
}

int64_t ckpt_number_of(const char *name)
{
    size_t n = strlen(name), from = n;
    uint64_t v;
    while (from && name[from - 1] >= '0' && name[from - 1] <= '9')
        from--;
    if (from == n || n - from > 15 || el_parse_u64(name + from, &v))
        return -1;
    return (int64_t)v;
}

void ckpt_stage_name(enum ckpt_layout layout, int64_t step, uint64_t round, const char *nonce, char out[CKPT_PATH_MAX])
{
    char name[CKPT_PATH_MAX];
    ckpt_step_name(layout, step, name);
    assert(strlen(nonce) < CKPT_NONCE_MAX && !strchr(nonce, '/'));
    if (layout == CKPT_LAYOUT_MEGATRON)
        snprintf(out, CKPT_PATH_MAX, "%.100s_tmp", name);
    else
        snprintf(out, CKPT_PATH_MAX, CKPT_STAGE_DIR "/%.100s.r%llu.%s", name, (unsigned long long)round, nonce);
}

bool ckpt_link_path(const char *path, const char *target, char out[CKPT_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (!*target || *target == '/' || len >= CKPT_PATH_MAX)
        return false;
    memcpy(out, path, len);
    while (*target) {
        const char *end = strchr(target, '/');
        size_t n = end ? (size_t)(end - target) : strlen(target);
        if (n == 2 && memcmp(target, "..", 2) == 0) {
            if (!len)
                return false;
            while (len && out[len - 1] != '/')
                len--;
            len -= len > 0;
        } else if (n && !(n == 1 && *target == '.')) {
            if (len + n + 2 > CKPT_PATH_MAX)
                return false;
            if (len)
                out[len++] = '/';
            memcpy(out + len, target, n);
            len += n;
        }
        target += n + (target[n] == '/');
    }
    out[len] = 0;
    return len > 0;
}

size_t ckpt_hub_of(const char *path)
{
    size_t k = strlen(CKPT_HUB_SNAPSHOTS "/");
    for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL)
        if (strncmp(at, CKPT_HUB_SNAPSHOTS "/", k) == 0 && at[k])
            return (size_t)(at - path);
    return SIZE_MAX;
}

const char *ckpt_path_fault(const char *path)
{
    size_t left = strlen(path);
    if (!left || path[0] == '/')
        return left ? "it is absolute" : "it is empty";
    if (left >= CKPT_PATH_MAX - 300) /* room for what stands in front and behind */
        return "it is too long";
    unsigned depth = 0;
    for (const char *part = path;; part++) {
        const char *slash = strchr(part, '/');
        size_t n = slash ? (size_t)(slash - part) : strlen(part);
        if (!n || (n == 1 && part[0] == '.'))
            return "a component is empty or \".\"";
        if (n == 2 && part[0] == '.' && part[1] == '.')
            return "a component is \"..\"";
        if (!part[n])
            break;
        if (++depth > CKPT_DEPTH_MAX)
            return "it is in too many directories";
        part += n;
    }
    for (size_t n; left; path += n, left -= n) {
        n = el_utf8(path, left);
        if (!n || el_utf8_steers(path, n))
            return "it is no UTF-8, or has control characters";
    }
    return NULL;
}
