# Where the store's own time goes: instructions a request, by function, counted by callgrind (the same at each run, whatever else the
# machine does).  What the kernel takes is store.sh's "time in system calls".
. "$(dirname "$0")/../lib/bench.sh"
command -v callgrind_annotate >/dev/null || { echo "profile: no valgrind: nothing is counted" >&2; exit 0; }
for op in get set add; do
    valgrind -q --tool=callgrind --callgrind-out-file="$T/$op.out" "$ELRUN" store --port 0 --wait-report 0 >"$T/port" 2>"$T/err" &
    pid=$!
    n=0
    until grep -q '^[0-9][0-9]*$' "$T/port"; do
        n=$((n + 1)); [ $n -lt 600 ] || { echo "profile: the store did not start" >&2; kill "$pid"; exit 1; }
        sleep 0.1
    done
    timeout 60 "$BUILD/test/bench/store" load $op 64 1 5 4 "$(cat "$T/port")" >"$T/lines" || { cat "$T/err" >&2; kill "$pid"; exit 1; }
    kill "$pid"
    wait "$pid"
    requests=$(sed -n 's/^requests //p' "$T/lines")
    # "  1,234,567 (12.3%)  src/store/wire.c:wire_take [object]"; what is below 2 % is one row
    callgrind_annotate --auto=no --threshold=100 "$T/$op.out" | sed -nE 's/^ *([0-9,]+) \([^)]*\) +([^ ]+).*/\1 \2/p' | tr -d , |
        awk -v n="$requests" '$2 == "PROGRAM" { next }
            { sub(/.*:/, "", $2); sub(/\..*/, "", $2); if (!($2 in by)) order[++k] = $2; by[$2] += $1; sum += $1 }
            END {
                for (i = 1; i <= k; i++) {
                    name = order[i]
                    if (by[name] < sum / 50) rest += by[name]
                    else print name, by[name] / n
                }
                print "others", rest / n
                print "all", sum / n
            }' >"$T/functions"
    while read -r name count; do
        echo "elrun:$op.$name $count" >>"$T/samples"
        emit elrun "$op.$name" "$op, 64 connections: instructions in $name" instructions "the request's first byte read" "its answer sent"
    done <"$T/functions"
done
