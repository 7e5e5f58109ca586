"""The state of the random generators of Python and numpy that scripts and readers use."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from paddlelike.errors import SourceError
from paddlelike.foundation.locks import RLock
from paddlelike.reader.readers import MAPPING, READING

T = TypeVar("T")

#: Held while the generators are those of a reader.
SWAPPING: Final = RLock()


def capture_random_state() -> dict[str, Any]:
    """Return the state of ``random`` and of ``numpy.random``, for a checkpoint."""
    with SWAPPING.hold():
        (version, words, gauss), (kind, keys, position, has_gauss, cached) = _get_states()
    return {
        "python": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
        "numpy": {
            "kind": str(kind),
            "keys": np.array(keys),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "gauss": float(cached),
        },
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Set both generators to a captured state. Raises SourceError for anything else."""
    states = check_random_state(state)
    with SWAPPING.hold():
        _set_states(states)


def check_random_state(state: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the states of Python's and of numpy's generator.

    Raises
    ------
    SourceError
        They are not states of these generators.
    """
    try:
        own, other = state["python"], state["numpy"]
        found = (own["version"], tuple(int(word) for word in own["words"]), own["gauss"])
        legacy = (other["kind"], other["keys"], other["position"], other["has_gauss"], other["gauss"])
        random.Random().setstate(found)  # noqa: S311 (tries the state)
        np.random.RandomState().set_state(legacy)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"this is not a state of random generators: {error!r:.200}") from error
    return found, legacy


class RandomStream:
    """Random numbers of a reader that do not depend on the script's, although both use the same generators.

    The generators are exchanged while the reader works, so that a reader gives the same samples whatever the
    script draws in between. While a loader reads in its thread, the script should not draw from them. For a
    reader that starts threads (``fluid.io.buffered``) the generators are only exchanged until the first
    sample. The function that the threads of ``xmap_readers`` call must not draw numbers, since the threads
    run in any order.
    """

    def __init__(self) -> None:
        with SWAPPING.hold():
            self.state = _get_states()

    def follow(self, reader: Callable[[], Iterable[Any]]) -> Callable[[], Iterator[Any]]:
        """Return ``reader``, wrapped so that it uses this stream's numbers."""
        return lambda: self._iterate(reader)

    def capture(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return self._draw(capture_random_state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to a captured state. Raises SourceError for anything else."""
        self._draw(lambda: restore_random_state(state))

    def _draw(self, work: Callable[[], T]) -> T:
        """Return ``work()``, computed with this stream as Python's and numpy's generators."""
        with SWAPPING.hold():
            outer = _get_states()
            try:
                _set_states(self.state)
                return work()
            finally:
                self.state = _get_states()
                _set_states(outer)

    def _iterate(self, reader: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        known = set(threading.enumerate())
        items = self._draw(lambda: iter(reader()))
        item = self._draw(lambda: next(items, _END))
        started = set(threading.enumerate()) - known
        if any(map(_reads_for_this_thread, started)):
            yield from self._iterate_beside_threads(items, item)
            return
        while item is not _END:
            yield item
            item = self._draw(lambda: next(items, _END))

    def _iterate_beside_threads(self, items: Iterator[Any], item: object) -> Iterator[Any]:
        with SWAPPING.hold():
            _set_states(self.state)
        while item is not _END:
            yield item
            item = next(items, _END)
        self.state = _get_states()


_END: Final = object()


def _reads_for_this_thread(thread: threading.Thread) -> bool:
    """Return whether a thread started a moment ago may read the items that this thread iterates over."""
    if thread.name.startswith(READING) and thread.name != READING + str(threading.get_ident()):
        return False
    return thread.is_alive() and not thread.name.startswith(MAPPING)


def _get_states() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()  # noqa: NPY002 (the global generator)


def _set_states(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002 (the global generator)
