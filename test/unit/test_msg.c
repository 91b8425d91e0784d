/* The control protocol: what goes out comes in again, whole or byte by byte; what is wrong is refused with its reason;
 * the manual names every message and every field. */
#include "control/msg.h"
#include "coord/health_check.h"

#include <stdint.h>

#include "lib/tap.h"

static long feed(const struct el_buf *b, struct msg *out, struct el_err *e)
{
    struct msg_decoder d = {.greeted = true};
    *e = (struct el_err){0};
    return msg_consume(&d, b->v, b->len, out, e);
}

static struct msg a_world(void)
{
    struct msg m = {.type = MSG_WORLD};
    m.u.world = (struct msg_world){.number = 7,
                                   .coord = 0xfedcba9876543210,
                                   .token = 1,
                                   .group_rank = 2,
                                   .group_size = 3,
                                   .rank_base = 16,
                                   .world_size = 24,
                                   .role_world_size = 24,
                                   .master_addr = "fd00::1",
                                   .master_port = 29511,
                                   .restarts = 1,
                                   .max_restarts = 3,
                                   .why = "node \"b\" was lost \\ \x01 \xc3\xa9",
                                   .rank0_host = "a"};
    return m;
}

/* Every verdict there is reaches its node. */
static void test_verdicts(void)
{
    for (unsigned v = 0; v < HEALTH_VERDICTS; v++) {
        struct el_buf b = EL_BUF_INIT(NULL, 0);
        struct msg in = {.type = MSG_PROBE_VERDICT}, out;
        struct el_err e;
        in.u.probe_verdict = (struct msg_probe_verdict){
            .number = 1, .coord = 2, .probe = 3, .verdict = v, .name = "a", .text = "", .job = ""};
        ok(msg_encode(&in, &b) == 0, "a verdict is encoded");
        long n = feed(&b, &out, &e);
        is_num(n, (long)b.len, "... and decoded");
        is_num(n > 0 ? out.u.probe_verdict.verdict : HEALTH_VERDICTS, v, "... as what it was");
        if (n > 0)
            msg_release(&out);
        el_buf_free(&b);
    }
}

static void test_round_trip(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct msg in = a_world(), out;
    struct el_err e;
    ok(msg_encode(&in, &b) == 0, "WORLD is encoded");
    is_num(feed(&b, &out, &e), (long)b.len, "and decoded");
    is_num(out.type, MSG_WORLD, "the type");
    ok(out.u.world.coord == in.u.world.coord, "64 bits survive");
    is_num(out.u.world.rank_base, 16, "a number");
    is_str(out.u.world.why, in.u.world.why, "text with quotes, control characters and UTF-8");
    is_str(out.u.world.successors, "", "what was not said is empty");
    msg_release(&out);

    /* Byte by byte: MORE until the last one, and the same result. */
    struct msg_decoder d = {.greeted = true};
    long n = 0;
    for (size_t i = 0; i < b.len && n == 0; i++) {
        n = msg_consume(&d, b.v, i, &out, &e);
        if (n)
            break;
    }
    is_num(n, 0, "every prefix wants more");
    b.len = 0;
    in = (struct msg){.type = MSG_HEARTBEAT, .u.heartbeat = {.time = UINT64_MAX - 1, .own = 5, .view = MSG_VIEW_STILL}};
    ok(msg_encode(&in, &b) == 0 && b.len == 24, "a heartbeat is 24 bytes");
    ok(feed(&b, &out, &e) == 24 && out.u.heartbeat.time == UINT64_MAX - 1 && out.u.heartbeat.own == 5,
       "and comes back");
    ok(out.u.heartbeat.view == MSG_VIEW_STILL, "with what its sender knows of the coordinator");
    b.v[5] = (char)MSG_VIEWS;
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "flags"), "which is none of what there is");
    el_buf_free(&b);
}

static void test_preamble(void)
{
    struct msg_decoder d = {0};
    struct msg out;
    struct el_err e = {0};
    is_num(msg_consume(&d, "EL", 2, &out, &e), 0, "half a preamble: more");
    is_num(msg_consume(&d, "ELR1xx", 6, &out, &e), 4, "the preamble");
    is_num(out.type, MSG_NONE, "is no message");
    struct msg_decoder other = {0};
    is_num(msg_consume(&other, "SS", 2, &out, &e), -1, "an SSH server is noticed at its first bytes");
    is_str(e.text, "the other side does not speak elrun's control protocol", "and told so");
    e = (struct el_err){0};
    is_num(msg_consume(&other, "HTTP/1.1 400", 12, &out, &e), -1, "who says what it is");
    is_str(e.text, "an HTTP server listens there, not a coordinator of elrun", "is named");
}

