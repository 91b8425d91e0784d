#include "sys/cgroup.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

/* One line of mountinfo: "31 23 0:28 ROOT POINT options [tags] - TYPE source SUPER". */
struct mount_line {
    char root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX];
    const char *type, *super;
    size_t type_len, super_len;
};

static const char *field_end(const char *p)
{
    while (*p && *p != ' ' && *p != '\n')
        p++;
    return p;
}

static bool octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Copies one field, "\040" and the like undone; false if it does not fit. */
static bool unescape(const char *p, char *to, size_t room)
{
    size_t n = 0;
    for (const char *end = field_end(p); p < end;) {
        if (n + 1 >= room)
            return false;
        if (p[0] == '\\' && octal(p[1]) && octal(p[2]) && octal(p[3])) {
            to[n++] = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 4;
        } else {
            to[n++] = *p++;
        }
    }
    to[n] = 0;
    return true;
}

static const char *next_field(const char *p)
{
    p = field_end(p);
    scan_blanks(&p);
    return p;
}

static bool mount_parse(const char *line, struct mount_line *m)
{
    const char *p = next_field(next_field(next_field(line)));
    if (!unescape(p, m->root, sizeof m->root) || m->root[0] != '/')
        return false;
    p = next_field(p);
    if (!unescape(p, m->point, sizeof m->point) || m->point[0] != '/')
        return false;
    for (p = next_field(p); *p && *p != '\n'; p = next_field(p)) {
        if (p[0] != '-' || (p[1] != ' ' && p[1] != '\n'))
            continue;
        m->type = next_field(p);
        m->type_len = (size_t)(field_end(m->type) - m->type);
        m->super = next_field(next_field(m->type));
        m->super_len = (size_t)(field_end(m->super) - m->super);
        return true;
    }
    return false;
}

static bool cgroup_is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(s, word, n);
}

/* Whether word is one of the words of a comma list. */
static bool in_list(const char *s, size_t n, const char *word)
{
    for (const char *end = s + n; s < end;) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        size_t len = (size_t)((comma ? comma : end) - s);
        if (cgroup_is_word(s, len, word))
            return true;
        s += len + 1;
    }
    return false;
}

/* Our path in the hierarchy with that controller (NULL: version 2), from lines "4:cpu,memory:/path". */
static const char *own_path(const char *text, const char *controller, char *to, size_t room)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *at = line;
        uint64_t id;
        if (!scan_u64(&at, &id) || *at++ != ':')
            continue;
        const char *end = at;
        while (*end && *end != ':' && *end != '\n')
            end++;
        if (*end != ':' || end[1] != '/')
            continue;
        size_t n = (size_t)(end - at);
        if (controller ? in_list(at, n, controller) : id == 0 && n == 0)
            return scan_line(end + 1, to, room) ? to : NULL;
    }
    return NULL;
}

/* Where path, a folder of the whole hierarchy, is seen below a mount of its subtree root. */
static int cgroup_join(const struct mount_line *m, const char *path, char *to, size_t room)
{
    size_t root = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
    if (strncmp(path, m->root, root) != 0 || (path[root] != '/' && path[root] != 0))
        return -1;
    const char *rest = path + root;
    int n = snprintf(to, room, "%s%s", strcmp(m->point, "/") == 0 ? "" : m->point, strcmp(rest, "/") == 0 ? "" : rest);
    return n > 0 && (size_t)n < room ? 0 : -1;
}

/* own: our path in the hierarchy; NULL: the mount itself is looked for. */
static int cgroup_find(const char *mountinfo, const char *own, const char *controller, char *path, size_t room)
{
    assert(room);
    struct mount_line m;
    for (const char *line = mountinfo; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (!mount_parse(line, &m))
            continue;
        bool same = controller
                        ? cgroup_is_word(m.type, m.type_len, "cgroup") && in_list(m.super, m.super_len, controller)
                        : cgroup_is_word(m.type, m.type_len, "cgroup2");
        if (same && cgroup_join(&m, own ? own : m.root, path, room) == 0)
            return 0;
    }
    path[0] = 0;
    return -1;
}

static int find_own(const char *mountinfo, const char *self_cgroup, const char *controller, char *path, size_t room)
{
    char own[CGROUP_PATH_MAX];
    if (own_path(self_cgroup, controller, own, sizeof own) && strncmp(own, "/..", 3) != 0)
        return cgroup_find(mountinfo, own, controller, path, room);
    path[0] = 0;
    return -1;
}

int cgroup_own(const char *mountinfo, const char *self_cgroup, char *path, size_t room_bytes)
{
    return find_own(mountinfo, self_cgroup, NULL, path, room_bytes);
}

int cgroup_own_v1(const char *mountinfo, const char *self_cgroup, const char *controller, char *path, size_t room_bytes)
{
    return find_own(mountinfo, self_cgroup, controller, path, room_bytes);
}

int cgroup_mount(const char *mountinfo, const char *controller, char *path, size_t room_bytes)
{
    return cgroup_find(mountinfo, NULL, controller, path, room_bytes);
}
