#include "libs.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "say.h"
#include "watch.h"

#define NCCL_NAME "libnccl.so.2"

/* The loader's own path of it, which a bare name does not tell. */
static void real_path(struct lib *l, const char *asked, const char *symbol)
{
    Dl_info info;
    void *at = dlsym(l->handle, symbol);
    text_put(l->path, sizeof l->path, "%s", at && dladdr(at, &info) && info.dli_fname ? info.dli_fname : asked);
}

static const char *loader_words(void)
{
    const char *words = dlerror();
    return words ? words : "the loader does not say why";
}

/* What a person can do about the loader's words. */
static enum fault libs_judge(const char *words, const char **advice)
{
    if (strstr(words, "wrong ELF class") || strstr(words, "ELF header") || strstr(words, "file too short") ||
        strstr(words, "cannot dynamically load")) {
        *advice = "the file is no library for this processor: install the one for it";
        return FAULT_CONFIG;
    }
    if (strstr(words, "GLIBC_") || strstr(words, "GLIBCXX_") || strstr(words, "undefined symbol")) {
        *advice = "the library needs a newer C or C++ library than this host has";
        return FAULT_MISMATCH;
    }
    *advice = "install it, or name it with --nccl-lib or --cuda-lib";
    return FAULT_MISSING;
}

/* Of a library for another processor the loader says only that it finds no file. */
static bool foreign_processor(const char *path)
{
    unsigned char own[EI_NIDENT + 4], its[EI_NIDENT + 4]; /* up to and with e_machine */
    int mine = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = open(path, O_RDONLY | O_CLOEXEC);
    bool foreign = read(mine, own, sizeof own) == (ssize_t)sizeof own &&
                   read(fd, its, sizeof its) == (ssize_t)sizeof its && memcmp(its, ELFMAG, SELFMAG) == 0 &&
                   (its[EI_CLASS] != own[EI_CLASS] || memcmp(own + EI_NIDENT + 2, its + EI_NIDENT + 2, 2) != 0);
    close(mine);
    close(fd);
    return foreign;
}

/* A file that is there and cannot be loaded is the answer: the job would get it too. */
static bool try_open(const char *path, const char *symbol, struct lib *out)
{
    if (strchr(path, '/') && access(path, F_OK) < 0)
        return false;
    out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!out->handle && strchr(path, '/')) {
        const char *words = loader_words(), *advice;
        if (foreign_processor(path))
            words = "wrong ELF class or processor";
        enum fault f = libs_judge(words, &advice);
        fault_die_plain(watch_stage(), f, advice, "cannot load %s: %s", path, words);
    }
    if (!out->handle)
        return false;
    real_path(out, path, symbol);
    if (!dlsym(out->handle, symbol))
        fault_die_plain(watch_stage(), FAULT_CONFIG, "name the right file",
                        "%s has no function %s: not the library that it should be", out->path, symbol);
    return true;
}

static void open_option(const char *option, const char *symbol, struct lib *out)
{
    if (try_open(option, symbol, out))
        return;
    if (strchr(option, '/'))
        fault_die_plain(watch_stage(), FAULT_MISSING, "correct the path, or leave the option out", "no file %s",
                        option);
    fault_die_plain(watch_stage(), FAULT_MISSING, "correct the name, or leave the option out", "cannot load %s: %s",
                    option, loader_words());
}

