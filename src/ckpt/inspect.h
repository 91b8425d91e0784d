/* What a directory holds: its files, its format, its manifest if it has one. */
#ifndef CKPT_INSPECT_H
#define CKPT_INSPECT_H
#include "ckpt/check.h"
#include "ckpt/fmt.h"
#include "ckpt/layout.h"

#define INSPECT_FILES_MAX 1000000u
#define INSPECT_LINKS_MAX 20u

struct inspect {
    const struct ckpt_fs *fs;
    struct el_mem *mem;
    char dir[CKPT_PATH_MAX]; /* "": the root itself */
    char **names;            /* of files, below dir, sorted; without the manifest */
    uint64_t *sizes;
    char **reals; /* below the root: where a link of a hub's cache leads to; NULL: it is no link */
    size_t n, room;
    uint64_t bytes;                  /* of all */
    int64_t changed_sec;             /* the newest of all */
    bool deeper;                     /* there are directories below CKPT_DEPTH_MAX: they were not looked into */
    size_t others;                   /* links, FIFOs, devices: neither followed nor opened */
    char *links[INSPECT_LINKS_MAX];  /* the first of these that are links, by name */
    bool dangles[INSPECT_LINKS_MAX]; /* there is nothing where it leads */
    unsigned links_n;
    bool hub;                  /* it is of a hub's cache: links into its blobs are followed */
    bool unfetched;            /* hub: nothing of a known format, and there is a blob that was not fetched to its end */
    char blobs[CKPT_PATH_MAX]; /* hub: where these are, below the root, with a slash */
    bool one;                  /* one file was named, not a directory */
    enum ckpt_format format;
    struct checked manifest;
    struct el_err why; /* status 0: the manifest is read; CKPT_INCOMPLETE: there is none; else what is wrong with it */
    int64_t step;      /* of the manifest, else of the name; -1 */
};

/* file: only this one below dir, which is then looked at as a directory with nothing else; NULL: all.  -1: the
 * directory cannot be read.  inspect_close() also after an error. */
int inspect_open(struct inspect *l, const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, const char *file,
                 struct el_err *e);
void inspect_close(struct inspect *l);

/* One node's part of a checkpoint: the rest of its tensors is on the disks of other nodes (--ckpt-store=local). */
bool inspect_is_part(const struct inspect *l);

/* The one file is called so where somebody has made a link to it: the name says what is in it.  `real` is the name that
 * inspect_open() was given.  -1: no memory. */
int inspect_call(struct inspect *l, const char *called, const char *real, struct el_err *e);

/* Of one of its names, where the file is, below the root: -ENAMETOOLONG, or 0. */
int inspect_path(const struct inspect *l, const char *name, char path[CKPT_PATH_MAX]);

/* What a file is by its first bytes.  -1: it cannot be read. */
struct sniff;
int inspect_sniff(const struct ckpt_fs *fs, const char *path, struct sniff *to);

/* Its place among names, or SIZE_MAX. */
size_t inspect_find(const struct inspect *l, const char *name);

/* A file below the directory, as bytes: 0, or -1 and *e.  done (may be NULL) counts what is read. */
struct inspect_file {
    const struct ckpt_fs *fs;
    int file;
    uint64_t base;
    _Atomic uint64_t *done;
    struct ckpt_bytes bytes;
};
int inspect_file_open(struct inspect_file *f, const struct inspect *l, const char *name, _Atomic uint64_t *done,
                      struct el_err *e);
/* Only n bytes from `at` on. */
void inspect_file_slice(struct inspect_file *f, uint64_t at, uint64_t n);
void inspect_file_close(struct inspect_file *f);

#endif
