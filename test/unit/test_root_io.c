/* The same calls on a real directory: a commit with O_DIRECT and without, openat2 and its substitute, and no way out.
 * Seen to fail: without O_NOFOLLOW in the substitute, with RESOLVE_BENEATH left out, with `..` let through. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/check.h"
#include "snapshot/commit.h"
#include "ckpt/root.h"
#include "lib/tap.h"
#include "util/array.h"

static struct el_mem mem = EL_MEM_INIT(64u << 20);
static char top[] = "/tmp/elrun-root.XXXXXX";
static char path[256];

static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void test_commit(bool no_direct, int64_t step)
{
    enum { SIZE = 9 * 1024 * 1024 + 123 };
    struct root root;
    struct el_err e = {0};
    char name[CKPT_PATH_MAX];
    char *bytes = aligned_alloc(4096, (SIZE / 4096 + 1) * 4096);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 >> 7);
    ok(root_open(&root, in("a/b/root"), true, &e) == 0, e.text);
    root.no_direct = no_direct;
    struct ckpt_fs fs = root_table(&root);
    struct commit c = {&fs, &mem, CKPT_LAYOUT_ELRUN, COMMIT_RENAME, step, 1, "abc", NULL, NULL, false, false};
    struct manifest_file f[2] = {0};
    struct manifest m = {.files = f, .files_n = 2};
    struct commit_result result;
    ok(commit_open(&c, &e) == 0 && commit_write(&c, "whole", bytes, SIZE, &f[0], &e) == 0 &&
           commit_write(&c, "sub/odd", bytes + 1, SIZE - 1, &f[1], &e) == 0 && commit_publish(&c, &m, &result, &e) == 0,
       e.text);
    ckpt_step_name(CKPT_LAYOUT_ELRUN, step, name);
    ok(check_is_valid(&fs, &mem, name, step, &e), "is valid");
    size_t bad = 0;
    for (int i = 0; i < 2; i++)
        ok(check_chunks(&fs, name, &f[i], 0, f[i].chunks_n, &mem, &bad, NULL, &e) == 0, "every byte is there");
    int fd = open(in(no_direct ? "a/b/root/step-000000002/sub/odd" : "a/b/root/step-000000001/sub/odd"), O_WRONLY);
    ok(pwrite(fd, "!", 1, 5 << 20) == 1 && close(fd) == 0, "a byte is changed");
    e = (struct el_err){0};
    ok(check_chunks(&fs, name, &f[1], 0, f[1].chunks_n, &mem, &bad, NULL, &e) == -1 && bad == 1, e.text);
    ok(strstr(e.text, "sub/odd: bytes 4194304-8388608 have CRC32C") != NULL, "says where");
    el_free(&mem, f[0].chunks);
    el_free(&mem, f[1].chunks);
    root_close(&root);
    free(bytes);
}

static void test_no_way_out(bool by_parts)
{
    struct root root;
    struct fs_stat st;
    struct el_err e = {0};
    static const char *const ways[] = {"link", "link/secret", "../secret", "dir/../../secret", "up/secret"};
    root_open(&root, in("jail"), true, &e);
    root.by_parts = by_parts;
    struct ckpt_fs fs = root_table(&root);
    fs.mkdir(&root, "dir");
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int r = fs.open(&root, ways[i]);
        ok(r == -ELOOP || r == -EXDEV || r == -EINVAL || r == -ENOTDIR, ways[i]);
        r = fs.create(&root, ways[i]);
        ok(r == -ELOOP || r == -EXDEV || r == -EINVAL || r == -EEXIST || r == -ENOTDIR, "is not written, either");
    }
    ok(fs.rename(&root, "dir", "up/dir", false) < 0 && fs.mkdir(&root, "up/x") < 0 && fs.remove(&root, "up/secret") < 0,
       "names beyond a link are not changed");
    ok(fs.mkdir(&root, "up") == -ELOOP, "a link is no directory");
    ok(fs.stat(&root, "link", &st) == 0 && st.kind == FS_LINK, "a link is seen as one");
    ok(fs.open(&root, "fifo") == -ENXIO, "a FIFO is no file, and holds nobody up");
    ok(fs.open(&root, "dir") == -EISDIR, "nor is a directory");
    ok(access(in("secret"), F_OK) == 0, "what lies outside is untouched");
    root_close(&root);
}

static int count(void *arg, const char *name, enum fs_kind kind)
{
    (void)name;
    (void)kind;
    return ++*(int *)arg == 100;
}

int main(void)
{
    struct el_err e = {0};
    struct root root;
    char command[300];
    ok(mkdtemp(top) != NULL, "a place for it");
    test_commit(false, 1);
    test_commit(true, 2);
    close(open(in("secret"), O_CREAT | O_WRONLY, 0644));
    mkdir(in("jail"), 0755);
    ok(symlink("../secret", in("jail/link")) == 0 && symlink("..", in("jail/up")) == 0 &&
           mkfifo(in("jail/fifo"), 0600) == 0,
       "links");
    test_no_way_out(false);
    test_no_way_out(true);
    ok(root_open(&root, in("nowhere"), false, &e) == -1 && e.status == EL_EXIT_NOINPUT, e.text);
    ok(root_open(&root, in("secret"), false, &e) == -1, "a file is no root");
    root_open(&root, in("jail"), false, &e);
    struct ckpt_fs fs = root_table(&root);
    int n = 0;
    is_num(fs.list(fs.ctx, "", count, &n), 0, "list");
    is_num(n, 4, "every entry");
    is_num(fs.list(fs.ctx, "none", count, &n), -ENOENT, "list of nothing");
    root_close(&root);
    snprintf(command, sizeof command, "rm -rf %s", top);
    is_num(system(command), 0, "tidy");
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
