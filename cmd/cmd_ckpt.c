/* elrun ckpt: checkpoints on disk, whoever wrote them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt.h"
#include "util/text.h"
#include "util/array.h"
#include "util/parse.h"

#define MEMORY_MAX ((size_t)8 << 30)

#define ROW(heading, field) .origin = OPT_ELRUN, .group = (heading), .offset = offsetof(struct ckpt_conf, field)

static const struct opt_row rows[] = {
    {.name = "tensors", .type = OPT_FLAG, .help = "The tensors of one checkpoint or file", ROW("ls:", tensors)},
    {.name = "glob",
     .letter = 'g',
     .type = OPT_STRING,
     .arg = "PATTERN",
     .help = "Only tensors with such a name; * and ? stand for anything",
     ROW("ls:", glob)},
    {.name = "deep",
     .type = OPT_FLAG,
     .help = "Read every byte and compare it with the checksums that are there; gc always does, of the newest "
             "checkpoint, before anything is deleted",
     ROW("verify, gc:", deep)},
    {.name = "jobs",
     .letter = 'j',
     .type = OPT_UINT,
     .arg = "N",
     .min = 1,
     .max = 64,
     .help = "Files, or pieces of them, at the same time; without it one for each processor, at most 16",
     ROW("verify, gc:", jobs)},
    {.name = "add-manifest",
     .type = OPT_FLAG,
     .help = "Write a manifest with checksums beside the files of somebody else, once they are found to be whole",
     ROW("verify:", add_manifest)},
    {.name = "repair-latest",
     .type = OPT_FLAG,
     .help =
         "Make the hint of a root (latest, and Megatron's tracker if there is one) name the newest valid checkpoint",
     ROW("verify:", repair_latest)},
    {.name = "keep-last",
     .type = OPT_UINT,
     .arg = "K",
     .min = 1,
     .max = 1u << 30,
     .help = "Keep the newest K of a run; has no default",
     ROW("gc:", keep_last)},
    {.name = "keep-every",
     .type = OPT_UINT,
     .arg = "N",
     .min = 1,
     .max = 1u << 30,
     .help = "Keep steps that are a multiple of N, too",
     ROW("gc:", keep_every)},
    {.name = "foreign", .type = OPT_FLAG, .help = "Tidy up other runs, too, each for itself", ROW("gc:", foreign)},
    {.name = "dry-run", .type = OPT_FLAG, .help = "Only say what would be deleted", ROW("gc:", dry_run)},
    {.name = "wait",
     .type = OPT_DURATION,
     .arg = "TIME",
     .min = EL_MS(1),
     .max = EL_SEC(86400),
     .def = "10m",
     .help = "How long to wait until it is on disk",
     ROW("save:", wait)},
    {.name = "run-id",
     .type = OPT_STRING,
     .arg = "ID",
     .help = "verify --add-manifest: the run that is written down; gc: the run that is tidied up, instead of the one "
             "that committed last; status, save: the job, where several run on this host",
     ROW("Common:", run_id)},
    {.name = "json",
     .type = OPT_FLAG,
     .help = "As one JSON object (ls, verify, gc, status, save)",
     ROW("Common:", json)},
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun ckpt VERB",
    .operands = "[PATH ...]",
    .about = " ls [PATH]           what is there: checkpoints of a root, or one of them; --tensors\n"
             " verify PATH ...     is it whole?  --deep reads every byte, --add-manifest writes checksums\n"
             " gc ROOT             delete what --keep-last and --keep-every do not keep, if the newest is whole\n"
             " pin, unpin PATH     gc never deletes what is pinned\n"
             " cat PATH TENSOR     its bytes, row-major and little endian, on standard output\n"
             " status              snapshots of jobs on this host: newest in memory and on disk, and their ages\n"
             " save                bring the newest that such a job holds in memory to its --ckpt-dir, and wait\n"
             "PATH is a root, a checkpoint in it, or a file: elrun's own, safetensors, Hugging Face and its cache, "
             "torch.save, "
             "torch.distributed.checkpoint, DeepSpeed, Trainer, Megatron-LM, ATorch.\n"
             "Ends with 0: fine; 1: damaged; 3: incomplete; 4: not supported, or unproved; 66: cannot be read.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

/* Which verbs an option is for. */
static const struct {
    const char *option, *verbs;
} uses[] = {
    {"tensors", "ls"},
    {"glob", "ls"},
    {"deep", "verify|gc"},
    {"jobs", "ls|verify|gc"},
    {"wait", "save"},
    {"run-id", "verify|gc|status|save"},
    {"add-manifest", "verify"},
    {"repair-latest", "verify"},
    {"keep-last", "gc"},
    {"keep-every", "gc"},
    {"foreign", "gc"},
    {"dry-run", "gc"},
    {"json", "ls|verify|gc|status|save"},
};

