"""A predictor that follows a training: values of one save, whole, whatever is saved meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import PaddlelikeError
from paddlelike.view.server.predict import Predictor

_ROWS = 3000


_LOOKED_UP = np.array([[0], [7], [_ROWS - 1]])


class Training:
    """The rows of a table and of a weight that are looked up have the number of steps."""

    def __init__(self, home: Path) -> None:
        self.main, startup = fluid.Program(), fluid.Program()
        self.scope, self.exe, self.saves = fluid.Scope(), fluid.Executor(), home / "saves"
        zeros = fluid.initializer.Constant(0.0)
        guards = fluid.unique_name.guard(), fluid.program_guard(self.main, startup)
        with guards[0], guards[1], fluid.scope_guard(self.scope):
            ids = fluid.data("ids", [None, 1], "int64")
            attrs = [fluid.ParamAttr(name=name, initializer=zeros) for name in ("emb", "w")]
            grown = tables.sparse_embedding(ids, [1, 8], param_attr=attrs[0])
            sized = fluid.embedding(ids, [_ROWS, 8], param_attr=attrs[1], is_sparse=True)
            out = fluid.layers.concat([grown, fluid.layers.squeeze(sized, [1])], 1)
            test = self.main.clone(for_test=True)
            fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(out) * -1.0)
            self.exe.run(startup)
            fetch = [test.global_block().var(out.name)]
            fluid.io.save_inference_model(str(home / "model"), ["ids"], fetch, self.exe, test)
        self.run(np.arange(_ROWS).reshape(-1, 1))

    def run(self, ids: Any) -> None:
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed={"ids": ids})

    def step(self) -> None:
        self.run(_LOOKED_UP)

    def save(self, **options: Any) -> None:
        with fluid.scope_guard(self.scope):
            fluid.io.save_persistables(self.exe, str(self.saves), self.main, **options)


def _predict(predictor: Any) -> set[float]:
    (found,) = predictor.run([_LOOKED_UP])
    return set(np.unique(found).tolist())


def test_each_run_has_the_values_of_one_save(tmp_path: Path) -> None:
    training = Training(tmp_path)
    predictor = inference.create_predictor(inference.Config(str(tmp_path / "model")))
    follower = predictor.follow(training.saves)
    assert (_predict(predictor), follower.taken) == ({0.0}, 0)
    ended, failed = threading.Event(), []

    def train() -> None:
        try:
            for _ in range(11):
                training.step()
                training.save(delta=True)
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=train)
    thread.start()
    seen = [{0.0}]
    while not ended.is_set():
        seen.append(_predict(predictor))
    thread.join()
    seen.append(_predict(predictor.clone()))
    assert failed == []
    assert all(len(one) == 1 for one in seen)
    assert seen == sorted(seen, key=min)
    assert seen[-1] == {12.0}
    assert follower.taken > 1
    assert not follower.refresh()


def test_a_damaged_save_causes_a_warning_also_in_serve(tmp_path: Path) -> None:
    training = Training(tmp_path)
    predictor = Predictor(tmp_path / "model", follow=str(training.saves))
    training.save(delta=True)
    run = lambda: next(iter(predictor.run({"ids": [[7]]})["outputs"].values()))["values"][0]
    assert set(run()) == {1.0}
    training.step()
    training.save(delta=True)
    shutil.copytree(training.saves, tmp_path / "copy")
    link = max((tmp_path / "copy" / "__deltas__").iterdir())
    link.write_bytes(link.read_bytes()[:-1])
    shutil.rmtree(training.saves)
    (tmp_path / "copy").rename(training.saves)
    with pytest.warns(UserWarning, match="was not loaded"):
        assert set(run()) == {1.0}
    assert set(run()) == {1.0}  # it is not looked at again
    training.save(delta="base")
    assert set(run()) == {2.0}


def test_a_save_that_could_not_be_read_for_a_moment_is_loaded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path)
    predictor = inference.create_predictor(inference.Config(str(tmp_path / "model")))
    training.save(delta=True)
    predictor.follow(training.saves)
    assert _predict(predictor) == {1.0}
    training.step()
    training.save(delta=True)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for call in ("open", "pread"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            with pytest.warns(UserWarning, match="was not loaded"):
                found = _predict(predictor)
        assert found == {1.0}
    assert _predict(predictor) == {2.0}


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_follower_has_the_last_successful_save_whichever_call_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    training = Training(tmp_path)
    predictor = inference.create_predictor(inference.Config(str(tmp_path / "model")))
    predictor.follow(training.saves)
    training.save(delta=True)
    saved, step, real = 1.0, 1.0, getattr(os, call)
    for number in range(1, 100):
        calls: list[int] = []

        def sometimes(*args: Any, calls: list[int] = calls, number: int = number, **given: Any) -> Any:
            calls.append(1)
            if len(calls) == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **given)

        training.step()
        step += 1
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(os, call, sometimes)
            with contextlib.suppress(PaddlelikeError):
                training.save(delta=True)
                saved = step
        assert _predict(predictor) == {saved}, f"{call} {number}"
        if len(calls) < number:
            break
    assert saved == step
    assert number > 1
