/* The interpreter, the script and programs on PATH: what host.h says about them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/env.h"
#include "sys/host.h"
#include "util/array.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/scan.h"

/* As exec would judge it: 0, or -1 and errno. */
static int executable(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
        return -1;
    }
    return access(path, X_OK);
}

/* dir (n bytes; none: the current folder) + "/" + name, checked. */
static int executable_in(const char *dir, size_t n, const char *name, char *found)
{
    int len = snprintf(found, HOST_PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? dir : ".", name);
    if (n < HOST_PATH_MAX && len > 0 && len < HOST_PATH_MAX)
        return executable(found);
    errno = ENAMETOOLONG;
    return -1;
}

int host_program_find(const char *name, char *const *env, char *found)
{
    const char *path = env_get(env, "PATH");
    int why = ENOENT;
    found[0] = 0;
    if (strchr(name, '/')) {
        if (snprintf(found, HOST_PATH_MAX, "%s", name) < HOST_PATH_MAX)
            return executable(found);
        errno = ENAMETOOLONG;
        return -1;
    }
    for (const char *dir = path ? path : "/bin:/usr/bin"; dir && *name;
         dir = strchr(dir, ':'), dir = dir ? dir + 1 : 0) {
        if (executable_in(dir, strcspn(dir, ":"), name, found) == 0)
            return 0;
        if (errno == EACCES)
            why = EACCES;
    }
    found[0] = 0;
    errno = why;
    return -1;
}

int host_python_find(struct host_python *py, char *const *env, struct el_err *e)
{
    const char *exec = env_get(env, "PYTHON_EXEC"), *venv = env_get(env, "VIRTUAL_ENV");
    char tried[EL_PATH_MAX + 64] = "", shown[EL_PATH_MAX];
    memset(py, 0, sizeof *py);
    py->why = "PYTHON_EXEC";
    if (exec && *exec) {
        if (host_program_find(exec, env, py->path) == 0)
            return 0;
        return el_fail_sys(e, EL_EXIT_NOINPUT, errno, "cannot run the interpreter PYTHON_EXEC=%s",
                           el_show_path(exec, shown, sizeof shown));
    }
    py->why = "VIRTUAL_ENV";
    if (venv && *venv) {
        if (executable_in(venv, strlen(venv), "bin/python", py->path) == 0)
            return 0;
        snprintf(tried, sizeof tried, "%s/bin/python (VIRTUAL_ENV), ", el_show_path(venv, shown, sizeof shown));
    }
    py->why = "PATH";
    if (host_program_find("python3", env, py->path) == 0 || host_program_find("python", env, py->path) == 0)
        return 0;
    py->path[0] = 0;
    return el_fail(e, EL_EXIT_NOINPUT,
                   "found no Python: tried %spython3 and python on PATH; set PYTHON_EXEC to the "
                   "interpreter, or say --no-python",
                   tried);
}

/* --- what is around the interpreter ---------------------------------------------------------------------------- */

/* "key = value" or "key: type = value" in a text of lines; quotes are taken off. */
static bool assigned(const char *text, const char *key, char *to, size_t room)
{
    const char *at = scan_field(text, key);
    at = at ? strchr(at, '=') : NULL;
    if (!at)
        return false;
    at++;
    scan_blanks(&at);
    bool fits = scan_line(at, to, room);
    size_t n = strlen(to);
    if (n >= 2 && (to[0] == '\'' || to[0] == '"') && to[n - 1] == to[0]) {
        memmove(to, to + 1, n - 2);
        to[n - 2] = 0;
    }
    return fits && *to;
}

/* torch says its version in torch/version.py, whoever installed it. */
static bool torch_in(struct host_python *py, const char *site)
{
    char text[4096], cuda[64];
    if (!*site || file_readf(text, sizeof text, site, "/torch/version.py") <= 0)
        return false;
    if (!assigned(text, "__version__", py->torch, sizeof py->torch)) {
        py->torch[0] = 0;
        return false;
    }
    snprintf(py->site, sizeof py->site, "%s", site);
    py->torch_cuda = assigned(text, "cuda", cuda, sizeof cuda) && strcmp(cuda, "None") != 0;
    return true;
}

