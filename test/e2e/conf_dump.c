/* Prints what elrun makes of a command line, one "name value" a line, for options.py to compare with torchrun's
 * reading. */
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"

static void print_streams(const char *name, const struct output_streams *s)
{
    printf("%s ", name);
    if (s->all)
        printf("%u", s->value[0]);
    for (unsigned i = 0; i < s->n; i++)
        if (s->value[i])
            printf("%u:%u,", i, s->value[i]);
    printf("\n");
}

int main(int argc, char **argv, char **env)
{
    static struct run_conf conf;
    struct el_err e = {0};
    int what = conf_parse(argc - 1, argv + 1, env, &conf, &e);
    if (what != CONF_DO_RUN) {
        printf("refused %s\n", e.text);
        return 0;
    }
    static const char *const entries[] = {"file", "module", "program"};
    printf("entry %s\nscript %s\n", entries[conf.entry], conf.script);
    for (unsigned i = 0; i < conf.args_count; i++)
        printf("arg%u %s\n", i, conf.args[i]);
    printf("min_nodes %u\nmax_nodes %u\nnproc %u\nmax_restarts %u\n", conf.nnodes_min, conf.nnodes_max, conf.nproc,
           conf.max_restarts);
    printf("role %s\nbackend %s\nrun_id %s\n", conf.role, conf.rdzv_backend,
           conf.run_id_random ? "random" : conf.rdzv_id);
    printf("endpoint %s:%d\n", conf.rdzv_host, conf.rdzv_port);
    printf("local_addr %s\nlog_dir %s\n", conf.local_addr ? conf.local_addr : "",
           conf.output.log_dir ? conf.output.log_dir : "");
    print_streams("redirects", &conf.output.redirects);
    print_streams("tee", &conf.output.tee);
    printf("filter ");
    for (unsigned i = 0; conf.output.ranks_filtered && i < EL_SLOTS_MAX; i++)
        if (conf.output.rank_shown[i])
            printf("%u,", i);
    printf("\nsignals %s\n", conf.signals_to_handle);
    printf("virtual %d\nshutdown %.6f\n", conf.virtual_local_rank, (double)conf.shutdown_timeout / 1e6);
    printf("stdout %s\nstderr %s\n", conf.output.filter_stdout, conf.output.filter_stderr);
    return 0;
}
