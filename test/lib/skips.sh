# skips.sh FOLDER: the last lines of make check.  Counts what the TAP files under FOLDER say; names every skip with its reason, and
# what tap.sh had to run a second time.
# With CI set, a skip for any reason but a missing GPU is a failure: CI has root, namespaces and PyTorch.
folder=$1
passed=$(grep -rhE '^ok ' "$folder" | grep -vc '# SKIP')
failed=$(grep -rhE '^not ok ' "$folder" | grep -vc '# TODO')
skips=$(grep -rhE '^ok .*# SKIP|^1\.\.0 # SKIP' "$folder")
skipped=$(printf '%s' "$skips" | grep -c '# SKIP')
bad=$(printf '%s' "$skips" | grep '# SKIP' | grep -vcE '# SKIP:? *GPU')
[ "$skipped" = 0 ] || printf '%s\n' "$skips" | sed 's/^/skipped: /'
cat "$folder"/*.alone 2>/dev/null
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ] || exit 1
[ -z "${CI:-}" ] || [ "$bad" = 0 ] || { echo "CI: $bad test(s) skipped for a reason other than a missing GPU"; exit 1; }
