# bench.sh: what every test/bench/*.sh starts with.  A benchmark prints one JSON object a line, and nothing else, to stdout:
#
#   {"bench":…, "metric":…, "unit":…, "who":…, "from":…, "to":…, "samples":[…]}   and, if it has them, "budget":"<= 5 ms",
#   "tail":"why the worst sample may lie far above the median"
#
# "metric" is what a row of the table is called, "who" its column: "elrun" or the peer; "from" and "to" are the two ends of
# the measured interval.  No samples: the peer could not run, the cell stays blank.  Called by test/bench/all.sh.
: "${ELRUN:?path of elrun}" "${BUILD:?folder with the built programs}" "${PY:?a python3 with torch}"
TIMING=$BUILD/test/bench/timing STAMP=$BUILD/test/bench/stamp
BENCH=$(basename "$0" .sh)
RUNS=${RUNS:-20} # samples of each: the report says if there are fewer than twenty
TORCHRUN=$(dirname "$PY")/torchrun
[ -x "$TORCHRUN" ] || TORCHRUN="$PY -m torch.distributed.run"
T=$(mktemp -d "${TMPDIR:-/tmp}/bench.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export TMPDIR="$T" OMP_NUM_THREADS=1 PYTHON_EXEC="$PY"

# take WHO KEY MODE WORKERS COMMAND...: one sample; a peer that cannot run leaves none, elrun that cannot run is an error.
# FIT names a function that looks at the output, in $T/stamps.out, and refuses a sample that must not count.
take() {
    take_who=$1 take_key=$2 take_mode=$3 take_workers=$4; shift 4
    if "$TIMING" "$take_mode" "$T/stamps" "$take_workers" "$@" >"$T/lines" && ${FIT:-:} "$take_who"; then
        sed "s/^/$take_who:$take_key./" "$T/lines" >>"$T/samples"
    else
        echo "$BENCH: no sample of $take_who $take_key" >&2; tail -3 "$T/stamps.out" >&2
        [ "$take_who" != elrun ]
    fi
}
# size_of SIZE: what a state of that name in test/bench/ckpt.py is
size_of() {
    case $1 in
    tiny) echo "1.6 MB: 8 layers and AdamW" ;;
    many) echo "2,000 small tensors" ;;
    mid) echo "353 MB: 12 layers and AdamW" ;;
    large) echo "1.3 GB: 40 layers and AdamW" ;;
    huge) echo "4.3 GB: 40 layers and AdamW" ;;
    esac
}
# emit WHO KEY.METRIC "what" UNIT "from" "to" [BUDGET [TAIL]]
emit() {
    sed -n "s/^$1:$2 //p" "$T/samples" | paste -sd, - >"$T/list"
    printf '{"bench":"%s","metric":"%s","unit":"%s","who":"%s","from":"%s","to":"%s",%s%s"samples":[%s]}\n' \
        "$BENCH" "$3" "$4" "$1" "$5" "$6" "${7:+\"budget\":\"$7\",}" "${8:+\"tail\":\"$8\",}" "$(cat "$T/list")"
}
