"""Train a small network on scikit-learn's handwritten digits with DistributedDataParallel.

    elrun --standalone --nproc-per-node=2 --max-restarts=3 examples/train.py --checkpoint=digits.pt

The script knows nothing about its launcher: torchrun starts it just as well.  It follows the one rule that makes
restarts cheap: whatever happens between two checkpoints may be lost, a checkpoint never is.  A launcher that starts
all ranks again after a failure finds the job where its last checkpoint left it.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser(description="Handwritten digits with DistributedDataParallel on the CPU.")
    parser.add_argument("--checkpoint", default="digits.pt", help="file to save to and to resume from (%(default)s)")
    parser.add_argument("--epochs", type=int, default=12, help="epochs in all, counted over restarts (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="samples per rank and step (%(default)s)")
    parser.add_argument("--lr", type=float, default=4e-3, help="learning rate (%(default)s)")
    return parser.parse_args()


def load_data(rank, world_size):
    """The 1,797 images, 8 x 8 pixels: four fifths to train, one fifth to test.  The same split on every rank."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    mine = test[rank::world_size]  # no padding here, so that no test image is counted twice
    return TensorDataset(images[train], labels[train]), TensorDataset(images[mine], labels[mine])


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def save_checkpoint(path, model, optimizer, epochs_done):
    """Write beside the old checkpoint, then take its place: at every moment one whole checkpoint exists."""
    beside = f"{path}.tmp"
    with open(beside, "wb") as file:
        torch.save(
            {"epochs_done": epochs_done, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, file
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def load_checkpoint(path, model, optimizer):
    """Every rank reads the same file: rank 0 cannot have replaced it before all ranks have finished another epoch."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epochs_done"]


def train_epoch(model, optimizer, loader):
    loss_sum = torch.zeros(2)
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_sum += torch.tensor([loss.item() * len(labels), len(labels)])
    dist.all_reduce(loss_sum)
    return (loss_sum[0] / loss_sum[1]).item()


@torch.no_grad()
def accuracy(model, dataset):
    model.eval()
    images, labels = dataset.tensors
    right = torch.tensor([(model.module(images).argmax(dim=1) == labels).sum().item(), len(labels)])
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


@record  # an exception becomes the error file that the launcher shows
def main():
    args = parse_args()
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    train_set, test_set = load_data(rank, world_size)
    sampler = DistributedSampler(train_set, seed=0)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    start = load_checkpoint(args.checkpoint, model, optimizer)
    where = f"resumes after epoch {start}" if start else "starts from nothing"
    print(f"rank {rank} of {world_size} (pid {os.getpid()}) {where}", flush=True)

    for epoch in range(start + 1, args.epochs + 1):
        sampler.set_epoch(epoch)  # another order in each epoch, the same one if the epoch is run again
        loss = train_epoch(model, optimizer, loader)
        if rank == 0:
            save_checkpoint(args.checkpoint, model, optimizer, epoch)
            print(f"epoch {epoch:2} of {args.epochs}: loss {loss:.4f}", flush=True)

    right = accuracy(model, test_set)
    if rank == 0:
        print(f"accuracy on the test images: {right:.1%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is saved and said.  PyTorch's threads may abort an interpreter that shuts down, after the training has succeeded.
    sys.stdout.flush()
    os._exit(0)
