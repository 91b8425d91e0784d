/* This node's share of checkpoints that several nodes write (coord/ckpt_commit.h): it reports what it holds to the
 * coordinator, and what that orders is done by the thread of snapshot/disk.h.  The order itself is the membership's
 * (member/member.h); here are the bytes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/flush_private.h"
#include "ckpt/crc32c.h"
#include "util/log.h"
#include "util/scan.h"

#define TELL_SOON     EL_MS(5) /* what the workers of a node commit together is told together */
#define MOVED_EVERY   EL_SEC(5)
#define PROGRESS_TICK EL_MS(200)

struct ckpt_writer {
    struct member_held held;
    char *steps;                           /* CKPT_COMMIT_STEPS_TEXT + 1 */
    char layout[CKPT_COMMIT_NAME_MAX + 1]; /* the keeper's may go with the worker that declared it */
    char wishes[CKPT_COMMIT_WISHES_TEXT + 1];
    struct loop_timer *telling;
    struct slot_table_source *piece; /* the list */
    unsigned pieces;
    int64_t from; /* all ranks of this round go on from this step; SLOT_TABLE_NO_STEP: from none yet */
    bool ended;   /* no worker is left */
    uint64_t giver, order, lineage; /* of what is written */
    unsigned *index;                /* by file: in the list */
    uint64_t samples;
    struct disk_files *all; /* FILEs that came, to be published */
    struct disk_about published;
    el_usec told_moved;
    bool stopped;  /* an order that is over is still being written */
    bool discards; /* a stage is to be removed when the disk is free */
    struct disk_about discard;
    bool tidies;
    struct msg_ckpt_write waits; /* an order that came while the disk was being cleared; order 0: none */
    char waits_parts[CKPT_COMMIT_STEPS_TEXT + 1], waits_nonce[32];
    bool good;     /* the order that is over has brought a checkpoint */
    bool fresh;    /* what was published here was not there before */
    int64_t again; /* its step, if nobody knows what becomes of that; SLOT_TABLE_NO_STEP */
};

/* --- what this node holds --- */

static size_t ckpt_writer_put_step(const struct slot_table *k, const struct ckpt_writer *s, int64_t step, char *to,
                                   size_t size)
{
    uint64_t lineage = slot_table_lineage(k, step);
    size_t n = (size_t)snprintf(to, size, "%lld@%llx:", (long long)step, (unsigned long long)lineage), begun = n;
    for (unsigned i = 0; i < s->pieces && n < size; i++) {
        struct slot_table_source from;
        unsigned last = i;
        if (!slot_table_piece(k, &s->piece[i], step, lineage, &from))
            continue;
        while (last + 1 < s->pieces && slot_table_piece(k, &s->piece[last + 1], step, lineage, &from))
            last++;
        n += (size_t)snprintf(to + n, size - n, last > i ? "%s%u-%u" : "%s%u", n > begun ? "," : "", i, last);
        i = last;
    }
    return n > begun && n < size ? n : 0;
}

static void ckpt_writer_put_steps(struct flush_io *p)
{
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    struct ckpt_writer *s = p->saver;
    size_t n = 0;
    int64_t step = slot_table_held_below(k, INT64_MAX);
    for (unsigned i = 0; s->held.parts > 0 && i < CKPT_COMMIT_STEPS_MAX && step != SLOT_TABLE_NO_STEP; i++) {
        size_t more = ckpt_writer_put_step(k, s, step, s->steps + n + (n > 0), CKPT_COMMIT_STEPS_TEXT - n - (n > 0));
        if (more && n)
            s->steps[n++] = ' ';
        n += more;
        step = slot_table_held_below(k, step);
    }
    s->steps[n] = 0;
}

static void make_list(struct flush_io *p)
{
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    struct ckpt_writer *s = p->saver;
    unsigned n =
        slot_table_pieces(k, p->node->conf->ckpt_layout == CKPT_LAYOUT_MEGATRON, s->piece, CKPT_COMMIT_PARTS_MAX);
    if (n > CKPT_COMMIT_PARTS_MAX) {
        el_log(EL_WARN, "checkpoint: this node's workers have declared more than %u parts: nothing is written",
               CKPT_COMMIT_PARTS_MAX);
        return;
    }
    s->pieces = n;
    s->held.list++;
    s->held.parts = n;
    snprintf(s->layout, sizeof s->layout, "%s", slot_table_layout_id(k));
    s->held.layout = s->layout;
}

