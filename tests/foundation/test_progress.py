"""How far operations are: what is drawn on a terminal, what is not drawn elsewhere."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import paddlelike as fluid
from paddlelike.foundation import progress

MILLION = 1_000_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal of 80 columns, on which everything takes over a second."""
    found = Terminal()
    mine = SimpleNamespace(stderr=found, modules={})  # pytest puts its own into sys
    monkeypatch.setattr(progress, "sys", mine)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def list_lines(terminal: Terminal) -> list[str]:
    """Return what stood in the line, one after the other; "" where it was erased."""
    drawn = terminal.getvalue().split("\r")
    assert drawn[0] == ""
    assert all(one.endswith("\x1b[K") for one in drawn[1:])
    return [one.removesuffix("\x1b[K") for one in drawn[1:]]


def test_the_progress_line_counts_bytes_and_is_erased(terminal: Terminal) -> None:
    with progress.show_progress("writing x", [MILLION, 3 * MILLION]):
        threads = [threading.Thread(target=progress.advance_progress, args=(MILLION,)) for _ in range(4)]
        for thread in threads:
            thread.start()
            thread.join()
    lines = list_lines(terminal)
    assert [line.split(", ")[0] for line in lines] == [
        *(f"writing x: {share}% of 4.0 MB" for share in (25, 50, 75, 100)),
        "",
    ]


def test_the_progress_line_belongs_to_the_outermost_operation(terminal: Terminal) -> None:
    with progress.show_progress("a", [4]):
        with progress.show_progress("b", [1]):
            progress.advance_progress(1)
        with progress.show_progress(None):
            progress.advance_progress(1)
    assert [line.split(", ")[0] for line in list_lines(terminal)] == ["a: 25% of 4 B", "a: 50% of 4 B", ""]
    with progress.show_progress(None), progress.show_progress("b", [1]):
        progress.advance_progress(1)
    assert "b:" not in terminal.getvalue()


def test_nested_operations_do_not_add_to_an_operation_that_counts_itself(terminal: Terminal) -> None:
    with progress.show_progress("a"):
        progress.report_progress(1, 4)
        progress.advance_progress(3)
        progress.report_progress(2, 4)
    assert [line.split(", ")[0] for line in list_lines(terminal)] == ["a: 25% of 4 B", "a: 50% of 4 B", ""]


def test_a_line_fits_the_terminal_and_cannot_control_it(terminal: Terminal) -> None:
    with progress.show_progress(f"writing \x1b[31m{'x' * 100}", [4]):
        progress.advance_progress(1)
    line = list_lines(terminal)[0]
    assert len(line) == 79
    assert "25% of 4 B" in line
    assert "\x1b" not in line


@pytest.mark.parametrize("reason", ["fast", "thread", "switch", "file"])
def test_no_progress_line_is_drawn_when_it_is_not_wanted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def work() -> None:
        with progress.show_progress("a", [1]):
            progress.advance_progress(1)

    if reason == "fast":
        monkeypatch.setattr(progress, "_DELAY", 3600.0)
    elif reason == "switch":
        monkeypatch.setenv("PADDLELIKE_PROGRESS", "0")
    elif reason == "file":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    if reason == "thread":
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
    assert terminal.getvalue() == ""


@pytest.mark.slow
def test_saves_loads_comparisons_and_conversions_show_their_progress(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    home = os.fspath(tmp_path / "d")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        for _ in range(2):
            fluid.layers.create_parameter([1500, 1000], "float32")
        fluid.layers.create_parameter([1000], "float32")
    exe = fluid.Executor()

    def check(work: Callable[[], object], text: str) -> None:
        terminal.seek(0)
        terminal.truncate()
        work()
        lines = list_lines(terminal)
        lines = lines[: lines.index("")]  # then the manifest is written
        assert all(line.startswith(text) for line in lines), lines
        shares = [int(re.findall(r": (\d+)% of 12.0 MB, ", line)[0]) for line in lines]
        assert shares == sorted(shares)
        assert shares[0] < 100
        assert shares[-1] == 100

    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        check(lambda: fluid.io.save_persistables(exe, home, main), f"writing {home}: ")
        check(lambda: fluid.io.load_persistables(exe, home, main), f"loading {home}: ")
        check(lambda: fluid.io.verify(home), f"verifying {home}: ")
        npz = os.fspath(tmp_path / "x.npz")
        check(lambda: fluid.convert(home, npz, verify=False), f"{home} -> {npz}: ")
        terminal.seek(0)
        terminal.truncate()
        fluid.save(main, f"{home}s/m")  # whose size is not known before it is written
        assert re.match(rf"\rwriting {re.escape(home)}s(/m)?: [\d.]+ [kM]?B, ", terminal.getvalue())
        terminal.seek(0)
        terminal.truncate()
        fluid.load(main, f"{home}s/m")
        assert re.match(rf"\rloading {re.escape(home)}s/m: [\d.]+ [kM]?B, ", terminal.getvalue())
        terminal.seek(0)
        terminal.truncate()
        fluid.convert(home, os.fspath(tmp_path / "y.npz"), progress=False, verify=False)
        assert terminal.getvalue() == ""


def test_a_notebook_shows_the_progress_line_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)

    def display(text: str, *, display_id: bool) -> object:
        assert display_id
        shown.append(text)
        return handle

    module = SimpleNamespace(display=display, HTML=str)
    shell = SimpleNamespace(kernel=object())
    python = SimpleNamespace(get_ipython=lambda: shell, display=module)
    monkeypatch.setitem(sys.modules, "IPython", python)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    with progress.show_progress("saving <a>", [4]):
        progress.advance_progress(1)
    assert [one.partition(",")[0] for one in shown] == ["<pre>saving &lt;a&gt;: 25% of 4 B", ""]
    shell = SimpleNamespace()  # IPython on a terminal
    with progress.show_progress("a", [4]):
        progress.advance_progress(1)
    assert len(shown) == 2


def test_an_operation_that_counts_nothing_shows_its_seconds(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_TICK", 0.001)
    drawn = threading.Event()
    monkeypatch.setattr(terminal, "flush", drawn.set)
    with progress.show_progress("exporting x"):
        assert drawn.wait(60)
    lines = list_lines(terminal)
    assert set(lines[:-1]) == {"exporting x: 0 s"}
    assert lines[-1] == ""
