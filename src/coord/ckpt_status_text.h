/* How the snapshots of a node stand, for a person: CKPT_NODE and CKPT_WORKER rows in, text out.  Pure. */
#ifndef COORD_CKPT_STATUS_TEXT_H
#define COORD_CKPT_STATUS_TEXT_H
#include <stdbool.h>

#include "control/msg.h"
#include "util/buf.h"

/* A node: its newest step in memory and on disk. */
void ckpt_status_text_newest(const struct msg_ckpt_node *n, bool colour, struct el_buf *out);
/* The same with all there is to say of it, and the titles of what follows; then its workers. */
void ckpt_status_text_node(const struct msg_ckpt_node *n, bool colour, struct el_buf *out);
void ckpt_status_text_worker(const struct msg_ckpt_worker *w, bool colour, struct el_buf *out);

/* "writing step 3: 12 MiB of 4.1 GiB (0 %)", or what else a save waits for. */
void ckpt_status_text_progress(const struct msg_ckpt_node *n, char *to, size_t room);

#endif
