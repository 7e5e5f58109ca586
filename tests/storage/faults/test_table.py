"""Every file that is read beside the values, times every fault: what is said. Nothing is silent.

A reader either raises an error that names the file or its save, or gives the right values, with a warning
where the file was needed for them; what the system refuses to read is an error, and never "nothing there".
"""

from __future__ import annotations

import builtins
import errno
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import training
from paddlelike.errors import PaddlelikeError
from paddlelike.io.incremental import ledger
from paddlelike.storage.local import generation, journal
from tests.io.checkpoints.test_damage import CODES, FAULTS

EXE = fluid.Executor()
ROWS = 4_000


def build() -> fluid.Program:
    program = fluid.Program()
    for name, shape in (("a", [3]), ("table", [ROWS, 16])):
        program.global_block().create_parameter(name=name, shape=shape, dtype="float32")
    return program


def put(number: float) -> None:
    for name, shape in (("a", (3,)), ("table", (ROWS, 16))):
        fluid.global_scope().var(name).get_tensor().set(np.full(shape, number, "float32"), fluid.CPUPlace())


def get() -> float:
    values = {
        float(v)
        for name in ("a", "table")
        for v in np.array(fluid.global_scope().find_var(name).get_tensor()).ravel()
    }
    assert len(values) == 1, f"a mix: {values}"
    return values.pop()


def save(home: Path, number: float, **options: Any) -> None:
    put(number)
    fluid.io.save_persistables(EXE, str(home / "m"), build(), **options)


def load(home: Path) -> float:
    fluid.io.load_persistables(EXE, str(home / "m"), build())
    return get()


def load_rows(home: Path) -> float:
    return float(fluid.io.load_slice(home / "m", "table", (7, 9)).mean())


def verify(home: Path) -> float:
    found = fluid.io.verify(home / "m")
    assert found, str(found)
    return load(home)


def save_state(home: Path) -> None:
    put(1)
    fluid.save(build(), str(home / "net"))


def load_state(home: Path) -> float:
    put(-1)
    fluid.load(build(), str(home / "net"), EXE)
    return get()


def export(home: Path) -> None:
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        out = fluid.layers.scale(fluid.data("x", [None, 3]), 3.0)
        fluid.io.save_inference_model(str(home / "m"), ["x"], [out], EXE, program)


def predict(home: Path) -> float:
    program, _, fetches = fluid.io.load_inference_model(str(home / "m"), EXE)
    (out,) = EXE.run(program, feed={"x": np.full((1, 3), 1 / 3, "float32")}, fetch_list=fetches)
    return float(np.asarray(out).mean())


def chain(home: Path) -> None:
    save(home, 0.0, delta="base")
    put(0)
    with fluid.global_scope().find_var("table").get_tensor().writing() as table:
        table[:5] = 1
    fluid.global_scope().find_var("a").get_tensor().set(np.zeros(3, "float32"), fluid.CPUPlace())
    fluid.io.save_persistables(EXE, str(home / "m"), build(), delta=True)


def load_chain(home: Path) -> float:
    fluid.io.load_persistables(EXE, str(home / "m"), build())
    table = np.array(fluid.global_scope().find_var("table").get_tensor())
    assert set(np.unique(table[5:])) == {0.0}
    return float(table[:5].mean())


def killed(work: Callable[[], object]) -> None:
    process = os.fork()
    if not process:
        work()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


