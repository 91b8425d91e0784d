/* A folder with all that is in it. */
#ifndef UTIL_TREE_H
#define UTIL_TREE_H

#define TREE_DEPTH_MAX 6u

/* Removes it, links as links, nothing of another file system, and nothing that lies deeper than TREE_DEPTH_MAX.
 * Async-signal-safe.  0, or -1 and errno: it, or something in it, is still there. */
int tree_remove(const char *path);

#endif
