/* Hooks: order, lanes, what waits for what, time-outs, what is left out; then random events with the invariants. */
#include "event/hook.h"

#include "lib/tap.h"
#include "util/rng.h"

static const struct hook_command commands[] = {
    {HOOK_PRE_START, "a"}, {HOOK_PRE_START, "b"}, {HOOK_INCIDENT, "c"},
    {HOOK_POST_STOP, "d"}, {HOOK_END, "e"},       {HOOK_END, "f"},
};
#define COMMANDS (unsigned)(sizeof commands / sizeof commands[0])

static struct hook_core h;
static struct hook_actions out;
static char text[4096];

/* What the actions say, in short: "+a" start, "TERM incident", "KILL incident", "forget incident", "1:good" done. */
static const char *said(void)
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < out.n; i++) {
        const struct hook_action *a = &out.v[i];
        const char *gap = i ? " " : "";
        if (a->type == HOOK_DO_START)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s+%s", gap, commands[a->command].text);
        else if (a->type == HOOK_DO_SIGNAL)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s", gap, a->signal == 9 ? "KILL" : "TERM",
                                  hook_name(a->kind));
        else if (a->type == HOOK_DO_FORGET)
            n += (size_t)snprintf(text + n, sizeof text - n, "%sforget %s", gap, hook_name(a->kind));
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%s", gap, (const char *)a->payload,
                                  a->good ? "good" : "bad");
    }
    out.n = 0;
    hook_check(&h);
    return text;
}

static bool event(enum hook_kind kind, char *payload, el_usec now)
{
    return hook_event(&h, kind, payload, now, &out);
}

static void test_start(void)
{
    hook_init(&h, commands, COMMANDS, 30);
    ok(hook_idle(&h) && hook_deadline(&h) == EL_NEVER, "nothing to do");
    event(HOOK_PRE_START, "1", 0);
    is_str(said(), "+a", "the first command of a start");
    hook_ended(&h, HOOK_PRE_START, true, 1, &out);
    is_str(said(), "+b", "then the second");
    hook_ended(&h, HOOK_PRE_START, true, 2, &out);
    is_str(said(), "1:good", "then the workers");
    event(HOOK_PRE_START, "2", 3);
    said();
    hook_ended(&h, HOOK_PRE_START, false, 4, &out);
    is_str(said(), "2:bad", "one that fails ends the start; what follows is not begun");
    event(HOOK_ROUND, "3", 5);
    is_str(said(), "3:good", "what nobody asked for is done at once");
    event(HOOK_POST_STOP, "4", 6);
    event(HOOK_PRE_START, "5", 7);
    is_str(said(), "+d", "a start waits for what tidies up");
    hook_ended(&h, HOOK_POST_STOP, false, 8, &out);
    is_str(said(), "4:bad +a", "good or not");
    hook_cancel(&h, HOOK_PRE_START, 9, &out);
    event(HOOK_PRE_START, "6", 10);
    is_str(said(), "TERM pre-start", "a start that nobody wants any more");
    hook_ended(&h, HOOK_PRE_START, true, 11, &out);
    is_str(said(), "5:bad +a", "is given up whatever it says, and the next one comes");
}

static void test_time(void)
{
    hook_init(&h, commands, COMMANDS, 30);
    event(HOOK_INCIDENT, "1", 0);
    event(HOOK_INCIDENT, "2", 1);
    is_str(said(), "+c", "one at a time");
    is_num(hook_deadline(&h), 30, "it has its time");
    hook_timeout(&h, 29, &out);
    is_str(said(), "", "not yet");
    hook_timeout(&h, 30, &out);
    is_str(said(), "TERM incident", "now");
    ok(h.lane[HOOK_INCIDENT].timed_out, "which is known");
    hook_timeout(&h, 30 + HOOK_KILL_AFTER, &out);
    is_str(said(), "KILL incident", "and then by force");
    hook_timeout(&h, 30 + 2 * HOOK_KILL_AFTER, &out);
    is_str(said(), "forget incident 1:bad +c", "what survives that holds nobody up");
    ok(!h.lane[HOOK_INCIDENT].timed_out, "the next one has not been late");
}

