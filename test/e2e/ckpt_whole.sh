# elrun ckpt verify and gc on what frameworks write, with a file of a rank missing, a pointer, a page or zeros in the place of a
# file, an archive without checksums, a hub's cache, a crafted pickle: what is whole is, and nothing else is called so.
# Seen to fail: without the counts of DeepSpeed and of Megatron's arguments, each kind of sniff.c, the numbers of ranks, `latest`,
# links that are followed or let out, JSON that is none, names in .metadata, the bound of visits, the proof before gc deletes, the
# number of ranks in names and in files, each rule of verify_folders_io.c, --add-manifest without the archives' own checksums, all
# files counted instead of those of a set, without half of the earlier ones, with runs or notes mixed up, one rank believed alone,
# the last with some file deleted, or for one that is damaged.
. "$(dirname "$0")/../lib/e2e.sh"
W=$T/w; mkdir "$W"
"$PY" "$HERE/ckpt_whole.py" "$W" >"$T/py" 2>&1
is "other people's writers" "$?" 0 || note "$(tail -5 "$T/py")"
# verdict NAME STATUS REGEX ARGUMENTS...
verdict() {
    v_name=$1 v_status=$2 v_regex=$3; shift 3
    "$ELRUN" ckpt "$@" >"$T/out" 2>"$T/err"; status=$?
    is "$v_name: status" "$status" "$v_status"
    # One of several lines is for several lines, in this order; to grep it would be a choice.
    case $v_regex in
    *"
"*) like "$v_name: words" "$(cat "$T/out" "$T/err" | tr '\n' '~' | sed 's/~$//')" "$(printf %s "$v_regex" | tr '\n' '~')" ;;
    *) like "$v_name: words" "$(cat "$T/out" "$T/err")" "$v_regex" ;;
    esac
}
# of STATUS CASE REGEX: by verify --deep
of() { verdict "$2" "$1" "$3" verify --deep "$W/$2"; }

# --- DeepSpeed --------------------------------------------------------------------------------------------------------
for stage in 0 1 2 3; do of 0 zero$stage 'global_step500: valid \(deepspeed,'; done
of 3 zero1-last 'zero_pp_rank_2_mp_rank_01_optim_states.pt: it is missing: there were 3 data parallel ranks and 2 of the model'
of 3 zero2-model 'mp_rank_01_model_states.pt: it is missing'
of 3 zero2-optimizer 'zero_pp_rank_0_mp_rank_00_optim_states.pt: it is missing'
of 3 zero3-parameters 'zero_pp_rank_2_mp_rank_00_model_states.pt: it is missing'
of 3 bf16 'bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt: it is missing: there were 4'
of 1 worlds 'zero_pp_rank_3.*: it is of another world size than its neighbours'
of 0 epoch=1-step=5.ckpt 'checkpoint: valid \(deepspeed'
of 0 universal 'valid'

# --- folders of a Trainer, of accelerate, of adapters -----------------------------------------------------------------
of 0 trainer 'valid \(trainer, 6 files.*; there are no checksums to compare the bytes of 3 files with'
of 0 trainer-ranks 'valid \(trainer, 9 files'
of 3 trainer-rank 'rng_state_3.pth: the file of rank 1 beside it is missing'
of 3 trainer-model 'there is a trainer_state.json, but no weights of a model'
of 3 trainer-optimizer 'there is a scheduler.pt, but no optimizer'
of 1 trainer-cut 'trainer_state.json: truncated: its JSON does not end where the file does, at byte 30'
of 1 trainer-empty 'trainer_state.json: it is empty'
of 0 trainer-adapter 'valid'
of 0 lora 'valid'
of 0 trainer-two 'valid'
of 0 clone 'valid \(trainer, 6 files'
of 0 trainer-leftover 'valid'
of 0 trainer-readme 'valid'
of 0 trainer-zero 'valid \(trainer, 10 files'
of 3 trainer-zero-rank 'global_step500/zero_pp_rank_1_mp_rank_00_optim_states.pt: it is missing'
of 3 trainer-zero-tag 'latest: it names "global_step501", which is not there'
of 0 trainer-fsdp 'valid \(trainer'
of 3 trainer-fsdp-metadata 'optimizer_0/.metadata: there is no .metadata'
of 3 trainer-fsdp-data 'optimizer_0/__0_0.distcp: it is missing'
of 4 trainer-link 'model.safetensors: it is a link, which is not followed'
of 0 aliases 'valid \(torch, 1 file'
of 3 aliases-gone 'best.ckpt: it is a link, and there is nothing where it leads'
of 0 adapter 'valid'
of 3 adapter-model 'there is an adapter_config.json, but no adapter_model'
of 0 accelerate 'valid'
of 3 accelerate-rank 'random_states_2.pkl: the file of rank 0 beside it is missing'

# --- sets, and ranks of Megatron --------------------------------------------------------------------------------------
of 0 shards 'valid \(huggingface'
of 3 shards-missing 'pytorch_model-00002-of-00002.bin is missing, with tensor "w2"'
of 1 shards-tensor 'pytorch_model-00001-of-00002.bin has no tensor "w9"'
of 1 shards-index 'pytorch_model.bin.index.json: truncated'
of 3 consolidated 'consolidated.02.pth: the file of rank 1 beside it is missing'
of 3 rank-of 'number 3 of this set of 4 files is missing'
of 0 megatron 'iter_0000010: valid \(megatron'
of 0 megatron-grid 'iter_0000010: valid \(megatron'
of 3 megatron-common 'common.pt: it is missing'
of 3 megatron-last 'mp_rank_01 is missing'
of 3 megatron-stage 'mp_rank_00_001 is missing'