/* Where the job's NCCL lies without the loader's help. */
static bool find_nccl(const char *purelib, char *path, size_t room)
{
    static const char *const folder[] = {"nvidia/nccl/lib", "torch/lib"};
    for (size_t i = 0; purelib && i < sizeof folder / sizeof folder[0]; i++) {
        text_put(path, room, "%s/%s/%s", purelib, folder[i], NCCL_NAME);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

bool lib_try_nccl(const char *option, const char *purelib, struct lib *out)
{
    char path[512];
    const char *name = option ? option : find_nccl(purelib, path, sizeof path) ? path : NCCL_NAME;
    out->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (out->handle)
        real_path(out, name, "ncclGetVersion");
    return out->handle != NULL;
}

void lib_open_nccl(const char *option, const char *purelib, struct lib *out)
{
    static const char symbol[] = "ncclGetVersion";
    char path[512];
    if (option) {
        open_option(option, symbol, out);
        return;
    }
    if (find_nccl(purelib, path, sizeof path) && try_open(path, symbol, out))
        return;
    if (try_open(NCCL_NAME, symbol, out))
        return;
    const char *words = loader_words(), *advice;
    enum fault f = libs_judge(words, &advice);
    fault_die_plain(watch_stage(), f, advice, "no NCCL%s%s: %s", purelib ? ", neither beside " : "",
                    purelib ? purelib : "", words);
}

static bool try_cudart(const char *folder, int major, struct lib *out)
{
    char path[512];
    text_put(path, sizeof path, "%s%slibcudart.so.%d", folder ? folder : "", folder ? "/" : "", major);
    return try_open(path, "cudaSetDevice", out);
}

void lib_open_cudart(const char *option, const char *purelib, int major, struct lib *out)
{
    if (option) {
        open_option(option, "cudaSetDevice", out);
        return;
    }
    const int newest = 13, oldest = 11;
    char beside[2][512];
    text_put(beside[0], sizeof beside[0], "%s/nvidia/cuda_runtime/lib", purelib ? purelib : "");
    text_put(beside[1], sizeof beside[1], "%s/nvidia/cu13/lib", purelib ? purelib : "");
    const char *const folder[] = {beside[0], beside[1], NULL, "/usr/local/cuda/lib64"};
    /* First everywhere the major number that NCCL wants, then any. */
    for (int pass = major ? 0 : 1; pass < 2; pass++)
        for (size_t i = purelib ? 0 : 2; i < sizeof folder / sizeof folder[0]; i++)
            for (int m = pass ? newest : major; m >= (pass ? oldest : major); m--)
                if (try_cudart(folder[i], m, out))
                    return;
    fault_die_plain(
        watch_stage(), FAULT_MISSING,
        "install the CUDA runtime (pip install nvidia-cuda-runtime), or name it with --cuda-lib",
        "no CUDA runtime: neither libcudart.so.13, .12 nor .11%s%s, in the loader's path or in /usr/local/cuda/lib64",
        purelib ? " beside " : "", purelib ? purelib : "");
}

void lib_open_nvml(const char *option, struct lib *out, char *why, size_t room)
{
    const char *name = option ? option : "libnvidia-ml.so.1";
    out->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (out->handle)
        real_path(out, name, "nvmlInit_v2");
    else
        text_put(why, room, "%s", loader_words());
}

void *lib_symbol(const struct lib *l, const char *name)
{
    return dlsym(l->handle, name);
}

/* --- for which CUDA a library was built --- */

static bool libs_read_at(int fd, void *out, size_t n, uint64_t at)
{
    return pread(fd, out, n, (off_t)at) == (ssize_t)n;
}

static int find_major(int fd, uint64_t at, uint64_t size)
{
    static const char mark[] = "+cuda";
    enum { PIECE = 1 << 16, OVERLAP = 16 };
    static char piece[PIECE + 1];
    for (uint64_t end = at + size; at < end; at += PIECE - OVERLAP) {
        size_t want = end - at < PIECE ? (size_t)(end - at) : PIECE;
        ssize_t n = pread(fd, piece, want, (off_t)at);
        if (n <= 0)
            return 0;
        piece[n] = 0;
        for (const char *p = memmem(piece, (size_t)n, mark, sizeof mark - 1); p;
             p = memmem(p + 1, (size_t)(piece + n - p - 1), mark, sizeof mark - 1)) {
            int major = 0;
            for (const char *d = p + sizeof mark - 1; *d >= '0' && *d <= '9' && major < 100; d++)
                major = major * 10 + (*d - '0');
            if (major >= 11 && major < 100)
                return major;
        }
    }
    return 0;
}

/* Only the section of constants: the file has 200 MB and more of device code. */
int lib_cuda_major(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), major = 0;
    Elf64_Ehdr head;
    Elf64_Shdr names, s;
    if (fd < 0)
        return 0;
    bool fine = libs_read_at(fd, &head, sizeof head, 0) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_shentsize == sizeof s &&
                libs_read_at(fd, &names, sizeof names, head.e_shoff + (uint64_t)head.e_shstrndx * sizeof s);
    for (unsigned i = 0; fine && !major && i < head.e_shnum; i++) {
        char name[8] = "";
        if (libs_read_at(fd, &s, sizeof s, head.e_shoff + (uint64_t)i * sizeof s) &&
            libs_read_at(fd, name, sizeof name, names.sh_offset + s.sh_name) &&
            memcmp(name, ".rodata", sizeof name) == 0)
            major = find_major(fd, s.sh_offset, s.sh_size);
    }
    close(fd);
    return major;
}
