/* Where the bytes are: slots made and filled, an image that is none, a write after the commit, slots given back while a
 * thread still reads them. */
#include <stdio.h>
#include <unistd.h>

#include "ckpt/st.h"
#include "ckpt/vault.h"

#include "lib/tap.h"

#define BYTES (5u << 20)

static struct loop *l;
static struct keeper *k;
static struct vault *v;
static char told[256];
static bool good;
static unsigned verified;
static struct loop_timer *patience;

static void note(const char *what, bool is_good, const char *text)
{
    snprintf(told, sizeof told, "%s%s%s", what, is_good ? "" : ": ", is_good ? "" : text);
    good = is_good;
    loop_stop(l);
}

static void on_allocated(void *ctx, unsigned worker, bool is_good, const char *text)
{
    (void)ctx, (void)worker;
    note("allocated", is_good, text);
}

static void on_summed(void *ctx, unsigned worker, unsigned slot, uint64_t gen, bool is_good, const char *text)
{
    (void)ctx, (void)worker, (void)slot, (void)gen;
    note("summed", is_good, text);
}

static void on_verified(void *ctx, unsigned worker, unsigned slot, uint64_t gen, bool is_good, const char *text)
{
    (void)ctx, (void)worker, (void)slot, (void)gen;
    verified++;
    note("verified", is_good, text);
}

static void on_patience(void *ctx)
{
    (void)ctx;
    loop_stop(l);
}

static void say(struct wmsg m)
{
    struct keeper_event ev = {.type = KEEPER_EV_MSG, .msg = &m};
    keeper_step(k, &ev);
}

/* One tensor of bytes behind a header of 4096. */
static size_t write_image(char *at)
{
    uint64_t shape[] = {BYTES - 4096};
    struct st_tensor t = {.name = "w", .dtype = ST_U8, .rank = 1, .shape = shape};
    struct el_buf header = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    st_build(&t, 1, NULL, 0, 4096, &header, &e);
    memcpy(at, header.v, header.len);
    memset(at + header.len, 7, BYTES - header.len);
    size_t n = header.len;
    el_buf_free(&header);
    return n;
}

static void declare(void)
{
    say((struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .round = 1}});
    say((struct wmsg){
        .type = WMSG_PART,
        .u.part = {.name = "model", .shard_id = "all", .file = "", .header_bytes = 4096, .bytes = BYTES}});
    say((struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "", .parts = 1}});
    vault_allocate(v, k, 0);
    loop_run(l);
    is_str(told, "allocated", "slots are made");
    keeper_step(k, &(struct keeper_event){.type = KEEPER_EV_ALLOCATED, .ok = good});
}

static void test_slots(void)
{
    int fds[KEEPER_SLOTS];
    struct el_err e = {0};
    declare();
    vault_descriptors(v, 0, fds);
    char *image = malloc(BYTES);
    is_num((long long)write_image(image), 4096, "an image of one tensor");
    say((struct wmsg){.type = WMSG_SNAP_BEGIN, .u.snap_begin = {.step = 1}});
    ok(pwrite(fds[0], image, BYTES, 0) == (ssize_t)BYTES, "is written into a slot");
    vault_sum(v, k, 0, 0, 1);
    loop_run(l);
    is_str(told, "summed", "summed");
    vault_verify(v, k, 0, 0, 1);
    loop_run(l);
    is_str(told, "verified", "and is what was summed");
    int reader = vault_reader(v, 0, 0, &e);
    char back[16];
    ok(pread(reader, back, 16, 4096) == 16 && back[0] == 7 && pwrite(reader, back, 16, 0) < 0,
       "a reader reads and cannot write");
    (void)!pwrite(fds[0], "x", 1, (4 << 20) + 10);
    vault_verify(v, k, 0, 0, 1);
    loop_run(l);
    is_str(told, "verified: part \"model\" was written to after its commit: the 4 MiB from byte 4194304 on differ",
           "a late write is found, with its place");
    image[9] = '!';
    (void)!pwrite(fds[0], image, BYTES, 0);
    vault_sum(v, k, 0, 0, 1);
    loop_run(l);
    ok(!good && strstr(told, "part \"model\""), "an image that is none is refused with its part");
    free(image);
}

static void test_release(void)
{
    told[0] = 0;
    vault_sum(v, k, 0, 0, 1);
    vault_release(v, 0);
    declare();
    is_str(told, "allocated", "slots are given back while a thread reads them: nothing of the old ones is told");
    verified = 0;
    vault_verify(v, k, 0, 0, 1);
    vault_verify(v, k, 0, 1, 1);
    vault_release(v, 0);
    for (unsigned i = 0; i < 100 && verified < 2; i++) {
        loop_timer_at(patience, loop_clock() + EL_MS(100));
        loop_run(l);
    }
    is_num(verified, 2, "but who compares them is told each time: all are waited for before anything is offered");
}

int main(void)
{
    struct el_err e = {0};
    struct vault_ops ops = {.allocated = on_allocated, .summed = on_summed, .verified = on_verified};
    struct keeper_conf conf = {.workers = 1, .budget_bytes = 64u << 20};
    l = loop_new(&e);
    struct pool *p = pool_new(l, 1, &e);
    patience = loop_timer_new(l, on_patience, NULL);
    k = keeper_new(&conf, NULL);
    v = vault_new(p, 1, &ops, NULL);
    keeper_step(k, &(struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1});
    test_slots();
    keeper_step(k, &(struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1});
    test_release();
    ok(pool_free(p), "no thread is left");
    vault_free(v);
    keeper_free(k);
    loop_timer_free(patience);
    loop_free(l);
    return done();
}