static void test_room(void)
{
    static char names[64][12];
    hook_init(&h, commands, COMMANDS, 30);
    unsigned taken = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        taken += event(HOOK_INCIDENT, names[i], 0);
    }
    is_num(taken, HOOK_WAITING_MAX + 1, "so many, and the one that runs");
    is_num(h.lane[HOOK_INCIDENT].missed, 40 - taken, "the rest is counted");
    said();
    hook_ended(&h, HOOK_INCIDENT, true, 1, &out);
    is_str(said(), "0:good +c", "the oldest are kept");
    ok(event(HOOK_INCIDENT, names[50], 2), "and there is room again");
}

static void test_end(void)
{
    hook_init(&h, commands, COMMANDS, 30);
    event(HOOK_INCIDENT, "1", 0);
    event(HOOK_INCIDENT, "2", 0);
    said();
    hook_finish(&h, 10);
    event(HOOK_END, "9", 10);
    is_str(said(), "", "the end waits for the others");
    hook_ended(&h, HOOK_INCIDENT, true, 20, &out);
    is_str(said(), "1:good +c", "what waits still comes");
    hook_timeout(&h, 40, &out);
    is_str(said(), "TERM incident", "but all of it has the time of one");
    hook_ended(&h, HOOK_INCIDENT, false, 41, &out);
    is_str(said(), "2:bad +e", "then the end");
    hook_ended(&h, HOOK_END, false, 42, &out);
    is_str(said(), "+f", "whose commands all run, also behind one that fails");
    hook_ended(&h, HOOK_END, true, 43, &out);
    is_str(said(), "9:bad", "one was bad");
    ok(hook_idle(&h) && hook_deadline(&h) == EL_NEVER, "over");
    hook_finish(&h, 50);
    event(HOOK_END, "9", 50);
    is_str(said(), "+e", "at once where nothing else runs");
    hook_cancel(&h, HOOK_END, 51, &out);
    is_str(said(), "TERM end", "an impatient user");
    hook_ended(&h, HOOK_END, false, 52, &out);
    is_str(said(), "9:bad", "does not see the second one");
}

static void test_names(void)
{
    for (unsigned k = 0; k < HOOK_KINDS; k++) {
        const char *name = hook_name((enum hook_kind)k);
        ok(hook_kind_of(name, (unsigned)strlen(name)) == (enum hook_kind)k, name);
    }
    ok(hook_kind_of("pre-star", 8) == HOOK_KINDS && hook_kind_of("", 0) == HOOK_KINDS, "no such event");
}

/* Every payload that was taken comes back once, whatever happens in which order. */
static void test_random(void)
{
    static char one[] = "x";
    struct el_rng rng = {.state = 7};
    unsigned long in = 0, back = 0, most = 0;
    el_usec now = 0;
    hook_init(&h, commands, COMMANDS, 1000);
    for (int i = 0; i < 200000; i++) {
        enum hook_kind k = (enum hook_kind)(el_rng_next(&rng) % HOOK_KINDS);
        now += el_rng_next(&rng) % 200;
        switch (el_rng_next(&rng) % 8) {
        case 0:
        case 1:
        case 2: in += hook_event(&h, k, one, now, &out); break;
        case 3:
        case 4:
            if (h.lane[k].state != HOOK_IDLE)
                hook_ended(&h, k, el_rng_next(&rng) % 2, now, &out);
            break;
        case 5:
            if (el_rng_next(&rng) % 16 == 0)
                hook_cancel(&h, k, now, &out);
            break;
        case 6:
            now += el_rng_next(&rng) % (2 * HOOK_KILL_AFTER);
            hook_timeout(&h, now, &out);
            break;
        default:
            if (el_rng_next(&rng) % 64 == 0)
                hook_finish(&h, now);
        }
        hook_check(&h);
        most = out.n > most ? out.n : most;
        for (unsigned a = 0; a < out.n; a++)
            back += out.v[a].type == HOOK_DO_DONE;
        out.n = 0;
    }
    for (int i = 0; i < 10000 && !hook_idle(&h); i++) {
        now += HOOK_KILL_AFTER + 1000;
        hook_timeout(&h, now, &out);
        for (unsigned a = 0; a < out.n; a++)
            back += out.v[a].type == HOOK_DO_DONE;
        out.n = 0;
    }
    ok(hook_idle(&h), "time ends everything");
    is_num(back, in, "each event that was taken is answered once");
    ok(most <= HOOK_ACTIONS_MAX, "within the list of actions");
}

int main(void)
{
    test_start();
    test_time();
    test_room();
    test_end();
    test_names();
    test_random();
    return done();
}
