"""Versioned states: newer ones are refused, older ones pass one hook. T.. are rows of Theano's list."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from paddlelike.core import (
    CPUPlace,
    CUDAPlace,
    Generator,
    LoDTensor,
    LoDTensorArray,
    Scope,
    SelectedRows,
    Versioned,
)
from paddlelike.errors import FormatError


class Layer(Versioned):
    """The third version of a class: ``W`` was called ``w`` in the first."""

    _state_version = 3
    _left_out = {"cache": dict}

    def __init__(self, W: Any) -> None:
        self.W = W
        self.cache = {"computed": 1}

    @classmethod
    def _upgrade_state(cls, version: int, attributes: dict[str, Any]) -> dict[str, Any]:
        return {"W": attributes["w"]} if version < 2 else attributes


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_leave_out_caches(protocol: int) -> None:  # T11
    for again in (pickle.loads(pickle.dumps(Layer(5), protocol)), copy.deepcopy(Layer(5))):
        assert vars(again) == {"W": 5, "cache": {}}


def restore(state: Any) -> Layer:
    layer = Layer.__new__(Layer)
    layer.__setstate__(state)
    return layer


def test_a_state_of_an_older_version_is_converted() -> None:  # T02, T25
    assert restore({"version": 1, "attributes": {"w": 7}}).W == 7
    assert restore({"w": 7}).W == 7  # of a release without versions
    assert restore((None, {"w": 7})).W == 7
    assert restore({"version": 2, "attributes": {"W": 7}}).W == 7


def test_a_state_of_a_newer_version_is_refused_and_both_versions_are_named() -> None:  # T02
    with pytest.raises(FormatError, match=r"a Layer has version 4, this release reads up to version 3"):
        restore({"version": 4, "attributes": {"W": 7}})


@pytest.mark.parametrize(
    "state", [None, 5, "text", {"version": "1", "attributes": {}}, {"version": 1, "attributes": 3}, {1: 2}]
)
def test_invalid_states_are_refused(state: Any) -> None:
    with pytest.raises(FormatError, match="the state of a Layer"):
        restore(state)


def test_pickled_states_are_plain_data() -> None:  # T02
    tensor = LoDTensor(np.ones((3, 1), "float32"), [[0, 1, 3]])
    state = tensor.__getstate__()
    assert state["version"] == 1
    assert state["attributes"].keys() == {"_array", "_lod", "version"}


@pytest.mark.parametrize("protocol", [*range(pickle.HIGHEST_PROTOCOL + 1), "deepcopy"])
def test_values_of_a_scope_survive_pickling(protocol: Any) -> None:  # T01, T10
    scope = Scope()
    tensor = scope.var("w").get_tensor()
    tensor.set(np.arange(6, dtype="float32").reshape(3, 2))
    tensor.set_lod([[0, 1, 3]])
    scope.var("rows").set_value(SelectedRows([4, 0], 9, np.ones((2, 2), "float32")))
    scope.var("steps").set_value(LoDTensorArray([LoDTensor(np.zeros(2))]))
    scope.var("queue").set_value(iter(()))  # belongs to a run
    scope.new_scope().var("inner").get_tensor().set([1.0])
    drawn = scope.generator.state
    scope.var("w").origin = "some/dir"

    again = copy.deepcopy(scope) if protocol == "deepcopy" else pickle.loads(pickle.dumps(scope, protocol))
    assert again.local_var_names() == ["w", "rows", "steps", "queue"]
    w = again.find_var("w")
    np.testing.assert_array_equal(w.get_tensor().held_array, tensor.held_array)
    assert w.get_tensor().held_array is not tensor.held_array
    assert (w.get_tensor().lod(), w.origin, w.version) == (
        [[0, 1, 3]],
        "some/dir",
        scope.find_var("w").version,
    )
    rows = again.find_var("rows").get_selected_rows()
    assert (rows.rows(), rows.height(), rows.find_rows(np.array([0])).tolist()) == ([4, 0], 9, [1])
    assert [step.shape() for step in again.find_var("steps").get_lod_tensor_array()] == [[2]]
    assert again.find_var("queue").value is None
    (kid,) = again._kids
    assert kid.parent is again
    assert again.generator.state == drawn


def test_small_values_survive_pickling() -> None:
    for one in (CPUPlace(), CUDAPlace(2)):
        assert pickle.loads(pickle.dumps(one)) == one
    one = Generator(7)
    again = pickle.loads(pickle.dumps(one))
    assert again.gaussian([4]).tolist() == one.gaussian([4]).tolist()
