/* What a worker declares, and the slots that it gets for it. */
#include "snapshot/slot_table_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"
#include "util/snip.h"

static const struct slot_table_part *part_named(const struct declaration *d, const char *name)
{
    for (unsigned i = 0; i < d->parts; i++)
        if (strcmp(d->part[i].name, name) == 0)
            return &d->part[i];
    return NULL;
}

/* Why this PART cannot be; NULL: it can. */
static const char *part_wrong(const struct slot_table *k, const struct declaration *d, const struct wmsg_part *p)
{
    bool is_file = p->file[0];
    if (p->index != d->parts)
        return "parts are named in order, from 0, without a gap";
    if (!p->name[0] || !p->shard_id[0])
        return "a part needs a name and a shard id";
    if (part_named(d, p->name))
        return "two parts have the same name";
    if (is_file && !k->conf.files)
        return "declare_file() is for --ckpt-layout=megatron only; declare() is for tensors";
    if (is_file && (ckpt_path_fault(p->file) || strcmp(p->file, CKPT_MANIFEST_FILE) == 0))
        return "a file needs a name below the directory of its step, such as a/b.pt";
    if (is_file && p->own)
        return "a file is no rank's own piece of a replica: give each its own shard id";
    return NULL;
}

static char *slot_table_declare_keep_text(char **at, const char *text)
{
    size_t n = strlen(text) + 1;
    char *to = memcpy(*at, text, n);
    *at += n;
    return to;
}

/* The declaration with one part more, in a block of its own: what a worker sends in pieces costs what it sends. */
static struct declaration *with_part(struct slot_table *k, const struct declaration *d, const struct wmsg_part *p)
{
    size_t text = strlen(p->name) + strlen(p->shard_id) + strlen(p->file) + 3;
    for (unsigned i = 0; i < d->parts; i++)
        text += strlen(d->part[i].name) + strlen(d->part[i].shard_id) + strlen(d->part[i].file) + 3;
    struct declaration *n = el_alloc(k->mem, sizeof *n + text);
    if (!n)
        return NULL;
    char *at = (char *)(n + 1);
    for (unsigned i = 0; i < d->parts; i++) {
        const struct slot_table_part *o = &d->part[i];
        n->part[i] = *o;
        n->part[i].name = slot_table_declare_keep_text(&at, o->name);
        n->part[i].shard_id = slot_table_declare_keep_text(&at, o->shard_id);
        n->part[i].file = slot_table_declare_keep_text(&at, o->file);
    }
    n->part[d->parts] = (struct slot_table_part){.name = slot_table_declare_keep_text(&at, p->name),
                                                 .shard_id = slot_table_declare_keep_text(&at, p->shard_id),
                                                 .file = slot_table_declare_keep_text(&at, p->file),
                                                 .own = p->own};
    n->parts = d->parts + 1;
    n->has_own = d->has_own || p->own;
    return n;
}

/* The first one begins the list: what stands there already is of a declare() that was interrupted. */
void slot_table_on_part(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    static const struct declaration none;
    if (m->u.part.index == 0) {
        el_free(k->mem, w->named);
        w->named = NULL;
        w->refuse[0] = 0;
    }
    const struct declaration *d = w->named ? w->named : &none;
    if (w->refuse[0])
        return;
    const char *why = part_wrong(k, d, &m->u.part);
    struct declaration *more = why ? NULL : with_part(k, d, &m->u.part);
    if (!more) {
        snprintf(w->refuse, sizeof w->refuse, "part %llu, \"%s\": %s", (unsigned long long)m->u.part.index,
                 m->u.part.name, why ? why : "no memory for its name");
        return;
    }
    el_free(k->mem, w->named);
    w->named = more;
}

bool slot_table_declared_same(const struct declaration *a, const struct declaration *b)
{
    if (a->parts != b->parts || strcmp(a->layout_id, b->layout_id) != 0)
        return false;
    for (unsigned i = 0; i < a->parts; i++) {
        const struct slot_table_part *x = &a->part[i], *y = &b->part[i];
        bool alike = strcmp(x->shard_id, y->shard_id) == 0 && strcmp(x->file, y->file) == 0;
        if (strcmp(x->name, y->name) != 0 || x->own != y->own || (!x->own && !alike))
            return false;
    }
    return true;
}

const char *slot_table_images_wrong(const struct declaration *d, const uint64_t *header_bytes, const uint64_t *bytes)
{
    for (unsigned i = 0; i < d->parts; i++) {
        bool is_file = d->part[i].file[0], absent = d->part[i].own && !bytes[i];
        if (is_file && header_bytes[i])
            return "a file has no header";
        if (!is_file && !absent && !header_bytes[i])
            return "a part of tensors begins with a safetensors header of at least 8 bytes";
    }
    return NULL;
}

static void grant(struct slot_table *k, struct slot_table_worker *w)
{
    w->declared = w->granted = w->known = true;
    slot_table_answer(k, w, WORKER_MSG_GRANT, w->seq)->u.grant = (struct wmsg_grant){.slots = SLOT_TABLE_SLOTS};
}

