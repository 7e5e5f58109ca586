"""Cases that obey the hints of errors, and the small networks that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import paddlelike as fluid

layers = fluid.layers
ROWS = np.arange(8, dtype="float32").reshape(2, 4)
SUMS = ROWS.sum(1, keepdims=True)


class Advice(NamedTuple):
    """A mistake, its hint (or a part of it, with ``{}`` for values), the call obeying it, and the result.

    The result is computed by other means than the call.
    """

    mistake: Callable[[], object]
    hint: str
    obeyed: Callable[[], Any]
    result: Any

    @property
    def pattern(self) -> str:
        """The pattern of the hint, which has ``{}`` in the place of values."""
        return "[^\\n]*".join(map(re.escape, self.hint.split("{}")))

    def follow(self) -> None:
        """Make the mistake in new programs, then obey the hint in others, and compare the result.

        Each has a folder of its own, which is the current one.
        """
        with new_network(), new_folder("mistake"), pytest.raises(Exception, match=self.pattern):
            self.mistake()
        with new_network(), new_folder("obeyed"):
            found = self.obeyed()
        if _is_numeric(self.result):
            np.testing.assert_allclose(found, self.result, rtol=1e-5, atol=1e-6)  # float32
        else:
            assert found == self.result


def _is_numeric(result: Any) -> bool:
    try:
        return np.asarray(result).dtype.kind in "biuf"
    except ValueError:  # lists of several lengths
        return False


class Message(Advice):
    """The same for an error that says the right value without a hint; ``hint`` is a pattern of its text."""

    @property
    def pattern(self) -> str:
        return self.hint


@contextmanager
def new_folder(name: str) -> Iterator[None]:
    Path(name).mkdir()
    with chdir(name):
        yield


@contextmanager
def new_network() -> Iterator[None]:
    """Give programs, names and a scope of their own to what is built and run inside."""
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield


def run(
    fetch: Any, feed: dict[str, Any] | None = None, program: fluid.Program | None = None, **options: Any
) -> Any:
    exe = fluid.Executor(fluid.CPUPlace())
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    return exe.run(program, feed=feed, fetch_list=[fetch], **options)[0]


def read_rows() -> fluid.Variable:
    return fluid.data("x", [None, 4])


def fill(value: float) -> fluid.ParamAttr:
    return fluid.ParamAttr(initializer=fluid.initializer.Constant(value))


def hold(array: Any) -> fluid.Variable:
    return layers.assign(np.asarray(array))


def each(*calls: Callable[[], Any]) -> list[Any]:
    """Return the results of calls, each in a new network."""
    results = []
    for call in calls:
        with new_network():
            results.append(call())
    return results
