"""What README.md shows is there and runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
README = (PROJECT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_scripts_run_in_an_empty_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for script in blocks("python"):
        exec(compile(script, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert out.startswith("loaded 5 variables")
    assert "5 files are as they were saved" in out


def test_every_path_of_the_map_exists() -> None:
    paths = set(re.findall(r"`((?:paddlelike|tests|tutorials)/[\w./]*)`", README))
    assert len(paths) > 10
    assert [path for path in sorted(paths) if not (PROJECT / path).exists()] == []


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    (command,) = re.findall(r"bin/(python -m pytest -n 2 --dist worksteal)", README)
    assert command in (PROJECT / ".ci" / "run").read_text()


def test_each_command_has_an_environment_of_its_own() -> None:
    made = re.findall(r"python3 -m venv (\S+) &&", README)
    assert len(made) == len(set(made)) == 2


def test_the_top_level_holds_nothing_else() -> None:
    known = {"LICENSE", "README.md", "paddlelike", "pyproject.toml", "tests", "tutorials"}
    ignored = {"build", "dist"}
    there = {path.name for path in PROJECT.iterdir() if not path.name.startswith(".")}
    assert there - ignored <= known
