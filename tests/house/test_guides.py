"""Snippets of the cookbook run, and the Chinese guides have the code and names of the English ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlelike.cli.app import app

PAGE = Path(__file__).parents[2] / "tutorials" / "cookbook.md"
TASKS = re.findall(r"^### ([^\n]*)\n\n```(python|bash)\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
(SETUP,) = re.findall(r"```python setup\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_every_task_has_a_snippet() -> None:
    assert len(TASKS) >= 30
    assert len(TASKS) == PAGE.read_text().count("\n### ")


def test_the_chinese_list_has_every_task() -> None:
    listed = re.findall(r"\| \[(.*?)\]\(cookbook.md#", PAGE.with_name("cookbook.zh.md").read_text())
    assert listed == [title for title, _, _ in TASKS]


@pytest.mark.parametrize(("kind", "text"), [one[1:] for one in TASKS], ids=[one[0] for one in TASKS])
def test_a_snippet_runs(kind: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "python":
        exec(compile(f"{SETUP}\n{text}", "cookbook.md", "exec"), {"__name__": "cookbook"})
        return
    for line in text.splitlines():
        name, *arguments = line.split()
        assert name == "paddlelike"
        assert CliRunner().invoke(app, arguments).exit_code in (0, 1), line  # 1: something was found


GUIDES = Path(__file__).parents[2] / "tutorials"
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
    assert {page.name.removesuffix(".zh.md") for page in GUIDES.glob("*.zh.md")} == {
        *ENGLISH, "README", "cookbook",
    }  # fmt: skip


@pytest.mark.parametrize("name", ENGLISH)
def test_code_and_names_are_those_of_the_english_page(name: str) -> None:
    chinese = (GUIDES / f"{name}.zh.md").read_text("utf-8")
    english = (GUIDES / ENGLISH[name]).read_text("utf-8")
    assert name == "tutorials" or f"]({ENGLISH[name]}" in chinese
    assert [block for block in BLOCK.findall(chinese) if block not in english] == []
    if name in ("formats", "tutorials"):
        assert FIRST_CELL.findall(chinese) == FIRST_CELL.findall(english)[: len(FIRST_CELL.findall(chinese))]