static const struct {
    const char *name;
    int least, most; /* operands */
    int (*run)(struct ckpt_call *c, struct el_err *e);
    const char *usage;
} verbs[] = {
    {"ls", 0, 1, ckpt_ls, "at most one PATH"},
    {"verify", 1, 4096, ckpt_verify, "a PATH or several"},
    {"gc", 1, 1, ckpt_gc, "one ROOT"},
    {"pin", 1, 4096, ckpt_pin, "a PATH or several"},
    {"unpin", 1, 4096, ckpt_unpin, "a PATH or several"},
    {"cat", 2, 2, ckpt_cat, "PATH and TENSOR"},
    {"status", 0, 0, ckpt_status, "no operand"},
    {"save", 0, 0, ckpt_save, "no operand"},
};

/* --- words -------------------------------------------------------------------------------------------------------- */

const char *ckpt_size(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;
    for (; v >= 1000 && u + 1 < COUNT_OF(units); u++)
        v /= 1024;
    snprintf(out, 32, u && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return out;
}

void ckpt_put_string(struct el_buf *out, const char *name, const char *value)
{
    el_buf_printf(out, "\"%s\": ", name);
    text_json(out, value, strlen(value));
}

void ckpt_put_shown(struct el_buf *out, const char *text)
{
    char shown[4 * CKPT_PATH_MAX];
    el_buf_puts(out, el_show_path(text, shown, sizeof shown));
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* path of its directory; "/" for what stands there. */
static char *cmd_ckpt_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Of what lies in a cache of the Hugging Face hub the links lead to blobs beside its snapshots: the root is the cache
 * of that model.  NULL: it is none. */
static char *hub_above(const char *path)
{
    size_t all = strlen(path), last = strlen("/" CKPT_HUB_SNAPSHOTS);
    bool itself = all > last && strcmp(path + all - last, "/" CKPT_HUB_SNAPSHOTS) == 0;
    size_t n = itself ? all - last + 1 : ckpt_hub_of(path);
    struct stat st;
    char *blobs = NULL;
    if (n == SIZE_MAX || n < 2 || asprintf(&blobs, "%.*s" CKPT_HUB_BLOBS, (int)n, path) < 0)
        return NULL;
    bool there = stat(blobs, &st) == 0 && S_ISDIR(st.st_mode);
    free(blobs);
    return there ? strndup(path, n - 1) : NULL;
}

int ckpt_place_open(struct ckpt_place *p, const char *path, struct el_err *e)
{
    char shown[EL_PATH_MAX];
    struct stat st;
    *p = (struct ckpt_place){.root = {.fd = -1}};
    el_show_path(path, shown, sizeof shown);
    p->real = realpath(path, NULL);
    if (!p->real || stat(p->real, &st) < 0)
        return el_fail_sys(e, errno == EACCES ? EL_EXIT_NOPERM : EL_EXIT_NOINPUT, errno, "%s", shown);
    bool file = S_ISREG(st.st_mode);
    if (!file && !S_ISDIR(st.st_mode))
        return el_fail(e, EL_EXIT_NOINPUT, "%s is neither a file nor a directory", shown);
    char *hub = file ? NULL : hub_above(p->real), *above = hub ? hub : cmd_ckpt_parent(p->real);
    if (!file) {
        bool all = hub && strcmp(p->real + strlen(hub), "/" CKPT_HUB_SNAPSHOTS) == 0;
        int bad = root_open(&p->root, all ? hub : p->real, false, e);
        if (!bad)
            p->fs = root_table(&p->root);
        if (bad || (scan_is_root(&p->fs, NULL) && (all || !hub)) || strcmp(p->real, "/") == 0) {
            free(above);
            return bad;
        }
        root_close(&p->root);
    }
    p->dir = file ? "" : hub ? p->real + strlen(hub) + 1 : strrchr(p->real, '/') + 1;
    int r = above ? root_open(&p->root, above, false, e) : el_fail(e, EL_EXIT_OSERR, "out of memory");
    free(above);
    if (r)
        return -1;
    p->fs = root_table(&p->root);
    p->file = file ? strrchr(p->real, '/') + 1 : NULL;
    const char *last = strrchr(path, '/');
    p->called = last ? last + 1 : path;
    return 0;
}

int ckpt_place_look(const struct ckpt_place *p, const char *dir, struct inspect *l, struct el_mem *mem,
                    struct el_err *e)
{
    int r = inspect_open(l, &p->fs, mem, dir, p->file, e);
    return r || !p->file ? r : inspect_call(l, p->called, p->file, e);
}

void ckpt_place_close(struct ckpt_place *p)
{
    root_close(&p->root);
    free(p->real);
    p->real = NULL;
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

/* The threads do the work; this one has nothing to do but to tell, so it may wait for the terminal. */
static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
    char a[32], b[32];
    (void)ctx;
    if (all)
        fprintf(stderr, "\r\033[K%s of %s (%.0f %%)", ckpt_size(done, a), ckpt_size(all > done ? all : done, b),
                all > done ? 100.0 * (double)done / (double)all : 100.0);
    fflush(stderr);
}

void ckpt_verifier(struct ckpt_call *c, struct verify *v, bool deep)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads = cpus < 1 ? 1 : cpus > 16 ? 16 : (unsigned)cpus;
    *v = (struct verify){.mem = &c->mem,
                         .deep = deep,
                         .threads = c->conf->jobs ? c->conf->jobs : threads,
                         .progress = c->progress ? show_progress : NULL};
}

void ckpt_verifier_end(struct ckpt_call *c)
{
    if (c->progress)
        fputs("\r\033[K", stderr);
}

/* --- the command line --------------------------------------------------------------------------------------------- */

static int check_options(const char *verb, const struct opt_result *r, struct el_err *e)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t k = 0; r->seen[i] == 2 && k < COUNT_OF(uses); k++)
            if (strcmp(uses[k].option, rows[i].name) == 0 && opt_choice(uses[k].verbs, verb, strlen(verb)) < 0)
                return el_fail(e, EL_EXIT_USAGE, "ckpt %s: --%s is an option of %s", verb, rows[i].name, uses[k].verbs);
    return 0;
}

