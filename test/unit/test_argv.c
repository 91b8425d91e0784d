#include "conf/argv.h"

#include "lib/tap.h"

/* Made with Python's string.Template(word).safe_substitute(local_rank="12"). */
static const struct {
    const char *word, *want;
} templates[] = {
    {"plain", "plain"},
    {"", ""},
    {"$", "$"},
    {"$$", "$"},
    {"$$$", "$$"},
    {"$$$$", "$$"},
    {"a$", "a$"},
    {"${local_rank}", "12"},
    {"$local_rank", "12"},
    {"x${local_rank}y$local_rank", "x12y12"},
    {"$local_rank.log", "12.log"},
    {"$local_rankX", "$local_rankX"},
    {"$local_rank_", "$local_rank_"},
    {"$Local_Rank", "$Local_Rank"},
    {"${LOCAL_RANK}", "${LOCAL_RANK}"},
    {"${local_rank", "${local_rank"},
    {"${local_rank }", "${local_rank }"},
    {"${ local_rank}", "${ local_rank}"},
    {"${}", "${}"},
    {"${", "${"},
    {"$}", "$}"},
    {"$1", "$1"},
    {"${1}", "${1}"},
    {"$rank ${rank}", "$rank ${rank}"},
    {"$${local_rank}", "${local_rank}"},
    {"$$$local_rank", "$12"},
    {"$$local_rank", "$local_rank"},
    {"${local_rank}$", "12$"},
    {"--out=${local_rank}/$HOME", "--out=12/$HOME"},
    {"$_x${_}", "$_x${_}"},
    {"${local_rank}${local_rank}", "1212"},
    {"$local-rank", "$local-rank"},
    {"${a${local_rank}}", "${a12}"},
    {"$\nlocal_rank", "$\nlocal_rank"},
    {"\xff\xfe$local_rank\x80${local_rank}$\xe9t\xe9", "\xff\xfe"
                                                       "12\x80"
                                                       "12$\xe9t\xe9"},
    {"$\xc3\xa9 $local_rank\xc3\xa9 ${local_rank\xc3\xa9}", "$\xc3\xa9 12\xc3\xa9 ${local_rank\xc3\xa9}"},
};

#define TEMPLATES (sizeof templates / sizeof *templates)

static void test_template(struct el_mem *mem)
{
    char *args[TEMPLATES + 1] = {NULL};
    for (size_t i = 0; i < TEMPLATES; i++)
        args[i] = (char *)(size_t)templates[i].word;
    struct argv_plan plan = {CONF_SCRIPT, "/usr/bin/python3", "train.py", args};
    char **argv = argv_worker(mem, &plan, 12, NULL);
    for (size_t i = 0; i < TEMPLATES; i++)
        is_str(argv[3 + i], templates[i].want, "template");
    ok(!argv[3 + TEMPLATES], "NULL at the end");
    el_free(mem, argv);
}

static void is_argv(struct el_mem *mem, struct argv_plan plan, const char *want, const char *what)
{
    char joined[256] = "";
    char **argv = argv_worker(mem, &plan, 3, NULL);
    for (char **a = argv; *a; a++) {
        strcat(joined, *a);
        strcat(joined, a[1] ? "|" : "");
    }
    is_str(joined, want, what);
    el_free(mem, argv);
}

int main(void)
{
    struct el_mem mem = EL_MEM_INIT(1 << 20);
    char *args[] = {"--a=$local_rank", "-u", NULL};
    test_template(&mem);
    is_argv(&mem, (struct argv_plan){CONF_SCRIPT, "py", "t$local_rank.py", args}, "py|-u|t3.py|--a=3|-u",
            "script: python -u; its name goes through the template as with torchrun");
    is_argv(&mem, (struct argv_plan){CONF_MODULE, "py", "pkg.mod", args}, "py|-u|-m|pkg.mod|--a=3|-u", "module");
    is_argv(&mem, (struct argv_plan){CONF_PROGRAM, NULL, "prog$local_rank", args}, "prog$local_rank|--a=3|-u",
            "program: its name is not a template");
    is_argv(&mem, (struct argv_plan){CONF_SCRIPT, "p$$y", "t.py", NULL}, "p$$y|-u|t.py", "nor is the interpreter");
    is_num(mem.used_bytes, 0, "nothing is left allocated");
    struct el_err e = {0};
    mem.fail_after = 0;
    ok(!argv_worker(&mem, &(struct argv_plan){CONF_SCRIPT, "py", "t.py", args}, 0, &e), "no memory: no argv");
    is_num(e.status, EL_EXIT_OSERR, "and an error");
    return done();
}
