/* Flat structs as JSON objects and back, from one table of their fields.  Messages, result lines and orders are all
 * written and read here: bounded, strict about what is known, silent about what is newer.
 *
 * The table is made from an X-macro list F(T, kind, name, limit, must) of struct T:
 *   NUM   uint64_t 0 … limit           HEX   uint64_t as 1 … 16 hexadecimal digits in a string (limit unused)
 *   INT   int64_t -1 … limit           STR   const char *, at most limit bytes; belongs to the tree that was read
 *   BOOL  bool                         REAL  double, finite (limit unused)
 * must 1: missing is an error; 0: missing is 0, "" or false, and these are not written; 2, for INT and REAL: missing is
 * -1 or NAN, that is not known, and these are not written. */
#ifndef UTIL_FIELDS_H
#define UTIL_FIELDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/err.h"

enum el_field_kind {
    EL_FIELD_NUM,
    EL_FIELD_INT,
    EL_FIELD_HEX,
    EL_FIELD_STR,
    EL_FIELD_BOOL,
    EL_FIELD_REAL,
};

struct el_field {
    const char *name;
    enum el_field_kind kind;
    uint64_t limit;
    unsigned char must;
    size_t offset;
};

/* Members of the struct, and rows of the table.  A table ends with EL_FIELD_END, so that one may have no fields. */
#define EL_FIELD_C_NUM                                  uint64_t
#define EL_FIELD_C_INT                                  int64_t
#define EL_FIELD_C_HEX                                  uint64_t
#define EL_FIELD_C_STR                                  const char *
#define EL_FIELD_C_BOOL                                 bool
#define EL_FIELD_C_REAL                                 double
#define EL_FIELD_MEMBER(T, k, field, at_most, required) EL_FIELD_C_##k field;
#define EL_FIELD_ROW(T, k, field, at_most, required)                                                                   \
    {#field, EL_FIELD_##k, (uint64_t)(at_most), required, offsetof(struct T, field)},
#define EL_FIELD_END                                                                                                   \
    {                                                                                                                  \
        NULL, EL_FIELD_NUM, 0, false, 0                                                                                \
    }

/* "number", "hex", …: for manuals and errors. */
const char *el_field_kind_name(enum el_field_kind kind);

/* Appends the object.  Strings that are too long are cut at a whole character, bytes that are not UTF-8 are replaced;
 * NULL is "".  0, or -1 if the buffer refused (what was appended then is for the caller to take back). */
int el_fields_put(struct el_buf *out, const struct el_field *fields, const void *from);

struct el_fields_limit {
    unsigned values_max; /* strings, numbers, literals of one text: bounds what a parser allocates */
    unsigned depth_max;
};

/* Reads one JSON object.  name: what it is, for errors ("HELLO: \"min\" is missing (…)").  *tree owns the strings that
 * to points into: el_fields_release() it, also after an error.  Fields that are not in the table are a newer version's
 * and are passed over.  0, or -1 with *e (EL_EXIT_PROTOCOL). */
int el_fields_get(const char *name, const struct el_field *fields, const char *text, size_t n,
                  struct el_fields_limit limit, void *to, void **tree, struct el_err *e);
void el_fields_release(void **tree);

#endif
