/* What a node has to say of parts that others share: tables of tensors, told and compared piece by piece, and what is
 * kept of which step.
 * Seen to fail: a comparison that goes on beyond what both have told, one that counts a tensor of two digests twice, a
 * store that keeps every step, one that takes a later take of a step for the first. */
#include "snapshot/replicas.h"

#include <stdio.h>
#include <string.h>

#include "snapshot/replica_table.h"
#include "lib/tap.h"
#include "util/mem.h"

static char *table_of(const char *names, const char *digests)
{
    struct alike_row row[64];
    size_t n = strlen(names);
    for (size_t i = 0; i < n; i++) {
        row[i] = (struct alike_row){.digest = (unsigned char)digests[i]};
        snprintf(row[i].name, sizeof row[i].name, "net.%c", names[i]);
    }
    return alike_table(row, n);
}

/* All of two tables, in pieces of so many bytes; how many differ. */
static unsigned pieces;
static size_t differing(const char *a, const char *a_digests, const char *b, const char *b_digests, size_t size,
                        char text[128])
{
    char *table[2] = {table_of(a, a_digests), table_of(b, b_digests)}, to[2][512], after[EL_SHOW_MAX] = "";
    struct alike_names found = {.to = text, .size = 128};
    bool all = false, more[2];
    *text = 0;
    for (pieces = 0; !all && pieces < 100; pieces++) {
        const char *lines[2];
        for (unsigned i = 0; i < 2; i++)
            lines[i] = replica_table_lines(table[i], after, to[i], size, &more[i]);
        all = replica_table_compare(lines, more, after, &found);
    }
    alike_names_end(&found);
    el_free(NULL, table[0]);
    el_free(NULL, table[1]);
    return found.n;
}

static void test_tables(void)
{
    static const size_t sizes[] = {512, 80, 47, 24};
    char text[128], *table = table_of("ba", "12");
    is_str(table, "0000000000000032 net.a\n0000000000000031 net.b\n", "one line for each tensor, by name");
    el_free(NULL, table);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        is_num(differing("abcdef", "111111", "fedcba", "111111", size, text), 0, "alike, in another order");
        is_str(text, "", "none is named");
        is_num(differing("abcdef", "111111", "abcdef", "111211", size, text), 1, "one differs");
        is_str(text, "\"net.d\"", "it is named");
        is_num(differing("abcdef", "111111", "abxdef", "111111", size, text), 2, "each has one that the other lacks");
        is_str(text, "\"net.c\", \"net.x\"", "both are named");
        is_num(differing("abcdef", "111111", "", "", size, text), 6, "one has none");
        is_str(text, "\"net.a\", \"net.b\", \"net.c\" and 3 more", "the first ones are named");
        is_num(differing("aabb", "1234", "bbaa", "4321", size, text), 0, "two of one name, alike");
        is_num(differing("abb", "123", "bb", "23", size, text), 1, "also where one side tells less of them at a time");
    }
    ok(pieces > 2, "in several pieces");
    is_num(differing("aaaa", "1234", "aaaa", "1593", 512, text), 2, "of four with one name two differ");
}

static size_t said(const char *a, bool a_more, const char *b, bool b_more, char after[EL_SHOW_MAX], bool *all)
{
    char text[128] = "";
    struct alike_names found = {.to = text, .size = sizeof text};
    *all = replica_table_compare((const char *const[]){a, b}, (const bool[]){a_more, b_more}, after, &found);
    return found.n;
}

/* What a peer says ends where it is wrong, and never goes on for ever. */
static void test_hostile(void)
{
    static const char *const wrong[] = {"", "x", "5", "5 ", "5 \n", "5 a", "x a\n", "5a\n"};
    char after[EL_SHOW_MAX] = "", long_line[300];
    bool all;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_num(said(wrong[i], true, "", false, after, &all), 0, wrong[i]);
        ok(all && !*after, "nothing follows");
    }
    memset(long_line, 'a', sizeof long_line);
    memcpy(long_line, "5 ", 2);
    memcpy(long_line + sizeof long_line - 2, "\n", 2);
    ok(said(long_line, true, "5 b\n", false, after, &all) == 0 && all, "a name that is too long");
    ok(said("5 c\n5 b\n5 d\n", true, "5 c\n", false, after, &all) == 0 && !all && strcmp(after, "c") == 0,
       "names that do not ascend: up to there");
    ok(said("5 a\n", true, "5 b\n", true, after, &all) == 0 && all, "names that were told before: no more is asked");
}

static void add(struct replicas *r, const char *part, int64_t step, uint64_t lineage, uint64_t digest)
{
    replicas_add(r,
                 &(struct replica){.part = part, .shard_id = "all", .step = step, .lineage = lineage, .digest = digest},
                 table_of("a", "1"));
}

static const char *text_of(const struct replicas *r)
{
    static char text[REPLICA_CHECK_DIGESTS_TEXT + 1];
    int64_t step;
    uint64_t lineage;
    return replicas_text(r, &step, &lineage, text) ? text : NULL;
}

static void test_store(void)
{
    struct replicas *r = replicas_new();
    char want[80], name[16];
    uint64_t model = replicas_key("model", "all"), optim = replicas_key("optim", "all");
    ok(model != optim && model != replicas_key("modela", "ll"), "a key for each part and shard");
    ok(!text_of(r), "nothing to say");
    add(r, "model", 5, 1, 0x11);
    add(r, "model", 5, 1, 0x99);
    add(r, "optim", 5, 1, 0x22);
    snprintf(want, sizeof want, "%llx=11 %llx=22", (unsigned long long)model, (unsigned long long)optim);
    is_str(text_of(r), want, "digests of one step, the first of each part");
    const struct replica *x = replicas_find(r, optim, 5, 1);
    ok(x && strcmp(x->part, "optim") == 0 && strcmp(x->shard_id, "all") == 0 && x->table, "with names and a table");
    ok(!replicas_find(r, model, 5, 2) && !replicas_find(r, model, 6, 1), "of another step or history there is none");
    add(r, "model", 6, 1, 0x12);
    snprintf(want, sizeof want, "%llx=12", (unsigned long long)model);
    is_str(text_of(r), want, "of the last step");
    add(r, "model", 6, 2, 0x13);
    ok(!replicas_find(r, model, 5, 1) && replicas_find(r, model, 6, 1) && replicas_find(r, model, 6, 2) &&
           replicas_find(r, optim, 5, 1),
       "of each part the last two are kept");
    for (unsigned i = 0; i < 2 * REPLICAS_MAX; i++) {
        snprintf(name, sizeof name, "p%u", i);
        add(r, name, 7, 1, i);
    }
    ok(!replicas_find(r, model, 6, 2) && replicas_find(r, replicas_key(name, "all"), 7, 1), "the oldest ones go");
    ok(strlen(text_of(r)) <= REPLICA_CHECK_DIGESTS_TEXT, "no more is said than fits");
    replicas_forget(r);
    ok(!text_of(r), "and forgotten with the round");
    add(r, "model", 8, 1, 1);
    replicas_free(r);
}

int main(void)
{
    test_tables();
    test_hostile();
    test_store();
    return done();
}
