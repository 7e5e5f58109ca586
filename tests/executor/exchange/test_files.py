"""Connections of an executor, and Fluid's helpers around feeds and fetches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from paddlelike.executor.exchange import files
from paddlelike.executor.exchange.files import RemoteSwitch


class Connection:
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections made, by a provider of the test."""
    made: list[Any] = []

    def connect() -> Connection:
        made.append(Connection())
        return made[-1]

    monkeypatch.setattr(files, "_connect_remote", SimpleNamespace(function=connect))
    return made


def test_a_connection_is_opened_once(connections: list[Any]) -> None:
    switch = RemoteSwitch()
    assert connections == []
    assert switch.open() is switch.open() is connections[0]
    switch.close()
    switch.close()
    assert connections[0].closed == 1


def test_closing_without_a_connection_opens_none(connections: list[Any]) -> None:
    RemoteSwitch().close()
    assert connections == []


def test_the_feeds_and_fetches_of_a_saved_model_are_compared(tmp_path: Path, exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    has_feeds, has_fetches = fluid.executor.has_feed_operators, fluid.executor.has_fetch_operators
    assert not has_feeds(x.block, {"x": 1}, "feed")
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe)
    program = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    block = program.global_block()
    (target,) = [block.var(op.input("X")[0]) for op in block.ops if op.type == "fetch"]
    assert has_feeds(block, {"x": 1}, "feed")
    assert has_fetches(block, [target], "fetch")
    with pytest.raises(
        GraphError, match=r"feed operators of \['x'\], expected feed operators of \['z'\] at 'feed'"
    ):
        has_feeds(block, ["z"], "feed")
    with pytest.raises(GraphError, match="at 'other'"):
        has_fetches(block, [target], "other")


def test_arrays_and_numbers_become_tensors() -> None:
    place = fluid.CPUPlace()
    make = fluid.executor._as_lodtensor
    np.testing.assert_array_equal(np.array(make(np.float32([1, 2]), place)), np.float32([1, 2]))
    assert np.array(make(3, place, "int64")).tolist() == [3]
    assert np.array(make(3, place, fluid.core.VarDesc.VarType.FP32)).dtype == np.float32
    with pytest.raises(TypeError, match="takes an array, or a number with its dtype"):
        make([1, 2], place)
