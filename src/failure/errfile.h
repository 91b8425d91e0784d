/* The error file that torch's @record writes, read as it comes: whole, half-written, huge, or something else
 * altogether. A state machine over bytes with fixed memory; it never fails, it says what it saw.  Accepted shapes:
 *   {"message": {"message": "Type: text", "extraInfo": {"py_callstack": "…", "timestamp": "1700000000"}, "errorCode":
 * 1}}
 *   {"message": "text", "timestamp": 1700000000}
 * Unknown members are skipped.  Of a file that breaks off, what came before still counts. */
#ifndef FAILURE_ERRFILE_H
#define FAILURE_ERRFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"

#define ERRFILE_DEPTH_MAX   32
#define ERRFILE_KEY_MAX     32
#define ERRFILE_MESSAGE_MAX 4096        /* bytes kept of the message, from its start */
#define ERRFILE_STACK_HEAD  (16 * 1024) /* bytes kept of the traceback: its start … */
#define ERRFILE_STACK_TAIL  (16 * 1024) /* … and its end */
#define ERRFILE_SIZE_MAX    (64u << 20) /* bytes read of one file */

#define ERRFILE_STATE_LIST(X)                                                                                          \
    X(ABSENT, "there is none")                                                                                         \
    X(WHOLE, "whole")                                                                                                  \
    X(CUT, "it breaks off: the worker ended while it wrote")                                                           \
    X(BROKEN, "it is not JSON")                                                                                        \
    X(FOREIGN, "it is JSON, but has no message")                                                                       \
    X(HUGE, "it is larger than 64 MiB")                                                                                \
    X(NOT_A_FILE, "it is not a regular file")                                                                          \
    X(UNREADABLE, "it cannot be read")

enum errfile_state {
#define X(name, text) ERRFILE_##name,
    ERRFILE_STATE_LIST(X)
#undef X
};

/* A long text of which the start and the end are kept.  tail is a ring: errfile_stack() puts it in order. */
struct errfile_clip {
    char head[ERRFILE_STACK_HEAD];
    char tail[ERRFILE_STACK_TAIL];
    uint64_t total; /* bytes that went in */
};

struct errfile {
    /* results, valid at any time, final after errfile_end() */
    enum errfile_state state;
    char message[ERRFILE_MESSAGE_MAX]; /* as in the file but for NUL; ends with 0; "" = none; text_clean() it */
    bool message_cut;
    struct errfile_clip stack; /* py_callstack; total 0 = none */
    int64_t timestamp_sec;     /* of the file; -1 = none */
    bool has_object;           /* message is an object: errorCode can be added to it */
    bool object_empty;
    uint64_t object_end; /* offset of its closing brace, for whoever adds a member */

    /* the machine: private to errfile.c */
    struct {
        uint64_t offset;
        uint8_t mode, field, depth, hex_left, literal_len, key_len;
        uint8_t path[4]; /* which known key is open at depth 1 … 3 */
        bool is_object[ERRFILE_DEPTH_MAX + 1];
        bool in_key, has_message;
        uint32_t hex, high; /* of \uXXXX; high: a first surrogate that waits for its second, or 0 */
        char key[ERRFILE_KEY_MAX], literal[32];
        uint32_t message_len;
    } m;
};

void errfile_init(struct errfile *e);

/* Bytes of the file in order, in pieces of any size. */
void errfile_feed(struct errfile *e, const char *bytes, size_t n);

/* No more bytes: the state becomes WHOLE, CUT (also of an empty file), BROKEN or FOREIGN. */
void errfile_end(struct errfile *e);

/* For the shell, when the bytes could not be had: HUGE keeps what was read so far. */
void errfile_fail(struct errfile *e, enum errfile_state why);

const char *errfile_state_text(enum errfile_state s);

/* Appends the traceback as in the file, with one line in the middle that tells how much was left out; 0, or -1 and
 * out->full. */
int errfile_stack(const struct errfile *e, struct el_buf *out);

#endif
