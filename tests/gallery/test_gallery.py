"""Common mistakes are answered as the page has it: who refuses, what came, what was expected, what to do."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.gallery.page import PARTS, make_title, read_page
from tests.gallery.render import Mistake, render

MISTAKES = {make_title(mistake): mistake for some in PARTS.values() for mistake in some}
SAID = read_page()

#: No error, as in Fluid: it is refused when the program runs, or there is nothing to refuse.
ONLY_WARNED = {
    "Load into an empty program",
    "Minimize without parameters",
    "Misspell an option of the config",
    "Feed samples that are too short",
    "Minimize with two optimizers",
    "Minimize outside of the guard",
    "Minimize the loss of the original for a clone",
    "Train without an optimizer",
    "Take the cross entropy of scores",
    "Misspell a name in no grad set",
    "Load variables that a predicate does not choose",
    "Save variables that a predicate does not choose",
}


@pytest.mark.parametrize(("title", "mistake"), MISTAKES.items(), ids=MISTAKES)
def test_each_mistake_gives_the_message_shown_on_the_page(title: str, mistake: Mistake) -> None:
    if title == "Run on a gpu" and find_spec("jax") is None:
        pytest.skip("the page is of a machine with JAX")
    assert render(mistake) == SAID[title]


def test_the_page_shows_exactly_the_tested_mistakes() -> None:
    assert list(SAID) == list(MISTAKES)
    assert len(SAID) >= 160


def test_every_mistake_raises_or_warns() -> None:
    assert {title for title, text in SAID.items() if text.endswith("(no error)")} <= ONLY_WARNED
    assert [title for title, text in SAID.items() if text == "(no error)"] == []


def test_no_message_quotes_an_internal_error_first() -> None:
    assert [title for title, text in SAID.items() if "above it)" in text] == []
