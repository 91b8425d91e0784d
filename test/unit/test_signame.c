#include "lib/tap.h"
#include "sys/signame.h"

#include <signal.h>

static const char *name_of(int n)
{
    static char out[SIGNAME_MAX];
    return signame(n, out);
}

int main(void)
{
    is_str(name_of(SIGSEGV), "SIGSEGV", "a signal has its name");
    is_str(name_of(34), "SIGRTMIN", "the first real-time signal");
    is_str(name_of(64), "SIGRTMIN+30", "the last real-time signal");
    is_num(34, SIGRTMIN, "the C library begins its real-time signals where the table says");
    is_str(name_of(99), "signal 99", "no name: the number");
    is_str(name_of(-2000000000), "signal 0", "any number fits the buffer");
    is_str(name_of(0), "signal 0", "0 is none");
    int all = 1;
    for (int i = 1; i <= 64; i++)
        if (i != 32 && i != 33) {
            char out[SIGNAME_MAX];
            all &= signame_number(signame(i, out)) == i && signame_meaning(i)[0] != 0;
        }
    ok(all, "every signal: number -> name -> number, and a meaning");
    is_str(signame_meaning(33), "", "the C library's own signals have no meaning for a user");
    static const struct {
        const char *text;
        int number;
    } rows[] = {{"term", 15},   {"SIGTERM", 15}, {"SigTerm", 15}, {"15", 15},         {"0", -1},  {"65", -1},
                {"", -1},       {"SIG", -1},     {"TERMX", -1},   {"RTMIN+3", 37},    {"64", 64}, {"RTMIN+31", -1},
                {"RTMIN+", -1}, {"RTMIN-1", -1}, {"1 ", -1},      {"0000000001", -1}, {"-1", -1}, {"SIGSIGTERM", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        is_num(signame_number(rows[i].text), rows[i].number, rows[i].text[0] ? rows[i].text : "(empty)");
    return done();
}
