"""Real Paddle 2.6.2 (which has no `fluid` any more) and this package read each other's files.

PADDLELIKE_PADDLE262_PYTHON names an interpreter that has paddlepaddle 2.6.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.helpers.golden_data import Arrays
from tests.helpers.networks import mlp_feeds
from tests.helpers.runs import building
from tests.interop.real import PADDLE262

pytestmark = PADDLE262.needed

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # float32, a few steps


def paddle262(workplace: Path, **job: Any) -> Arrays:
    nothing = {"load": None, "skip": 0, "steps": 0, "save": None, "infer": None}
    PADDLE262.run("driver262.py", {**nothing, "out": str(workplace / "out"), **job}, workplace)
    with np.load(workplace / "out.npz") as file:
        return {key: file[key] for key in file}


def test_paddle_reads_our_files(tmp_path: Path) -> None:
    with building("mlp_adam") as run:
        run.exe.run(run.startup)
        rng = np.random.RandomState(3)
        for _ in range(3):
            run.train(mlp_feeds(rng))
        fluid.io.save_persistables(run.exe, str(tmp_path / "ours"), run.main)
        clone = run.main.clone()
        targets = [clone.global_block().var(run.built.infer[0].name)]
        fluid.io.save_inference_model(
            str(tmp_path / "model"), ["x"], targets, run.exe, clone, params_filename="params"
        )
        (inferred,) = run.exe.run(
            run.for_test, feed=mlp_feeds(np.random.RandomState(3)), fetch_list=run.built.infer
        )
        losses = [run.train(mlp_feeds(rng))[0] for _ in range(4)]
        final = run.values()
    theirs = paddle262(tmp_path, load=str(tmp_path / "ours"), skip=3, steps=4, infer=str(tmp_path / "model"))
    np.testing.assert_allclose(theirs["losses"], losses, **CLOSE)
    np.testing.assert_allclose(theirs["infer"], inferred, **CLOSE)
    for name, value in final.items():
        np.testing.assert_allclose(theirs[f"final/{name}"], value, **CLOSE, err_msg=name)


def test_files_of_paddle_are_read(tmp_path: Path) -> None:
    theirs = paddle262(tmp_path, steps=3, save=str(tmp_path))
    onwards = paddle262(tmp_path, load=str(tmp_path / "persistables"), skip=3, steps=4)
    with building("mlp_adam") as run:
        run.exe.run(run.startup)
        fluid.io.load_persistables(run.exe, str(tmp_path / "persistables"), run.main)
        for name, value in run.values().items():
            assert value.tobytes() == theirs[f"final/{name}"].tobytes()
        rng = np.random.RandomState(3)
        feeds = [mlp_feeds(rng) for _ in range(7)][3:]
        losses = [run.train(feed)[0] for feed in feeds]
        np.testing.assert_allclose(losses, onwards["losses"], **CLOSE)
