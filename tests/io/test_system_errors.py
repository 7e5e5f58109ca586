"""Every public function that reads or writes files, times every call of the system that may fail.

The error is ours, names the system's reason and has its number; nothing is told as damage, absence or an
unknown format. A save that fails leaves all old values, or all new ones where it says that they were saved.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inspection
from paddlelike.errors import PaddlelikeError
from paddlelike.scan import scan

EXE = fluid.Executor()
NUMBERS = [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ESTALE]
CALLS = [
    "open", "read", "pread", "preadv", "scandir", "listdir", "stat", "lstat", "fstat", "builtins.open",
    "file.read",
]  # fmt: skip


def build(number: float = 1.0) -> fluid.Program:
    program = fluid.Program()
    for name in ("a", "b"):
        program.global_block().create_parameter(name=name, shape=[3], dtype="float32")
        fluid.global_scope().var(name).get_tensor().set(np.full(3, number, "float32"), fluid.CPUPlace())
    return program


def get() -> float:
    arrays = [np.asarray(fluid.global_scope().find_var(name).get_tensor()) for name in ("a", "b")]
    assert len({float(value) for array in arrays for value in array}) == 1, "a mix"
    return float(arrays[0][0])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("saved")
    fluid.io.save_persistables(EXE, str(home / "m"), build())
    fluid.io.save_persistables(EXE, str(home / "c"), build(), filename="all")
    fluid.save(build(), str(home / "net"))
    fluid.convert(home / "m", home / "m.npz")
    fluid.convert(home / "m", home / "m.pdparams")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = fluid.layers.fc(fluid.data("x", [None, 3]), 2)
        EXE.run(startup)
        fluid.io.save_inference_model(str(home / "i"), ["x"], [out], EXE, main)
    fluid.bundle.dump({"w": np.ones(3)}, str(home / "b.zip"))
    return home


DOORS: dict[str, Callable[[Path, Path], Any]] = {
    "load_persistables": lambda home, to: fluid.io.load_persistables(EXE, str(home / "m"), build()),
    "combined": lambda home, to: fluid.io.load_persistables(EXE, str(home / "c"), build(), filename="all"),
    "load": lambda home, to: fluid.load(build(), str(home / "net"), EXE),
    "load_program_state": lambda home, to: fluid.load_program_state(str(home / "net")),
    "load_inference_model": lambda home, to: fluid.io.load_inference_model(str(home / "i"), EXE),
    "verify": lambda home, to: fluid.io.verify(home / "m"),
    "inspect": lambda home, to: str(inspection.inspect(home / "m")),
    "inspect a file": lambda home, to: str(inspection.inspect(home / "m.npz")),
    "diff": lambda home, to: str(inspection.compare(home / "m", home / "m.npz")),
    "convert a directory": lambda home, to: fluid.convert(home / "m", to / "x.npz", overwrite=True),
    "convert a file": lambda home, to: fluid.convert(home / "m.npz", to / "x.pdparams", overwrite=True),
    "convert a pickle": lambda home, to: fluid.convert(home / "m.pdparams", to / "x.npz", overwrite=True),
    "convert a state": lambda home, to: fluid.convert(home / "net", to / "x.npz", overwrite=True),
    "bundle.load": lambda home, to: fluid.bundle.load(str(home / "b.zip")),
    "scan": lambda home, to: str(scan(str(home / "i"))),
}


@contextlib.contextmanager
def failing(call: str, number: int, below: Path) -> Iterator[list[Any]]:
    """Let one call of the system fail for everything below a folder, however it is named.

    Yields what has failed so far: a door that does not make the call needs no other error.
    """
    failed: list[Any] = []

    def is_below(what: Any) -> bool:
        if isinstance(what, int):
            try:
                what = str(Path(f"/proc/self/fd/{what}").readlink())
            except OSError:
                return False
        return isinstance(what, str | os.PathLike) and os.fspath(what).startswith(str(below))

    def fail(path: Any = None) -> Any:
        failed.append(path)
        raise OSError(number, os.strerror(number), path if isinstance(path, str) else None)

    class Broken:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def __getattr__(self, name: str) -> Any:
            return fail if name in ("read", "readinto", "readline") else getattr(self.file, name)

    with pytest.MonkeyPatch.context() as patch:
        if call in ("builtins.open", "file.read"):
            real_open = builtins.open

            def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
                if not is_below(path) or isinstance(path, int):
                    return real_open(path, *args, **kwargs)
                return Broken(real_open(path, *args, **kwargs)) if call == "file.read" else fail(str(path))

            patch.setattr(builtins, "open", opened)
            patch.setattr(io, "open", opened)  # pathlib's
        else:
            real = getattr(os, call)
            patch.setattr(
                os,
                call,
                lambda *args, **kw: (
                    fail(args[0])
                    if any(map(is_below, (*args[:1], *(kw[key] for key in kw if key.endswith("dir_fd")))))
                    else real(*args, **kw)
                ),
            )
        yield failed


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("door", DOORS)
def test_a_system_error_keeps_its_reason_and_number(
    saved: Path, tmp_path: Path, door: str, call: str
) -> None:
    for number in NUMBERS:
        raised: BaseException | None = None
        with warnings.catch_warnings(), failing(call, number, saved) as failed:
            warnings.simplefilter("ignore")
            try:
                DOORS[door](saved, tmp_path)
            except Exception as error:
                raised = error
        if not failed:
            assert raised is None
            break
        if raised is None:
            continue
        assert isinstance(raised, PaddlelikeError), f"{os.strerror(number)}: {raised!r}"
        assert os.strerror(number) in str(raised)
        assert raised.errno in (number, None)  # None: an error that lists several files


WRITING = [
    *CALLS, "write", "writev", "mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync", "chmod",
    "fchmod", "ftruncate", "close",
]  # fmt: skip


def save_later(to: Path, number: float) -> None:
    pending = fluid.io.save_persistables(EXE, str(to / "m"), build(number), blocking=False)
    assert isinstance(pending, fluid.io.PendingSave)
    pending.wait()


def load_directory(to: Path) -> None:
    fluid.io.load_persistables(EXE, str(to / "m"), build(0))


def build_model(number: float) -> tuple[fluid.Program, fluid.Variable]:
    program = build(number)
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [3])
        for name in ("a", "b"):
            x = fluid.layers.elementwise_mul(x, program.global_block().var(name))
    return program, x


def export(to: Path, number: float) -> None:
    program, out = build_model(number)
    fluid.io.save_inference_model(str(to / "m"), ["x"], [out], EXE, program)


def convert(to: Path, number: float) -> None:
    fluid.io.save_persistables(EXE, str(to.parent / f"from-{number}"), build(number))
    fluid.convert(to.parent / f"from-{number}", to / "m.npz", overwrite=True)


def load_converted(to: Path) -> None:
    with np.load(to / "m.npz") as found:
        for name in ("a", "b"):
            fluid.global_scope().var(name).get_tensor().set(found[name], fluid.CPUPlace())


Door = tuple[Callable[[Path, float], Any], Callable[[Path], Any]]
SAVES: dict[str, Door] = {
    "save_persistables": (
        lambda to, number: fluid.io.save_persistables(EXE, str(to / "m"), build(number)),
        load_directory,
    ),
    "combined": (
        lambda to, number: fluid.io.save_persistables(EXE, str(to / "m"), build(number), filename="all"),
        lambda to: fluid.io.load_persistables(EXE, str(to / "m"), build(0), filename="all"),
    ),
    "chain": (
        lambda to, number: fluid.io.save_persistables(EXE, str(to / "m"), build(number), delta=True),
        load_directory,
    ),
    "asynchronous": (save_later, load_directory),
    "durable": (
        lambda to, number: fluid.io.save_persistables(EXE, str(to / "m"), build(number), durability="power"),
        load_directory,
    ),
    "save": (
        lambda to, number: fluid.save(build(number), str(to / "m")),
        lambda to: fluid.load(build(0), str(to / "m"), EXE),
    ),
    "export": (export, lambda to: fluid.io.load_inference_model(str(to / "m"), EXE)),
    "checkpoint": (
        lambda to, number: fluid.io.Checkpoints(to / "m").save(EXE, build(number), int(number)),
        lambda to: fluid.io.Checkpoints(to / "m").restore(EXE, build(0)),
    ),
    "convert": (convert, load_converted),
}


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one", "others"])
@pytest.mark.parametrize("call", WRITING)
@pytest.mark.parametrize("door", SAVES)
def test_a_refused_save_says_why_and_leaves_old_or_new_values(
    tmp_path: Path, door: str, call: str, others: bool
) -> None:
    save, load = SAVES[door]
    place = list(SAVES).index(door) + WRITING.index(call)
    chosen = NUMBERS[place % len(NUMBERS)]
    for number in [one for one in NUMBERS if one != chosen] if others else [chosen]:
        to = tmp_path / str(number) / "to"
        to.mkdir(parents=True)
        save(to, 1)
        raised: BaseException | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with failing(call, number, to) as failed:
                try:
                    save(to, 2)
                except Exception as error:
                    raised = error
            load(to)
            found = get()
            save(to, 3)
            load(to)
        assert get() == 3
        if raised is None:
            assert found == 2
            if not failed:
                break
            continue
        assert isinstance(raised, PaddlelikeError), f"{os.strerror(number)}: {raised!r}"
        assert os.strerror(number) in str(raised)
        assert raised.errno in (number, None)
        says_new = "was saved" in str(raised).replace("nothing was saved", "")
        assert found == (2 if says_new else 1), str(raised)
