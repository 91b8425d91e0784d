"""Checkpoints as frameworks lay them out, whole and with what happens to them, for test/e2e/ckpt_whole.sh: ckpt_whole.py FOLDER.  One
folder, or file, is one case."""
import argparse
import gzip
import hashlib
import json
import os
import pickle
import shutil
import struct
import sys
import types
import warnings
import zipfile
from pathlib import Path

import numpy
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.utils.serialization import config

warnings.simplefilter("ignore")
top = Path(sys.argv[1])
weights = {"w": torch.arange(64.0).reshape(8, 8)}


def deepspeed(folder, stage, ranks, models=1, tag="global_step500", prefix=""):
    place = folder / tag
    place.mkdir(parents=True)
    for model in range(models):
        state = {"dp_world_size": ranks, "mp_world_size": models, "ds_config": {"zero_optimization": {"stage": stage}}, "module": weights}
        if stage < 3:
            torch.save(state, place / f"mp_rank_{model:02}_model_states.pt")
        for rank in range(ranks):
            if stage == 3:
                torch.save(state, place / f"zero_pp_rank_{rank}_mp_rank_{model:02}_model_states.pt")
            if stage:
                count = ranks if stage == 3 else [ranks, ranks]
                torch.save({"optimizer_state_dict": {"zero_stage": stage, "partition_count": count, "x": weights}},
                           place / f"{prefix}zero_pp_rank_{rank}_mp_rank_{model:02}_optim_states.pt")
    (folder / "latest").write_text(tag)
    return place


def trainer(folder, ranks=1):
    folder.mkdir(parents=True)
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    (folder / "trainer_state.json").write_text('{"global_step": 5, "log_history": [{"loss": NaN}]}')
    (folder / "config.json").write_text("{}")
    torch.save({"state": {0: {"exp_avg": torch.zeros(3)}}}, folder / "optimizer.pt")
    torch.save({"last_epoch": 3}, folder / "scheduler.pt")
    for rank in range(ranks):
        torch.save({"cpu": torch.get_rng_state()}, folder / ("rng_state.pth" if ranks == 1 else f"rng_state_{rank}.pth"))
    return folder


def copy(name, source):
    return Path(shutil.copytree(source, top / name, symlinks=True))


# DeepSpeed.
for stage in range(4):
    deepspeed(top / f"zero{stage}", stage, 3, models=2)
(copy("zero1-last", top / "zero1") / "global_step500" / "zero_pp_rank_2_mp_rank_01_optim_states.pt").unlink()
(copy("zero2-model", top / "zero2") / "global_step500" / "mp_rank_01_model_states.pt").unlink()
(copy("zero3-parameters", top / "zero3") / "global_step500" / "zero_pp_rank_2_mp_rank_00_model_states.pt").unlink()
for path in (copy("zero2-optimizer", top / "zero2") / "global_step500").glob("*optim*"):
    path.unlink()
bf16 = deepspeed(top / "bf16", 2, 4, prefix="bf16_")
(bf16 / "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt").unlink()
deepspeed(top / "worlds", 1, 2)
deepspeed(top / "worlds-of", 1, 4)
shutil.copy(top / "worlds-of" / "global_step500" / "zero_pp_rank_3_mp_rank_00_optim_states.pt", top / "worlds" / "global_step500")
shutil.rmtree(top / "worlds-of")
lightning = deepspeed(top / "epoch=1-step=5.ckpt", 2, 2, tag="checkpoint")
universal = deepspeed(top / "universal", 0, 1)
torch.save({"dp_world_size": 2, "mp_world_size": 1, "ds_config": {"zero_optimization": {"stage": 2}}}, universal / "mp_rank_00_model_states.pt")
(universal / "zero" / "w").mkdir(parents=True)
torch.save(weights, universal / "zero" / "w" / "fp32.pt")

