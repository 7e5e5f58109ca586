"""The canonical form reads real files rightly, and names every difference."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.helpers.canonical import assert_same_program, canonical, differences
from tests.helpers.golden_data import GOLDEN, program

FIT = GOLDEN / "fit_a_line" / "programs"


@pytest.fixture
def wanted() -> dict[str, Any]:
    return json.loads((FIT / "main_train.json").read_text())


def test_a_real_program_reads_as_an_independent_reader_reads_it(wanted: dict[str, Any]) -> None:
    """The JSON was made with Paddle's own descriptors: it also checks our field numbers."""
    assert program("fit_a_line", "main_train") == wanted


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (["ops", 0, "attrs", "x_num_col_dims"], ["INT", 2],
         "block 0, operator 0 mul: attrs x_num_col_dims is ['INT', 2], wanted ['INT', 1]"),
        (["ops", 1, "inputs", "Y"], ["b"],
         "block 0, operator 1 elementwise_add: inputs Y is ['b'], wanted ['fc_0.b_0']"),
        (["vars", "x", "shape"], [-1, 14],
         "block 0, variable x: shape is [-1, 14], wanted [-1, 13]"),
        (["vars", "more"], {}, "block 0: variable more is surplus"),
        (["parent_idx"], 3, "block 0: parent_idx 3, wanted -1"),
    ],
    ids=["attribute", "slot", "variable", "surplus", "block"],
)  # fmt: skip
def test_each_difference_is_shown_in_one_line(
    wanted: dict[str, Any], path: list[Any], value: Any, line: str
) -> None:
    changed = copy.deepcopy(wanted)
    at = changed["blocks"][0]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert list(differences(changed, wanted)) == [line]
    with pytest.raises(AssertionError, match="the programs differ"):
        assert_same_program(changed, wanted)


def test_a_missing_operator_is_shown_at_its_position(wanted: dict[str, Any]) -> None:
    changed = copy.deepcopy(wanted)
    del changed["blocks"][0]["ops"][1]
    lines = list(differences(changed, wanted))
    assert lines == [
        "block 0: other operators (- wanted, + got):",
        "- elementwise_add -> fc_0.tmp_1",
    ]


def test_slots_that_are_sets_are_compared_without_order(wanted: dict[str, Any]) -> None:
    changed = copy.deepcopy(wanted)
    for one, names in ((wanted, ["a", "b"]), (changed, ["b", "a"])):
        one["blocks"][0]["ops"][0] |= {"type": "while_grad", "outputs": {"X@GRAD": names}}
    assert_same_program(changed, wanted)


def test_bytes_and_programs_are_both_accepted() -> None:
    data = (FIT / "startup_train.pb").read_bytes()
    assert canonical(data)["version"] == 1008005