/* All that there is to say, made anew. */
static void refresh(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    snapshot_service_news(p->node->snapshots);
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    loop_timer_at(s->telling, EL_NEVER);
    if (s->held.parts < 0 && slot_table_all_known(k))
        make_list(p);
    ckpt_writer_put_steps(p);
    s->held.steps = s->steps;
    s->held.least = slot_table_least(k);
    if (!*s->steps && s->from > s->held.least) /* the script has shared it with them: they hold none of it */
        s->held.least = s->from;
    s->held.wishes = flush_wishes_text(p->core, CKPT_COMMIT_WISHES_MAX, s->wishes, sizeof s->wishes);
    s->held.quiet = s->ended && !slot_table_is_summing(k);
    membership_held(p->node->membership, &s->held);
}

static void on_telling(void *ctx)
{
    refresh(ctx);
}

void ckpt_writer_committed(struct flush_io *p)
{
    if (p->saver->ended)
        refresh(p);
    else
        loop_timer_at(p->saver->telling, loop_clock() + TELL_SOON);
}

void ckpt_writer_ended(struct flush_io *p)
{
    p->saver->ended = true;
    if (p->saver->held.number)
        refresh(p);
}

void ckpt_writer_round(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    const struct msg_world *w = membership_world(p->node->membership);
    s->held.number = w->number;
    s->held.coord = w->coord;
    s->held.parts = -1;
    s->held.layout = "";
    s->ended = false;
    s->pieces = 0;
    s->from = SLOT_TABLE_NO_STEP;
    refresh(p);
}

/* --- what is said in rows --- */

static void tell_parts(struct flush_io *p)
{
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    const struct ckpt_writer *s = p->saver;
    for (unsigned i = 0; i < s->pieces; i++) {
        const struct slot_table_part *part = slot_table_part(k, s->piece[i].worker, s->piece[i].part);
        struct msg m = {.type = MSG_CKPT_PART,
                        .u.ckpt_part = {.number = s->held.number,
                                        .coord = s->held.coord,
                                        .list = s->held.list,
                                        .index = i,
                                        .part = part->name,
                                        .shard = part->shard_id,
                                        .own = part->own}};
        membership_logs(p->node->membership, &m);
    }
}

static void tell_files(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    char *sums = malloc(CKPT_COMMIT_SUMS_TEXT + 1);
    for (size_t i = 0; sums && p->files && i < p->files->n; i++) {
        const struct disk_file *f = &p->files->v[i];
        size_t n = 0;
        for (size_t c = 0; c < f->manifest.chunks_n; c++)
            n += (size_t)snprintf(sums + n, CKPT_COMMIT_SUMS_TEXT + 1 - n, "%08x", f->manifest.chunks[c]);
        sums[n] = 0;
        struct msg m = {.type = MSG_CKPT_FILE};
        m.u.ckpt_file = (struct msg_ckpt_file){.giver = s->giver,
                                               .order = s->order,
                                               .index = s->index[i],
                                               .name = f->name,
                                               .size = f->bytes,
                                               .samples = s->samples,
                                               .sums = sums};
        membership_logs(p->node->membership, &m);
    }
    free(sums);
}

void ckpt_writer_tell(struct node *n, bool files)
{
    (files ? tell_files : tell_parts)(n->persisting);
}

uint64_t ckpt_writer_list(const struct node *n, const struct slot_table_source **piece, unsigned *pieces)
{
    const struct ckpt_writer *s = n->persisting ? n->persisting->saver : NULL;
    bool known = s && s->held.parts >= 0;
    *piece = known ? s->piece : NULL;
    *pieces = known ? s->pieces : 0;
    return known ? s->held.list : 0;
}

/* --- writing --- */

static void ckpt_writer_refuse(struct flush_io *p, const char *why)
{
    membership_saved(p->node->membership, false, false, why);
}

