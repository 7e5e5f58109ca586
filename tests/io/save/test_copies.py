"""The copies of asynchronous saves: their values, and whose memory they have."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.io.save import copies as module
from paddlelike.io.save.copies import Copies, KeptMemory


def test_memory_for_copies_is_used_again() -> None:
    kept = KeptMemory()
    copies = Copies(kept)
    arrays = [np.full(n, n, "float32") for n in (100, 50_000, 50_000, 70_000)]
    first = copies.copy(arrays)
    for copy, array in zip(first, arrays, strict=True):
        np.testing.assert_array_equal(copy, array)
        assert not np.shares_memory(copy, array)
    where = {copy.ctypes.data for copy in first[1:]}
    copies.release()
    copies = Copies(kept)
    second = copies.copy(arrays[1:])
    assert {copy.ctypes.data for copy in second} == where
    copies.release()
    Copies(kept).copy(arrays[:1])  # the large ones were not wanted: they go
    assert kept._free == {}


def test_large_and_strided_arrays_are_copied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PARALLEL", 1000)
    monkeypatch.setattr(module, "_CHUNK", 1001)
    whole = np.arange(30_000, dtype="float64").reshape(100, 300)
    for array in (whole, whole[:, ::2], whole.T, whole[:0], whole[3, 4]):
        (copy,) = Copies(KeptMemory()).copy([np.asarray(array)])
        np.testing.assert_array_equal(copy, array)
        assert copy.flags.c_contiguous


def test_two_saves_at_once_share_no_memory() -> None:
    """Saves take turns; this holds also where they do not, as when a handler of a signal saves."""
    kept = KeptMemory()
    arrays = [np.zeros(50_000, "float32"), np.zeros(50_000, "float32")]
    before = Copies(kept)
    before.copy(arrays)
    before.release()
    outer, inner, third = Copies(kept), Copies(kept), Copies(kept)
    of_outer = outer.copy(arrays[:1])
    of_inner = inner.copy([array + 1 for array in arrays])
    inner.release()
    of_third = third.copy([array + 2 for array in arrays])
    assert not any(np.shares_memory(one, other) for one in of_outer for other in (*of_inner, *of_third))
    np.testing.assert_array_equal(of_outer[0], arrays[0])


def test_memory_that_a_thread_may_still_write_into_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        """Threads whose end cannot be waited for."""

        def __init__(self, *arguments: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_PARALLEL", 1)
    monkeypatch.setattr(module, "ThreadPoolExecutor", Interrupted)
    kept = KeptMemory()
    copies = Copies(kept)
    with pytest.raises(KeyboardInterrupt):
        copies.copy([np.zeros(50_000, "float32")])
    copies.release()
    assert kept._free == {}
