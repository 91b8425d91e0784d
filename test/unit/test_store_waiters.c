/* Who is missing: which lines, when, and when again. */
#include "lib/tap.h"
#include "store/session.h"
#include "store/waiters.h"

static const uint8_t seed[16];
static struct el_mem mem = EL_MEM_INIT(0);
static struct kv *kv;

static void open_session(struct session *s, uint16_t port, int32_t rank, uint32_t pid)
{
    session_init(s, kv, &mem);
    el_addr_parse("10.0.0.5", s->peer.ip);
    s->peer.port = port;
    s->rank = rank;
    s->pid = pid;
}

static void await(struct session *s, struct kv_bytes key, el_usec now)
{
    kv_wait_begin(kv, &s->wait, 1);
    s->wait.since = now;
    kv_wait_for(kv, &s->wait, key);
}

static void is_report(el_usec now, const struct waiters_world *world, el_usec next, const char *want, const char *what)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    el_usec got = waiters_report(kv, world, now, EL_SEC(30), &out);
    is_str(el_buf_cstr(&out), want, what);
    is_num((long long)got, (long long)next, "and when it is due again");
    el_buf_free(&out);
}

static void test_report(void)
{
    struct session s[3];
    bool come[4] = {true, true, false, true};
    struct waiters_world nothing = {0, NULL}, world = {4, come};
    kv = kv_new(&mem, seed);
    for (int i = 0; i < 3; i++)
        open_session(&s[i], (uint16_t)(1000 + i), i < 2 ? i : -1, i == 2 ? 77 : 0);
    is_report(EL_SEC(1), &nothing, EL_NEVER, "", "nobody waits");
    await(&s[0], KV_BYTES("/default_pg/0//cpu//0/2"), EL_SEC(10));
    await(&s[1], KV_BYTES("/default_pg/0//cpu//0/2"), EL_SEC(20));
    await(&s[2], KV_BYTES("a\n\"b"), EL_SEC(35));
    is_report(EL_SEC(39), &world, EL_SEC(40), "", "not yet");
    is_report(EL_SEC(40), &world, EL_SEC(65),
              "\"/default_pg/0//cpu//0/2\" is waited for by 2 clients for 30 s: rank 0 (10.0.0.5:1000), rank 1 "
              "(10.0.0.5:1001); of 4 ranks, rank 2 has not come\n",
              "after the time: key, waiters, who, and who has not come");
    is_report(EL_SEC(65), &nothing, EL_SEC(70),
              "\"a\\x0a\\x22b\" is waited for by 1 client for 30 s: pid 77 (10.0.0.5:1002)\n",
              "bytes of a key are shown, not sent to the terminal");
    is_report(EL_SEC(70), &nothing, EL_SEC(95),
              "\"/default_pg/0//cpu//0/2\" is waited for by 2 clients for 60 s: rank 0 (10.0.0.5:1000), rank 1 "
              "(10.0.0.5:1001); rank 2 has not set it\n",
              "again when the time has doubled; without a world the key tells whose it is");
    is_report(EL_SEC(71), &nothing, EL_SEC(95), "", "and not in between");
    kv_wait_cancel(kv, &s[0].wait);
    kv_wait_cancel(kv, &s[1].wait);
    is_report(EL_SEC(94), &nothing, EL_SEC(95), "", "gone");
    session_close(&s[2]);
    is_report(EL_SEC(200), &nothing, EL_NEVER, "", "all gone");
    await(&s[0], KV_BYTES("x"), 0);
    el_usec now = EL_SEC(30), steps = 0;
    for (struct el_buf out = EL_BUF_INIT(NULL, 0); now < EL_SEC(86400); steps++, el_buf_free(&out))
        now = waiters_report(kv, &nothing, now, EL_SEC(30), &out);
    ok(steps > 20 && steps < 40, "the interval doubles, up to an hour");
    session_close(&s[0]);
    kv_free(kv);
}

static void test_list(void)
{
    static struct session s[40];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    bool come[2000] = {[1] = true};
    struct waiters_world world = {2000, come};
    char key[300];
    kv = kv_new(&mem, seed);
    waiters_list(kv, &world, 0, &out);
    is_num(out.len, 0, "nothing is listed when nobody waits");
    memset(key, 'k', sizeof key);
    for (int i = 0; i < 40; i++)
        open_session(&s[i], (uint16_t)(i + 1), -1, 0);
    for (int i = 0; i < 20; i++)
        await(&s[i], (struct kv_bytes){key, sizeof key}, 0);
    for (int i = 20; i < 40; i++)
        await(&s[i], (struct kv_bytes){key, (size_t)i}, 0);
    waiters_list(kv, &world, EL_SEC(1), &out);
    const char *text = el_buf_cstr(&out);
    ok(strstr(text, "kkk...kkk") && out.len < 8192, "long keys are cut in the middle");
    ok(strstr(text, " and 12 more; of 2000 ranks, ranks 0, 2-1999 have not come\n"),
       "many waiters are counted, ranks are ranges");
    ok(strstr(text, "13 more keys are waited for\n"), "many keys are counted");
    for (int i = 0; i < 40; i++)
        session_close(&s[i]);
    el_buf_free(&out);
    kv_free(kv);
}

int main(void)
{
    is_num(session_rank_of_key(KV_BYTES("/default_pg/0//cpu//0/12")), 12, "torch 2: rank of a key");
    is_num(session_rank_of_key(KV_BYTES("//worker/attempt_0/default_pg/0/0/rank_2")), 2, "torch 1.13: rank of a key");
    is_num(session_rank_of_key(KV_BYTES("/default_pg/0//cuda//0:1")), -1, "a key of two ranks");
    is_num(session_rank_of_key(KV_BYTES("/my/12")), -1, "another key");
    is_num(session_rank_of_key(KV_BYTES("/default_pg/0/x12")), -1, "a number that is no component");
    is_num(session_rank_of_key(KV_BYTES("/default_pg/0/12345678")), -1, "too large a rank");
    is_num(session_rank_of_key(KV_BYTES("1")), -1, "a number alone");
    test_report();
    test_list();
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
