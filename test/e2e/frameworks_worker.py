"""Tiny trainings with public frameworks and the examples for them, for frameworks_*.sh.

frameworks_worker.py FRAMEWORK FOLDER STEPS KILL: trains to STEPS; rank 1 (the only rank, if there is one) kills itself with
SIGKILL behind step KILL, in the first process of this FOLDER that comes to it.  Each rank appends to FOLDER/log.RANK: the losses of the
steps that it made, and at the end a digest of its weights.  Nothing is downloaded: models are made from a configuration, data in memory.
FRAMEWORKS_GPU: on the first GPU."""
import hashlib
import importlib
import os
import signal
import sys
import types
import warnings

import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
framework, folder, steps, kill = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
GPU = "FRAMEWORKS_GPU" in os.environ
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def write(line):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{line}\n")


def digest(tensors):
    """Of the bytes: equal where the training was, to the last bit."""
    total = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(name.encode() + tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()[:16]


def behind(step):
    """Called once behind each step, after its snapshot was taken."""
    if step == kill and not os.path.exists(f"{folder}/killed.{rank}"):
        open(f"{folder}/killed.{rank}", "w").close()
        if world > 1:
            torch.distributed.barrier()
        if rank == world - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()


def example(name):
    """One of the examples that train by themselves, as it is: this is what it gets as examples/training.py."""
    training = types.ModuleType("training")
    training.STEPS, training.step_is_over = steps, lambda _, step: behind(step)
    training.end = lambda _, result: write(f"result {result.hex()} {torch.rand(()).item()}")
    sys.modules["training"] = training
    importlib.import_module(name).main()


def accelerate():
    example("accelerate_snapshots")


def deepspeed():
    example("deepspeed_snapshots")


def refused():
    """What of a DeepSpeed engine of stage 3 is not its state: placeholders of no elements, and pieces that nothing takes back."""
    import deepspeed

    import elrun

    deepspeed.init_distributed("gloo")
    net = torch.nn.Linear(64, 64)
    optim = torch.optim.AdamW(net.parameters())
    config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 10},
              "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
    engine = deepspeed.initialize(model=net, optimizer=optim, config=config)[0]
    engine.backward(engine(torch.randn(8, 64)).square().mean())
    engine.step()
    ck = elrun.connect()
    for name, value in {"engine": engine, "module": engine.module, "optimizer": engine.optimizer, "its own": optim}.items():
        try:
            ck.declare(name, {"it": value})
            write(f"{name}: taken")
        except Exception as e:
            write(f"{name}: refused" if "DeepSpeed" in str(e) else f"{name}: {type(e).__name__}: {e}")


def lightning():
    import lightning.pytorch as L
    from lightning.pytorch.callbacks import EMAWeightAveraging
    from torchdata.stateful_dataloader import StatefulDataLoader

    from lightning_snapshots import Snapshots

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
            self.ended = []

        def on_train_batch_end(self, *_):
            self.ended.append(self.global_step)

        def on_save_checkpoint(self, checkpoint):
            checkpoint["ended"] = list(self.ended)

        def on_load_checkpoint(self, checkpoint):
            self.ended = checkpoint["ended"]

        def training_step(self, batch, index):
            loss = self.net(batch[0]).square().mean()
            write(f"{self.current_epoch} {index} {batch[0].sum().item().hex()} {loss.item().hex()}")
            return loss

        def validation_step(self, batch, index):
            write(f"v{self.current_epoch} {index} {self.net(batch[0]).sum().item().hex()}")

        def configure_optimizers(self):
            optim = torch.optim.AdamW(self.parameters(), lr=1e-2)
            return [optim], [torch.optim.lr_scheduler.StepLR(optim, 1, 0.9)]

    class Epochs(L.Callback):
        """Counts those that have begun."""
        n = 0

        def on_train_epoch_start(self, *_):
            self.n += 1

        def state_dict(self):
            return {"n": self.n}

        def load_state_dict(self, saved):
            self.n = saved["n"]

    class Tested(Snapshots):
        def _keep(self):
            super()._keep()
            behind(self.step)

    torch.manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(48, 8))
    sampler = torch.utils.data.DistributedSampler(data, world, rank, seed=5)
    loader = StatefulDataLoader(data, batch_size=3, sampler=sampler)
    module, snapshots, epochs = Module(), Tested(), Epochs()
    torch.manual_seed(1000 + rank)
    trainer = L.Trainer(max_steps=steps, accelerator="gpu" if GPU else "cpu", devices=world, strategy="ddp" if world > 1 else "auto", accumulate_grad_batches=2,
                        callbacks=[epochs, snapshots, EMAWeightAveraging(decay=0.9)], plugins=[snapshots.memory], logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False, num_sanity_val_steps=0)
    trainer.fit(module, loader, torch.utils.data.DataLoader(data, batch_size=24), ckpt_path=snapshots.restore())
    write(f"weights {digest(module.state_dict())} {trainer.global_step} {trainer.current_epoch} {torch.rand(()).item()}")
    write(f"batches that have ended: {module.ended}; epochs that have begun: {epochs.n}")


def transformers():
    from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, TrainingArguments

    from transformers_snapshots import SnapshotTrainer

    torch.manual_seed(3)
    model = BertForSequenceClassification(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                                     intermediate_size=16, max_position_embeddings=16))  # with dropout
    data = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(i % 2)} for i in range(48)]

    class Tested(SnapshotTrainer):
        def training_step(self, *args, **kwargs):
            loss = super().training_step(*args, **kwargs)
            write(f"{self.state.global_step} {self.state.epoch:.3f} {float(loss).hex()}")
            return loss

        def _keep(self):
            super()._keep()
            behind(self.state.global_step)

    args = TrainingArguments(output_dir=f"{folder}/out", max_steps=steps, per_device_train_batch_size=2, use_cpu=not GPU,
                             gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=4, logging_steps=3,
                             save_strategy="no", report_to=[], disable_tqdm=True, warmup_steps=4, metric_for_best_model="loss",
                             load_best_model_at_end=False, seed=5)
    patience = EarlyStoppingCallback(50)
    trainer = Tested(model=model, args=args, train_dataset=data, eval_dataset=data[:8], callbacks=[patience])
    trainer.train()
    write(f"epoch {trainer.state.epoch:.3f} of {trainer.state.num_train_epochs}, best {trainer.state.best_metric}, "
          f"patience {patience.early_stopping_patience_counter}")
    write(f"evals {[round(h['eval_loss'], 6) for h in trainer.state.log_history if 'eval_loss' in h]}")
    write(f"weights {digest(model.state_dict())}")


globals()[framework]()
os._exit(0)  # no interpreter's shutdown, in which PyTorch's threads may abort
