/* Emergency checkpoint over several nodes: every way in which up to four nodes can stand at three steps, with nodes
 * that are lost, silent, have nothing, or cannot do what they said, against the rule said in other words; and the
 * single cases that it does not show. */
#include "coord/emergency_ckpt.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"

#define NODES 4
#define LIMIT EL_SEC(60)

/* How a node stands: it was lost; it never says a word; its workers are dead; they are behind a step, or in one that
 * they end within a second, or never; they cannot be copied when that is wanted. */
enum kind { LOST, MUTE, DEAD, BEHIND, LATE, STUCK, BROKEN };
struct way {
    enum kind kind;
    int64_t step;
};
static const struct way ways[] = {{LOST, 0},   {MUTE, 0}, {DEAD, 0}, {BEHIND, 1}, {BEHIND, 2},
                                  {BEHIND, 3}, {LATE, 2}, {LATE, 3}, {STUCK, 3},  {BROKEN, 3}};
#define WAYS (sizeof ways / sizeof ways[0])

/* Whose state is the same: all alike, each its own, two and two; and what is of use: memory alone, or the disk, too; or
 * the script shares what one has. */
enum shape { ALIKE, OWN, PAIRS, SHAPES };
enum use { MEMORY, DISK, SHARES, USES };

struct node {
    struct way way;
    bool has[4]; /* a slot with that step */
    bool out;    /* it could not copy */
    bool over;   /* it was told so, or will not wait any more */
    bool begun;  /* it holds its workers back */
    int64_t limit, told;
    uint64_t serial;
    struct emergency_ckpt_stand said;
};

static struct emergency_ckpt w;
static struct node node[NODES];
static unsigned n;
static enum shape shape;
static enum use use;
static el_usec now;

static unsigned group_of(unsigned i)
{
    return shape == ALIKE ? 0 : shape == OWN ? i : i / 2;
}

static int64_t begun_of(const struct node *x)
{
    bool waits = x->way.step > x->limit; /* that one may not be begun */
    return waits ? x->limit : x->way.step;
}

static enum emergency_ckpt_level level_of(const struct node *x, int64_t step)
{
    if (x->has[step])
        return EMERGENCY_CKPT_HAS;
    if (x->way.kind <= DEAD || x->out || x->over || begun_of(x) > step)
        return EMERGENCY_CKPT_NO;
    bool inside = x->way.kind == STUCK || (x->way.kind == LATE && now < EL_SEC(1));
    if (inside || x->way.step != step)
        return EMERGENCY_CKPT_MAY;
    return EMERGENCY_CKPT_CAN;
}

/* The disk: a group has the step if one of its nodes has. */
static enum emergency_ckpt_level on_disk(void *ctx, int64_t step)
{
    enum emergency_ckpt_level least = EMERGENCY_CKPT_HAS;
    (void)ctx;
    for (unsigned g = 0; g < n; g++) {
        enum emergency_ckpt_level best = EMERGENCY_CKPT_NO;
        for (unsigned i = 0; i < n; i++)
            if (group_of(i) == group_of(g) && node[i].way.kind != LOST)
                for (unsigned k = 0; k < node[i].said.n; k++)
                    if (node[i].said.at[k].step == step && node[i].said.at[k].level > best)
                        best = node[i].said.at[k].level;
        least = best < least ? best : least;
    }
    return least;
}

static void copy(struct node *x)
{
    if (x->told < 0 || level_of(x, x->told) != EMERGENCY_CKPT_CAN)
        return;
    if (x->way.kind == BROKEN)
        x->out = true;
    else
        x->has[x->told] = true;
}

static void say(unsigned i)
{
    struct node *x = &node[i];
    copy(x);
    struct emergency_ckpt_stand s = {.ends = x->way.kind == DEAD || x->over,
                                     .elsewhere = use == SHARES,
                                     .limit = x->way.kind == DEAD ? EMERGENCY_CKPT_NO_STEP : x->limit,
                                     .step = x->told,
                                     .copies = x->told > 0 && x->has[x->told],
                                     .why = ""};
    for (int64_t step = 3; step > 0; step--)
        if (level_of(x, step) != EMERGENCY_CKPT_NO)
            s.at[s.n++] = (struct emergency_ckpt_step){step, level_of(x, step)};
    s.copied = x->told > 0 && level_of(x, x->told) != EMERGENCY_CKPT_CAN &&
               (level_of(x, x->told) != EMERGENCY_CKPT_MAY || now >= EMERGENCY_CKPT_AGREE);
    s.serial = x->said.serial;
    if (memcmp(&s, &x->said, sizeof s) == 0 && s.serial)
        return;
    s.serial = ++x->serial;
    memcpy(&x->said, &s, sizeof s);
    emergency_ckpt_take(&w, i, &x->said, now);
}

