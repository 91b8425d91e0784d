/* The coordinator's shell: the life of a job, two of them, who is who, the journal. */
#include "unit/coordinator_stage.h"

/* --- the life of a job -------------------------------------------------------------------------------------------- */

static bool nothing_runs(void)
{
    return !coordinator_busy(c);
}

static void test_life(void)
{
    struct end *a = &ends[0], *b = &ends[1];
    open_coordinator(NULL, false);
    form(a, b, "life", 1);
    ok(a->world.group_rank == 0 && b->world.group_rank == 1 && a->world.group_size == 2, "two agents, one world");
    is_num(b->world.rank_base, 2, "the second one's ranks begin behind the first one's");
    ok(a->number == b->number && a->coord == b->coord && a->coord, "the same round");
    is_num(coordinator_members(c), 2, "two members");
    ok(coordinator_busy(c), "the job is under way");

    struct msg beat = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 77}};
    tell(a, &beat);
    ok(wait_type(a, MSG_HEARTBEAT_ACK, 1), "a heartbeat is answered");

    /* Back within the grace: the same world again, and nobody is stopped. */
    struct msg_hello back = settings("life", 1, 2);
    back.phase = MSG_PHASE_RUNNING;
    back.number = back.seen = b->number;
    back.coord = b->coord;
    back.group_rank = 1;
    back.group_size = 2;
    back.master_port = 4711;
    uint64_t number = b->number;
    join(b, "10.0.0.2", 0xb, back);
    ok(wait_type(b, MSG_WORLD, 1) && b->number == number, "a connection that is replaced gets the same order again");
    wait_ms(150);
    is_num(a->count[MSG_STOP], 0, "nobody is stopped for it");

    hang_up(b);
    ok(wait_type(a, MSG_STOP, 1), "a loss stops the round");
    ok(strstr(a->text, "lost") != NULL, "and says so");
    about_round(a, MSG_STOPPED);
    ok(wait_type(a, MSG_OPEN_STORE, 2), "the next round follows");
    about_round(a, MSG_STORE_READY);
    ok(wait_type(a, MSG_WORLD, 2) && a->world.group_size == 1 && a->number > number, "with who is left");
    is_num(a->world.restarts, 0, "a loss costs no restart");

    about_round(a, MSG_STARTED);
    about_round(a, MSG_SUCCEEDED);
    ok(wait_type(a, MSG_END, 1) && a->status == 0, "success of all ends the job");
    about_round(a, MSG_END_ACK);
    ok(wait_for(nothing_runs), "it is over when all know it");
    ok(ended_calls == 1 && ended_status == 0, "its owner is told once");
    ok(notes > 5, "and of what happened on the way");
    join(&ends[2], "10.0.0.3", 0xc, settings("life", 1, 2));
    ok(wait_type(&ends[2], MSG_END, 1), "who comes late is told how it ended: nothing starts again");
    close_coordinator();
}

static void test_two_jobs(void)
{
    open_coordinator(NULL, false);
    form(&ends[0], &ends[1], "one", 2);
    form(&ends[2], &ends[3], "two", 2);
    is_num(coordinator_jobs(c), 2, "two jobs at the same time");
    ok(ends[0].number == 1 && ends[2].number == 1, "with rounds of their own");
    struct msg m = {.type = MSG_STATUS, .u.status = {.run_id = ""}};
    dial_in(&ends[4], "192.0.2.9");
    tell(&ends[4], &m);
    ok(wait_closed(&ends[4]), "status is for everybody, and the connection ends behind it");
    ok(ends[4].count[MSG_STATUS_JOB] == 2 && ends[4].count[MSG_STATUS_MEMBER] == 4,
       "rows of both jobs and their nodes");
    ok(!ends[4].more, "the last row says that it is the last");
    m = (struct msg){.type = MSG_RESTART, .u.restart = {.run_id = ""}};
    dial_in(&ends[4], "10.0.0.1");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 1 && strstr(ends[4].text, "one, two"), "a command has to say which");
    m.u.restart.run_id = "two";
    dial_in(&ends[4], "192.0.2.9");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 1 && strstr(ends[4].text, "192.0.2.9"), "and is refused from an address that is no member's");
    dial_in(&ends[4], "10.0.0.1");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 0 && ends[4].count[MSG_DONE] == 1, "but done for a member's host");
    ok(wait_type(&ends[2], MSG_STOP, 1) && ends[0].count[MSG_STOP] == 0, "in that job only");
    dial_in(&ends[4], "127.0.0.1");
    m = (struct msg){.type = MSG_STOP_JOB, .u.stop_job = {.run_id = "one", .grace_ms = -1}};
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 0 && wait_type(&ends[0], MSG_STOP, 1), "and for the coordinator's own host");
    close_coordinator();
}

