#include "snapshot/commit.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/check.h"
#include "ckpt/crc32c.h"
#include "snapshot/checksum_thread.h"
#include "util/parse.h"

#define MARK "{\"format\":\"elrun-ckpt\",\"version\":1}\n"

void commit_paths(const struct commit *c, char stage[CKPT_PATH_MAX], char final[CKPT_PATH_MAX])
{
    ckpt_step_name(c->layout, c->step, final);
    if (c->mode == COMMIT_MARKER)
        memcpy(stage, final, CKPT_PATH_MAX);
    else if (c->apart)
        snprintf(stage, CKPT_PATH_MAX, CKPT_STAGE_DIR "/%.100s.r%llu.%s", final, (unsigned long long)c->round,
                 c->nonce);
    else
        ckpt_stage_name(c->layout, c->step, c->round, c->nonce, stage);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct content {
    const char *bytes;
    size_t n;
    uint32_t *chunks; /* where the checks go; NULL: nobody asks */
    const struct commit *watched;
};

/* One try.  0, -errno; a file of which anything failed is closed and removed: no state of it is trusted again. */
static int write_once(const struct ckpt_fs *fs, const char *path, const struct content *c, bool *sync_failed)
{
    *sync_failed = false;
    int file = fs->create(fs->ctx, path);
    if (file == -EEXIST) { /* of an attempt that was given up */
        int r = fs->remove(fs->ctx, path);
        file = r < 0 ? r : fs->create(fs->ctx, path);
    }
    if (file < 0)
        return file;
    struct checksum_thread sums;
    int r = fs->reserve(fs->ctx, file, c->n);
    checksum_thread_begin(&sums, c->bytes, c->n, MANIFEST_CHUNK, c->chunks);
    for (size_t at = 0; r >= 0 && at < c->n; at += MANIFEST_CHUNK) {
        size_t n = c->n - at < MANIFEST_CHUNK ? c->n - at : (size_t)MANIFEST_CHUNK;
        bool stopped = c->watched && c->watched->stop && *c->watched->stop;
        r = stopped ? -ECANCELED : fs->write(fs->ctx, file, at, c->bytes + at, n);
        if (r >= 0)
            checksum_thread_written(&sums);
        if (c->watched && c->watched->done_bytes && r >= 0)
            *c->watched->done_bytes += n;
    }
    if (r >= 0) {
        r = fs->sync(fs->ctx, file);
        *sync_failed = r < 0;
    }
    checksum_thread_end(&sums);
    fs->close(fs->ctx, file);
    if (r < 0)
        fs->remove(fs->ctx, path);
    return r;
}

/* The kernel tells of a failed sync once and then forgets it: the second try has a file of its own. */
static int write_durable(const struct ckpt_fs *fs, const char *path, const struct content *c, struct el_err *e)
{
    char again[CKPT_PATH_MAX + 8];
    bool sync_failed;
    int r = write_once(fs, path, c, &sync_failed);
    if (r < 0 && sync_failed && r != -ENOSPC) {
        snprintf(again, sizeof again, "%s.again", path);
        r = write_once(fs, again, c, &sync_failed);
        if (r >= 0)
            r = fs->rename(fs->ctx, again, path, true);
    }
    if (r == -ENOSPC || r == -EDQUOT) {
        fs_fail(fs, r, "write", path, e);
        char *end = e ? e->text + strlen(e->text) : NULL;
        if (end)
            snprintf(end, sizeof e->text - (size_t)(end - e->text),
                     " (%zu bytes are needed; older checkpoints are untouched; `elrun ckpt gc` makes room)", c->n);
        return -1;
    }
    return r < 0 ? fs_fail(fs, r, "write", path, e) : 0;
}

/* "" for a name without a directory. */
static void commit_parent_of(const char *path, char out[CKPT_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    assert(n < CKPT_PATH_MAX);
    memcpy(out, path, n);
    out[n] = 0;
}

int commit_replace(const struct ckpt_fs *fs, const char *path, const char *nonce, const void *text, size_t n,
                   struct el_err *e)
{
    char temp[CKPT_PATH_MAX], parent[CKPT_PATH_MAX];
    const struct content c = {.bytes = text, .n = n};
    if (snprintf(temp, sizeof temp, "%s.%s.tmp", path, nonce) >= (int)sizeof temp)
        return fs_fail(fs, -ENAMETOOLONG, "write", path, e);
    commit_parent_of(path, parent);
    if (write_durable(fs, temp, &c, e))
        return -1;
    int r = fs->rename(fs->ctx, temp, path, true);
    if (r >= 0)
        r = fs->sync_dir(fs->ctx, parent);
    return r < 0 ? fs_fail(fs, r, "write", path, e) : 0;
}

/* Each directory of the path from its first component on is there, and so will it be after a loss of power. */
static int make_dirs(const struct ckpt_fs *fs, const char *path, struct el_err *e)
{
    char part[CKPT_PATH_MAX], parent[CKPT_PATH_MAX];
    for (const char *at = path; at; at = strchr(at + 1, '/')) {
        const char *end = strchr(at + 1, '/');
        size_t n = end ? (size_t)(end - path) : strlen(path);
        memcpy(part, path, n);
        part[n] = 0;
        int r = fs->mkdir(fs->ctx, part);
        commit_parent_of(part, parent);
        if (r == -EEXIST)
            continue;
        if (r >= 0)
            r = fs->sync_dir(fs->ctx, parent);
        if (r < 0)
            return fs_fail(fs, r, "make", part, e);
    }
    return 0;
}

/* --- the steps of a commit ---------------------------------------------------------------------------------------- */

/* The root says that it is ours.  A mark that is torn is written again; one of another version is refused. */
int commit_mark(const struct commit *c, struct el_err *e)
{
    char *text;
    size_t n;
    int r = fs_read_small(c->fs, CKPT_MARK_FILE, 4096, c->mem, &text, &n);
    bool same = r >= 0 && strcmp(text, MARK) == 0, other = r >= 0 && !same && strstr(text, "\"version\"");
    el_free(c->mem, text);
    if (same)
        return 0;
    if (other)
        return el_fail(e, EL_EXIT_CONFIG, "%s: its %s is of another version of elrun", c->fs->name, CKPT_MARK_FILE);
    if (r < 0 && r != -ENOENT)
        return fs_fail(c->fs, r, "read", CKPT_MARK_FILE, e);
    return commit_replace(c->fs, CKPT_MARK_FILE, c->nonce, MARK, strlen(MARK), e);
}

/* Out of the way, for good: what is not synced could come back beside what takes its place.  Perhaps a gc has done so
 * meanwhile. */
static int move_away(const struct commit *c, const char *path, struct el_err *e)
{
    char trash[CKPT_PATH_MAX];
    if (snprintf(trash, sizeof trash, CKPT_TRASH_DIR "/%.200s.%s", path, c->nonce) >= (int)sizeof trash)
        return fs_fail(c->fs, -ENAMETOOLONG, "move away", path, e);
    int r = fs_move_into(c->fs, path, CKPT_TRASH_DIR, trash);
    if (r >= 0)
        r = c->fs->sync_dir(c->fs->ctx, "");
    return r < 0 ? fs_fail(c->fs, r, "move away", path, e) : 0;
}

/* A directory that stands where this commit must write is moved away, unless it is a checkpoint. */
static int clear_leftover(const struct commit *c, const char *stage, struct el_err *e)
{
    struct fs_stat st;
    int r = c->fs->stat(c->fs->ctx, stage, &st);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return fs_fail(c->fs, r, "look at", stage, e);
    if (c->mode == COMMIT_MARKER && check_is_valid(c->fs, c->mem, stage, c->step, NULL))
        return el_fail(e, EL_EXIT_CONFIG, "%s/%s is a valid checkpoint already", c->fs->name, stage);
    return move_away(c, stage, e);
}

int commit_open(const struct commit *c, struct el_err *e)
{
    char stage[CKPT_PATH_MAX], final[CKPT_PATH_MAX];
    assert(c->nonce && *c->nonce && c->step >= 0);
    commit_paths(c, stage, final);
    return commit_mark(c, e) || clear_leftover(c, stage, e) ? -1 : commit_join(c, e);
}

int commit_join(const struct commit *c, struct el_err *e)
{
    char stage[CKPT_PATH_MAX], final[CKPT_PATH_MAX];
    commit_paths(c, stage, final);
    return make_dirs(c->fs, stage, e);
}

int commit_write(const struct commit *c, const char *name, const void *bytes, size_t n, struct manifest_file *out,
                 struct el_err *e)
{
    char stage[CKPT_PATH_MAX], final[CKPT_PATH_MAX], path[CKPT_PATH_MAX], parent[CKPT_PATH_MAX], shown[EL_SHOW_MAX];
    const char *fault = ckpt_path_fault(name);
    commit_paths(c, stage, final);
    if (fault || strcmp(name, CKPT_MANIFEST_FILE) == 0)
        return el_fail(e, EL_EXIT_NOPERM, "\"%s\" cannot be a file of a checkpoint: %s", el_show(name, shown),
                       fault ? fault : "it is the manifest");
    if (snprintf(path, sizeof path, "%s/%s", stage, name) >= (int)sizeof path)
        return fs_fail(c->fs, -ENAMETOOLONG, "write", name, e);
    commit_parent_of(path, parent);
    size_t chunks_n = manifest_chunks(n, MANIFEST_CHUNK);
    struct content content = {bytes, n, el_alloc(c->mem, chunks_n * sizeof(uint32_t)), c};
    if (!content.chunks)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    int r = make_dirs(c->fs, parent, e) || write_durable(c->fs, path, &content, e) ? -1 : 0;
    if (!r && (r = c->fs->sync_dir(c->fs->ctx, parent)) < 0)
        fs_fail(c->fs, r, "write", parent, e);
    if (r) {
        el_free(c->mem, content.chunks);
        return -1;
    }
    uint32_t crc = 0;
    for (size_t i = 0; i < chunks_n; i++) {
        uint64_t left = n - i * MANIFEST_CHUNK;
        crc = crc32c_combine(crc, content.chunks[i], left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
    }
    *out = (struct manifest_file){.name = name,
                                  .node = "",
                                  .size = n,
                                  .crc = crc,
                                  .chunk = MANIFEST_CHUNK,
                                  .chunks = content.chunks,
                                  .chunks_n = chunks_n};
    return 0;
}

static int commit_write_manifest(const struct commit *c, struct manifest *m, const char *stage, struct el_err *e)
{
    char temp[CKPT_PATH_MAX], path[CKPT_PATH_MAX];
    struct el_buf text = EL_BUF_INIT(c->mem, MANIFEST_BYTES_MAX);
    m->step = c->step;
    m->nonce = c->nonce;
    m->layout = c->layout == CKPT_LAYOUT_MEGATRON ? "megatron" : "elrun";
    snprintf(temp, sizeof temp, "%.900s/" CKPT_MANIFEST_TEMP, stage);
    snprintf(path, sizeof path, "%.900s/" CKPT_MANIFEST_FILE, stage);
    int r = manifest_put(m, &text, e);
    const struct content content = {.bytes = text.v, .n = text.len};
    /* Where a rename is worth nothing the manifest is written in its place: half of it is no manifest. */
    if (!r)
        r = write_durable(c->fs, c->mode == COMMIT_MARKER ? path : temp, &content, e);
    int sys = 0;
    if (!r && c->mode == COMMIT_RENAME)
        sys = c->fs->rename(c->fs->ctx, temp, path, true);
    if (!r && sys >= 0)
        sys = c->fs->sync_dir(c->fs->ctx, stage);
    el_buf_free(&text);
    return r ? r : sys < 0 ? fs_fail(c->fs, sys, "write", path, e) : 0;
}

int commit_hint(const struct ckpt_fs *fs, const char *file, enum ckpt_layout layout, int64_t step, const char *nonce,
                struct el_err *e)
{
    char text[CKPT_PATH_MAX];
    if (strcmp(file, CKPT_TRACKER_FILE) == 0)
        snprintf(text, sizeof text, "%lld", (long long)step);
    else
        ckpt_step_name(layout, step, text);
    size_t n = strlen(text);
    text[n] = '\n';
    return commit_replace(fs, file, nonce, text, n + 1, e);
}

static int write_hints(const struct commit *c, struct el_err *e)
{
    int r = commit_hint(c->fs, CKPT_LATEST_FILE, c->layout, c->step, c->nonce, e);
    if (!r && c->layout == CKPT_LAYOUT_MEGATRON)
        r = commit_hint(c->fs, CKPT_TRACKER_FILE, c->layout, c->step, c->nonce, e);
    return r;
}

static bool lists_same(const struct manifest *theirs, const struct manifest *ours)
{
    bool same = theirs->files_n == ours->files_n && theirs->parts_n == ours->parts_n;
    for (size_t i = 0; same && i < ours->files_n; i++) {
        const struct manifest_file *a = &theirs->files[i], *b = &ours->files[i];
        same = strcmp(a->name, b->name) == 0 && a->size == b->size && a->crc == b->crc;
    }
    for (size_t i = 0; same && i < ours->parts_n; i++) {
        const struct manifest_part *a = &theirs->parts[i], *b = &ours->parts[i];
        same = strcmp(a->part, b->part) == 0 && strcmp(a->shard_id, b->shard_id) == 0 && a->file == b->file;
    }
    return same;
}

enum standing {
    STANDS_SAME,   /* what would be put in its place, every byte of it */
    STANDS_ELSE,   /* damaged, or of a history that was given up */
    STANDS_FOREIGN /* of another job, or of a framework that calls its directories so */
};

/* *why: what is wrong with what stands there. */
static enum standing examine(const struct commit *c, const struct manifest *m, const char *final, struct el_err *why)
{
    struct checked there;
    char shown[EL_SHOW_MAX];
    size_t bad;
    enum standing is = STANDS_ELSE;
    int r = check_open(&there, c->fs, c->mem, final, why);
    if (r) {
        is = why->status == CKPT_INCOMPLETE && c->layout == CKPT_LAYOUT_MEGATRON ? STANDS_FOREIGN : STANDS_ELSE;
    } else if (strcmp(there.m.run_id, m->run_id) != 0) {
        r = *there.m.run_id
                ? el_fail(why, EL_EXIT_CONFIG, "it is of another job, run id %s", el_show(there.m.run_id, shown))
                : el_fail(why, EL_EXIT_CONFIG, "it is of a job without --rdzv-id");
        is = STANDS_FOREIGN;
    } else if (there.m.step != c->step) {
        r = ckpt_fail(why, CKPT_DAMAGED, "its manifest is of step %lld", (long long)there.m.step);
    } else {
        r = check_sizes(c->fs, final, &there.m, why);
    }
    if (!r && c->local && manifest_lineage(&there.m) != manifest_lineage(m))
        r = ckpt_fail(why, CKPT_DAMAGED, "it was written before the job went back behind it");
    if (!r && !lists_same(&there.m, m))
        r = ckpt_fail(why, CKPT_DAMAGED, "it was written before the job went back behind it, and differs");
    for (size_t i = 0; !r && i < there.m.files_n; i++) {
        const struct manifest_file *f = &there.m.files[i];
        r = check_chunks(c->fs, final, f, 0, f->chunks_n, c->mem, &bad, c->done_bytes, why);
    }
    check_close(&there);
    return r ? is : STANDS_SAME;
}

/* Another coordinator was faster; or the job has reached this step before, and has gone back behind it since: because
 * what is there cannot be read, perhaps.  So only the same bytes, whole, may stay. */
static int commit_give_way(const struct commit *c, const struct manifest *m, const char *stage, const char *final,
                           struct commit_result *result, struct el_err *e)
{
    enum standing is = examine(c, m, final, &result->replaced);
    result->existed = is == STANDS_SAME;
    if (result->existed)
        return 0;
    if (is == STANDS_FOREIGN)
        return el_fail(e, EL_EXIT_CANTCREAT, "%s/%s is there already, and not replaced: %s", c->fs->name, final,
                       result->replaced.text);
    if (move_away(c, final, e))
        return -1;
    int r = c->fs->rename(c->fs->ctx, stage, final, false);
    return r < 0 ? fs_fail(c->fs, r, "commit", final, e) : 0;
}

int commit_publish(const struct commit *c, struct manifest *m, struct commit_result *result, struct el_err *e)
{
    char stage[CKPT_PATH_MAX], final[CKPT_PATH_MAX];
    *result = (struct commit_result){0};
    commit_paths(c, stage, final);
    /* What others say that they have written may lie elsewhere: a directory of the same name on their own disk. */
    if (check_sizes(c->fs, stage, m, e)) {
        el_prefix(e, "%s", c->fs->name);
        return -1;
    }
    if (commit_write_manifest(c, m, stage, e))
        return -1;
    int r = c->mode == COMMIT_RENAME ? c->fs->rename(c->fs->ctx, stage, final, false) : 0;
    if (r == -EEXIST || r == -ENOTEMPTY) {
        if (commit_give_way(c, m, stage, final, result, e))
            return -1;
        r = 0;
    }
    if (r >= 0)
        r = c->fs->sync_dir(c->fs->ctx, "");
    if (r < 0)
        return fs_fail(c->fs, r, "commit", final, e);
    write_hints(c, &result->latest);
    return 0;
}
