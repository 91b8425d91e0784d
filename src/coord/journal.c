#include "coord/journal.h"

#include <stdio.h>
#include <string.h>

#include "util/scan.h"
#include "util/sip.h"

/* Part of the format: guards against torn and rotten bytes, not against people. */
static const uint64_t sum_seed[2] = {0x656c72756e2d6a6f, 0x75726e616c2d3031};

#define SUM_KEY    " sum="
#define SUM_DIGITS 16u

#define RESTARTS_MOST 1000000000u /* as in msg.h */

/* In this order between run= and text=. */
#define NUMBERS(X)                                                                                                     \
    X(number)                                                                                                          \
    X(restarts) X(fruitless) X(charged) X(world_first) X(world_last) X(min) X(max)

/* --- out ---------------------------------------------------------------------------------------------------------- */

static bool journal_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-_.:/", c));
}

static void journal_put_text(struct el_buf *out, const char *key, const char *text)
{
    el_buf_puts(out, key);
    for (; *text; text++)
        if (journal_is_plain(*text))
            el_buf_put(out, text, 1);
        else
            el_buf_printf(out, "%%%02x", (unsigned char)*text);
}

int journal_encode(const struct rdzv_record *r, struct el_buf *out)
{
    size_t start = out->len;
    int was_full = out->full;
    out->full = 0;
    journal_put_text(out, "run=", r->run_id);
    el_buf_printf(out, " coord=%llx", (unsigned long long)r->coord);
#define X(name) el_buf_printf(out, " " #name "=%llu", (unsigned long long)r->name);
    NUMBERS(X)
#undef X
    el_buf_printf(out, " ended=%d status=%u", r->ended, r->status);
    journal_put_text(out, " text=", r->text);
    if (*r->aside)
        journal_put_text(out, " aside=", r->aside);
    if (!out->full)
        el_buf_printf(out, SUM_KEY "%016llx\n", (unsigned long long)el_sip(sum_seed, out->v + start, out->len - start));
    if (!out->full) {
        out->full = was_full;
        return 0;
    }
    out->len = start;
    return -1;
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

static bool journal_take_key(const char **at, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(*at, key, n) != 0)
        return false;
    *at += n;
    return true;
}

static int journal_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

static bool journal_take_text(const char **at, const char *key, char *to, size_t room)
{
    size_t n = 0;
    if (!journal_take_key(at, key))
        return false;
    for (; **at && **at != ' '; n++) {
        char c = **at;
        int high = c == '%' ? journal_digit((*at)[1]) : 0, low = c == '%' && high >= 0 ? journal_digit((*at)[2]) : 0;
        bool zero = c == '%' && !high && !low;
        if (n + 1 >= room || high < 0 || low < 0 || zero || (c != '%' && !journal_is_plain(c)))
            return false;
        if (c == '%')
            c = (char)(high << 4 | low);
        to[n] = c;
        *at += **at == '%' ? 3 : 1;
    }
    to[n] = 0;
    return true;
}

static bool journal_take_number(const char **at, const char *key, uint64_t *to)
{
    return journal_take_key(at, key) && scan_u64(at, to);
}

/* The sum is no secret: whoever may write the file may write any number. */
static bool is_sane(const struct rdzv_record *r)
{
    return r->number <= MSG_ROUND_MAX - RDZV_JUMP_MAX && r->charged <= r->number && r->restarts <= RESTARTS_MOST &&
           r->fruitless <= RESTARTS_MOST && r->world_first <= MSG_WORLD_MAX && r->world_last <= MSG_WORLD_MAX &&
           (!r->max || r->min <= r->max) && r->min <= MSG_NODES_MAX && r->max <= MSG_NODES_MAX;
}

/* The line ends where its sum begins, with a 0. */
static bool journal_take_record(const char *at, struct rdzv_record *r)
{
    uint64_t ended = 0, status = 0;
    bool ok = journal_take_text(&at, "run=", r->run_id, sizeof r->run_id) && journal_take_key(&at, " coord=") &&
              scan_hex(&at, &r->coord);
#define X(name) ok = ok && journal_take_number(&at, " " #name "=", &r->name);
    NUMBERS(X)
#undef X
    ok = ok && journal_take_number(&at, " ended=", &ended) && journal_take_number(&at, " status=", &status) &&
         journal_take_text(&at, " text=", r->text, sizeof r->text) &&
         (!*at || journal_take_text(&at, " aside=", r->aside, sizeof r->aside));
    r->ended = ended == 1;
    r->status = (unsigned)status;
    return ok && !*at && ended <= 1 && status <= 255 && is_sane(r);
}

bool journal_decode(const char *line, size_t n, struct rdzv_record *out)
{
    const size_t tail = strlen(SUM_KEY) + SUM_DIGITS;
    char text[JOURNAL_LINE_MAX], sum[sizeof SUM_KEY + SUM_DIGITS];
    *out = (struct rdzv_record){0};
    if (n < tail || n >= sizeof text || memchr(line, 0, n))
        return false;
    memcpy(text, line, n);
    text[n] = 0;
    snprintf(sum, sizeof sum, SUM_KEY "%016llx", (unsigned long long)el_sip(sum_seed, text, n - tail));
    if (strcmp(text + n - tail, sum) != 0)
        return false;
    text[n - tail] = 0;
    return journal_take_record(text, out);
}

int journal_read(const char *bytes, size_t n, journal_fn *fn, void *ctx, size_t *good, struct el_err *e)
{
    size_t at = 0, line = 1, bad = 0;
    *good = 0;
    while (at < n) {
        const char *stop = memchr(bytes + at, '\n', n - at);
        struct rdzv_record r;
        if (!stop)
            break;
        size_t length = (size_t)(stop - (bytes + at));
        bool whole = journal_decode(bytes + at, length, &r);
        at += length + 1;
        if (whole && bad)
            return el_fail(e, EL_EXIT_CONFIG, "line %zu is damaged, and whole ones follow", bad);
        if (whole) {
            fn(ctx, &r);
            *good = at;
        } else if (!bad) {
            bad = line;
        }
        line++;
    }
    return 0;
}

/* --- the newest of each job --------------------------------------------------------------------------------------- */

static void set_remove(struct journal_set *s, size_t i)
{
    s->ended -= s->v[i].ended;
    s->n--;
    memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof *s->v);
}

static size_t set_find(const struct journal_set *s, const char *run_id)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->v[i].run_id, run_id) != 0)
        i++;
    return i;
}

bool journal_set_take(struct journal_set *s, const char *run_id, struct rdzv_record *out)
{
    size_t i = set_find(s, run_id);
    if (i == s->n)
        return false;
    *out = s->v[i];
    set_remove(s, i);
    return true;
}

int journal_set_put(struct journal_set *s, const struct rdzv_record *r)
{
    if (!s->v && !(s->v = el_alloc(s->mem, (JOURNAL_JOBS_MAX + 1) * sizeof *s->v)))
        return -1;
    size_t i = set_find(s, r->run_id);
    if (i < s->n)
        set_remove(s, i);
    s->v[s->n++] = *r;
    s->ended += r->ended;
    if (s->n <= JOURNAL_JOBS_MAX && s->ended <= JOURNAL_ENDED_MAX)
        return 0;
    i = 0;
    while (s->ended && !s->v[i].ended)
        i++;
    set_remove(s, i);
    return 0;
}

void journal_set_free(struct journal_set *s)
{
    el_free(s->mem, s->v);
    *s = (struct journal_set){.mem = s->mem};
}
