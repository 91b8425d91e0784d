/* Nodes whose hardware is suspect: set aside, that is, taken into a round only if too few others are there.  The node
 * itself, and whoever comes from its host meanwhile. */
#include "coord/rdzv_private.h"

#include <stdio.h>
#include <string.h>

enum { SAID_MAX = 2 }; /* lines about single nodes in one step; the others are counted */

static struct rdzv_aside *quarantine_find(const struct rdzv *r, const char *host)
{
    for (unsigned i = 0; i < r->asides; i++)
        if (strcmp(r->aside[i].host, host) == 0)
            return (struct rdzv_aside *)&r->aside[i];
    return NULL;
}

bool rdzv_is_aside(const struct rdzv *r, const char *host)
{
    return quarantine_find(r, host) != NULL;
}

const char *rdzv_aside_why(const struct rdzv *r, const char *host)
{
    const struct rdzv_aside *a = quarantine_find(r, host);
    return a ? a->why : "its hardware is suspect";
}

static void quarantine_change(struct rdzv *r, struct rdzv_member *m, bool aside)
{
    rdzv_tally(r, m, -1);
    m->aside = aside;
    rdzv_tally(r, m, 1);
}

el_usec rdzv_quarantine(const struct rdzv *r, el_usec now)
{
    return r->conf.set.quarantine_ms ? now + EL_MS(r->conf.set.quarantine_ms) : EL_NEVER;
}

bool rdzv_keep_aside(struct rdzv *r, const char *host, const char *why, el_usec until)
{
    struct rdzv_aside *a = quarantine_find(r, host);
    if (!a && r->asides == RDZV_ASIDE_MAX)
        return false;
    if (!a)
        *(a = &r->aside[r->asides++]) = (struct rdzv_aside){0};
    a->until = until > a->until ? until : a->until;
    snprintf(a->host, sizeof a->host, "%s", host);
    snprintf(a->why, sizeof a->why, "%s", why);
    return true;
}

bool rdzv_park(struct rdzv *r, struct rdzv_member *m, const char *why)
{
    if (!rdzv_keep_aside(r, m->host, why, EL_NEVER))
        return false;
    quarantine_change(r, m, true);
    return true;
}

void rdzv_suspect(struct rdzv *r, const struct rdzv_member *m, const char *evidence)
{
    if (r->suspects == RDZV_ASIDE_MAX)
        return; /* no more than that are set aside anyway */
    struct rdzv_suspect *s = &r->suspect[r->suspects++];
    s->seat = m->seat;
    snprintf(s->why, sizeof s->why, "%s", *evidence ? evidence : "a worker's failure");
}

static void quarantine_say(struct rdzv *r, struct rdzv_actions *out, const struct rdzv_suspect *s, bool enough,
                           bool kept)
{
    uint32_t i = r->seat[s->seat].member;
    const char *host = r->member[i].host;
    if (kept)
        rdzv_say(r, out, NOTE_ASIDE, i, "%s is set aside: %s", host, s->why);
    else
        rdzv_say(r, out, NOTE_ASIDE, i, "%s stays, since %s, but its hardware is suspect: %s", host,
                 enough ? "no more hosts can be set aside" : "too few others are here", s->why);
}

/* After the seats were released: one after the other, as long as enough remain. */
void rdzv_set_aside(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    unsigned said = 0;
    for (unsigned n = 0; n < r->suspects; n++) {
        const struct rdzv_suspect *s = &r->suspect[n];
        if (r->seat[s->seat].member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[r->seat[s->seat].member];
        bool before = m->aside;
        quarantine_change(r, m, true);
        bool enough = rdzv_is_enough(r), kept = enough && rdzv_keep_aside(r, m->host, s->why, rdzv_quarantine(r, now));
        if (!kept)
            quarantine_change(
                r, m, before); /* who was set aside already, and had to be taken all the same, is no better now */
        if (said++ < SAID_MAX)
            quarantine_say(r, out, s, enough, kept);
    }
    if (said > SAID_MAX)
        rdzv_say(r, out, NOTE_ASIDE, RDZV_NONE, "%u more nodes have suspect hardware: see elrun status",
                 said - SAID_MAX);
}

static void quarantine_take_back(struct rdzv *r, const char *host)
{
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next)
        if (r->member[i].aside && strcmp(r->member[i].host, host) == 0)
            quarantine_change(r, &r->member[i], false);
}

/* One at a time, so that the list of notes stays short: the deadline comes again. */
void rdzv_aside_expire(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    for (unsigned i = 0; i < r->asides; i++) {
        struct rdzv_aside *a = &r->aside[i];
        if (a->until > now)
            continue;
        quarantine_take_back(r, a->host);
        rdzv_say(r, out, NOTE_FINDING, RDZV_NONE, "%s is no longer set aside: its quarantine is over", a->host);
        *a = r->aside[--r->asides];
        r->tell = true;
        return;
    }
}

el_usec rdzv_aside_deadline(const struct rdzv *r)
{
    el_usec first = EL_NEVER;
    for (unsigned i = 0; i < r->asides && r->state < RDZV_CLOSING; i++)
        first = r->aside[i].until < first ? r->aside[i].until : first;
    return first;
}

const char *rdzv_aside_text(struct rdzv *r, el_usec now)
{
    size_t n = 0, room = sizeof r->aside_text;
    r->aside_text[0] = 0;
    for (unsigned i = 0; i < r->asides && n < room; i++) {
        const struct rdzv_aside *a = &r->aside[i];
        char time[48] = "until the job ends";
        if (a->until != EL_NEVER)
            snprintf(time, sizeof time, "for %llu s more",
                     (unsigned long long)(a->until > now ? (a->until - now + EL_SEC(1) - 1) / EL_SEC(1) : 0));
        n += (size_t)snprintf(r->aside_text + n, room - n, "%s%s %s (%s)", i ? ", " : "", a->host, time, a->why);
    }
    return r->aside_text;
}

/* A host to a line; "!" behind it: no quarantine ends it. */
void rdzv_aside_list(const struct rdzv *r, char *to, size_t size)
{
    size_t n = 0;
    *to = 0;
    for (unsigned i = 0; i < r->asides; i++) {
        const struct rdzv_aside *a = &r->aside[i];
        if (n + strlen(a->host) + sizeof "!\n" <= size)
            n += (size_t)snprintf(to + n, size - n, "%s%s\n", a->host, a->until == EL_NEVER ? "!" : "");
    }
}

/* Since when is not known any more: a quarantine begins again, which is never too short. */
void rdzv_aside_take(struct rdzv *r, const char *list, el_usec now)
{
    for (const char *end; (end = strchr(list, '\n')); list = end + 1) {
        char host[MSG_NAME_MAX + 1];
        size_t len = (size_t)(end - list);
        bool judged = len && end[-1] == '!';
        len -= judged;
        if (!len || len > MSG_NAME_MAX)
            continue;
        memcpy(host, list, len);
        host[len] = 0;
        rdzv_keep_aside(r, host, "since before the coordinator was started again",
                        judged ? EL_NEVER : rdzv_quarantine(r, now));
    }
}
