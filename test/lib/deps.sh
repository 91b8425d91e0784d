# deps.sh [--if-there] PACKAGE...: installs the Debian packages that are missing, or says which ones somebody else must install.
# --if-there: where that fails it is said, and no error: the tests that want them are skipped.
if [ "$1" = --if-there ]; then
    shift
    sh "$0" "$@" || echo "deps: without $*"
    exit 0
fi
missing=
for p; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"; done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "deps: this is not Debian or Ubuntu; please install what these packages hold:$missing"; exit 1
fi
if [ "$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as=sudo; else
    echo "deps: missing:$missing"; echo "deps: as root, please run: apt-get install$missing"; exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$as apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 && exit 0
$as apt-get update -q >/dev/null && $as apt-get install -y --no-install-recommends $missing >/dev/null
