"""Lazy loads: values that are views of their files, mapped copy-on-write.

Elements are read when they are used. Training writes into private pages of this process, so the files never
change. The limits:

- A process that writes *into* a mapped file changes the values that were not used yet; truncating the file
  ends this process (SIGBUS). Saves of this package replace files, so that a mapping keeps the old ones; with
  ``keep_generation=True`` they overwrite files, but not mapped ones (``storage.local.filesystem.mapping``).
  Paddle and tools such as ``rsync --inplace`` write into files: load such files eagerly.
- A mapping keeps its file open, so only the largest files are mapped, at most a quarter of the limit on open
  files; the others are read.
- The elements of a file begin after a header of 20 to 40 bytes, depending on the dims. If that is not a
  multiple of the element's size, numpy would copy the array in every operation; such a value is copied once,
  when it is first used (:class:`MappedTensor`). Half of all shapes or more are affected.
- The first write to a page costs as much as reading three. So load eagerly for training, lazily for
  prediction, for inspection, or to use a part.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from typing import Any, Final, SupportsIndex

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor, memory
from paddlelike.errors import FormatError
from paddlelike.formats.entry import Entry
from paddlelike.storage.local.filesystem.mapping import hold
from paddlelike.storage.local.filesystem.opening import open_regular, unreadable

MIN_BYTES: Final = 64 << 10  # reading less is cheaper than mapping it
_SHARE: Final = 4  # a load maps no more than this part of the files that may be open


class MappedTensor(LoDTensor):
    """A tensor over a mapped file. If its elements are not aligned there, the first use copies them."""

    __slots__ = ()

    @property
    def held_array(self) -> Array | None:
        """The array; the first access copies it into its own memory."""
        if self._array is not None and not self._array.flags.aligned:
            self._array = memory.place(self._array)
        return self._array

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Return the pickle of a LoDTensor: loading it maps no files."""
        plain = LoDTensor(self.held_array, self.lod())
        plain.version = self.version
        return plain.__reduce_ex__(0)  # protocol 2 would keep this class


class Mapper:
    """Makes views of files for one load.

    Parameters
    ----------
    sizes
        The sizes of the files that will be read; if empty, nothing is mapped.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.mapped = 0
        self.unaligned = 0
        self._from = MIN_BYTES if sizes else sys.maxsize
        most = _count_mappable_files()
        if len(sizes) > most:
            self._from = max(sorted(sizes)[-most], MIN_BYTES)
        self._maps: dict[str, mmap.mmap | None] = {}

    def view(self, path: str, size: int, header: Entry, rows: tuple[int, int] | None) -> LoDTensor | None:
        """Return the value as a view of its file of ``size`` bytes, or None if it should be read instead.

        Raises
        ------
        FormatError, StorageError
            The file cannot be opened, or has another size.
        """
        if size < self._from or header.offset is None or header.height is not None or not np.little_endian:
            return None
        offset, nbytes, shape = header.offset, header.nbytes, header.shape
        if rows is not None:
            offset, nbytes = header.locate_rows(*rows)
            shape = (rows[1] - rows[0], *shape[1:])
        if nbytes < MIN_BYTES:
            return None
        mapped = self._map(path, size)
        if mapped is None:
            return None
        dtype = TENSOR_DTYPES[header.dtype].numpy
        array = np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape)
        self.mapped += 1
        lod = [list(level) for level in header.lod] if rows is None else []
        if array.flags.aligned:
            return LoDTensor(array, lod)
        self.unaligned += 1
        return MappedTensor(array, lod)

    def _map(self, path: str, size: int) -> mmap.mmap | None:
        if path not in self._maps:
            self._maps[path] = _map_file(path, size)
        return self._maps[path]


def _count_mappable_files() -> int:
    try:
        import resource
    except ImportError:  # not a POSIX system
        return 128
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _SHARE, 1)


def _map_file(path: str, size: int) -> mmap.mmap | None:
    """Map a file. Return None if a save is overwriting it, which happens to files of an unused
    generation.
    """
    file, facts = open_regular(path)
    try:
        fd = file.args[0]
        if facts.st_size != size:
            raise FormatError(f"{path}: it had {size} bytes a moment ago, now it has {facts.st_size}")
        if not hold(fd):
            return None
        return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        del file
