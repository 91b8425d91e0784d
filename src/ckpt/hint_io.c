#include "ckpt/hint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"

void hint_read(const struct ckpt_fs *fs, const char *file, char text[CKPT_PATH_MAX])
{
    struct el_mem mem = EL_MEM_INIT(4096);
    char *read = NULL;
    size_t n = 0;
    text[0] = 0;
    if (fs_read_small(fs, file, CKPT_PATH_MAX - 1, &mem, &read, &n) >= 0)
        snprintf(text, CKPT_PATH_MAX, "%.*s", (int)(n && read[n - 1] == '\n' ? n - 1 : n), read);
    el_free(&mem, read);
}

bool hint_dangles(const struct ckpt_fs *fs, const char *file, enum ckpt_layout *layout)
{
    char text[CKPT_PATH_MAX], name[CKPT_PATH_MAX];
    uint64_t number;
    int64_t step = -1;
    struct fs_stat st;
    *layout = CKPT_LAYOUT_MEGATRON;
    hint_read(fs, file, text);
    if (strcmp(file, CKPT_TRACKER_FILE) != 0)
        step = ckpt_step_of(text, layout, &step) ? step : -1;
    else if (el_parse_u64(text, &number) == 0 && number <= CKPT_STEP_MAX)
        step = (int64_t)number;
    if (step < 0)
        return false;
    ckpt_step_name(*layout, step, name);
    return fs->stat(fs->ctx, name, &st) == -ENOENT;
}
