#include "output/steps.h"

#include <assert.h>
#include <string.h>

enum { SUB = 16, DIGITS_MAX = 18 };

/* --- the pattern --- */

static int steps_add(char *to, size_t *n, char c, struct el_err *e)
{
    if (c == ' ' && *n && to[*n - 1] == ' ')
        return 0;
    if (*n == STEPS_TEXT_MAX)
        return el_fail(e, EL_EXIT_USAGE, "want at most %d bytes before the number and behind it", STEPS_TEXT_MAX);
    to[(*n)++] = c;
    return 0;
}

int steps_pattern_parse(struct steps_pattern *p, const char *text, struct el_err *e)
{
    static const char want[] = "want text of a line with one %d where the number stands, as in \"step %d\" or "
                               "\"iteration %d/\"";
    struct steps_pattern made = {.before_len = 0};
    bool number = false, glued = false;
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        bool percent = c == '%' && at[1] == '%', place = c == '%' && at[1] == 'd';
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return el_fail(e, EL_EXIT_USAGE, "want a piece of one line, without control characters");
        if ((c == '%' && !percent && !place) || (place && number))
            return el_fail(e, EL_EXIT_USAGE, "%s; %%%% is a percent sign", want);
        glued |= place && at > text && at[-1] >= '0' && at[-1] <= '9';
        number |= place;
        at += percent || place;
        if (!place && steps_add(number ? made.after : made.before, number ? &made.after_len : &made.before_len,
                                (char)(c == '\t' ? ' ' : c), e))
            return -1;
    }
    /* A blank in front would only have to be there: nothing is lost without it, and the search begins at a letter. */
    size_t lead = made.before_len && made.before[0] == ' ';
    memmove(made.before, made.before + lead, made.before_len -= lead);
    while (made.before_len && made.before[made.before_len - 1] == ' ')
        made.before_len--; /* blanks before the number are free */
    if (!number)
        return el_fail(e, EL_EXIT_USAGE, "%s", want);
    if (!made.before_len)
        return el_fail(e, EL_EXIT_USAGE, "want text in front of %%d: a number alone may be anything");
    if (made.after_len && made.after[0] >= '0' && made.after[0] <= '9')
        return el_fail(e, EL_EXIT_USAGE, "want no digit right behind %%d: it would belong to the number");
    if (glued)
        return el_fail(e, EL_EXIT_USAGE, "want no digit right in front of %%d: it would belong to the number");
    *p = made;
    return 0;
}

/* --- the search --- */

enum { MATCH_NO = -1, MATCH_MORE = 0 };

static bool steps_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Moves *at over text; false and *more set: the bytes ended within it. */
static bool literal(const char *text, size_t len, const char *bytes, size_t n, size_t *at, bool *more)
{
    for (size_t i = 0; i < len; i++) {
        if (*at == n) {
            *more = true;
            return false;
        }
        if (text[i] != (steps_is_blank(bytes[*at]) ? ' ' : bytes[*at]))
            return false;
        (*at)++;
        while (text[i] == ' ' && *at < n && steps_is_blank(bytes[*at]))
            (*at)++;
    }
    return true;
}

/* Does a match begin at bytes[0]?  Its length and *number, MATCH_NO, or MATCH_MORE: that depends on what follows. */
static long steps_match(const struct steps_pattern *p, const char *bytes, size_t n, uint64_t *number)
{
    size_t at = 0, digits = 0;
    bool more = false;
    uint64_t v = 0;
    if (!literal(p->before, p->before_len, bytes, n, &at, &more))
        return more ? MATCH_MORE : MATCH_NO;
    while (at < n && steps_is_blank(bytes[at]))
        at++;
    for (; at < n && bytes[at] >= '0' && bytes[at] <= '9'; at++, digits++)
        if (digits < DIGITS_MAX)
            v = 10 * v + (uint64_t)(bytes[at] - '0');
    if (at == n)
        return digits > DIGITS_MAX ? MATCH_NO : MATCH_MORE;
    if (!digits || digits > DIGITS_MAX)
        return MATCH_NO;
    if (!literal(p->after, p->after_len, bytes, n, &at, &more))
        return more ? MATCH_MORE : MATCH_NO;
    *number = v;
    return (long)at;
}

static void saw_first(struct steps *s, uint64_t number)
{
    struct steps_sum *sum = &s->sum;
    if (s->before && !sum->wraps && number > s->known)
        sum->made += number - s->known; /* it goes on where the last attempt ended */
    else if (s->before && !sum->wraps)
        sum->again++;
    else
        sum->made++;
    s->seen = true;
    s->last_at = 0;
}

