/* The look-up of a name that hangs: one at a time, told as a failure, used when it comes; and what a host has got whose
 * process does not read.  getaddrinfo() is ours. */
#include "control/link.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tap.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned asked;
static bool answering;

static struct loop *loop;
static struct loop_timer *timer;
static unsigned failures, resolved, connected;
static uint16_t port; /* of the address that is told; 0: nobody listens there */
static char text[256];

/* What every caller of it in this program gets. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)name, (void)service, (void)hints;
    pthread_mutex_lock(&lock);
    asked++;
    while (!answering)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    struct {
        struct addrinfo info;
        struct sockaddr_in to;
    } *one = calloc(1, sizeof *one);
    if (!one)
        return EAI_MEMORY;
    one->to.sin_family = AF_INET;
    one->to.sin_port = port;
    one->info.ai_addr = (struct sockaddr *)&one->to;
    one->info.ai_addrlen = sizeof one->to;
    *out = &one->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *all)
{
    free(all);
}

static void on_resolved(void *ctx, const struct el_addr *found, size_t n)
{
    (void)ctx, (void)found;
    resolved += n == 1;
}

static void on_connected(void *ctx)
{
    (void)ctx;
    connected++;
    loop_stop(loop);
}

static void on_failed(void *ctx, bool refused, const char *why)
{
    (void)ctx, (void)refused;
    failures++;
    snprintf(text, sizeof text, "%s", why);
    loop_stop(loop);
}

static void on_time(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

static void for_a_while(el_usec span)
{
    loop_timer_at(timer, loop_clock() + span);
    loop_run(loop);
}

/* A process that stands still: its kernel takes the connection, and so many bytes. */
static void test_delivered(struct link *k)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 1) == 0 &&
           getsockname(fd, (struct sockaddr *)&a, &size) == 0,
       "somebody listens, and reads nothing");
    port = a.sin_port;
    link_connect(k, "node0", 1);
    loop_run(loop);
    is_num(connected, 1, "connected all the same");
    ok(!link_delivered(k), "nothing was sent, nothing was delivered");
    struct msg beat = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 1}};
    el_usec before = loop_clock();
    link_send(k, &beat);
    el_usec after = loop_clock();
    for_a_while(EL_MS(20));
    ok(link_delivered(k) >= before && link_delivered(k) <= after, "what was sent is there: when it was sent");
    for (int i = 0; i < 300000; i++)
        link_send(k, &beat);
    el_usec all = loop_clock();
    for_a_while(EL_MS(20));
    link_send(k, &beat);
    ok(link_delivered(k) >= before && link_delivered(k) <= all, "what a kernel does not keep is not");
    link_disconnect(k);
    ok(!link_delivered(k), "nor is anything without a connection");
    close(fd);
}

int main(void)
{
    static const struct link_ops ops = {.resolved = on_resolved, .connected = on_connected, .failed = on_failed};
    struct el_err e = {0};
    loop = loop_new(&e);
    timer = loop_timer_new(loop, on_time, NULL);
    struct pool *pool = pool_new(loop, 4, &e);
    struct link *k = link_new(loop, pool, &ops, NULL, &e);

    link_connect(k, "node0", 1);
    loop_run(loop);
    is_num(failures, 1, "a name server that says nothing: the attempt fails");
    is_str(text, "node0: no name server has answered the look-up of this name yet", "and says why");
    for (int i = 0; i < 8; i++) {
        link_connect(k, "node0", 1);
        loop_run(loop);
    }
    is_num(failures, 9, "so do the next ones");
    is_num(asked, 1, "but the name was asked for once");
    link_connect(k, "node0", 1);
    link_disconnect(k);
    for_a_while(EL_MS(200));
    is_num(failures, 9, "no word after link_disconnect()");

    link_connect(k, "node0", 1);
    pthread_mutex_lock(&lock);
    answering = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    loop_timer_at(timer, EL_NEVER);
    loop_run(loop);
    is_num(resolved, 1, "the answer comes, and is used by the attempt that waits");
    ok(failures == 10 && !strstr(text, "name server"), "whose addresses are tried then");
    link_connect(k, "node0", 1);
    loop_run(loop);
    ok(asked == 2 && resolved == 2, "from then on each attempt looks the name up anew");

    answering = false; /* no thread looks: nothing is asked now */
    link_connect(k, "node0", 1);
    for_a_while(EL_MS(20));
    link_disconnect(k);
    pthread_mutex_lock(&lock);
    answering = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for_a_while(EL_MS(100));
    loop_timer_at(timer, EL_NEVER);
    is_num(resolved, 2, "an answer that comes when the attempt is given up");
    link_connect(k, "node0", 1);
    is_num(resolved, 2, "is not told inside link_connect()");
    loop_run(loop);
    ok(asked == 3 && resolved == 3 && failures == 12,
       "but used by the next attempt: a slow name server is no silent one");
    link_connect(k, "node0", 1);
    loop_run(loop);
    is_num(asked, 4, "and by no other");

    test_delivered(k);
    ok(pool_free(pool), "no thread is left");
    link_free(k);
    loop_timer_free(timer);
    loop_free(loop);
    return done();
}
