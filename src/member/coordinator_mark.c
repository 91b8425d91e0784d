#include "member/coordinator_mark.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

#define HEAD "elrun-mark 1 "

const char *coordinator_mark_text(const struct coordinator_mark *m, char to[COORDINATOR_MARK_TEXT_MAX])
{
    int n = snprintf(to, COORDINATOR_MARK_TEXT_MAX, HEAD "%llu %llu %llu %llu %s\n", (unsigned long long)m->pid,
                     (unsigned long long)m->start_ticks, (unsigned long long)m->written_s,
                     (unsigned long long)m->keep_s, m->boot);
    assert(n > 0 && n < COORDINATOR_MARK_TEXT_MAX);
    return to;
}

static bool coordinator_mark_number(const char **at, uint64_t *out)
{
    scan_blanks(at);
    return scan_u64(at, out);
}

bool coordinator_mark_parse(const char *text, struct coordinator_mark *out)
{
    if (strncmp(text, HEAD, sizeof HEAD - 1) != 0)
        return false;
    const char *at = text + sizeof HEAD - 1;
    *out = (struct coordinator_mark){0};
    if (!coordinator_mark_number(&at, &out->pid) || !coordinator_mark_number(&at, &out->start_ticks) ||
        !coordinator_mark_number(&at, &out->written_s) || !coordinator_mark_number(&at, &out->keep_s))
        return false;
    scan_blanks(&at);
    return scan_line(at, out->boot, sizeof out->boot) && out->boot[0];
}

bool coordinator_mark_is_stale(const struct coordinator_mark *m, const struct coordinator_mark *now, bool lives)
{
    if (strcmp(m->boot, now->boot) != 0)
        return true;
    uint64_t age_s = now->written_s > m->written_s ? now->written_s - m->written_s : 0;
    uint64_t limit_s =
        m->keep_s + 2 * (COORDINATOR_MARK_REFRESH / EL_SEC(1)); /* it may have lived until it was to be written */
    return !lives && age_s > limit_s;
}

void coordinator_mark_prefix(unsigned uid, char *to, size_t room)
{
    snprintf(to, room, "elrun-%u-", uid);
}

void coordinator_mark_name(unsigned uid, int port, const char *run_id, char *to, size_t room)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = run_id; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    snprintf(to, room, "elrun-%u-%d-%016llx", uid, port, (unsigned long long)hash);
}
