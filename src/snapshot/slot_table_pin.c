/* Which slot a worker may write over, what all of them have, and what is left behind when they go back (slot_pin.h). */
#include "snapshot/slot_table_private.h"

#include <assert.h>

#include "ckpt/layout.h"
#include "ckpt/lineage.h"

static_assert(SLOT_PIN_SLOTS == SLOT_TABLE_SLOTS && SLOT_PIN_NO_STEP == SLOT_TABLE_NO_STEP, "one table");

static struct slot_pin_step step_of(const struct slot_table_slot *s)
{
    return (struct slot_pin_step){s->step, s->era, s->trained, s->take};
}

/* As it is known outside, where a step is a number and a lineage. */
static uint64_t known_as(struct slot_pin_step of)
{
    return of.take ? lineage_again(of.lineage, of.step, of.take) : of.lineage;
}

static void name_outside(struct slot_pin_step *of)
{
    of->lineage = known_as(*of);
    of->take = 0;
}

void slot_table_name_slot(const struct slot_table_worker *w, struct slot_table_slot *s, int64_t step)
{
    s->step = step;
    s->rank = w->rank;
    s->era = w->era;
    s->trained = w->lineage;
    s->take = step == w->begun ? w->take : 0;
    s->lineage = known_as(step_of(s));
}

uint64_t slot_table_begun_lineage(const struct slot_table_worker *w)
{
    return known_as((struct slot_pin_step){w->begun, w->era, w->lineage, w->take});
}

static bool slot_table_pin_is_begun(const struct slot_table_worker *w, const struct slot_table_slot *s)
{
    return s->state != SLOT_TABLE_FREE && s->state != SLOT_TABLE_BROKEN && !s->vain && s->step == w->begun &&
           s->trained == w->lineage && s->take == w->take;
}

/* "while not snapshot(): sleep()" is what scripts do with a step that is left out, and it is known only afterwards:
 * until one worker has gone on from such a step, all are taken for such that will ask again.  Else other ranks would
 * give the step away, and go on without it each time anew. */
static bool insists(const struct slot_table *k, const struct slot_table_worker *w)
{
    return w->habit == HABIT_INSISTS || (w->habit == HABIT_NOT_KNOWN && !k->one_goes_on);
}

/* It has its last step in a slot, in work or committed, or asks for one once more. */
static bool has_begun(const struct slot_table *k, const struct slot_table_worker *w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (slot_table_pin_is_begun(w, &w->slot[i]))
            return true;
    return w->waits || (w->refused && insists(k, w));
}

/* It was committed: what comes now may be another state. */
static bool has_taken(const struct slot_table_worker *w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        const struct slot_table_slot *s = &w->slot[i];
        if (slot_table_pin_is_begun(w, s) && (s->state == SLOT_TABLE_SUMMING || s->state == SLOT_TABLE_COMMITTED))
            return true;
    }
    return false;
}

static struct slot_pin_step slot_table_pin_passed_by(const struct slot_table *k, const struct slot_table_worker *w)
{
    struct slot_pin_step passed = {w->begun, w->era, w->lineage, w->take};
    if (w->begun == SLOT_TABLE_NO_STEP || !has_begun(k, w))
        return passed;
    passed.step -= !w->take;
    passed.take = w->take ? w->take - 1 : UINT64_MAX; /* all takes of the one before */
    return passed;
}

static bool slot_table_pin_is_beyond(struct slot_pin_step passed, int64_t step, uint64_t take)
{
    return step != passed.step ? step > passed.step : take > passed.take;
}

/* Who has not come in this round will. */
static bool comes(const struct slot_table_worker *w)
{
    return (w->here || !w->known) && !w->absent;
}