static void test_strings(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct el_err e;
    struct msg out, in = {.type = MSG_WAIT};
    char text[2 * MSG_TEXT_MAX];
    memset(text, 0xc3, sizeof text); /* no UTF-8 at all: each becomes three bytes */
    text[sizeof text - 1] = 0;
    in.u.wait.text = text;
    ok(msg_encode(&in, &b) == 0 && feed(&b, &out, &e) > 0, "bytes that are not UTF-8 and too many do no harm");
    is_num(strlen(out.u.wait.text), MSG_TEXT_MAX, "cut to the limit");
    ok(strncmp(out.u.wait.text, "\xef\xbf\xbd", 3) == 0, "replaced");
    msg_release(&out);
    b.len = 0;
    in.u.wait.text = NULL;
    ok(msg_encode(&in, &b) == 0 && feed(&b, &out, &e) > 0 && !*out.u.wait.text, "no string is the empty string");
    msg_release(&out);
    for (size_t i = 0; i < MSG_TEXT_MAX - 1; i++)
        text[i] = 'x';
    memcpy(text + MSG_TEXT_MAX - 1, "\xe2\x82\xac", 4);
    in.u.wait.text = text;
    b.len = 0;
    ok(msg_encode(&in, &b) == 0 && feed(&b, &out, &e) > 0, "a character across the limit");
    is_num(strlen(out.u.wait.text), MSG_TEXT_MAX - 1, "is left out as a whole");
    msg_release(&out);
    struct el_buf small = EL_BUF_INIT(NULL, 20);
    ok(msg_encode(&in, &small) < 0 && small.len == 0, "a buffer that is full takes nothing of it");
    el_buf_free(&small);
    el_buf_free(&b);
}

static const struct bad {
    unsigned type;
    const char *json, *want;
} bad[] = {
    {MSG_STARTED, "{\"number\":1,\"coord\":\"1\"", "not JSON"},
    {MSG_STARTED, "[1]", "not an object"},
    {MSG_STARTED, "{\"coord\":\"1\"}", "\"number\" is missing"},
    {MSG_STARTED, "{\"number\":-1,\"coord\":\"1\"}", "\"number\" is out of range"},
    {MSG_STARTED, "{\"number\":1e3,\"coord\":\"1\"}", "\"number\" is not a whole number"},
    {MSG_STARTED, "{\"number\":\"1\",\"coord\":\"1\"}", "\"number\" is not a whole number"},
    {MSG_STARTED, "{\"number\":1,\"coord\":\"xyz\"}", "\"coord\" is not 1 to 16 hex"},
    {MSG_STARTED, "{\"number\":1,\"coord\":\"00000000000000001\"}", "\"coord\" is not 1 to 16 hex"},
    {MSG_STARTED, "{\"number\":1,\"number\":1,\"coord\":\"1\"}", "duplicate"},
    {MSG_STARTED, "{\"number\":99999999999999999999,\"coord\":\"1\"}", "not JSON"},
    {MSG_STARTED, "{\"x\":[[[[[[[[[[]]]]]]]]]]}", "nested deeper"},
    {MSG_STOPPED, "{\"number\":1,\"coord\":\"1\",\"stuck\":1}", "\"stuck\" is neither"},
    {MSG_DRAIN, "{\"node\":7}", "\"node\" is not a string"},
    {MSG_WORLD + 1000, "{}", "type 1022 is not known"},
    {MSG_HEARTBEAT, "{}", "HEARTBEAT of 2 bytes, 16 expected"},
    {MSG_STARTED, "{\"number\":0,\"coord\":\"1\"}", "STARTED: \"number\" is 0"},
    {MSG_STARTED, "{\"number\":9223372036854775807,\"coord\":\"1\"}", "\"number\" is out of range"},
    {MSG_STORE_READY, "{\"number\":1,\"coord\":\"1\",\"port\":0}", "STORE_READY: \"port\" is 0"},
    {MSG_STEP_REPORT, "{\"number\":1,\"coord\":\"1\",\"ask\":1,\"step\":1000000000000000}", "\"step\" is out of range"},
    {MSG_SCALE, "{\"min\":3,\"max\":2}", "\"min\" 3, it must not be above \"max\" 2"},
    {MSG_RESTORE, "{\"number\":1,\"coord\":\"1\",\"attempt\":0,\"what\":1,\"step\":1}", "RESTORE: \"attempt\" 0"},
};

static void frame(struct el_buf *b, unsigned type, const char *json)
{
    size_t n = strlen(json) + 4;
    const unsigned char head[] = {
        (unsigned char)n,    (unsigned char)(n >> 8),   (unsigned char)(n >> 16), 0, MSG_VERSION, 0,
        (unsigned char)type, (unsigned char)(type >> 8)};
    b->len = 0;
    el_buf_put(b, head, sizeof head);
    el_buf_puts(b, json);
}

