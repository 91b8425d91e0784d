# all.sh [store | nodes | errors | probe | ckpt | gpu | NAME...]: runs benchmarks and reports.  None named: those of one machine, to test/bench/RESULTS.md;
# "store": that of the store, to RESULTS-store.md; "nodes": those of several nodes, to RESULTS-nodes.md; "errors": those of failures, to
# RESULTS-errors.md; "probe": elrun probe, to RESULTS-probe.md; "ckpt": snapshots, to RESULTS-ckpt.md; "gpu": what needs one, to RESULTS-gpu.md.
# Only this program writes these.  Some that are named: to stdout, for a look.
: "${ELRUN:?path of elrun}" "${BUILD:?folder with the built programs}" "${PY:?a python3 with torch}"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fact() { echo "$1: $2" >>"$work/facts"; }
# A result belongs to a commit only if nothing but the results differs from it.
dirty=$(git -C "$here" status --porcelain 2>/dev/null | grep -v 'test/bench/RESULTS.*md$')
fact commit "$(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)${dirty:+, with changes}"
fact date "$(date -u +%Y-%m-%d)"
fact machine "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $(nproc) processors, $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | paste -sd';') && [ -n "$gpu" ] && fact GPU "$gpu"
fact kernel "$(uname -sr)"
fact peer "$("$PY" -c 'import platform, torch; print("torchrun of PyTorch", torch.__version__, "on Python", platform.python_version())' 2>/dev/null || echo "none: no PyTorch")"
fact "load before" "$(cut -d' ' -f1-3 /proc/loadavg) (1, 5 and 15 minutes)"

results=
case ${*:-one} in
    one) results=RESULTS.md; set -- idle launch react tee ;;
    store) results=RESULTS-store.md; set -- store profile ;;
    nodes) results=RESULTS-nodes.md; set -- elastic swarm ;;
    errors) results=RESULTS-errors.md; set -- watch incident ;;
    probe) results=RESULTS-probe.md; set -- probe ;;
    ckpt) results=RESULTS-ckpt.md; set -- ckpt ;;
    gpu) results=RESULTS-gpu.md; set -- gpu ;;
esac
for b; do
    echo "bench: $b" >&2
    sh "$here/$b.sh" >>"$work/samples" || { echo "bench: $b failed: no results written" >&2; exit 1; }
done
if [ -z "$results" ]; then "$PY" "$here/../lib/bench_report.py" "$work/facts" "$work/samples"; exit; fi
"$PY" "$here/../lib/bench_report.py" "$work/facts" "$work/samples" >"$work/$results" &&
    cp "$work/$results" "$here/$results" && echo "bench: wrote test/bench/$results" >&2 && sh "$here/../lib/figures.sh"