static void cmd_ckpt_draw_nonce(char out[CKPT_NONCE_MAX])
{
    uint64_t v = 0;
    if (getrandom(&v, sizeof v, 0) != (ssize_t)sizeof v)
        v = (uint64_t)getpid();
    snprintf(out, CKPT_NONCE_MAX, "%016llx", (unsigned long long)v);
}

static int run_verb(size_t verb, const struct ckpt_conf *conf, int argc, char **argv, struct el_err *e)
{
    struct ckpt_call c = {.conf = conf,
                          .mem = EL_MEM_INIT(MEMORY_MAX),
                          .argc = argc,
                          .argv = argv,
                          .progress = isatty(STDERR_FILENO) == 1};
    if (argc < verbs[verb].least || argc > verbs[verb].most)
        return el_fail(e, EL_EXIT_USAGE, "ckpt %s takes %s", verbs[verb].name, verbs[verb].usage);
    cmd_ckpt_draw_nonce(c.nonce);
    int status = verbs[verb].run(&c, e);
    struct el_err why = {0};
    if (c.out.len && command_print(&c.out, &why) && !e->status)
        *e = why;
    el_buf_free(&c.out);
    return status;
}

static int cmd_ckpt_run(const struct call *call, struct el_err *e)
{
    struct ckpt_conf conf = {0};
    struct opt_result r;
    size_t verb = 0;
    char shown[EL_SHOW_MAX];
    if (!call->argc || call->argv[0][0] == '-') {
        int go = command_options(&cmd_ckpt, call, &conf, &r, e);
        return go <= 0 ? 0 : el_fail(e, EL_EXIT_USAGE, "ckpt: say what to do: " CKPT_VERBS);
    }
    while (verb < COUNT_OF(verbs) && strcmp(verbs[verb].name, call->argv[0]) != 0)
        verb++;
    if (verb == COUNT_OF(verbs))
        return el_fail(e, EL_EXIT_USAGE, "ckpt: no such verb: %s; there are " CKPT_VERBS,
                       el_show(call->argv[0], shown));
    struct call rest = {call->argc - 1, call->argv + 1, call->env};
    if (command_options(&cmd_ckpt, &rest, &conf, &r, e) <= 0 || check_options(verbs[verb].name, &r, e))
        return 0;
    return run_verb(verb, &conf, rest.argc - r.next, rest.argv + r.next, e);
}

const struct command cmd_ckpt = {.name = "ckpt",
                                 .summary = "list, verify, tidy up and save checkpoints",
                                 .options = &options,
                                 .words = CKPT_VERBS,
                                 .run = cmd_ckpt_run};
