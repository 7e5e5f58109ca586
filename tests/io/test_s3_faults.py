"""Saves, loads and checkpoints in an S3 that fails at any request: old or new values, and a true error."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from tests.helpers.fork_server import Forked
from tests.io.deltas.tables import Training

pytest.importorskip("s3fs", reason="s3fs is in the extra 'test-all'")
pytest.importorskip("moto.server", reason="moto is in the extra 'test-all'")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of s3fs and moto
]

NAMES = ["a", "b", "c", "deep/er"]
FAULTS = ["error", "throttled", "refused", "lost", "cut"]


class Faults:
    """A WSGI application before the one of S3, which fails at the ``at``-th request."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._turn = threading.Lock()
        self.count, self.at, self.span, self.kind = 0, 0, 1, ""
        self.address = ""
        self.victim: Forked | None = None

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self._turn:
            self.count += 1
            fails = self.at and self.at <= self.count < self.at + self.span
        if not fails:
            return self._application(environ, start)
        if self.kind == "error":
            return _refuse(start, "500 Internal Server Error", "InternalError")
        if self.kind == "throttled":
            return _refuse(start, "503 Slow Down", "SlowDown")
        if self.kind == "refused":
            return _refuse(start, "403 Forbidden", "AccessDenied")
        if self.kind == "cut":
            return self._cut(environ, start)
        if self.kind == "killed before":
            self._kill()
        list(self._application(environ, lambda *answer: None))  # it is carried out, but nobody hears of it
        if self.kind == "killed behind":
            self._kill()
        raise ConnectionAbortedError

    def _kill(self) -> None:
        assert self.victim is not None
        os.kill(self.victim.pid, signal.SIGKILL)
        raise ConnectionAbortedError

    def _cut(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        """Yield half of the answer."""
        data = b"".join(self._application(environ, start))
        yield data[: len(data) // 2]
        raise ConnectionAbortedError


def _refuse(start: Callable[..., Any], status: str, code: str) -> list[bytes]:
    start(status, [("Content-Type", "application/xml")])
    return [f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()]


@pytest.fixture(scope="module")
def server() -> Iterator[Faults]:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *args: Any) -> None: ...

        def connection_dropped(self, *args: Any) -> None:
            self.close_connection = True

    faults = Faults(DomainDispatcherApplication(create_backend_app))
    serving = make_server("127.0.0.1", 0, faults, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    faults.address = f"http://127.0.0.1:{serving.server_port}"
    yield faults
    serving.shutdown()
    thread.join()
    serving.server_close()


def describe(server: Faults) -> dict[str, Any]:
    """Return the options of a client that does not send a request again after a pause."""
    once = {"retries": {"total_max_attempts": 1}}
    return {"endpoint_url": server.address, "key": "test", "secret": "test", "config_kwargs": once}


@pytest.fixture
def bucket(server: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Faults, str]]:
    """A bucket whose client tries each request once."""
    import fsspec
    import s3fs

    options = describe(server)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()
    server.at = 0
    name = uuid.uuid4().hex
    fsspec.filesystem("s3").mkdir(f"bucket-{name}")
    yield server, f"s3://bucket-{name}"
    server.at = 0


class Script:
    """What a script does with one place behind a URL."""

    def __init__(self, url: str) -> None:
        self.url, self.exe, self.main = url, fluid.Executor(), fluid.Program()
        for name in NAMES:
            self.main.global_block().create_parameter(name=name, shape=[3], dtype="float32")
        self.number = 0

    def fill(self, value: float) -> None:
        for name in NAMES:
            fluid.global_scope().var(name).get_tensor().set(np.full(3, value, "float32"), None)

    def values(self) -> set[float]:
        found = (np.array(fluid.global_scope().var(name).get_tensor()) for name in NAMES)
        return {float(each) for array in found for each in array}

    def save(self) -> None:
        fluid.io.save_persistables(self.exe, f"{self.url}/model", self.main)

    def load(self) -> None:
        fluid.io.load_persistables(self.exe, f"{self.url}/model", self.main)

    def save_prefix(self) -> None:
        fluid.save(self.main, f"{self.url}/net")

    def load_prefix(self) -> None:
        fluid.load(self.main, f"{self.url}/net", self.exe)

    def save_checkpoint(self) -> None:
        self.number += 1
        fluid.io.Checkpoints(f"{self.url}/steps", keep_last=2).save(self.exe, self.main, self.number)

    def restore(self) -> None:
        fluid.io.Checkpoints(f"{self.url}/steps", keep_last=2).restore(self.exe, self.main)


FORMS = {
    "save_persistables": (Script.save, Script.load),
    "fluid.save": (Script.save_prefix, Script.load_prefix),
    "Checkpoints": (Script.save_checkpoint, Script.restore),
}


def attempt(script: Script, work: Callable[[Script], None]) -> str | None:
    """Return the error of a call, or None."""
    try:
        work(script)
    except PaddlelikeError as error:
        return str(error)
    return None


def check_save(faults: Faults, script: Script, form: str, kind: str, at: int, span: int) -> None:
    """Save over an old set with a fault at a request; find the old one or the new one, and save again."""
    save, load = FORMS[form]
    script.fill(1.0)
    save(script)
    script.fill(2.0)
    faults.count, faults.at, faults.kind, faults.span = 0, at, kind, span
    error = attempt(script, save)
    faults.at = 0
    assert script.values() == {2.0}
    load(script)
    found = script.values()
    assert found in ([{1.0}, {2.0}] if error else [{2.0}]), (kind, at, error)
    if found == {2.0}:
        assert "cannot be written" not in (error or ""), (kind, at, error)
    script.fill(3.0)
    save(script)
    script.fill(0.0)
    load(script)
    assert script.values() == {3.0}


def check_load(faults: Faults, script: Script, form: str, kind: str, at: int, span: int) -> None:
    """Load with a fault at a request: all values, or none and an error."""
    _, load = FORMS[form]
    script.fill(0.0)
    faults.count, faults.at, faults.kind, faults.span = 0, at, kind, span
    error = attempt(script, load)
    faults.at = 0
    assert script.values() == ({0.0} if error else {3.0}), (kind, at, error)


def count(faults: Faults, work: Callable[[], None]) -> int:
    faults.count = 0
    work()
    return faults.count


@pytest.mark.parametrize("form", FORMS)
def test_a_failing_request_leaves_the_old_or_the_new_values(form: str, bucket: tuple[Faults, str]) -> None:
    faults, url = bucket
    save, load = FORMS[form]
    dice = random.Random(form)
    with fluid.scope_guard(fluid.Scope()):
        script = Script(url)
        for value in (1.0, 2.0):
            script.fill(value)
            save(script)
        script.fill(3.0)
        of_save, of_load = count(faults, lambda: save(script)), count(faults, lambda: load(script))
        assert min(of_save, of_load) > 5
        for kind in FAULTS:
            span = dice.choice([1, 1000])
            check_save(faults, script, form, kind, dice.randint(1, of_save), span)
            check_load(faults, script, form, kind, dice.randint(1, of_load), span)


def compact_again(training: Training, url: str) -> None:
    """Compact a directory that holds the values of a training, after a compaction that failed."""
    assert training.loaded(url) == training.values()
    fluid.io.compact(url)
    assert training.loaded(url, verify=True) == training.values()
    assert fluid.io.compact(url).written == 0


def save_chain(place: str) -> Training:
    """Save a chain of two links, and return the training that has its values."""
    training = Training()
    training.save(place, delta=True)
    training.step(1)
    training.save(place, delta=True)
    return training


@pytest.mark.parametrize("kind", FAULTS)
def test_a_compaction_whose_requests_fail_loses_nothing(kind: str, bucket: tuple[Faults, str]) -> None:
    """Together the kinds fail at every request."""
    faults, url = bucket
    save_chain(f"{url}/counted")
    requests = count(faults, lambda: fluid.io.compact(f"{url}/counted"))
    assert requests > 10
    for at in range(1 + FAULTS.index(kind), requests + 1, len(FAULTS)):
        place = f"{url}/{at}"
        training = save_chain(place)
        faults.count, faults.at, faults.kind, faults.span = 0, at, kind, 1 if at % 2 else 1000
        error = None
        try:
            assert fluid.io.compact(place).written
        except PaddlelikeError as failed:
            error = failed
        faults.at = 0
        if error is None:
            assert fluid.io.compact(place).written == 0, (kind, at)
        compact_again(training, place)


def start_client(address: str, module: str, faults: Faults, **given: str) -> Forked:
    """Start a process that uses the store; it is the victim of kills."""
    faults.victim = Forked(address, module, os.environ | {"FSSPEC_S3": json.dumps(describe(faults))} | given)
    return faults.victim


KILLS = ["killed before", "killed behind"]


@pytest.mark.parametrize("kind", KILLS)
def test_a_compaction_that_is_killed_at_a_request_loses_nothing(
    kind: str, bucket: tuple[Faults, str], fork_server: str
) -> None:
    faults, url = bucket
    save_chain(f"{url}/counted")
    requests, killed = count(faults, lambda: fluid.io.compact(f"{url}/counted")), 0
    for at in range(requests - KILLS.index(kind), 0, -requests // 6):  # the last ones commit
        training = save_chain(place := f"{url}/{at}")
        faults.count, faults.at, faults.kind, faults.span = 0, at, kind, 1
        with closing(start_client(fork_server, "tests.io.deltas.compacting", faults, PLACE=place)) as process:
            code = process.wait(120)
            assert code in (0, -signal.SIGKILL), process.errors
            killed += code != 0
        faults.at = 0
        compact_again(training, place)
    assert killed > 2


def test_a_training_whose_store_fails_or_that_is_killed_ends_with_the_same_bits(
    bucket: tuple[Faults, str], fork_server: str, tmp_path: Path
) -> None:
    faults, url = bucket

    def train(name: str) -> Any:
        given = {"ROOT": str(tmp_path / name), "MODEL": f"{url}/{name}", "SOURCE": "memory", "SAMPLES": "110"}
        with closing(start_client(fork_server, "tests.training.resumed", faults, **given)) as process:
            code = process.wait(600)  # a busy machine answers a request in tenths of a second
            faults.at = 0
            return code, process.errors

    faults.count = 0
    assert train("whole") == (0, "")
    requests, dice = faults.count, random.Random(1)
    for kind in (*FAULTS, *KILLS):
        faults.count, faults.at, faults.kind, faults.span = 0, dice.randint(1, requests // 2), kind, 1000
        code, errors = train("hurt")
        assert code in (0, -signal.SIGKILL) or "paddlelike.errors." in errors, errors
    assert train("hurt")[0] == 0
    assert (tmp_path / "hurt" / "final").read_text() == (tmp_path / "whole" / "final").read_text()
