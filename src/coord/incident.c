/* The failures of a round: the earliest are kept in full, the rest is counted; which one was the first; what the node
 * of rank 0 is told.  Nothing here decides what becomes of the round, and nothing is written for each of many:
 * thousands that fail in one second cost a fixed amount of memory, and their round is stopping already. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/ranges.h"

enum {
    FATE_FAILED = 1, /* by itself */
    FATE_JUDGED = 2, /* its class is known; until then it counts as unknown */
    FATE_STOPPED = 4,
    FATE_TOLD = 8, /* has a row in the report */
};

static const char *const class_words[RDZV_CLASSES] = {
#define X(name, text, status) text,
    FAILURE_CLASS_LIST(X)
#undef X
};

static enum failure_class incident_class_of(const char *word)
{
    for (unsigned i = 0; i < RDZV_CLASSES; i++)
        if (strcmp(word, class_words[i]) == 0)
            return (enum failure_class)i;
    return FAILURE_CLASS_UNKNOWN;
}

/* --- what became of each worker --- */

/* Room for the ranks of the round that is there now.  Without it (a world beyond RDZV_FATES_MAX, or no memory) ranks
 * are not named, and all is counted by what is kept. */
static void make_fates(struct rdzv *r)
{
    if (r->world > r->fates_room && r->world <= RDZV_FATES_MAX) {
        el_free(r->mem, r->fate);
        r->fate = el_alloc(r->mem, r->world);
        r->fates_room = r->fate ? r->world : 0;
    }
    r->fates = r->world <= r->fates_room ? r->world : 0;
    if (r->fates)
        memset(r->fate, 0, r->fates);
}

static unsigned incident_rank_of(const struct rdzv *r, unsigned seat, unsigned local_rank)
{
    return r->seat[seat].rank_base + local_rank;
}

static bool has_fate(const struct rdzv *r, unsigned rank, unsigned fate)
{
    return rank < r->fates && (r->fate[rank] & fate);
}

static void set_fate(struct rdzv *r, unsigned rank, unsigned fate)
{
    if (rank < r->fates)
        r->fate[rank] |= (uint8_t)fate;
}

/* A failure, each once; its class is not known yet. */
static void count_failed(struct rdzv *r, unsigned rank, const struct rdzv_incident *known)
{
    if (known || has_fate(r, rank, FATE_FAILED))
        return;
    set_fate(r, rank, FATE_FAILED);
    r->incidents++;
    r->findings.failed++;
    r->findings.by_class[FAILURE_CLASS_UNKNOWN]++;
}

static void count_judged(struct rdzv *r, unsigned rank, enum failure_class class)
{
    set_fate(r, rank, FATE_JUDGED);
    r->findings.by_class[FAILURE_CLASS_UNKNOWN]--;
    r->findings.by_class[class]++;
}

/* It had been told of as a failure, perhaps, and was none: elrun stopped it. */
static void count_stopped(struct rdzv *r, unsigned rank, const struct rdzv_incident *known)
{
    if (known || has_fate(r, rank, FATE_FAILED)) {
        r->findings.failed--;
        r->findings.by_class[FAILURE_CLASS_UNKNOWN]--;
    }
    if (rank < r->fates)
        r->fate[rank] = FATE_STOPPED | FATE_JUDGED;
}

/* Local ranks of a seat; what is no list, or not of this seat, is passed over. */
static void each_rank(struct rdzv *r, unsigned seat, const char *list, const enum failure_class *class)
{
    unsigned first, last;
    while (list && el_ranges_next(&list, &first, &last) && last < r->seat[seat].slots)
        for (unsigned i = first; i <= last; i++) {
            if (!class) {
                set_fate(r, incident_rank_of(r, seat, i), FATE_STOPPED);
            } else if (!has_fate(r, incident_rank_of(r, seat, i), FATE_JUDGED)) {
                count_failed(r, incident_rank_of(r, seat, i), NULL);
                count_judged(r, incident_rank_of(r, seat, i), *class);
            }
        }
}

/* --- what is kept --- */

static void drop_document(struct rdzv *r, struct rdzv_incident *x)
{
    el_free(&r->documents, x->document);
    x->document = NULL;
}

