/* The classes of failures. */
#ifndef FAILURE_CLASS_H
#define FAILURE_CLASS_H

/* name, word for people and JSON, exit status under --exit-code=class (elrun(1), EXIT STATUS). */
#define FAILURE_CLASS_LIST(X)                                                                                          \
    X(UNKNOWN, "unknown", 1)                                                                                           \
    X(CODE, "code error", 65)                                                                                          \
    X(OOM_HOST, "out of memory", 1)                                                                                    \
    X(OOM_GPU, "out of GPU memory", 1)                                                                                 \
    X(HARDWARE, "hardware suspect", 72)                                                                                \
    X(NETWORK, "network", 75)                                                                                          \
    X(OUTSIDE, "killed from outside", 75)                                                                              \
    X(HANG, "hang", 75)

enum failure_class {
#define X(name, text, status) FAILURE_CLASS_##name,
    FAILURE_CLASS_LIST(X)
#undef X
};

#endif
