"""What a script declares, part by part, before its first restore() or snapshot()."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Optional, Set, Union

from .connection import Connection
from .copies import fault
from .handlers import raise_of_handler
from .packets import Error
from .parts import OWN, AnyPart, FilePart, Held, OwnPart, Part, Slot, asked
from .tree import Refused, a_class, class_name
from .values import is_value

_NAME_MAX = 128


class Declaring(Connection):
    """The parts, and the agent's grant of memory for them."""

    keeps: bool  #: False: elrun keeps no snapshots, only steps are watched
    _files: bool  #: elrun --ckpt-layout=megatron

    def __init__(self, path: str):
        super().__init__(path)
        self.rank, self.local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        self.parts: List[AnyPart] = []
        self._layouts: List[Any] = []  # of the last look: no two of these parts have a tensor of one name
        self._granted = False
        self._slots: List[Slot] = []

    def declare(self, name: str, state: Any, shard_id: Optional[str] = None) -> None:
        """Names one part of the state: a module, an optimizer, anything with state_dict() and load_state_dict(), a tensor,
        an array, a generator of random numbers; a dict, list, set, deque or dataclass of these and of plain values.

        The object is asked at each snapshot, and filled by restore(): by its load_state_dict(), or in place.  What is in
        it may come, go, grow and be replaced meanwhile.  Nothing of it is changed here.

        shard_id is a string that is equal on the ranks which hold the same, and only there: "all" for what every rank
        has alike.  By default the part is this rank's own.  What differs from rank to rank all the same (buffers of
        modules, values, small tensors that are no parameters) is kept for each rank beside it.

        Once for each part, before the first restore() or snapshot().  TypeError: something in it could not be put back;
        the text says where it is, and why."""
        if not isinstance(name, str):
            raise TypeError(f"declare({name!r}, ...): the name of a part is a string")
        if not name.isprintable() or any("\ud800" <= c <= "\udfff" for c in name):
            raise ValueError(f"declare({name!r}): a name has printable characters")
        if shard_id is not None and (not isinstance(shard_id, str) or not shard_id or not shard_id.isprintable()):
            raise TypeError(f'declare("{name}"): shard_id is a string such as "all", not {shard_id!r}')
        if name.endswith(OWN) or not name or len(name.encode()) > _NAME_MAX:
            raise ValueError(f'declare("{name}"): a name has 1 to {_NAME_MAX} bytes, and does not end with {OWN}')
        self._may_declare("declare", name)
        if isinstance(state, type):
            raise TypeError(f'part "{name}": {class_name(state)} is a class: declare an object of it')
        if is_value(state) or isinstance(state, tuple):
            raise TypeError(f'part "{name}": {a_class(state)} cannot be filled in place: put it into a dict')
        prefix = f"r{self.rank:05d}/" if shard_id is None else "" if shard_id == "all" else f"{shard_id}/"
        part = Part(name, state, shard_id or f"rank{self.rank}", prefix, shard_id is not None)
        try:
            part.take(first=True)
            why = fault(state, [getattr(p, "value", None) for p in self.parts])
            if why:
                raise Refused(why)
        except Refused as e:
            raise_of_handler(e)
            raise TypeError(f'part "{name}": {e}') from e.__cause__
        except UnicodeError as e:
            raise TypeError(f'part "{name}": a name in it cannot be written down: {e}') from None
        except RecursionError:
            raise TypeError(f'part "{name}": it is nested more deeply than sys.getrecursionlimit() lets one follow') from None
        self.parts.append(part)

    def declare_file(self, name: str, data: Union[bytes, bytearray, memoryview, Callable[[], Any]],
                     shard_id: Optional[str] = None, load: Optional[Callable[[bytes], Any]] = None) -> None:
        """Names a file of the checkpoint as the framework calls it, below the step's directory, such as
        "mp_rank_00_000/model_optim_rng.pt".  data: its bytes, or a function that returns them, called at each snapshot.
        load: called by restore() with the bytes, from memory or from disk; without it the framework reads the file
        itself, of the step that restore() returns.  Raises Error without elrun --ckpt-layout=megatron: no other layout
        has such files."""
        self._may_declare("declare_file", name)
        if self.keeps and not self._files:
            raise Error(f'declare_file("{name}") is for elrun --ckpt-layout=megatron; declare() is for tensors and values')
        if name.startswith("/") or not name or name == OWN or any(c in ("", ".", "..") for c in name.split("/")):
            raise ValueError(f'declare_file("{name}"): want a name below the directory of the step, such as a/b.pt')
        self.parts.append(FilePart(name, data, shard_id or f"rank{self.rank}", load))

    def _may_declare(self, call: str, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{call}({name!r}, ...): the name of a part is a string")
        if self._granted:
            raise Error(f'{call}("{name}") after the first restore() or snapshot(): parts are declared before')
        if any(name in (p.name, p.file) for p in self.parts):
            raise ValueError(f'two parts are called "{name}"')

    def _grant(self) -> None:
        """Tells the agent what there is, once."""
        if self._granted:
            return
        if not self.parts:
            raise Error("nothing was declared: ck.declare(name, state) comes first")
        layout = self._layout()
        if any(isinstance(p, Part) and p.shard_id != f"rank{self.rank}" for p in self.parts) and not any(p.own for p in self.parts):
            self.parts.append(OwnPart(self.rank))
        self.parts.sort(key=lambda p: p.file != "")  # files last
        for i, p in enumerate(self.parts):
            self._send("PART", {"index": i, "name": p.name, "shard_id": p.shard_id, "file": p.file, "own": p.own})
        _, fds = self._ask("DECLARE", {"layout_id": layout, "parts": len(self.parts)}, "GRANT")
        self._slots = [Slot(fd) for fd in fds]
        self._granted = True

    def _layout(self) -> str:
        """Equal where the parts mean the same.  What every rank has alike does not depend on how many they are."""
        return "all" if all(p.shard_id == "all" for p in self.parts if not p.own) else f"world{self.world}"

    def _take(self) -> List[Held]:
        """What all parts hold now."""
        mine = [part for part in self.parts if isinstance(part, Part)]
        of = dict(zip(mine, map(asked, mine)))
        if [held.layout for held in of.values()] != self._layouts:  # an optimizer has its moments from the first step on
            names: Set[str] = set()
            for part in mine:
                while not names.isdisjoint(part.names()):
                    part.rename()
                    of[part] = asked(part)
                names |= part.names()
            self._layouts = [held.layout for held in of.values()]
        shared = [(part, held) for part, held in of.items() if part.shard_id != f"rank{self.rank}"]
        return [of[part] if isinstance(part, Part) else part.take(shared) if isinstance(part, OwnPart) else asked(part)
                for part in self.parts]
