"""A DeepSpeed engine (ZeRO stage 0 to 3) whose state outlives its process: the engine's own parameters and optimizer cannot be
declared as they are, since stage 3 leaves parameters of no elements in the module, and the optimizer's load_state_dict() wants
the states of all ranks.  EngineState is an object that can.

    engine, _, _, _ = deepspeed.initialize(model=model, config=config)
    ck.declare("engine", EngineState(engine))
    ck.declare("rng", elrun.Rng())
    step = ck.restore()
    ...
    engine.backward(loss)
    with ck.update(step):
        engine.step()
    ck.snapshot(step)

    DS_ACCELERATOR=cpu elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=64M examples/deepspeed_snapshots.py

Kept, at the same number of ranks: each rank's pieces of parameters, master weights and moments, buffers, loss scale, schedule and the
engine's counters.  Not kept: gradients, so snapshots belong behind a step at a boundary of gradient accumulation; states that are
offloaded to files (NVMe), pipeline and compression engines, 1-bit optimizers."""
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist

from training import STEPS, end, step_is_over

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None

COUNTERS = ("global_steps", "global_samples", "micro_steps", "skipped_steps")


def piece(tensor):
    """This rank's part of a parameter of ZeRO-3, without what fills up the last one; any other tensor as it is."""
    if not hasattr(tensor, "ds_tensor"):
        return tensor
    begin = dist.get_rank(tensor.ds_process_group) * tensor.ds_tensor.numel()
    return tensor.ds_tensor[: max(0, tensor.ds_numel - begin)]


class EngineState:
    def __init__(self, engine):
        self.engine = engine

    def pieces(self):
        """What this rank holds of each parameter, and the buffers."""
        named = [*self.engine.module.named_parameters(), *self.engine.module.named_buffers()]
        return {name: piece(tensor).detach() for name, tensor in named}

    def state_dict(self):
        engine = self.engine
        return {"pieces": self.pieces(), "optimizer": engine.optimizer.state_dict(),
                "rates": engine.lr_scheduler.state_dict() if engine.lr_scheduler else None,
                "counters": {name: getattr(engine, name) for name in COUNTERS}}

    def load_state_dict(self, saved):
        engine = self.engine
        for name, tensor in self.pieces().items():
            tensor.copy_(saved["pieces"][name])
        if engine.zero_optimization_stage() == 0:
            engine.optimizer.load_state_dict(saved["optimizer"])
        else:  # it takes its own out of those of all ranks, and without the flag master weights of half the precision
            engine.optimizer.load_state_dict([saved["optimizer"]] * engine.dp_world_size, load_from_fp32_weights=True)
        if engine.lr_scheduler:
            engine.lr_scheduler.load_state_dict(saved["rates"])
        for name, value in saved["counters"].items():
            setattr(engine, name, value)


def main():
    import deepspeed

    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank()
    torch.manual_seed(17)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    stage = int(os.environ.get("ZERO", "3"))
    config = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
              "bf16": {"enabled": True}, "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True,
              "zero_force_ds_cpu_optimizer": False, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}
    engine = deepspeed.initialize(model=net, optimizer=torch.optim.AdamW(net.parameters(), lr=1e-2), config=config)[0]
    torch.manual_seed(1000 + rank)  # each rank draws its own data

    state, ck, done = EngineState(engine), elrun.connect() if elrun else None, None
    if ck:
        ck.declare("engine", state)
        ck.declare("rng", elrun.Rng())
        done = ck.restore()

    for step in range(0 if done is None else done + 1, STEPS):
        x = torch.randn(8, 16)
        engine.backward((engine(x.bfloat16()).squeeze(1) - x.sum(1)).square().mean())
        with ck.update(step) if ck else nullcontext():
            engine.step()
        if ck:
            ck.snapshot(step, persist=step % 10 == 9)
        step_is_over(rank, step)

    total = torch.tensor(sum(float(t.double().sum()) for t in state.pieces().values()), dtype=torch.double)
    dist.all_reduce(total)
    end(rank, float(total))


if __name__ == "__main__":
    main()
