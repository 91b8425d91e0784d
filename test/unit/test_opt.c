#include <stdbool.h>
#include <stddef.h>

#include "lib/tap.h"
#include "util/array.h"
#include "util/opt.h"
#include "util/time.h"

struct target {
    bool flag, other, use;
    unsigned count, number;
    const char *text, *stop;
    el_usec span;
    int choice, custom;
};

static int set_custom(void *target, const char *value, struct el_err *e)
{
    struct target *t = target;
    if (strcmp(value, "good") != 0)
        return el_fail(e, EL_EXIT_USAGE, "want good");
    t->custom++;
    return 0;
}

#define AT(f) offsetof(struct target, f)
#define G     .group = "Group:"
/* clang-format off */
static const struct opt_row rows[] = {
    {.name = "flag", .letter = 'f', .type = OPT_FLAG, .env = "PET_FLAG", .offset = AT(flag), G, .help = "a flag"},
    {.name = "flag-other", .letter = 'o', .type = OPT_FLAG, .offset = AT(other), G, .help = "another"},
    {.name = "number", .letter = 'n', .type = OPT_UINT, .arg = "N", .min = 2, .max = 9, .def = "3", .env = "PET_NUMBER",
     .env_other = "OTHER_NUMBER", .offset = AT(number), G, .help = "a number"},
    {.name = "text-of-it", .letter = 't', .type = OPT_STRING, .arg = "TEXT", .def = "none", .offset = AT(text), G,
     .help = "a text"},
    {.name = "span", .type = OPT_DURATION, .arg = "SECONDS", .min = 1000, .max = EL_SEC(10), .def = "0.5",
     .offset = AT(span), G, .help = "a time"},
    {.name = "choice", .type = OPT_CHOICE, .arg = "WHICH", .choices = "one|two|three", .def = "two", .offset = AT(choice),
     .env = "PET_CHOICE", G, .help = "a choice"},
    {.name = "custom", .type = OPT_CUSTOM, .arg = "WORD", .set = set_custom, G, .help = "a custom value"},
    {.name = "checked", .type = OPT_UINT, .arg = "N", .max = UINT32_MAX, .offset = OPT_NOWHERE, G, .help = "only checked"},
    {.name = "verbose", .letter = 'v', .type = OPT_COUNT, .origin = OPT_ELRUN, .offset = AT(count), G, .help = "more"},
    {.name = "choosy", .type = OPT_FLAG, .origin = OPT_ELRUN, .offset = AT(use), G, .help = "spoils no prefix"},
    {.name = "help", .letter = 'h', .type = OPT_STOP, .offset = OPT_NOWHERE, G, .help = "help"},
    {.name = "print", .type = OPT_STOP, .arg = "WHAT", .offset = AT(stop), G, .help = "print"},
};
/* clang-format on */
static const struct opt_hint hints[] = {{"-np", "--number"}};
static struct opt_table table = {.command = "test",
                                 .operands = "X",
                                 .about = "A test.",
                                 .rows = rows,
                                 .n = COUNT_OF(rows),
                                 .hints = hints,
                                 .hints_count = COUNT_OF(hints)};

#define WORDS_MAX 8
static struct target got;
static struct opt_result result;
static struct el_err err;

/* Parses words divided by "|"; variables likewise. */
static int parse(const char *words, const char *variables)
{
    static char text[2][512];
    static char *v[2][WORDS_MAX + 1];
    int n[2] = {0, 0};
    const char *from[2] = {words, variables};
    for (int i = 0; i < 2; i++) {
        snprintf(text[i], sizeof text[i], "%s", from[i] ? from[i] : "");
        for (char *p = text[i]; from[i] && n[i] < WORDS_MAX;) {
            v[i][n[i]++] = p;
            p = strchr(p, '|');
            if (!p)
                break;
            *p++ = 0;
        }
        v[i][n[i]] = NULL;
    }
    memset(&got, 0, sizeof got);
    memset(&err, 0, sizeof err);
    return opt_parse(&table, n[0], v[0], v[1], &got, &result, &err);
}

