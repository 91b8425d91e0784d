/* What each node is to be told about saving a step, made anew whenever it is told. */
#include <stdio.h>
#include <string.h>

#include "coord/ckpt_commit_private.h"

static char *words_for(struct ckpt_commit *s, size_t bytes)
{
    if (bytes > s->words_room) {
        char *more = el_realloc(&s->mem, s->words, bytes);
        if (!more)
            return NULL;
        s->words = more;
        s->words_room = bytes;
    }
    return s->words;
}

static bool write_word(struct ckpt_commit *s, unsigned node, struct msg *out)
{
    char *text = words_for(s, CKPT_COMMIT_STEPS_TEXT + 1);
    size_t n = 0;
    if (!text)
        return false;
    for (uint32_t i = 0; i < s->files; i++)
        if (s->file[i].node == node && n < CKPT_COMMIT_STEPS_TEXT - 24) {
            unsigned number = s->conf.store == CKPT_COMMIT_LOCAL ? s->file[i].index + 1 : i + 1;
            n += (size_t)snprintf(text + n, CKPT_COMMIT_STEPS_TEXT - n, "%s%u=%u", n ? " " : "", s->file[i].index,
                                  number);
        }
    *out = (struct msg){.type = MSG_CKPT_WRITE};
    out->u.ckpt_write = (struct msg_ckpt_write){.giver = s->conf.giver,
                                                .order = s->order,
                                                .number = s->op_number,
                                                .coord = s->op_coord,
                                                .list = s->node[node].list,
                                                .step = s->step,
                                                .lineage = s->lineage,
                                                .nonce = s->nonce,
                                                .emergency = s->op_emergency,
                                                .parts = text};
    return true;
}

static void file_word(const struct ckpt_commit *s, uint32_t i, bool more, struct msg *out)
{
    const struct ckpt_commit_file *f = &s->file[i];
    *out = (struct msg){.type = MSG_CKPT_FILE};
    out->u.ckpt_file = (struct msg_ckpt_file){.giver = s->conf.giver,
                                              .order = s->order,
                                              .index = i,
                                              .part = f->part,
                                              .shard = f->shard,
                                              .name = f->name,
                                              .size = f->size,
                                              .samples = f->samples,
                                              .sums = f->sums,
                                              .more = more};
}

static bool ckpt_commit_text_is_told(const struct ckpt_commit *s, const struct ckpt_commit_node *n, uint64_t conn)
{
    return n->told_conn == conn && n->told_order == s->order && n->told_got == n->got;
}

/* As many files as it may be sent before it answers; behind the last one the order itself. */
static bool publish_word(struct ckpt_commit *s, struct ckpt_commit_node *n, uint64_t conn, unsigned i, struct msg *out)
{
    uint32_t files = s->conf.store == CKPT_COMMIT_LOCAL ? 0 : s->files,
             first = n->got < files ? (uint32_t)n->got : files;
    size_t bytes = 0;
    if (!i && ckpt_commit_text_is_told(s, n, conn))
        return false;
    n->told_conn = conn;
    n->told_order = s->order;
    n->told_got = n->got;
    for (uint32_t k = first; k < files && k <= first + i; k++) {
        bytes += strlen(s->file[k].sums) + 1024;
        if (bytes > CKPT_COMMIT_BATCH && k > first)
            return false;
    }
    if (first + i < files) {
        size_t next = first + i + 1 < files ? strlen(s->file[first + i + 1].sums) + 1024 : 0;
        file_word(s, first + i, first + i + 1 == files || bytes + next <= CKPT_COMMIT_BATCH, out);
        return true;
    }
    if (first + i > files)
        return false;
    *out = (struct msg){.type = MSG_CKPT_PUBLISH};
    out->u.ckpt_publish = (struct msg_ckpt_publish){.giver = s->conf.giver,
                                                    .order = s->order,
                                                    .number = s->op_number,
                                                    .coord = s->op_coord,
                                                    .step = s->step,
                                                    .nonce = s->nonce,
                                                    .emergency = s->op_emergency,
                                                    .files = files,
                                                    .world = s->op_world,
                                                    .layout = s->layout};
    return true;
}

static void over_word(const struct ckpt_commit *s, uint64_t giver, uint64_t order, const struct ckpt_commit_wish *wish,
                      struct msg *out)
{
    bool ours = giver == s->conf.giver;
    const struct ckpt_commit_result *x = wish   ? ckpt_commit_result_of(s, wish->step, wish->lineage)
                                         : ours ? ckpt_commit_result_of_order(s, order)
                                                : NULL;
    const char *text = x       ? x->text
                       : order ? "the order to write it is no more"
                               : "what became of it is not known any more";
    *out = (struct msg){.type = MSG_CKPT_OVER};
    out->u.ckpt_over = (struct msg_ckpt_over){.giver = giver,
                                              .order = order,
                                              .step = wish ? wish->step
                                                      : x  ? x->step
                                                           : CKPT_COMMIT_NO_STEP,
                                              .lineage = wish ? wish->lineage
                                                         : x  ? x->lineage
                                                              : 0,
                                              .good = x && x->good,
                                              .text = text};
    if (out->u.ckpt_over.good)
        ckpt_commit_tell_result(s, &out->u.ckpt_over);
}

enum word { WORD_NONE, WORD_ORDER_OVER, WORD_WISH_OVER, WORD_ASK_OVER, WORD_WRITE, WORD_PUBLISH };

static enum word word_for(const struct ckpt_commit *s, unsigned node)
{
    const struct ckpt_commit_node *n = &s->node[node];
    if (n->order && !ckpt_commit_is_of_order(s, n->giver, n->order))
        return WORD_ORDER_OVER;
    if (!n->order && ckpt_commit_wish_over(s, n))
        return WORD_WISH_OVER;
    if (!n->order && n->ask_at == CKPT_COMMIT_ASK_ANSWERED)
        return WORD_ASK_OVER;
    if (s->phase == CKPT_COMMIT_WRITING && !n->order && n->files)
        return WORD_WRITE;
    bool publishes = s->conf.store == CKPT_COMMIT_LOCAL ? n->files > 0 : s->publisher == node;
    return s->phase == CKPT_COMMIT_PUBLISHING && publishes && n->order && n->at == CKPT_COMMIT_AT_WRITTEN ? WORD_PUBLISH
                                                                                                          : WORD_NONE;
}

bool ckpt_commit_word(struct ckpt_commit *s, unsigned node, uint64_t conn, unsigned i, struct msg *out)
{
    if (node >= s->used)
        return false;
    struct ckpt_commit_node *n = &s->node[node];
    switch (word_for(s, node)) {
    case WORD_ORDER_OVER: over_word(s, n->giver, n->order, NULL, out); return i == 0;
    case WORD_WISH_OVER: over_word(s, 0, 0, ckpt_commit_wish_over(s, n), out); return i == 0;
    case WORD_ASK_OVER: ckpt_commit_ask_word(s, n, out); return i == 0;
    case WORD_WRITE: return i == 0 && write_word(s, node, out);
    case WORD_PUBLISH: return publish_word(s, n, conn, i, out);
    case WORD_NONE: break;
    }
    return false;
}

bool ckpt_commit_has_word(const struct ckpt_commit *s, unsigned node, uint64_t conn)
{
    enum word word = node < s->used ? word_for(s, node) : WORD_NONE;
    return word != WORD_NONE && !(word == WORD_PUBLISH && ckpt_commit_text_is_told(s, &s->node[node], conn));
}
