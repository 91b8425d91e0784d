#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log.h"
#include "order.h"
#include "say.h"
#include "watch.h"

enum { STATUS_ERROR = 1, STATUS_USAGE = 2 };

static const struct {
    const char *name;
    bool (*run)(const struct order *);
} role_list[] = {{"nvml", role_nvml}, {"burn", role_burn}, {"nicloop", role_nicloop}, {"pair", role_pair}};

static bool main_take_number(const char *digits, unsigned *out)
{
    unsigned long n = 0;
    if (!*digits)
        return false;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        if ((n = n * 10 + (unsigned long)(*digits - '0')) > 86400000)
            return false;
    *out = (unsigned)n;
    return !*digits;
}

static bool main_take_word(struct order *o, const char *word, bool *rail)
{
    const struct {
        const char *key;
        const char **text;
        unsigned *number;
    } list[] = {
        {"gpu", NULL, &o->gpu},           {"rail", NULL, &o->rail},
        {"expect", NULL, &o->expect},     {"id", &o->id, NULL},
        {"purelib", &o->purelib, NULL},   {"nccl", &o->nccl, NULL},
        {"cuda", &o->cuda, NULL},         {"nvml", &o->nvml, NULL},
        {"quick", NULL, &o->quick},       {"burn_ms", NULL, &o->burn_ms},
        {"init_ms", NULL, &o->init_ms},   {"step_ms", NULL, &o->step_ms},
        {"grace_ms", NULL, &o->grace_ms},
    };
    const char *equals = strchr(word, '=');
    for (size_t i = 0; equals && i < sizeof list / sizeof list[0]; i++) {
        size_t n = (size_t)(equals - word);
        if (strlen(list[i].key) != n || memcmp(list[i].key, word, n) != 0)
            continue;
        *rail = *rail || list[i].number == &o->rail;
        if (list[i].number)
            return main_take_number(equals + 1, list[i].number);
        *list[i].text = equals + 1;
        return equals[1] != 0; /* an empty id must not make a host end of a guest */
    }
    return false;
}

/* As training has it, but for what would disturb: a port that NCCL listens on, a profiler, a communicator's id for all,
 * calls that block. */
static void set_environment(void)
{
    setenv("NCCL_RAS_ENABLE", "0", 1);
    unsetenv("NCCL_PROFILER_PLUGIN");
    unsetenv("NCCL_COMM_ID");
    unsetenv("NCCL_COMM_BLOCKING");
    log_open();
}

int main(int argc, char **argv)
{
    struct order o = {.init_ms = 60000, .step_ms = 20000, .grace_ms = 5000, .burn_ms = 1000};
    bool rail = false;
    prctl(PR_SET_NAME, "elrun-gpu");
    for (int i = 2; i < argc; i++)
        if (!main_take_word(&o, argv[i], &rail)) {
            fprintf(stderr, "elrun-gpu: not a word of the GPU helper: %s\n", argv[i]);
            return STATUS_USAGE;
        }
    if (!rail)
        o.rail = o.gpu;
    for (size_t i = 0; argc > 1 && i < sizeof role_list / sizeof role_list[0]; i++) {
        if (strcmp(argv[1], role_list[i].name) != 0)
            continue;
        set_environment();
        watch_start(o.grace_ms);
        bool fine = role_list[i].run(&o);
        watch_end();
        struct say_line l;
        line_begin(&l, "end");
        line_bool(&l, "ok", fine);
        line_end(&l);
        log_relay();
        _exit(fine ? 0 : STATUS_ERROR); /* nothing is torn down: a driver may hang in that */
    }
    fprintf(stderr, "elrun-gpu: role nvml, burn, nicloop or pair is wanted\n");
    return STATUS_USAGE;
}