void rdzv_incidents_forget(struct rdzv *r)
{
    for (unsigned i = 0; i < r->incident_count; i++)
        drop_document(r, &r->incident[i]);
    r->incident_count = 0;
    drop_document(r, &r->silent);
    r->silent.judged = false;
    r->findings = (struct rdzv_findings){.root = -1};
    r->missing[0] = 0;
    r->late = false;
    make_fates(r);
}

void rdzv_incidents_free(struct rdzv *r)
{
    for (unsigned i = 0; i < r->incident_count; i++)
        drop_document(r, &r->incident[i]);
    r->incident_count = 0;
    drop_document(r, &r->silent);
    el_free(r->mem, r->fate);
    r->fate = NULL;
    el_buf_free(&r->stopped_ranks);
    el_buf_free(&r->rest_ranks);
}

static struct rdzv_incident *incident_find(struct rdzv *r, unsigned seat, unsigned local_rank)
{
    for (unsigned i = 0; i < r->incident_count; i++)
        if (r->incident[i].order.node == seat && r->incident[i].local_rank == local_rank)
            return &r->incident[i];
    return NULL;
}

static unsigned last_of(const struct rdzv *r)
{
    unsigned last = 0;
    for (unsigned i = 1; i < r->incident_count; i++)
        if (first_failure_sooner(&r->incident[last].order, &r->incident[i].order))
            last = i;
    return last;
}

/* A place for this one, or NULL: all that are kept are rather the cause.  Known ones keep their place. */
static struct rdzv_incident *place_for(struct rdzv *r, unsigned seat, unsigned local_rank,
                                       const struct first_failure_entry *order)
{
    struct rdzv_incident *x = incident_find(r, seat, local_rank);
    if (x)
        return x;
    if (r->incident_count < RDZV_INCIDENTS_MAX) {
        x = &r->incident[r->incident_count++];
    } else {
        x = &r->incident[last_of(r)];
        if (!first_failure_sooner(order, &x->order))
            return NULL;
        drop_document(r, x);
    }
    *x = (struct rdzv_incident){.local_rank = local_rank};
    return x;
}

/* Documents of those that are less the cause go first; the limit is that of r->documents. */
static void keep_document(struct rdzv *r, struct rdzv_incident *x, const char *document)
{
    drop_document(r, x);
    size_t n = document ? strlen(document) : 0;
    if (!n)
        return;
    while (!(x->document = el_strndup(&r->documents, document, n))) {
        struct rdzv_incident *last = NULL;
        for (unsigned i = 0; i < r->incident_count; i++) {
            struct rdzv_incident *y = &r->incident[i];
            if (y->document && first_failure_sooner(&x->order, &y->order) &&
                (!last || first_failure_sooner(&last->order, &y->order)))
                last = y;
        }
        if (!last)
            return;
        drop_document(r, last);
    }
}

/* Nobody failed before the round began or after it was told: an agent's clock that says so is not believed. */
static void place_in_time(const struct rdzv *r, uint64_t time_us, uint64_t error_us, el_usec now,
                          struct first_failure_entry *out)
{
    el_usec least = r->coord == r->conf.coord && r->state != RDZV_REBUILDING ? r->started_at : 0;
    out->time = time_us;
    out->error = error_us;
    if (error_us >= MSG_CLOCK_UNKNOWN) {
        out->time = now;
        out->error = now - least;
    }
    out->time = out->time > now ? now : out->time < least ? least : out->time;
}

bool rdzv_worker_failed(struct rdzv *r, const struct rdzv_member *m, const struct msg_worker_failed *f, el_usec now)
{
    struct first_failure_entry order = {.node = m->seat, .rank = incident_rank_of(r, m->seat, (unsigned)f->local_rank)};
    if (f->local_rank >= r->seat[m->seat].slots)
        return false;
    place_in_time(r, f->time_us, f->error_us, now, &order);
    const struct rdzv_incident *known = incident_find(r, m->seat, (unsigned)f->local_rank);
    bool news = !known && !has_fate(r, order.rank, FATE_FAILED);
    count_failed(r, order.rank, known);
    struct rdzv_incident *x = place_for(r, m->seat, (unsigned)f->local_rank, &order);
    if (!x || x->judged)
        return news;
    x->order = order;
    x->code = (int)f->code;
    x->signal = (int)f->signal;
    snprintf(x->host, sizeof x->host, "%s", m->host);
    snprintf(x->text, sizeof x->text, "%s", f->text);
    return news;
}

