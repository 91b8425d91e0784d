# Torchrun's own parser and elrun's read the same command lines alike (options.py has the cases).
. "$(dirname "$0")/../lib/e2e.sh"
TMPDIR=$T/tmp "$PY" "$HERE/options.py" "$BUILD/test/e2e/conf_dump" 2>"$T/err" || { note "$(tail -3 "$T/err")"; exit 1; }
