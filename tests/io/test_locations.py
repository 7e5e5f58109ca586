"""Exports, ``fluid.save`` and states behind URLs; and every reader waits for the save that is under way."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError, SaveError
from paddlelike.io import asynchronous
from paddlelike.io.export import load as loading
from paddlelike.io.incremental import ledger
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.location import locate

pytest.importorskip("fsspec", reason="fsspec is the extra 'remote'")

X = np.arange(8, dtype="float32").reshape(2, 4)


class Net:
    """A small network with its values in a scope of its own."""

    def __init__(self, width: int = 3) -> None:
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.exe = fluid.Executor()
        with fluid.unique_name.guard(), fluid.program_guard(self.main, self.startup):
            hidden = fluid.layers.fc(fluid.data("x", [None, 4]), width)
            self.out = fluid.layers.fc(hidden, 2)
            self.infer = self.main.clone(for_test=True)
            fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(self.out))
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def train(self) -> None:
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed={"x": X})

    def values(self) -> dict[str, np.ndarray]:
        names = [v.name for v in self.main.list_vars() if fluid.io.is_persistable(v)]
        return {name: np.array(self.scope.find_var(name).get_tensor()) for name in names}

    def export(self, path: str, **how: Any) -> None:
        with fluid.scope_guard(self.scope):
            program = self.infer.clone(for_test=True)
            out = program.global_block().var(self.out.name)
            fluid.io.save_inference_model(path, ["x"], [out], self.exe, program, **how)

    def predict(self) -> np.ndarray:
        with fluid.scope_guard(self.scope):
            return self.exe.run(self.infer, feed={"x": X}, fetch_list=[self.out.name])[0]


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    ledger.forget()
    asynchronous.discard_pending()
    yield
    asynchronous.discard_pending()


@pytest.fixture(params=["local", "file", "memory"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}/deep"
    return str(tmp_path / "deep") if request.param == "local" else (tmp_path / "deep").as_uri()


def answer(path: str, **how: Any) -> np.ndarray:
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(path, exe, **how)
        return exe.run(program, feed={feeds[0]: X}, fetch_list=fetches)[0]


@pytest.mark.parametrize("how", [{}, {"model_filename": "m", "params_filename": "p"}], ids=["files", "one"])
def test_an_exported_model_is_found_by_every_form_of_its_path(where: str, how: dict[str, str]) -> None:
    net = Net()
    net.export(where + "/model", **how)
    np.testing.assert_array_equal(answer(where + "/model", **how), net.predict())
    net.train()
    net.export(where + "/model", **how)
    np.testing.assert_array_equal(answer(where + "/model", **how), net.predict())
    assert fluid.io.verify(where + "/model")


def test_the_export_of_another_program_deletes_nothing(where: str) -> None:
    net = Net()
    net.export(where + "/model")
    before = locate(where + "/model").list_names()
    single = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(single, fluid.Program()):
        out = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
        fluid.io.save_inference_model(where + "/model", ["x"], [out], net.exe, single)
    assert locate(where + "/model").list_names() == before
    np.testing.assert_array_equal(answer(where + "/model"), 2 * X)


def test_two_exports_may_share_a_directory(where: str) -> None:
    net = Net()
    net.export(where + "/model")
    net.export(where + "/model", params_filename="params")
    for how in ({}, {"params_filename": "params"}):
        np.testing.assert_array_equal(answer(where + "/model", **how), net.predict())


def test_exporting_a_program_alone_keeps_the_existing_values(where: str) -> None:
    net = Net()
    net.export(where + "/model")
    net.export(where + "/model", program_only=True)
    np.testing.assert_array_equal(answer(where + "/model"), net.predict())


def test_a_missing_model_is_an_error(where: str) -> None:
    exe = fluid.Executor()
    with pytest.raises(ValueError, match="there is no directory"):
        fluid.io.load_inference_model(where + "/none", exe)
    Net().export(where + "/model", model_filename="other")
    with pytest.raises(MissingFileError, match=r"no such file: .*__model__") as caught:
        fluid.io.load_inference_model(where + "/model", exe)
    assert "other" in str(caught.value.hint)


def test_save_and_load_take_every_form_of_a_path(where: str) -> None:
    net, other = Net(), Net()
    with fluid.scope_guard(net.scope):
        fluid.save(net.main, where + "/net")
        fluid.save(net.main, where + "/net-2")  # whose names begin alike
    net.train()
    with fluid.scope_guard(net.scope):
        fluid.save(net.main, where + "/net")
    with fluid.scope_guard(other.scope):
        report = fluid.load(other.main, where + "/net", other.exe)
    assert report.loaded.keys() == net.values().keys()
    for name, value in net.values().items():
        np.testing.assert_array_equal(other.values()[name], value)
    assert fluid.io.verify(where + "/net")
    assert [name for name in locate(where).list_names() if "manifest" not in name] == sorted(
        f"net{number}.{suffix}" for number in ("", "-2") for suffix in ("pdmodel", "pdopt", "pdparams")
    )


@pytest.mark.parametrize("form", ["pickles", "directory", "combined"])
def test_a_state_is_read_from_every_form_of_its_path(where: str, form: str) -> None:
    net, other = Net(), Net()
    net.train()
    variables = [v for v in net.main.list_vars() if fluid.io.is_persistable(v)]
    with fluid.scope_guard(net.scope):
        if form == "pickles":
            fluid.save(net.main, where + "/net")
        else:
            filename = "all" if form == "combined" else None
            fluid.io.save_persistables(net.exe, where + "/net", net.main, filename)
    path = where + ("/net/all" if form == "combined" else "/net")
    state = fluid.io.load_program_state(path, variables if form == "combined" else None)
    assert state.keys() == net.values().keys()
    with fluid.scope_guard(other.scope):
        assert fluid.io.plan_load(where + "/net", other.main, filename="all" if form == "combined" else None)
        fluid.io.set_program_state(other.main, state)
    for name, value in net.values().items():
        np.testing.assert_array_equal(other.values()[name], value)


def test_load_raises_when_there_is_no_model(where: str) -> None:
    net = Net()
    with pytest.raises(MissingFileError, match="neither"):
        fluid.load(net.main, where + "/none", net.exe)
    with pytest.raises(MissingFileError, match="neither"):
        fluid.io.load_program_state(where + "/none")


# Saves that are under way


READERS: dict[str, Callable[[Net, str], object]] = {
    "load_persistables": lambda net, path: fluid.io.load_persistables(net.exe, path, net.main),
    "plan_load": lambda net, path: fluid.io.plan_load(path, net.main).refusal() is None,
    "verify": lambda _, path: bool(fluid.io.verify(path)),
    "load_slice": lambda _, path: len(fluid.io.load_slice(path, "fc_0.w_0", (0, 2))) == 2,
    "load_program_state": lambda _, path: "fc_0.w_0" in fluid.io.load_program_state(path),
    "load": lambda net, path: fluid.load(net.main, path, net.exe),
    "checkpoints": lambda net, path: fluid.io.Checkpoints(path).latest() is None,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_waits_for_the_save_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    net = Net()
    path = str(tmp_path / "m")
    real, go, waits = Transaction.commit, threading.Event(), threading.Event()

    def slow(self: Transaction) -> object:
        assert go.wait(60)
        return real(self)

    class Watched(threading.Event().__class__):  # type: ignore[misc]
        def wait(self, timeout: float | None = None) -> bool:
            waits.set()
            return super().wait(timeout)

    monkeypatch.setattr(Transaction, "commit", slow)
    with fluid.scope_guard(net.scope):
        pending = fluid.io.save_persistables(net.exe, path, net.main, blocking=False)
        pending._finished = Watched()  # nobody waits on it yet: the save stands still

        def let_go() -> None:
            assert waits.wait(60)  # until the reader waits for the save
            go.set()

        helper = threading.Thread(target=let_go)
        helper.start()
        try:
            assert READERS[reader](net, path)
        finally:
            waits.set()
            go.set()
            helper.join()
        pending.wait(60)


def test_a_failed_save_is_reported_after_a_reader_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net()

    def fail(self: Transaction) -> object:
        raise OSError("the disk is on fire")

    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, str(tmp_path / "m"), net.main)
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "commit", fail)
            net.train()
            fluid.io.save_persistables(net.exe, str(tmp_path / "m"), net.main, blocking=False)
            assert fluid.io.load_persistables(net.exe, str(tmp_path / "m"), net.main)
        with pytest.raises(SaveError, match="on fire"):
            fluid.io.save_persistables(net.exe, str(tmp_path / "m"), net.main)


def test_a_load_that_read_files_of_two_saves_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export that is replaced between its program and its parameters."""
    first, second = Net(3), Net(5)
    path = str(tmp_path / "model")
    first.export(path)
    real, calls = loading._load_model, []

    def between(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            second.export(path)
        return real(*arguments, **options)

    monkeypatch.setattr(loading, "_load_model", between)
    np.testing.assert_array_equal(answer(path), second.predict())
    assert len(calls) == 2

    def always(*arguments: Any, **options: Any) -> Any:
        first.export(path)
        return real(*arguments, **options)

    monkeypatch.setattr(loading, "_load_model", always)
    with pytest.raises(LoadError, match="saved again"):
        answer(path)
