#include "util/addr.h"

#include <stdio.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* --- text to bytes ------------------------------------------------------------------------------------------------ */

/* Exactly "a.b.c.d", each 0 … 255 without leading zeros (which some read as octal). */
static bool parse_v4(const char *s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned x = 0, digits = 0;
        for (; *s >= '0' && *s <= '9' && digits < 4; s++, digits++)
            x = x * 10 + (unsigned)(*s - '0');
        if (!digits || digits > 3 || x > 255 || (digits > 1 && s[-(int)digits] == '0'))
            return false;
        out[i] = (uint8_t)x;
        if (*s++ != (i < 3 ? '.' : 0))
            return false;
    }
    return true;
}

static int addr_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Groups of up to four hexadecimal digits, one "::" at most, perhaps a v4 address at the end. */
static bool parse_v6(const char *s, uint8_t out[16])
{
    uint8_t ip[16] = {0};
    int n = 0, gap = -1;
    if (s[0] == ':' && s[1] == ':') {
        gap = 0;
        s += 2;
    }
    while (*s) {
        unsigned x = 0, digits = 0;
        const char *start = s;
        for (; addr_hex_digit(*s) >= 0 && digits < 4; s++, digits++)
            x = x * 16 + (unsigned)addr_hex_digit(*s);
        if (*s == '.' && n <= 12 && parse_v4(start, ip + n)) {
            n += 4;
            break;
        }
        if (!digits || n > 14)
            return false;
        ip[n++] = (uint8_t)(x >> 8);
        ip[n++] = (uint8_t)x;
        if (!*s)
            break;
        if (*s++ != ':' || !*s)
            return false;
        if (*s == ':') {
            if (gap >= 0)
                return false;
            gap = n;
            s++;
        }
    }
    if (gap < 0 ? n != 16 : n > 14)
        return false;
    memset(out, 0, 16);
    if (gap < 0)
        gap = n;
    memcpy(out, ip, (size_t)gap);
    memcpy(out + 16 - (n - gap), ip + gap, (size_t)(n - gap));
    return true;
}

bool el_addr_parse(const char *text, uint8_t ip[16])
{
    uint8_t v4[4];
    if (parse_v4(text, v4)) {
        memcpy(ip, v4_prefix, sizeof v4_prefix);
        memcpy(ip + 12, v4, 4);
        return true;
    }
    return parse_v6(text, ip);
}

/* --- bytes to text ------------------------------------------------------------------------------------------------ */

bool el_addr_is_v4(const uint8_t ip[16])
{
    return !memcmp(ip, v4_prefix, sizeof v4_prefix);
}

bool el_addr_is_loopback(const uint8_t ip[16])
{
    static const uint8_t one[16] = {[15] = 1};
    return el_addr_is_v4(ip) ? ip[12] == 127 : !memcmp(ip, one, 16);
}

bool el_addr_is_any(const uint8_t ip[16])
{
    static const uint8_t zero[16];
    return !memcmp(el_addr_is_v4(ip) ? ip + 12 : ip, zero, el_addr_is_v4(ip) ? 4 : 16);
}

static unsigned addr_group(const uint8_t ip[16], int i)
{
    return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

/* RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups (the first of equals) as "::". */
static void text_v6(const uint8_t ip[16], char *text, size_t room)
{
    int best = 8, best_n = 1;
    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && !addr_group(ip, i + n))
            n++;
        if (n > best_n) {
            best = i;
            best_n = n;
        }
    }
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < 8 && at < room; i++) {
        if (i == best) {
            at += (size_t)snprintf(text + at, room - at, "::");
            i += best_n - 1;
            continue;
        }
        const char *colon = i && i != best + best_n ? ":" : "";
        at += (size_t)snprintf(text + at, room - at, "%s%x", colon, addr_group(ip, i));
    }
}

const char *el_addr_text(const struct el_addr *a, char text[EL_ADDR_TEXT_MAX])
{
    char ip[46];
    bool v4 = el_addr_is_v4(a->ip);
    if (v4)
        snprintf(ip, sizeof ip, "%u.%u.%u.%u", a->ip[12], a->ip[13], a->ip[14], a->ip[15]);
    else
        text_v6(a->ip, ip, sizeof ip);
    if (a->port)
        snprintf(text, EL_ADDR_TEXT_MAX, v4 ? "%s:%u" : "[%s]:%u", ip, a->port);
    else
        snprintf(text, EL_ADDR_TEXT_MAX, "%s", ip);
    return text;
}

/* --- networks ----------------------------------------------------------------------------------------------------- */

static bool bit(const uint8_t ip[16], unsigned i)
{
    return ip[i / 8] >> (7 - i % 8) & 1;
}

int el_cidr_parse(const char *text, struct el_cidr *out, struct el_err *e)
{
    char address[EL_ADDR_TEXT_MAX];
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    struct el_cidr c;
    if (n >= sizeof address)
        return el_fail(e, EL_EXIT_USAGE, "not a network: %.40s...", text);
    memcpy(address, text, n);
    address[n] = 0;
    if (!el_addr_parse(address, c.ip))
        return el_fail(e, EL_EXIT_USAGE, "not a network: %s; right is 10.0.0.0/8, fd00::/8 or one address", text);
    unsigned bits = 0, most = el_addr_is_v4(c.ip) ? 32 : 128, digits = 0;
    for (const char *s = slash ? slash + 1 : ""; *s; s++, digits++) {
        if (*s < '0' || *s > '9' || digits > 2)
            return el_fail(e, EL_EXIT_USAGE, "not a network: %s; a number of bits follows the slash", text);
        bits = bits * 10 + (unsigned)(*s - '0');
    }
    if (slash && (!digits || bits > most))
        return el_fail(e, EL_EXIT_USAGE, "not a network: %s; 0 to %u bits follow the slash", text, most);
    c.bits = (uint8_t)(slash ? 128 - most + bits : 128);
    for (unsigned i = c.bits; i < 128; i++)
        if (bit(c.ip, i))
            return el_fail(e, EL_EXIT_USAGE, "not a network: %s has bits set behind its first %u", text, bits);
    *out = c;
    return 0;
}

bool el_cidr_has(const struct el_cidr *c, const uint8_t ip[16])
{
    unsigned whole = c->bits / 8, rest = c->bits % 8;
    if (memcmp(c->ip, ip, whole))
        return false;
    return !rest || (c->ip[whole] ^ ip[whole]) >> (8 - rest) == 0;
}