# A Trainer's.
trainer(top / "trainer")
trainer(top / "trainer-ranks", 4)
(copy("trainer-rank", top / "trainer-ranks") / "rng_state_1.pth").unlink()
(copy("trainer-model", top / "trainer") / "model.safetensors").unlink()
(copy("trainer-optimizer", top / "trainer") / "optimizer.pt").unlink()
state = copy("trainer-cut", top / "trainer") / "trainer_state.json"
state.write_text(state.read_text()[:30])
(copy("trainer-empty", top / "trainer") / "trainer_state.json").write_text("")
(copy("trainer-leftover", top / "trainer") / "optimizer.pt.tmp").write_bytes(b"PK\3\4")
deepspeed(trainer(top / "trainer-zero"), 2, 2)
(copy("trainer-zero-rank", top / "trainer-zero") / "global_step500" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
(copy("trainer-zero-tag", top / "trainer-zero") / "latest").write_text("global_step501")
sharded = trainer(top / "trainer-fsdp")
(sharded / "model.safetensors").unlink()
for part in ("pytorch_model_fsdp_0", "optimizer_0"):
    dcp.save(weights, checkpoint_id=sharded / part, no_dist=True)
(copy("trainer-fsdp-metadata", sharded) / "optimizer_0" / ".metadata").unlink()
(copy("trainer-fsdp-data", sharded) / "optimizer_0" / "__0_0.distcp").unlink()
adapter = top / "adapter"
adapter.mkdir()
(adapter / "adapter_config.json").write_text("{}")
safetensors.torch.save_file(weights, adapter / "adapter_model.safetensors")
(copy("adapter-model", adapter) / "adapter_model.safetensors").unlink()
accelerate = top / "accelerate"
accelerate.mkdir()
safetensors.torch.save_file(weights, accelerate / "model.safetensors")
torch.save(weights, accelerate / "optimizer.bin")
for rank in range(3):
    torch.save({"step": 1}, accelerate / f"random_states_{rank}.pkl")
(copy("accelerate-rank", accelerate) / "random_states_0.pkl").unlink()

# Shards, of which an index, or their names, say how many there are.
shards = top / "shards"
shards.mkdir()
for i in (1, 2):
    torch.save({f"w{i}": torch.zeros(4)}, shards / f"pytorch_model-0000{i}-of-00002.bin")
(shards / "pytorch_model.bin.index.json").write_text(
    json.dumps({"metadata": {}, "weight_map": {f"w{i}": f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)}}))
(copy("shards-missing", shards) / "pytorch_model-00002-of-00002.bin").unlink()
index = copy("shards-tensor", shards) / "pytorch_model.bin.index.json"
index.write_text(index.read_text().replace('"w1"', '"w9"'))
index = copy("shards-index", shards) / "pytorch_model.bin.index.json"
index.write_text(index.read_text()[:40])
lora = top / "lora"
lora.mkdir()
for rank in (8, 64):
    safetensors.torch.save_file(weights, lora / f"lora_rank_{rank}.safetensors")
(lora / "20260101.log.json").write_text('{"mode": "train"}\n{"mode": "val"}\n{"mo')
(lora / "robot.urdf").write_text("<?xml version='1.0'?><robot/>")
shutil.copy(trainer(top / "trainer-two") / "model.safetensors", top / "trainer-two" / "model_best.safetensors")
clone = trainer(top / "clone") / ".git" / "lfs" / "tmp"
clone.mkdir(parents=True)
(clone / "0123abcd").write_bytes((top / "clone" / "optimizer.pt").read_bytes()[:500])
named = trainer(top / "trainer-adapter")
(named / "mine").mkdir()
(named / "model.safetensors").rename(named / "mine" / "adapter_model.safetensors")
llama = top / "consolidated"
llama.mkdir()
for rank in (0, 2):
    torch.save(weights, llama / f"consolidated.0{rank}.pth")
ranks = top / "rank-of"
ranks.mkdir()
for rank in range(3):
    torch.save(weights, ranks / f"model_rank{rank}-of-4.pt")

# Names with the number of ranks in them, or files: all of one set, and the set without a rank.
for case, name, count, gone in (("verl", "actor/model_world_size_4_rank_{}.pt", 4, 3), ("verl-first", "model_world_size_4_rank_{}.pt", 4, 0),
                                ("rank-of-count", "rank_{}_of_4.pt", 4, 3), ("short", "state_r{}_w4.pt", 4, 3),
                                ("dashes", "weights_rank-{}_world-4.pt", 4, 3), ("from-zero", "shard-0000{}-of-00004.pt", 4, 3),
                                ("folders", "rank_{}_of_3/model.pt", 3, 2), ("numbers-tp", "model_tp{}.pt", 4, 1),
                                ("numbers-shard", "model_shard_{}.pt", 4, 2), ("llama", "consolidated.0{}.pth", 4, 3),
                                ("inside", "ckpt_rank{}.pt", 4, 3), ("inside-one", "ckpt_rank{}.pt", 2, 1)):
    for rank in range(count):
        file = top / case / name.format(rank)
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"world_size": count, "rank": rank, "w": weights} if case.startswith("inside") else weights, file)
    (copy(f"{case}-gone", top / case) / name.format(gone)).unlink()
