#include "sys/procstat.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "util/scan.h"

static int signal_mask(const char *text, const char *key, uint64_t *out)
{
    const char *at = scan_field(text, key);
    return at && scan_hex(&at, out) ? 0 : -1;
}

int procstat_status(struct procstat_status *out, const char *text)
{
    memset(out, 0, sizeof *out);
    const char *state = scan_field(text, "State:"), *ppid = scan_field(text, "PPid:");
    if (!state || *state == 0 || *state == '\n' || !ppid || !scan_int(&ppid, &out->ppid))
        return -1;
    out->state = *state;
    if (signal_mask(text, "SigBlk:", &out->sig_blocked) || signal_mask(text, "SigIgn:", &out->sig_ignored) ||
        signal_mask(text, "SigCgt:", &out->sig_caught))
        return -1;
    return 0;
}

static bool in_mask(uint64_t mask, int signal)
{
    assert(signal >= 1 && signal <= 64);
    return mask >> (signal - 1) & 1;
}

bool procstat_catches(const struct procstat_status *s, int signal)
{
    return in_mask(s->sig_caught, signal);
}

bool procstat_ignores(const struct procstat_status *s, int signal)
{
    return in_mask(s->sig_ignored, signal);
}

static bool next_int(const char **at, int *out)
{
    scan_blanks(at);
    return scan_int(at, out);
}

/* Skips n fields and reads the one behind them. */
static bool field_after(const char **at, unsigned n, uint64_t *out)
{
    for (; n; n--) {
        scan_blanks(at);
        if (!**at || **at == '\n')
            return false;
        while (**at && **at != ' ' && **at != '\n')
            ++*at;
    }
    scan_blanks(at);
    return scan_u64(at, out);
}

int procstat_stat(struct procstat_stat *out, const char *text)
{
    memset(out, 0, sizeof *out);
    const char *at = text;
    if (!scan_int(&at, &out->pid) || at[0] != ' ' || at[1] != '(')
        return -1;
    /* The name may hold anything, so it ends at the last parenthesis of the text. */
    const char *name = at + 2, *end = strrchr(name, ')');
    if (!end)
        return -1;
    size_t n = (size_t)(end - name);
    if (n >= sizeof out->comm)
        n = sizeof out->comm - 1;
    memcpy(out->comm, name, n);
    at = end + 1;
    scan_blanks(&at);
    if (!*at || *at == '\n')
        return -1;
    out->state = *at++;
    if (!next_int(&at, &out->ppid) || !next_int(&at, &out->pgrp) || !next_int(&at, &out->session))
        return -1;
    uint64_t threads;
    /* Skipped: tty, tpgid, flags and four counters of faults; behind the times, those of children and two priorities;
     * behind the threads, one that is always 0. */
    if (!field_after(&at, 7, &out->utime_ticks) || !field_after(&at, 0, &out->stime_ticks) ||
        !field_after(&at, 4, &threads) || !field_after(&at, 1, &out->start_ticks))
        return -1;
    out->threads = threads < UINT_MAX ? (unsigned)threads : UINT_MAX;
    return 0;
}