of 3 megatron-written 'metadata.json: it is missing: Megatron reads nothing without it'
like "megatron-written: format" "$(cat "$T/out")" 'iter_0000010: incomplete \(megatron'
of 0 megatron-common-only 'iter_0000010: valid \(megatron'
of 3 megatron-apart 'mp_rank_00/distrib_optim.pt: it is missing: the optimizer is distributed'
of 0 megatron-no-optimizer 'valid \(megatron'
of 0 megatron-parts 'valid \(megatron'
of 3 megatron-part 'mp_rank_01/distrib_optim.pt is missing'

# --- the number of ranks in names, and in files -----------------------------------------------------------------------
for case in verl verl-first rank-of-count short dashes from-zero folders llama inside inside-one; do
    of 0 $case 'valid \(torch'
done
of 4 numbers-tp 'unproved .*
  model_tp3.pt: complete cannot be proved: nothing counts the files of its set'
of 4 numbers-shard 'model_shard_3.pt: complete cannot be proved'
of 3 verl-gone 'model_world_size_4_rank_0.pt: number 3 of this set of 4 files is missing'
of 3 verl-first-gone 'number 0 of this set of 4 files'
for case in rank-of-count short dashes from-zero; do of 3 $case-gone 'number 3 of this set of 4 files is missing'; done
of 3 folders-gone 'rank_0_of_3: number 2 of this set of 3 folders is missing'
of 3 numbers-tp-gone 'model_tp3.pt: the file of rank 1 beside it is missing'
of 3 numbers-shard-gone 'model_shard_3.pt: the file of rank 2 beside it is missing'
of 3 llama-gone 'the file of rank 3 beside it is missing: there are 3, and their number must be a power of 2'
of 3 inside-gone 'ckpt_rank2.pt: the file of rank 3 beside it is missing: there were 4 ranks, as it says'
of 3 inside-one-gone 'ckpt_rank0.pt: the file of rank 1 beside it is missing: there were 2 ranks'
of 0 innocent 'valid \(torch, 10 files'
of 4 lone 'unproved .*
  model_rank0.pt: complete cannot be proved: nothing counts the files of its set, so others may be missing'
of 4 lone-fifth 'unproved .*
  model_rank5.pt: complete cannot be proved: nothing counts'
of 3 lone-second 'model_rank1.pt: the file of rank 0 beside it is missing: there is one of rank 1'
of 3 lone-step 'step_4_rank_1.pt: the file of rank 0 beside it is missing'
of 3 lone-told 'model_rank5.pt: the files of ranks 0, 1, 2, 3 and 3 more beside it are missing: there is one of rank 5'
of 0 lone-one 'valid \(torch'
for key in world_size world num_ranks; do
    of 4 lone-$key 'unproved .*
  rank0.pt: complete cannot be proved: it says that there were 2 ranks, and no file of another rank is beside it'
done
verdict "nor does another that is as short count, or a manifest of it" 4 'step_20: unproved' verify --add-manifest --run-id=r "$W"/lone-root
is "which is not written" "$(ls "$W"/lone-root/step_*)" "$W/lone-root/step_10:
rank0.pt

$W/lone-root/step_20:
rank0.pt"
for case in verl-root nemo xla colossal; do of 0 $case ': valid'; done
of 3 verl-tracker 'latest_checkpointed_iteration.txt: it names iteration 60, but there is no iter_0000060'
of 3 nemo-gone 'tp_rank_00_pp_rank_001 is missing'
of 3 nemo-begun 'step10-unfinished beside it says that it was not written to its end'
of 3 xla-gone 'rank0-of-2-optimizer.pt: number 1 of this set of 2 files is missing'
of 3 colossal-gone 'pytorch_optim-00002.bin is missing, with tensor "2"'

# --- several are lost: each is named, and a crowd by its first and how many -------------------------------------------
of 3 two-verl 'model_world_size_4_rank_0.pt: numbers 1 and 3 of this set of 4 files are missing'
of 3 two-random 'rng_state_3.pth: the files of ranks 0 and 2 beside it are missing: there is one of rank 3'
of 3 two-inside 'the files of ranks 1 and 3 beside it are missing: there is one of rank 2'
of 3 two-said 'rng_state_0.pth: the files of ranks 1 and 2 beside it are missing: there were 3 ranks, as training_args.bin says'
of 3 two-folders 'rank_0_of_3: numbers 1 and 2 of this set of 3 folders are missing'
of 3 two-shards '  [^:]*: pytorch_model-00001-of-00003.bin is missing, with tensor "a[0-9]*"
  [^:]*: pytorch_model-00003-of-00003.bin is missing, with tensor "c[0-9]*"$'
of 3 two-pieces '  __0_0.distcp: it is missing, with "[^"]*"
  __0_2.distcp: it is missing, with "[^"]*"$'
of 3 two-grid '  mp_rank_01/distrib_optim.pt is missing, and so is 1 more of its files$'
verdict "a manifest" 0 'manifest written' verify --add-manifest --run-id=r "$W/two-listed" "$W/many-listed"
rm "$W/two-listed/optimizer.pt" "$W/two-listed/scheduler.pt" "$W"/many-listed/rng_state_?.pth
of 3 two-listed '  optimizer.pt is missing
  scheduler.pt is missing'
of 3 many-listed '  rng_state_7.pth is missing
  and 2 more of its files are missing, or not of their size'

