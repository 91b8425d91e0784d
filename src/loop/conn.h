/* One connected stream socket: bytes come by a callback, bytes go through a bounded queue.  Nothing here blocks, and no
 * call of the owner ever calls the owner back: what goes wrong in a send shows as closed() in a later turn. */
#ifndef LOOP_CONN_H
#define LOOP_CONN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "util/buf.h"

enum conn_why {
    CONN_EOF,       /* the peer has closed its side, and all that was to be sent has been sent */
    CONN_ERROR,     /* sys says what */
    CONN_OVERFLOW,  /* more than out_max_bytes were unsent when more came: the peer does not read */
    CONN_NO_MEMORY, /* the unsent bytes did not fit the allocator's limit */
};

struct conn;

/* Both may conn_close() (and free) the connection.  closed() is the last call; the owner must conn_close() then.
 *
 * data(): the bytes are valid during the call.  What it returns is sent and the buffer, which stays the owner's,
 * emptied; NULL: nothing, or the connection is gone.  An answer that is returned is cheaper than one that is sent by
 * conn_send(): on many machines each function that is open during a system call returns slowly.
 *
 * moved(), if there is one: the socket did not take all of what data() returned; or it took some of what was unsent; or
 * it has room, which was awaited.  It may conn_close(), too. */
struct conn_ops {
    struct el_buf *(*data)(struct conn *c, const char *bytes, size_t n);
    void (*closed)(struct conn *c, enum conn_why why, int sys);
    void (*moved)(struct conn *c);
};

/* Embedded by its owner; the fields are conn_io.c's.  Those that each read and write needs stand together at the end.
 */
struct conn {
    struct loop_fd *watch;
    size_t out_max_bytes;
    int sys;
    uint8_t why; /* enum conn_why, once broken */
    size_t to_n;
    struct el_buf out; /* unsent: from out_at on; no memory while there is nothing */
    size_t out_at;
    char *to; /* where the next bytes are wanted; NULL: anywhere */
    const struct conn_ops *ops;
    int fd;
    bool broken, eof, paused, awaits;
    bool growing; /* its queue is being made larger: conn_shed() must not touch it */
};

/* The descriptor must be non-blocking; it is the connection's from here on, also on error (-1: no memory). */
int conn_open(struct conn *c, struct loop *l, int fd, const struct conn_ops *ops, struct el_mem *mem,
              size_t out_max_bytes);

/* Sends now what the socket takes and queues the rest. */
void conn_send(struct conn *c, const void *bytes, size_t n);

/* Sends what the socket takes now, unless others are unsent: how much. */
size_t conn_send_some(struct conn *c, const void *bytes, size_t n);

/* While it is awaited: moved() is called in each turn in which the socket has room. */
void conn_await_room(struct conn *c, bool awaits);

/* The next bytes are wanted at `to`, at most n of them, because the owner keeps them anyway; once, and the memory must
 * live so long.  NULL: anywhere. */
void conn_read_to(struct conn *c, char *to, size_t n);

/* True while bytes are unsent. */
bool conn_unsent(const struct conn *c);

/* True once a send has failed: what comes is of no use, closed() is under way. */
bool conn_broken(const struct conn *c);

/* How much memory the unsent bytes take. */
size_t conn_held(const struct conn *c);

/* Drops what is unsent, to have its memory, and breaks the connection off as CONN_NO_MEMORY.  May be called from within
 * any allocation.  False: it is this queue that asks for more. */
bool conn_shed(struct conn *c);

/* Stops and resumes reading. */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);

/* At once, without a word; unsent bytes are dropped. */
void conn_close(struct conn *c);

/* Gives the descriptor back, open: the caller's from here on, to be the connection of another owner.  For a connection
 * that has nothing unsent and is not broken. */
int conn_detach(struct conn *c);

#endif