alone = top / "innocent"
alone.mkdir()
for name in ("lora_r8_w16.pt", "model_epoch_3_of_10.pt", "fold_2_of_5.pt", "model_tp2.pt", "model_tp4.pt", "model_tp8.pt", "lora_rank_1.pt",
             "top1_of_5.pt", "best_2of3.pt"):
    torch.save(weights, alone / name)
torch.save({"world_size": 8, "w": weights}, alone / "last.pt")
# Ranks of which one file is left; whose name, or what is in it, says that there were more.
for case, name, more in (("lone", "model_rank0.pt", {}), ("lone-second", "model_rank1.pt", {}), ("lone-fifth", "model_rank5.pt", {}),
                         ("lone-step", "step_4_rank_1.pt", {}), ("lone-one", "rank0.pt", {"world_size": 1}),
                         ("lone-world_size", "rank0.pt", {"world_size": 2}), ("lone-world", "rank0.pt", {"world": 2}),
                         ("lone-num_ranks", "rank0.pt", {"num_ranks": 2}), ("lone-told", "model_rank5.pt", {"world_size": 8}),
                         ("lone-root/step_10", "rank0.pt", {"world_size": 2}), ("lone-root/step_20", "rank0.pt", {"world_size": 2})):
    (top / case).mkdir(parents=True)
    torch.save({"model": weights, "step": 20, **more}, top / case / name)

# Other people's names: verl's root, NeMo's ranks and its mark, PyTorch XLA's ranks of a Trainer, Colossal-AI's optimizer.
shutil.copytree(top / "verl", top / "verl-root" / "global_step_50")
(top / "verl-root" / "latest_checkpointed_iteration.txt").write_text("50")
(copy("verl-tracker", top / "verl-root") / "latest_checkpointed_iteration.txt").write_text("60")
for tensor in range(2):
    for pipeline in range(2):
        place = top / "nemo" / "step10" / f"tp_rank_0{tensor}_pp_rank_00{pipeline}"
        place.mkdir(parents=True)
        torch.save(weights, place / "megatron_gpt.ckpt")
shutil.rmtree(copy("nemo-gone", top / "nemo") / "step10" / "tp_rank_00_pp_rank_001")
(copy("nemo-begun", top / "nemo") / "step10-unfinished").write_text("")
xla = trainer(top / "xla", 2)
(xla / "optimizer.pt").unlink()
(xla / "model.safetensors").unlink()
for rank in range(2):
    torch.save(weights, xla / f"rank{rank}-of-2-pytorch_model.bin")
    torch.save(weights, xla / f"rank{rank}-of-2-optimizer.pt")
(copy("xla-gone", xla) / "rank1-of-2-optimizer.pt").unlink()
colossal = top / "colossal" / "epoch0-step5" / "optimizer"
colossal.mkdir(parents=True)
for number in (1, 2):
    torch.save({number: {"exp_avg": torch.zeros(4)}}, colossal / f"pytorch_optim-0000{number}.bin")
(colossal / "pytorch_optim.bin.index.json").write_text(json.dumps({"weight_map": {i: f"pytorch_optim-0000{i}.bin" for i in (1, 2)}}))
(copy("colossal-gone", top / "colossal") / "epoch0-step5" / "optimizer" / "pytorch_optim-00002.bin").unlink()

# Lightning's folders of FSDP.
for name in ("epoch=2-step=7.ckpt", "epoch=3-step=9.ckpt"):
    dcp.save(weights, checkpoint_id=top / name, no_dist=True)
torch.save({"epoch": 2}, top / "epoch=2-step=7.ckpt" / "meta.pt")

# As accelerate's PartialState is pickled with a Trainer's arguments.
said = trainer(top / "trainer-said", 3)
torch.save(argparse.Namespace(distributed_state=argparse.Namespace(num_processes=3, process_index=0)), said / "training_args.bin")
(copy("trainer-said-gone", said) / "rng_state_2.pth").unlink()

# Ended halfway: what a Trainer, accelerate and Megatron write last is not there; and those that never had it.
half = trainer(top / "half")
torch.save({"lr": 1}, half / "training_args.bin")
(half / "trainer_state.json").unlink()
(copy("half-random", half) / "training_args.bin").unlink()
begun = copy("half-begun/checkpoint-500", half)
for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
    (begun / name).unlink()
