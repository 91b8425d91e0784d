#include "sys/corefile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void corefile_put(char *to, size_t size, const char *from)
{
    size_t n = strlen(to), more = strlen(from);
    if (n + more < size)
        memcpy(to + n, from, more + 1);
}

static void put_char(char *to, size_t size, char c)
{
    corefile_put(to, size, (const char[]){c, 0});
}

static void put_number(char *to, size_t size, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    corefile_put(to, size, text);
}

/* Bytes up to the first of these, or to the end. */
static size_t corefile_until(const char *s, const char *stop)
{
    size_t n = 0;
    while (s[n] && !strchr(stop, s[n]))
        n++;
    return n;
}

static const char any[] = {COREFILE_ANY, 0};

/* One % and the letter behind it.  What comes from outside loses its slashes, as in the kernel. */
static void expand(char *to, size_t size, char letter, const struct corefile_facts *f, bool *names_pid)
{
    switch (letter) {
    case '%': corefile_put(to, size, "%"); break;
    case 'p':
        put_number(to, size, f->pid);
        *names_pid = true;
        break;
    case 'P':
        *names_pid |= f->pid_global;
        if (f->pid_global)
            put_number(to, size, f->pid);
        else
            corefile_put(to, size, any);
        break;
    case 's': put_number(to, size, f->signal); break;
    case 'h':
        for (const char *s = f->host; *s; s++)
            put_char(to, size, *s == '/' ? '!' : *s);
        break;
    case 'i': /* thread, */
    case 'I':
    case 'u': /* user, group, */
    case 'g':
    case 'd': /* dump mode, time, name, path of the program, limit, processor */
    case 't':
    case 'e':
    case 'f':
    case 'E':
    case 'c':
    case 'C': corefile_put(to, size, any); break;
    default: break; /* the kernel drops what it does not know */
    }
}

/* The program's name without its folder and its arguments. */
static void corefile_find_helper(struct corefile *c, const char *pattern)
{
    size_t n = corefile_until(pattern, " \t\n");
    const char *name = pattern;
    for (size_t i = 0; i < n; i++)
        if (pattern[i] == '/')
            name = pattern + i + 1;
    n -= (size_t)(name - pattern);
    if (n >= sizeof c->helper)
        n = sizeof c->helper - 1;
    memcpy(c->helper, name, n);
    c->helper[n] = 0;
}

static void find_folder(struct corefile *c, char *path, const char *cwd)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (slash)
        *slash = 0;
    bool absolute = path[0] == '/' || path == slash;
    int n = !slash          ? snprintf(c->folder, sizeof c->folder, "%s", cwd)
            : path == slash ? snprintf(c->folder, sizeof c->folder, "/")
            : absolute      ? snprintf(c->folder, sizeof c->folder, "%s", path)
                            : snprintf(c->folder, sizeof c->folder, "%s/%s", cwd, path);
    if (n < 0 || (size_t)n >= sizeof c->folder || strchr(c->folder, COREFILE_ANY))
        c->folder[0] = 0;
    corefile_put(c->name, sizeof c->name, name);
}

void corefile_plan(struct corefile *c, const char *pattern, const struct corefile_facts *f)
{
    char path[sizeof c->name] = "";
    *c = (struct corefile){.kind = COREFILE_FILE};
    if (*pattern == '|' || *pattern == '@') {
        c->kind = *pattern == '|' ? COREFILE_PIPE : COREFILE_SOCKET;
        if (c->kind == COREFILE_PIPE)
            corefile_find_helper(c, pattern + 1);
        else {
            const char *address = pattern + (pattern[1] == '@' ? 2 : 1);
            snprintf(c->helper, sizeof c->helper, "%.*s", (int)corefile_until(address, "\n"), address);
        }
        return;
    }
    for (const char *s = pattern; *s && *s != '\n'; s++) {
        if (*s != '%')
            put_char(path, sizeof path, *s);
        else if (s[1] && s[1] != '\n')
            expand(path, sizeof path, *++s, f, &c->names_pid);
    }
    if (!c->names_pid && f->uses_pid) {
        corefile_put(path, sizeof path, ".");
        put_number(path, sizeof path, f->pid);
        c->names_pid = true;
    }
    find_folder(c, path, f->cwd);
    if (!c->name[0])
        c->kind = COREFILE_UNKNOWN;
}

bool corefile_match(const char *plan, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*plan == COREFILE_ANY) {
            star = ++plan;
            from = name;
        } else if (*plan == *name) {
            plan++;
            name++;
        } else if (star) {
            plan = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*plan == COREFILE_ANY)
        plan++;
    return *plan == 0;
}
