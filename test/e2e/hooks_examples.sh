# examples/hooks and the termination log: each script is run by elrun, with a stub in the place of the program that it calls.
# Seen to fail: a build without tell_node_bad() (the scripts for broken GPUs), one without evidence_farewell() (the
# termination log); json-string with awk in the place of sed (what is sent to people).
. "$(dirname "$0")/../lib/e2e.sh"
HOOKS=$HERE/../../examples/hooks
for f in "$HOOKS"/*; do
    ok "$(basename "$f"): syntax" sh -n "$f"
    ok "$(basename "$f"): may be executed" test -x "$f"
done

# stub NAME [ANSWER]: writes down its words, one a line, and its input
mkdir "$T/bin"
stub() {
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >>"%s"\nif [ ! -t 0 ]; then cat >"%s"; fi\nprintf %%s %s\n' \
        "$T/$1.words" "$T/$1.input" "'${2-}'" >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}
for s in scontrol kubectl sendmail; do stub $s; done
stub curl '{"errcode":0,"errmsg":"ok"}'
is_json() { "$PY" -c 'import json, sys; print(json.load(open(sys.argv[1]))'"$2"')' "$1"; }
ENV="PATH=$T/bin:$PATH"

# A worker whose last output would end a JSON string, a header and a command.
cat >"$T/nasty.sh" <<'WORKER'
printf 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: "a" \\ $(touch %s) `touch %s`; \047\n' "$1" "$1" >&2
exit 1
WORKER
nasty() { run --standalone --redirects=3 --log-dir="$T/logs" "$@" --no-python sh "$T/nasty.sh" "$T/injected"; }

ENV="$ENV SLACK_WEBHOOK=http://slack.example/x"
nasty --on-incident="$HOOKS/slack"
unlike "slack: no warning" "$(cat "$ERR")" "warning: hook"
like "slack: what is sent is JSON" "$(is_json "$T/curl.input" '["text"]')" 'incident: rank 0 .*RuntimeError: "a" \\ \$\(touch'
like "slack: where to" "$(tail -1 "$T/curl.words")" "^http://slack.example/x$"
ENV="PATH=$T/bin:$PATH DINGTALK_WEBHOOK=http://ding.example/y"
nasty --hook end="$HOOKS/dingtalk"
unlike "dingtalk: no warning" "$(cat "$ERR")" "warning: hook"
like "dingtalk: what is sent is JSON" "$(is_json "$T/curl.input" '["text"]["content"]')" 'elrun .* end: rank 0 .*RuntimeError: "a" \\'
stub curl '{"errcode":310000,"errmsg":"keywords not in content"}'
nasty --hook end="$HOOKS/dingtalk"
like "dingtalk: a refusal is a failure" "$(cat "$ERR")" "warning: hook end .*: exit status 1"
rm -f "$T/curl.words"
run_workers 1 --hook end="$HOOKS/dingtalk" -- exit 0
ok "dingtalk: nothing is sent of a good end" test ! -e "$T/curl.words"
ENV="PATH=$T/bin:$PATH PAGER_MAIL=oncall@example.com"
nasty --hook incident="$HOOKS/mail"
unlike "mail: no warning" "$(cat "$ERR")" "warning: hook"
is "mail: its head" "$(sed '/^$/q' "$T/sendmail.input" | cut -d: -f1 | tr '\n' ' ')" "To Subject Content-Type  "
like "mail: with the event" "$(tail -1 "$T/sendmail.input")" '^\{"v":1,"event":"incident"'
ok "nothing that a worker wrote was executed" test ! -e "$T/injected"

# --- a GPU that is broken
bad_gpu() { run --standalone --on-text-suspect=act --redirects=3 --log-dir="$T/logs" --events="$T/bad" "$@" --no-python sh -c 'echo "NVRM: GPU has fallen off the bus" >&2; exit 1'; }
ENV="PATH=$T/bin:$PATH"
bad_gpu --hook node-bad="$HOOKS/slurm-drain" --hook incident=true
unlike "slurm-drain: no warning" "$(cat "$ERR")" "warning: hook"
is "slurm-drain: what it does" "$(sed -n '1p;3p' "$T/scontrol.words" | tr '\n' ' ')" "update State=DRAIN "
is "slurm-drain: to which node" "$(sed -n 2p "$T/scontrol.words")" "NodeName=$(hostname | cut -d. -f1)"
like "slurm-drain: why" "$(sed -n 4p "$T/scontrol.words")" "^Reason=elrun: rank 0 .*fallen off the bus"
like "slurm-drain: the event" "$(grep '"node_bad"' "$T/bad")" '"class":"hardware suspect"'
ENV="PATH=$T/bin:$PATH NODE_NAME=gpu-17"
bad_gpu --hook node-bad="$HOOKS/kubernetes-cordon"
is "kubernetes-cordon: what it does" "$(head -2 "$T/kubectl.words" | tr '\n' ' ')" "cordon gpu-17 "
rm -f "$T/kubectl.words"
ENV="PATH=$T/bin:$PATH NODE_NAME=gpu-17"
run_workers 1 --hook node-bad="$HOOKS/kubernetes-cordon" -- exit 1
ok "kubernetes-cordon: not for every failure" test ! -e "$T/kubectl.words"

printf '#!/bin/sh\nprintf "0, 0\\n1, 3\\n2, [N/A]\\n"\n' >"$T/bin/nvidia-smi"; chmod +x "$T/bin/nvidia-smi"
run_workers 1 --hook pre-start="$HOOKS/gpu-check" -- touch "$T/ran"
is "gpu-check: keeps a bad node out" "$status" 72
like "gpu-check: says why" "$(cat "$ERR")" "GPU 1: 3 uncorrected errors"
printf '#!/bin/sh\nprintf "0, 0\\n"\n' >"$T/bin/nvidia-smi"
run_workers 1 --hook pre-start="$HOOKS/gpu-check" -- exit 0
is "gpu-check: and a good one in" "$status" 0

# --- the termination log of Kubernetes
LOG=$T/termination
ENV="ELRUN_TERMINATION_LOG=$LOG"
nasty
ok "termination log: is never made" test ! -e "$LOG"
printf 'of an earlier run, and longer than what comes now: %4096s' x >"$LOG"
run_workers 1 -- exit 0
like "termination log: of a good end nothing" "$(cat "$LOG")" "^of an earlier run"
nasty
like "termination log: the cause" "$(head -1 "$LOG")" '^rank 0 .*exit code 1: RuntimeError: "a"'
like "termination log: and the end of the traceback" "$(tail -1 "$LOG")" '^RuntimeError: "a"'
run --standalone --redirects=3 --log-dir="$T/logs" --no-python sh -c 'printf "Traceback (most recent call last):\n" >&2
    for i in $(seq 3000); do printf "  File \"a.py\", line %s, in \303\251\303\251\303\251\n    x\n" $i; done >&2; echo "ValueError: x" >&2; exit 1'
ok "termination log: at most 4096 bytes" test "$(wc -c <"$LOG")" -le 4096 -a "$(wc -c <"$LOG")" -gt 2000
ok "termination log: whole characters" "$PY" -c 'import sys; open(sys.argv[1], encoding="utf-8").read()' "$LOG"
is "termination log: to the end" "$(tail -1 "$LOG")" "ValueError: x"
run_workers 1 --hook 'pre-start=false' -- exit 0
like "termination log: of a start that cannot be" "$(cat "$LOG")" "^hook pre-start \(false\): exit status 1"
rm "$LOG"; mkfifo "$LOG"
nasty
is "termination log: a FIFO: status" "$status" 1
rm "$LOG"; mkdir "$LOG"
nasty
is "termination log: a folder: status" "$status" 1
if unshare -m true 2>/dev/null; then
    : >"$T/k8s"
    cat >"$T/pod" <<'POD'
#!/bin/sh
# A /dev of its own, with the few devices that are needed, and the file that a kubelet mounts there.
mkdir "$0.dev" && mount -t tmpfs none "$0.dev" || exit 99
touch "$0.dev/null" "$0.dev/full" "$0.dev/termination-log" && mkdir "$0.dev/shm" "$0.dev/pts"
mount --bind /dev/null "$0.dev/null" && mount --bind "${0%/*}/k8s" "$0.dev/termination-log" && mount --rbind "$0.dev" /dev || exit 99
exec "$@"
POD
    chmod +x "$T/pod"
    ENV= PREFIX="unshare -m $T/pod"
    run_workers 1 -- exit 3
    PREFIX=
    is "termination log: at its usual place: status" "$status" 3
    like "termination log: at its usual place" "$(cat "$T/k8s")" "^rank 0 .*exit code 3"
else
    skip "termination log: at its usual place" "mount namespaces are refused"
fi

is_clean "examples"
finished