static unsigned long lost_instead;

static bool has_spoken(const struct node *x)
{
    return x->way.kind != LOST && x->way.kind != MUTE;
}

/* It has said that its script takes what others have. */
static bool needs_own(const struct node *x)
{
    return use != SHARES || x->way.kind == MUTE;
}

/* The newest step that the nodes could go back to without a disk. */
static int64_t newest_common(void)
{
    for (int64_t step = 3; step > 0; step--) {
        bool all = true, any = false, needed = false;
        for (unsigned i = 0; i < n; i++) {
            if (node[i].way.kind == LOST)
                continue;
            bool one = has_spoken(&node[i]) && node[i].has[step];
            any |= one;
            needed |= needs_own(&node[i]);
            all &= one || !needs_own(&node[i]);
        }
        if (needed ? all : any)
            return step;
    }
    return EMERGENCY_CKPT_NO_STEP;
}

static void hear(unsigned i)
{
    struct node *x = &node[i];
    struct emergency_ckpt_word word;
    if (!emergency_ckpt_word(&w, i, &word) || x->way.kind <= DEAD || x->over)
        return;
    if (!x->begun) {
        x->begun = true;
        x->limit = x->way.step;
    }
    x->limit = word.limit > x->limit ? word.limit : x->limit;
    if (word.what == EMERGENCY_CKPT_COPY && word.heard == x->said.serial) {
        x->told = word.step;
        lost_instead += newest_common() != EMERGENCY_CKPT_NO_STEP && word.kept != newest_common();
    }
    x->over |= word.what == EMERGENCY_CKPT_OVER;
}

/* What was committed before: nothing, a step that all hold, or the next one, too, by the first node alone. */
enum held { NOTHING, ALL_ONE, FIRST_TWO, HELDS };

static bool held_before(unsigned i, int64_t step, enum held held)
{
    const struct way *way = &node[i].way;
    if (way->kind == LOST || held == NOTHING)
        return false;
    return step == 1 || (step == 2 && held == FIRST_TWO && i == 0 && (way->kind == DEAD || way->step >= 2));
}

static void open_all(unsigned nodes, enum held held)
{
    const struct emergency_ckpt_conf conf = {.room = NODES, .limit = LIMIT, .disk = use == DISK ? on_disk : NULL};
    n = nodes;
    now = 0;
    emergency_ckpt_init(&w, &conf, NULL);
    emergency_ckpt_round(&w, n);
    for (unsigned i = 0; i < n; i++) {
        node[i] = (struct node){.way = node[i].way, .told = EMERGENCY_CKPT_NO_STEP};
        memset(&node[i].said, 0, sizeof node[i].said);
        for (int64_t step = 1; step <= 3; step++)
            node[i].has[step] = held_before(i, step, held);
    }
}

/* The newest step that everybody could go back to in the end. */
static bool could(const struct node *x, int64_t step)
{
    return (x->way.kind == BEHIND || x->way.kind == LATE) && x->way.step == step;
}

/* Whether a step is held (and not only to be had), for those who need it in memory, and for the disk. */
static bool in_memory(int64_t step, enum held held, bool copied)
{
    bool all = true, any = false, needed = false, lost = false;
    for (unsigned i = 0; i < n; i++) {
        const struct node *x = &node[i];
        lost |= x->way.kind == LOST;
        if (x->way.kind == LOST)
            continue;
        bool one = has_spoken(x) && (held_before(i, step, held) || (copied && could(x, step)));
        any |= one;
        needed |= needs_own(x);
        all &= one || !needs_own(x);
    }
    return needed ? all && !(copied && lost) : any;
}

static bool for_disk(int64_t step, enum held held, bool copied)
{
    bool all = use == DISK;
    for (unsigned i = 0; i < n; i++) {
        bool one = false;
        for (unsigned j = 0; j < n; j++)
            one |= group_of(i) == group_of(j) && has_spoken(&node[j]) &&
                   (held_before(j, step, held) || (copied && could(&node[j], step)));
        all &= one;
    }
    return all;
}

static int64_t expected(enum held held)
{
    for (int64_t step = 3; step > 0; step--) {
        if (in_memory(step, held, false) || for_disk(step, held, false))
            return EMERGENCY_CKPT_NO_STEP;
        if (in_memory(step, held, true) || for_disk(step, held, true))
            return step;
    }
    return EMERGENCY_CKPT_NO_STEP;
}