copy("half-used", begun)
own = copy("half-own", half)
for name in ("training_args.bin", "rng_state.pth"):
    (own / name).unlink()
(copy("trainer-schedule", top / "trainer") / "scheduler.pt").unlink()
(copy("trainer-neither", top / "trainer") / "scheduler.pt").unlink()
(top / "trainer-neither" / "optimizer.pt").unlink()
torch.save({}, deepspeed(trainer(top / "trainer-zero-random", 2), 2, 2).parent / "training_args.bin")
(copy("trainer-zero-random-gone", top / "trainer-zero-random") / "rng_state_1.pth").unlink()
shutil.copy(top / "trainer" / "config.json", copy("listless", shards))
(top / "listless" / "pytorch_model.bin.index.json").unlink()
saved = copy("saved", accelerate)
torch.save({"last_epoch": 3}, saved / "scheduler.bin")
torch.save({}, saved / "sampler.bin")
(copy("saved-model", saved) / "model.safetensors").unlink()
(copy("saved-optimizer", saved) / "optimizer.bin").unlink()
(copy("saved-schedule", saved) / "scheduler.bin").unlink()
(copy("saved-alone", top / "saved-optimizer") / "scheduler.bin").unlink()
(copy("saved-first", saved) / "optimizer.bin").rename(top / "saved-first" / "optimizer_1.bin")
for path in copy("saved-random", saved).glob("random*"):
    path.unlink()

begun = copy("saved-begun", top / "saved-random")
torch.save({"last_epoch": 3}, begun / "scheduler.bin")
(begun / "sampler.bin").unlink()
(copy("saved-answer", saved) / "random_states_1.pkl").write_text("(nothing to see here).")

# JSON that is none, and what only Python takes for JSON.
for name, file, text in (("answer", "trainer_state.json", "Internal Server Error\n"), ("quota", "trainer_state.json", '{"error": "quota exceeded"}'),
                         ("list", "config.json", "[]"), ("torn", "tokenizer.json", '{"a": 1, "b"\0\0\0}')):
    (copy(f"trainer-{name}", top / "trainer") / file).write_text(text)
(copy("trainer-python", top / "trainer") / "tokenizer.json").write_text(
    json.dumps({"vocab": {"\0": 0, "\ud800": float("inf")}, "n": 10**400, "x": [-float("inf"), float("nan"), 1e-300, {}, []]}))
