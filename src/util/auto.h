/* Locals that release themselves, and the visible way for ownership to leave. */
#ifndef UTIL_AUTO_H
#define UTIL_AUTO_H

/* AUTO(x_free) struct x *p = …;  calls x_free(p) at the end of the scope unless p is NULL by then. */
#define AUTO(release) __attribute__((cleanup(auto_##release)))
#define AUTO_DEFINE(type, release)                                                                                     \
    static inline void auto_##release(type **p)                                                                        \
    {                                                                                                                  \
        if (*p)                                                                                                        \
            release(*p);                                                                                               \
    }                                                                                                                  \
    struct auto_##release##_semicolon

/* Gives the pointer away: the local is NULL afterwards. */
#define take_ptr(p)                                                                                                    \
    __extension__({                                                                                                    \
        __typeof__(p) taken_ = (p);                                                                                    \
        (p) = NULL;                                                                                                    \
        taken_;                                                                                                        \
    })

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
