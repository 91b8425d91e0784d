"""Snapshots of a training script's state in memory that outlives the script, and planned changes between two steps.

    import elrun
    ck = elrun.connect()                      # None outside elrun: the script stays portable
    done = None
    if ck:
        ck.declare("model", model, shard_id="all")
        ck.declare("train", {"optim": optim, "rng": elrun.Rng()}, shard_id="all")
        done = ck.restore()                   # the step that is back; None: begin at the beginning
    for step in range(0 if done is None else done + 1, steps):
        loss(step).backward()
        with ck.update(step):                 # what changes the state; ends the script between two steps if elrun asks
            optim.step()
        ck.snapshot(step)                     # copies; from then on nothing that happens to this process loses it

What is declared are the objects: at each snapshot they are asked what they hold.  The bytes belong to elrun's agent on
this node.  Each part that is declared is one safetensors file in its memory.  Standard library only; torch and numpy are
used where their tensors and arrays are given.  Not thread-safe: one thread calls; a thread of the module's own copies the
state in an emergency (emergency.py).  elrun puts the fitting version of this package on PYTHONPATH."""

from __future__ import annotations

import os
from typing import Optional

from .packets import Error
from .records import Change, Event, NoSnapshot, Regroup, SavedImage
from .rng import Rng
from .scale import accumulate, scale_lr
from .snapshots import Snapshots

__all__ = ["connect", "Snapshots", "Change", "Event", "SavedImage", "Regroup", "Rng", "Error", "NoSnapshot", "accumulate", "scale_lr"]

for _public in (Snapshots, Change, Event, SavedImage, Regroup, Rng, Error, NoSnapshot):
    _public.__module__ = "elrun"  # tracebacks name them as scripts do


def connect() -> Optional[Snapshots]:
    """The agent of this node.  None outside elrun, and where it was asked for neither snapshots (--ckpt-mem, --ckpt-dir)
    nor step boundaries (--boundary-wait)."""
    path = os.environ.get("ELRUN_SOCK")
    return Snapshots(path) if path else None
