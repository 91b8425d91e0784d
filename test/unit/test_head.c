/* The beginning of a traceback whose message is longer than the ring: kept however the bytes come, and believed only
 * where nothing but the message came behind it. */
#include "output/head.h"

#include <stdlib.h>

#include "lib/tap.h"

static char text[600000], joined[HEAD_JOIN_BYTES + 1];
static struct ring ring;
static struct head head;

static const char trace[] =
    "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/me/w.py\", line 5, in main\n"
    "[rank1]: RuntimeError: Error(s) in loading:\n[rank1]: \tMissing: ";

static void feed(const char *bytes, size_t n, size_t chunk, el_usec now)
{
    for (size_t i = 0; i < n; i += chunk) {
        size_t k = n - i < chunk ? n - i : chunk;
        head_put(&head, &ring, bytes + i, k, now);
        ring_put(&ring, bytes + i, k);
    }
}

static void begin(void)
{
    head_free(&head);
    ring_free(&ring);
    ring = (struct ring){.total = 0};
}

/* What is known of the stream, as a string. */
static const char *join(void)
{
    joined[head_join(&head, &ring, joined)] = 0;
    return joined;
}

static size_t make(size_t before, size_t message)
{
    memset(text, 'x', before);
    if (before)
        text[before - 1] = '\n';
    memcpy(text + before, trace, sizeof trace - 1);
    size_t n = before + sizeof trace - 1;
    memset(text + n, 'k', message);
    text[n + message] = '\n';
    return n + message + 1;
}

static void test_chunks(void)
{
    static const size_t chunks[] = {7, 100, 4096, 65536}, before[] = {0, 10, 65000, 65536 - 20, 200000};
    unsigned bad = 0;
    for (size_t c = 0; c < 4; c++)
        for (size_t b = 0; b < 5; b++) {
            begin();
            feed(text, make(before[b], 300000), chunks[c], 1);
            bad += strncmp(join(), trace, sizeof trace - 1) != 0 || strlen(joined) < RING_BYTES + HEAD_BYTES / 2;
            bad += !strstr(joined, "bytes left out ...]\n");
        }
    is_num(bad, 0, "a message of 300 KB, whatever comes before it and in whatever pieces");
    begin();
    size_t n = make(10, 70000);
    feed(text, n, 1000, 1);
    ok(!strcmp(join(), text + 10) || strlen(joined) == n - 10, "one a little longer than the ring: without a gap");
    ok(!strstr(joined, "left out"), "and nothing is said to be left out");
    begin();
    n = make(10, 1000);
    feed(text, n, 1000, 1);
    text[n] = 0;
    is_str(join(), text, "a short one: the ring is all");
}

static void test_behind(void)
{
    begin();
    feed(text, make(0, 200000), 4096, 1);
    memset(text, 'y', 300000);
    feed(text, 10000, 100, EL_SEC(9));
    ok(!strncmp(join(), trace, 30), "a little output behind it, however late");
    feed(text, 10000, 100, EL_SEC(9));
    is_num(strlen(join()), RING_BYTES, "much output later: the program went on, and it is no last word");
    begin();
    feed(trace, sizeof trace - 1, 4096, 1);
    feed(text, 100000, 4096, EL_SEC(3));
    is_num(strlen(join()), RING_BYTES, "output that came seconds later is no message");
    begin();
    feed(text, make(0, 200000), 4096, 1);
    head_free(&head);
    is_num(strlen(join()), RING_BYTES, "forgotten");
}

static void test_text(void)
{
    size_t n = make(50, 300000);
    is_num(head_find(text, n), 50, "in a file: where its line begins");
    memcpy(text + n, "[rank1]: \tsize mismatch\n\n", 25);
    is_num(head_find(text, n + 25), 50, "its message goes on, indented");
    memcpy(text + n, "step 3: loss 0.5\nstep 4\n", 24);
    is_num(head_find(text, n + 24), -1, "other output behind it: no last word");
    is_num(head_find("no\n", 3), -1, "none there");
}

int main(void)
{
    test_chunks();
    test_behind();
    test_text();
    begin();
    return done();
}