int64_t slot_table_passed(const struct slot_table *k, const struct slot_table_worker *w, int64_t newest)
{
    int64_t passed = comes(w) ? slot_table_pin_passed_by(k, w).step : CKPT_STEP_MAX;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        const struct slot_table_slot *s = &w->slot[i];
        bool may = s->state != SLOT_TABLE_FREE && s->state != SLOT_TABLE_BROKEN && s->state != SLOT_TABLE_COMMITTED;
        passed = may && s->trained == w->lineage && s->step <= passed ? s->step - 1 : passed;
    }
    return passed > newest ? passed : newest;
}

/* --- the table --- */

static enum slot_pin_at slot_at(const struct slot_table_slot *s)
{
    switch (s->state) {
    case SLOT_TABLE_FREE:
    case SLOT_TABLE_BROKEN: return SLOT_PIN_EMPTY;
    case SLOT_TABLE_COMMITTED: return s->vain ? SLOT_PIN_USELESS : SLOT_PIN_HELD;
    case SLOT_TABLE_GROWING:
    case SLOT_TABLE_WRITING:
    case SLOT_TABLE_SUMMING:
    case SLOT_TABLE_LOADING:
    case SLOT_TABLE_CAPTURING: return SLOT_PIN_WORK;
    }
    return SLOT_PIN_WORK;
}

/* Who has declared the same: looked at once for all declarations. */
static void look_alike(struct slot_table *k)
{
    unsigned n = k->conf.workers;
    for (unsigned i = 0; i < n; i++) {
        struct slot_pin_worker *to = &k->pinned[i];
        to->like = i;
        to->next = n;
        for (unsigned first = 0; k->w[i].kept && first < i && to->like == i; first++)
            if (k->pinned[first].like == first && k->w[first].kept &&
                slot_table_declared_same(k->w[first].kept, k->w[i].kept))
                to->like = first;
        unsigned last = to->like;
        while (last != i && k->pinned[last].next != n)
            last = k->pinned[last].next;
        if (last != i)
            k->pinned[last].next = i;
    }
    k->alike = true;
}

static struct slot_pin *table(struct slot_table *k)
{
    if (!k->alike)
        look_alike(k);
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct slot_table_worker *w = &k->w[i];
        struct slot_pin_worker *to = &k->pinned[i];
        to->comes = comes(w);
        to->passed = slot_table_pin_passed_by(k, w);
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = &w->slot[s];
            to->slot[s] = (struct slot_pin_slot){slot_at(x), x->readers > 0, step_of(x), x->gen};
        }
    }
    k->pin.n = k->conf.workers;
    k->pin.w = k->pinned;
    k->pin.several = k->conf.several;
    k->pin.common = k->common;
    k->pin.known = 0;
    return &k->pin;
}

/* --- a worker comes to a step --- */

bool slot_table_comes_to(struct slot_table *k, struct slot_table_worker *w, int64_t step, el_usec now)
{
    bool twice = step == w->begun && has_taken(w), again = step == w->begun && !twice;
    w->take = twice ? w->take + 1 : again ? w->take : 0;
    if (step < w->begun) {
        w->era++;
        w->lineage = lineage_back(w->lineage, step);
        k->pin.from = 0;
    }
    if (again || w->refused) {
        w->habit = again || w->asked_twice ? HABIT_INSISTS : HABIT_GOES_ON;
        k->one_goes_on |= w->habit == HABIT_GOES_ON;
    }
    w->asked_twice = again;
    w->asked = again ? w->asked : now;
    w->begun = step;
    w->waits = w->absent = w->refused = false;
    w->came = now;
    return again;
}

struct slot_table_slot *slot_table_slot_to_write(struct slot_table *k, struct slot_table_worker *w, bool waits)
{
    unsigned worker = (unsigned)(w - k->w);
    struct slot_pin *p = table(k);
    int slot = waits || slot_pin_may_begin(p, worker, w->begun) ? slot_pin_slot(p, worker) : -1;
    return slot < 0 ? NULL : &w->slot[slot];
}

/* Nobody reads it: it is held for the disk until other ranks have come to its step, or until it is seen that one never
 * will.  Among several nodes the others may hold what is missing here, and it may be written. */
