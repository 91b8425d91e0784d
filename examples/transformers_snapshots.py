"""transformers' Trainer whose state outlives its process: a snapshot after every optimizer step, and the same training from
there, bit for bit, when a worker was killed.

    from transformers_snapshots import SnapshotTrainer
    trainer = SnapshotTrainer(model=model, args=args, train_dataset=data)  # as Trainer
    trainer.train()

    elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=4G train.py

Kept: model, optimizer, schedule, gradient scaler, TrainerState (global step, epoch, log, best metric), callbacks that have
a state (EarlyStoppingCallback), random numbers; the epoch goes on behind the batches that were trained.  PERSIST: every so many
steps the snapshot goes to --ckpt-dir as well.

Not kept: the sum of losses since the last log, which then counts from the restart; random numbers that a dataset draws
in __getitem__ with dataloader_num_workers=0 (the next batch is read ahead).  DeepSpeed has its own: deepspeed_snapshots.py.
A callback alone cannot do it, since Trainer asks nobody at which epoch to begin: hence a subclass.  Written for transformers 5."""
from dataclasses import fields

import torch
from transformers import Trainer, TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None

PERSIST = 100


class Progress:
    """How far the training is, as one object with state_dict() and load_state_dict()."""

    def __init__(self, trainer):
        self.trainer, self.rng, self.drawn = trainer, elrun.Rng(), None

    def callbacks(self):
        return [c for c in self.trainer.callback_handler.callbacks if isinstance(c, ExportableState)]

    def state_dict(self):
        state = {f.name: getattr(self.trainer.state, f.name) for f in fields(TrainerState) if f.name != "stateful_callbacks"}
        return {"trainer": state, "callbacks": [c.state()["attributes"] for c in self.callbacks()], "rng": self.rng.state_dict()}

    def load_state_dict(self, saved):
        vars(self.trainer.state).update(saved["trainer"])
        for callback, attributes in zip(self.callbacks(), saved["callbacks"]):
            vars(callback).update(attributes)
        self.drawn = saved["rng"]  # put back later: a new iterator over the data draws, too


class Steps(TrainerCallback):
    """Tells elrun where an optimizer step begins and ends."""

    def __init__(self, ck):
        self.ck = ck

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        self.update = self.ck.update(state.global_step + 1)
        self.update.__enter__()

    def on_step_end(self, args, state, control, **kwargs):
        self.update.__exit__(None, None, None)


class SnapshotTrainer(Trainer):
    ck, begin, newest = None, 0, 0  # the step that this process began behind, and that of its newest snapshot

    def _prepare_for_training(self, *args, **kwargs):
        """Here model, optimizer and schedule have been made and wrapped, and nothing was trained."""
        prepared = super()._prepare_for_training(*args, **kwargs)
        self.ck = elrun.connect() if elrun else None
        if self.ck:
            alike = "all" if isinstance(self.model_wrapped, torch.nn.parallel.DistributedDataParallel) else None
            self.progress = Progress(self)
            self.ck.declare("model", self.model_wrapped, shard_id=alike)
            self.ck.declare("optim", self.optimizer, shard_id=alike)
            rest = {"rates": self.lr_scheduler, "scaler": self.accelerator.scaler, "progress": self.progress}
            self.ck.declare("rest", {name: value for name, value in rest.items() if value is not None})
            self.begin = self.newest = self.ck.restore() or 0
            self.add_callback(Steps(self.ck))
        return prepared

    def _run_epoch(self, *, epoch, num_update_steps_per_epoch, **kwargs):
        self.per_epoch = num_update_steps_per_epoch
        epochs, steps = divmod(self.begin, self.per_epoch)
        if epoch < epochs:
            return  # it was trained before the restart
        if self.begin and epoch == epochs:
            batches = steps * self.args.gradient_accumulation_steps
            kwargs.update(epochs_trained=epochs, steps_trained_in_current_epoch=batches, resume_from_checkpoint="elrun")
        super()._run_epoch(epoch=epoch, num_update_steps_per_epoch=self.per_epoch, **kwargs)
        self._keep()

    def _load_rng_state(self, checkpoint):
        """Trainer calls it where the random numbers of a checkpoint belong, be it before or behind the first batch."""
        if checkpoint == "elrun":
            self.progress.rng.load_state_dict(self.progress.drawn)
        else:
            super()._load_rng_state(checkpoint)

    def _maybe_log_save_evaluate(self, *args, **kwargs):
        super()._maybe_log_save_evaluate(*args, **kwargs)
        if self.state.global_step % self.per_epoch:  # behind the last step of an epoch there is more to come
            self._keep()

    def _keep(self):
        step = self.state.global_step
        if self.ck and step > self.newest:
            self.ck.snapshot(step, persist=step % PERSIST == 0)
            self.newest = step