static void incident_fill_fields(struct rdzv_incident *x, const struct rdzv_member *m, const struct msg_incident *f,
                                 const struct first_failure_entry *order)
{
    x->order = *order;
    x->local_rank = (unsigned)f->local_rank;
    x->code = (int)f->code;
    x->signal = (int)f->signal;
    x->judged = true;
    x->class = incident_class_of(f->class);
    x->absent = order->late && order->private_link && strcmp(f->by, "elrun") == 0;
    snprintf(x->host, sizeof x->host, "%s", m->host);
    snprintf(x->type, sizeof x->type, "%s", f->type);
    snprintf(x->text, sizeof x->text, "%s", f->text);
}

/* Whether it is the cause is known once all have told: it must be the only one. */
static void keep_silent(struct rdzv *r, const struct rdzv_member *m, const struct msg_incident *f,
                        const struct first_failure_entry *order)
{
    if (r->silent.judged)
        return;
    incident_fill_fields(&r->silent, m, f, order);
    r->silent.document = f->document ? el_strndup(&r->documents, f->document, strlen(f->document)) : NULL;
}

void rdzv_incident(struct rdzv *r, const struct rdzv_member *m, const struct msg_incident *f, el_usec now)
{
    enum failure_class class = incident_class_of(f->class);
    struct first_failure_entry order = {.node = m->seat,
                                        .rank = incident_rank_of(r, m->seat, (unsigned)f->local_rank),
                                        .elrun = strcmp(f->by, "elrun") == 0 && class != FAILURE_CLASS_HANG,
                                        .follower = f->follower,
                                        .private_link = f->private_link,
                                        .late = f->follower && class == FAILURE_CLASS_HANG};
    if (f->local_rank >= r->seat[m->seat].slots)
        return;
    if (f->ranks && *f->ranks) {
        each_rank(r, m->seat, f->ranks, &class);
        return;
    }
    const struct rdzv_incident *known = incident_find(r, m->seat, (unsigned)f->local_rank);
    if ((known && known->judged) || has_fate(r, order.rank, FATE_JUDGED))
        return; /* the first word on it stays */
    place_in_time(r, f->time_us, f->error_us, now, &order);
    if (f->silent) {
        keep_silent(r, m, f, &order);
        return;
    }
    if (order.elrun) {
        count_stopped(r, order.rank, known);
    } else {
        count_failed(r, order.rank, known);
        count_judged(r, order.rank, class);
    }
    struct rdzv_incident *x = place_for(r, m->seat, (unsigned)f->local_rank, &order);
    if (!x)
        return;
    incident_fill_fields(x, m, f, &order);
    keep_document(r, x, f->document);
}

/* What comes with STOPPED. */
void rdzv_stopped_ranks(struct rdzv *r, unsigned seat, const struct msg_stopped *s)
{
    each_rank(r, seat, s->ranks, NULL);
    if (s->missing && !r->missing[0])
        snprintf(r->missing, sizeof r->missing, "%s", s->missing);
}

/* --- the findings, once a round is closed --- */

/* A coordinator that was restarted has heard of failures before it knew the world: they are counted anew. */
void rdzv_incidents_adopt(struct rdzv *r)
{
    r->findings = (struct rdzv_findings){.root = -1};
    make_fates(r);
    for (unsigned i = 0; i < r->incident_count; i++) {
        struct rdzv_incident *x = &r->incident[i];
        x->order.rank = incident_rank_of(r, x->order.node, x->local_rank);
        if (x->order.elrun) {
            set_fate(r, x->order.rank, FATE_STOPPED | FATE_JUDGED);
            continue;
        }
        count_failed(r, x->order.rank, NULL);
        if (x->judged)
            count_judged(r, x->order.rank, x->class);
    }
}

/* A seat of the round turns out to have workers, from this rank on: where the others had left no room for them, the
 * ranks behind are others. */
