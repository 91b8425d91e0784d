/* Messages as JSON objects for `--json`: the fields by their names there, all of them. */
#ifndef CMD_JSON_H
#define CMD_JSON_H
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"

static inline json_t *json_hex(uint64_t v)
{
    char text[17];
    snprintf(text, sizeof text, "%llx", (unsigned long long)v);
    return json_string(text);
}

#define JSON_NUM(v)  json_integer((json_int_t)(v))
#define JSON_INT(v)  json_integer((json_int_t)(v))
#define JSON_STR(v)  json_string(v)
#define JSON_HEX(v)  json_hex(v)
#define JSON_BOOL(v) json_boolean(v)

/* A function that makes the object of one kind of message. */
#define JSON_FIELD(T, kind, name, limit, must) json_object_set_new(o, #name, JSON_##kind(m->name));
#define JSON_ROW(name)                                                                                                 \
    static json_t *json_##name(const struct msg_##name *m)                                                             \
    {                                                                                                                  \
        json_t *o = json_object();                                                                                     \
        MSG_##name##_FIELDS(JSON_FIELD, msg_##name) json_object_del(o, "more");                                        \
        return o;                                                                                                      \
    }

/* Takes the object over; one line on standard output.  As command_print(). */
static inline int json_print(json_t *all, struct el_err *e)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    char *text = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER);
    out.full |= !text || el_buf_printf(&out, "%s\n", text);
    free(text);
    json_decref(all);
    return command_print(&out, e);
}

#endif
