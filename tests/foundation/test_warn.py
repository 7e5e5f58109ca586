"""Every warning of the package points at the user's line, however deep the call that issues it."""

from __future__ import annotations

import ast
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.foundation.warn import find_user_frame, warn_user

PACKAGE = Path(fluid.__file__).parent
#: It is copied into the path of scripts, and runs before this package can be imported.
ALONE = PACKAGE / "import_paddle" / "path" / "sitecustomize.py"

layers = fluid.layers


def test_every_module_warns_through_warn_user() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path in (ALONE, PACKAGE / "foundation" / "warn.py") or "warn" not in (text := path.read_text()):
            continue
        found += [
            f"{path}:{node.lineno}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn")
        ]
    assert found == []


def _list_sites() -> list[tuple[Path, int]]:
    """Return the file and the line of every call of warn_user in the package."""
    sites = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "warn_user" in (text := path.read_text()):
            sites += [
                (path, node.lineno)
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "warn_user"
            ]
    return sites


def test_a_warning_from_any_place_points_at_the_caller() -> None:
    """Every site is walked: a call at its file and line, inside of a block and a builtin, stands for it."""
    sites = _list_sites()
    assert len(sites) > 55
    for path, line in sites:
        code = "\n" * (line - 4) + (
            "def site():\n with block():\n  for _ in map(lambda one:\n   warn_user('said'), [1]): pass\n"
        )
        names = {"warn_user": warn_user, "block": contextlib.contextmanager(lambda: iter([None]))}
        exec(compile(code, path, "exec"), names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            names["site"]()
            after = sys._getframe().f_lineno
        assert [(one.filename, one.lineno) for one in caught] == [(__file__, after - 1)], path


def _from_a_layer() -> None:
    x = fluid.data("x", [None, 4, 8, 8])
    layers.conv2d(x, 4, 3, groups=2, dilation=2, padding="SAME")


def _from_a_shape_rule() -> None:
    block = fluid.default_main_program().current_block()
    x, out = fluid.data("x", [None, 4, 7, 7]), block.create_var(name="out", dtype="float32")
    attrs = {"pooling_type": "max", "ksize": [3, 3], "adaptive": True}
    block.append_op("pool2d", inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)


def _from_an_optimizer() -> None:
    fluid.optimizer.SGD(0.1).minimize(layers.mean(fluid.data("x", [None, 4])))


def _from_an_initializer() -> None:
    fluid.initializer.Bilinear()


def _from_a_run() -> None:
    x = layers.scale(fluid.data("x", [None, 4]))
    batch = np.ones([2, 4], "float32")
    fluid.Executor().run(feed={"x": batch, "X": batch}, fetch_list=[x])


def _from_an_empty_run() -> None:
    fluid.Executor().run(fluid.Program())


def _from_a_load() -> None:
    fluid.io.load_params(fluid.Executor(), "model", fluid.Program())


def _from_a_setting() -> None:
    fluid.DistributeTranspilerConfig().slice_var_upp = False


@pytest.mark.parametrize(
    "call",
    [
        _from_a_layer, _from_a_shape_rule, _from_an_optimizer, _from_an_initializer, _from_a_run,
        _from_an_empty_run, _from_a_load, _from_a_setting,
    ],
)  # fmt: skip
def test_a_warning_points_at_the_line_of_the_script(call: Callable[[], None]) -> None:
    with warnings.catch_warnings(record=True) as caught, fluid.program_guard(fluid.Program()):
        warnings.simplefilter("always")
        call()
    first = call.__code__.co_firstlineno
    lines = range(first, first + len(list(call.__code__.co_lines())) + 6)
    assert caught
    assert [one.filename for one in caught] == [__file__] * len(caught)
    assert all(one.lineno in lines for one in caught), [(one.lineno, str(one.message)) for one in caught]


def test_warnings_skip_blocks_and_decorators_of_the_library() -> None:
    @contextlib.contextmanager
    def block() -> Iterator[None]:
        yield

    @block()
    def decorated() -> object:
        return find_user_frame()

    frame = decorated()
    assert getattr(frame, "f_code", None) is decorated.__wrapped__.__code__  # type: ignore[attr-defined]


def test_a_warning_is_shown_once_per_line_and_obeys_filters() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(3):
            warn_user("once")
    assert [str(one.message) for one in caught] == ["once"]
    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match="as asked"):
        warn_user("as asked", RuntimeWarning)