static bool is_held_only(struct slot_table *k, struct slot_pin *p, const struct slot_table_slot *x)
{
    enum slot_pin_state state = slot_at(x) == SLOT_PIN_HELD ? slot_pin_state(p, step_of(x)) : SLOT_PIN_WHOLE;
    return state == SLOT_PIN_COMING || (state == SLOT_PIN_HOPELESS && !k->conf.several &&
                                        slot_table_cover(k, x->step, x->lineage) != SLOT_TABLE_COVERED);
}

bool slot_table_is_at_work(struct slot_table *k, const struct slot_table_worker *w)
{
    struct slot_pin *p = table(k);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
        const struct slot_table_slot *x = &w->slot[s];
        if (slot_at(x) == SLOT_PIN_WORK || (x->readers && !is_held_only(k, p, x)))
            return true;
    }
    return false;
}

static bool slot_table_pin_is_held(const struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
            if (k->w[i].slot[s].readers)
                return true;
    return false;
}

void slot_table_look_passed(struct slot_table *k)
{
    bool news = false, went = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        const struct judged now = {slot_table_pin_passed_by(k, w), comes(w)}, was = w->judged;
        news |= now.passed.step != was.passed.step || now.passed.take != was.passed.take ||
                now.passed.era != was.passed.era || now.comes != was.comes;
        went |= was.comes && !now.comes;
        w->judged = now;
    }
    if (went || (news && slot_table_pin_is_held(k)))
        slot_table_act(k, SLOT_TABLE_DO_PASSED, &k->w[0]);
}

/* Others that have come to no step meanwhile may never come to one: from then on nobody waits for them.  Who waits for
 * a slot, or for the disk, does come. */
void slot_table_is_stuck(struct slot_table *k, struct slot_table_worker *w, bool at_work, el_usec now)
{
    w->stuck = w->stuck && !at_work ? w->stuck : now;
    if (!k->conf.patience || now - w->stuck < k->conf.patience)
        return;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *other = &k->w[i];
        if (other->absent || other->came >= w->stuck || other->waits)
            continue;
        other->absent = true;
        if (other->here)
            slot_table_act(k, SLOT_TABLE_DO_ABSENT, other);
    }
}

bool slot_table_may_come(const struct slot_table *k, const struct slot_table_worker *w, int64_t step, uint64_t lineage)
{
    struct slot_pin_step of = {step, lineage ? -1 : w->era, lineage, 0};
    for (unsigned i = 0; i < k->conf.workers && of.era < 0; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
            if (k->w[i].slot[s].step == step && k->w[i].slot[s].lineage == lineage)
                of = step_of(&k->w[i].slot[s]);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
        const struct slot_table_slot *x = &w->slot[s];
        if (slot_at(x) == SLOT_PIN_WORK && x->step == step && (x->lineage == lineage || !lineage))
            return true;
    }
    bool now = !lineage || w->lineage == of.lineage;
    return w->here && !w->absent &&
           (now ? slot_table_pin_is_beyond(slot_table_pin_passed_by(k, w), step, of.take) : of.era > w->era);
}

/* --- what all have --- */

bool slot_table_is_common(const struct slot_table *k, const struct slot_table_worker *w,
                          const struct slot_table_slot *s)
{
    bool is =
        s->state == SLOT_TABLE_COMMITTED && !s->vain && s->step == k->common.step && s->lineage == known_as(k->common);
    for (unsigned i = 0; is && i < SLOT_TABLE_SLOTS; i++) {
        const struct slot_table_slot *x = &w->slot[i];
        is = x->state != SLOT_TABLE_COMMITTED || x->step != s->step || x->lineage != s->lineage || x->gen <= s->gen;
    }
    return is;
}

struct slot_pin_step slot_table_common(const struct slot_table *k)
{
    struct slot_pin_step common = k->common;
    name_outside(&common);
    return common;
}

