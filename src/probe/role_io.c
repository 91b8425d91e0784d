#include "probe/role.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util/array.h"

static const struct {
    const char *word;
    int (*run)(const struct probe_wire *order);
} roles[] = {
#define X(NAME, word, function) [ROLE_##NAME] = {word, function},
    ROLE_LIST(X)
#undef X
};

const char *role_word(enum role role)
{
    return roles[role].word;
}

/* The one line of standard input. */
static int read_order(struct probe_wire *order, struct el_err *e)
{
    static char line[WIRE_LINE_MAX];
    size_t len = 0;
    for (ssize_t n; len < sizeof line && !memchr(line, '\n', len); len += (size_t)n)
        if ((n = read(STDIN_FILENO, line + len, sizeof line - len)) <= 0)
            break;
    return wire_decode(line, len, order, e);
}

int role_run(char *const *argv)
{
    struct probe_wire order;
    struct el_err e = {0};
    size_t i = 0;
    while (i < COUNT_OF(roles) && (!argv[0] || strcmp(argv[0], roles[i].word) != 0))
        i++;
    if (i == COUNT_OF(roles))
        return -1;
    prctl(PR_SET_NAME, roles[i].word); /* after execveat() of a descriptor it is that descriptor's number */
    if (fcntl(WIRE_FD, F_GETFD) < 0)
        el_fail(&e, EL_EXIT_USAGE, "this is a part of `elrun probe`, which starts it itself");
    else if (read_order(&order, &e) == 0)
        return roles[i].run(&order);
    fprintf(stderr, "%s: %s\n", roles[i].word, e.text);
    return e.status;
}

void role_tell(const struct probe_wire *w)
{
    struct el_buf line = EL_BUF_INIT(NULL, WIRE_LINE_MAX);
    if (wire_encode(w, &line) < 0)
        _exit(EL_EXIT_SOFTWARE);
    for (size_t at = 0; at < line.len;) {
        ssize_t n = write(WIRE_FD, line.v + at, line.len - at);
        if (n < 0 && errno != EINTR)
            _exit(EL_EXIT_OSERR);
        at += n > 0 ? (size_t)n : 0;
    }
    el_buf_free(&line);
}

void role_tell_error(const char *stage, const char *class, int code, const char *fmt, ...)
{
    struct probe_wire w;
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wire_init(&w, WIRE_ERR);
    w.u.err.stage = stage;
    w.u.err.code = code;
    w.u.err.class = class;
    w.u.err.text = text;
    role_tell(&w);
}
