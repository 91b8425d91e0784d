/* What a coordinator tells of its jobs, for a person: rows of STATUS in, a screen of text out.  Pure. */
#ifndef COORD_STATUS_TEXT_H
#define COORD_STATUS_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "control/msg.h"
#include "util/buf.h"
#include "util/mem.h"

#define STATUS_TEXT_LISTED_MAX                                                                                         \
    64 /* nodes of a job that are listed one by one; of more, those that are not as the rest                           \
        */

struct status_text_member {
    char host[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1], state[MSG_NAME_MAX + 1];
    int node_rank, group_rank; /* -1: none */
    unsigned slots, rank_base;
    unsigned long long heard_ms;
};

struct status_text {
    struct el_mem *mem;
    struct msg_status_job job; /* its strings are the copies below */
    char run_id[MSG_RUN_ID_MAX + 1], state[MSG_NAME_MAX + 1], text[MSG_TEXT_MAX + 1], cause[MSG_TEXT_MAX + 1],
        aside[MSG_TEXT_MAX + 1], master_addr[MSG_ADDR_MAX + 1];
    struct status_text_member *member;
    size_t n, room;
};

/* Begins with a STATUS_JOB; what was there before is dropped. */
void status_text_job(struct status_text *o, const struct msg_status_job *j);
/* A node of that job.  -1: no memory. */
int status_text_member(struct status_text *o, const struct msg_status_member *m);
void status_text_free(struct status_text *o);

/* Appends the text.  columns: of the terminal. */
void status_text_text(const struct status_text *o, bool colour, unsigned columns, struct el_buf *out);

/* "4h12m", "63.2 s", "250 ms": at most 15 bytes. */
const char *status_text_time(unsigned long long ms, char to[16]);

#endif
