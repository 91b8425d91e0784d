#include "agent/account.h"
#include "lib/tap.h"

static const char *duration(el_usec d)
{
    static char text[24];
    return account_duration(d, text, sizeof text);
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

    struct account a;
    char line[256];
    account_init(&a, EL_SEC(100));
    account_enter(&a, ACCOUNT_RUN, EL_SEC(100) + 3000);
    account_enter(&a, ACCOUNT_STOP, EL_SEC(102));
    account_text(&a, EL_SEC(102) + 10000, line, sizeof line);
    is_str(line, "time: 2.0s: 3.0ms starting, 1.9s running, 10ms stopping", "one attempt");

    account_signalled(&a, EL_SEC(103)); /* without a failure of a worker's own: a stop by signal */
    account_failed(&a, EL_SEC(103));
    account_failed(&a, EL_SEC(104));
    account_signalled(&a, EL_SEC(103) + 40);
    account_started(&a, EL_SEC(103) + 9000);
    account_started(&a, EL_SEC(104)); /* not a restart */
    account_text(&a, EL_SEC(104), line, sizeof line);
    is_str(
        line,
        "time: 4.0s: 3.0ms starting, 1.9s running, 2.0s stopping; 1 restart: siblings signalled in 40us, all up again "
        "in 9.0ms",
        "a restart is counted from the first failure seen");
    is_num(account_text(&a, EL_SEC(104), line, 20), 19, "cut at the size, with its 0");
    return done();
}