# --- ended halfway ----------------------------------------------------------------------------------------------------
for case in half half-random half-begun; do of 3 $case 'trainer_state.json: it is missing: a Trainer writes it last'; done
of 0 half-used 'valid \(safetensors'
of 0 half-own 'valid \(safetensors'
of 3 trainer-schedule 'there is an optimizer.pt, but no scheduler.pt'
of 3 trainer-neither 'there is the state of random numbers, but no optimizer'
of 0 trainer-zero-random 'valid \(trainer'
of 3 trainer-zero-random-gone 'rng_state_0.pth: the file of rank 1 beside it is missing: there were 2 ranks, as mp_rank_00_model_states.pt says'
of 0 trainer-said 'valid \(trainer'
of 3 trainer-said-gone 'rng_state_1.pth: the file of rank 2 beside it is missing: there were 3 ranks, as training_args.bin says'
of 3 listless 'pytorch_model.bin.index.json: it is missing: the model is in 2 files, of which it is the list'
for case in saved saved-schedule saved-alone; do of 0 $case 'valid'; done
of 3 saved-model 'there is an optimizer.bin, but no weights of a model'
of 3 saved-optimizer 'there is a scheduler.bin, but no optimizer'
of 0 epoch=2-step=7.ckpt 'valid'
of 3 epoch=3-step=9.ckpt 'meta.pt: it is missing: Lightning writes it last'
of 3 saved-first 'optimizer.bin: it is missing: there is optimizer_1.bin'
of 3 saved-begun 'random_states_0.pkl: it is missing: accelerate writes it last'
of 3 saved-random 'random_states_0.pkl: it is missing: accelerate writes it last'

# --- suffixes, and what stands in the place of a file -----------------------------------------------------------------
for f in net.pth.tar net.th net net.model; do
    of 0 files/$f "valid \\(torch, 1 file, .*, 1 tensor\\)\$"
    of 1 files/cut-$f 'truncated: the file ends at byte [0-9]+'
done
of 0 plain 'plain: valid \(torch, 1 file'
of 0 files/old.bin 'valid \(torch, 1 file, .*, 1 tensor\); there are no checksums'
for case in twice padded archive; do of 0 files/old-$case.bin 'valid'; done
of 1 files/old-zeros.bin 'bytes [0-9]+-[0-9]+ behind the last storage belong to none'
of 1 files/old-behind.bin 'bytes [0-9]+-[0-9]+ behind the last storage belong to none'
of 1 files/cut-old.bin 'truncated: storage 0 of 1 begins at byte [0-9]+, the file ends at'
of 0 files/weights 'valid \(safetensors'
verdict "a glance says so, too" 0 '; there are no checksums to compare the bytes of 1 file with' verify "$W/files/weights"
of 1 files/cut-weights 'truncated: tensor "w" has bytes'
of 1 files/called.safetensors 'it is a zip archive, as torch.save writes them, not safetensors'
of 1 files/cut-arrays.npz truncated
of 1 files/cut-50.npy 'truncated: its header should end at byte 128, the file ends at 50'
of 1 files/cut-900.npy 'truncated: its array should end at byte 928, the file ends at 900'
of 4 files/array.npy 'no file of a known format'
of 1 files/cut-values.pkl 'truncated: its pickle does not end'
of 4 files/packed.pt 'it is compressed with gzip'
of 1 files/answer.bin 'a text stands in the place of the file: it begins "Entry not found"'
for stem in .safetensors .bin .pt .ckpt .th .pth.tar "" .distcp .json .npz .gguf; do
    of 1 "files/pointer$stem" 'a Git LFS pointer stands in the place of the file, which has 123456 bytes: `git lfs pull` fetches it'
    of 1 "files/page$stem" 'a web page \(HTML\) stands in the place of the file'
    of 1 "files/zeros$stem" 'there are zeros where it should begin'
    of 1 "files/empty$stem" 'it is empty'
done
of 0 files/hollow-None.safetensors 'valid .*; all data of hollow-None.safetensors are zeros$'
for f in last middle; do
    of 0 files/hollow-$f.safetensors 'valid .*--add-manifest writes them$'
done
verdict "a glance tells zeros, too" 0 'valid .*; all data of hollow-None.safetensors are zeros$' verify "$W/files/hollow-None.safetensors"
of 1 files/headless.safetensors 'headless.safetensors: bytes 0-7 are zeros: there is no header'
of 1 trainer-pointer 'optimizer.pt: a Git LFS pointer'
of 1 trainer-tokenizer 'tokenizer.model: a Git LFS pointer'
of 1 trainer-zeros 'optimizer.pt: there are zeros'
of 1 unknown 'model.gguf: a Git LFS pointer'

# --- JSON, and pickles that are none ----
of 1 trainer-answer 'trainer_state.json: a text stands in the place of the file: it begins "Internal Server Error"'
of 1 trainer-quota 'trainer_state.json: it is no state of a Trainer, which has a number "global_step": it begins "\{.*quota'
of 1 trainer-list 'config.json: it is JSON, but no object'
of 1 trainer-torn 'tokenizer.json: it is no JSON: byte 12 cannot be there'
of 1 trainer-half 'scheduler.pt: there are zeros where it should begin'
of 1 saved-answer 'random_states_1.pkl: a text stands in the place of the file: it begins "\(nothing'
of 0 trainer-python 'valid \(trainer'
for case in class half type place tail path; do
    case $case in
    class) v_says='its pickle names "tosch.distributed' ;;
    half) v_says='there are zeros where it should begin' ;;
    type) v_says='its pickle names "torch float3r"' ;;
    place) v_says='"beyond" has bytes 10-1000010, the file ends' ;;
    tail) v_says='its pickle ends at byte [0-9]+, the file at [0-9]+' ;;
    path) v_says='the name "model.x" differs in one byte from that of its path, "model.w"' ;;
    esac
    of 1 dcp-$case "$v_says"