void rdzv_incidents_insert(struct rdzv *r, unsigned rank)
{
    unsigned had = r->fates;
    if (had && r->world > r->fates_room) {
        uint8_t *more = r->world <= RDZV_FATES_MAX ? el_realloc(r->mem, r->fate, r->world) : NULL;
        r->fate = more ? more : r->fate;
        r->fates_room = more ? r->world : r->fates_room;
    }
    r->fates = had && r->world <= r->fates_room ? r->world : 0;
    if (r->fates > had) {
        unsigned more = r->fates - had, from = rank < had ? rank : had;
        memmove(r->fate + from + more, r->fate + from, had - from);
        memset(r->fate + from, 0, more);
    }
    for (unsigned i = 0; i < r->incident_count; i++) {
        struct rdzv_incident *x = &r->incident[i];
        x->order.rank = incident_rank_of(r, x->order.node, x->local_rank);
    }
}

static void count_nodes(struct rdzv *r)
{
    struct rdzv_findings *f = &r->findings;
    const struct rdzv_incident *root = f->root < 0 ? NULL : &r->incident[f->root];
    for (unsigned i = 0; root && i < r->incident_count; i++) {
        const struct rdzv_incident *x = &r->incident[i];
        bool first = !x->order.elrun;
        for (unsigned k = 0; k < r->incident_count; k++) /* of its node */
            first &= k == i || r->incident[k].order.node != x->order.node ||
                     first_failure_sooner(&x->order, &r->incident[k].order);
        if (!first)
            continue;
        f->nodes++;
        f->nodes_like_root += x->judged && x->class == root->class && strcmp(x->type, root->type) == 0;
    }
}

/* Rank 0's node; if that is gone, the one of the lowest rank that is here. */
static unsigned reader(const struct rdzv *r)
{
    for (unsigned k = 0; k < r->size; k++)
        if (r->seat[k].member != RDZV_NONE && r->member[r->seat[k].member].conn)
            return r->seat[k].member;
    return RDZV_NONE;
}

static struct first_failure_cause cause_of(const struct rdzv *r)
{
    struct first_failure_entry all[RDZV_INCIDENTS_MAX];
    for (unsigned i = 0; i < r->incident_count; i++)
        all[i] = r->incident[i].order;
    return first_failure_cause(all, r->incident_count);
}

/* The time of a collective ran out, all workers but one failed by it, and that one did not take part: of two or more
 * that said nothing, one may have waited as well. */
static bool incident_is_alone(const struct rdzv *r, const struct first_failure_cause *cause)
{
    const struct rdzv_incident *root = cause->root < 0 ? NULL : &r->incident[cause->root];
    return r->silent.judged && r->fates && r->findings.failed + 1 == r->world && root && root->order.late &&
           !root->absent && !has_fate(r, incident_rank_of(r, r->silent.order.node, r->silent.local_rank), FATE_FAILED);
}

static void take_silent(struct rdzv *r)
{
    struct rdzv_incident *silent = &r->silent;
    silent->order.rank = incident_rank_of(r, silent->order.node, silent->local_rank);
    struct rdzv_incident *x = place_for(r, silent->order.node, silent->local_rank, &silent->order);
    if (!x)
        return;
    count_failed(r, silent->order.rank, NULL);
    count_judged(r, silent->order.rank, silent->class);
    *x = *silent;
    silent->document = NULL;
    silent->judged = false;
}

/* Somebody failed by itself: nothing is known against those that did not come where others waited. */
static void incident_excuse(struct rdzv *r)
{
    for (unsigned i = 0; i < r->incident_count; i++) {
        struct rdzv_incident *x = &r->incident[i];
        if (!x->absent || x->order.elrun)
            continue;
        x->order.elrun = true;
        r->findings.failed--;
        r->findings.by_class[x->class]--;
        if (x->order.rank < r->fates)
            r->fate[x->order.rank] = FATE_STOPPED | FATE_JUDGED;
    }
}

void rdzv_find(struct rdzv *r)
{
    struct first_failure_cause cause = cause_of(r);
    if (cause.root >= 0 && !r->incident[cause.root].order.follower)
        incident_excuse(r);
    else if (incident_is_alone(r, &cause))
        take_silent(r);
    cause = cause_of(r);
    r->findings.root = cause.root;
    r->findings.among = cause.among;
    r->findings.number = r->number;
    r->findings.coord = r->coord;
    r->findings.world = r->world;
    r->findings.restarts = r->restarts_told;
    r->findings.reader = reader(r);
    r->findings.rank0 = r->seat[0].member == RDZV_NONE ? 0 : r->member[r->seat[0].member].instance;
    r->findings.nodes = r->findings.nodes_like_root = 0;
    count_nodes(r);
}

