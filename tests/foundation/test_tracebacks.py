"""Uncaught errors: the user's lines are shown, ours only where the fault is ours or they are asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddlelike import import_paddle
from paddlelike.foundation.tracebacks import install_hook

HEAD = """
import numpy as np
import paddlelike as fluid
x = fluid.data("x", [None, 4])
def broken(array):
    raise KeyError("mine")
def user():
    {line}
user()
"""
INSIDE = "inside paddlelike; PADDLELIKE_TRACEBACK=full shows all"


def show(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a script that ends with an error in ``line`` leaves on standard error."""
    script = tmp_path / "user.py"
    script.write_text(HEAD.replace("{line}", line))
    try:
        exec(compile(script.read_text(), script, "exec"), {"__name__": "script"})
    except Exception:
        capsys.readouterr()
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines(keepends=True)
    return "".join(one for one in lines if not one.strip() or one.strip(" ~^\n"))  # Python 3.13 marks calls


@pytest.fixture(autouse=True)
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [one for one in sys.meta_path if one is not import_paddle._FINDER]  # which other tests may leave
    monkeypatch.setattr(sys, "meta_path", others)
    for name in [name for name in sys.modules if name.partition(".")[0] == "paddle"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    install_hook()


def test_the_last_line_of_a_traceback_is_in_user_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "fluid.layers.fc(x, 3, act='rellu')"
    lines = show(line, tmp_path, capsys).splitlines()
    message = next(index for index, one in enumerate(lines) if "GraphError" in one)
    assert f'user.py", line {len(HEAD.splitlines()) - 1}, in user' in lines[message - 2]
    assert lines[message - 1].strip() == line
    assert lines[message + 1].startswith("  hint: did you mean 'relu'")
    assert INSIDE in lines[-1]
    assert not any("/paddlelike/" in one for one in lines)
    monkeypatch.setenv("PADDLELIKE_TRACEBACK", "full")
    full = show(line, tmp_path, capsys)
    assert full.count("/paddlelike/") == int(lines[-1].split()[2])
    assert INSIDE not in full


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("fluid.Executor(plase=None)", "did you mean 'place'? Executor(place=None)"),
        ("fluid.Executor().run(feeds={})", "did you mean 'feed'? Executor.run(program=None, feed=None, "),
        ("fluid.layers.fc(x)", "it takes fc(input, size, num_flatten_dims=1, "),
        ("fluid.CPUPlace(0)", "it takes CPUPlace()"),
        ("fluid.io.verify(dir='m')", "it takes verify(dirname)"),
    ],
)
def test_the_error_for_wrong_arguments_shows_the_signature(
    line: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = show(line, tmp_path, capsys)
    if sys.version_info >= (3, 13):  # Python itself suggests a near name
        hint = re.sub(r"^did you mean '\w+'\?", "it takes", hint)
    assert f"\n  hint: {hint}" in said
    assert not [one for one in said.splitlines() if 'File "' in one and "/paddlelike/" in one]


def test_functions_of_the_user_are_not_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = show("fc = lambda a: a; fc.__qualname__ = 'fc'; fc(b=1)", tmp_path, capsys)
    assert "unexpected keyword argument 'b'" in said
    assert "hint: " not in said


def test_tracebacks_of_our_own_faults_are_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = show(
        "fluid.default_main_program().global_block().ops = 3; fluid.default_main_program().clone()",
        tmp_path,
        capsys,
    )
    assert "/paddlelike/" in said
    assert INSIDE not in said


def test_causes_raised_in_user_code_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = "y = fluid.layers.py_func(broken, x, x.block.create_var(name='y', dtype='float32', shape=[1]))"
    run = "fluid.Executor().run(feed={'x': np.ones([1, 4], 'f4')}, fetch_list=[y])"
    said = show(f"{build}; {run}", tmp_path, capsys)
    cause, _, last = said.partition("direct cause")
    assert 'raise KeyError("mine")' in cause
    assert "OperatorError" in last
    assert "/paddlelike/" not in last
    reading = show("fluid.io.load_persistables(fluid.Executor(), 'nothing', vars=[x])", tmp_path, capsys)
    assert "MissingFileError" in reading
    assert "direct cause" not in reading
    assert "During handling" not in reading


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("fluid.optimizer.adam(0.1)", "fluid.optimizer.adam is a module; did you mean fluid.optimizer.Adam?"),
        ("fluid.global_scope().find_var('fc_0.w_0').get_tensor()", "find_var returned None: the scope has"),
        (
            "for _ in fluid.io.batch(user, 2): pass",
            "a reader is a function that returns an iterator: call it",
        ),
        ("next(fluid.io.shuffle(user, 2))", "a reader is a function that returns an iterator: call it"),
        (
            "r = fluid.Executor().run(feed={'x': np.zeros([1, 4], 'f4')}, fetch_list=[x]); r.item()",
            "Executor.run returns a list",
        ),
        ("fluid.Executor().fit(x)", "optimizer.minimize(loss) appends the training to the program"),
        ("fluid.default_main_program().eval()", "program.clone(for_test=True), taken before minimize"),
        ("fluid.default_main_program()(x)", "run it: exe.run(program, feed={name: array}"),
        ("x(np.ones(4))", "a variable gets its value when the program runs"),
        ("x @ x", "layers.matmul(x, y) multiplies matrices"),
        ("with fluid.Program(): pass", "with fluid.program_guard(main_program, startup_program)"),
        ("import paddle", "import paddlelike as fluid; or run the script as it is: python -m paddlelike run"),
        ("feed = {['x']: 1}", "a feed has names as keys; load_inference_model returns a list of them"),
        ("fluid.layers.scale(x, None)", "scale was called with x=<temporary x: fp32[-1, 4]>, scale=None"),
    ],
)
def test_errors_raised_by_python_describe_the_given_value(
    line: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"\n  hint: {hint}" in show(line, tmp_path, capsys)


@pytest.mark.slow
def test_tracebacks_are_shortened_in_notebooks_as_in_scripts() -> None:
    pytest.importorskip("IPython", reason="the extra docs is not installed")
    script = (
        "from IPython.terminal.interactiveshell import TerminalInteractiveShell as Shell\n"
        "shell = Shell.instance(colors='NoColor')\n"
        "shell.run_cell('import paddlelike as fluid')\n"
        "shell.run_cell('fluid.Executor(\"cpu\")')\n"
        "shell.run_cell('1 / 0')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours, other = done.stdout.split("ZeroDivisionError", 1)
    assert "fluid.CPUPlace()" in ours
    assert "places.py" not in ours
    assert "division by zero" in other
    assert INSIDE in done.stderr
