"""Other people's readers and writers, for test/e2e/ckpt.sh: ckpt.py FOLDER OWN.  Reads OWN, a checkpoint of elrun's library, and
makes checkpoints below FOLDER; one name is one case."""
import io
import itertools
import json
import pickle
import shutil
import struct
import sys
import zipfile
from pathlib import Path

import numpy
import safetensors.numpy
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

top, own = Path(sys.argv[1]), Path(sys.argv[2])

# What elrun writes is read: rows of two ranks by torch's reader, each file by the safetensors package.
loaded = {"w": torch.zeros(312, 16), "own.1": torch.zeros(1, dtype=torch.int64)}
dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(own), no_dist=True)
first, second = (int.from_bytes(bytes([rank]) * 8, "little") for rank in (1, 2))
assert loaded["own.1"].item() == second and loaded["w"][:156].view(torch.uint8).unique().item() == 1, loaded
assert loaded["w"][156:].contiguous().view(torch.uint8).unique().item() == 2, loaded
with safetensors.safe_open(own / "shard-00001-model-00001-of-00001.safetensors", "np") as file:
    assert sorted(file.keys()) == ["own.0", "w"] and file.get_tensor("own.0")[0] == first and file.metadata()["DCP_VERSION"] == "1.0"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 16).to(torch.bfloat16))
state = model.state_dict()
optimizer = torch.optim.AdamW(model[0].parameters())
model[0](torch.randn(3, 64)).sum().backward()
optimizer.step()


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


# torch.save, as people do it: nested, a view, a transposed one, a parameter, what is no tensor.
torch.save({"model": state, "optimizer": optimizer.state_dict(), "step": 7, "rng": torch.get_rng_state(),
            "list": [torch.ones(3), torch.arange(6).reshape(2, 3).t()], "view": torch.arange(10)[4:7],
            "parameter": torch.nn.Parameter(torch.zeros(2)), "fp8": torch.ones(4).to(torch.float8_e4m3fn)}, top / "train.pt")
(top / "view.raw").write_bytes(raw(torch.arange(10)[4:7].clone()))

dcp.save({"model": state, "optim": optimizer.state_dict(), "step": 7}, checkpoint_id=top / "dcp" / "step_500", no_dist=True)
(top / "dcp.raw").write_bytes(raw(state["0.weight"]))
numbers = {name: 1 + i % 2 for i, name in enumerate(state)}
dcp.save(dict(state), storage_writer=dcp.HuggingFaceStorageWriter(top / "hf", fqn_to_index_mapping=numbers), no_dist=True)
dcp.save(dict(state), storage_writer=dcp.HuggingFaceStorageWriter(top / "hf-sharded", save_distributed=True), no_dist=True)

