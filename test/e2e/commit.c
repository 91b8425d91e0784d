/* commit ROOT STEP BYTES [RUN-ID [marker|megatron|half]]: one checkpoint with two files, by the library that agents
 * will use.  half: as if the coordinator had gone before the manifest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/commit.h"
#include "ckpt/root.h"
#include "ckpt/safetensors.h"

/* A file as torch's sharded writer makes it: rows of the tensor "w", and one of its own. */
static char *image(unsigned rank, size_t rows, size_t *n, struct el_err *e)
{
    char note[200], own[16];
    const uint64_t shape[] = {rows, 16}, one[] = {1};
    snprintf(own, sizeof own, "own.%u", rank);
    snprintf(note, sizeof note, "{\"w\":{\"saved_offsets\":[%zu,0]},\"%s\":{\"saved_offsets\":[0]}}", rank * rows, own);
    struct safetensors_tensor t[] = {{.name = "w", .dtype = ST_F32, .rank = 2, .shape = shape},
                                     {.name = own, .dtype = ST_I64, .rank = 1, .shape = one}};
    const struct safetensors_pair pairs[] = {{"format", "pt"}, {"DCP_VERSION", "1.0"}, {"DCP_SHARDING_INFO", note}};
    struct el_buf head = EL_BUF_INIT(NULL, 0);
    if (safetensors_build(t, 2, pairs, 3, 4096, &head, e))
        return NULL;
    *n = head.len + rows * 64 + 8;
    char *bytes = aligned_alloc(4096, (*n / 4096 + 1) * 4096);
    memcpy(bytes, head.v, head.len);
    for (size_t i = head.len; i < *n; i++)
        bytes[i] = (char)(rank + 1);
    el_buf_free(&head);
    return bytes;
}

static int commit(struct commit *c, size_t rows, const char *run_id, bool half, struct el_err *e)
{
    struct manifest_file f[2] = {0};
    struct manifest_part parts[2] = {{"dense", "fsdp0", 0}, {"dense", "fsdp1", 1}};
    struct manifest m = {.run_id = run_id,
                         .epoch = "1.ab.1",
                         .world = 2,
                         .created = (uint64_t)time(NULL),
                         .files = f,
                         .files_n = 2,
                         .parts = parts,
                         .parts_n = 2};
    struct commit_result result;
    int r = commit_open(c, e);
    for (unsigned i = 0; !r && i < 2; i++) {
        static char names[2][80];
        size_t n = 0;
        char *bytes = image(i, rows, &n, e);
        snprintf(names[i], sizeof names[i], "shard-%05u-model-00001-of-00001.safetensors", i + 1);
        r = bytes ? commit_join(c, e) || commit_write(c, names[i], bytes, n, &f[i], e) : -1;
        free(bytes);
    }
    return r ? -1 : half ? 0 : commit_publish(c, &m, &result, e);
}

int main(int argc, char **argv)
{
    struct root root;
    struct el_err e = {0};
    if (argc < 4)
        return 2;
    const char *how = argc > 5 ? argv[5] : "";
    char nonce[20];
    snprintf(nonce, sizeof nonce, "n%ld", (long)getpid());
    int r = root_open(&root, argv[1], true, &e);
    struct ckpt_fs fs = root_table(&root);
    struct commit c = {.fs = &fs,
                       .layout = strcmp(how, "megatron") == 0 ? CKPT_LAYOUT_MEGATRON : CKPT_LAYOUT_ELRUN,
                       .mode = strcmp(how, "marker") == 0 ? COMMIT_MARKER : COMMIT_RENAME,
                       .step = atoll(argv[2]),
                       .round = 1,
                       .nonce = nonce};
    if (!r)
        r = commit(&c, strtoull(argv[3], NULL, 10) / 128, argc > 4 ? argv[4] : "job", strcmp(how, "half") == 0, &e);
    if (r)
        fprintf(stderr, "commit: %s\n", e.text);
    root_close(&root);
    return r ? e.status : 0;
}