static char **words_of(const char *words)
{
    static char text[256];
    static char *v[WORDS_MAX + 1];
    int n = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *p = strtok(text, "|"); p && n < WORDS_MAX; p = strtok(NULL, "|"))
        v[n++] = p;
    v[n] = NULL;
    return v;
}

static int parse_words(char **v, int n)
{
    memset(&got, 0, sizeof got);
    memset(&err, 0, sizeof err);
    return opt_parse(&table, n, v, NULL, &got, &result, &err);
}

static bool is_list(char **v, const char *words)
{
    char text[256] = "";
    for (; *v; v++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "|" : "", *v);
    return strcmp(text, words) == 0;
}

static void test_spellings(void)
{
    ok(!parse(NULL, NULL) && got.number == 3 && !strcmp(got.text, "none") && got.span == 500000 && got.choice == 1 &&
           !got.flag && result.next == 0,
       "no words: defaults");
    table.foreign = true;
    ok(!parse("--number|5|x|--flag", NULL) && got.number == 5 && result.next == 2 && !got.flag,
       "--opt value; parsing stops at the first operand where the others are foreign");
    table.foreign = false;
    char **v = words_of("x|--number|5|y|--flag|z");
    ok(!parse_words(v, 6) && got.number == 5 && got.flag && result.next == 3 && is_list(v, "--number|5|--flag|x|y|z"),
       "else options are taken wherever they stand, and operands are behind them, in order");
    v = words_of("x|--flag|-|--|--number|y");
    ok(!parse_words(v, 6) && got.flag && got.number == 3 && result.next == 2 && is_list(v, "--flag|--|x|-|--number|y"),
       "behind -- all are operands");
    ok(parse("x|--number", NULL) && strstr(err.text, "--number needs a value"), "an operand in front is not its value");
    ok(!parse("--number=5", NULL) && got.number == 5, "--opt=value");
    ok(!parse("-n5", NULL) && got.number == 5, "-n5");
    ok(!parse("-n|5", NULL) && got.number == 5, "-n 5");
    ok(!parse("-n=5", NULL) && got.number == 5, "-n=5");
    ok(!parse("-fvvn5", NULL) && got.flag && got.count == 2 && got.number == 5, "short options in one word");
    ok(!parse("--text_of_it=a_b", NULL) && !strcmp(got.text, "a_b"), "underscores in the name, not in the value");
    ok(!parse("--text-of_it|a=b", NULL) && !strcmp(got.text, "a=b"), "mixed spelling, = in the value");
    ok(!parse("--text=", NULL) && !strcmp(got.text, ""), "an empty value");
    ok(!parse("--|--flag", NULL) && result.next == 1 && !got.flag, "-- ends the options");
    ok(!parse("-f|-|-o", NULL) && result.next == 2 && got.other, "- is an operand");
    ok(!parse("--number=4|--number=5", NULL) && got.number == 5, "the last one wins");
    ok(!parse("-t|-5", NULL) && !strcmp(got.text, "-5"), "a negative number is a value");
    ok(!parse("-t|-a b", NULL) && !strcmp(got.text, "-a b"), "so is a word with a space");
    ok(!parse("-t|-", NULL) && !strcmp(got.text, "-"), "and a single dash");
    ok(!parse("--checked=4294967295", NULL), "a value that is only checked");
}

static void test_prefixes(void)
{
    ok(!parse("--num|5", NULL) && got.number == 5, "an unambiguous prefix");
    ok(!parse("--cho=one", NULL) && got.choice == 0, "elrun's own option makes no prefix ambiguous");
    ok(!parse("--flag", NULL) && got.flag && !got.other, "a whole name beats a longer one");
    ok(parse("--c=one", NULL) && !strcmp(err.text, "--c is ambiguous: it could be --choice, --custom, --checked"),
       "an ambiguous prefix names the candidates");
    ok(!parse("--flag_o", NULL) && got.other, "a prefix with an underscore");
    ok(parse("--verb", NULL) && !strcmp(err.text, "unknown option --verb; did you mean --verbose?"),
       "elrun's own options are spelled in full");
    is_num(err.status, EL_EXIT_USAGE, "a usage error");
}

