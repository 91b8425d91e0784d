/* What a pickle says, as a tree.  Nothing is imported and nothing is called: a global is a name, a call is a node with
 * the name and the arguments.  Protocols 2 to 5, the operations that torch writes; every length is checked. */
#ifndef CKPT_PICKLE_READ_H
#define CKPT_PICKLE_READ_H
#include <stdbool.h>

#include "ckpt/ckpt.h"
#include "util/mem.h"

#define PICKLE_DEPTH_MAX 256        /* how deep a reader of the tree must go: a tree may contain itself */
#define PICKLE_TEXT_MAX  (16 << 20) /* bytes of one string */
#define PICKLE_MEMO_MAX  1000000u
#define PICKLE_NODES_MAX 20000000u
#define PICKLE_ITEMS_MAX (2 * PICKLE_NODES_MAX) /* in all containers: a few bytes can put one value into many */
#define PICKLE_NAME_MAX  4096                   /* bytes of a module's name, and of a global's */

/* One large dict is searched so often and no more: a few bytes can ask it for each of a million names. */
#define PICKLE_SEARCHES_MAX 64
#define PICKLE_SMALL_DICT   64 /* values of a dict that may be searched at will */

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_BYTES, /* also an integer of more than 64 bits */
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT, /* items: key, value, key, value … */
    PICKLE_SET,
    PICKLE_GLOBAL,     /* text: "module name" */
    PICKLE_CALL,       /* fn applied to args; items as of a dict or list that was filled afterwards */
    PICKLE_PERSISTENT, /* args: the id */
};

struct pickle_node {
    enum pickle_kind kind;
    bool pairs;       /* of a CALL: its items are key and value */
    const char *text; /* TEXT and BYTES: in the input, not ended by 0; GLOBAL: ended by 0 */
    size_t text_n;
    int64_t number; /* INT, BOOL */
    double real;
    struct pickle_node **items;
    size_t items_n, items_room;
    unsigned searches; /* pickle_get() */
    struct pickle_node *fn, *args,
        *state; /* state: what BUILD gave it; fn of a GLOBAL: the one before it in the input */
};

struct pickle {
    struct el_mem *mem;
    struct pickle_block *blocks;
    size_t room; /* bytes left in the first block */
    size_t nodes, items;
    struct pickle_node *root;
    struct pickle_node *globals;     /* the last one in the input */
    size_t used;                     /* bytes of the input up to its end */
    bool cut;                        /* it failed because the input has no more bytes */
    struct pickle_node **persistent; /* all that are in it */
    size_t persistent_n, persistent_room;
};

/* Reads one pickle at the beginning of n bytes, which must live as long as the tree.  -1: CKPT_DAMAGED,
 * CKPT_UNSUPPORTED (an operation that is none of ours; with its place), EL_EXIT_OSERR.  pickle_free() also then. */
int pickle_read(struct pickle *p, struct el_mem *mem, const char *bytes, size_t n, struct el_err *e);
void pickle_free(struct pickle *p);

/* --- looking at a tree; all take NULL for a node and give NULL or a default back --- */

bool pickle_is_text(const struct pickle_node *x, const char *text);
bool pickle_is_global(const struct pickle_node *x, const char *name);
/* The value of a key: of a dict, of a filled call, of the state of an object.  NULL also for a dict that was searched
 * too often. */
struct pickle_node *pickle_get(const struct pickle_node *x, const char *key);
/* Item i of a tuple, list or set. */
struct pickle_node *pickle_item(const struct pickle_node *x, size_t i);
/* The sizes of a tuple, list or torch.Size of whole numbers from 0 up: how many, or -1; at most `most`. */
int pickle_sizes(const struct pickle_node *x, uint64_t *to, int most);

#endif
