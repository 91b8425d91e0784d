/* What a probe tells: the tables and pictures for people, in form and in number, and the JSON. */
#include <jansson.h>
#include <stdio.h>

#include "lib/tap.h"
#include "probe/report.h"
#include "probe/verdict.h"

enum { NODES_MAX = 1000 };

static struct found *found[NODES_MAX];
static const char *note[NODES_MAX];

/* A cluster in which rail `bad_rail` of node 5 is dead, node 3 is slow, node 2 has another kernel, and all have a small
 * /dev/shm. */
struct world {
    unsigned nodes, rails;
    bool broken, domains;
    bool slow_link, two_kinds, noisy; /* 0 with 1; odd and even nodes */
};

static struct pair_result result_of(const struct world *w, const struct plan_pair *pair)
{
    struct pair_result r;
    pair_result_init(&r);
    for (unsigned k = 0; k < w->rails; k++) {
        bool dead = w->broken && (pair->a == 5 || pair->b == 5) && k == w->rails - 1;
        dead |= w->domains && pair->a % 2 != pair->b % 2;
        r.rail[k].outcome = dead ? RAIL_FAILED : RAIL_OK;
        if (dead)
            snprintf(r.rail[k].reason, sizeof r.rail[k].reason, "nothing came back from 10.0.0.6:4411");
        else
            r.rail[k].value[METRIC_BW64M] = w->broken && (pair->a == 3 || pair->b == 3) ? 21000 : 47000;
        if (!dead && w->slow_link && pair->a == 0 && pair->b == 1)
            r.rail[k].value[METRIC_BW64M] = 9000;
        r.rail[k].spread[METRIC_BW64M] = w->noisy ? 16000 : 0;
        if (!dead && w->two_kinds)
            r.rail[k].value[METRIC_BW1G] = pair->a % 2 || pair->b % 2 ? 20000 : 48000;
    }
    return r;
}

static void find_things(unsigned n, bool warn)
{
    if (!found[n])
        found[n] = calloc(1, sizeof *found[n]);
    memset(found[n], 0, sizeof *found[n]);
    facts_set(&found[n]->facts, "kernel", n == 2 ? "5.10" : "6.1");
    struct finding f = finding_value(CHECK_SHM_SIZE, "", 67108864);
    f.limit = 1073741824;
    f.state = warn ? FINDING_WARN : FINDING_OK;
    findings_put(&found[n]->findings, &f);
}

static struct probe_report play(const struct world *w)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    const struct plan_pair *pair;
    char name[PLAN_NAME_MAX];
    conf.rails = w->rails;
    struct plan *p = plan_new(w->nodes, &conf, NULL);
    for (unsigned n = 0; n < w->nodes; n++) {
        snprintf(name, sizeof name, "c%02u", n);
        plan_name(p, n, name);
        plan_local(p, n, true, NULL);
        plan_domain(p, n, w->domains ? n % 2 : 0);
        find_things(n, w->broken);
    }
    for (unsigned pairs; (pairs = plan_round(p, &pair));)
        for (unsigned i = 0; i < pairs; i++) {
            struct pair_result r = result_of(w, &pair[i]);
            plan_result(p, i, &r);
        }
    return (struct probe_report){.plan = p,
                                 .found = (const struct found *const *)found,
                                 .note = note,
                                 .took_ms = 12345,
                                 .backend = "nccl",
                                 .utf8 = true,
                                 .columns = 120,
                                 .number = 7,
                                 .coord = 0xabcdef,
                                 .probe = 2};
}

