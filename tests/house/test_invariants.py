"""Every numbered invariant is kept somewhere, proved by a test, and broken by a mutation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutations.mutation import ROOMS, list_mutations

PROJECT = Path(__file__).parent.parent.parent
LISTS = {"S": "storage", "C": "io", "D": "distributed/protocol", "G": "distributed", "W": "distributed"}


def find_numbers(folder: Path, pattern: str) -> set[str]:
    """Return the numbers in what a pattern finds in the modules of a folder."""
    found = (re.findall(pattern, path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))
    return {number for texts in found for text in texts for number in re.findall(r"[A-Z]\d+", text)}


@pytest.mark.parametrize("letter", LISTS)
def test_every_invariant_has_code_a_test_and_a_mutation(letter: str) -> None:
    room = LISTS[letter]
    readme = (PROJECT / "paddlelike" / room / "README.md").read_text(encoding="utf-8")
    listed = re.findall(rf"^- \*\*({letter}\d+)\*\* ", readme, re.MULTILINE)
    assert listed == [f"{letter}{number}" for number in range(1, len(listed) + 1)]
    numbers = rf"{letter}\d+(?:, {letter}\d+)*"
    assert find_numbers(PROJECT / "paddlelike" / room, rf"# ({numbers})\n") == set(listed)
    assert find_numbers(PROJECT / "tests" / room, rf"Proves ({numbers})\.") == set(listed)
    assert {m.breaks for m in list_mutations() if m.breaks.startswith(letter)} == set(listed)


def test_mutations_have_unique_names_and_apply_to_the_current_code() -> None:
    mutations = list_mutations()
    assert len(mutations) >= 80
    assert len({mutation.name for mutation in mutations}) == len(mutations)
    assert {mutation.room for mutation in mutations} == set(ROOMS)
    assert [m.name for m in mutations if m.count_places(PROJECT) != 1 or m.old == m.new] == []
