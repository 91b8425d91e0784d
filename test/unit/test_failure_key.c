/* A wait for a key of the store: the program's own one, which nobody has set, or one of PyTorch's. */
#include "failure/failure.h"
#include "lib/tap.h"

#include <stdio.h>
#include <string.h>

static const char head[] = "Traceback (most recent call last):\n  File \"/w/train.py\", line 8, in <module>\n    f()\n",
                  torch[] =
                      "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 9, in g\n"
                      "    store.get(key)\n",
                  timed_out[] =
                      "torch.distributed.DistStoreError: wait timeout after 2000ms, keys: /default_pg/0///my/key\n";

static const char *advice(const char *frame, const char *words)
{
    char text[1024];
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    snprintf(text, sizeof text, "%s%s%s", head, frame, words);
    failure_add_stderr(&f, text, strlen(text), NULL);
    failure_judge(&f, false, false);
    const char *said = failure_advice(&f);
    failure_free(&f, NULL);
    return said;
}

int main(void)
{
    ok(strstr(advice("", timed_out), "no rank has set this key"), "the program waited for a key of its own");
    ok(strstr(advice(torch, timed_out), "a peer did not take part"),
       "PyTorch did, for one that a rank's part of it sets");
    ok(!strstr(advice("", "torch.distributed.DistStoreError: Socket Timeout\n"), "this key"), "no key is named");
    return done();
}