done
of 1 dcp-nowhere '  \.metadata: there are more pieces of tensors than are stored'
of 1 dcp-behind-junk '__0_0.distcp: bytes [0-9]+-[0-9]+ behind the last item belong to none'
of 1 dcp-behind-zeros '__0_0.distcp: bytes [0-9]+-[0-9]+ behind the last item belong to none'
of 1 dcp-front-junk '__0_0.distcp: bytes 0-4 in front of the first item belong to none'
of 1 dcp-between '__0_0.distcp: bytes [0-9]+-[0-9]+ between two items belong to none'
for case in behind-padding behind-twice front-twice; do of 0 dcp-$case 'valid \(dcp, 2 files'; done
of 4 dcp-stranger 'its pickle names "acme.storage Place", which is of no module that writes such files'
of 0 dcp 'valid \(dcp, 2 files.*; there are no checksums to compare the bytes of 1 file with'
verdict "manifests but for the newest, whose state is a text" 1 'checkpoint-3: damaged' verify --add-manifest --run-id=r "$W/answered"
verdict "gc relies on the one before" 0 'kept .* checkpoint-2: among the newest; found whole' gc "$W/answered" --keep-last=1
is "which stays" "$(ls "$W/answered" | tr '\n' ' ')" "checkpoint-2 checkpoint-3 "

# --- archives without checksums ---------------------------------------------------------------------------------------
for case in silent.pt silent trainer-silent; do of 4 $case ': unproved .*'; like "$case: says why" "$(cat "$T/out")" 'no checksums to compare: [0-9]'; done
verdict "only --deep compares" 0 'silent.pt: valid' verify "$W/silent.pt"
verdict "once there are checksums" 0 'valid .*, manifest written' verify --deep --add-manifest "$W/silent"
of 0 silent 'silent: valid'

# --- the cache of a hub -----------------------------------------------------------------------------------------------
R=$W/hub/models--org--net
for path in hub hub/models--org--net hub/models--org--net/snapshots hub/models--org--net/snapshots/0123456789012345678901234567890123456789; do
    of 0 $path 'snapshots/0123456789012345678901234567890123456789: valid \(huggingface, 4 files, .*, 2 tensors\)$'
done
of 1 hub-changed 'model-00002-of-00002.safetensors: its bytes have SHA-256 [0-9a-f]{64}, its blob is called [0-9a-f]{64}'
verdict "only --deep compares them" 0 valid verify "$W/hub-changed"
of 0 hub-absolute 'valid \(huggingface, 4 files, .*, 2 tensors\)'
of 3 hub-gone 'model-00002-of-00002.safetensors: it is a link that leads to none of the files in blobs/'
for path in hub-begun hub-begun/models--org--net/snapshots/0123456789012345678901234567890123456789; do
    of 3 $path 'there is no model in it, but a file in blobs/ that was not fetched to its end'
done
of 4 hub-tokenizer 'there is no checkpoint of a known format'
of 3 hub-out 'model-00002-of-00002.safetensors: it is a link that leads to none of the files in blobs/'
verdict "a cache gets no manifest" 2 'is of a cache, which only its hub writes to' verify --add-manifest "$R"
verdict "and gc leaves it alone" 0 '0 deleted' gc "$W/hub" --keep-last=1

# --- a crafted pickle -------------------------------------------------------------------------------------------------
of 4 doubled.pt 'the pickle has the same values in too many places to look at all'
of 4 million.pt 'the pickle is nested deeper than 256, or contains itself'