static unsigned lines_of(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static const char *text_of(const struct probe_report *r, struct el_buf *b)
{
    el_buf_free(b);
    *b = EL_BUF_INIT(NULL, 0);
    report_text(r, b);
    return el_buf_cstr(b);
}

static void test_eight(void)
{
    struct probe_report r = play(&(struct world){.nodes = 8, .rails = 4, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    note[5] = "bad twice this week";
    is_str(
        text_of(&r, &b),
        "probe by nccl of 8 nodes: 6 are good, 1 is slow, 1 is bad; 3 rounds of pairs, 12.3 s\n"
        "\n"
        "   NODE  NAME                  VERDICT        MEASURED         LIMIT  WHY\n"
        "      0  c00                   good          47.0 GB/s     42.3 GB/s\n"
        "      1  c01                   good          47.0 GB/s     42.3 GB/s\n"
        "      2  c02                   good          47.0 GB/s     42.3 GB/s\n"
        "      3  c03                   slow          21.0 GB/s     42.3 GB/s  bandwidth 21.0 GB/s, at least 42.3 GB/s "
        "expected\n"
        "         -> look at cable, lanes and rate of its network card, and at what else uses it\n"
        "      4  c04                   good          47.0 GB/s     42.3 GB/s\n"
        "      5  c05                   bad                   -     42.3 GB/s  rail 3: failed with c04, c01 and c00, "
        "all "
        "good:\n"
        "         nothing came back from 10.0.0.6:4411 (bad twice this week)\n"
        "         -> take it out of the job; look at the GPU and the network card of that rail\n"
        "      6  c06                   good          47.0 GB/s     42.3 GB/s\n"
        "      7  c07                   good          47.0 GB/s     42.3 GB/s\n"
        "\n"
        "  bandwidth of each pair, its slowest rail, GB/s\n"
        "             0     1     2     3     4     5     6     7\n"
        "       0     ·  47.0     .     .  47.0  FAIL     .     .\n"
        "       1  47.0     ·     .     .     .  FAIL     .     .\n"
        "       2     .     .     ·  21.0     .     .  47.0     .\n"
        "       3     .     .  21.0     ·     .     .     .  21.0\n"
        "       4  47.0     .     .     .     ·  FAIL     .     .\n"
        "       5  FAIL  FAIL     .     .  FAIL     ·     .     .\n"
        "       6     .     .  47.0     .     .     .     ·  47.0\n"
        "       7     .     .     .  21.0     .     .  47.0     ·\n"
        "\n"
        "not in order, but no reason to leave a node out\n"
        "  warn       8 nodes (0-7): shm_size: 64 MiB, at least 1.0 GiB expected\n"
        "             -> NCCL and data loaders need it: docker run --ipc=host or --shm-size=8g; Kubernetes: an "
        "emptyDir with\n"
        "                medium: Memory\n"
        "\n"
        "not the same on all nodes\n"
        "  kernel: 6.1 on 7 nodes, but 5.10 on c02\n",
        "eight nodes: who is bad, who is slow, the picture, what else is not in order");
    is_num(report_status(&r, false, false), 1, "... status 1: somebody is bad");
    el_buf_free(&b);
    b = EL_BUF_INIT(NULL, 0);
    report_node(&r, 5, &b);
    is_str(
        el_buf_cstr(&b),
        "c05 is bad: rail 3: failed with c04, c01 and c00, all good: nothing came back from 10.0.0.6:4411 (bad twice "
        "this week)\n",
        "one line about one node");
    note[5] = NULL;
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_forms(void)
{
    struct probe_report r = play(&(struct world){.nodes = 16, .rails = 1, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    ok(!strchr(text_of(&r, &b), '\033'), "no colours where there is no terminal");
    r.colour = true;
    ok(strstr(text_of(&r, &b), "\033[31mFAIL\033[0m"), "on one that wants them what failed is red");
    r.colour = false;
    r.columns = 80;
    ok(strstr(text_of(&r, &b), "  ▄  "), "16 nodes on a narrow terminal: blocks instead of figures");
    unsigned widest = 0;
    for (const char *line = strstr(text_of(&r, &b), "bandwidth of each pair"); line && *line; line++) {
        unsigned width = 0;
        for (; *line && *line != '\n'; line++)
            width += ((unsigned char)*line & 0xc0) != 0x80;
        widest = width > widest && width < 80 ? width : widest;
    }
    ok(widest <= 80, "... which fit");
    r.utf8 = false;
    const char *plain = text_of(&r, &b);
    while (*plain && !((unsigned char)*plain & 0x80))
        plain++;
    ok(!*plain, "... and figures where the locale has no blocks");
    plan_free(r.plan);
    el_buf_free(&b);
}

/* Words without white space. */
static size_t squeeze(const char *text, char *to)
{
    size_t n = 0;
    for (; *text; text++)
        if (*text != ' ' && *text != '\n')
            to[n++] = *text;
    to[n] = 0;
    return n;
}

static void test_narrow(void)
{
    static char whole[65536], narrow[65536];
    struct probe_report r = play(&(struct world){.nodes = 8, .rails = 4, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    r.columns = 0;
    squeeze(text_of(&r, &b), whole);
    for (unsigned columns = 40; columns <= 200; columns += 8) {
        r.columns = columns;
        r.colour = columns % 16 == 0;
        unsigned widest = 0, width = 0;
        for (const char *c = text_of(&r, &b); *c; c++) {
            if (*c == '\033')
                c = strchr(c, 'm');
            else if (*c == '\n')
                widest = width > widest ? width : widest, width = 0;
            else
                width += ((unsigned char)*c & 0xc0) != 0x80;
        }
        ok(widest <= (columns < 64 ? 64 : columns), "no line is wider than the terminal, but for its picture");
    }
    r.colour = false;
    r.columns = 120;
    squeeze(text_of(&r, &b), narrow);
    is_str(narrow, whole, "... and no word is lost");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_many(void)
{
    struct probe_report r = play(&(struct world){.nodes = 64, .rails = 8, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    const char *text = text_of(&r, &b);
    ok(lines_of(text) <= 24, "64 nodes fit on one screen");
    ok(strstr(text, "  good: 0-2,4,6-63\n"), "... the good ones in one line");
    ok(strstr(text, "       0  ███▄█X███"), "... the slow and the bad one are seen in the picture");
    plan_free(r.plan);
    r = play(&(struct world){.nodes = 1000, .rails = 1, .broken = true});
    text = text_of(&r, &b);
    ok(lines_of(text) <= 24, "1000 nodes fit on one screen");
    ok(strstr(text, "   90-100 %     998  ██"), "... as a spread");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_one(void)
{
    struct probe_report r = play(&(struct world){.nodes = 1, .rails = 1});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    r.backend = NULL;
    is_str(text_of(&r, &b),
           "probe of c00: good; 12.3 s\n"
           "\n"
           "  VERDICT    CHECK                 MEASURED        EXPECTED            OF\n"
           "  ok         shm_size              64 MiB          at least 1.0 GiB    this node\n",
           "one node: its checks");
    is_num(report_status(&r, true, false), 0, "... status 0");
    struct finding wide = finding_value(CHECK_NOFILE, "", 20000);
    wide.limit = 1e12;
    findings_put(&found[0]->findings, &wide);
    ok(strstr(text_of(&r, &b), "at least 1000000000000  this node\n"), "what is wider than its column keeps a gap");
    find_things(0, true);
    is_num(report_status(&r, false, false), 0, "a warning: status 0");
    is_num(report_status(&r, true, false), 3, "... with --strict 3");
    struct finding f = finding_unchecked(CHECK_DISK_WRITE, "/tmp", "the processor was not ours");
    f.state = FINDING_UNDECIDED;
    findings_put(&found[0]->findings, &f);
    is_num(report_status(&r, false, false), 3, "a check that could not be judged: status 3");
    ok(strstr(text_of(&r, &b), "probe of c00: undecided"), "... and said so");
    f = finding_value(CHECK_GPU_COUNT, "", 7);
    f.limit = 8;
    f.state = FINDING_BAD;
    findings_put(&found[0]->findings, &f);
    plan_local(r.plan, 0, false, "gpu_count: 7, at least 8 expected");
    is_num(report_status(&r, false, false), 1, "a bad check: status 1");
    ok(strstr(text_of(&r, &b), "\n             -> look at nvidia-smi -L"), "... with advice");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_ways(void)
{
    struct probe_report r = play(&(struct world){.nodes = 10, .rails = 1, .domains = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    const char *text = text_of(&r, &b);
    const char *way = strstr(text, "  domains 0 and 1: ");
    ok(way && strstr(way, "pairs between them"), "what fails between two switches is one thing");
    ok(way && !strstr(way + 1, "  domains 0 and 1: "), "... told once");
    is_num(report_status(&r, false, false), 0, "... and no node is to blame");
    is_num(report_status(&r, true, false), 3, "... but --strict minds");
    for (unsigned n = 0; n < 10; n++)
        plan_domain_label(r.plan, n, n % 2 ? "rack-b" : "rack-a");
    ok(strstr(text_of(&r, &b), "  domains rack-a and rack-b: "), "... by their labels, if they have some");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_slow_status(void)
{
    struct world w = {.nodes = 4, .rails = 1, .broken = true}; /* 5 is not there: 3 is slow */
    struct probe_report r = play(&w);
    is_num(report_status(&r, false, false), 0, "a straggler is told, no more");
    is_num(report_status(&r, true, false), 3, "... --strict minds");
    is_num(report_status(&r, false, true), 1, "... --exclude-straggler holds it for bad");
    plan_free(r.plan);
}

static void test_noise(void)
{
    struct probe_report r = play(&(struct world){.nodes = 4, .rails = 1, .noisy = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    ok(strstr(text_of(&r, &b), "\n  bandwidth: went up and down so much"),
       "what was too noisy to compare nodes by is told");
    plan_free(r.plan);
    r = play(&(struct world){.nodes = 4, .rails = 1});
    ok(!strstr(text_of(&r, &b), "so much"), "... and only then");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_json(void)
{
    struct probe_report r = play(&(struct world){.nodes = 8, .rails = 4, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    report_json(&r, &b);
    json_error_t e;
    json_t *o = json_loads(el_buf_cstr(&b), JSON_REJECT_DUPLICATES, &e);
    is_num(lines_of(el_buf_cstr(&b)), 1, "JSON stands on one line");
    if (!ok(o, "... and is JSON")) {
        printf("# %s at %d: %.60s\n", e.text, e.position, el_buf_cstr(&b) + (e.position > 20 ? e.position - 20 : 0));
        return;
    }
    json_t *bad = json_array_get(json_object_get(o, "nodes"), 5);
    is_num(json_array_size(json_object_get(o, "rounds")), 3, "... with its rounds");
    is_num(json_array_size(json_object_get(json_array_get(json_object_get(o, "rounds"), 0), "results")), 4,
           "... a result for each pair");
    is_str(json_string_value(json_object_get(bad, "state")), "bad", "... the state of a node");
    is_num(json_integer_value(json_array_get(json_object_get(bad, "rails"), 0)), 3, "... by which rail");
    is_num(json_array_size(json_object_get(bad, "partners")), 3, "... its partners");
    ok(json_is_null(json_array_get(json_object_get(json_object_get(bad, "metrics"), "bw64m"), 3)),
       "... what was not measured is null");
    is_num(json_array_size(json_object_get(json_object_get(o, "versions"), "kernel")), 2, "... versions that differ");
    is_str(json_string_value(json_object_get(json_object_get(o, "world_round"), "coord")), "0000000000abcdef",
           "... the round");
    json_decref(o);
    plan_free(r.plan);
    el_buf_free(&b);
}

/* What does not fit is told in brief, and is whole. */
static void test_brief(void)
{
    struct probe_report r = play(&(struct world){.nodes = 1000, .rails = 1, .broken = true});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    report_json(&r, &b);
    size_t whole = b.len;
    b.len = 0;
    r.brief = true;
    report_json(&r, &b);
    json_t *o = json_loads(el_buf_cstr(&b), JSON_REJECT_DUPLICATES, NULL);
    ok(o && json_is_true(json_object_get(o, "brief")), "in brief it is JSON, and says so");
    ok(b.len < 16384 && whole > 20 * b.len, "... and short");
    is_num(json_array_size(json_object_get(o, "nodes")), 2, "... of the nodes those that are not good");
    is_num(json_integer_value(json_object_get(json_array_get(json_object_get(o, "nodes"), 1), "node")), 5,
           "... by their numbers");
    json_decref(o);
    for (unsigned n = 0; n < 1000; n++)
        plan_local(r.plan, n, false, "it is broken, and somebody has found long words for that");
    b.len = 0;
    report_json(&r, &b);
    o = json_loads(el_buf_cstr(&b), JSON_REJECT_DUPLICATES, NULL);
    is_num(json_array_size(json_object_get(o, "nodes")), REPORT_BRIEF_MAX, "... and no more than so many");
    ok(b.len < 512 << 10, "... which fits a connection");
    json_decref(o);
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_all(void)
{
    struct probe_report r = play(&(struct world){.nodes = 4, .rails = 1});
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    ok(!strstr(text_of(&r, &b), "all checks of"), "of many nodes what is in order is not told");
    r.all = true;
    const char *text = text_of(&r, &b), *at = strstr(text, "\nall checks of c00\n");
    ok(at && strstr(at, "\n  ok         shm_size "), "... unless all is wanted");
    ok(at && (at = strstr(at, "\nall checks of c03\n")) && strstr(at, "\n  ok         shm_size "), "... of each node");
    b.len = 0;
    report_json(&r, &b);
    ok(strstr(el_buf_cstr(&b), "\"check\":\"shm_size\",\"state\":\"ok\""), "... as JSON, too");
    plan_free(r.plan);
    el_buf_free(&b);
}

static void test_round(void)
{
    struct world w = {.nodes = 8, .rails = 1, .broken = true};
    struct plan_conf conf = PLAN_CONF_INIT;
    struct probe_report r = {.plan = plan_new(8, &conf, NULL)};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    const struct plan_pair *pair;
    for (unsigned n = 0; n < 8; n++)
        plan_local(r.plan, n, true, NULL);
    unsigned pairs = plan_round(r.plan, &pair);
    report_round(&r, &b);
    is_str(el_buf_cstr(&b), "round 1: node 0 with node 1, node 2 with node 3, node 4 with node 5, node 6 with node 7",
           "progress in the first round");
    for (unsigned i = 0; i < pairs; i++) {
        struct pair_result x = result_of(&w, &pair[i]);
        plan_result(r.plan, i, &x);
    }
    plan_round(r.plan, &pair);
    b.len = 0;
    report_round(&r, &b);
    is_str(
        el_buf_cstr(&b),
        "round 2: node 0 with node 4, node 1 with node 5, node 2 with node 6, node 3 with node 7; 6 are good so far, 2 "
        "are suspect",
        "... and in the second");
    plan_free(r.plan);
    el_buf_free(&b);
}

/* Of many, and with the longest names. */
static void test_round_is_bounded(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct probe_report r = {.plan = plan_new(64, &conf, NULL)};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    const struct plan_pair *pair;
    char name[PLAN_NAME_MAX];
    for (unsigned n = 0; n < 64; n++)
        plan_local(r.plan, n, true, NULL);
    plan_round(r.plan, &pair);
    report_round(&r, &b);
    is_str(el_buf_cstr(&b),
           "round 1: node 0 with node 1, node 2 with node 3, node 4 with node 5, node 6 with node 7; 28 more pairs",
           "of many pairs some are named");
    for (unsigned n = 0; n < 64; n++) {
        snprintf(name, sizeof name, "%060u", n);
        plan_name(r.plan, n, name);
    }
    b.len = 0;
    report_round(&r, &b);
    is_str(el_buf_cstr(&b) + strlen("round 1: ") + 2 * 60 + strlen(" with "), "; 31 more pairs",
           "... fewer where names are long");
    ok(b.len <= REPORT_ROUND_MAX, "... so that the line has its bounds");
    plan_free(r.plan);
    el_buf_free(&b);
}

/* For test_verdict.sh: a cluster with everything in it that has a place in the report. */
static int print_json(void)
{
    struct world w = {.nodes = 10, .rails = 2, .broken = true, .domains = true};
    struct probe_report r = play(&w);
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    for (unsigned n = 0; n < 10; n++)
        plan_domain_label(r.plan, n, n % 2 ? "rack-b" : "rack-a");
    report_json(&r, &b);
    fputs(el_buf_cstr(&b), stdout);
    struct plan *p = r.plan;
    b.len = 0;
    w = (struct world){.nodes = 4, .rails = 1, .slow_link = true, .two_kinds = true};
    r = play(&w);
    report_json(&r, &b);
    fputs(el_buf_cstr(&b), stdout);
    plan_free(p);
    plan_free(r.plan);
    el_buf_free(&b);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--json") == 0)
        return print_json();
    test_brief();
    test_all();
    test_round();
    test_round_is_bounded();
    test_eight();
    test_forms();
    test_narrow();
    test_many();
    test_one();
    test_ways();
    test_slow_status();
    test_noise();
    test_json();
    for (unsigned n = 0; n < NODES_MAX; n++)
        free(found[n]);
    return done();
}
