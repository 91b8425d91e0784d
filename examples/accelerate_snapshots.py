"""Training with accelerate whose state outlives it: what accelerator.prepare() has wrapped is declared as it is, and the
epoch goes on behind the batches that were trained.

    elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=64M examples/accelerate_snapshots.py

Kill a worker while it runs (`kill -9`): all ranks go back to the last step, and the printed result is the same, bit for bit,
as without.  Copy Progress.  It keeps epoch, batch, the count of accumulated batches and random numbers; objects of your
own (what you would give to register_for_checkpointing()) are declared like the others.  With FSDP leave out shard_id.

Not kept: gradients, so take snapshots behind an optimizer step (accelerator.sync_gradients); random numbers that a
dataset draws in __getitem__ without workers, since the next batch is read ahead.  DeepSpeed: deepspeed_snapshots.py."""
from contextlib import nullcontext

import torch
from accelerate import Accelerator, DataLoaderConfiguration

from training import STEPS, end, step_is_over

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None


class Progress:
    """Where the training is in its data: accelerate's own checkpoints leave that to the script."""

    def __init__(self, accelerator):
        self.accelerator, self.epoch, self.batch = accelerator, 0, 0
        self.rng, self.drawn = elrun.Rng() if elrun else None, None

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch, "accumulated": self.accelerator.step, "rng": self.rng.state_dict()}

    def load_state_dict(self, saved):
        self.epoch, self.batch, self.accelerator.step = saved["epoch"], saved["batch"], saved["accumulated"]
        self.drawn = saved["rng"]

    def put_back(self):
        """The random numbers: only when the iterator over the data is there, for which some are drawn, too."""
        if self.drawn is not None:
            self.rng.load_state_dict(self.drawn)
            self.drawn = None

    def batches(self, loader):
        """What is left of this epoch."""
        loader.set_epoch(self.epoch)
        for batch in self.accelerator.skip_first_batches(loader, self.batch) if self.batch else loader:
            self.put_back()
            self.batch += 1
            yield batch
        self.put_back()  # nothing was left
        self.epoch, self.batch = self.epoch + 1, 0


def main():
    order = DataLoaderConfiguration(use_seedable_sampler=True)  # by the epoch's number: what was trained can be skipped
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=2, dataloader_config=order)
    torch.manual_seed(17)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64), torch.nn.Dropout(0.1), torch.nn.Linear(64, 1))
    optim = torch.optim.AdamW(net.parameters(), lr=1e-2)
    rates = torch.optim.lr_scheduler.StepLR(optim, 10, 0.5)
    x = torch.randn(160, 16)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1)), batch_size=8, shuffle=True)
    net, optim, rates, data = accelerator.prepare(net, optim, rates, data)
    torch.manual_seed(1000 + accelerator.process_index)  # each rank has its own dropout

    progress, step = Progress(accelerator), 0
    ck = elrun.connect() if elrun else None
    if ck:
        ck.declare("model", net, shard_id="all")
        ck.declare("optim", optim, shard_id="all")
        rest = {"rates": rates, "progress": progress}
        ck.declare("rest", {**rest, "scaler": accelerator.scaler} if accelerator.scaler else rest)
        step = ck.restore() or 0

    while step < STEPS:
        for inputs, targets in progress.batches(data):
            with accelerator.accumulate(net):
                accelerator.backward((net(inputs).squeeze(1) - targets).square().mean())
                with ck.update(step + 1) if ck and accelerator.sync_gradients else nullcontext():
                    optim.step()
                    rates.step()
                    optim.zero_grad()
            if accelerator.sync_gradients:
                step += 1
                if ck:
                    ck.snapshot(step, persist=step % 10 == 0)
                step_is_over(accelerator.process_index, step)
            if step == STEPS:
                break

    end(accelerator.process_index, sum(float(t.double().sum()) for t in net.state_dict().values()))


if __name__ == "__main__":
    main()
