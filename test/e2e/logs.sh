# Output: log tree, redirects, tee, filters, prefixes.  Whole lines, bytes unchanged, nothing lost, nothing left over.
# Seen to fail: torchrun 2.13 in its place: glued lines, one-digit ranks only, temporary folders that stay.
. "$(dirname "$0")/../lib/e2e.sh"
NL='
'
tree() { (cd "$1"/*_* && find . -type f | sort | tr '\n' ' '); } # the files of a log tree
of() { cat "$1"/*_*/$2; }                                        # one of its files

# Tee: file and console, prefix without a space.  Lines come in pieces from both ranks at once: never glued.
run_workers 2 --tee=3 --log-dir="$T/tee" -- out "par" err "E1${NL}" sleep 30 out "tial${NL}two${NL}" sleep 30 out "last without newline"
is "tee: exit status" "$status" 0
is "tee: log tree" "$(tree "$T/tee")" "./attempt_0/0/stderr.log ./attempt_0/0/stdout.log ./attempt_0/1/stderr.log ./attempt_0/1/stdout.log ./elrun-events.jsonl "
is "tee: stdout.log is what the worker wrote" "$(of "$T/tee" attempt_0/1/stdout.log)" "partial${NL}two${NL}last without newline"
is "tee: stderr.log is what the worker wrote" "$(of "$T/tee" attempt_0/0/stderr.log)" "E1"
is "tee: console" "$(sort "$OUT")" "$(for r in 0 1; do for l in 'last without newline' partial two; do echo "[default$r]:$l"; done; done)"
is "tee: stderr on stderr" "$(grep '^\[default' "$ERR" | sort)" "[default0]:E1${NL}[default1]:E1"
ok "tee: latest leads to the attempt" test "$T"/tee/*_*/latest/1/stdout.log -ef "$T"/tee/*_*/attempt_0/1/stdout.log
like "tee: the folder is named after the run id" "$(ls "$T/tee")" '^[0-9a-f-]{36}_[0-9A-Za-z_]{8}$'

# Redirects: files instead of the console; for some ranks only, of any number of digits.
run_workers 12 --redirects=11:1,3:3 --log-dir="$T/red" --role=t --rdzv-id=x -- out "o\${local_rank}${NL}" err "e\${local_rank}${NL}"
is "redirects: files" "$(tree "$T/red")" "./attempt_0/11/stdout.log ./attempt_0/3/stderr.log ./attempt_0/3/stdout.log ./elrun-events.jsonl "
is "redirects: content" "$(of "$T/red" attempt_0/11/stdout.log)$(of "$T/red" attempt_0/3/stderr.log)" "o11e3"
is "redirects: the others' stdout is the console" "$(sort -V "$OUT" | tr '\n' ' ')" "o0 o1 o2 o4 o5 o6 o7 o8 o9 o10 "
is "redirects: the others' stderr is the console" "$(grep '^e[0-9]' "$ERR" | sort -V | tr '\n' ' ')" "e0 e1 e2 e4 e5 e6 e7 e8 e9 e10 e11 "

# Filters and prefixes.
run_workers 3 --tee=0:3,1:1 --local-ranks-filter=0,2 --log-dir="$T/fil" -- out "o\${local_rank}${NL}" err "e\${local_rank}${NL}"
is "local ranks filter: console" "$(sort "$OUT" | tr '\n' ' ')" "[default0]:o0 o2 "
is "local ranks filter: a teed rank's file is there" "$(of "$T/fil" attempt_0/1/stdout.log)" o1
unlike "local ranks filter: a rank that is not teed says nothing" "$(cat "$ERR")" '(^|:)e1$'
run_workers 2 --tee=1 --log-dir="$T/tem" --role=trainer --log-line-prefix-template='<${role_name}/${rank}/${local_rank}/${other}>' -- out "x${NL}"
is "prefix template" "$(sort "$OUT")" "<trainer/0/0/\${other}>x${NL}<trainer/1/1/\${other}>x"
ENV='TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=${rank}|'
run_workers 1 --tee=1 --log-dir="$T/tev" -- out "x${NL}"
ENV=
is "prefix template from the environment" "$(cat "$OUT")" "0|x"
run_workers 2 --tee=1 --log-dir="$T/dup" --duplicate-stdout-filters='apple,a,,b' -- out "an apple${NL}" out "a,b${NL}" out "neither${NL}"
is "duplicate filters: lines" "$(of "$T/dup" attempt_0/filtered_stdout.log | sed 's/^\[[^]]*\]: *//' | sort | tr '\n' ';')" "a,b;a,b;an apple;an apple;"

# Attempts: each keeps its logs.
run_workers 2 --max-restarts=1 --redirects=3 --log-dir="$T/att" -- out "attempt" +0 out " zero${NL}" +1 out " one${NL}" touch "$T/a" \
    @0 +0 await "$T/a.0.1" @0 +0 exit 1 +0 forever
is "attempts: the first one's log is kept" "$(of "$T/att" attempt_0/1/stdout.log)" "attempt zero"
is "attempts: the second one's" "$(of "$T/att" attempt_1/1/stdout.log)" "attempt one"
is "attempts: latest" "$(cat "$T"/att/*_*/latest/1/stdout.log)" "attempt one"

# The temporary folder: gone if nothing was written, else kept and named.
run_workers 1 -- exit 0
is "temporary folder without logs is removed" "$(ls -A "$T/tmp")" ""
run_workers 1 --redirects=3 -- exit 0
is "temporary folder with empty logs is removed" "$(ls -A "$T/tmp")" ""
run_workers 1 --redirects=1 -- out kept
kept=$(ls -A "$T/tmp")
like "temporary folder with logs is kept" "$kept" '^[^ ]+$'
like "… and named at the end" "$(cat "$ERR")" "$T/tmp/$kept"
rm -rf "$T/tmp/"*
run_workers 1 --log-dir=/dev/null -- record "$T/null"
is "the null device as log folder: TORCHELASTIC_ERROR_FILE is empty" "$(envof "$T/null.0.0" TORCHELASTIC_ERROR_FILE)" ""

# Bytes pass unchanged: NUL, invalid UTF-8, escape sequences; long lines come in pieces with the prefix once.
printf 'a\000b\377\376\033[31mc\n\n\r\n' >"$T/bytes"
run --standalone --tee=3 --log-dir="$T/byt" --no-python cat "$T/bytes"
of "$T/byt" attempt_0/0/stdout.log >"$T/bytes.log"
ok "bytes: the file has them" cmp "$T/bytes" "$T/bytes.log"
sed 's/^\[default0\]://' "$OUT" >"$T/bytes.out"
ok "bytes: the console has them" cmp "$T/bytes" "$T/bytes.out"
run_workers 2 --tee=1 --log-dir="$T/long" -- flood 3 900000
ok "long lines: the file has them" sh -c "[ \$(cat '$T'/long/*_*/attempt_0/1/stdout.log | wc -c) = 2700000 ]"
is "long lines: the prefix stands once before each line" "$(grep -ac '^\[default[01]\]:[0-2] \.*$' "$OUT") $(grep -ao '\[default' "$OUT" | wc -l)" "6 6"

# A flood: all of it arrives, in order, in files and on the console.
run_workers 3 --tee=1 --log-dir="$T/flood" -- flood 60000 70
in_order() { awk '$1 != NR - 1 || length($0) != 69 { exit 1 } END { exit NR != 60000 }' "$1"; }
for r in 0 1 2; do
    of "$T/flood" attempt_0/$r/stdout.log >"$T/one"
    ok "flood: file of rank $r" in_order "$T/one"
    sed -n "s/^\[default$r\]://p" "$OUT" >"$T/one"
    ok "flood: console of rank $r" in_order "$T/one"
done
is "flood: no other line" "$(grep -vac '^\[default[0-2]\]:' "$OUT")" 0

# elrun's own words are on stderr only, and can be silenced or be JSON.
run_workers 1 -- out "only this"
is "stdout is the worker's alone" "$(cat "$OUT")" "only this"
run_workers 1 --quiet -- exit 0
is "--quiet: nothing to say" "$(cat "$ERR")" ""
run_workers 1 -v --log-format=json -- exit 0
unlike "--log-format=json: every line is an object" "$(cat "$ERR")" '^([^{]|\{.*[^}]$)'
# A bar that redraws itself, and a question: shown while they have no end; lines of others never stand in theirs.
start_workers 1 --tee=2 --log-dir="$T/bar" -- err "Go on? " await "$T/answer" err "yes${NL}"
wait_for grep -q 'Go on?' "$ERR"
ok "tee: a question without an end is shown before its answer" grep -q 'Go on?' "$ERR"
touch "$T/answer"
finish
is "tee: ... and is one line" "$(grep '^\[default0\]' "$ERR")" "[default0]:Go on? yes"
printf 'import os, sys, time\nfor i in range(12):\n sys.stderr.write("\\r%%s%%02d" %% ("ab"[int(os.environ["RANK"])] * 3, i) if os.environ["RANK"] == "0" else "line%%02d\\n" %% i); sys.stderr.flush(); time.sleep(0.15)\n' >"$T/bar.py"
run --standalone --nproc-per-node=2 --tee=2 --log-dir="$T/bars" "$T/bar.py"
is "tee: beside a bar, whole lines" "$(grep -c '^\[default1\]:line[0-9][0-9]$' "$ERR")" 12
is "tee: ... and every redraw" "$(tr '\r' '\n' <"$ERR" | grep -c '^aaa[0-9][0-9]$')" 12
is_clean "at the end"
finished
