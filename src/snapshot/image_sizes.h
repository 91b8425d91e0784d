/* How many bytes each part of a snapshot has, as workers and agents tell each other: one entry for each declared part,
 * in order, one space between two,
 *
 *     "4096/8192 0/17 0/0"          bytes of the header / bytes of the image, header and all
 *
 * An image of tensors is a safetensors file: its header has 8 bytes at least (its length is in them).  A file has no
 * header.  0/0: nothing.  In a slot each image begins at a multiple of IMAGE_SIZES_PAGE behind the one before, so the
 * sizes alone say where it lies.  Pure. */
#ifndef SNAPSHOT_IMAGE_SIZES_H
#define SNAPSHOT_IMAGE_SIZES_H
#include <stddef.h>
#include <stdint.h>

#define IMAGE_SIZES_PAGE      4096u
#define IMAGE_SIZES_ENTRY_MAX 30u /* characters of one entry and the space behind it */

/* Reads exactly so many entries, written as image_sizes_put() writes them.  NULL, or what is wrong. */
const char *image_sizes_get(const char *text, unsigned parts, uint64_t *header_bytes, uint64_t *bytes);

/* Writes them to a buffer of parts * IMAGE_SIZES_ENTRY_MAX + 1 bytes; returns the length. */
size_t image_sizes_put(const uint64_t *header_bytes, const uint64_t *bytes, unsigned parts, char *to);

/* Bytes up to the end of the last image, whole pages.  And where one begins: image_sizes_bytes() of those before it. */
uint64_t image_sizes_bytes(const uint64_t *bytes, unsigned parts);

#endif
