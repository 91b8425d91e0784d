#include "history/goodput.h"
#include "lib/tap.h"

static const char *duration(el_usec d)
{
    static char text[24];
    return goodput_duration(d, text, sizeof text);
}

/* man/elrun-events.5 has a line ".It Va member Pq number" for each, in its section on it. */
static unsigned undocumented(const char *json)
{
    static char page[256 << 10];
    unsigned n = 0;
    FILE *man = fopen("man/elrun-events.5", "r");
    page[man ? fread(page, 1, sizeof page - 1, man) : 0] = 0;
    if (man)
        fclose(man);
    const char *section = strstr(page, "\n.Sh THE ACCOUNT\n");
    for (const char *at = json; section && (at = strchr(at, '"')); at = strchr(at + 1, '"') + 1) {
        char want[96];
        snprintf(want, sizeof want, "\n.It Va %.*s Pq number\n", (int)strcspn(at + 1, "\""), at + 1);
        n += !strstr(section, want);
    }
    return section ? n : 1;
}

/* It stops since 102 s. */
static void test_wait(struct goodput w)
{
    char line[400];
    goodput_enter(&w, ACCOUNT_WAIT, EL_SEC(102) + 10000);
    goodput_enter(&w, ACCOUNT_START, EL_SEC(107) + 10000);
    goodput_text(&w, EL_SEC(107) + 10000, line, sizeof line);
    is_str(line, "7.0s: 3.0ms starting, 1.9s running (28.4%), 10ms stopping, 5.0s waiting to start again",
           "a back-off is not stopping");
    goodput_enter(&w, ACCOUNT_FORM, EL_SEC(107) + 10000);
    goodput_waited(&w, EL_SEC(4), EL_SEC(112) + 10000);
    goodput_enter(&w, ACCOUNT_START, EL_SEC(112) + 10000);
    goodput_text(&w, EL_SEC(112) + 10000, line, sizeof line);
    is_str(
        line,
        "12.0s: 1.0s forming rounds, 3.0ms starting, 1.9s running (16.6%), 10ms stopping, 9.0s waiting to start again",
        "nor forming a round, where a coordinator waits");
}

int main(void)
{
    is_str(duration(40), "40us", "microseconds");
    is_str(duration(2540), "2.5ms", "a few milliseconds");
    is_str(duration(12999), "12ms", "milliseconds");
    is_str(duration(EL_SEC(4) + 250000), "4.2s", "seconds");
    is_str(duration(EL_SEC(185)), "3m05s", "minutes");
    is_str(duration(EL_SEC(7620)), "2h07m", "hours");
    is_str(duration(EL_SEC(273600)), "3d04h", "days");

    struct goodput a;
    char line[400];
    goodput_init(&a, EL_SEC(100));
    goodput_enter(&a, ACCOUNT_RUN, EL_SEC(100) + 3000);
    goodput_enter(&a, ACCOUNT_STOP, EL_SEC(102));
    goodput_text(&a, EL_SEC(102) + 10000, line, sizeof line);
    is_str(line, "2.0s: 3.0ms starting, 1.9s running (99.3%), 10ms stopping", "one attempt");

    test_wait(a);
    goodput_signalled(&a, EL_SEC(103)); /* without a failure of a worker's own: a stop by signal */
    goodput_failed(&a, EL_SEC(103));
    goodput_failed(&a, EL_SEC(104));
    goodput_signalled(&a, EL_SEC(103) + 40);
    goodput_started(&a, EL_SEC(103) + 9000);
    goodput_started(&a, EL_SEC(104)); /* not a restart */
    goodput_text(&a, EL_SEC(104), line, sizeof line);
    is_str(line,
           "4.0s: 3.0ms starting, 1.9s running (49.9%), 2.0s stopping; 1 restart: siblings signalled in 40us, all up "
           "again in 9.0ms",
           "a restart is counted from the first failure seen");
    a.steps = (struct steps_sum){.any = true, .made = 16, .again = 2, .step = EL_MS(100), .highest = 16};
    goodput_text(&a, EL_SEC(104), line, sizeof line);
    ok(strstr(line, "; effective 40.0%: 16 new steps of 100ms, 2 made again (200ms)"), "steps are known");
    struct el_buf json = EL_BUF_INIT(NULL, 0);
    goodput_json(&a, EL_SEC(104), &json);
    is_str(
        el_buf_cstr(&json),
        "{\"total_usec\":4000000,\"forming_usec\":0,\"starting_usec\":3000,\"running_usec\":1997000,"
        "\"stopping_usec\":2000000,\"waiting_usec\":0,\"running_share\":0.4993,\"steps_new\":16,\"step_usec\":100000,"
        "\"step_highest\":16,\"effective_usec\":1600000,\"effective_share\":0.4000,\"steps_again\":2,"
        "\"repeated_usec\":200000,\"restarts\":1,\"detect_usec\":40,\"restart_usec\":9000}",
        "the same for programs");
    is_num(undocumented(el_buf_cstr(&json)), 0, "each number is in the manual");
    a.steps.wraps = true;
    goodput_text(&a, EL_SEC(104), line, sizeof line);
    ok(strstr(line, "of 100ms (their numbers begin again within a run"), "what cannot be told is not told");
    json.len = 0;
    goodput_json(&a, EL_SEC(104), &json);
    ok(!strstr(el_buf_cstr(&json), "steps_again"), "neither to programs");
    el_buf_free(&json);
    a.steps = (struct steps_sum){.any = true, .made = 1};
    goodput_text(&a, EL_SEC(104), line, sizeof line);
    ok(!strstr(line, "effective"), "one number makes no step time, and no share");
    is_num(goodput_text(&a, EL_SEC(104), line, 20), 19, "cut at the size, with its 0");

    goodput_init(&a, 0);
    goodput_enter(&a, ACCOUNT_FORM, 0);
    goodput_enter(&a, ACCOUNT_RUN, EL_SEC(1));
    goodput_text(&a, EL_SEC(4), line, sizeof line);
    is_str(line, "4.0s: 1.0s forming rounds, 0us starting, 3.0s running (75.0%), 0us stopping", "several nodes");
    is_str(goodput_share(999999, 1000000, line, 16), "99.9%", "not all is not all");
    is_str(goodput_share(5, 5, line, 16), "100.0%", "all is all");
    is_str(goodput_share(0, 0, line, 16), "-", "of nothing");
    return done();
}
