/* Command line and environment of `elrun run`: one byte says how many words there are, the words end with 0, the rest
 * are variables.  Whatever comes: a decision or one line of error, and the script's words untouched. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/conf_rdzv.h"
#include "conf/endpoint.h"
#include "conf/run_options.h"

#define WORDS_MAX 16
#define BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *text)
{
    assert(*text && strlen(text) < sizeof(((struct el_err *)0)->text));
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20 && *text != 0x7f);
}

/* What follows for several nodes is whole, or refused in one line. */
static void check_nodes(const struct run_conf *conf, char **env)
{
    static const uint8_t own[1][16] = {{0xfd, [15] = 5}};
    struct endpoint_facts facts = {.hostname = "node0.cluster", .own = own, .own_n = 1, .found = own};
    struct rdzv_settings set;
    struct endpoint ep;
    struct el_err e = {0}, later = {0};
    char command[32];
    if (rdzv_settings_from_conf(conf, &set, &e))
        check_line(e.text);
    else
        assert(rdzv_settings_check(&set, &e) == 0);
    e = (struct el_err){0};
    if (endpoint_choose(conf, env, 1000, &ep, &e)) {
        assert(e.status == EL_EXIT_USAGE || e.status == EL_EXIT_CONFIG);
        check_line(e.text);
        return;
    }
    for (facts.found_n = 0; facts.found_n < 2; facts.found_n++)
        if (endpoint_place(conf, &facts, &ep, &later))
            check_line(later.text);
    assert(conf->nnodes_max == 1 || ep.kind != ENDPOINT_ALONE);
    assert(ep.kind == ENDPOINT_ALONE || (*ep.host && ep.port >= 1 && ep.port <= 65535 && *ep.run_id));
    assert(strlen(endpoint_command(conf, command, sizeof command)) < sizeof command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_conf conf;
    char text[BYTES_MAX + 1], *argv[WORDS_MAX + 1], *env[WORDS_MAX + 1];
    int words = size ? data[0] % (WORDS_MAX + 1) : 0, argc = 0, variables = 0;
    struct el_err e = {0};
    if (!size || size > BYTES_MAX)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    for (char *p = text; p < text + size - 1; p += strlen(p) + 1) {
        if (argc < words)
            argv[argc++] = p;
        else if (variables < WORDS_MAX)
            env[variables++] = p;
    }
    argv[argc] = env[variables] = NULL;
    int what = conf_parse(argc, argv, env, &conf, &e);
    if (what < 0) {
        assert(e.status == EL_EXIT_USAGE);
        check_line(e.text);
        return 0;
    }
    assert(!e.status);
    if (what != CONF_DO_RUN)
        return 0;
    assert(*conf.script && conf.args >= argv && conf.args[conf.args_count] == NULL);
    /* A "--" right behind the script is the parser's own. */
    assert(conf.args[-1] == conf.script || (strcmp(conf.args[-1], "--") == 0 && conf.args[-2] == conf.script));
    assert(conf.nnodes_min >= 1 && conf.nnodes_min <= conf.nnodes_max && conf.nproc <= EL_SLOTS_MAX);
    assert(conf.output.redirects.n <= EL_SLOTS_MAX && conf.output.tee.n <= EL_SLOTS_MAX && conf.rdzv_id && conf.role);
    check_nodes(&conf, env);
    return 0;
}
