# What a careless user does to the log directory of a running job must not end the job.
# Seen to fail: before attempts made their whole path, a cleared log directory turned a restart into exit status 73.
. "$(dirname "$0")/../lib/e2e.sh"

# The log directory is removed while attempt 0 runs: the restart makes it again, and the later attempts' logs are there.
cat >"$T/cleared.sh" <<'EOF'
echo "attempt $TORCHELASTIC_RESTART_COUNT"
[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0
[ "$RANK" = 1 ] || exec sleep 30
rm -rf "$1"
exit 3
EOF
E2E_MARK=$T "$ELRUN" --no-python --nproc-per-node=2 --max-restarts=1 --tee=3 --log-dir="$T/logs" sh "$T/cleared.sh" "$T/logs" >"$OUT" 2>"$ERR"
is "cleared log directory: the job restarts and succeeds" "$?" 0
is "cleared log directory: the console has both attempts" "$(grep -c 'attempt 1' "$OUT")" 2
is "cleared log directory: the logs of the next attempt are there" "$(cat "$T"/logs/*_*/attempt_1/?/stdout.log | sort -u)" "attempt 1"
ok "cleared log directory: latest leads to the attempt" test -e "$T"/logs/*_*/latest/1/stdout.log

# Replaced by a file: nothing can be written there.  The cause is still the worker's failure; why it was not restarted is said.
sed 's/rm -rf "$1"/rm -rf "$1"; echo mine >"$1"/' "$T/cleared.sh" >"$T/file.sh"
E2E_MARK=$T "$ELRUN" --no-python --nproc-per-node=2 --max-restarts=1 --tee=3 --log-dir="$T/mine" sh "$T/file.sh" "$T/mine" >"$OUT" 2>"$ERR"
is "log directory replaced by a file: exit status" "$?" 3
like "log directory replaced by a file: why there is no restart" "$(cat "$ERR")" "log directory .*$T/mine.*Not a directory"
like "log directory replaced by a file: the cause" "$(cause_of "$ERR")" "rank 1 .*exit code 3"
is "log directory replaced by a file: it is left alone" "$(cat "$T/mine")" mine
is_clean "at the end"
finished
