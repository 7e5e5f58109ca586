"""Near names: which names an error proposes, and how it asks."""

from __future__ import annotations

import pytest

from paddlelike.foundation.near_names import find_near_names, suggest_names


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("fc_0.w0", ["conv2d_0.w_0", "fc_0.b_0", "fc_0.w_0"], ["fc_0.w_0", "fc_0.b_0"]),
        ("X", ["xx", "x", "y"], ["x"]),
        ("fc_0.w_0", ["a.w_0", "mul.w_0"], []),
        (3, ["4"], []),
    ],
    ids=["one letter", "only case", "the same ending", "no name at all"],
)
def test_near_names_share_most_of_their_letters(name: object, known: list[str], near: list[str]) -> None:
    assert find_near_names(name, known) == near


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ([], ""),
        (["name1"], "; did you mean 'name1'?"),
        (["name1", "name2"], "; did you mean 'name2' or 'name1'?"),
        (["name1", "name2", "name3", "name4"], "; did you mean 'name4', 'name3' or 'name2'?"),
    ],
    ids=["none", "one", "two", "more than three"],
)
def test_at_most_three_near_names_are_suggested(known: list[str], text: str) -> None:
    assert suggest_names("name", known, lead="; ") == text


def test_searching_a_hundred_thousand_names_is_fast() -> None:
    known = (f"{index}.w_0" for index in range(100_000))
    find_near_names("embedding_0.w_0", known)
    assert next(known) == "5000.w_0"