static void test_identity(void)
{
    struct msg_hello h = settings("who", 2, 4);
    open_coordinator(NULL, false);
    h.node_rank = 3;
    join(&ends[0], "10.0.0.1", 0xa, h);
    wait_type(&ends[0], MSG_WAIT, 1);
    join(&ends[1], "10.0.0.2", 0xb, h);
    ok(wait_type(&ends[1], MSG_REFUSED, 1) && ends[1].retry, "a node rank that is held: refused, for now");
    ok(strstr(ends[1].text, "node rank 3") != NULL, "naming it");
    ok(wait_closed(&ends[1]), "and closed");
    h.node_rank = -1;
    join(&ends[2], "10.0.0.3", 0xa, h); /* connection 1 again */
    ok(wait_type(&ends[2], MSG_REFUSED, 1), "an instance with an old connection counter is refused");
    ends[2].instance = 0;
    hang_up(&ends[2]);
    h.min = 3;
    join(&ends[1], "10.0.0.2", 0xb, h);
    ok(wait_type(&ends[1], MSG_REFUSED, 1) && ends[1].status == EL_EXIT_CONFIG, "other settings are refused");
    ok(strstr(ends[1].text, "--nnodes=3") && strstr(ends[1].text, "with --nnodes=2"), "with both values");
    close_coordinator();
}

static bool nobody_is_here(void)
{
    return !coordinator_members(c);
}

static bool none_is_known(void)
{
    return !coordinator_jobs(c);
}

/* A job whose nodes have all gone binds nobody. */
static void test_deserted(void)
{
    struct end *a = &ends[0], *b = &ends[1];
    open_coordinator(NULL, false);
    join(a, "10.0.0.1", 0xa, settings("left", 1, 2));
    wait_type(a, MSG_OPEN_STORE, 1);
    about_round(a, MSG_STORE_READY);
    ok(wait_type(a, MSG_WORLD, 1) && a->number == 1, "a job of one node");
    uint64_t coord = a->coord;
    join(b, "10.0.0.2", 0xb, settings("left", 1, 1));
    ok(wait_type(b, MSG_REFUSED, 1), "other settings are refused while it is here");
    hang_up(a);
    ok(wait_for(nobody_is_here), "it has gone");
    join(b, "10.0.0.2", 0xb, settings("left", 1, 1));
    ok(wait_type(b, MSG_OPEN_STORE, 1), "then who comes with other settings begins anew");
    ok(b->number == 2 && b->coord == coord, "with a number that was not given out before");
    close_coordinator();

    struct msg_hello h = settings("left", 2, 2);
    h.join_timeout_ms = 200;
    open_coordinator(NULL, false);
    join(a, "10.0.0.1", 0xa, h);
    wait_type(a, MSG_WAIT, 1);
    hang_up(a);
    ok(wait_for(none_is_known), "after the join time-out it is forgotten");
    join(b, "10.0.0.2", 0xb, h);
    ok(wait_type(b, MSG_WAIT, 1) && !b->count[MSG_END],
       "and who comes then is not told of an end that nobody has seen");
    close_coordinator();
}

