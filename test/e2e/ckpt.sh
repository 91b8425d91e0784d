# elrun ckpt on checkpoints of elrun's commit library and of other people's writers: torch.save, torch.distributed.checkpoint,
# safetensors, Hugging Face, Megatron-LM, ATorch.  What is cut off, changed or missing is named; what is whole is not.
# Seen to fail: without the check of sizes, of chunks, of the zip directory, of sets, of pieces, of the tracker; a gc that
# sorts names, compares runs, or forgets pins.
. "$(dirname "$0")/../lib/e2e.sh"
COMMIT=$BUILD/test/e2e/commit
export TZ=UTC
ckpt() { "$ELRUN" ckpt "$@" >"$T/out" 2>"$T/err"; status=$?; }
# verdict NAME STATUS REGEX ARGUMENTS...: of `elrun ckpt ARGUMENTS`; what it says, on stdout or stderr
verdict() {
    v_name=$1 v_status=$2 v_regex=$3; shift 3
    ckpt "$@"
    is "$v_name: status" "$status" "$v_status"
    like "$v_name: words" "$(cat "$T/out" "$T/err")" "$v_regex"
}
json() { "$PY" -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <"$T/out"; }

# --- of our own -------------------------------------------------------------------------------------------------------
R=$T/root
"$COMMIT" "$R" 100 1000000 run1; "$COMMIT" "$R" 99 1000000 run1
verdict "own" 0 'step-000000100: valid \(elrun, 2 files, .*, 3 tensors\)' verify "$R/step-000000100" --deep
ckpt ls "$R" --json
is "ls --json" "$(json '[(c["step"], c["state"], c["format"], c["world"], c["files"], c["flags"], c["run_id"]) for c in d["checkpoints"]]')" \
    "[(99, 'valid', 'elrun', 2, 2, ['latest'], 'run1'), (100, 'valid', 'elrun', 2, 2, [], 'run1')]"
ckpt ls "$R"
like "ls" "$(cat "$T/out")" '^step-000000100 +100 +2[-0-9]+ [0-9:]+ +2 +elrun +.* +2 +valid$'
ckpt ls "$R/step-000000100" --tensors -g 'own.*'
is "ls --tensors --glob" "$(wc -l <"$T/out" | tr -d ' ')" 2
ckpt cat "$R/step-000000100" w
is "cat puts the pieces together" "$(wc -c <"$T/out" | tr -d ' ') $(head -c 1 "$T/out" | od -An -tu1 | tr -d ' ') $(tail -c 1 "$T/out" | od -An -tu1 | tr -d ' ')" "999936 1 2"
verdict "no such tensor" 66 'no tensor "nope"' cat "$R/step-000000100" nope

S=$R/step-000000100/shard-00002-model-00001-of-00001.safetensors
cp "$S" "$T/keep"
printf X | dd of="$S" bs=1 seek=300000 conv=notrunc 2>/dev/null
verdict "a byte that is changed" 0 valid verify "$R/step-000000100"
verdict "a byte that is changed, --deep" 1 'shard-00002.*bytes 0-504200? have CRC32C [0-9a-f]+, the manifest says [0-9a-f]+; tensor "own.1" and 1 more|shard-00002.*have CRC32C .*; tensor "' verify --deep "$R/step-000000100" -j 4
verdict "the root, too" 1 'step-000000100: damaged' verify "$R" --deep
verdict "gc that is to prove the newest" 1 'nothing is deleted: the newest checkpoint, step-000000100, is damaged' gc "$R" --keep-last=1 --deep
ok "has deleted nothing" test -d "$R/step-000000099"
head -c 300000 "$T/keep" >"$S"
verdict "a file that is cut off" 1 'has 300000 bytes, the manifest says' verify "$R/step-000000100"
rm "$S"
verdict "a file that is missing" 3 'shard-00002.* is missing' verify "$R/step-000000100"
cp "$T/keep" "$S"
cp "$R/step-000000100/MANIFEST.json" "$T/manifest"
sed -i 's/"world":2/"world":4/' "$R/step-000000100/MANIFEST.json"
verdict "a manifest that was edited" 1 'its text was changed after it was written: self_crc says' verify "$R/step-000000100"
head -c 200 "$T/manifest" >"$R/step-000000100/MANIFEST.json"
verdict "a manifest that is torn" 1 'does not end with its self_crc' verify "$R/step-000000100"
cp "$R/step-000000099/MANIFEST.json" "$R/step-000000100/MANIFEST.json"
verdict "a manifest of another step" 1 'is of step 99' verify "$R/step-000000100"
ckpt ls "$R" --json
is "ls shows it" "$(json '[c["state"] for c in d["checkpoints"]]')" "['valid', 'damaged']"
cp "$T/manifest" "$R/step-000000100/MANIFEST.json"
verdict "as it was" 0 valid verify "$R/step-000000100" --deep
echo step-000000055 >"$R/latest"
verdict "latest that names nothing" 3 'it names "step-000000055", which is not there' verify "$R"
verdict "--repair-latest" 0 valid verify "$R" --repair-latest
is "names the newest" "$(cat "$R/latest")" step-000000100