# --- gc ---------------------------------------------------------------------------------------------------------------
verdict "a manifest for each" 0 'checkpoint-3: valid .*, manifest written' verify --add-manifest --run-id=r "$W/root"
rm "$W/root/checkpoint-3/global_step500/zero_pp_rank_1_mp_rank_00_optim_states.pt"
verdict "gc relies on the newest that is whole, and says so" 0 'kept .* checkpoint-2: among the newest; found whole, every byte, before anything older goes' gc "$W/root" --keep-last=1 --deep
is "what it leaves" "$(ls "$W/root" | tr '\n' ' ')" "checkpoint-2 checkpoint-3 "
verdict "a manifest that is content" 0 'checkpoint-3: valid .*, manifest written' verify --add-manifest --run-id=r "$W/said"
cp "$W"/two-ranks/* "$W/said/checkpoint-3/global_step500/"
verdict "gc reads every byte, also without --deep" 1 \
    'nothing is deleted: the newest checkpoint, checkpoint-3, is damaged: .*zero_pp_rank_0.*: bytes 0-[0-9]+ have CRC32C' gc "$W/said" --keep-last=1
is "and deletes nothing" "$(ls "$W/said" | tr '\n' ' ')" "checkpoint-1 checkpoint-2 checkpoint-3 "
dd if=/dev/zero of="$W/root/checkpoint-2/global_step500/mp_rank_00_model_states.pt" bs=1 count=1000 conv=notrunc 2>/dev/null
verdict "what no manifest has vouched for" 1 'mp_rank_00_model_states.pt: bytes 0-[0-9]+ have CRC32C' verify "$W/root/checkpoint-2"
verdict "in JSON, with nothing else on stdout" 1 '^elrun: nothing is deleted' gc "$W/said" --keep-last=1 --json
verdict "a manifest of three" 0 'checkpoint-3: valid .*, manifest written' verify --add-manifest --run-id=r "$W/zeroed"
dd if=/dev/zero of="$W/zeroed/checkpoint-3/model.safetensors" bs=1 seek=200 count=50 conv=notrunc 2>/dev/null
verdict "zeros in the place of a tensor's data" 1 'nothing is deleted: .*checkpoint-3, is damaged: model.safetensors: bytes 0-[0-9]+ have CRC32C.*; tensor "w"' \
    gc "$W/zeroed" --keep-last=1
is "the whole ones stay" "$(ls "$W/zeroed" | tr '\n' ' ')" "checkpoint-1 checkpoint-2 checkpoint-3 "
cp -r "$W/trainer" "$W/vouched"
printf X | dd of="$W/vouched/optimizer.pt" bs=1 seek="$(grep -abo exp_avg "$W/vouched/optimizer.pt" | head -1 | cut -d: -f1)" conv=notrunc 2>/dev/null
verdict "bytes that their own checksums deny get no manifest" 1 'optimizer.pt: .*have CRC-32' verify --add-manifest "$W/vouched"
ok "and have none" test ! -e "$W/vouched/MANIFEST.json"
# --- files that nothing counts: another checkpoint with as many speaks for one, and one with more against it ----------
for step in 1 2; do mkdir -p "$W/count"; cp -r "$W/numbers-tp" "$W/count/checkpoint-$step"; done
verdict "with one that has as many" 0 'checkpoint-2: valid' verify "$W/count/"
cp -r "$W/numbers-tp" "$W/count/checkpoint-3"; rm "$W/count/checkpoint-3/model_tp3.pt"
verdict "with fewer than any other" 4 'checkpoint-3: unproved .*
  model_tp2.pt: complete cannot be proved' verify "$W/count"
verdict "a manifest lists what is there" 0 'checkpoint-3: valid .*, manifest written' verify --add-manifest --run-id=r "$W"/count/checkpoint-*
verdict "gc does not rely on that" 4 'nothing is deleted: the newest checkpoint, checkpoint-3, is unproved: model_tp2.pt: complete cannot be proved: checkpoint-[12] has 4 files of its set, this one has 3$' \
    gc "$W/count" --keep-last=1
is "and deletes nothing" "$(ls "$W/count" | tr '\n' ' ')" "checkpoint-1 checkpoint-2 checkpoint-3 "
rm -r "$W/count/checkpoint-3"
verdict "gc says what speaks for it" 0 'kept .* checkpoint-2: among the newest; found whole, every byte, .*; as many files of ranks as checkpoint-1' gc "$W/count" --keep-last=1
is "and deletes the other" "$(ls "$W/count" | tr '\n' ' ')" "checkpoint-2 "
# lay ROOT STEP NAME...: a checkpoint of such files.
lay() {
    l_to=$W/$1/checkpoint-$2; shift 2
    for l_name; do
        mkdir -p "$(dirname "$l_to/$l_name")"
        case $l_name in *.json) echo '{"lr": 1}' >"$l_to/$l_name" ;; *) cp "$W/numbers-tp/model_tp0.pt" "$l_to/$l_name" ;; esac
    done
}
# vouch ROOT: a manifest of each, as it is; named alone, a checkpoint is not compared with the others.
vouch() { "$ELRUN" ckpt verify --add-manifest --run-id=r "$W/$1"/checkpoint-* >"$T/out" 2>"$T/err"; }
# stays ROOT REGEX: all are vouched for, and gc deletes nothing, because of that.
stays() {
    vouch "$1"
    s_before=$(ls "$W/$1")
    verdict "$1: gc" 4 "^elrun: nothing is deleted: .*$2" gc "$W/$1" --keep-last=1
    is "$1: all stay" "$(ls "$W/$1")" "$s_before"
    verdict "$1: nor does verify rely on a manifest" 4 ': unproved ' verify "$W/$1"
}
four='model_tp0.pt model_tp1.pt model_tp2.pt model_tp3.pt' three='model_tp0.pt model_tp1.pt model_tp2.pt'
lay other-file 1 $four; lay other-file 2 $three args.json
verdict "a file of another kind is none of the set" 4 'checkpoint-2: unproved .*
  model_tp2.pt: complete cannot be proved: checkpoint-1 has 4 files of its set, this one has 3$' verify "$W/other-file"
verdict "where another has more, there is no manifest" 4 'checkpoint-2: unproved \(torch, 4 files, [^,]*, 1 tensor\)
  model_tp2.pt' verify --add-manifest --run-id=r "$W/other-file"
is "only for the one that has most" "$(ls -d "$W"/other-file/*/MANIFEST.json)" "$W/other-file/checkpoint-1/MANIFEST.json"
verdict "gc leaves alone what has none" 0 '0 deleted.* 2 kept' gc "$W/other-file" --keep-last=1
stays other-file 'checkpoint-2, is unproved: model_tp2.pt: .*checkpoint-1 has 4 files'
lay beside 1 $four args.json; lay beside 2 $four
verdict "and one that is lost is told by itself" 4 'checkpoint-1: valid .*
.*checkpoint-2: unproved .*
  args.json: complete cannot be proved: it is not here, but in checkpoint-1$' verify "$W/beside"
lay disk-full 1 $four; lay disk-full 2 $three; lay disk-full 3 $three
verdict "two that are cut are no more than the whole one" 4 'checkpoint-2: unproved .*
  model_tp2.pt: .*checkpoint-1 has 4 files of its set, this one has 3
.*checkpoint-3: unproved .*
  model_tp2.pt: .*checkpoint-1 has 4' verify "$W/disk-full"
