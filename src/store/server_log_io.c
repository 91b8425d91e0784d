/* What a store says: who came and went, who waits for what, who has not come. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/server_private.h"
#include "store/waiters.h"

#define BRAKE_TIME EL_SEC(1)
enum { LOG_LINES = 8 /* of a level in that time */ };

static void say_dropped(struct store_server *s, enum el_level level)
{
    struct brake *b = &s->brakes[level];
    if (b->dropped)
        el_log(level, "%s: %u more lines like these were left out", s->name, b->dropped);
    *b = (struct brake){.second = loop_now(s->loop)};
}

el_usec server_dropped_at(const struct store_server *s)
{
    el_usec at = EL_NEVER;
    for (size_t i = 0; i < sizeof s->brakes / sizeof s->brakes[0]; i++)
        if (s->brakes[i].dropped && s->brakes[i].second + BRAKE_TIME < at)
            at = s->brakes[i].second + BRAKE_TIME;
    return at;
}

void server_say_dropped(struct store_server *s)
{
    el_usec now = loop_now(s->loop);
    for (size_t i = 0; i < sizeof s->brakes / sizeof s->brakes[0]; i++)
        if (s->brakes[i].dropped && now - s->brakes[i].second >= BRAKE_TIME)
            say_dropped(s, (enum el_level)i);
}

void server_say(struct store_server *s, enum el_level level, const char *fmt, ...)
{
    struct brake *b = &s->brakes[level];
    if (level > el_log_level())
        return;
    if (loop_now(s->loop) - b->second >= BRAKE_TIME)
        say_dropped(s, level);
    if (b->lines >= LOG_LINES) {
        if (!b->dropped++)
            server_set_timer(s);
        return;
    }
    b->lines++;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    el_log(level, "%s: %s", s->name, text);
}

/* Waits for keys are told whole: they are few by their own limit. */
static void say_lines(struct store_server *s, const struct el_buf *lines)
{
    for (const char *at = lines->v, *end = at + lines->len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        int n = (int)((stop ? stop : end) - at);
        el_log(EL_WARN, "%s: %.*s", s->name, n, at);
        at += n + 1;
    }
}

void server_say_closed(struct client *c, enum el_level level, const char *why)
{
    char address[EL_ADDR_TEXT_MAX];
    server_say(c->server, level, "%s: closed: %s", el_addr_text(&c->session.peer, address), why);
}

static void name_worker(const struct store_server *s, struct session *w)
{
    for (unsigned r = 0; r < s->workers_n; r++)
        if (s->worker_pid[r] == w->pid)
            w->rank = (int32_t)r;
}

/* Which of the expected ranks have a connection.  NULL: not known (a client without a rank may be any of them). */
static bool *ranks_come(struct store_server *s)
{
    unsigned size = s->conf.world_size;
    bool *come = size ? el_alloc(NULL, size * sizeof *come) : NULL, nameless = false, all_known = true;
    for (unsigned r = 0; r < s->workers_n; r++)
        all_known &= s->worker_pid[r] != 0;
    for (struct client *c = s->clients; c && come; c = c->next) {
        struct session *w = &c->session;
        bool local = listen_is_local(c->conn.fd, &w->peer);
        if (w->pid && s->workers_n && local)
            name_worker(s, w);
        nameless |= session_greeted(w) && w->rank < 0 && !(local && w->pid && all_known);
        if (w->rank >= 0 && (unsigned)w->rank < size)
            come[w->rank] = true;
    }
    return nameless ? (el_free(NULL, come), NULL) : come;
}

void server_report(struct store_server *s)
{
    el_usec now = loop_now(s->loop), after = s->conf.wait_report;
    bool *come = ranks_come(s);
    struct waiters_world world = {s->conf.world_size, come};
    struct el_buf lines = EL_BUF_INIT(NULL, 64 << 10);
    el_usec next = waiters_report(s->kv, &world, now, after, &lines);
    say_lines(s, &lines);
    /* Whoever begins to wait now is due in `after`. */
    s->report_at = next == EL_NEVER || next < now + after ? next : now + after;
    el_buf_free(&lines);
    el_free(NULL, come);
}

void store_server_world(struct store_server *s, unsigned size)
{
    el_free(NULL, s->worker_pid);
    s->worker_pid = size ? el_alloc(NULL, size * sizeof *s->worker_pid) : NULL;
    s->conf.world_size = s->workers_n = s->worker_pid ? size : 0;
}

void store_server_worker(struct store_server *s, uint32_t pid, unsigned rank)
{
    if (rank < s->workers_n)
        s->worker_pid[rank] = pid;
}

void store_server_missing(struct store_server *s, struct el_buf *out)
{
    bool *come = ranks_come(s);
    struct waiters_world world = {s->conf.world_size, come};
    if (s->kv)
        waiters_list(s->kv, &world, loop_clock(), out);
    el_free(NULL, come);
}