/* "0=1 3=2": which pieces, and the numbers of their files. */
static unsigned ckpt_writer_read_parts(const struct ckpt_writer *s, const char *text, unsigned *number)
{
    unsigned n = 0;
    uint64_t i, of;
    for (scan_blanks(&text); scan_u64(&text, &i) && *text == '='; scan_blanks(&text)) {
        text++;
        if (!scan_u64(&text, &of) || i >= s->pieces || !of || of > CKPT_COMMIT_FILES_MAX || n == s->pieces)
            return 0;
        s->index[n] = (unsigned)i;
        number[n++] = (unsigned)of;
    }
    return *text ? 0 : n;
}

static void name_order(struct flush_io *p, int64_t step, uint64_t number, uint64_t coord, uint64_t order,
                       bool emergency, const char *nonce)
{
    p->about = (struct disk_about){
        .step = step, .number = number, .coord = coord, .counter = order, .emergency = emergency, .layout_id = ""};
    /* Directories of two nodes may turn out to be one: what each writes stays its own. */
    if (p->node->conf->ckpt_store == 1)
        snprintf(p->about.nonce, sizeof p->about.nonce, "%.16s%08x", nonce, (unsigned)p->node->coord);
    else
        snprintf(p->about.nonce, sizeof p->about.nonce, "%.30s", nonce);
}

/* The slots are held from now on, whatever the workers do. */
static void write_order(struct flush_io *p, const struct msg_ckpt_write *w)
{
    struct ckpt_writer *s = p->saver;
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    unsigned *number = calloc(s->pieces + 1, sizeof *number), n;
    struct slot_table_source *from = calloc(s->pieces + 1, sizeof *from);
    const char *why = NULL;
    n = number && from ? ckpt_writer_read_parts(s, w->parts, number) : 0;
    if (!number || !from)
        why = "out of memory";
    else if (w->list != s->held.list || w->number != s->held.number || w->coord != s->held.coord || !n)
        why = "its workers have declared their parts anew since";
    for (unsigned i = 0; !why && i < n; i++)
        if (!slot_table_piece(k, &s->piece[s->index[i]], w->step, w->lineage, &from[i]))
            why = "it does not hold that step any more";
    if (!why && !flush_order(p->core, w->step, w->lineage, w->emergency, from, n))
        why = "it is still writing another one";
    if (!why) {
        name_order(p, w->step, w->number, w->coord, w->order, w->emergency, w->nonce);
        s->giver = w->giver;
        s->order = w->order;
        s->lineage = p->about.lineage = w->lineage;
        s->samples = slot_table_slot(k, from[0].worker, from[0].slot)->consumed_samples;
        s->told_moved = p->began = loop_clock();
        p->bytes = 0;
        p->files = flush_io_new_files(p, n);
        for (unsigned i = 0; p->files && i < n; i++)
            flush_io_add_file(p, &from[i], number[i]);
        if (p->files && p->files->n == n && flush_io_own_names(p)) {
            disk_write(p->disk, &p->about, p->files, false);
            flush_io_tick_at(p, loop_clock() + PROGRESS_TICK);
        } else {
            flush_done(p->core, false, -1);
            flush_io_forget_files(p);
            why = "out of memory";
        }
    }
    free(number);
    free(from);
    if (why)
        ckpt_writer_refuse(p, why);
}

static void ckpt_writer_on_write(struct flush_io *p, const struct msg_ckpt_write *w)
{
    struct ckpt_writer *s = p->saver;
    if (!disk_is_busy(p->disk)) {
        write_order(p, w);
        return;
    }
    s->waits = *w;
    snprintf(s->waits_parts, sizeof s->waits_parts, "%s", w->parts);
    snprintf(s->waits_nonce, sizeof s->waits_nonce, "%s", w->nonce);
    s->waits.parts = s->waits_parts;
    s->waits.nonce = s->waits_nonce;
}

