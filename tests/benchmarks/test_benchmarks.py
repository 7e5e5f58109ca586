"""The benchmarks find what they measure; their figures are nothing for a test."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("bench_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_says_its_command_and_is_in_the_page(name: str) -> None:
    module = import_module(f"tests.benchmarks.{name}")
    assert callable(module.main)
    assert f"python -m tests.benchmarks.{name}" in module.__doc__
    assert f"`{name}`" in (HERE / "README.md").read_text()


def test_programs_and_direct_calls_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--count", "3", "--rounds", "1", "--where", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench_programs", *arguments])
    import_module("tests.benchmarks.bench_programs").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20].strip() for line in lines[1:]] == [
        "save, a file each", "load, a file each", "save, one file", "load, one file",
    ]  # fmt: skip