static bool is_there(int64_t step)
{
    for (unsigned i = 0; i < n; i++)
        if (node[i].has[step])
            return true;
    return false;
}

static unsigned long ran, wrong, slow, frozen, got_some;

static bool holds_back(unsigned i)
{
    return node[i].way.kind > DEAD;
}

static void run(void)
{
    for (unsigned i = 0; i < n; i++)
        if (node[i].way.kind == LOST)
            emergency_ckpt_gone(&w, i, true);
    static const el_usec times[] = {0, EL_MS(500), EL_SEC(1), EL_MS(9999), EL_SEC(10), EL_SEC(30), LIMIT};
    for (unsigned t = 0; t < sizeof times / sizeof times[0]; t++) {
        now = times[t];
        for (uint64_t before = UINT64_MAX, news = 0; before != news;) {
            before = news;
            for (unsigned i = 0; i < n; i++) {
                bool first = w.state == EMERGENCY_CKPT_RESTING && holds_back(i);
                if (first && !node[i].begun) {
                    node[i].begun = true;
                    node[i].limit = node[i].way.step;
                }
                if (node[i].way.kind == DEAD || (node[i].begun && node[i].way.kind != LOST && node[i].way.kind != MUTE))
                    say(i);
                emergency_ckpt_advance(&w, now);
                emergency_ckpt_check(&w);
            }
            for (unsigned i = 0; i < n; i++)
                hear(i);
            news = w.state;
            for (unsigned i = 0; i < n; i++)
                news +=
                    8 * (node[i].serial + (uint64_t)(node[i].told + 1) + (uint64_t)(node[i].limit + 1) + node[i].over);
        }
        if (w.state == EMERGENCY_CKPT_IS_OVER)
            return;
    }
}

static void one(enum held held)
{
    open_all(n, held);
    bool any = false, plain = true;
    for (unsigned i = 0; i < n; i++) {
        any |= holds_back(i);
        plain &= node[i].way.kind == LOST || node[i].way.kind == DEAD || node[i].way.kind == BEHIND;
    }
    run();
    int64_t want = any ? expected(held) : EMERGENCY_CKPT_NO_STEP;
    bool good = any ? w.state == EMERGENCY_CKPT_IS_OVER : w.state == EMERGENCY_CKPT_RESTING;
    struct emergency_ckpt_end end = emergency_ckpt_end(&w);
    good &= end.step == want && (want == EMERGENCY_CKPT_NO_STEP || is_there(want));
    ran++;
    got_some += want != EMERGENCY_CKPT_NO_STEP;
    slow += plain && now > 0 && any && want == EMERGENCY_CKPT_NO_STEP ? now > EMERGENCY_CKPT_AGREE : 0;
    for (unsigned i = 0; i < n; i++)
        frozen += any && holds_back(i) && node[i].begun && !node[i].over && w.state != EMERGENCY_CKPT_IS_OVER;
    if (!good && !wrong++) {
        printf("# shape %d, use %d, held %d: got %lld, want %lld, state %d at %llu:", (int)shape, (int)use, (int)held,
               (long long)end.step, (long long)want, (int)w.state, (unsigned long long)now);
        for (unsigned i = 0; i < n; i++)
            printf(" %d at %lld", (int)node[i].way.kind, (long long)node[i].way.step);
        printf("\n");
    }
    emergency_ckpt_free(&w, NULL);
}

static void test_every_way(void)
{
    for (n = 1; n <= NODES; n++) {
        unsigned all = 1;
        for (unsigned i = 0; i < n; i++)
            all *= WAYS;
        for (unsigned at = 0; at < all; at++) {
            for (unsigned i = 0, rest = at; i < n; i++, rest /= WAYS)
                node[i].way = ways[rest % WAYS];
            for (unsigned x = 0; x < SHAPES * USES; x++) {
                shape = (enum shape)(x / USES);
                use = (enum use)(x % USES);
                one((enum held)(at % HELDS));
            }
        }
    }
    is_num(wrong, 0, "the newest step that all can have is captured, and none that they cannot");
    is_num(slow, 0, "nobody waits longer than for a step that may yet come");
    is_num(frozen, 0, "and nobody is held back in the end");
    is_num(lost_instead, 0, "what all hold is never given out before");
    ok(ran == SHAPES * USES * (10 + 100 + 1000 + 10000) && got_some > ran / 20, "of every way in which four can stand");
}

int main(void)
{
    test_every_way();
    return done();
}