path = copy("trainer-half", top / "trainer") / "scheduler.pt"
path.write_bytes(bytes(path.stat().st_size // 2) + path.read_bytes()[path.stat().st_size // 2:])

# .metadata has no checksum.
dcp.save({"model": weights}, checkpoint_id=top / "dcp", no_dist=True)
metadata = (top / "dcp" / ".metadata").read_bytes()
for name, data in (("class", metadata.replace(b"torch.distributed", b"tosch.distributed")), ("tail", metadata + b"junk"),
                   ("half", bytes(len(metadata) // 2) + metadata[len(metadata) // 2:]), ("type", metadata.replace(b"float32", b"float3r")),
                   ("path", metadata.replace(b"model.w", b"model.x"))):
    (copy(f"dcp-{name}", top / "dcp") / ".metadata").write_bytes(data)
described = pickle.loads(metadata)
index = next(iter(described.storage_data))
described.storage_data[type(index)("beyond")] = type(described.storage_data[index])("__0_0.distcp", 10, 1000000)
(copy("dcp-place", top / "dcp") / ".metadata").write_bytes(pickle.dumps(described))
# Bytes that are no item's: junk, less than a page of zeros, an item that two ranks have written, and a page of zeros.
pieces = {"junk": b"junk", "padding": bytes(4000), "twice": b"PK\3\4" + bytes(100), "zeros": bytes(4096)}
for name, piece in pieces.items():
    with open(copy(f"dcp-behind-{name}", top / "dcp") / "__0_0.distcp", "ab") as file:
        file.write(piece)
    path = copy(f"dcp-front-{name}", top / "dcp") / "__0_0.distcp"
    path.write_bytes(piece + path.read_bytes())
    described = pickle.loads(metadata)
    for place in described.storage_data.values():
        place.offset += len(piece)
    (path.parent / ".metadata").write_bytes(pickle.dumps(described))
data = path.read_bytes()[4096:]
(copy("dcp-between", top / "dcp") / "__0_0.distcp").write_bytes(data + b"junk" + data)
described = pickle.loads(metadata)
described.storage_data[type(index)("again")] = type(place)("__0_0.distcp", len(data) + 4, len(data))
(top / "dcp-between" / ".metadata").write_bytes(pickle.dumps(described))
described = pickle.loads(metadata)
described.storage_data.clear()
(copy("dcp-nowhere", top / "dcp") / ".metadata").write_bytes(pickle.dumps(described))
sys.modules["acme"] = types.ModuleType("acme")
sys.modules["acme.storage"] = acme = types.ModuleType("acme.storage")
acme.Place = type("Place", (), {"__module__": "acme.storage"})
described = pickle.loads(metadata)
described.storage_meta = acme.Place()
(copy("dcp-stranger", top / "dcp") / ".metadata").write_bytes(pickle.dumps(described))

# Megatron: its arguments say how many ranks there were.
for name, tensors, pipelines in (("megatron", 2, 1), ("megatron-grid", 2, 2)):
    for tensor in range(tensors):
        for pipeline in range(pipelines):
            place = top / name / "iter_0000010" / (f"mp_rank_{tensor:02}" + (f"_{pipeline:03}" if pipelines > 1 else ""))
            place.mkdir(parents=True)
            torch.save({"args": argparse.Namespace(tensor_model_parallel_size=tensors, pipeline_model_parallel_size=pipelines),
                        "model": weights}, place / "model_optim_rng.pt")
shutil.rmtree(copy("megatron-last", top / "megatron") / "iter_0000010" / "mp_rank_01")
for tensor in range(2):
    shutil.rmtree((copy("megatron-stage", top / "megatron-grid") if not tensor else top / "megatron-stage") /
                  "iter_0000010" / f"mp_rank_0{tensor}_001")

dcp.save(weights, checkpoint_id=top / "megatron-common" / "iter_0000010", no_dist=True)
(top / "megatron-common" / "iter_0000010" / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')

torch.save({"iteration": 10}, copy("megatron-common-only", top / "megatron-common") / "iter_0000010" / "common.pt")
(copy("megatron-written", top / "megatron-common-only") / "iter_0000010" / "metadata.json").unlink()
for name, said in (("megatron-apart", {}), ("megatron-no-optimizer", {"no_save_optim": True})):
    for rank in range(2):
        place = top / name / "iter_0000010" / f"mp_rank_0{rank}"
        place.mkdir(parents=True)
        torch.save({"args": argparse.Namespace(tensor_model_parallel_size=2, use_distributed_optimizer=True, **said), "model": weights},
                   place / "model_optim_rng.pt")
for rank in range(2):
    torch.save(weights, (copy("megatron-parts", top / "megatron-apart") if not rank else top / "megatron-parts") / "iter_0000010" /
               f"mp_rank_0{rank}" / "distrib_optim.pt")
(copy("megatron-part", top / "megatron-parts") / "iter_0000010" / "mp_rank_01" / "distrib_optim.pt").unlink()

# Suffixes, none, and what stands in the place of a file.
files = top / "files"
files.mkdir()
for name in ("net.pth.tar", "net.th", "net", "net.model"):
    torch.save(weights, files / name)
torch.save(weights, files / "old.bin", _use_new_zipfile_serialization=False)
old = (files / "old.bin").read_bytes()
(files / "old-twice.bin").write_bytes(old + old)
(files / "old-behind.bin").write_bytes(old + b"junk")
(files / "old-padded.bin").write_bytes(old + bytes(-len(old) % 4096))
(files / "old-zeros.bin").write_bytes(old + bytes(4096))
(files / "old-archive.bin").write_bytes(old + (files / "net.pth.tar").read_bytes())
safetensors.torch.save_file(weights, files / "weights")
torch.save(weights, files / "called.safetensors")
numpy.savez(files / "arrays.npz", a=numpy.arange(100))
numpy.save(files / "array.npy", numpy.arange(100))
(files / "values.pkl").write_bytes(pickle.dumps({"a": list(range(1000))}))
for name in ("net.pth.tar", "net.th", "net", "net.model", "old.bin", "weights", "arrays.npz", "values.pkl"):
    whole = (files / name).read_bytes()
    (files / f"cut-{name}").write_bytes(whole[:len(whole) * 2 // 3])
for end in (50, 900):
    (files / f"cut-{end}.npy").write_bytes((files / "array.npy").read_bytes()[:end])
(files / "packed.pt").write_bytes(gzip.compress((files / "net").read_bytes()))
pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "01234567" * 8 + "\nsize 123456\n"
for name in ("a.safetensors", "a.bin", "a.pt", "a.ckpt", "a.th", "a.pth.tar", "a", "a.distcp", "a.json", "a.npz", "a.gguf"):
    stem = name.replace("a", "", 1)
    (files / f"pointer{stem}").write_text(pointer)
    (files / f"page{stem}").write_text("<!doctype html>\n<html><body>404</body></html>\n")
    (files / f"zeros{stem}").write_bytes(bytes(100000))
    (files / f"empty{stem}").write_bytes(b"")
(files / "answer.bin").write_text("Entry not found")
# Zeros behind a right header, in the place of its length, and of all; one number among zeros.
for name, place in (("last", 99999), ("middle", 60001), (None, None)):
    hollow = torch.zeros(100000)
    if name:
        hollow[place] = 1e-30
    safetensors.torch.save_file({"w": hollow}, files / f"hollow-{name}.safetensors")
hollow = (files / "hollow-None.safetensors").read_bytes()
(files / "headless.safetensors").write_bytes(bytes(8) + hollow[8:])
pages = trainer(top / "trainer-pointer")
(pages / "optimizer.pt").write_text(pointer)
pages = trainer(top / "trainer-tokenizer")
(pages / "tokenizer.model").write_text(pointer)
pages = trainer(top / "trainer-zeros")
(pages / "optimizer.pt").write_bytes(bytes((pages / "optimizer.pt").stat().st_size))
pages = trainer(top / "trainer-readme")
(pages / "README.md").write_text("<!doctype html>\n# model\n")
(pages / "__init__.py").write_text("")
plain = top / "plain"
plain.mkdir()
torch.save(weights, plain / "weights-of-monday")

# Several are lost.
for case, source, gone in (("two-verl", "verl", ("actor/model_world_size_4_rank_1.pt", "actor/model_world_size_4_rank_3.pt")),
                           ("two-random", "trainer-ranks", ("rng_state_0.pth", "rng_state_2.pth")),
                           ("two-inside", "inside", ("ckpt_rank1.pt", "ckpt_rank3.pt")),
                           ("two-said", "trainer-said", ("rng_state_1.pth", "rng_state_2.pth")),
                           ("two-folders", "folders", ("rank_1_of_3/model.pt", "rank_2_of_3/model.pt"))):
    copy(case, top / source)
    for name in gone:
        (top / case / name).unlink()
for rank in (1, 2):
    (top / "two-folders" / f"rank_{rank}_of_3").rmdir()
(top / "two-shards").mkdir()
torch.save({f"b{i}": torch.zeros(4) for i in range(30)}, top / "two-shards" / "pytorch_model-00002-of-00003.bin")
(top / "two-shards" / "pytorch_model.bin.index.json").write_text(json.dumps(
    {"metadata": {}, "weight_map": {f"{name}{i}": f"pytorch_model-0000{k + 1}-of-00003.bin" for k, name in enumerate("abc") for i in range(30)}}))
dcp.save({f"w{i}": torch.arange(64.0) + i for i in range(4)}, no_dist=True,
         storage_writer=dcp.FileSystemWriter(top / "two-pieces", single_file_per_rank=False))
for name in ("__0_0.distcp", "__0_2.distcp"):
    (top / "two-pieces" / name).unlink()
grid = copy("two-grid", top / "megatron-parts") / "iter_0000010"
for rank in range(2):
    torch.save(weights, grid / f"mp_rank_0{rank}" / "more.pt")
for name in ("distrib_optim.pt", "more.pt"):
    (grid / "mp_rank_01" / name).unlink()
copy("two-listed", top / "trainer")
trainer(top / "many-listed", 10)
for letter in "abcde":
    torch.save(weights, (copy("trainer-five", top / "trainer") if letter == "a" else top / "trainer-five") / f"part_{letter}.bin")

# Archives without checksums.
config.save.compute_crc32 = False
torch.save(weights, top / "silent.pt")
dcp.save(weights, checkpoint_id=top / "silent", no_dist=True)
silent = trainer(top / "trainer-silent")
config.save.compute_crc32 = True

# The cache of a hub: files are links into its blobs.
cache = top / "hub" / "models--org--net"
revision = cache / "snapshots" / ("0123456789" * 4)
(revision / "unet").mkdir(parents=True)
(cache / "blobs").mkdir()
(cache / "refs").mkdir()
(cache / "refs" / "main").write_text("0123456789" * 4)
both = {f"model-0000{i}-of-00002.safetensors": safetensors.torch.save({f"w{i}": torch.zeros(4)}) for i in (1, 2)}
both["model.safetensors.index.json"] = json.dumps({"weight_map": {f"w{i}": f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}}).encode()
both["unet/config.json"] = b"{}"
for name, data in both.items():
    blob = cache / "blobs" / hashlib.sha256(data).hexdigest()
    blob.write_bytes(data)
    (revision / name).symlink_to(os.path.relpath(blob, (revision / name).parent))
gone = copy("hub-gone", top / "hub") / "models--org--net"
(gone / "blobs" / hashlib.sha256(both["model-00002-of-00002.safetensors"]).hexdigest()).unlink()
begun = copy("hub-begun", top / "hub") / "models--org--net"
for link in (begun / "snapshots" / ("0123456789" * 4)).glob("model*"):
    link.unlink()
tokenizer = copy("hub-tokenizer", begun.parent)
(begun / "blobs" / "0123abcd.incomplete").write_bytes(b"123")
out = copy("hub-out", top / "hub") / "models--org--net"
link = out / "snapshots" / ("0123456789" * 4) / "model-00002-of-00002.safetensors"
link.unlink()
shutil.copy(cache / "blobs" / hashlib.sha256(both["model-00002-of-00002.safetensors"]).hexdigest(), top / "elsewhere.safetensors")
link.symlink_to("../../../../elsewhere.safetensors")
changed = copy("hub-changed", top / "hub") / "models--org--net" / "blobs" / hashlib.sha256(both["model-00002-of-00002.safetensors"]).hexdigest()
changed.write_bytes(changed.read_bytes()[:-1] + b"X")
absolute = copy("hub-absolute", top / "hub") / "models--org--net"
for link in (absolute / "snapshots" / ("0123456789" * 4)).glob("model*"):
    blob = absolute / "blobs" / os.path.basename(os.readlink(link))
    link.unlink()
    link.symlink_to(blob)
linked = trainer(top / "trainer-link")
(linked / "model.safetensors").rename(top / "linked.safetensors")
(linked / "model.safetensors").symlink_to("../linked.safetensors")


# A pickle of 6 KB: each list holds the one before twice.
def archive(path, data):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a/data.pkl", data)


doubled = b"\x80\x02]r" + struct.pack("<I", 0)
for i in range(1, 200):
    doubled += b"](j" + struct.pack("<I", i - 1) + b"j" + struct.pack("<I", i - 1) + b"er" + struct.pack("<I", i)
archive(top / "doubled.pt", doubled + b".")
# One list of a million, each the list of all: names of a pickle of 10 MB.
archive(top / "million.pt", b"\x80\x02]q\0(" + b"h\0" * 1000000 + b"e.")

# Roots: step 3 of the first will lose a file; the manifest of step 3 of the second will vouch for one rank, and its file, of the
# same size, then says that there were two.
for step in (1, 2, 3):
    deepspeed(trainer(top / "root" / f"checkpoint-{step}"), 2, 2)
    deepspeed(trainer(top / "said" / f"checkpoint-{step}"), 1, 1 if step == 3 else 2)
    trainer(top / "zeroed" / f"checkpoint-{step}")
    trainer(top / "answered" / f"checkpoint-{step}")
(top / "answered" / "checkpoint-3" / "trainer_state.json").write_text("Internal Server Error\n")
(top / "two-ranks").mkdir()
torch.save({"optimizer_state_dict": {"zero_stage": 2, "partition_count": [2, 2], "x": weights}},
           top / "two-ranks" / "zero_pp_rank_0_mp_rank_00_optim_states.pt")

# Links within a folder; the weights of a format that nobody here knows.
aliases = top / "aliases"
aliases.mkdir()
torch.save(weights, aliases / "epoch=1.ckpt")
(aliases / "last.ckpt").symlink_to("epoch=1.ckpt")
(copy("aliases-gone", aliases) / "best.ckpt").symlink_to("epoch=7.ckpt")
unknown = top / "unknown"
unknown.mkdir()
(unknown / "model.gguf").write_text(pointer)
(unknown / "config.json").write_text("{}")
