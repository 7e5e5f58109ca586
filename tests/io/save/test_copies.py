"""The values of asynchronous saves: what is held, and whose memory copies have."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.formats.sources import Buffer
from paddlelike.foundation import snapshot
from paddlelike.foundation.snapshot import Snapshot
from paddlelike.io.save import copies as module
from paddlelike.io.save.copies import Copies, KeptMemory
from paddlelike.storage.hashing import finish, new_hasher
from paddlelike.storage.local.writing import Shared

Array = np.ndarray[Any, Any]


def join(content: Iterable[Buffer]) -> bytes:
    return b"".join(content)


def hold(copies: Copies, arrays: Sequence[Array]) -> list[Any]:
    """Hold a file for each array."""
    return copies.hold([[b"header", memoryview(array)] for array in arrays])


def get_memory(content: Any) -> list[int]:
    return [np.frombuffer(buffer, np.uint8).ctypes.data for buffer in content[1:]]


def test_memory_for_copies_is_used_again() -> None:
    kept = KeptMemory()
    copies = Copies(kept)
    arrays = [np.full(n, n, "float32") for n in (100, 50_000, 50_000, 70_000)]
    first = hold(copies, arrays)
    expected = [b"header" + array.tobytes() for array in arrays]
    for array in arrays:
        array[...] = 0
    assert [join(content) for content in first] == expected
    where = {address for content in first[1:] for address in get_memory(content)}
    copies.release()
    copies = Copies(kept)
    second = hold(copies, arrays[1:])
    assert {address for content in second for address in get_memory(content)} == where
    copies.release()
    hold(Copies(kept), arrays[:1])  # the large ones were not wanted: they go
    assert kept._free == {}


def test_two_saves_at_once_share_no_memory() -> None:
    """Saves take turns; this holds also where they do not, as when a handler of a signal saves."""
    kept = KeptMemory()
    arrays = [np.zeros(50_000, "float32"), np.zeros(50_000, "float32")]
    before = Copies(kept)
    hold(before, arrays)
    before.release()
    outer, inner, third = Copies(kept), Copies(kept), Copies(kept)
    of_outer = hold(outer, arrays[:1])
    of_inner = hold(inner, [array + 1 for array in arrays])
    inner.release()
    of_third = hold(third, [array + 2 for array in arrays])
    addresses = [a for held in (of_outer, of_inner) for content in held for a in get_memory(content)]
    assert len(set(addresses)) == 3
    assert not {*get_memory(of_outer[0])} & {a for content in of_third for a in get_memory(content)}
    assert join(of_outer[0]) == b"header" + bytes(200_000)


def test_a_snapshot_keeps_values_that_are_overwritten_or_freed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD", 0)
    monkeypatch.setattr(snapshot, "_PIECE", 30_001)
    arrays = [np.arange(n, dtype="float64") for n in (3, 20_000, 0, 40_000)]
    expected = [b"header" + array.tobytes() for array in arrays]
    copies = Copies(KeptMemory())
    held = hold(copies, arrays)
    for array in arrays:
        array[...] = -1
    assert [join(content) for content in held] == expected
    del arrays, array
    np.full(60_000, 7.0)
    assert [join(content) for content in held] == expected
    assert isinstance(copies._snapshot, Snapshot)
    copies.release()


def test_without_a_snapshot_process_values_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(module, "_HELD", 0)
    monkeypatch.setattr(os, "fork", refuse)
    files = len(list(Path("/proc/self/fd").iterdir()))
    array = np.arange(50_000)
    expected = b"header" + array.tobytes()
    (held,) = hold(Copies(KeptMemory()), [array])
    array[...] = 0
    assert join(held) == expected
    assert len(list(Path("/proc/self/fd").iterdir())) == files


def test_a_snapshot_process_writes_the_values_before_later_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HELD", 0)
    monkeypatch.setattr(module, "_PIECE", 30_001)
    arrays = [np.arange(n, dtype="float64") for n in (20_000, 400_000)]
    expected = [b"header" + array.tobytes() for array in arrays]
    copies = Copies(KeptMemory(), checksum="xxh3_128", is_local=True)
    held = hold(copies, arrays)
    for array in arrays:
        array[...] = -1
    for number, (one, content) in enumerate(zip(held, expected, strict=True)):
        path = tmp_path / str(number)
        path.touch()
        assert isinstance(one, Shared)
        assert one.size == len(content)
        hasher = new_hasher("xxh3_128")
        hasher.update(content)
        assert one.fill(str(path)) == finish(hasher, "xxh3_128")
        assert path.read_bytes() == content
    with pytest.raises(FileNotFoundError):
        held[0].fill(str(tmp_path / "missing"))
    assert copies._snapshot is not None
    os.kill(copies._snapshot._children[0], signal.SIGKILL)
    with pytest.raises(OSError, match="the process that holds the values was killed"):
        held[0].fill(str(tmp_path / "0"))
    copies.release()