static const struct error_case {
    const char *words, *variables, *text;
} error_cases[] = {
    {"--numbr=5", NULL, "unknown option --numbr=5; did you mean --number?"},
    {"--nubmer", NULL, "unknown option --nubmer; did you mean --number?"},
    {"--zzz", NULL, "unknown option --zzz"},
    {"--=3", NULL, "unknown option --=3"},
    {"-x", NULL, "unknown option -x"},
    {"-np", NULL, "--number=p: want a whole number from 2 to 9"},
    {"-number", NULL, "--number=umber: want a whole number from 2 to 9"},
    {"-choice", NULL, "unknown option -choice; did you mean --choice?"},
    {"--a\nb", NULL, "unknown option --a\\x0ab"},
    {"--number", NULL, "--number needs a value: --number=N"},
    {"--number|--flag", NULL, "--number needs a value before --flag: --number=N"},
    {"-n", NULL, "--number needs a value: --number=N"},
    {"--flag=1", NULL, "--flag takes no value, but was given \"1\""},
    {"--flag=", NULL, "--flag takes no value, but was given \"\""},
    {"-f=1", NULL, "--flag takes no value, but was given \"1\""},
    {"--number=1", NULL, "--number=1: want a whole number from 2 to 9"},
    {"--number=10", NULL, "--number=10: want a whole number from 2 to 9"},
    {"--number=-1", NULL, "--number=-1: want a whole number from 2 to 9"},
    {"--number=99999999999999999999", NULL, "--number=99999999999999999999: want a whole number from 2 to 9"},
    {"--number=", NULL, "--number=: want a whole number from 2 to 9"},
    {"--checked=4294967296", NULL, "--checked=4294967296: want a whole number, 0 or more"},
    {"--span=x", NULL, "--span=x: want a time in seconds, such as 30 or 0.5, or with a unit, such as 500ms or 5m"},
    {"--span=0", NULL, "--span=0: want a time from 0.001000 to 10 seconds"},
    {"--span=11", NULL, "--span=11: want a time from 0.001000 to 10 seconds"},
    {"--choice=four", NULL, "--choice=four: want one, two or three"},
    {"--choice=on", NULL, "--choice=on: want one, two or three"},
    {"--custom=bad", NULL, "--custom=bad: want good"},
    {"--num=1", NULL, "--number=1: want a whole number from 2 to 9"},
    {NULL, "PET_NUMBER=abc", "PET_NUMBER=abc: want a whole number from 2 to 9"},
    {NULL, "PET_NUMBER=", "PET_NUMBER=: want a whole number from 2 to 9"},
    {NULL, "OTHER_NUMBER=1", "OTHER_NUMBER=1: want a whole number from 2 to 9"},
    {NULL, "PET_CHOICE=x", "PET_CHOICE=x: want one, two or three"},
    {NULL, "PET_FLAG=yes", "PET_FLAG=yes: want 1 or 0"},
    {NULL, "PET_FLAG=", "PET_FLAG=: want 1 or 0"},
};

static void test_errors(void)
{
    for (size_t i = 0; i < COUNT_OF(error_cases); i++) {
        const struct error_case *c = &error_cases[i];
        int r = parse(c->words, c->variables);
        is_str(r == -1 && err.status == EL_EXIT_USAGE ? err.text : "(accepted)", c->text, "a usage error");
    }
    char word[600] = "--";
    memset(word + 2, 'x', sizeof word - 3);
    word[sizeof word - 1] = 0;
    char *argv[] = {word, NULL};
    struct el_err e = {0};
    ok(opt_parse(&table, 1, argv, NULL, &got, &result, &e) && strlen(e.text) < 130,
       "a very long option is cut in the message");
    memmove(word, "--number=", 9);
    memset(&e, 0, sizeof e);
    ok(opt_parse(&table, 1, argv, NULL, &got, &result, &e) && strstr(e.text, "xxx...: want"), "a very long value too");
}