stays disk-full 'checkpoint-3, is unproved: .*checkpoint-1 has 4'
lay reshard 1 $four; lay reshard 2 $four; lay reshard 3 model_tp0.pt model_tp1.pt; lay reshard 4 model_tp0.pt model_tp1.pt
stays reshard 'checkpoint-4, is unproved: model_tp1.pt: .* has 4 files of its set, this one has 2'
lay two-sets 1 model_tp0.pt model_tp1.pt optim_tp0.pt optim_tp1.pt optim_tp2.pt
lay two-sets 2 model_tp0.pt model_tp1.pt optim_tp0.pt optim_tp1.pt args.json
stays two-sets 'optim_tp1.pt: .*checkpoint-1 has 3 files of its set, this one has 2'
lay crossed 1 model_tp0.pt model_tp1.pt optim_tp0.pt optim_tp1.pt optim_tp2.pt
lay crossed 2 model_tp0.pt model_tp1.pt model_tp2.pt optim_tp0.pt optim_tp1.pt
stays crossed 'optim_tp1.pt: .*checkpoint-1 has 3 files of its set, this one has 2'
lay no-set 1 $four optim_tp0.pt optim_tp1.pt; lay no-set 2 $four; lay no-set 3 $four
stays no-set 'checkpoint-1 has optim_tp1.pt, of whose set nothing is here'
lay stage 1 m_tp0_pp0.pt m_tp1_pp0.pt m_tp0_pp1.pt m_tp1_pp1.pt
for step in 2 3; do lay stage $step m_tp0_pp0.pt m_tp1_pp0.pt; done
stays stage 'checkpoint-1 has m_tp1_pp1.pt, of whose set nothing is here'
for step in 1 2; do lay kinds $step $three; done; lay kinds 3 optim_tp0.pt optim_tp1.pt; lay kinds 4 optim_tp0.pt optim_tp1.pt
verdict "checkpoints without a set in common say nothing of each other" 0 'checkpoint-4: valid' verify "$W/kinds"
lay middle 1 model_tp0.pt model_tp1.pt model_tp3.pt; lay middle 2 $three
verdict "one with a gap does not speak for another" 3 'checkpoint-1: incomplete .*
.*checkpoint-2: unproved .*
  model_tp2.pt: .*the set goes on in checkpoint-1, up to model_tp3.pt' verify "$W/middle"
lay first 1 $four; lay first 2 model_tp1.pt model_tp2.pt model_tp3.pt
stays first 'model_tp3.pt: .*checkpoint-1 has 4 files of its set, this one has 3'
lay padded 1 model_tp00.pt model_tp01.pt model_tp02.pt model_tp03.pt; lay padded 2 $three args.json
stays padded 'model_tp2.pt: .*checkpoint-1 has 4'
lay padded-twice 1 $four; lay padded-twice 2 $three model_tp02.pt
stays padded-twice 'checkpoint-1 has 4 files of its set, this one has 3'
lay folder 1 net.pt w/model_tp0.pt w/model_tp1.pt w/model_tp2.pt; lay folder 2 net.pt w/model_tp0.pt w/model_tp1.pt model_tp2.pt
stays folder 'w/model_tp1.pt: .*checkpoint-1 has 3 files of its set, this one has 2'
lay single 1 model_rank0.pt model_rank1.pt; lay single 2 model_rank0.pt
stays single 'model_rank0.pt: .*checkpoint-1 has 2 files of its set, this one has 1'
lay power 1 consolidated.00.pth consolidated.01.pth; lay power 2 consolidated.00.pth
stays power 'consolidated.00.pth: .*checkpoint-1 has 2'
for step in 10 20; do lay named $step m_${step}_tp0.pt m_${step}_tp1.pt; done
verdict "names with the step in them" 0 'checkpoint-10: valid .*
.*checkpoint-20: valid' verify "$W/named"
for step in 30 40; do lay named $step m_${step}_tp0.pt; done
stays named 'm_40_tp0.pt: .*checkpoint-[12]0 has 2 files of its set, this one has 1'
for step in 1 2; do lay damaged $step $three; done
lay damaged 3 $four; printf '{' >"$W/damaged/checkpoint-3/MANIFEST.json"
"$ELRUN" ckpt verify --add-manifest --run-id=r "$W/damaged/checkpoint-1" "$W/damaged/checkpoint-2" >"$T/out" 2>"$T/err"
verdict "one that is damaged speaks against others" 4 'checkpoint-2, is unproved: model_tp2.pt: .*checkpoint-3 has 4' gc "$W/damaged" --keep-last=1
is "and nothing goes" "$(ls "$W/damaged" | tr '\n' ' ')" "checkpoint-1 checkpoint-2 checkpoint-3 "
mkdir -p "$W/told"; cp -r "$W/inside" "$W/told/checkpoint-1"; cp -r "$W/inside-one" "$W/told/checkpoint-2"
vouch told
verdict "what counts its ranks itself needs no other" 0 'kept .* checkpoint-2: among the newest; found whole' gc "$W/told" --keep-last=1
is "and the older one goes" "$(ls "$W/told")" checkpoint-2
# --- files of other names: those that earlier checkpoints have --------------------------------------------------------
# root NAME CASE STEP...: checkpoints that are copies of a case.
root() {
    r_name=$1 r_case=$2; shift 2
    mkdir -p "$W/$r_name"
    for r_step; do cp -r "$W/$r_case" "$W/$r_name/checkpoint-$r_step"; done
}
root lost saved 1 2 3; vouch lost
rm "$W/lost/checkpoint-3/scheduler.bin" "$W/lost/checkpoint-3/MANIFEST.json"
stays lost 'checkpoint-3, is unproved: scheduler.bin: complete cannot be proved: it is not here, but in checkpoint-2, and in all others before this one$'
root lost-five trainer-five 1 2; rm "$W/lost-five/checkpoint-2"/part_?.bin
stays lost-five 'part_a.bin: .*it is not here, but in checkpoint-1; nor are part_b.bin, part_c.bin, part_d.bin and 1 more$'
root lost-middle trainer 2 4 6; rm "$W/lost-middle/checkpoint-4/rng_state.pth"
verdict "one in the middle" 4 'checkpoint-2: valid .*
.*checkpoint-4: unproved .*
  rng_state.pth: complete cannot be proved: it is not here, but in checkpoint-2
