# Purity bites: ten impure calls planted in a scratch core file are refused, one line each; clean ones pass.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/src/util"
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }

# refuse NAME FILE FLAGS: compiles $tmp/src/util/NAME.c and prints what the purity check says of it.
purity() {
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -w $2 -c -o "$tmp/src/util/$1.o" "$tmp/src/util/$1.c" &&
        nm -A "$tmp/src/util/$1.o" | awk -f test/lib/pure.awk test/lib/pure.allow -
}

cat >"$tmp/src/util/planted.c" <<'C'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
int compare(const void *, const void *);
long planted(char *s, size_t n)
{
    char b[64];
    void *p = malloc(n);
    qsort(s, n, 1, compare);
    printf("%p", p);
    return time(NULL) + read(0, b, n) + (getenv("A") == s) + getpid() + rand() + strtol(s, NULL, 10) +
           getrandom(b, sizeof b, 0) + errno;
}
int compare(const void *a, const void *b) { return memcmp(a, b, 1); }
C
for flags in -O0 '-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-all'; do
    said=$(purity planted "$flags"); status=$?
    ok "$((status == 0))" "a planted file fails the check ($flags)"
    for call in malloc qsort printf time read getenv getpid rand strtol getrandom; do
        echo "$said" | grep -qE "^src/util/planted.c: (__isoc(99|23)_|__)?$call(_chk)? is not for the core"
        ok $? "$call is refused ($flags)"
    done
    echo "$said" | grep -q '__errno_location is not for the core'; ok $? "errno is refused ($flags)"
    ok "$(($(echo "$said" | grep -c 'is not for the core') != 11))" "and nothing else ($flags)"
done

cat >"$tmp/src/util/clean.c" <<'C'
#include <assert.h>
#include <stdio.h>
#include <string.h>
int clean(char *to, size_t n, const char *s)
{
    assert(n > 1);
    memset(to, 0, n);
    return snprintf(to, n, "%s", s) + (strchr(to, 'x') != NULL);
}
C
said=$(purity clean '-O2 -D_FORTIFY_SOURCE=2'); ok $? 'a clean file passes'
[ -z "$said" ]; ok $? 'in silence'

printf '#include <stdlib.h>\nvoid *mem(size_t n) { return calloc(n, 1); }\n' | tee "$tmp/src/util/mem.c" >"$tmp/src/util/other.c"
purity mem -O1 >/dev/null; ok $? 'a call that is allowed to one file passes there'
said=$(purity other -O1); ok "$(($? == 0))" 'and nowhere else'
echo "1..$n"
