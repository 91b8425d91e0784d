#include "failure/absent.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

static bool absent_take(struct text *t, const char *what)
{
    size_t n = strlen(what);
    if (!text_starts(*t, what))
        return false;
    *t = (struct text){t->p + n, t->n - n};
    return true;
}

static bool absent_take_number(struct text *t, unsigned *number)
{
    size_t i = 0;
    *number = 0;
    for (; i < t->n && i < 9 && t->p[i] >= '0' && t->p[i] <= '9'; i++)
        *number = *number * 10 + (unsigned)(t->p[i] - '0');
    *t = (struct text){t->p + i, t->n - i};
    return i > 0;
}

static bool line_names(struct text line, unsigned speaker, unsigned rank)
{
    const char *at = text_find(line, "[Rank ");
    unsigned number;
    bool named = false;
    if (!at)
        return false;
    struct text t = {at, line.n - (size_t)(at - line.p)};
    if (!absent_take(&t, "[Rank ") || !absent_take_number(&t, &number) || number != speaker ||
        !absent_take(&t, "]: Rank"))
        return false;
    absent_take(&t, "s");
    if (!absent_take(&t, " "))
        return false;
    do {
        if (!absent_take_number(&t, &number))
            return false;
        named |= number == rank;
    } while (absent_take(&t, ", "));
    return absent_take(&t, " failed to pass monitoredBarrier") && named;
}

/* Under which rank of the whole job has put its address: "/default_pg/0//cpu//0/2" is that of rank 2.  Other groups and
 * other backends have other keys. */
static bool key_ends_in(struct text key, unsigned *rank)
{
    unsigned number;
    absent_take(&key, "/");
    if (!absent_take(&key, "default_pg/") || !absent_take_number(&key, &number) || !absent_take(&key, "//"))
        return false;
    while (key.n && *key.p >= 'a' && *key.p <= 'z')
        key = (struct text){key.p + 1, key.n - 1};
    return absent_take(&key, "//") && absent_take_number(&key, &number) && absent_take(&key, "/") &&
           absent_take_number(&key, rank) && !key.n;
}

/* "wait timeout after 4000ms, keys: /default_pg/0//cpu//0/2": rank any names any. */
static bool keys_name(struct text line, unsigned rank, bool any)
{
    static const char words[] = "keys: ";
    const char *at = text_find(line, "wait timeout") ? text_find(line, words) : NULL;
    struct text t = {at ? at + sizeof words - 1 : line.p, at ? (size_t)(line.p + line.n - at) - sizeof words + 1 : 0};
    while (t.n) {
        size_t n = 0;
        unsigned number;
        while (n < t.n && t.p[n] != ',' && t.p[n] != ' ')
            n++;
        if (key_ends_in((struct text){t.p, n}, &number) && (any || number == rank))
            return true;
        t = (struct text){t.p + n, t.n - n};
        while (t.n && (*t.p == ',' || *t.p == ' '))
            t = (struct text){t.p + 1, t.n - 1};
    }
    return false;
}

bool absent_names(const struct failure *f, unsigned rank)
{
    const char *said[] = {f->message, f->found.message};
    for (size_t i = 0; f->follower && i < sizeof said / sizeof *said; i++) {
        const struct text line = {said[i], said[i] ? strlen(said[i]) : 0};
        if (line.n &&
            (line_names(line, f->rank, rank) || (f->rule == CLASSIFY_STORE_TIMEOUT && keys_name(line, rank, false))))
            return true;
    }
    return false;
}

bool absent_is_told(const struct failure *f)
{
    const struct text said = {f->found.message, strlen(f->found.message)};
    return f->rule == CLASSIFY_MONITORED || (f->rule == CLASSIFY_STORE_TIMEOUT && keys_name(said, 0, true));
}

const char *absent_text(const struct failure *f)
{
    bool meets = f->rule == CLASSIFY_STORE_TIMEOUT || f->rule == CLASSIFY_STORE_SOCKET;
    if (f->perhaps_late)
        return meets ? "came late to the rendezvous, or not at all" : "came late to a collective, or not at all";
    return f->rule == CLASSIFY_MONITORED ? "did not come to a barrier"
           : meets                       ? "did not come to the rendezvous"
                                         : "did not take part in a collective";
}

/* PyTorch 1.13 says no key: only where it stood tells that it waited for the other ranks' addresses. */
static bool is_meeting(const struct failure *f)
{
    return f->rule == CLASSIFY_STORE_SOCKET && f->stack &&
           text_find((struct text){f->stack, strlen(f->stack)}, ", in init_process_group\n");
}

bool absent_is_silent(const struct failure *f, const struct failure *waited)
{
    bool late = !waited || (waited->follower && !waited->private_link && !waited->left &&
                            (classify_is_late(waited->rule) || is_meeting(waited)));
    bool spoke = classify_is_follower(f->words) || (f->raised && f->spoke_first);
    return late && f->by == FAILURE_BY_ELRUN && !f->hung && !f->absent && f->watch != FAILURE_WATCH_NOT_LOOKED &&
           !spoke;
}

static const char *said_by(const struct failure *f)
{
    return f->found.message[0] ? f->found.message : f->message ? f->message : "";
}

static void absent_explain_one(struct failure *f, const struct failure *accuser)
{
    snprintf(f->sign, sizeof f->sign, "rank %u: %.*s", accuser->rank, (int)sizeof f->sign - 20, said_by(accuser));
}

void absent_mark(struct failure *f, const struct failure *accuser)
{
    assert(f->by == FAILURE_BY_ELRUN && (absent_is_silent(f, accuser) || absent_names(accuser, f->rank)));
    f->absent = f->follower = f->private_link = true;
    f->class = FAILURE_CLASS_HANG;
    f->rule = accuser ? accuser->rule : CLASSIFY_NONE;
    f->sign[0] = 0;
    if (f->rule == CLASSIFY_MONITORED)
        text_copy(f->sign, sizeof f->sign, said_by(accuser), strlen(said_by(accuser)));
    else if (accuser)
        absent_explain_one(f, accuser);
}

void absent_explain(struct failure *f, const struct failure *const *all, unsigned n)
{
    for (unsigned i = 0; f->absent && !f->sign[0] && i < n; i++)
        if (all[i]->follower && !all[i]->absent && classify_is_late(all[i]->rule))
            absent_explain_one(f, all[i]);
}
