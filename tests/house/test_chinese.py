"""The Chinese guides have the code, the formats and the tutorials of the English ones, and name these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "tutorials"
ENGLISH = {
    "formats": "formats.md",
    "messages": "messages.md",
    "old_models": "old_models.md",
    "onnx": "onnx.md",
    "porting": "porting.md",
    "saving": "../paddlelike/io/README.md",
    "servers": "../paddlelike/distributed/README.md",
    "tutorials": "README.md",
}
BLOCK = re.compile(r"^```(?:python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST_CELL = re.compile(r"^\| (\[?`[^|]*?) \|", re.MULTILINE)


def test_the_ten_most_read_pages_are_there() -> None:
    assert {page.name.removesuffix(".zh.md") for page in TUTORIALS.glob("*.zh.md")} == {
        *ENGLISH, "README", "cookbook",
    }  # fmt: skip


@pytest.mark.parametrize("name", ENGLISH)
def test_code_and_names_are_those_of_the_english_page(name: str) -> None:
    chinese = (TUTORIALS / f"{name}.zh.md").read_text("utf-8")
    english = (TUTORIALS / ENGLISH[name]).read_text("utf-8")
    assert name == "tutorials" or f"]({ENGLISH[name]}" in chinese
    assert [block for block in BLOCK.findall(chinese) if block not in english] == []
    if name in ("formats", "tutorials"):
        assert FIRST_CELL.findall(chinese) == FIRST_CELL.findall(english)[: len(FIRST_CELL.findall(chinese))]
