"""Batches and learning rates when the number of ranks changes."""

from __future__ import annotations

import math
import os
from typing import Optional


def accumulate(global_batch: int, micro_batch: int, world: Optional[int] = None) -> int:
    """How many micro batches each rank accumulates so that a step sees global_batch samples whatever the world size is.
    world: by default WORLD_SIZE.  ValueError: it does not come out even."""
    world = world or int(os.environ.get("WORLD_SIZE", "1"))
    if global_batch < 1 or micro_batch < 1:
        raise ValueError(f"a batch has at least one sample: not a global batch of {global_batch} in micro batches of {micro_batch}")
    if global_batch % (micro_batch * world):
        raise ValueError(f"a global batch of {global_batch} is not a multiple of {micro_batch} samples x {world} ranks")
    return global_batch // (micro_batch * world)


def scale_lr(lr: float, rule: str = "linear", world: Optional[int] = None, first: Optional[int] = None) -> float:
    """The learning rate where the batch of each rank stays and the world size changes: `linear` in the number of ranks,
    `sqrt`, or `none`.  lr is meant for the job's first world size (first: by default ELRUN_WORLD_SIZE_FIRST)."""
    world = world or int(os.environ.get("WORLD_SIZE", "1"))
    first = first or int(os.environ.get("ELRUN_WORLD_SIZE_FIRST", str(world)))
    if rule == "none":
        return lr
    if rule == "linear":
        return lr * world / first
    if rule == "sqrt":
        return lr * math.sqrt(world / first)
    raise ValueError(f'rule "{rule}": want linear, sqrt or none')
