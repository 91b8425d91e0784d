/* A stand-alone store with a coordinator on the same port: a loop of its own, until SIGTERM or SIGINT. */
#ifndef COORD_SERVE_H
#define COORD_SERVE_H
#include <stdbool.h>

#include "store/server.h"

struct store_serve_conf {
    struct store_server_conf server;
    const char *state_dir; /* of the coordinator's journal; NULL = none */
    el_usec keep_ended;    /* 0 = default */
    const char *events;    /* --events of its coordinator; NULL = none */
    const char *port_file; /* gets the port and a newline, whole, once it listens; NULL = none */
    const char *notify;    /* $NOTIFY_SOCKET; NULL = nobody wants to know */
    char *const *env;      /* for the form of log lines */
    bool print_port;       /* on stdout */
    bool json;             /* log lines as JSON */
    unsigned verbose;
};

/* Returns 0 after a signal; or *e is filled. */
int store_serve(const struct store_serve_conf *conf, struct el_err *e);

#endif