static void test_environment(void)
{
    ok(!parse(NULL, "PET_NUMBER=7|PET_FLAG=1") && got.number == 7 && got.flag, "defaults from the environment");
    ok(result.seen[2] == 1 && result.seen[3] == 0, "where a value came from");
    ok(!parse("-n4", "PET_NUMBER=7") && got.number == 4 && result.seen[2] == 2, "the command line wins");
    ok(!parse("-n4", "PET_NUMBER=abc") && got.number == 4, "what does not count is not converted");
    ok(!parse(NULL, "OTHER_NUMBER=8") && got.number == 8, "the second variable");
    ok(!parse(NULL, "OTHER_NUMBER=8|PET_NUMBER=7") && got.number == 7, "the first variable wins over the second");
    ok(!parse(NULL, "PET_FLAG=0|PET_FLAGS=1|XPET_FLAG=1") && !got.flag, "0 is off; other names do not count");
    ok(!parse(NULL, "PET_FLAG=-3") && got.flag, "any integer but 0 is on, as in torchrun");
    ok(!parse("--help", "PET_NUMBER=abc") && result.stop && !strcmp(result.stop->name, "help"),
       "--help looks at nothing else");
    ok(!parse("--help|--zzz", NULL) && result.next == 1, "nor at what follows");
    ok(!parse("--print|x", NULL) && !strcmp(got.stop, "x"), "a stop with a value");
}

static void test_near(void)
{
    is_num(opt_distance("", "abc"), 3, "distance: insertions");
    is_num(opt_distance("abc", "acb"), 1, "distance: neighbours swapped");
    is_num(opt_distance("kitten", "sitting"), 3, "distance: the usual example");
    is_num(opt_distance("same", "same"), 0, "distance: none");
    char word[80];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = 0;
    ok(opt_distance(word, "a") == UINT32_MAX, "a very long word is far from everything");
}

static void test_help(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    opt_help(&table, &out);
    const char *text = el_buf_cstr(&out);
    int all = 1, wide = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char name[64];
        snprintf(name, sizeof name, "--%s", rows[i].name);
        all &= strstr(text, name) != NULL && strstr(text, rows[i].help) != NULL;
    }
    size_t column = 0;
    for (const char *p = text; *p; p++) {
        column = *p == '\n' ? 0 : column + 1;
        wide |= column > 100;
    }
    ok(all, "help names every row");
    ok(!wide, "no line is wider than 100 columns");
    ok(strstr(text, "  -n, --number=N                a number [default: 3]\n"),
       "letter, name, value, sentence, default");
    el_buf_free(&out);
}

static void test_complete(void)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    const struct opt_command commands[] = {{"run", "it's a start", &table, NULL}, {"help", "help", NULL, "a|b"}};
    for (size_t s = 0; s < COUNT_OF(shells); s++) {
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        int all = !opt_complete(shells[s], commands, 2, commands, &out);
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            all &= strstr(el_buf_cstr(&out), rows[i].name) != NULL;
        ok(all && strstr(el_buf_cstr(&out), "one two three") && !strstr(el_buf_cstr(&out), "@MAIN"), shells[s]);
        el_buf_free(&out);
    }
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    ok(opt_complete("tcsh", commands, 2, commands, &out) == -1 && !out.len, "an unknown shell is refused");
}

int main(void)
{
    test_spellings();
    test_prefixes();
    test_errors();
    test_environment();
    test_near();
    test_help();
    test_complete();
    return done();
}
