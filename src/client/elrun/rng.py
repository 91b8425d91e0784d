"""The random numbers of this process."""

from __future__ import annotations

import random
from typing import Any, Dict

from .values import numpy, torch


class Rng:
    """The random numbers of this process: Python's, numpy's and torch's (CPU and CUDA), if these are imported."""

    restore_last = True  #: what is put back beside them may draw some

    def state_dict(self) -> Dict[str, Any]:
        th, np = torch(), numpy()
        state: Dict[str, Any] = {"python": random.getstate()}
        if np is not None:
            state["numpy"] = np.random.get_state()
        if th is not None:
            state["torch"] = th.get_rng_state().numpy().tobytes()
            if th.cuda.is_available() and th.cuda.is_initialized():
                state["cuda"] = [s.numpy().tobytes() for s in th.cuda.get_rng_state_all()]
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        th, np = torch(), numpy()
        random.setstate(state["python"])
        if np is not None and "numpy" in state:
            np.random.set_state(state["numpy"])
        if th is not None and "torch" in state:
            th.set_rng_state(th.frombuffer(bytearray(state["torch"]), dtype=th.uint8))
        if th is not None and "cuda" in state and th.cuda.is_available():
            th.cuda.set_rng_state_all([th.frombuffer(bytearray(s), dtype=th.uint8) for s in state["cuda"]])
