#include "agent/signal_settle.h"

enum { SIG_HUP = 1, SIG_INT = 2, SIG_KILL = 9, SIG_TERM = 15 }; /* Linux, x86-64 and aarch64 */

bool signal_settle_is_from_outside(int signal)
{
    return signal == SIG_TERM || signal == SIG_KILL || signal == SIG_INT || signal == SIG_HUP;
}

el_usec signal_settle_time(int signal, bool again)
{
    if (!signal_settle_is_from_outside(signal) || signal == SIG_KILL)
        return 0;
    return again ? SIGNAL_SETTLE_INSTANT : SIGNAL_SETTLE_LONG;
}
