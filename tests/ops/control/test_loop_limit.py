"""A loop that never ends is an error of the run that has a limit, and of no other."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike import inference
from paddlelike.cli.app import app
from paddlelike.errors import OperatorError
from paddlelike.ops.control.blocks import LoopLimit, find_limit
from paddlelike.view.server.predict import Predictor

X = np.ones((1, 1), "float32")


@pytest.fixture
def endless(tmp_path: Path) -> str:
    """A model whose loop goes on while x > 0, which nothing in it changes."""
    path = str(tmp_path / "model")
    exe, main = fluid.Executor(), fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [1, 1])
        total = fluid.layers.fill_constant([1], "float32", 0.0)
        zero = fluid.layers.fill_constant([1], "float32", 0.0)
        start = fluid.layers.reshape(x, [1])
        going = fluid.layers.less_than(zero, start)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "While: the block computes its condition")
            with fluid.layers.While(going).block():
                fluid.layers.increment(total)
                fluid.layers.less_than(zero, start, cond=going)
        fluid.io.save_inference_model(path, ["x"], [total], exe, main_program=main)
    return path


def test_a_predictor_ends_after_the_seconds_or_the_steps_that_were_set(endless: str) -> None:
    config = inference.Config(endless)
    assert config.loop_limit() == (600.0, None)
    for how, said in (
        ({"steps": 50}, "after 50 steps"),
        ({"seconds": 0.05}, r"of the loops .* 0\.05 s"),
    ):
        config.set_loop_limit(**how)  # type: ignore[arg-type]
        predictor = inference.create_predictor(config)
        for one in (predictor, predictor.clone()):
            with pytest.raises(OperatorError, match=said):
                one.run([X])
            (total,) = one.run([-X])
            assert total == 0
    assert find_limit() is None


def test_a_loop_that_ends_within_its_limit_is_not_an_error(endless: str) -> None:
    def count(x: Any) -> Any:
        exe = fluid.Executor()
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            i = fluid.layers.fill_constant([1], "int64", 0)
            (last,) = fluid.layers.while_loop(lambda i: i < 7, lambda i: [i + 1], [i])
            return exe.run(feed={}, fetch_list=[last])[0]

    assert LoopLimit(steps=7).run(lambda: count(X)) == 7
    with pytest.raises(OperatorError, match="after 6 steps"):
        LoopLimit(steps=6).run(lambda: count(X))


def test_check_and_serve_stop_a_loop_at_its_limit(endless: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    done = CliRunner().invoke(app, ["check", endless, str(tmp_path / "x.npz"), "--loops", "0.05"])
    assert done.exit_code == 2
    assert "has not ended after 0.05 s" in done.output
    with pytest.raises(OperatorError, match=r"after 0\.05 s"):
        Predictor(endless, loops=0.05).run({"x": X.tolist()})
