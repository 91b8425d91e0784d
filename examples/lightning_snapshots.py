"""Lightning's Trainer whose state outlives its process: a snapshot behind every optimizer step, and the same training from there,
bit for bit, when a worker was killed.

    from lightning_snapshots import Snapshots
    snapshots = Snapshots()
    trainer = Trainer(callbacks=[snapshots], plugins=[snapshots.memory], ...)
    trainer.fit(model, ckpt_path=snapshots.restore())

    elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=4G train.py

Kept: what a checkpoint of Lightning has (modules, optimizers, schedules, precision, loops, callbacks, data module, and what
on_save_checkpoint() adds, called at each snapshot) and the random numbers of each rank.  It is taken when on_train_batch_end()
of all callbacks and of the module have run, whatever their order: EMAWeightAveraging is in it.  The place in the epoch is that of a
loader with a state, as torchdata's StatefulDataLoader; with another one Lightning begins the epoch's data again.  With several
ranks give it a DistributedSampler yourself: the one that Lightning puts in the place of shuffle=True keeps no state, and the rest
of the epoch would be another permutation.

Not kept: gradients that are being accumulated, metrics of an epoch that is not over (self.log(on_epoch=True)), random
numbers that a dataset draws in __getitem__ without workers, and StochasticWeightAveraging within the epoch in which it began: Lightning
begins it anew at an epoch's first batch only.  A validation within an epoch (val_check_interval) that was under way
or due is not made up for, and what counts validations, ModelCheckpoint or EarlyStopping, has one less.  For one device and for DDP: the strategies of FSDP and
DeepSpeed load files only."""
import functools

from lightning.fabric.utilities.data import _set_sampler_epoch
from lightning.pytorch import Callback
from lightning.pytorch.plugins.io import TorchCheckpointIO

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None


class Memory(TorchCheckpointIO):
    """Where Lightning loads a checkpoint from; the one called "elrun" is in memory already."""

    checkpoint = None

    def load_checkpoint(self, path, *args, **kwargs):
        return self.checkpoint if path == "elrun" else super().load_checkpoint(path, *args, **kwargs)


class Training:
    """What elrun keeps: asked at each snapshot, and put aside by restore() until Lightning loads it."""

    def __init__(self, memory):
        self.memory, self.trainer, self.rng, self.drawn = memory, None, elrun.Rng(), None

    def state_dict(self):
        dump = self.trainer._checkpoint_connector.dump_checkpoint if self.trainer else dict
        return {"checkpoint": dump(), "rng": self.rng.state_dict()}

    def load_state_dict(self, saved):
        self.memory.checkpoint, self.drawn = saved["checkpoint"], saved["rng"]


class Snapshots(Callback):
    def __init__(self, persist=100):
        """persist: every so many steps the snapshot goes to --ckpt-dir as well."""
        self.ck, self.memory, self.persist = elrun.connect() if elrun else None, Memory(), persist
        self.step = self.kept = 0  # a count of our own: Lightning counts the steps of each optimizer
        self.update = None

    def restore(self):
        """What trainer.fit() is to be given as ckpt_path."""
        if not self.ck:
            return None
        self.training = Training(self.memory)
        self.ck.declare("training", self.training)
        self.step = self.kept = self.ck.restore() or 0
        return "elrun" if self.step else None

    def setup(self, trainer, module, stage):
        """Becomes the first of all callbacks: none has begun the next epoch before the snapshot that is taken there."""
        trainer.callbacks = [self, *(c for c in trainer.callbacks if c is not self)]

    def on_train_start(self, trainer, module):
        if self.ck:
            self.training.trainer = trainer
            own = module.on_train_batch_end

            @functools.wraps(own)
            def and_keep(*args):
                own(*args)
                self._step_is_over(trainer)

            module.on_train_batch_end = and_keep  # the last that Lightning calls for a batch: all callbacks, then the module
        if self.memory.checkpoint is not None:
            self._go_on(trainer.fit_loop, self.memory.checkpoint["loops"]["fit_loop"]["state_dict"])
            self.memory.checkpoint = None

    def _go_on(self, loop, saved):
        """Lightning has made the iterator over the data already, before it would tell the samplers which epoch this is, and
        has drawn random numbers for it.  Those of the snapshot lie before a new epoch's iterator, and behind that of a running one."""
        epoch, put_back = loop.epoch_progress.current, lambda: self.training.rng.load_state_dict(self.training.drawn)
        for loader in loop._combined_loader.flattened:
            _set_sampler_epoch(loader, epoch.processed)
        if epoch.started == epoch.processed:  # it has not begun
            loop.epoch_loop.batch_progress.reset_on_run()  # Lightning would find the one before, and leave out this one
            put_back()
            iter(loop._data_fetcher)
        else:
            loop._combined_loader._load_state_dicts(saved.get("combined_loader", []))
            iter(loop._data_fetcher)
            put_back()

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if self.ck and self.update is None:
            self.update = self.ck.update(self.step + 1)
            self.update.__enter__()

    def on_train_end(self, trainer, module):
        vars(module).pop("on_train_batch_end", None)

    def _step_is_over(self, trainer):
        if self.update is not None:
            self.step += 1
            update, self.update = self.update, None
            update.__exit__(None, None, None)
            if not trainer.is_last_batch:
                self._keep()

    def on_train_epoch_start(self, trainer, module):
        """The last step of the epoch before is kept here, behind its validation: Lightning would not make up for that."""
        if self.ck and self.step > self.kept:
            self._keep()

    def _keep(self):
        self.kept = self.step
        self.ck.snapshot(self.step, persist=self.step % self.persist == 0)
