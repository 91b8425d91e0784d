#include "agent/account.h"

#include <assert.h>
#include <stdio.h>

void account_init(struct account *a, el_usec now)
{
    *a = (struct account){.began = now, .since = now, .part = ACCOUNT_START};
}

void account_enter(struct account *a, enum account_part part, el_usec now)
{
    assert(part < ACCOUNT_PARTS && now >= a->since);
    a->spent[a->part] += now - a->since;
    a->since = now;
    a->part = part;
}

void account_failed(struct account *a, el_usec now)
{
    if (!a->failed_at)
        a->failed_at = now;
}

void account_signalled(struct account *a, el_usec now)
{
    if (a->failed_at && now - a->failed_at > a->detect)
        a->detect = now - a->failed_at;
}

void account_started(struct account *a, el_usec now)
{
    if (!a->failed_at)
        return;
    a->restarts++;
    if (now - a->failed_at > a->restart)
        a->restart = now - a->failed_at;
    a->failed_at = 0;
}

char *account_duration(el_usec d, char *to, size_t size)
{
    unsigned long long s = d / 1000000;
    if (d < 1000)
        snprintf(to, size, "%lluus", (unsigned long long)d);
    else if (d < 10000)
        snprintf(to, size, "%llu.%llums", (unsigned long long)d / 1000, (unsigned long long)d / 100 % 10);
    else if (d < 1000000)
        snprintf(to, size, "%llums", (unsigned long long)d / 1000);
    else if (s < 60)
        snprintf(to, size, "%llu.%llus", s, (unsigned long long)d / 100000 % 10);
    else if (s < 3600)
        snprintf(to, size, "%llum%02llus", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, size, "%lluh%02llum", s / 3600, s / 60 % 60);
    else
        snprintf(to, size, "%llud%02lluh", s / 86400, s / 3600 % 24);
    return to;
}

size_t account_text(const struct account *a, el_usec now, char *to, size_t size)
{
    assert(size > 0);
    static const char *const names[] = {"starting", "running", "stopping"};
    struct account sum = *a;
    char d[3][24];
    account_enter(&sum, a->part, now);
    size_t n = (size_t)snprintf(to, size, "time: %s:", account_duration(now - a->began, d[0], sizeof d[0]));
    for (int i = 0; i < ACCOUNT_PARTS && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, "%s %s %s", i ? "," : "",
                              account_duration(sum.spent[i], d[0], sizeof d[0]), names[i]);
    if (a->restarts && n < size)
        n += (size_t)snprintf(to + n, size - n, "; %u restart%s: siblings signalled in %s, all up again in %s",
                              a->restarts, a->restarts == 1 ? "" : "s", account_duration(a->detect, d[1], sizeof d[1]),
                              account_duration(a->restart, d[2], sizeof d[2]));
    return n < size ? n : size - 1;
}