.*checkpoint-6: valid' verify "$W/lost-middle"
verdict "which gets no manifest" 4 'checkpoint-4: unproved' verify --add-manifest --run-id=r "$W/lost-middle"
is "but the others do" "$(cd "$W/lost-middle" && ls -d */MANIFEST.json | tr '\n' ' ')" "checkpoint-2/MANIFEST.json checkpoint-6/MANIFEST.json "
verdict "gc relies on the newest, which is whole" 0 'deleted .* checkpoint-2.*
.*kept .* checkpoint-4: without a manifest' gc "$W/lost-middle" --keep-last=1
root lost-config trainer 2 4; rm "$W/lost-config/checkpoint-4/config.json"
stays lost-config 'config.json: .*it is not here, but in checkpoint-2$'
lay lost-twice 1 model.pt optim.pt; lay lost-twice 2 model.pt; lay lost-twice 3 model.pt
stays lost-twice 'checkpoint-3, is unproved: optim.pt: .*it is not here, but in checkpoint-1$'
lay lost-two 1 model.pt optimizer_1.bin optimizer_2.bin optimizer.bin; lay lost-two 2 model.pt optimizer_2.bin optimizer.bin
stays lost-two 'optimizer_1.bin: .*it is not here, but in checkpoint-1$'
lay lost-rank 1 meta.pt rank0.pt rank1.pt; lay lost-rank 2 rank0.pt rank1.pt
stays lost-rank 'meta.pt: .*it is not here, but in checkpoint-1$'
for step in 1 2; do
    case $step in 1) more=1 ;; *) more= ;; esac
    lay lost-mega $step mp_rank_00/model_optim_rng.pt mp_rank_01/model_optim_rng.pt ${more:+mp_rank_00/distrib_optim.pt mp_rank_01/distrib_optim.pt}
    lay lost-ds $step mp_rank_00_model_states.pt ${more:+zero_pp_rank_0_mp_rank_00_optim_states.pt zero_pp_rank_1_mp_rank_00_optim_states.pt}
    lay lost-wr $step model.pt ${more:+opt_w2_r0.pt opt_w2_r1.pt}
done
stays lost-mega 'mp_rank_00/distrib_optim.pt: .*it is not here, but in checkpoint-1$'
stays lost-ds 'zero_pp_rank_0_mp_rank_00_optim_states.pt: .*it is not here, but in checkpoint-1$'
stays lost-wr 'opt_w2_r0.pt: .*it is not here, but in checkpoint-1$'
lay lost-format 1 model.safetensors other.pt; cp "$W/trainer/model.safetensors" "$W/lost-format/checkpoint-1/"; lay lost-format 2 other.pt
stays lost-format 'model.safetensors: .*it is not here, but in checkpoint-1$'
# whole ROOT WHY: nothing speaks against any, and gc deletes all but the newest.
whole() {
    vouch "$1"
    like "$1: all are valid: $2" "$("$ELRUN" ckpt verify "$W/$1" 2>&1; echo "status $?")" 'status 0$'
    verdict "$1: gc" 0 'deleted' gc "$W/$1" --keep-last=1
    is "$1: one is left" "$(ls "$W/$1" | wc -l)" 1
}
lay later 1 model.pt; lay later 2 model.pt optim.pt; lay later 3 model.pt optim.pt
whole later "a script has begun to write another file"
lay ended 1 model.pt best.pt
for step in 2 3 4; do lay ended $step model.pt; done
verdict "a file of the first alone, at the second and the third" 4 'checkpoint-2: unproved .*
.*
.*checkpoint-3: unproved .*
.*
.*checkpoint-4: valid' verify "$W/ended"
for step in 1 2 3; do lay numbered ${step}00 optim.pt model_epoch$step.pt step_${step}00.pt; done
whole numbered "numbers in names"
for step in 1 2 3; do lay noted $step model.pt; echo x >"$W/noted/checkpoint-$step/note$step.txt"; done
echo x >"$W/noted/checkpoint-1/events.out.tfevents.1"; touch "$W/noted/checkpoint-1/run.log" "$W/noted/checkpoint-1/.seen"
whole noted "notes and logs"
lay strangers 1 net.pt; lay strangers 2 model.pt
vouch strangers
verdict "no name in common" 0 'checkpoint-2: valid .* 1 tensor\)$' verify "$W/strangers"
i=0
for form in mp_rank_00 mp_rank_00_000 "mp_rank_00_000 mp_rank_00_001" "mp_rank_00 mp_rank_01" mp_rank_00; do
    i=$((i + 1))
    for folder in $form; do lay folders-change $i $folder/model_optim_rng.pt $folder/distrib_optim.pt; done
done
whole folders-change "other parallel ranks of Megatron"
lay stage-change 1 mp_rank_00_model_states.pt zero_pp_rank_0_mp_rank_00_optim_states.pt zero_pp_rank_1_mp_rank_00_optim_states.pt
lay stage-change 2 mp_rank_00_model_states.pt bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt
lay stage-change 3 zero_pp_rank_0_mp_rank_00_model_states.pt zero_pp_rank_0_mp_rank_00_optim_states.pt
whole stage-change "another stage, type and number of ranks of DeepSpeed"
# remain ROOT REGEX CHECKPOINT...: nothing speaks against the newest, and gc keeps the last that have what it lacks.
remain() {
    n_root=$1 n_regex=$2; shift 2
    vouch "$n_root"
    verdict "$n_root: gc" 0 "$n_regex" gc "$W/$n_root" --keep-last=1
    is "$n_root: what stays" "$(ls "$W/$n_root" | tr '\n' ' ')" "$* "
}
verdict "a file that few have" 4 'checkpoint-4: valid .*; without best.pt, which checkpoint-1 has$' verify "$W/ended"
remain ended 'kept .* checkpoint-1: no newer one has all its files: checkpoint-4 lacks best.pt$' checkpoint-1 checkpoint-4
lay all-later 1 model.pt optim_rank0.pt optim_rank1.pt w_world_size_2_rank_0.pt w_world_size_2_rank_1.pt
for step in 2 3 4; do lay all-later $step model.pt optim_rank0.pt optim_rank1.pt; done
for step in 5 6 7 8 9 10; do lay all-later $step model.pt; done
verdict "a set of which nothing is here" 4 'checkpoint-5: unproved .*
  optim_rank1.pt: complete cannot be proved: it is not here, but in checkpoint-4, and in all others before this one.*' verify "$W/all-later"
