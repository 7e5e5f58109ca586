"""``x[...]`` on a variable gives what numpy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError

X = np.arange(24, dtype="float32").reshape(4, 3, 2)


def run(out: Any, **feed: Any) -> Any:
    return fluid.Executor().run(feed={"x": X, **feed}, fetch_list=[out])[0]


ITEMS: dict[str, Any] = {
    "one": 1,
    "last": -1,
    "part": slice(1, 3),
    "from": slice(2, None),
    "to": slice(None, 2),
    "all": slice(None),
    "several": (slice(None), slice(0, 2), 1),
    "integers": (1, 2, 0),
    "ellipsis": (Ellipsis, 1),
    "ellipsis-between": (1, Ellipsis, slice(0, 1)),
    "steps": slice(0, 4, 2),
    "backwards": slice(None, None, -1),
    "part-and-backwards": (slice(1, 3), slice(None, None, -1)),
    "numpy-integer": np.int64(2),
}


@pytest.mark.parametrize("name", ITEMS)
def test_an_index_gives_what_numpy_gives(name: str) -> None:
    item = ITEMS[name]
    out = fluid.data("x", [4, 3, 2])[item]
    expected = X[item]
    found = run(out)
    # Paddle has no arrays without dims: one element keeps a dim.
    np.testing.assert_array_equal(found, expected if expected.ndim else expected.reshape(1))


def test_a_variable_may_be_an_index_or_a_bound() -> None:
    x, i = fluid.data("x", [4, 3, 2]), fluid.data("i", [1], "int32")
    feed = {"i": np.array([2], "int32")}
    np.testing.assert_array_equal(run(x[i], **feed), X[2])
    np.testing.assert_array_equal(run(x[i:], **feed), X[2:])
    np.testing.assert_array_equal(run(x[1:i], **feed), X[1:2])


@pytest.mark.parametrize("item", ["a", [0, 1], True, 1.5, None], ids=str)
def test_unsupported_indexes_are_refused(item: Any) -> None:
    x = fluid.data("x", [4, 3, 2])
    with pytest.raises(GraphError, match="cannot be indexed by"):
        x[item]
    assert x.block.ops == []


def test_more_indexes_than_dims_are_refused() -> None:
    with pytest.raises(GraphError, match=r"shape \[4, 3\]: got 3 indexes, expected at most 2"):
        fluid.data("x", [4, 3])[0, 0, 0]
