#include "agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/control_socket.h"

#define SOCKETS "/proc/net/unix"

/* ".../elrun-XXXXXX/control": the run folders of agents with snapshots. */
static bool is_agents(const char *path)
{
    const char *name = strrchr(path, '/');
    if (!name || strcmp(name + 1, CONTROL_SOCKET_NAME) != 0 || name - path < 14 || strlen(path) >= 108)
        return false;
    return strncmp(name - 13, "/elrun-", 7) == 0;
}

/* "0000…: 00000002 00000000 00010000 0001 01 12345 /path": the flags say that it listens. */
static void agents_take_line(struct agents *a, char *line)
{
    unsigned long flags;
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%*[^ ] %*x %*x %lx %*x %*x %*u %n", &flags, &at) < 1 || !at || !(flags & 0x10000))
        return;
    if (is_agents(line + at) && a->n < AGENTS_MAX)
        snprintf(a->path[a->n++], sizeof a->path[0], "%s", line + at);
}

int agents_find(struct agents *a, struct el_err *e)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(SOCKETS, "re");
    if (!f)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, SOCKETS);
    while (getline(&line, &room, f) > 0)
        agents_take_line(a, line);
    free(line);
    fclose(f);
    return 0;
}

struct control_client *agents_ask(const char *path, bool save, el_usec limit, struct el_err *e)
{
    struct msg m = {.type = MSG_CKPT_QUERY, .u.ckpt_query = {.save = save}};
    struct control_client *c = control_client_open_agent(path, limit, e);
    if (c && control_client_send(c, &m, e) == 0)
        return c;
    control_client_free(c);
    return NULL;
}

bool agents_is_trouble(const struct el_err *e)
{
    return e->status != EL_EXIT_NOPERM && e->sys != ECONNREFUSED && e->sys != ENOENT;
}

void agents_each(el_usec limit, void (*see)(void *ctx, const struct msg_ckpt_node *n), void *ctx)
{
    struct el_err e = {0};
    struct agents *a = calloc(1, sizeof *a);
    bool bad = !a || agents_find(a, &e);
    for (unsigned i = 0; !bad && i < a->n; i++) {
        struct msg m;
        struct control_client *c = agents_ask(a->path[i], false, limit, &e);
        if (c && control_client_receive(c, &m, &e) == 0) {
            if (m.type == MSG_CKPT_NODE)
                see(ctx, &m.u.ckpt_node);
            msg_release(&m);
        }
        control_client_free(c);
    }
    free(a);
}