# --- gc ---------------------------------------------------------------------------------------------------------------
"$COMMIT" "$R" 1000 20000 run0 # a higher step of an earlier run
touch -d '2 days ago' "$R/step-000001000"
sleep 1.1
for s in 101 102 103 104; do "$COMMIT" "$R" $s 20000 run1; done
"$COMMIT" "$R" 105 20000 run1 half
ckpt pin "$R/step-000000099"
is "pin" "$status" 0
mkdir -p "$R/.lease"; : >"$R/.lease/step-000000101.host1"; : >"$R/.lease/step-000000102.old"; touch -d '3 hours ago' "$R/.lease/step-000000102.old"
steps() { ls "$R" | sed -n 's/^step-0*//p' | sort -n | tr '\n' ' '; }
verdict "gc without a number" 2 'say how many to keep' gc "$R"
ckpt gc "$R" --keep-last=1 --dry-run --json
is "--dry-run" "$(json '[(c["step"], c.get("why")) for c in d["checkpoints"]]')" \
    "[(99, 'pinned'), (100, None), (101, 'being read'), (102, None), (103, None), (104, 'among the newest'), (105, 'being written'), (1000, 'of another run')]"
is "deletes nothing" "$(steps)" "99 100 101 102 103 104 1000 "
ckpt gc --keep-every=50 "$R" --keep-last 1
is "gc: status" "$status" 0
is "gc" "$(steps)" "99 100 101 104 1000 "
ok "leaves the stage of a commit under way, and no trash" sh -c "test -d '$R/.stage'/step-000000105* && ! test -e '$R/.trash'"
touch -d '2 hours ago' "$R"/.stage/*/* "$R"/.stage/*
ckpt unpin "$R/step-000000099"; rm -r "$R/.lease"
ckpt gc "$R" --keep-last=1 --foreign
is "gc --foreign" "$(steps)" "104 1000 "
ok "and stages of commits that were given up" sh -c "! ls '$R/.stage' | grep -q ."
ckpt gc "$R" --keep-last=5
is "gc with nothing to do" "$status" 0
"$COMMIT" "$T/marker" 1 20000 run1 marker; "$COMMIT" "$T/own-megatron" 1200 20000 run1 megatron
verdict "--ckpt-commit=marker" 0 'step-000000001: valid' verify "$T/marker" --deep
is "Megatron's layout and tracker" "$(cat "$T/own-megatron/latest_checkpointed_iteration.txt") $("$ELRUN" ckpt verify --deep "$T/own-megatron" | grep -c ': valid')" "1200 1"

# --- no way out, no room, no rights -----------------------------------------------------------------------------------
mkdir "$T/elsewhere"; ln -s ../elsewhere "$R/.pin-link"; rm -rf "$R/.pin"; ln -s "$T/elsewhere" "$R/.pin"
verdict "a link out of the root" 77 'a component of this path is a link|link' pin "$R/step-000000104"
is "nothing is written there" "$(ls -A "$T/elsewhere")" ""
rm "$R/.pin"
ln -s /etc/hostname "$R/step-000000104/link.safetensors"
verdict "a link in a checkpoint is not followed" 0 'valid \(elrun, 2 files.*; 1 link or special file not followed' verify "$R/step-000000104"
cp -r "$R/step-000000104" "$T/odd"; rm "$T/odd/MANIFEST.json"; mkfifo "$T/odd/MANIFEST.json"
verdict "a FIFO for a manifest" 66 'MANIFEST.json: it is no regular file' verify "$T/odd"
deep=$T/odd/$(printf 'd/%.0s' $(seq 40)); mkdir -p "$deep"; rm "$T/odd/MANIFEST.json"
verdict "directories that are not looked into" 4 'it has directories in more than 32 others' verify "$T/odd"
mkdir "$T/blobs"; cp "$R/step-000000104/shard-00001-model-00001-of-00001.safetensors" "$T/blobs/0123abcd"; ln -s ../blobs/0123abcd "$T/elsewhere/model.safetensors"
verdict "a link to a file: what it is called counts" 0 'model.safetensors: valid \(safetensors, 1 file, .*, 2 tensors\)' verify "$T/elsewhere/model.safetensors"
"$ELRUN" ckpt cat "$T/elsewhere/model.safetensors" own.0 >"$T/own.0"
is "and it is read" "$(wc -c <"$T/own.0" | tr -d ' ')" 8
verdict "nothing there" 66 'No such file' verify "$T/nowhere"
verdict "nothing at one of several places" 66 'step-000000104: valid' verify "$T/nowhere" "$R/step-000000104"
verdict "and at the first of them, before one of no known format" 66 'unsupported' verify "$T/nowhere" "$0"
verdict "a FIFO" 66 'neither a file nor a directory' verify "$(mkfifo "$T/fifo"; echo "$T/fifo")"
verdict "an option of another verb" 2 'ckpt ls: --deep is an option of verify' ls --deep
verdict "no such verb" 2 'no such verb: lss; there are ls' lss
verdict "an option without its value" 2 '^elrun: --keep-last needs a value: --keep-last=K' gc "$R" --keep-last
verdict "a word too many" 2 'ckpt cat takes PATH and TENSOR' cat a b c
if [ "$(id -u)" = 0 ]; then
    mkdir "$T/small" && mount -t tmpfs -o size=1m tmpfs "$T/small"
    at_exit() { umount "$T/small" "$T/readonly" 2>/dev/null; }
    "$COMMIT" "$T/small" 1 300000 run1
    is "a small disk: the first commit" "$?" 0
    "$COMMIT" "$T/small" 2 2000000 run1 2>"$T/err"
    is "a full disk: status" "$?" 73
    like "a full disk: words" "$(cat "$T/err")" 'No space left on device \([0-9]+ bytes are needed; older checkpoints are untouched; `elrun ckpt gc` makes room\)'
    verdict "a full disk: the older one is whole" 0 'step-000000001: valid' verify "$T/small" --deep
    "$COMMIT" "$T/small" 3 300000 run1
    verdict "a full disk: and the next one" 0 'step-000000003: valid' verify "$T/small" --deep
    mkdir "$T/readonly" && mount --bind "$R" "$T/readonly" && mount -o remount,ro,bind "$T/readonly"
    verdict "a read-only file system: verify" 0 'valid' verify "$T/readonly/step-000000104" --deep
    "$COMMIT" "$R" 106 20000 run1
    verdict "a read-only file system: gc" 73 'Read-only file system' gc "$T/readonly" --keep-last=1
    verdict "a read-only file system: pin" 73 'Read-only file system' pin "$T/readonly/step-000000104"
    umount "$T/readonly" "$T/small"
else
    skip "full and read-only file systems" "needs root"
fi

# --- other people's ---------------------------------------------------------------------------------------------------
F=$T/foreign
mkdir "$F"
"$PY" "$HERE/ckpt.py" "$F" "$T/marker/step-000000001" >"$T/py" 2>&1
is "other people's writers and readers" "$?" 0 || note "$(tail -5 "$T/py")"
for case in train.pt:torch dcp/step_500:dcp hf:huggingface hf-sharded:huggingface all.safetensors:safetensors many.safetensors:safetensors \
    large.safetensors:safetensors rows:huggingface megatron:megatron atorch/checkpoint-3:atorch; do
    verdict "$case" 0 "valid \\(${case#*:}," verify --deep "$F/${case%:*}"
done
ckpt ls --tensors --json "$F/all.safetensors"
is "safetensors: every type, any name" "$(json 'len(d["tensors"]), len({t["dtype"] for t in d["tensors"]}), [t["shape"] for t in d["tensors"] if t["name"] in ("", "empty", "層.🔥.é \"q\" \\")]')" "(20, 16, [[], [0, 4], [4]])"
ckpt ls --tensors --json "$F/many.safetensors"
is "100,000 tensors" "$(json 'len(d["tensors"])')" 100000
ckpt ls --tensors --json "$F/train.pt"
is "torch.save: what is nested, a view, a parameter, fp8" "$(json '[(t["name"], t["dtype"], t["shape"]) for t in d["tensors"] if t["name"] in ("view", "parameter", "fp8", "model.1.weight", "list.1", "optimizer.state.0.exp_avg")]')" \
    "[('fp8', 'F8_E4M3', [4]), ('list.1', 'I64', [3, 2]), ('model.1.weight', 'BF16', [16, 32]), ('optimizer.state.0.exp_avg', 'F32', [32, 64]), ('parameter', 'F32', [2]), ('view', 'I64', [3])]"
ckpt ls --tensors --json "$F/typed.pt"
is "torch.save: the piece of a DTensor, a double complex" "$(json '[(t["name"], t["dtype"], t["shape"]) for t in d["tensors"]]')" "[('complex', 'C128', [3]), ('w', 'F32', [2, 3])]"
same() { ckpt cat "$2" "$3"; ok "cat $1" cmp "$T/out" "$4"; }
same "of a DTensor's piece" "$F/typed.pt" w "$F/w.raw"
same "of a double complex" "$F/typed.pt" complex "$F/complex.raw"
same "of a view in torch.save" "$F/train.pt" view "$F/view.raw"
same "of torch.distributed.checkpoint" "$F/dcp/step_500" model.0.weight "$F/dcp.raw"
same "of a numpy array" "$F/numpy.safetensors" x "$F/x.raw"
same "of rows in two files" "$F/rows" w "$F/rows.raw"
same "of a Hugging Face directory" "$F/hf" 0.weight "$F/dcp.raw"
verdict "cat of what is not row by row" 4 'not stored row by row' cat "$F/train.pt" list.1
ckpt verify "$F/hostile.pt"
unlike "a pickle is never executed" "$(cat "$T/out" "$T/err")" 'executed'
verdict "ATorch: a piece of a parameter is missing" 3 'parameter "a" has 10 elements, its pieces have 7' verify "$F/atorch-gap"
verdict "ATorch: a piece beyond its flat tensor" 1 'parameter "a" is elements 2-7 of "layer" in flat_param.00001-00004, which ends before' verify "$F/atorch-beyond"
verdict "ATorch: ranks that do not agree" 1 'the ranks do not agree on how many elements parameter "a" has' verify "$F/atorch-other"
verdict "Megatron: tensor, pipeline and expert ranks" 0 valid verify "$F/grid/iter_0000001"
mkdir -p "$F/grid/iter_0000002/mp_rank_99999_999" && cp "$F/train.pt" "$F/grid/iter_0000002/mp_rank_99999_999/model_optim_rng.pt"
verdict "Megatron: more ranks than there are" 4 'a grid of more than 100000 places' verify "$F/grid/iter_0000002"
rm "$F/grid/iter_0000001/mp_rank_01_002_000/distrib_optim.pt"
verdict "Megatron: a file of one rank is missing" 3 'mp_rank_01_002_000/distrib_optim.pt is missing' verify "$F/grid/iter_0000001"
rm -r "$F/grid/iter_0000001/mp_rank_00_001_001"
verdict "Megatron: a pipeline rank is missing" 3 'mp_rank_00_001_001 is missing' verify "$F/grid/iter_0000001"
verdict "garbage" 1 'model.safetensors: bytes 0-7 announce a header of [0-9]+ bytes' verify "$F/garbage"
like "garbage: compressed" "$(cat "$T/out")" 'deflated.pt: .*data.pkl is compressed'
like "garbage: no archive" "$(cat "$T/out")" 'old.pt: it is no archive of torch.save'
verdict "an empty directory" 4 'no checkpoint' verify "$F/empty"

# Cut off, changed, missing.
short() { head -c "$3" "$1" >"$T/cut" && cat "$T/cut" >"$2"; } # FILE TO BYTES
size() { wc -c <"$1" | tr -d ' '; }
short "$F/train.pt" "$T/cut.pt" "$(($(size "$F/train.pt") - 10))"
verdict "torch.save, truncated" 1 'truncated: the file ends at byte [0-9]+ without the directory that ends a zip archive' verify "$T/cut.pt"
cp "$F/train.pt" "$T/flip.pt"; printf X | dd of="$T/flip.pt" bs=1 seek=$(($(size "$F/train.pt") / 2)) conv=notrunc 2>/dev/null
verdict "torch.save, a byte changed" 1 'bytes [0-9]+-[0-9]+ have CRC-32' verify --deep "$T/flip.pt"
short "$F/all.safetensors" "$T/cut.safetensors" "$(($(size "$F/all.safetensors") - 1))"
verdict "safetensors, truncated" 1 'truncated: tensor ".*" has bytes [0-9]+-[0-9]+, the file ends at [0-9]+' verify "$T/cut.safetensors"
short "$F/dcp/step_500/__0_0.distcp" "$F/dcp/step_500/__0_0.distcp" 30000
verdict "dcp, truncated" 1 '__0_0.distcp: truncated: ".*" has bytes [0-9]+-[0-9]+, the file ends at 30000' verify "$F/dcp/step_500"
rm "$F/dcp/step_500/__0_0.distcp"
verdict "dcp, a file missing" 3 '__0_0.distcp: it is missing, with "' verify "$F/dcp/step_500"
rm "$F/hf/model-00002-of-00002.safetensors"
verdict "huggingface, a shard missing" 3 'model-00002-of-00002.safetensors is missing, with tensor' verify "$F/hf"
cp -r "$F/rows" "$T/rows"; rm "$T/rows/shard-00001-model-00001-of-00001.safetensors"
verdict "sharded, rows missing" 3 'tensor "w": 24 of its 40 elements are in no file' verify "$T/rows"
echo 2000 >"$F/megatron/latest_checkpointed_iteration.txt"
verdict "megatron, a tracker that points nowhere" 3 'it names iteration 2000, but there is no iter_0002000' verify "$F/megatron"
rm -r "$F/megatron/iter_0000500/mp_rank_01"
verdict "megatron, a rank missing" 3 'mp_rank_01 is missing' verify "$F/megatron/iter_0000500"
rm "$F/atorch/checkpoint-3/flat_param.00002-00004"
verdict "atorch, a rank missing" 3 'number 2 of this set of 4 files is missing' verify "$F/atorch/checkpoint-3"
verdict "an incomplete one gets no manifest" 3 'incomplete' verify "$F/atorch/checkpoint-3" --add-manifest
ok "no" test ! -e "$F/atorch/checkpoint-3/MANIFEST.json"

# A manifest for what others wrote: from then on each byte is checked, and gc knows it.
mkdir "$T/runs"
for s in 500 1000 2000; do cp -r "$F/rows" "$T/runs/checkpoint-$s"; done
verdict "--add-manifest" 0 'checkpoint-1000: valid .*, manifest written' verify "$T/runs" --add-manifest --run-id=mine
printf X | dd of="$T/runs/checkpoint-500/shard-00001-model-00001-of-00001.safetensors" bs=1 seek=250 conv=notrunc 2>/dev/null
verdict "then a changed byte is found" 1 'have CRC32C .*; tensor "w"' verify --deep "$T/runs/checkpoint-500"
ckpt gc "$T/runs" --keep-last=1
is "and gc deletes by number" "$status $(ls "$T/runs")" "0 checkpoint-2000"

# --- for people, and for programs -------------------------------------------------------------------------------------
mkdir "$T/big"; ln "$F/large.safetensors" "$T/big/"
script -qec "'$ELRUN' ckpt verify --add-manifest '$T/big'" "$T/typescript" </dev/null >/dev/null 2>&1
like "progress on a terminal" "$(tr '\r' '\n' <"$T/typescript")" '[0-9.]+ .?i?B of 5.0 GiB \([0-9]+ %\)'
like "and then the result alone" "$(tail -4 "$T/typescript")" 'big: valid .*, manifest written'
ckpt verify --json "$T/big" "$T/cut.safetensors"
is "verify --json" "$status $(json '[(c["verdict"], c["format"], c["manifest"], len(c["findings"])) for c in d["checkpoints"]]')" \
    "1 [('valid', 'safetensors', True, 0), ('damaged', 'safetensors', False, 1)]"
mkdir "$T/gone"
(cd "$T/gone" && rmdir "$T/gone" && "$ELRUN" ckpt ls >"$T/out" 2>"$T/err"; echo $? >"$T/rc")
is "a directory that has vanished" "$(cat "$T/rc")" 66
finished