void ckpt_writer_written(struct flush_io *p, bool good, int broken, const struct el_err *e)
{
    flush_done(p->core, false, broken); /* it is on disk when the coordinator says so */
    flush_check(p->core);
    flush_io_let_go(p); /* the bytes are on disk: the slots are of no use to it any more */
    flush_io_show(p);
    uint64_t most = 0;
    for (size_t i = 0; good && i < p->files->n; i++)
        most = p->files->v[i].manifest.chunks_n > most ? p->files->v[i].manifest.chunks_n : most;
    if (good && most * 8 > CKPT_COMMIT_SUMS_TEXT) {
        ckpt_writer_refuse(p, "a part has more than 256 GiB");
    } else {
        if (good)
            snapshot_service_event(p->node->snapshots, "persisted", p->about.step, "");
        membership_saved(p->node->membership, good, false, good ? "" : e->text);
    }
    refresh(p);
    ckpt_writer_disk_is_free(p);
}

void ckpt_writer_moved(struct flush_io *p, uint64_t bytes)
{
    struct ckpt_writer *s = p->saver;
    if (loop_clock() - s->told_moved < MOVED_EVERY)
        return;
    s->told_moved = loop_clock();
    membership_moved(p->node->membership, bytes);
}

/* --- publishing --- */

static bool parse_sums(struct disk_files *to, struct manifest_file *f, const char *text)
{
    size_t n = strlen(text);
    f->chunk = MANIFEST_CHUNK;
    f->chunks_n = manifest_chunks(f->size, MANIFEST_CHUNK);
    if (n != 8 * f->chunks_n)
        return false;
    f->chunks = el_alloc(&to->mem, (f->chunks_n + 1) * sizeof *f->chunks);
    for (size_t i = 0; f->chunks && i < f->chunks_n; i++) {
        char digits[9] = {0};
        const char *at = digits;
        uint64_t v, left = f->size - i * MANIFEST_CHUNK;
        memcpy(digits, text + 8 * i, 8);
        if (!scan_hex(&at, &v) || *at)
            return false;
        f->chunks[i] = (uint32_t)v;
        f->crc = crc32c_combine(f->crc, f->chunks[i], left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
    }
    return f->chunks != NULL;
}

/* One of all files of the step; a row that cannot be kept leaves the list short, and the order then says so. */
static void ckpt_writer_on_file(struct flush_io *p, const struct msg_ckpt_file *f)
{
    struct ckpt_writer *s = p->saver;
    if (!f->index) {
        disk_files_free(s->all);
        s->all = flush_io_new_files(p, 64);
        s->published.consumed_samples = 0;
    }
    if (!s->all || s->all->n != f->index)
        return;
    if (s->all->n >= 64 && (s->all->n & (s->all->n - 1)) == 0) {
        struct disk_file *more = el_realloc(&s->all->mem, s->all->v, 2 * s->all->n * sizeof *more);
        if (!more)
            return;
        s->all->v = more;
    }
    struct disk_file *to = &s->all->v[s->all->n];
    *to = (struct disk_file){.bytes = f->size,
                             .part = disk_files_keep(s->all, f->part),
                             .shard_id = disk_files_keep(s->all, f->shard),
                             .node = ""};
    snprintf(to->name, sizeof to->name, "%s", f->name);
    to->manifest = (struct manifest_file){.node = "", .size = f->size};
    if (!to->part || !to->shard_id || !parse_sums(s->all, &to->manifest, f->sums))
        return;
    if (f->samples > s->published.consumed_samples)
        s->published.consumed_samples = f->samples;
    s->all->n++;
}

static void ckpt_writer_on_publish(struct flush_io *p, const struct msg_ckpt_publish *o)
{
    struct ckpt_writer *s = p->saver;
    struct disk_files *files = o->files ? s->all : p->files;
    if (!files || (o->files && files->n != o->files)) {
        ckpt_writer_refuse(p, "out of memory for the list of its files");
        return;
    }
    for (size_t i = 0; i < files->n; i++)
        files->v[i].manifest.name = files->v[i].name;
    for (size_t i = 0; !o->files && i < files->n; i++)
        files->v[i].manifest.node = p->node->host;
    name_order(p, o->step, o->number, o->coord, o->order, o->emergency, o->nonce);
    p->layout_id = disk_files_keep(files, o->layout);
    p->about.layout_id = p->layout_id ? p->layout_id : "";
    p->about.lineage = s->lineage;
    p->about.world = o->world;
    p->about.consumed_samples = o->files ? s->published.consumed_samples : s->samples;
    disk_publish(p->disk, &p->about, files);
}

static void say_published(struct flush_io *p)
{
    const struct disk_files *files = p->saver->all ? p->saver->all : p->files;
    char where[CKPT_PATH_MAX + 512], name[CKPT_PATH_MAX], size[32];
    uint64_t bytes = 0;
    for (size_t i = 0; files && i < files->n; i++)
        bytes += files->v[i].bytes;
    ckpt_step_name((enum ckpt_layout)p->node->conf->ckpt_layout, p->about.step, name);
    snprintf(where, sizeof where, "%.400s/%.100s", p->node->conf->ckpt_dir, name);
    emergency_io_say(p->node, "checkpoint: step %lld%s is on disk: %s in %.1f s, %s", (long long)p->about.step,
                     p->about.emergency ? " (emergency)" : "", flush_io_size(bytes, size),
                     (double)(loop_clock() - p->began) / EL_SEC(1), where);
    emit_checkpoint(p->node, &(struct event_checkpoint){.step = (uint64_t)p->about.step,
                                                        .state = "committed",
                                                        .emergency = p->about.emergency,
                                                        .bytes = bytes,
                                                        .elapsed_us = loop_clock() - p->began,
                                                        .text = where});
}

/* A node's part in a directory of its own is no checkpoint before the others have theirs. */
void ckpt_writer_published(struct flush_io *p, bool good, bool existed, const char *trouble, const struct el_err *e)
{
    struct ckpt_writer *s = p->saver;
    if (good && *trouble)
        el_log(EL_WARN, "checkpoint: %s", trouble);
    s->published = p->about;
    s->fresh = good && !existed;
    if (s->fresh && p->node->conf->ckpt_store != 1)
        say_published(p);
    membership_saved(p->node->membership, good, existed, good ? "" : e->text);
    ckpt_writer_disk_is_free(p);
}

void ckpt_writer_order(struct node *n, const struct msg *msg)
{
    struct flush_io *p = n->persisting;
    switch ((unsigned)msg->type) {
    case MSG_CKPT_WRITE: ckpt_writer_on_write(p, &msg->u.ckpt_write); break;
    case MSG_CKPT_FILE: ckpt_writer_on_file(p, &msg->u.ckpt_file); break;
    case MSG_CKPT_PUBLISH: ckpt_writer_on_publish(p, &msg->u.ckpt_publish); break;
    default: break;
    }
}

/* --- the end of an order --- */

/* The disk has nothing to do: what waits for that. */
void ckpt_writer_disk_is_free(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    if (disk_is_busy(p->disk))
        return;
    if (s->discards) {
        s->discards = false;
        disk_clear(p->disk, DISK_DISCARD, &s->discard);
    } else if (p->sets_aside && !p->files) {
        p->sets_aside = false;
        disk_clear(p->disk, DISK_ASIDE, &p->back);
    } else if (s->tidies) {
        s->tidies = false;
        disk_clear(p->disk, DISK_TIDY, &s->discard);
    } else if (s->waits.order) {
        struct msg_ckpt_write w = s->waits;
        s->waits.order = 0;
        write_order(p, &w);
    }
}

/* Its order is no more, with its coordinator or because another node failed: it is wanted still. */
static void want_again(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    int64_t step = s->again;
    s->again = SLOT_TABLE_NO_STEP;
    if (step == SLOT_TABLE_NO_STEP)
        return;
    bool current = slot_table_held_below(snapshot_service_keeper(p->node->snapshots), step + 1) == step;
    if (!current || !flush_again(p->core, step, s->lineage)) {
        static const char why[] = "the order to write it is no more, and it is not held any more";
        if (flush_over(p->core, step, s->lineage, false))
            flush_io_owe(p, step, why);
        flush_io_note_failed(p, step, why);
    }
    refresh(p);
}

/* The order is over: what it has left on disk and in memory goes, unless it became a checkpoint. */
void ckpt_writer_forget(struct node *n)
{
    struct flush_io *p = n->persisting;
    struct ckpt_writer *s = p->saver;
    if (s->waits.order) { /* not even begun; the member core hears that it has ended */
        s->waits.order = 0;
        ckpt_writer_refuse(p, "it is over");
        return;
    }
    if (flush_writing(p->core) != SLOT_TABLE_NO_STEP) { /* ckpt_writer_written() will say so */
        disk_stop(p->disk);
        return;
    }
    if (p->files) {
        s->discard = p->about;
        s->discard.layout_id = "";
        s->discards = !s->good;
        s->tidies = s->good && n->conf->ckpt_store == 1;
    }
    s->good = false;
    flush_io_forget_files(p);
    disk_files_free(s->all);
    s->all = NULL;
    want_again(p);
    ckpt_writer_disk_is_free(p);
}

uint64_t ckpt_writer_ask(struct flush_io *p)
{
    if (!p->saver->held.number)
        return 0;
    p->saver->held.ask = ++p->asked;
    refresh(p);
    return p->asked;
}

/* What has become of a step. */
void ckpt_writer_over(struct node *n, const struct member_save *x)
{
    struct flush_io *p = n->persisting;
    struct ckpt_writer *s = p->saver;
    char where[CKPT_PATH_MAX + 512], name[CKPT_PATH_MAX];
    s->good = x->over_ours && x->over_good;
    s->again = x->over_unknown ? x->over_step : SLOT_TABLE_NO_STEP;
    if (x->over_unknown)
        return;
    if (x->over_good) {
        ckpt_step_name((enum ckpt_layout)n->conf->ckpt_layout, x->over_step, name);
        snprintf(where, sizeof where, "%.400s/%.100s", n->conf->ckpt_dir, name);
        snapshot_service_event(n->snapshots, "committed", x->over_step, where);
        flush_io_note_saved(p, x, where);
        if (s->good && s->fresh && n->conf->ckpt_store == 1)
            say_published(p);
    }
    bool wished = flush_over(p->core, x->over_step, x->over_lineage, x->over_good);
    if (!x->over_good && (wished || x->over_ask || p->failed_step != x->over_step)) /* else: a second answer */
        flush_io_note_failed(p, x->over_step, x->over_text);
    if (!x->over_good && wished && !x->over_emergency)
        flush_io_owe(p, x->over_step, x->over_text);
    s->held.ask = flush_io_note_answer(p, x) ? 0 : s->held.ask;
    ckpt_news(n);
    if (wished || x->over_ask)
        refresh(p);
}

/* All ranks go on from this step.  Others may be faster, and have written what follows before the directory is free
 * here. */
void ckpt_writer_went_back(struct flush_io *p)
{
    const struct node *n = p->node;
    bool ours = n->conf->ckpt_store == 1 || membership_world(n->membership)->group_rank == 0; /* one for all */
    p->saver->from = p->back.step;
    p->sets_aside = ours && (p->back.step != SLOT_TABLE_NO_STEP || n->gone_fresh);
    refresh(p);
    ckpt_writer_disk_is_free(p);
}

/* --- life --- */

int ckpt_writer_init(struct flush_io *p, struct el_err *e)
{
    struct ckpt_writer *s = p->saver = calloc(1, sizeof *s);
    if (s) {
        s->again = s->from = SLOT_TABLE_NO_STEP;
        s->held = (struct member_held){.parts = -1, .layout = "", .wishes = "", .least = MEMBER_NO_STEP};
        s->steps = calloc(1, CKPT_COMMIT_STEPS_TEXT + 1);
        s->piece = calloc(CKPT_COMMIT_PARTS_MAX, sizeof *s->piece);
        s->index = calloc(CKPT_COMMIT_PARTS_MAX, sizeof *s->index);
        s->telling = loop_timer_new(p->node->loop, on_telling, p);
    }
    if (!s || !s->steps || !s->piece || !s->index || !s->telling)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    flush_defer(p->core);
    return 0;
}

void ckpt_writer_free(struct flush_io *p)
{
    struct ckpt_writer *s = p->saver;
    if (!s)
        return;
    disk_files_free(s->all);
    loop_timer_free(s->telling);
    free(s->steps);
    free(s->piece);
    free(s->index);
    free(s);
    p->saver = NULL;
}