def die(*args: Any, **kwargs: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(home: Path) -> None:
    """Leave a save over a save in the middle of a commit by journal: its end is 1."""
    save(home, 0)

    def work() -> None:
        generation.exchange = lambda *_: (_ for _ in ()).throw(OSError(errno.EINVAL, "no exchange"))
        journal._replay = die
        save(home, 1)

    killed(work)
    put(-1)


def leave_staged(home: Path) -> None:
    """Leave a save over a save that was swapped in, but is not known to be on the disk."""
    save(home, 0)

    def work() -> None:
        generation.Generation.move_late = die
        save(home, 1)

    killed(work)
    put(-1)


def leave_lock(home: Path) -> None:
    save(home, 1)
    (home / ".m.saving-directory").mkdir()
    (home / ".m.saving-directory" / "lock").write_bytes(b"1 elsewhere 5 0123456789abcdef\n")


def save_again(home: Path) -> float:
    put(1)
    fluid.io.save_persistables(EXE, str(home / "m"), build(), wait=0)
    return load(home)


def train(home: Path) -> None:
    _make_trainer().save_checkpoint(home / "m", {"value": 1})


def resume(home: Path) -> float:
    return float(_make_trainer().restore_from_checkpoint(home / "m")["value"])


def _make_trainer() -> training.Trainer:
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        out = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        loss = fluid.layers.mean(out)
        return training.Trainer(out, (loss, loss), fluid.optimizer.SGD(0.1))


def log(home: Path) -> None:
    for step in range(1, 20):
        fluid.io.TrainingLog(home / "m").write(step, loss=1.0)


def read_log(home: Path) -> float:
    loss = fluid.io.TrainingLog(home / "m").curves().get("loss")
    return 0.0 if loss is None else len(loss.steps) / 19 // 1


def best(home: Path) -> None:
    checkpoints = fluid.io.Checkpoints(home / "m", keep_last=1, keep_best=1)
    for step, (number, metric) in enumerate([(1, 0.1), (2, 0.5)], 1):
        put(number)
        checkpoints.save(EXE, build(), step, metric=metric)


def restore_best(home: Path) -> float:
    found = fluid.io.Checkpoints(home / "m", keep_last=1, keep_best=1).best()
    assert found is not None
    return float(found.step)


def upload(home: Path) -> None:
    """Save behind a URL, whose store keeps its objects as files."""
    pytest.importorskip("fsspec", reason="the store of local:// is fsspec's")
    put(1)
    fluid.io.save_persistables(EXE, f"local://{home}/m", build())


def download(home: Path) -> float:
    put(-1)
    fluid.io.load_persistables(EXE, f"local://{home}/m", build())
    return get()


def download_rows(home: Path) -> float:
    return float(fluid.io.load_slice(f"local://{home}/m", "table", (7, 9)).mean())


def upload_again(home: Path) -> float:
    upload(home)
    return download(home)


class Reader(NamedTuple):
    """A file, who writes it, and who reads it; 1 is what is right."""

    write: Callable[[Path], object]
    read: Callable[[Path], float]
    file: str
    free: tuple[str, ...] = ()  # faults that may pass without a word: the values are right without the file
    instead: float = 0.0  # what may be taken instead, if that is said


TORN = ("empty", "cut", "missing")  # no commit took place, or it is told from the files themselves
READERS = {
    "manifest, load": Reader(lambda home: save(home, 1), load, "m/__manifest__", ("missing",)),
    "manifest, slice": Reader(lambda home: save(home, 1), load_rows, "m/__manifest__", ("missing",)),
    "manifest, verify": Reader(lambda home: save(home, 1), verify, "m/__manifest__"),
    "manifest, next save": Reader(lambda home: save(home, 1), save_again, "m/__manifest__", tuple(FAULTS)),
    "state, manifest": Reader(save_state, load_state, "net.pdmanifest", ("missing",)),
    "state, values": Reader(save_state, load_state, "net.pdparams"),
    "model": Reader(export, predict, "m/__model__"),
    "model, manifest": Reader(export, predict, "m/__manifest__", ("missing",)),
    "chain, manifest": Reader(chain, load_chain, "m/__manifest__"),
    "chain, link": Reader(chain, load_chain, "m/__deltas__/*"),
    "journal, load": Reader(interrupt, load, ".m.saving-directory/journal", TORN),
    "journal, save": Reader(interrupt, save_again, ".m.saving-directory/journal", TORN),
    "staged, load": Reader(leave_staged, load, ".m.saving-directory/staged", tuple(FAULTS)),
    "staged, save": Reader(leave_staged, save_again, ".m.saving-directory/staged", tuple(FAULTS)),
    "lock": Reader(leave_lock, save_again, ".m.saving-directory/lock", tuple(FAULTS)),
    "session": Reader(train, resume, "m/__manifest__"),
    "log": Reader(log, read_log, "m", TORN),
    "remote marker, load": Reader(upload, download, "m.manifest.json.1", TORN),
    "remote marker, slice": Reader(upload, download_rows, "m.manifest.json.1", TORN),
    "remote marker, next save": Reader(upload, upload_again, "m.manifest.json.1", tuple(FAULTS)),
    "remote manifest": Reader(upload, download, "m/__manifest__", tuple(FAULTS)),
    "remote values": Reader(upload, download, "m/table"),
    "remote values, slice": Reader(upload, download_rows, "m/table", ("a bit",)),  # of other rows
    "best": Reader(best, restore_best, "m/step-00000001/__manifest__", (), 2.0),
}


@pytest.fixture(autouse=True)
def scope() -> Any:
    ledger.forget()
    with fluid.scope_guard(fluid.Scope()):
        yield


def look(reader: Reader, home: Path) -> tuple[float | None, str]:
    """Return the value that a reader gives, and everything that is said."""
    ledger.forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found: float | None = reader.read(home)
            said = ""
        except (PaddlelikeError, AssertionError) as error:
            found, said = None, str(error)
    return found, " ".join([said, *(str(one.message) for one in caught)])


def find(reader: Reader, home: Path) -> Path:
    (path, *_) = sorted(path for path in home.glob(reader.file) if path.is_file())
    return path


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_kind_of_damage_is_reported(name: str, fault: str, tmp_path: Path) -> None:
    if name.startswith("remote") and fault == "a pipe":
        pytest.skip("no store has pipes")
    reader = READERS[name]
    reader.write(tmp_path)
    path = find(reader, tmp_path)
    FAULTS[fault](path)
    found, said = look(reader, tmp_path)
    no_commit = reader.write in (interrupt, log) and fault in TORN
    if found != 1 and not no_commit:
        assert str(tmp_path) in said, f"{found}, and it said {said!r}"
        assert found in (None, reader.instead)
    elif fault not in reader.free:
        assert str(tmp_path) in said, f"{found}, and it said {said!r}"


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", READERS)
def test_a_system_error_in_any_call_is_an_error(
    name: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = READERS[name]
    reader.write(tmp_path)
    target, refused = str(find(reader, tmp_path)), []
    real = {"os": os.open, "builtins": builtins.open}

    def make(which: str) -> Callable[..., Any]:
        def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
            inside = kwargs.get("dir_fd") is None and isinstance(path, (str, os.PathLike))
            if inside and os.fspath(path) == target:
                refused.append(path)
                raise OSError(code, os.strerror(code), target)
            return real[which](path, *args, **kwargs)

        return opened

    monkeypatch.setattr(os, "open", make("os"))
    monkeypatch.setattr(builtins, "open", make("builtins"))
    found, said = look(reader, tmp_path)
    if name == "lock" or not refused:
        assert found in (None, 1.0)
        return
    assert found is None or os.strerror(code) in said, f"{found}, and it said {said!r}"
    assert os.strerror(code) in said, said
    assert str(tmp_path) in said