void slot_table_tell(struct slot_table *k, struct slot_pin_told *to)
{
    slot_pin_tell(table(k), to);
    for (unsigned i = 0; i < to->whole; i++)
        name_outside(&to->is_whole[i]);
    for (unsigned i = 0; i < to->coming; i++)
        name_outside(&to->is_coming[i]);
    for (unsigned i = 0; i < k->conf.workers; i++)
        to->stuck |= k->w[i].here && (k->w[i].stuck || k->w[i].waits);
}

void slot_table_forget_slot(struct slot_table_slot *s)
{
    s->state = s->readers ? SLOT_TABLE_BROKEN : SLOT_TABLE_FREE;
    s->step = s->readers ? s->step : SLOT_TABLE_NO_STEP;
}

/* What was trained before they went back, of this step and later ones. */
static void forget_left(struct slot_table *k, struct slot_pin_step common)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            struct slot_table_slot *x = &k->w[i].slot[s];
            if (x->state == SLOT_TABLE_COMMITTED && x->era < common.era && x->step >= common.step)
                slot_table_forget_slot(x);
        }
}

static void slot_table_pin_set_common(struct slot_table *k, struct slot_pin_step to)
{
    struct slot_pin_step was = k->common;
    k->common = to;
    bool back = to.era > was.era && (to.era > 0 || to.step < was.step);
    if (to.step == SLOT_TABLE_NO_STEP || !back)
        return;
    forget_left(k, to);
    k->reached = to.step;
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_WENT_BACK, &k->w[0]);
    a->step = to.step - 1;
    a->lineage = known_as(to);
}

void slot_table_look_common(struct slot_table *k)
{
    if (!k->conf.several)
        slot_table_pin_set_common(k, slot_pin_common(table(k)));
}

/* Of a step that this node does not hold it is known by its lineage; what nobody here trains is of before. */
static struct slot_pin_step step_known(const struct slot_table *k, int64_t step, uint64_t lineage)
{
    struct slot_pin_step best = {step, -1, lineage, 0};
    for (unsigned i = 0; i < k->conf.workers; i++) {
        if (k->w[i].lineage == lineage)
            best.era = k->w[i].era > best.era ? k->w[i].era : best.era;
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = &k->w[i].slot[s];
            if (x->step == step && x->lineage == lineage && x->era >= best.era)
                best = step_of(x);
        }
    }
    return best;
}

void slot_table_on_common(struct slot_table *k, const struct slot_table_event *ev)
{
    const struct slot_pin_step was = slot_table_common(k);
    k->pin.from = (int64_t)ev->number;
    bool other = ev->step != was.step || ev->lineage != was.lineage;
    if (other && ev->step != SLOT_TABLE_NO_STEP) /* else what it had before */
        slot_table_pin_set_common(k, step_known(k, ev->step, ev->lineage));
}

void slot_table_on_useless(struct slot_table *k, const struct slot_table_event *ev)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            struct slot_table_slot *x = &k->w[i].slot[s];
            bool comes =
                x->state == SLOT_TABLE_GROWING || x->state == SLOT_TABLE_WRITING || x->state == SLOT_TABLE_SUMMING;
            x->vain |= (comes || x->state == SLOT_TABLE_COMMITTED) && x->step == ev->step &&
                       x->lineage == ev->lineage && !slot_table_is_common(k, &k->w[i], x);
        }
}

void slot_table_begin_history(struct slot_table *k, uint64_t lineage)
{
    k->lineage = lineage;
    name_outside(&k->common); /* what is of before is known by its lineage alone, wherever it is held */
    k->common.era = -1;
    k->pin.from = 0;
    k->one_goes_on = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        w->begun = SLOT_TABLE_NO_STEP;
        w->era = 0;
        w->lineage = lineage;
        w->take = 0;
        w->waits = w->absent = w->refused = w->asked_twice = false;
        w->habit = HABIT_NOT_KNOWN;
        w->came = w->asked = w->stuck = 0;
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            w->slot[s].era = -1;
            w->slot[s].trained = w->slot[s].lineage;
            w->slot[s].take = 0;
        }
    }
}
