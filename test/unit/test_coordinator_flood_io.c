/* A coordinator that is sent more than it can do at once: what others say is heard in between. */
#include "coord/coordinator_private.h"
#include "unit/coordinator_stage.h"

enum { FLOOD = 2000 };

static void on_flooded_turn(void *ctx)
{
    (void)ctx;
    hear(&ends[1]);
    if (ends[1].count[MSG_HEARTBEAT_ACK] || loop_clock() > give_up_at)
        loop_stop(loop);
}

/* Who sends more than a coordinator answers at once is heard a piece at a time, and others in between. */
static void test_flood(void)
{
    struct el_buf beats = EL_BUF_INIT(NULL, 0);
    const struct msg beat = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 77}};
    open_coordinator(NULL, false);
    unsent_room = 1 << 20; /* so that more of the answers are seen here than may be given */
    form(&ends[0], &ends[1], "flooded", 2);
    unsent_room = 0;
    for (unsigned i = 0; i < FLOOD; i++)
        msg_encode(&beat, &beats);
    raw(&ends[0], beats.v, beats.len);
    tell(&ends[1], &beat);
    give_up_at = loop_clock() + PATIENCE;
    loop_at_turn_end(loop, on_flooded_turn, NULL);
    loop_run(loop);
    loop_at_turn_end(loop, NULL, NULL);
    hear(&ends[0]);
    printf("# %u of %u beats are answered when another's is\n", ends[0].count[MSG_HEARTBEAT_ACK], FLOOD);
    ok(ends[1].count[MSG_HEARTBEAT_ACK] && ends[0].count[MSG_HEARTBEAT_ACK] < 400, "nobody waits for a flood to end");
    ok(wait_type(&ends[0], MSG_HEARTBEAT_ACK, FLOOD), "of which every message is heard");
    el_buf_free(&beats);
    close_coordinator();
}

/* --- jobs without end -----------------------------------------------------------------------------------------------
 */

enum { CROWD = 100 };
static struct end crowd[CROWD];

static bool all_have_begun(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        hear(&crowd[i]);
        n += crowd[i].count[MSG_WAIT] > 0;
    }
    return n == CROWD;
}

/* A hundred invent a job each, all in one turn.  Each takes its time, the more the larger it may become. */
static void test_births(void)
{
    const struct msg beat = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 77}};
    char id[16];
    open_coordinator(NULL, false);
    form(&ends[0], &ends[1], "honest", 2);
    for (unsigned i = 0; i < CROWD; i++) {
        snprintf(id, sizeof id, "job%u", i);
        crowd[i].fd = -1;
        join(&crowd[i], "10.9.9.9", 0x100 + i, settings(id, 2, 4));
    }
    tell(&ends[1], &beat);
    give_up_at = loop_clock() + PATIENCE;
    loop_at_turn_end(loop, on_flooded_turn, NULL);
    loop_run(loop);
    loop_at_turn_end(loop, NULL, NULL);
    unsigned begun = coordinator_jobs(c) - 1;
    printf("# %u of %u jobs have begun when another's beat is answered\n", begun, CROWD);
    ok(ends[1].count[MSG_HEARTBEAT_ACK] && begun < CROWD / 2, "nobody waits for all of them to begin");
    ok(wait_for(all_have_begun), "but all do");
    is_num(coordinator_jobs(c), CROWD + 1, "each its own");
    for (unsigned i = 0; i < CROWD; i++)
        hang_up(&crowd[i]);
    close_coordinator();
}

/* Some of those who wait for their turn leave, or say more, or nothing that is right. */
static void test_births_gone(void)
{
    char id[16];
    unsigned refused = 0, gone = 0;
    open_coordinator(NULL, false);
    for (unsigned i = 0; i < CROWD; i++) {
        snprintf(id, sizeof id, "job%u", i);
        join(&crowd[i], "10.9.9.9", 0x100 + i, settings(id, 2, 4));
        if (i % 4 == 1)
            (void)!send(crowd[i].fd, "garbage that is no frame", 24, MSG_NOSIGNAL);
        if (i % 4 == 2)
            hang_up(&crowd[i]);
    }
    wait_ms(100);
    for (unsigned i = 0; i < CROWD; i++) {
        hear(&crowd[i]);
        refused += crowd[i].count[MSG_REFUSED] > 0;
        gone += crowd[i].fd < 0;
    }
    is_num(refused, CROWD / 4, "who says what is no message is refused, in his turn");
    is_num(gone, CROWD / 4, "who has left is no hindrance");
    for (unsigned i = 0; i < CROWD; i++)
        hang_up(&crowd[i]);
    close_coordinator();
}

static void stop_in_turn(void *ctx)
{
    (void)ctx;
    if (c->waiting || loop_clock() > give_up_at)
        loop_stop(loop);
}

/* All have spoken, and wait for their turn, which comes only after the time in which one must have spoken; and a crowd
 * that says nothing asks for their places. */
static void test_births_late(void)
{
    static int fds[COORDINATOR_NEW_MAX];
    struct el_addr addr = {.port = 1};
    char id[16];
    unsigned n = 0;
    el_addr_parse("10.9.9.9", addr.ip);
    open_coordinator(NULL, false);
    for (unsigned i = 0; i < CROWD; i++) {
        snprintf(id, sizeof id, "job%u", i);
        join(&crowd[i], "10.9.9.9", 0x100 + i, settings(id, 2, 4));
    }
    give_up_at = loop_clock() + PATIENCE;
    loop_at_turn_end(loop, stop_in_turn, NULL);
    loop_run(loop);
    loop_at_turn_end(loop, NULL, NULL);
    ok(c->waiting > 0, "some wait");
    for (struct peer *p = c->fresh.first; p; p = p->next)
        p->until = 0;
    for (; n < COORDINATOR_NEW_MAX; n++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
            break;
        fds[n] = pair[0];
        coordinator_accept(c, pair[1], &addr, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    }
    ok(wait_for(all_have_begun), "nobody is closed who has spoken");
    for (unsigned i = 0; i < CROWD; i++)
        hang_up(&crowd[i]);
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    close_coordinator();
}

int main(void)
{
    stage_open();
    test_flood();
    test_births();
    test_births_gone();
    test_births_late();
    stage_close();
    return done();
}
