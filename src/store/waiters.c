#include "store/waiters.h"

#include <assert.h>
#include <string.h>

#include "store/session.h"

enum { KEY_SHOWN_MAX = 96, RANGES_MAX = 16 };

/* Keys are bytes: what is no printable ASCII is shown as \xNN, what is long is cut in the middle, where it matters
 * least: the ends carry the prefix and the rank. */
static void waiters_put_key(struct el_buf *out, struct kv_bytes key)
{
    el_buf_puts(out, "\"");
    for (size_t i = 0; i < key.n; i++) {
        if (key.n > KEY_SHOWN_MAX && i == KEY_SHOWN_MAX / 2) {
            el_buf_puts(out, "...");
            i = key.n - KEY_SHOWN_MAX / 2;
        }
        unsigned char c = (unsigned char)key.v[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            el_buf_printf(out, "\\x%02x", c);
        else
            el_buf_put(out, &c, 1);
    }
    el_buf_puts(out, "\"");
}

static void put_waiter(struct el_buf *out, const struct session *s)
{
    char address[EL_ADDR_TEXT_MAX];
    el_addr_text(&s->peer, address);
    if (s->rank >= 0)
        el_buf_printf(out, "rank %d (%s)", s->rank, address);
    else if (s->pid)
        el_buf_printf(out, "pid %u (%s)", s->pid, address);
    else
        el_buf_puts(out, address);
}

static void put_waiters(struct el_buf *out, const struct kv_awaited *a)
{
    unsigned named = 0;
    for (const struct kv_link *l = a->first; l && named < WAITERS_NAMED_MAX; l = l->next, named++) {
        el_buf_puts(out, named ? ", " : ": ");
        put_waiter(out, session_of(l->wait));
    }
    if (a->waiters > named)
        el_buf_printf(out, " and %zu more", a->waiters - named);
}

static unsigned count_absent(const struct waiters_world *world)
{
    unsigned absent = 0;
    for (unsigned r = 0; r < world->size; r++)
        absent += !world->come[r];
    return absent;
}

/* "rank 3", "ranks 1, 4-7". */
static void put_ranks(struct el_buf *out, const struct waiters_world *world, unsigned absent)
{
    unsigned ranges = 0;
    el_buf_puts(out, absent == 1 ? "rank" : "ranks");
    for (unsigned r = 0; r < world->size; r++) {
        if (world->come[r])
            continue;
        unsigned last = r;
        while (last + 1 < world->size && !world->come[last + 1])
            last++;
        if (++ranges > RANGES_MAX) {
            el_buf_puts(out, ", ...");
            return;
        }
        el_buf_printf(out, last == r ? "%s %u" : "%s %u-%u", ranges > 1 ? "," : "", r, last);
        r = last;
    }
}

/* Which ranks have not come, if that can be known at all: nobody's rank known means nothing. */
static void put_absent(struct el_buf *out, const struct kv_awaited *a, const struct waiters_world *world)
{
    int32_t owner = session_rank_of_key(a->key);
    unsigned absent = world->come && world->size ? count_absent(world) : 0;
    if (absent && absent < world->size) {
        el_buf_printf(out, "; of %u ranks, ", world->size);
        put_ranks(out, world, absent);
        el_buf_puts(out, absent == 1 ? " has not come" : " have not come");
    } else if (owner >= 0) {
        el_buf_printf(out, "; rank %d has not set it", owner);
    }
}

static void waiters_put_line(struct el_buf *out, struct kv_awaited *a, const struct waiters_world *world, el_usec now)
{
    el_usec since = a->first->wait->since;
    size_t n = a->waiters;
    waiters_put_key(out, a->key);
    el_buf_printf(out, " is waited for by %zu client%s for %llu s", n, n == 1 ? "" : "s",
                  (unsigned long long)((now - since) / EL_SEC(1)));
    put_waiters(out, a);
    put_absent(out, a, world);
    el_buf_puts(out, "\n");
}

static void waiters_put_rest(struct el_buf *out, size_t rest)
{
    if (rest)
        el_buf_printf(out, "%zu more key%s waited for\n", rest, rest == 1 ? " is" : "s are");
}

el_usec waiters_report(struct kv *kv, const struct waiters_world *world, el_usec now, el_usec after, struct el_buf *out)
{
    assert(after > 0);
    el_usec next = EL_NEVER;
    size_t lines = 0;
    for (struct kv_entry *e = kv_awaited_first(kv); e; e = kv_awaited_next(e)) {
        struct kv_awaited a = kv_awaited_look(e);
        el_usec since = a.first->wait->since;
        /* The oldest waiter may have gone since the last look: a younger one is due later. */
        el_usec due = *a.report_at > since + after ? *a.report_at : since + after;
        if (due <= now) {
            if (lines++ < WAITERS_LINES_MAX)
                waiters_put_line(out, &a, world, now);
            el_usec again = now - since < WAITERS_AGAIN_MAX ? now - since : WAITERS_AGAIN_MAX;
            *a.report_at = due = now + (again > after ? again : after);
        }
        if (due < next)
            next = due;
    }
    waiters_put_rest(out, lines > WAITERS_LINES_MAX ? lines - WAITERS_LINES_MAX : 0);
    return next;
}

void waiters_list(const struct kv *kv, const struct waiters_world *world, el_usec now, struct el_buf *out)
{
    size_t lines = 0;
    for (struct kv_entry *e = kv_awaited_first(kv); e; e = kv_awaited_next(e)) {
        struct kv_awaited a = kv_awaited_look(e);
        if (lines++ < WAITERS_LINES_MAX)
            waiters_put_line(out, &a, world, now);
    }
    waiters_put_rest(out, lines > WAITERS_LINES_MAX ? lines - WAITERS_LINES_MAX : 0);
}
