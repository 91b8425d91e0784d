/* The files that say which step is the latest: `latest`, and Megatron's tracker. */
#ifndef CKPT_HINT_H
#define CKPT_HINT_H
#include "ckpt/fs.h"
#include "ckpt/layout.h"

/* What one says, without the end of its line; "": it is not there, or says nothing. */
void hint_read(const struct ckpt_fs *fs, const char *file, char text[CKPT_PATH_MAX]);

/* It names a step, by its directory's name or by its number, that is not there; *layout: of which layout.  Other words
 * are a framework's, and mean something else. */
bool hint_dangles(const struct ckpt_fs *fs, const char *file, enum ckpt_layout *layout);

#endif
