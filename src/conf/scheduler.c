#include "conf/scheduler.h"

#include <string.h>

#include "util/env.h"
#include "util/array.h"
#include "util/opt.h"
#include "util/parse.h"

#define HOSTS_MAX 65536u

/* How a variable tells the number of hosts. */
enum form {
    FORM_NUMBER, /* "3" */
    FORM_NAMES,  /* "a b b" or "a,b": different names */
    FORM_PAIRS,  /* "a 4 b 4": names, each with its slots */
    FORM_JSON,   /* ["a", "b"] */
    FORM_RATIO,  /* processes, divided by the processes of one host, which is in `other` */
    FORM_PODS,   /* a number that means pods only if `other` is there */
};

#define FIRST_OF(list) "$(echo $" list " | cut -d' ' -f1)"
#define SLURM_FIRST    "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)"

/* In the order in which they are believed: a step knows better than its allocation, a scheduler better than the MPI
 * that it started. */
static const struct scheduler_row {
    const char *system, *variable;
    enum form form;
    const char *other, *advice;
} rows[] = {
    {"Slurm", "SLURM_STEP_NUM_NODES", FORM_NUMBER, NULL, SLURM_FIRST},
    {"Slurm", "SLURM_JOB_NUM_NODES", FORM_NUMBER, NULL, SLURM_FIRST},
    {"Slurm", "SLURM_NNODES", FORM_NUMBER, NULL, SLURM_FIRST},
    {"PBS", "PBS_NUM_NODES", FORM_NUMBER, NULL, "$(head -n1 $PBS_NODEFILE)"},
    {"LSF", "LSB_MCPU_HOSTS", FORM_PAIRS, NULL, FIRST_OF("LSB_MCPU_HOSTS")},
    {"LSF", "LSB_HOSTS", FORM_NAMES, NULL, FIRST_OF("LSB_HOSTS")},
    {"Grid Engine", "NHOSTS", FORM_NUMBER, NULL, "$(head -n1 $PE_HOSTFILE | cut -d' ' -f1)"},
    {"Flux", "FLUX_JOB_NNODES", FORM_NUMBER, NULL, "$(flux hostlist -n 0 local)"},
    {"SageMaker", "SM_HOSTS", FORM_JSON, NULL, "algo-1"},
    {"SkyPilot", "SKYPILOT_NUM_NODES", FORM_NUMBER, NULL, "$(echo \"$SKYPILOT_NODE_IPS\" | head -n1)"},
    {"Azure ML", "AZUREML_NODE_COUNT", FORM_NUMBER, NULL, "$MASTER_ADDR"},
    {"Volcano", "VC_WORKER_NUM", FORM_NUMBER, NULL, "the name of the first pod"},
    {"a Kubernetes operator", "WORLD_SIZE", FORM_PODS, "KUBERNETES_SERVICE_HOST", "the name of the first pod"},
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", FORM_RATIO, "OMPI_COMM_WORLD_LOCAL_SIZE", "the first host's name"},
    {"MPI", "PMI_SIZE", FORM_RATIO, "MPI_LOCALNRANKS", "the first host's name"},
};

static uint64_t scheduler_number(const char *text)
{
    uint64_t n;
    return text && el_parse_u64(text, &n) == 0 ? n : 0;
}

/* The next word behind *at, divided by blanks, commas or line ends; its length, 0 at the end. */
static size_t next_word(const char **at, const char **word)
{
    static const char between[] = " ,\t\n";
    const char *p = *at;
    while (*p && strchr(between, *p))
        p++;
    *word = p;
    while (*p && !strchr(between, *p))
        p++;
    *at = p;
    return (size_t)(p - *word);
}

/* More than one is all that matters: different from the first. */
static uint64_t different_names(const char *list)
{
    const char *first, *word;
    size_t first_size = next_word(&list, &first), size;
    while ((size = next_word(&list, &word)) != 0)
        if (size != first_size || memcmp(word, first, size) != 0)
            return 2;
    return first_size != 0;
}

static uint64_t count_words(const char *list)
{
    const char *word;
    uint64_t n = 0;
    while (n < 2u * HOSTS_MAX && next_word(&list, &word))
        n++;
    return n;
}

static uint64_t count_strings(const char *json)
{
    uint64_t quotes = 0;
    for (; *json && quotes < 2u * HOSTS_MAX; json++)
        quotes += *json == '"';
    return quotes / 2;
}

static uint64_t hosts(const struct scheduler_row *row, const char *value, const char *other)
{
    uint64_t all = scheduler_number(value), local = scheduler_number(other);
    switch (row->form) {
    case FORM_NUMBER: return all;
    case FORM_NAMES: return different_names(value);
    case FORM_PAIRS: return count_words(value) / 2;
    case FORM_JSON: return count_strings(value);
    case FORM_RATIO: return local ? all / local + (all % local != 0) : 0;
    case FORM_PODS: return other ? all : 0;
    }
    return 0;
}

bool scheduler_find(char *const *env, struct scheduler_finding *out)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *value = env_get(env, rows[i].variable);
        uint64_t n = value ? hosts(&rows[i], value, rows[i].other ? env_get(env, rows[i].other) : NULL) : 0;
        if (n < 2)
            continue;
        *out = (struct scheduler_finding){.system = rows[i].system,
                                          .variable = rows[i].variable,
                                          .hosts = n < HOSTS_MAX ? (unsigned)n : HOSTS_MAX,
                                          .advice = rows[i].advice};
        return true;
    }
    return false;
}

bool scheduler_started_often(char *const *env, struct scheduler_finding *out)
{
    static const struct {
        const char *system, *variable, *advice;
    } tasks[] = {
        {"Slurm", "SLURM_STEP_NUM_TASKS", SLURM_FIRST},
        {"Slurm", "SLURM_STEP_NUM_NODES", SLURM_FIRST},
        {"Open MPI", "OMPI_COMM_WORLD_SIZE", "the first host's name"},
        {"MPI", "PMI_SIZE", "the first host's name"},
        {"PALS", "PALS_NRANKS", "the first host's name"},
        {"Flux", "FLUX_JOB_SIZE", "$(flux hostlist -n 0 local)"},
    };
    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        uint64_t n = scheduler_number(env_get(env, tasks[i].variable));
        if (n < 2)
            continue;
        *out = (struct scheduler_finding){.system = tasks[i].system,
                                          .variable = tasks[i].variable,
                                          .hosts = n < HOSTS_MAX ? (unsigned)n : HOSTS_MAX,
                                          .advice = tasks[i].advice};
        return true;
    }
    return false;
}