static void steps_saw(struct steps *s, uint64_t number)
{
    struct steps_sum *sum = &s->sum;
    uint64_t forward = number - s->last, old = 0;
    if (!s->seen) {
        saw_first(s, number);
    } else if (number > s->last) {
        if (s->before && !sum->wraps && s->last < s->known)
            old = (number < s->known ? number : s->known) - s->last;
        sum->again += old;
        sum->made += forward - old;
        s->advanced += forward;
    } else if (number < s->last) {
        sum->wraps = true;
        sum->made++;
        s->advanced++;
    }
    if (!sum->any || number > sum->highest)
        sum->highest = number;
    sum->any = true;
    s->last = number;
}

/* Finds what begins in bytes[0 … starts).  Returns where the search goes on: >= starts, or the beginning of a match
 * that the bytes do not decide. */
static size_t search(struct steps *s, const char *bytes, size_t n, size_t starts, bool *open)
{
    size_t at = 0;
    *open = false;
    while (at < starts) {
        const char *hit = memchr(bytes + at, s->pattern.before[0], starts - at);
        uint64_t number;
        if (!hit)
            return starts;
        at = (size_t)(hit - bytes);
        long len = steps_match(&s->pattern, hit, n - at, &number);
        if (len == MATCH_MORE) {
            *open = true;
            return at;
        }
        if (len > 0)
            steps_saw(s, number);
        at += len > 0 ? (size_t)len : 1;
    }
    return at;
}

static void steps_keep(struct steps_carry *c, const char *bytes, size_t n)
{
    c->n = n <= STEPS_CARRY_MAX ? n : 0;
    memmove(c->v, bytes, c->n);
}

/* What the last piece left, with the beginning of this one.  Returns how many bytes of this one are done with. */
static size_t search_carry(struct steps *s, struct steps_carry *c, const char *bytes, size_t n)
{
    size_t old = c->n, take = n < STEPS_CARRY_MAX ? n : STEPS_CARRY_MAX;
    bool open;
    memcpy(c->v + old, bytes, take);
    size_t at = search(s, c->v, old + take, old, &open);
    if (open && take == n) {
        steps_keep(c, c->v + at, old + take - at);
        return n;
    }
    c->n = 0; /* undecided though so much follows: no line of a step */
    return at > old ? at - old : 0;
}

/* --- the times --- */

static unsigned steps_bucket_of(el_usec d)
{
    unsigned power = 4;
    if (d < SUB)
        return (unsigned)d;
    while (power < 63 && d >> (power + 1))
        power++;
    unsigned i = (power - 3) * SUB + (unsigned)((d >> (power - 4)) & (SUB - 1));
    return i < STEPS_BUCKETS ? i : STEPS_BUCKETS - 1;
}

/* The middle of what falls into it. */
static el_usec bucket_value(unsigned i)
{
    if (i < SUB)
        return i;
    unsigned shift = i / SUB - 1;
    return ((el_usec)(SUB + i % SUB) << shift) + ((el_usec)1 << shift) / 2;
}

static el_usec median(const struct steps *s)
{
    uint64_t all = 0, below = 0;
    for (unsigned i = 0; i < STEPS_BUCKETS; i++)
        all += s->count[i];
    for (unsigned i = 0; all && i < STEPS_BUCKETS; i++) {
        below += s->count[i];
        if (below >= all - all / 2)
            return bucket_value(i);
    }
    return 0;
}

void steps_init(struct steps *s, const struct steps_pattern *p)
{
    assert(p->before_len > 0);
    memset(s, 0, sizeof *s);
    s->pattern = *p;
}

void steps_attempt(struct steps *s, uint64_t highest)
{
    if (highest > s->sum.highest || (highest && !s->sum.any))
        s->sum.highest = highest;
    s->before = s->sum.any || highest;
    s->known = s->sum.highest;
    s->seen = false;
    s->last_at = 0;
    s->carry[0].n = s->carry[1].n = 0;
}

void steps_feed(struct steps *s, int which, const char *bytes, size_t n, el_usec now)
{
    assert(which == 1 || which == 2);
    struct steps_carry *c = &s->carry[which - 1];
    bool open, began = !s->seen;
    size_t from = c->n ? search_carry(s, c, bytes, n) : 0;
    if (from < n) {
        size_t at = from + search(s, bytes + from, n - from, n - from, &open);
        if (open)
            steps_keep(c, bytes + at, n - at);
    }
    if (!s->seen || (!s->advanced && !began))
        return;
    /* Lines that came together share their time: a pipe is read when there is time, not line by line. */
    if (s->advanced && s->last_at && now > s->last_at) {
        s->count[steps_bucket_of((now - s->last_at) / s->advanced)] += s->advanced;
        s->sum.step = median(s);
    }
    s->last_at = now;
    s->advanced = 0;
}

void steps_times(const struct steps_sum *sum, el_usec running, el_usec *effective, el_usec *repeated)
{
    double made = (double)sum->made * (double)sum->step, again = (double)sum->again * (double)sum->step;
    double all = made + again, scale = all > (double)running ? (double)running / all : 1;
    *effective = (el_usec)(made * scale);
    *repeated = (el_usec)(again * scale);
}