/* Tables for the sizes of as many parts as were named; false: no memory. */
static bool make_tables(struct slot_table *k, struct slot_table_worker *w, unsigned parts)
{
    w->images = el_alloc(k->mem, (size_t)parts * IMAGE_SIZES_ENTRY_MAX + 1);
    w->told = el_alloc(k->mem, parts * sizeof *w->told);
    for (unsigned i = 0; w->images && i < SLOT_TABLE_SLOTS; i++) {
        struct slot_table_slot *s = &w->slot[i];
        s->part_bytes = el_alloc(k->mem, 3 * parts * sizeof *s->part_bytes);
        if (!s->part_bytes)
            return false;
        s->part_header_bytes = s->part_bytes + parts;
        s->part_digest = s->part_bytes + 2 * parts;
    }
    return w->images && w->told;
}

/* As the module calls what is one rank's: "rank3". */
static bool is_rank(const char *shard_id)
{
    return strncmp(shard_id, "rank", 4) == 0 && shard_id[4] &&
           strspn(shard_id + 4, "0123456789") == strlen(shard_id + 4);
}

/* Which part makes the difference to what the last snapshot has. */
static void say_other_parts(struct slot_table *k, const struct slot_table_worker *w)
{
    char what[3 * WORKER_MSG_NAME_MAX];
    const struct declaration *then = w->kept, *now = w->named;
    snprintf(what, sizeof what, "it was of layout %.60s, and this is %.60s", then->layout_id, now->layout_id);
    for (unsigned i = 0; i < then->parts; i++)
        if (!part_named(now, then->part[i].name))
            snprintf(what, sizeof what, "it has a part \"%.100s\", which is not declared now", then->part[i].name);
    for (unsigned i = 0; i < now->parts; i++) {
        const struct slot_table_part *p = &now->part[i], *was = part_named(then, p->name);
        if (!was)
            snprintf(what, sizeof what, "it has no part \"%.100s\"", p->name);
        else if (!p->own && is_rank(was->shard_id) && is_rank(p->shard_id) && strcmp(was->shard_id, p->shard_id) != 0)
            snprintf(what, sizeof what,
                     "its part \"%.60s\" was of %.60s, and is of %.60s now: a node keeps its ranks by --node-rank",
                     p->name, was->shard_id, p->shard_id);
        else if (!p->own && strcmp(was->shard_id, p->shard_id) != 0)
            snprintf(what, sizeof what, "its part \"%.60s\" has the shard id \"%.60s\", and now \"%.60s\"", p->name,
                     was->shard_id, p->shard_id);
    }
    el_snip(k->lost, sizeof k->lost, "rank %u declares other parts than those of its last snapshot: %s", w->rank, what);
}

/* New slots for what was named, without memory yet. */
static void ask_for_slots(struct slot_table *k, struct slot_table_worker *w)
{
    if (slot_table_newest_slot(w))
        say_other_parts(k, w);
    if (w->has_slots || w->opening)
        slot_table_act(k, SLOT_TABLE_DO_RELEASE, w);
    slot_table_forget_slots(k, w);
    if (!make_tables(k, w, w->named->parts)) {
        slot_table_forget_slots(k, w);
        slot_table_refuse(k, w, w->seq, "NOMEM", "no memory for the table of parts");
        return;
    }
    w->kept = w->named;
    w->named = NULL;
    k->alike = false;
    w->opening = w->declared = true;
    slot_table_act(k, SLOT_TABLE_DO_OPEN, w);
}

/* The same parts once more: whose own pieces they are may be said anew, where ranks have other numbers now. */
static void keep_named(struct slot_table *k, struct slot_table_worker *w)
{
    el_free(k->mem, w->kept);
    w->kept = w->named;
    w->named = NULL;
    k->alike = false;
}

void slot_table_on_declare(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    w->seq = m->seq;
    if (!w->refuse[0] && (!w->named || w->named->parts != m->u.declare.parts))
        snprintf(w->refuse, sizeof w->refuse, "%llu parts are declared, %u were named",
                 (unsigned long long)m->u.declare.parts, w->named ? w->named->parts : 0);
    if (k->conf.budget_bytes == 0)
        slot_table_refuse(k, w, m->seq, "OFF", "snapshots are off: start elrun with --ckpt-dir or --ckpt-mem");
    else if (w->refuse[0]) {
        snprintf(k->text, sizeof k->text, "%s", w->refuse);
        slot_table_refuse(k, w, m->seq, "PARTS", k->text);
    } else {
        snprintf(w->named->layout_id, sizeof w->named->layout_id, "%s", m->u.declare.layout_id);
        bool same = w->kept && slot_table_declared_same(w->kept, w->named);
        if (same)
            keep_named(k, w);
        if (same && w->has_slots)
            grant(k, w);
        else if (same)
            w->declared = true; /* its predecessor died while they were made: granted when they are there */
        else if (w->declared)
            slot_table_refuse(k, w, m->seq, "DECLARED",
                              "other parts have been declared already: what is declared holds until the worker ends");
        else
            ask_for_slots(k, w);
    }
    el_free(k->mem, w->named);
    w->named = NULL;
    w->refuse[0] = 0;
}

void slot_table_on_opened(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    if (!w->opening)
        return; /* asked for by a worker that has gone, and taken back since */
    w->opening = false;
    w->has_slots = ev->ok;
    if (ev->ok && w->declared)
        grant(k, w);
    if (ev->ok)
        return;
    snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "no memory for the slots");
    if (w->declared)
        slot_table_refuse(k, w, w->seq, "NOMEM", k->text);
    w->declared = false;
    slot_table_act(k, SLOT_TABLE_DO_RELEASE, w); /* what there is of them */
    slot_table_forget_slots(k, w);
}
