#include "control/peer_ident.h"

#include <string.h>

/* What people point at by mistake: what it says by itself, or to bytes that it does not know. */
static const struct {
    const char *bytes, *name;
} strangers[] = {
    {"SSH-", "an SSH server"},        {"HTTP/", "an HTTP server"}, {"<", "an HTTP server"},
    {"220 ", "a mail or FTP server"}, {"-ERR", "a Redis server"},  {"\x15\x03", "a TLS server"},
    {"\x16\x03", "a TLS server"},
};

const char *peer_ident_name(const char *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        size_t want = strlen(strangers[i].bytes);
        if (n >= want && memcmp(bytes, strangers[i].bytes, want) == 0)
            return strangers[i].name;
    }
    return NULL;
}
