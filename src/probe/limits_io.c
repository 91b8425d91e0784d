#include <errno.h>

#include "probe/limits.h"
#include "util/file.h"
#include "util/parse.h"

int limits_read(struct check_conf *c, const char *path, struct el_err *e)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    char shown[EL_PATH_MAX];
    char *room = el_buf_reserve(&text, LIMITS_FILE_MAX + 2);
    ssize_t n = room ? file_read(path, room, LIMITS_FILE_MAX + 2) : -1;
    int bad = 0;
    el_show_path(path, shown, sizeof shown);
    if (n < 0)
        bad = el_fail_sys(e, EL_EXIT_NOINPUT, room ? errno : ENOMEM, "limits: cannot read %s", shown);
    else if ((bad = limits_parse(c, room, (size_t)n, e)))
        el_prefix(e, "%s", shown);
    el_buf_free(&text);
    return bad ? -1 : 0;
}
