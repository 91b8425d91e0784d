/* The Python package `elrun` that a training script imports.  All files of src/client/elrun are part of the binary;
 * agent/run_folder.h writes them where the workers find them. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

struct client_file {
    const char *name; /* in the package's folder */
    const char *text, *end;
};

/* Ended by a NULL name. */
extern const struct client_file client_files[];

#endif
