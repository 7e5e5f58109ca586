"""Every snippet of the cookbook runs, in an empty directory, as the page says."""

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