remain all-later 'checkpoint-1: no newer one has all its files: checkpoint-10 lacks [^ ]*
.*deleted .* checkpoint-3
.*kept .* checkpoint-4: no newer one has all its files: checkpoint-10 lacks optim_rank1.pt; found whole, .*' checkpoint-1 checkpoint-10 checkpoint-4
for step in 1 2 3 4 5 6; do
    case $step in 1 | 3 | 5) eval='eval/preds_rank0.npz eval/preds_rank1.npz best.pt' ;; *) eval= ;; esac
    lay now-then $step model.pt $eval
done
rm "$W"/now-then/checkpoint-?/eval/*; for step in 1 3 5; do cp "$W/files/arrays.npz" "$W/now-then/checkpoint-$step/eval/preds_rank0.npz"; done
for step in 1 3 5; do cp "$W/files/arrays.npz" "$W/now-then/checkpoint-$step/eval/preds_rank1.npz"; done
verdict "files of every second one, from the third on" 4 'checkpoint-2: unproved .*
.*checkpoint-4: valid .*; without best.pt, which checkpoint-3 has
.*checkpoint-6: valid .*; without best.pt, which checkpoint-5 has$' verify "$W/now-then"
remain now-then 'deleted .* checkpoint-4
kept .* checkpoint-5: no newer one has all its files' checkpoint-5 checkpoint-6
lay begun 1 model.pt; for step in 2 3; do lay begun $step model.pt optim.pt; done; lay begun 4 model.pt; lay begun 5 model.pt
stays begun 'checkpoint-5, is unproved: optim.pt: .*it is not here, but in checkpoint-3'
lay lone-cut 1 model.pt optim.pt; lay lone-cut 2 model.pt optim.pt
for step in 3 4 5 6 7; do lay lone-cut $step model.pt; done
vouch lone-cut; printf XX | dd of="$W/lone-cut/checkpoint-2/optim.pt" bs=1 seek=700 conv=notrunc 2>/dev/null
verdict "nor does the last that has it go for one that is damaged" 0 'kept .* checkpoint-1: no newer one has all its files' gc "$W/lone-cut" --keep-last=1
is "both stay" "$(ls "$W/lone-cut" | tr '\n' ' ')" "checkpoint-1 checkpoint-2 checkpoint-7 "
lay scaled 1 model.pt rng_state.pth; lay scaled 2 model.pt rng_state_0.pth rng_state_1.pth; lay scaled 3 model.pt rng_state.pth
verdict "random numbers of one rank and of two" 0 'checkpoint-2: valid [^;]* 1 tensor\)
[^;]*checkpoint-3: valid [^;]* 1 tensor\)$' verify "$W/scaled"
vouch scaled; rm -r "$W/scaled/checkpoint-1"
verdict "gc knows them for one kind, too" 0 'deleted .* checkpoint-2' gc "$W/scaled" --keep-last=1
lay scaled 4 model.pt rng_state_0.pth rng_state_1.pth; vouch scaled
verdict "and the other way round" 0 'deleted .* checkpoint-3' gc "$W/scaled" --keep-last=1
lay top 1 model.pt best_0.pt best_1.pt best_2.pt
for step in 2 3 4; do lay top $step model.pt best_0.pt best_1.pt; done
remain top 'checkpoint-1: no newer one has all its files: checkpoint-4 lacks best_2.pt' checkpoint-1 checkpoint-4
# Names that each has anew: of one length, of several with one beginning, of folders.
lay anew 1 model.pt optim.pt eval-abcde.pt
i=1
for tag in bcdea cdeab deabc eabcd abced; do
    i=$((i + 1)); lay anew $i model.pt eval-$tag.pt
done
i=0
for tag in sunny-fox old-owl big-hen a-b bee-a; do i=$((i + 1)); lay anew-word $i model.pt run-$tag.pt; done
i=0
for tag in abc cde efa bca eee; do i=$((i + 1)); lay anew-folder $i model.pt $tag/state.pt; done
remain anew 'checkpoint-1: no newer one has all its files: checkpoint-6 lacks optim.pt
.*deleted .* checkpoint-2' checkpoint-1 checkpoint-5 checkpoint-6
remain anew-word 'checkpoint-4: no newer one has all its files' checkpoint-4 checkpoint-5
remain anew-folder 'checkpoint-4: no newer one has all its files' checkpoint-4 checkpoint-5
lay anew-other 1 model.pt optim.pt; lay anew-other 2 model.pt best.pt; lay anew-other 3 model.pt ema.pt
for step in 4 5 6; do lay anew-other $step model.pt; done
remain anew-other 'kept .* checkpoint-1: .* lacks optim.pt' checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-6
lay best 5 model.pt optim.pt; mkdir "$W/best/final"; cp "$W/best/checkpoint-5/model.pt" "$W/best/final/"
verdict "what has no step is not compared" 0 'final: valid' verify "$W/best"
lay runs 1 model.pt optim.pt; vouch runs; lay runs 2 model.pt
"$ELRUN" ckpt verify --add-manifest --run-id=other "$W/runs/checkpoint-2" >"$T/out" 2>"$T/err"
verdict "nor is another run" 0 'checkpoint-2: valid' verify "$W/runs"
finished
