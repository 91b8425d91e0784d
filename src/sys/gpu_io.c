#include "sys/gpu.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"
#include "util/scan.h"

static bool node_exists(const char *root, int minor)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/dev/nvidia%d", root, minor);
    return access(path, F_OK) == 0;
}

static void from_driver(struct gpu_list *all, const char *root)
{
    char path[4096], text[4096];
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (file_readf(text, sizeof text, path, "/%s/information", d->d_name) > 0)
            gpu_add(all, d->d_name, text); /* "." and a device too many are refused there */
    if (dir)
        closedir(dir);
}

/* A container shows the driver's entries of all devices but has the nodes of its own only.  No node at all means that
 * nobody has made them yet, which the driver's library does at its first use. */
static void drop_hidden(struct gpu_list *all, const char *root)
{
    unsigned kept = 0, nodes = 0;
    for (unsigned i = 0; i < all->n; i++)
        nodes += node_exists(root, all->v[i].minor);
    for (unsigned i = 0; nodes && i < all->n; i++)
        if (node_exists(root, all->v[i].minor))
            all->v[kept++] = all->v[i];
    if (nodes)
        all->n = kept;
}

/* Sandboxes pass the nodes without the driver's folder: nvidia0, nvidia1, … (not nvidiactl, nvidia-uvm). */
static void from_nodes(struct gpu_list *all, const char *root)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/dev", root);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir)) && all->n < GPU_MAX;) {
        const char *at = d->d_name + strlen("nvidia");
        int minor;
        if (strncmp(d->d_name, "nvidia", strlen("nvidia")) == 0 && scan_int(&at, &minor) && !*at && minor >= 0)
            all->v[all->n++] = (struct gpu){.minor = minor};
    }
    if (dir)
        closedir(dir);
}

void gpu_read(struct gpu_list *all, const char *root)
{
    memset(all, 0, sizeof *all);
    from_driver(all, root);
    drop_hidden(all, root);
    if (!all->n)
        from_nodes(all, root);
    gpu_sort(all);
}
