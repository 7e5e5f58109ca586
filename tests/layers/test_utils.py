"""Nested structures: mapping, flattening, comparing, packing."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paddlelike as fluid
from paddlelike.layers import utils
from paddlelike.layers.utils import flatten, have_same_structure, map_structure, pack_sequence_as


class Pair(NamedTuple):
    """A structure with names."""

    left: Any
    right: Any


NESTED = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(NESTED)
def test_packing_the_leaves_gives_the_structure_again(nested: Any) -> None:
    packed = pack_sequence_as(nested, flatten(nested))
    assert packed == nested
    assert have_same_structure(packed, nested)


@given(NESTED)
def test_a_function_is_applied_to_every_leaf_in_order(nested: Any) -> None:
    assert flatten(map_structure(lambda leaf: leaf + 1, nested)) == [leaf + 1 for leaf in flatten(nested)]


def test_structures_are_mapped_together() -> None:
    left, right = Pair([1], {"b": 2, "a": 3}), Pair([10], {"a": 30, "b": 20})
    total = map_structure(lambda a, b: a + b, left, right)
    assert total == Pair([11], {"a": 33, "b": 22})
    assert isinstance(total, Pair)
    assert flatten(left) == [1, 3, 2]  # a dict by key


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1, (2, 3)], ([4], 5), False),
        ([1, (2, 3)], (4, [5, 6]), True),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": 1}, {"b": 1}, False),
        ([], {}, False),
        (1, None, True),
    ],
)
def test_structures_are_compared_by_the_places_of_leaves(first: Any, second: Any, same: bool) -> None:
    assert have_same_structure(first, second) is same


def test_one_number_stands_for_a_list_of_them() -> None:
    assert utils.convert_to_list(3, 2, "stride") == [3, 3]
    assert utils.convert_to_list((1, 2), 2, "stride") == [1, 2]
    for value, said in (([1], "length 2"), (["a", "b"], "2 of them"), (None, "2 of them")):
        with pytest.raises(ValueError, match=f"stride must .*{said}"):
            utils.convert_to_list(value, 2, "stride")


def test_structures_that_differ_are_an_error() -> None:
    utils.assert_same_structure([1, (2, 3)], [4, (5, 6)])
    utils.assert_same_structure([1, (2, 3)], [4, [5, 6]], check_types=False)
    with pytest.raises(TypeError, match="expected two tuple"):
        utils.assert_same_structure([1, (2, 3)], [4, [5, 6]])
    with pytest.raises(ValueError, match="same structure"):
        utils.assert_same_structure([1, 2], [4])
    assert utils.is_sequence((1, 2))
    assert not utils.is_sequence("text")


def test_pads_of_both_sides_are_compared() -> None:
    pads = [1, 2], [1, 1, 2, 2], [1, 2, 2, 2]
    assert [utils._is_symmetric_padding(pad, 2) for pad in pads] == [True, True, False]


def test_variables_are_found_in_lists() -> None:
    x = fluid.data("x", [1])
    assert (utils._contain_var([1, x]), utils._contain_var((1, None))) == (True, False)
