"""The page of the messages, which is also the golden file of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.gallery import building, files, reading, running, serving
from tests.gallery.render import Mistake, render

__all__ = ["PAGE", "PARTS", "make_title", "read_page", "write_page"]

PAGE: Final = Path(__file__).parent / "errors.md"

PARTS: Final[dict[str, list[Mistake]]] = {
    "Building a network": building.MISTAKES,
    "Running a program": running.MISTAKES,
    "Readers and data sets": reading.MISTAKES,
    "Saved files": files.MISTAKES,
    "Optimizers and parameter servers": serving.MISTAKES,
}

_HEAD: Final = """\
# What is said about common mistakes

Each mistake is a function of the same name in `tests/gallery/`; below it stands what its user reads:
warnings, then the end of the traceback. `python -m tests.gallery` writes this page, and a test compares it.
"""


def write_page() -> str:
    """Return the page, made anew."""
    parts = [_HEAD]
    for title, mistakes in PARTS.items():
        parts.append(f"\n## {title}\n")
        parts += [f"\n### {make_title(one)}\n\n```text\n{render(one)}\n```\n" for one in mistakes]
    return "".join(parts)


def read_page() -> dict[str, str]:
    """Return the messages in the page by title."""
    sections = PAGE.read_text().split("\n### ")[1:]
    return {
        title: body.partition("```text\n")[2].partition("\n```")[0]
        for title, _, body in (section.partition("\n") for section in sections)
    }


def make_title(mistake: Mistake) -> str:
    """Return the title of a mistake: its name in words."""
    return mistake.__name__.replace("_", " ").capitalize()