/* The folders of packages below a prefix, for this minor version; Debian has its own names. */
static bool torch_below(struct host_python *py, const char *prefix, const char *minor)
{
    static const char *const shapes[] = {"lib/python%s/site-packages", "lib64/python%s/site-packages",
                                         "lib/python%s/dist-packages", "local/lib/python%s/dist-packages"};
    char site[HOST_PATH_MAX + 64], debian[HOST_PATH_MAX + 64];
    for (unsigned i = 0; i < COUNT_OF(shapes); i++) {
        int n = snprintf(site, sizeof site, "%s/", prefix);
        const char *hole = strstr(shapes[i], "%s");
        snprintf(site + n, sizeof site - (size_t)n, "%.*s%s%s", (int)(hole - shapes[i]), shapes[i], minor, hole + 2);
        if (torch_in(py, site))
            return true;
    }
    snprintf(debian, sizeof debian, "%s/lib/python3/dist-packages", prefix);
    return torch_in(py, debian);
}

static bool torch_on_pythonpath(struct host_python *py, char *const *env)
{
    const char *path = env_get(env, "PYTHONPATH");
    char site[HOST_PATH_MAX];
    for (const char *p = path; p; p = strchr(p, ':'), p = p ? p + 1 : NULL) {
        size_t n = strcspn(p, ":");
        if (n && n < sizeof site) {
            memcpy(site, p, n);
            site[n] = 0;
            if (torch_in(py, site))
                return true;
        }
    }
    return false;
}

/* Cuts the last component; false if nothing is left. */
static bool python_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    *slash = 0;
    return true;
}

/* "3.11" of a version "3.11.7" or of a program "python3.11". */
static void minor_of(const char *s, char *minor, size_t room)
{
    const char *at = s + strcspn(s, "0123456789"), *end;
    uint64_t major, n;
    minor[0] = 0;
    end = at;
    if (scan_u64(&end, &major) && *end++ == '.' && scan_u64(&end, &n) && (size_t)(end - at) < room) {
        memcpy(minor, at, (size_t)(end - at));
        minor[end - at] = 0;
    }
}

void host_python_look(struct host_python *py, char *const *env)
{
    char prefix[HOST_PATH_MAX], real[HOST_PATH_MAX], text[4096], minor[16] = "", home[HOST_PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s", py->path);
    bool has_prefix = python_parent(prefix) && python_parent(prefix);
    if (!realpath(py->path, real))
        return;
    py->shim = file_read(real, text, 3) == 2 && strcmp(text, "#!") == 0;
    if (py->shim)
        return;
    minor_of(strrchr(real, '/'), minor, sizeof minor);
    snprintf(py->version, sizeof py->version, "%s", minor);
    bool venv = has_prefix && file_readf(text, sizeof text, prefix, "/pyvenv.cfg") > 0, base = !venv;
    if (venv) {
        /* venv writes "version", virtualenv and uv write "version_info". */
        char word[64];
        if (assigned(text, "version ", word, sizeof word) || assigned(text, "version_info", word, sizeof word))
            snprintf(py->version, sizeof py->version, "%.31s", word);
        minor_of(py->version, minor, sizeof minor);
        base = assigned(text, "include-system-site-packages", word, sizeof word) && strcmp(word, "true") == 0;
    }
    if (torch_on_pythonpath(py, env) || !*minor || (venv && torch_below(py, prefix, minor)) || !base)
        return;
    const char *user = env_get(env, "HOME");
    if (user && snprintf(home, sizeof home, "%s/.local", user) < (int)sizeof home && torch_below(py, home, minor))
        return;
    if (python_parent(real) && python_parent(real))
        torch_below(py, real, minor);
}
