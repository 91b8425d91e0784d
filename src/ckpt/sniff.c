#include "ckpt/sniff.h"

#include <stdio.h>
#include <string.h>

#include "util/parse.h"
#include "util/utf8.h"

static bool sniff_begins(const char *head, size_t n, const char *with)
{
    size_t k = strlen(with);
    return n >= k && memcmp(head, with, k) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Without regard to case, behind spaces and a byte order mark. */
static bool begins_tag(const char *head, size_t n, const char *with)
{
    size_t at = sniff_begins(head, n, "\xef\xbb\xbf") ? 3 : 0;
    while (at < n && is_space(head[at]))
        at++;
    for (; *with; with++, at++)
        if (at >= n || (head[at] >= 'A' && head[at] <= 'Z' ? head[at] + 32 : head[at]) != *with)
            return false;
    return true;
}

static bool all_zero(const char *p, size_t n)
{
    return !p[0] && memcmp(p, p + 1, n - 1) == 0;
}

/* UTF-8 without control characters, cut off anywhere. */
static bool sniff_is_text(const char *p, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = el_utf8(p + i, n - i);
        if (!k && n - i >= 4)
            return false;
        k = k ? k : n - i;
        if ((unsigned char)p[i] < ' ' ? !is_space(p[i]) : p[i] == 127)
            return false;
    }
    return true;
}

static bool is_safetensors(const char *p, size_t n)
{
    uint64_t header = 0;
    for (unsigned i = 8; n >= 9 && i-- > 0;)
        header = header << 8 | (unsigned char)p[i];
    return n >= 9 && p[8] == '{' && header <= 100000000;
}

/* The number behind a key at the beginning of a line. */
static uint64_t sniff_number_of(const char *head, size_t n, const char *key)
{
    uint64_t v = 0;
    for (const char *p = head, *end = head + n; p < end; p++) {
        size_t digits = 0, k = strlen(key);
        if ((p > head && p[-1] != '\n') || !sniff_begins(p, (size_t)(end - p), key))
            continue;
        while (p + k + digits < end && p[k + digits] >= '0' && p[k + digits] <= '9')
            digits++;
        return el_parse_u64n(p + k, digits, &v) ? 0 : v;
    }
    return 0;
}

/* Git LFS, Xet, git-annex, DVC: small texts. */
static bool is_pointer(struct sniff *s, const char *p, size_t n)
{
    static const struct {
        const char *begin, *what, *cure, *size;
    } kinds[] = {
        {"version https://git-lfs.github.com/spec/", "a Git LFS pointer", "git lfs pull", "size "},
        {"version https://hawser.github.com/spec/", "a Git LFS pointer", "git lfs pull", "size "},
        {"# xet version", "a pointer of Git Xet", "git xet checkout", "filesize = "},
        {"/annex/objects/", "a pointer of git-annex", "git annex get", ""},
        {"outs:\n- md5:", "a pointer of DVC", "dvc pull", "  size: "},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!sniff_begins(p, n, kinds[i].begin))
            continue;
        s->kind = SNIFF_POINTER;
        s->what = kinds[i].what;
        s->cure = kinds[i].cure;
        s->bytes = *kinds[i].size ? sniff_number_of(p, n, kinds[i].size) : 0;
        return true;
    }
    return false;
}

