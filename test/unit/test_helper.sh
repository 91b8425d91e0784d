# The GPU helper must start on hosts whose C library is older than the one it was built on: floor glibc 2.17, no library but
# libc, libdl and libpthread, no constructors (there is no one to run them), no stack that may be executed.
: "${BUILD:?}" "${ELRUN:?}"
gpu=$BUILD/elrun-gpu
n=0 bad=0
is() { n=$((n + 1)); if [ "$2" = "$3" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "#  got: $2"; echo "# want: $3"; bad=1; fi; }

is "newest version of glibc that it asks for" \
    "$(objdump -T "$gpu" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | awk '{ split($1, v, "."); if (v[1] > 2 || v[2] > 17) print }')" ""
is "it asks for some" "$(objdump -T "$gpu" | grep -c 'GLIBC_2' | awk '{ print ($1 > 20) }')" 1
is "libraries" "$(readelf -dW "$gpu" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')" "libc.so.6 libdl.so.2 libpthread.so.0 "
is "no constructors" "$(readelf -dW "$gpu" | grep -cE '\((INIT|FINI|PREINIT)')" 0
is "no packed relocations" "$(readelf -dW "$gpu" | grep -c RELR)" 0
is "a stack that is data" "$(readelf -lW "$gpu" | awk '$1 == "GNU_STACK" { print $(NF-1) }')" RW
is "elrun itself loads nothing" "$(readelf -dW "$ELRUN" | grep -c NEEDED)" 0
size=$(stat -c %s "$gpu")
is "it stands in elrun as it is" "$(grep -cF "$(head -c 20000 "$gpu" | tail -c 4000 | strings -n 24 | head -1)" "$ELRUN" | awk '{ print ($1 > 0) }') $((size < 200000))" "1 1"
echo "1..$n"
exit $bad
