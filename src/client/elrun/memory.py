"""Which memory is filled with what, while it is planned to put a snapshot back.

Tensors and arrays that share memory are filled in place only with values that agree: a copy of the weights that was a view
of them when the script began, and is one of its own in the snapshot, must not be written through the view."""

from __future__ import annotations

import bisect
from typing import Any, Dict, List, NamedTuple, Tuple

from .tree import Place
from . import special
from .values import numpy, torch


class Cells(NamedTuple):
    """Where the elements of a tensor or an array lie: the address of the first one, strides in bytes."""

    at: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    size: int  #: bytes of an element

    def bounds(self) -> Tuple[int, int]:
        """Of all its bytes; two equal numbers: it has none."""
        low = high = self.at
        for n, stride in zip(self.shape, self.strides):
            if not n:
                return self.at, self.at
            low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
        return low, high + self.size


def cells_of(value: Any) -> Cells:
    np = numpy()
    if np is not None and isinstance(value, np.ndarray):
        return Cells(value.__array_interface__["data"][0], tuple(value.shape), tuple(value.strides), value.itemsize)
    size = value.element_size()
    return Cells(value.data_ptr(), tuple(value.shape), tuple(n * size for n in value.stride()), size)


def fits_place(tensor: Any, place: Place) -> bool:
    """A tensor lies in its storage as the one that was saved lay in its own."""
    if hasattr(tensor, "_local_tensor") or tensor.is_conj() or tensor.is_neg():
        return False
    storage = special.storage_of(tensor)
    return bool(storage.nbytes() == place.size and tensor.data_ptr() - storage.data_ptr() == place.offset
                and tuple(tensor.stride()) == place.stride)


class Region:
    """Memory without a gap, and what it is filled with.  Bytes are laid out only where two are filled that differ in place
    or shape."""

    def __init__(self, low: int, high: int, filled: Dict[Cells, Any]):
        self.low, self.high, self.filled = low, high, filled
        self.bytes: Any = None
        self.known: Any = None

    def _lay_out(self) -> None:
        np = numpy()
        self.bytes, self.known = np.zeros(self.high - self.low, np.uint8), np.zeros(self.high - self.low, bool)
        for cells, saved in self.filled.items():
            _view(self.bytes, cells, self.low)[...] = _bytes_of(saved, cells)
            _view(self.known, cells, self.low)[...] = True

    def content(self) -> Any:
        """All its bytes."""
        if self.bytes is None:
            self._lay_out()
        return self.bytes

    def takes(self, cells: Cells, saved: Any) -> bool:
        """It agrees with what is filled already."""
        if cells in self.filled:
            return is_alike(self.filled[cells], saved)
        if numpy() is None:
            return False
        if self.bytes is None:
            self._lay_out()
        new = _bytes_of(saved, cells)
        there, known = _view(self.bytes, cells, self.low), _view(self.known, cells, self.low)
        if ((there != new) & known).any():
            return False
        there[...] = new
        known[...] = True
        self.filled[cells] = saved
        return True


class Memory:
    """All that is filled."""

    def __init__(self) -> None:
        self.starts: List[int] = []
        self.regions: List[Region] = []  # in order of their addresses, none of them touches another

    def _met(self, low: int, high: int) -> List[Region]:
        i = bisect.bisect_right(self.starts, low)
        first = i - 1 if i and self.regions[i - 1].high > low else i
        return self.regions[first : bisect.bisect_left(self.starts, high)]

    def is_free(self, value: Any) -> bool:
        low, high = cells_of(value).bounds()
        return low == high or not self._met(low, high)

    def takes(self, value: Any, saved: Any) -> bool:
        """Notes that it will be filled.  False: that would change what another one is filled with."""
        cells = cells_of(value)
        low, high = cells.bounds()
        if low == high:
            return True
        met = self._met(low, high)
        if not met:
            self._add(Region(low, high, {cells: saved}))
            return True
        region = met[0]
        if len(met) > 1 or region.low > low or region.high < high:
            region = self._merge(met, low, high)
        return region.takes(cells, saved)

    def _add(self, region: Region) -> None:
        i = bisect.bisect_left(self.starts, region.low)
        self.starts.insert(i, region.low)
        self.regions.insert(i, region)

    def _merge(self, met: List[Region], low: int, high: int) -> Region:
        for region in met:
            i = bisect.bisect_left(self.starts, region.low)
            del self.starts[i], self.regions[i]
        whole = Region(min(low, met[0].low), max(high, met[-1].high), {c: v for region in met for c, v in region.filled.items()})
        self._add(whole)
        return whole


def _view(memory: Any, cells: Cells, low: int) -> Any:
    """The bytes of these cells in an array that begins at `low`."""
    np = numpy()
    return np.ndarray((*cells.shape, cells.size), memory.dtype, memory, cells.at - low, (*cells.strides, 1))


def _bytes_of(saved: Any, cells: Cells) -> Any:
    np = numpy()
    if not isinstance(saved, np.ndarray):
        saved = saved.detach().clone(memory_format=torch().contiguous_format).reshape(-1).view(torch().uint8).numpy()
    return np.ascontiguousarray(saved).view(np.uint8).reshape(*cells.shape, cells.size)


def _plain_bytes(value: Any) -> bytes:
    np = numpy()
    if isinstance(value, np.ndarray):
        return bytes(value.tobytes())
    return bytes(value.detach().clone(memory_format=torch().contiguous_format).reshape(-1).view(torch().uint8).cpu().numpy())


def is_alike(a: Any, b: Any) -> bool:
    """Bit for bit."""
    th, np = torch(), numpy()
    if a is b or (type(a) is type(b) and cells_of(a) == cells_of(b)):
        return True
    if np is not None and (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)):
        return _plain_bytes(a) == _plain_bytes(b)
    return bool(th.equal(a.contiguous().reshape(-1).view(th.uint8), b.contiguous().reshape(-1).view(th.uint8)))


def fits_memory(to: Any, saved: Any) -> bool:
    """Where elements share one place in memory (expand()) the saved ones have to be alike."""
    one = saved
    for dim, (n, step) in enumerate(zip(to.shape, to.stride())):
        one = one.narrow(dim, 0, 1) if n > 1 and step == 0 else one
    return one.shape == saved.shape or is_alike(one.expand_as(saved), saved)


def copy_tensor(to: Any, saved: Any) -> None:
    """In place, also where elements share one place in memory: then the saved ones are alike, too."""
    to = to.detach() if to.requires_grad else to
    for dim, (n, step) in enumerate(zip(to.shape, to.stride())):
        if n > 1 and step == 0:
            to, saved = to.narrow(dim, 0, 1), saved.narrow(dim, 0, 1)
    with special.writing_to([to]):
        to.copy_(saved)


def copy_array(old: Any, new: Any) -> None:
    """The values of an array into another one of its shape and type; of a masked one the mask, too."""
    np = numpy()
    if not isinstance(old, np.ma.MaskedArray):
        old[...] = new
        return
    old.soften_mask()
    old[...] = new
    np.copyto(np.ma.getdata(old), np.ma.getdata(new))  # what is masked, too
    old.fill_value = new.fill_value
    if new.hardmask:
        old.harden_mask()