static bool is_packed(struct sniff *s, const char *p, size_t n)
{
    static const struct {
        const char *begin, *what;
    } kinds[] = {
        {"\x1f\x8b\x08", "compressed with gzip"},
        {"BZh", "compressed with bzip2"},
        {"\xfd"
         "7zXZ",
         "compressed with xz"},
        {"\x28\xb5\x2f\xfd", "compressed with zstd"},
        {"\x04\x22\x4d\x18", "compressed with lz4"},
        {"7z\xbc\xaf\x27", "a 7z archive"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (sniff_begins(p, n, kinds[i].begin))
            s->what = kinds[i].what;
    if (n >= 262 && memcmp(p + 257, "ustar", 5) == 0)
        s->what = "a tar archive";
    s->kind = s->what ? SNIFF_PACKED : SNIFF_OTHER;
    return s->what;
}

static bool is_document(struct sniff *s, const char *p, size_t n)
{
    if (begins_tag(p, n, "<!doctype html") || begins_tag(p, n, "<html") || begins_tag(p, n, "<head"))
        s->what = "a web page (HTML)";
    else if (begins_tag(p, n, "<?xml") || begins_tag(p, n, "<error"))
        s->what = "an XML document", s->xml = true;
    return s->what;
}

/* Whether the first member of an archive is …/data.pkl. */
static bool names_pickle(const char *p, size_t n)
{
    size_t name = n >= 30 ? (size_t)(unsigned char)p[26] + ((size_t)(unsigned char)p[27] << 8) : 0;
    return name >= 9 && n >= 30 + name && memcmp(p + 30 + name - 9, "/data.pkl", 9) == 0;
}

/* The end of the magic number of the old format, behind the protocol of its pickle. */
static bool is_old(const char *p, size_t n)
{
    return n >= 15 && p[0] == '\x80' && memcmp(p + 2, "\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 13) == 0;
}

void sniff(struct sniff *s, const char *head, size_t n)
{
    *s = (struct sniff){.kind = n ? SNIFF_OTHER : SNIFF_EMPTY};
    if (!n || is_pointer(s, head, n) || is_packed(s, head, n))
        return;
    if (is_document(s, head, n))
        s->kind = SNIFF_DOCUMENT;
    else if (all_zero(head, n))
        s->kind = SNIFF_ZEROS;
    else if (sniff_begins(head, n, "PK\3\4"))
        s->kind = SNIFF_ZIP, s->torch = names_pickle(head, n);
    else if (is_old(head, n))
        s->kind = SNIFF_OLD;
    else if (sniff_begins(head, n, "\x93NUMPY"))
        s->kind = SNIFF_NPY;
    else if (n >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
        s->kind = SNIFF_PICKLE;
    else if (is_safetensors(head, n))
        s->kind = SNIFF_SAFETENSORS;
    else if (sniff_is_text(head, n))
        s->kind = SNIFF_TEXT;
    if (s->kind == SNIFF_TEXT || s->kind == SNIFF_DOCUMENT) {
        size_t from = 0, k = 0;
        while (from < n && is_space(head[from]))
            from++;
        while (from + k < n && k + 1 < sizeof s->begin && head[from + k] != '\n' && head[from + k] != '\r') {
            s->begin[k] = head[from + k];
            k++;
        }
    }
}

void sniff_fail(const struct sniff *s, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    if (s->kind == SNIFF_EMPTY)
        ckpt_fail(e, CKPT_DAMAGED, "it is empty");
    else if (s->kind == SNIFF_ZEROS)
        ckpt_fail(e, CKPT_DAMAGED,
                  "there are zeros where it should begin: it was made, but its bytes never reached the disk");
    else if (s->kind == SNIFF_POINTER && s->bytes)
        ckpt_fail(e, CKPT_DAMAGED, "%s stands in the place of the file, which has %llu bytes: `%s` fetches it", s->what,
                  (unsigned long long)s->bytes, s->cure);
    else if (s->kind == SNIFF_POINTER)
        ckpt_fail(e, CKPT_DAMAGED, "%s stands in the place of the file: `%s` fetches it", s->what, s->cure);
    else
        ckpt_fail(e, CKPT_DAMAGED, "%s stands in the place of the file: it begins \"%s\"", s->what ? s->what : "a text",
                  el_show(s->begin, shown));
}

bool sniff_zeros_in_front(const char *head, size_t n)
{
    return n >= 32 && all_zero(head, n / 2);
}

bool sniff_padding(const char *p, size_t n)
{
    return sniff_begins(p, n, "PK\3\4") || (n && n < SNIFF_PAGE && all_zero(p, n));
}
