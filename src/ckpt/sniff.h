/* What a file is by its first bytes, whatever it is called: a checkpoint, or what often stands in the place of one. */
#ifndef CKPT_SNIFF_H
#define CKPT_SNIFF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

#define SNIFF_BYTES 1024 /* of the beginning are enough */

enum sniff_kind {
    SNIFF_OTHER,
    SNIFF_EMPTY,
    SNIFF_ZEROS, /* as far as was looked */
    SNIFF_SAFETENSORS,
    SNIFF_ZIP,
    SNIFF_OLD,      /* torch.save before 1.6, or without its zip format */
    SNIFF_PICKLE,   /* another pickle of protocol 2 to 5 */
    SNIFF_NPY,      /* one array of numpy */
    SNIFF_PACKED,   /* compressed, or a tar archive: `what` says how */
    SNIFF_POINTER,  /* of Git LFS and its like: the file itself is elsewhere */
    SNIFF_DOCUMENT, /* a web page or XML, what a server answers instead of a file */
    SNIFF_TEXT,     /* other text */
};

struct sniff {
    enum sniff_kind kind;
    bool torch;       /* ZIP: of torch.save, which puts its pickle first */
    bool xml;         /* DOCUMENT: which programs write, too */
    const char *what; /* POINTER, PACKED, DOCUMENT: in words */
    const char *cure; /* POINTER: the command that fetches the file */
    uint64_t bytes;   /* POINTER: those of the file itself; 0: it does not say */
    char begin[41];   /* TEXT, DOCUMENT: as it begins */
};

/* head: the first n bytes, SNIFF_BYTES or the whole file. */
void sniff(struct sniff *s, const char *head, size_t n);

/* In *e, CKPT_DAMAGED: that it stands in the place of a file.  Only for EMPTY, ZEROS, POINTER, DOCUMENT and TEXT. */
void sniff_fail(const struct sniff *s, struct el_err *e);

/* Whether zeros are at least the first half of that: no file of a known format begins so. */
bool sniff_zeros_in_front(const char *head, size_t n);

/* What writers leave between two items of a file, or behind the last: less than a page of zeros, as one does that
 * begins each item at a round place; or an archive, which is another item.  n: the bytes that are there, at most
 * SNIFF_PAGE. */
#define SNIFF_PAGE 4096u
bool sniff_padding(const char *p, size_t n);

#endif