const struct rdzv_incident *rdzv_root(const struct rdzv *r)
{
    return r->findings.root < 0 ? NULL : &r->incident[r->findings.root];
}

/* --- what is told --- */

static void list_ranks(struct rdzv *r, struct el_buf *out, unsigned with, unsigned without)
{
    struct el_ranges s = {0};
    el_buf_free(out);
    *out = EL_BUF_INIT(r->mem, MSG_RANKS_MAX);
    for (unsigned i = 0; i < r->fates; i++)
        if ((r->fate[i] & with) && !(r->fate[i] & without))
            el_ranges_add(&s, out, i);
    el_ranges_end(&s, out);
}

static void list_classes(struct rdzv *r)
{
    size_t n = 0;
    r->classes[0] = 0;
    for (unsigned i = 0; i < RDZV_CLASSES && n < sizeof r->classes; i++)
        if (r->findings.by_class[i])
            n += (size_t)snprintf(r->classes + n, sizeof r->classes - n, "%s%s %llu", n ? ", " : "", class_words[i],
                                  (unsigned long long)r->findings.by_class[i]);
}

/* The n-th in the order of causes; NULL behind the last that is told, or where only those that elrun stopped follow. */
static const struct rdzv_incident *nth(const struct rdzv *r, unsigned n)
{
    for (unsigned i = 0; n < RDZV_REPORT_ROWS && i < r->incident_count; i++) {
        const struct rdzv_incident *x = &r->incident[i];
        unsigned before = 0;
        for (unsigned k = 0; k < r->incident_count; k++)
            before += k != i && first_failure_sooner(&r->incident[k].order, &x->order);
        if (before == n)
            return x->order.elrun ? NULL : x;
    }
    return NULL;
}

static void report_head(struct rdzv *r, struct msg *out)
{
    const struct rdzv_incident *x;
    unsigned rows = 0;
    for (; (x = nth(r, rows)); rows++)
        set_fate(r, x->order.rank, FATE_TOLD);
    list_ranks(r, &r->stopped_ranks, FATE_STOPPED, FATE_FAILED);
    list_ranks(r, &r->rest_ranks, FATE_FAILED, FATE_TOLD);
    list_classes(r);
    const struct rdzv_findings *f = &r->findings;
    *out = (struct msg){.type = MSG_REPORT};
    out->u.report = (struct msg_report){.number = f->number,
                                        .coord = f->coord,
                                        .world_size = f->world,
                                        .restarts = f->restarts,
                                        .max_restarts = r->conf.set.max_restarts,
                                        .failed = f->failed > rows ? f->failed : rows,
                                        .among = f->among,
                                        .classes = r->classes,
                                        .rest = f->failed > rows ? f->failed - rows : 0,
                                        .rest_ranks = el_buf_cstr(&r->rest_ranks),
                                        .stopped_ranks = el_buf_cstr(&r->stopped_ranks),
                                        .missing = r->missing,
                                        .text = r->stop_text,
                                        .more = rows > 0};
}

bool rdzv_report(struct rdzv *r, unsigned i, struct msg *out)
{
    if (i == 0) {
        report_head(r, out);
        return true;
    }
    const struct rdzv_incident *x = nth(r, i - 1);
    if (!x)
        return false;
    *out = (struct msg){.type = MSG_REPORT_ROW};
    out->u.report_row = (struct msg_report_row){.rank = x->order.rank,
                                                .local_rank = x->local_rank,
                                                .group_rank = x->order.node,
                                                .host = x->host,
                                                .code = x->code,
                                                .signal = x->signal,
                                                .text = x->text,
                                                .document = x->document ? x->document : "",
                                                .more = nth(r, i) != NULL};
    return true;
}

unsigned rdzv_report_member(const struct rdzv *r)
{
    return r->findings.reader;
}

uint64_t rdzv_instance(const struct rdzv *r, unsigned member)
{
    return r->member[member].instance;
}

void rdzv_incidents_check(const struct rdzv *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < RDZV_CLASSES; i++)
        sum += r->findings.by_class[i];
    assert(sum == r->findings.failed);
    assert(r->incident_count <= RDZV_INCIDENTS_MAX && r->findings.root < (int)r->incident_count);
    assert(r->documents.used_bytes <= RDZV_DOCUMENTS_MAX);
    assert(r->fates <= r->fates_room);
}
