# bare_debian.sh FOLDER COMMAND...: runs each command, such as "make demo" and "make check", in a clone of this tree within
# a Debian root that has nothing but ca-certificates, git, make and python3: what else is needed the commands must install.
# FOLDER, which must not be there, receives the root and keeps it.  Packages come from where this host has them from.
set -eu
fail() { echo "bare_debian: $*" >&2; exit 1; }
[ $# -ge 2 ] || fail "usage: bare_debian.sh FOLDER COMMAND..."
[ "$(id -u)" = 0 ] || fail "only root can make a root file system"
command -v debootstrap >/dev/null || fail "there is no debootstrap here: apt-get install debootstrap"
folder=$1 root=$1/root; shift
[ ! -e "$folder" ] || fail "$folder is there already"
mkdir -p "$root"
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[.*\] \)\{0,1\}\(http[^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1)
echo "bare_debian: a root of $(. /etc/os-release; echo "$VERSION_CODENAME")"
debootstrap --variant=minbase --include=ca-certificates,git,make,python3 "$(. /etc/os-release; echo "$VERSION_CODENAME")" "$root" \
    "${mirror:-http://deb.debian.org/debian}" >"$folder/debootstrap.log" 2>&1 || { tail -3 "$folder/debootstrap.log"; fail "debootstrap failed"; }
# How packages and names are found is this host's.
cp -a /etc/apt/. "$root/etc/apt/"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || :
cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || :
for f in /etc/pip.conf "$HOME/.config/pip/pip.conf" /etc/ssl/certs/ca-certificates.crt ${PIP_CERT:-}; do
    [ ! -f "$f" ] || { mkdir -p "$root$(dirname "$f")"; cp -L "$f" "$root$f"; }
done
git clone -q . "$root/srv/elrun"
for command; do printf '%s\n' "$command"; done >"$folder/commands"
# A root of its own, which is a mount point; processes keep the numbers by which the kernel's log names them.
root=$root commands=$folder/commands unshare --mount --fork --kill-child sh -eu <<'INSIDE'
mount --make-rprivate /
mount --bind "$root" "$root"
cp "$commands" "$root/srv/commands"
for d in dev sys proc; do mount --rbind /$d "$root/$d"; done
mount -t tmpfs tmpfs "$root/tmp"
cd "$root"
mkdir -p old
pivot_root . old
cd /srv/elrun
umount -l /old
while read -r command; do
    began=$(date +%s)
    if sh -c "$command" </dev/null; then
        echo "bare_debian: $command: right, after $(($(date +%s) - began)) s"
    else
        echo "bare_debian: $command: wrong, status $?"; exit 1
    fi
done </srv/commands
INSIDE
