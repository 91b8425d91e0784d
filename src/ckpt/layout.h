/* Names below the root of checkpoints, and which names may stand there at all. */
#ifndef CKPT_LAYOUT_H
#define CKPT_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKPT_MARK_FILE     "ELRUN_CKPT"
#define CKPT_LATEST_FILE   "latest"
#define CKPT_TRACKER_FILE  "latest_checkpointed_iteration.txt"
#define CKPT_STAGE_DIR     ".stage"
#define CKPT_TRASH_DIR     ".trash"
#define CKPT_ASIDE_DIR     ".aside" /* "<name>.<nonce>", of a history that was given up */
#define CKPT_PIN_DIR       ".pin"   /* a file with the name of what is pinned */
#define CKPT_LEASE_DIR     ".lease" /* "<name>.<who>", touched by a reader while it reads */
#define CKPT_MANIFEST_FILE "MANIFEST.json"
#define CKPT_HUB_SNAPSHOTS "snapshots" /* a cache of the Hugging Face hub: revisions, of links into … */
#define CKPT_HUB_BLOBS     "blobs"     /* … this, where the files are */
#define CKPT_MANIFEST_TEMP "MANIFEST.tmp"

#define CKPT_PATH_MAX  1024 /* bytes of a path below the root, with its 0 */
#define CKPT_DEPTH_MAX 32   /* directories, one in the other, below that of a step */
#define CKPT_STEP_MAX  999999999999999
#define CKPT_NONCE_MAX 32

/* What a worker calls the layout of its parts if each of them is alike on all ranks: it goes with any other one, which
 * tells the number of ranks. */
#define CKPT_LAYOUT_ALL "all"

enum ckpt_layout { CKPT_LAYOUT_ELRUN, CKPT_LAYOUT_MEGATRON };

/* "step-000001200", or "iter_0001200" as Megatron looks for it. */
void ckpt_step_name(enum ckpt_layout layout, int64_t step, char out[CKPT_PATH_MAX]);

/* The step of such a name; false: another name. */
bool ckpt_step_of(const char *name, enum ckpt_layout *layout, int64_t *step);

/* The number at the end of "checkpoint-500", "global_step500", "epoch_3": -1 if there is none, or it has more than 15
 * digits. */
int64_t ckpt_number_of(const char *name);

/* Where a commit is prepared: ".stage/step-000001200.r7.<nonce>", for Megatron "iter_0001200_tmp". */
void ckpt_stage_name(enum ckpt_layout layout, int64_t step, uint64_t round, const char *nonce, char out[CKPT_PATH_MAX]);

/* Where a relative link leads: its own path below a root, with its last name replaced by the target and "." and ".."
 * taken out.  false: it is absolute, leads out of the root, or is too long. */
bool ckpt_link_path(const char *path, const char *target, char out[CKPT_PATH_MAX]);

/* Of a path in a cache of the Hugging Face hub, "…/snapshots/<revision>…": how many bytes stand in front of
 * "snapshots/"; SIZE_MAX: it has no such part. */
size_t ckpt_hub_of(const char *path);

/* Whether a name may be used below a directory: relative, of real components (no "", "." or ".."), UTF-8 without
 * control characters, short and flat enough.  Else NULL is not returned, but what is wrong. */
const char *ckpt_path_fault(const char *path);

#endif