static void test_bad(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct el_err e;
    struct msg out;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        frame(&b, bad[i].type, bad[i].json);
        int refused = feed(&b, &out, &e) < 0 && strstr(e.text, bad[i].want);
        if (!ok(refused, bad[i].want))
            printf("# got: %s\n", e.text);
    }
    frame(&b, MSG_STARTED, "{\"number\":1,\"coord\":\"a\",\"later\":{\"x\":[1,2]}}");
    ok(feed(&b, &out, &e) > 0 && out.u.started.coord == 10, "a field of a newer version is passed over");
    msg_release(&out);
    char many[3 * MSG_VALUES_MAX + 64];
    size_t n = (size_t)snprintf(many, sizeof many, "{\"x\":[");
    for (unsigned i = 0; i <= MSG_VALUES_MAX; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "1,");
    snprintf(many + n, sizeof many - n, "1]}");
    frame(&b, MSG_STARTED, many);
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "more than"), "too many values are refused before they are parsed");
    frame(&b, MSG_STARTED, "{}");
    b.v[4] = 9;
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "version 9, this is version 1"), "another version: both are named");
    frame(&b, MSG_STARTED, "{}");
    b.v[3] = 1;
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "frame of 16777"), "a frame too large is refused by its head");
    frame(&b, MSG_STARTED, "{}");
    memset(b.v, 0, 4);
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "frame of 4 bytes"), "and one that is too small");
    frame(&b, MSG_STARTED, "{}");
    b.v[5] = 1;
    ok(feed(&b, &out, &e) < 0 && strstr(e.text, "flags"), "flags that have no meaning");
    el_buf_free(&b);
}

/* Each value is within its limit, and they contradict each other. */
static void world_wants(void (*spoil)(struct msg_world *), const char *want)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct msg in = a_world(), out;
    struct el_err e;
    spoil(&in.u.world);
    msg_encode(&in, &b);
    if (!ok(feed(&b, &out, &e) < 0 && strstr(e.text, want), want))
        printf("# got: %s\n", e.text);
    el_buf_free(&b);
}

static void other_rank(struct msg_world *w)
{
    w->group_rank = 3;
}

static void other_base(struct msg_world *w)
{
    w->rank_base = 24;
}

static void other_size(struct msg_world *w)
{
    w->world_size = 2;
}

static void other_role(struct msg_world *w)
{
    w->role_rank_base = 24;
}

static void no_port(struct msg_world *w)
{
    w->master_port = 0;
}

static void hello_wants(struct msg_hello h, const char *want)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct msg in = {.type = MSG_HELLO, .u.hello = h}, out;
    struct el_err e;
    msg_encode(&in, &b);
    if (!ok(feed(&b, &out, &e) < 0 && strstr(e.text, want), want))
        printf("# got: %s\n", e.text);
    el_buf_free(&b);
}

static void test_contradictions(void)
{
    world_wants(other_rank, "WORLD: \"group_rank\" 3, it must be below \"group_size\" 3");
    world_wants(other_base, "WORLD: \"rank_base\" 24, it must be below the size 24");
    world_wants(other_size, "WORLD: 2 workers");
    world_wants(other_role, "WORLD: \"role_rank_base\" 24");
    world_wants(no_port, "WORLD: \"master_port\" is 0");
    struct msg_hello h = {.slots = 2, .group_rank = -1};
    hello_wants(h, "HELLO: \"connection\" is 0");
    h.connection = 1;
    h.slots = 0;
    hello_wants(h, "HELLO: \"slots\" is 0");
    h.slots = 2;
    h.phase = MSG_PHASE_RUNNING;
    hello_wants(h, "HELLO: \"phase\" 2 of no round");
    h.number = 1;
    h.group_rank = 3;
    h.group_size = 3;
    hello_wants(h, "HELLO: \"group_rank\" 3 of round 1, it must be below \"group_size\" 3");
}

/* man/elrun-protocol.7 has one ".It Sy NAME number" for each message and a line "name kind" for each field. */
static void test_manual(void)
{
    FILE *f = fopen("man/elrun-protocol.7", "r");
    static char page[262144];
    size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    page[n] = 0;
    if (f)
        fclose(f);
    ok(n > 0, "the manual is there");
    unsigned in_list = 0, in_page = 0, missing = 0;
    for (unsigned type = 1; type < 1000; type++) {
        if (!msg_name(type))
            continue;
        in_list++;
        char item[128];
        snprintf(item, sizeof item, "\n.It Sy %s Pq %u\n", msg_name(type), type);
        const char *at = strstr(page, item), *kind;
        if (!at) {
            printf("# not in the manual: %s %u\n", msg_name(type), type);
            missing++;
            continue;
        }
        const char *end = strstr(at + 1, "\n.It Sy ");
        const char *field;
        for (unsigned i = 0; (field = msg_field(type, i, &kind)); i++) {
            snprintf(item, sizeof item, "\n.Va %s ", field);
            const char *there = strstr(at, item);
            if (!there || (end && there > end)) {
                printf("# field not in the manual: %s.%s\n", msg_name(type), field);
                missing++;
            }
        }
    }
    for (const char *p = page; (p = strstr(p, "\n.It Sy ")); p++)
        in_page++;
    is_num(missing, 0, "the manual names every message, with its number and its fields");
    is_num(in_page, in_list, "and no other");
}

int main(void)
{
    test_round_trip();
    test_verdicts();
    test_preamble();
    test_strings();
    test_bad();
    test_contradictions();
    test_manual();
    return done();
}