# Every type and shape that the safetensors packages write; any Unicode in a name.
types = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64]
tensors = {str(t): torch.zeros(3, 2).to(t) for t in types}
tensors |= {"": torch.tensor(1.5), "empty": torch.zeros(0, 4), "層.🔥.é \"q\" \\": torch.arange(4), "a\tb": torch.ones(1)}
safetensors.torch.save_file(tensors, top / "all.safetensors", metadata={"k€y": "välue"})
safetensors.numpy.save_file({"x": numpy.arange(12, dtype=numpy.float32).reshape(3, 4)}, top / "numpy.safetensors")
(top / "x.raw").write_bytes(numpy.arange(12, dtype=numpy.float32).tobytes())
one = numpy.zeros(1, dtype=numpy.float32)
safetensors.numpy.save_file({f"layer.{i}": one for i in range(100000)}, top / "many.safetensors")
# 5 GiB that take no space.
header = json.dumps({"large": {"dtype": "U8", "shape": [5 << 30], "data_offsets": [0, 5 << 30]}}).encode()
with open(top / "large.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header)
    f.truncate(8 + len(header) + (5 << 30))

# Rows of two ranks, as torch's sharded writer notes them.
sharded = top / "rows"
sharded.mkdir()
whole = torch.arange(40, dtype=torch.int32).reshape(10, 4)
for i, (begin, end) in enumerate([(0, 6), (6, 10)]):
    note = json.dumps({"w": {"saved_offsets": [begin, 0]}})
    safetensors.torch.save_file({"w": whole[begin:end].contiguous()}, sharded / f"shard-0000{i + 1}-model-00001-of-00001.safetensors",
                                metadata={"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": note})
(top / "rows.raw").write_bytes(raw(whole))

# Types of their own.
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
pieces = distribute_tensor(torch.arange(6.0).reshape(2, 3), init_device_mesh("cpu", (1,)), [Shard(0)])
torch.save({"w": pieces, "complex": torch.full((3,), 1 + 2j, dtype=torch.complex128)}, top / "typed.pt")
(top / "w.raw").write_bytes(raw(torch.arange(6.0)))
(top / "complex.raw").write_bytes(struct.pack("<6d", 1, 2, 1, 2, 1, 2))

# Megatron-LM, both ways.
megatron = top / "megatron"
for rank in range(3):
    (megatron / "iter_0000500" / f"mp_rank_0{rank}").mkdir(parents=True)
    torch.save({"model": state}, megatron / "iter_0000500" / f"mp_rank_0{rank}" / "model_optim_rng.pt")
dcp.save({"model": state}, checkpoint_id=megatron / "iter_0001000", no_dist=True)
(megatron / "iter_0001000" / "metadata.json").write_text('{"sharded_backend":"torch_dist","sharded_backend_version":1}')
torch.save({"args": None}, megatron / "iter_0001000" / "common.pt")
for tensor, pipeline, expert in itertools.product(range(2), range(3), range(2)):
    place = top / "grid" / "iter_0000001" / f"mp_rank_{tensor:02}_{pipeline:03}_{expert:03}"
    place.mkdir(parents=True)
    torch.save({"x": 1}, place / "model_optim_rng.pt")
    torch.save({"x": 1}, place / "distrib_optim.pt")
(megatron / "latest_checkpointed_iteration.txt").write_text("1000")

# ATorch.
atorch = top / "atorch" / "checkpoint-3"
atorch.mkdir(parents=True)
for rank in range(4):  # "a" is elements 0-10 of the flat parameter, "b" 12-18; each rank has five of 20
    (atorch / f"flat_param.0000{rank}-00004").write_bytes(safetensors.torch.save({"": torch.zeros(8), "layer": torch.zeros(5)}))
    metas = {}
    for name, begin, end in (("a", 0, 10), ("b", 12, 18)):
        at = max(begin, 5 * rank) - 5 * rank, min(end, 5 * rank + 5) - 5 * rank
        if at[0] < at[1]:
            metas[name] = {"param_names": name, "param_shapes": torch.Size([end - begin]), "param_numels": end - begin, "rank": rank,
                           "param_offsets": at, "pad": 0, "striped_fsdp_name": "layer"}
    (atorch / f"flat_meta.0000{rank}-00004").write_bytes(pickle.dumps({"flat_param_meta": {}, "param_meta": metas}))
(atorch / "buffers").write_bytes(safetensors.torch.save({"b": torch.zeros(2)}))

for name, key, value in (("gap", "param_offsets", (0, 2)), ("beyond", "param_offsets", (2, 7)), ("other", "param_numels", 11)):
    meta = shutil.copytree(atorch, top / f"atorch-{name}") / "flat_meta.00001-00004"
    changed = pickle.loads(meta.read_bytes())
    changed["param_meta"]["a"][key] = value
    meta.write_bytes(pickle.dumps(changed))

# What is none of it.
(top / "garbage").mkdir()
(top / "garbage" / "model.safetensors").write_bytes(b"\xff" * 1000)
(top / "garbage" / "model.pt").write_bytes(b"PK\3\4" + b"\0" * 1000)
(top / "garbage" / "old.pt").write_bytes(pickle.dumps({"a": 1}))
archive = io.BytesIO()
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("a/data.pkl", b"x" * 1000)
(top / "garbage" / "deflated.pt").write_bytes(archive.getvalue())
(top / "empty").mkdir()


class Call:
    def __reduce__(self):
        return (print, ("this pickle was executed",))


hostile = io.BytesIO()
with zipfile.ZipFile(hostile, "w") as z:
    z.writestr("a/data.pkl", pickle.dumps({"x": Call()}, protocol=2))
(top / "hostile.pt").write_bytes(hostile.getvalue())
