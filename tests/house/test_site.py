"""The reference has every public name of layers, optimizers, readers, of saving and loading."""

from __future__ import annotations

import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import paddlelike as fluid

PROJECT = Path(__file__).parent.parent.parent
PAGES = sorted((PROJECT / "tutorials" / "reference").glob("*.md"))


def list_marked(module: str) -> set[str]:
    """Return the families and names of a module that the pages ask for; {"*"}: all."""
    marks = [re.findall(rf"<!-- public: {module}((?: \w+)*) -->", page.read_text()) for page in PAGES]
    return {word for found in marks for mark in found for word in mark.split() or ["*"]}


@pytest.mark.parametrize(
    "module",
    ["layers", "io", "optimizer", "regularizer", "clip", "initializer", "metrics"],
)
def test_the_reference_documents_every_public_name(module: str) -> None:
    package = attrgetter(module)(fluid)
    marked = list_marked(f"fluid.{module}")
    families = tuple(f"{package.__name__}.{word}." for word in marked)
    homes = {name: f"{inspect.unwrap(getattr(package, name)).__module__}." for name in package.__all__}
    left = [name for name, home in homes.items() if name not in marked and not home.startswith(families)]
    assert marked == {"*"} or left == []
