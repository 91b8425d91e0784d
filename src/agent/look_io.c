#include "agent/look.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output/console.h"
#include "util/env.h"
#include "util/array.h"
#include "util/opt.h"

static bool look_speaks_utf8(char *const *env)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *v = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !(v && *v); i++)
        v = env_get(env, names[i]);
    return v && (strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8") || strstr(v, "utf-8"));
}

struct report_look look_of(char *const *env, int fd)
{
    struct winsize size;
    bool wants = console_wants_colour(env_get(env, "NO_COLOR"), env_get(env, "TERM"));
    return (struct report_look){.colour = isatty(fd) && wants,
                                .utf8 = look_speaks_utf8(env),
                                .columns = ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0};
}