/* How a job ended is known for a while. */
static void test_forgotten(void)
{
    struct end *a = &ends[0], *b = &ends[1];
    struct el_err e = {0};
    struct coordinator_conf conf = {.surely_new = true, .keep_ended = EL_MS(700)};
    c = coordinator_new(loop, pool, &conf, &e);
    join(a, "10.0.0.1", 0xa, settings("short", 1, 1));
    wait_type(a, MSG_OPEN_STORE, 1);
    about_round(a, MSG_STORE_READY);
    wait_type(a, MSG_WORLD, 1);
    about_round(a, MSG_SUCCEEDED);
    wait_type(a, MSG_END, 1);
    about_round(a, MSG_END_ACK);
    wait_for(nothing_runs);
    join(b, "10.0.0.2", 0xb, settings("short", 1, 1));
    ok(wait_type(b, MSG_END, 1), "an ended job is known");
    about_round(b, MSG_END_ACK);
    hang_up(a);
    ok(wait_for(none_is_known), "until its time is over");
    join(b, "10.0.0.2", 0xc, settings("short", 1, 1));
    ok(wait_type(b, MSG_OPEN_STORE, 1), "then its name is free for another one");
    close_coordinator();
}

/* --- the journal -------------------------------------------------------------------------------------------------- */

static char folder[64];

static size_t read_file(const char *name, char *to, size_t room)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

static void append(const char *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/journal", folder);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ok(fd >= 0 && write(fd, bytes, n) == (ssize_t)n, "something is put behind the journal");
    close(fd);
}

static void test_journal(void)
{
    static char text[65536];
    struct el_err e = {0};
    snprintf(folder, sizeof folder, "%s/coordinator.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        exit(1);
    open_coordinator(folder, false);
    struct coordinator_conf conf = {.state_dir = folder};
    ok(!coordinator_new(loop, pool, &conf, &e) && e.status == EL_EXIT_TEMPFAIL,
       "a second coordinator on the folder: 75");
    ok(strstr(e.text, "in use") != NULL, "with the reason");
    form(&ends[0], &ends[1], "kept", 1);
    uint64_t coord = ends[0].coord;
    read_file("journal", text, sizeof text);
    ok(strstr(text, "run=kept ") && strstr(text, " number=1 "), "when WORLD has come, the round is in the journal");
    close_coordinator();

    append("run=kept coord=12", 17);
    open_coordinator(folder, false);
    size_t n = read_file("journal", text, sizeof text);
    ok(n && text[n - 1] == '\n', "a torn end is dropped at the next start");
    struct msg_hello back = settings("kept", 1, 2);
    for (unsigned i = 0; i < 2; i++) {
        back.phase = MSG_PHASE_RUNNING;
        back.number = back.seen = 1;
        back.coord = coord;
        back.group_rank = i;
        back.group_size = 2;
        back.master_port = 4711;
        join(&ends[i], i ? "10.0.0.2" : "10.0.0.1", i ? 0xb : 0xa, back);
    }
    ok(wait_type(&ends[0], MSG_WORLD, 1) && ends[0].number == 1 && ends[0].coord == coord,
       "members that run are heard and run on in their round");
    is_num(ends[0].count[MSG_STOP] + ends[1].count[MSG_STOP], 0, "nobody is stopped");
    hang_up(&ends[1]);
    wait_type(&ends[0], MSG_STOP, 1);
    about_round(&ends[0], MSG_STOPPED);
    wait_type(&ends[0], MSG_OPEN_STORE, 1);
    about_round(&ends[0], MSG_STORE_READY);
    ok(wait_type(&ends[0], MSG_WORLD, 2) && ends[0].number == 2 && ends[0].coord != coord,
       "the next round is the next");
    close_coordinator();

    append("rot\n", 4);
    struct rdzv_record r = {.run_id = "whole"};
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    journal_encode(&r, &line);
    append(line.v, line.len);
    el_buf_free(&line);
    e = (struct el_err){0};
    ok(!coordinator_new(loop, pool, &conf, &e) && e.status == EL_EXIT_CONFIG, "damage before whole records: 78");
    ok(strstr(e.text, "damaged") && strstr(e.text, folder), "naming the file");
    static const char *const files[] = {"journal", "lock", "journal.new"};
    for (unsigned i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%s/%s", folder, files[i]);
        unlink(text);
    }
    ok(rmdir(folder) == 0, "nothing else was left in the folder");
}

int main(void)
{
    stage_open();
    test_life();
    test_two_jobs();
    test_identity();
    test_deserted();
    test_forgotten();
    test_journal();
    stage_close();
    return done();
}
