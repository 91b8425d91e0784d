"""Generators of random numbers: of Python, numpy and torch.

numpy's come in layers that others may share: a Generator or RandomState draws from a bit generator, which has a SeedSequence
that counts the generators it was asked for with spawn()."""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, Any, Optional, Tuple

from .handlers import raise_of_handler
from .special import PICKLE
from .tree import GeneratorNode, class_name, join
from .values import numpy, torch

if TYPE_CHECKING:
    from .fill import Fill


def generator(value: Any) -> Optional[GeneratorNode]:
    """Without the layer below; None: it is none."""
    th, np = torch(), numpy()
    if isinstance(value, random.Random) and type(value) is not random.SystemRandom:
        return GeneratorNode("python", type(value), value.getstate())
    if th is not None and isinstance(value, th.Generator):
        return GeneratorNode("torch", str(value.device), value.get_state().numpy().tobytes())
    if np is None:
        return None
    if isinstance(value, np.random.Generator):
        return GeneratorNode("numpy", _kind(value.bit_generator), None)
    if isinstance(value, np.random.BitGenerator):
        return GeneratorNode("numpy-bits", _kind(value), value.state)
    if isinstance(value, np.random.RandomState):
        return GeneratorNode("numpy-legacy", _kind(value._bit_generator), value.get_state(legacy=False))
    if type(value) is np.random.SeedSequence:
        return GeneratorNode("numpy-seed", "", value.state)
    return None


def layer_below(value: Any) -> Tuple[str, Any]:
    """Its attribute, and what a generator draws from, or was seeded with; "": there is none that is known."""
    np = numpy()
    if np is None:
        return "", None
    if isinstance(value, np.random.Generator):
        return "bit_generator", value.bit_generator
    if isinstance(value, np.random.RandomState):
        return "bit_generator", value._bit_generator
    if isinstance(value, np.random.BitGenerator):
        seed = _seed_of(value)
        return ("seed_seq", seed) if seed is None or _can_be_pickled(seed) else ("", None)
    return "", None


def _kind(bits: Any) -> Any:
    """numpy's name of a class; another package's class itself."""
    cls = type(bits)
    return cls.__name__ if getattr(numpy().random, cls.__name__, None) is cls else cls


def _seed_of(bits: Any) -> Any:
    return getattr(bits, "seed_seq", None) if hasattr(bits, "seed_seq") else getattr(bits, "_seed_seq", None)


def _can_be_pickled(value: Any) -> bool:
    try:
        pickle.dumps(value, PICKLE)
    except Exception as e:
        raise_of_handler(e)
        return False
    return True


def _takes_seed() -> bool:
    """A bit generator of this numpy can be given another SeedSequence."""
    np = numpy()
    bits, seed = np.random.PCG64(0), np.random.SeedSequence(1)
    try:
        bits.__setstate__((bits.state, seed))
    except Exception as e:
        raise_of_handler(e)
        return False
    return _seed_of(bits) is seed


# --- putting back -------------------------------------------------------------------------------------------------------


def put_generator(fill: "Fill", path: str, old: Any, node: GeneratorNode) -> Any:
    th, np = torch(), numpy()
    if node.kind == "python":
        return _set(fill, old if type(old) is node.detail else node.detail(), old, node, "setstate", node.state)
    if node.kind == "torch":
        made = old if th is not None and isinstance(old, th.Generator) else th.Generator(fill.device(node.detail))
        return _set(fill, made, old, node, "set_state", th.frombuffer(bytearray(node.state), dtype=th.uint8))
    if np is None:
        raise fill.misfit(path, "a generator of numpy was saved, and numpy is not imported")
    if node.kind == "numpy-seed":
        return _put_seed(fill, old, node)
    if node.kind == "numpy-bits":
        return _put_bits(fill, path, old, node)
    return _put_upper(fill, path, old, node)


def _set(fill: "Fill", made: Any, old: Any, node: GeneratorNode, method: str, state: Any) -> Any:
    """At last where it is there already: what is filled before it may draw."""
    if made is not old:
        getattr(made, method)(state)
    elif not fill.fills(old, [pickle.dumps(node, PICKLE)], lambda: getattr(old, method)(state), fill.last):
        return put_generator(fill, "another", object(), node)
    return made


def _put_upper(fill: "Fill", path: str, old: Any, node: GeneratorNode) -> Any:
    np = numpy()
    cls = np.random.Generator if node.kind == "numpy" else np.random.RandomState
    name, below = layer_below(old) if isinstance(old, cls) else ("", None)
    bits = fill.put(join(path, "bit_generator"), below, node.inner)
    if not name or bits is not below:
        if not path and not fill.for_door:
            have = type(below).__name__ if name else class_name(old)
            raise fill.misfit("", f"random numbers of {_name(node)} were saved, and {have} is declared")
        old = cls(bits)
    if node.kind == "numpy-legacy":
        fill.last.append(lambda: old.set_state(node.state))
    return old


def _name(node: GeneratorNode) -> str:
    return node.detail if isinstance(node.detail, str) else class_name(node.detail)


def _put_bits(fill: "Fill", path: str, old: Any, node: GeneratorNode) -> Any:
    np = numpy()
    fits = isinstance(old, np.random.BitGenerator) and _kind(old) == node.detail
    if not fits and not path and not fill.for_door:
        raise fill.misfit("", f"random numbers of {_name(node)} were saved, and {class_name(old)} is declared")
    before = _seed_of(old) if fits else None
    seed = fill.put(join(path, "seed_seq"), before, node.inner) if node.inner is not None else before
    other = seed is not before
    if fits and other and not _takes_seed() and getattr(seed, "n_children_spawned", 0):
        if not path and not fill.for_door:
            raise fill.misfit("", "its SeedSequence cannot be changed in this numpy: seed it as it was, or put it into a dict")
        fits = False
    if fits and fill.fills(old, [pickle.dumps(node, PICKLE)], lambda: _set_bits(old, node.state, seed, other), fill.last):
        return old
    cls = getattr(np.random, node.detail) if isinstance(node.detail, str) else node.detail
    made = cls(0 if seed is None else seed)
    _set_bits(made, node.state, seed, seed is None and node.inner is not None)
    return made


def _set_bits(bits: Any, state: Any, seed: Any, other: bool) -> None:
    if other and _takes_seed():
        bits.__setstate__((state, seed))
    else:
        bits.state = state


def _put_seed(fill: "Fill", old: Any, node: GeneratorNode) -> Any:
    """A SeedSequence is another one, or the same one that has spawned more."""
    np = numpy()
    if type(old) is np.random.SeedSequence:
        more = node.state["n_children_spawned"] - old.n_children_spawned
        if more >= 0 and _origin(old.state) == _origin(node.state) \
                and fill.fills(old, [pickle.dumps(node, PICKLE)], lambda: old.spawn(more), fill.last):
            return old
    return np.random.SeedSequence(**node.state)


def _origin(state: Any) -> bytes:
    return pickle.dumps({k: v for k, v in state.items() if k != "n_children_spawned"}, PICKLE)
