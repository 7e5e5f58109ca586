"""The loaders of directories as fuzzing targets: one file changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.core import Scope, VarType, global_scope, numpy_dtype, scope_guard
from paddlelike.errors import PaddlelikeError
from paddlelike.framework import Program
from paddlelike.io.calls import is_persistable
from tests.fuzz import readers
from tests.fuzz.guard import Fault
from tests.fuzz.makers import program_maker, stream_maker
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target, attempt
from tests.helpers.golden_data import GOLDEN

__all__ = ["LOADERS", "ROOM", "copy_networks", "executor", "names_a_file", "program_of", "watched_scope"]

ROOM: Final[dict[str, Any]] = {"weight": 1, "memory": 200, "base": 2 << 20}

_SMALL: Final = ("fit_a_line", "sentiment_lstm")
_PARTS: Final = ("persistables", "combined", "fluid_save", "inference", "inference_combined")
_NAME: Final = b"\0"  # between the path of the changed file and its bytes


@cache
def program_of(network: str) -> Program:
    return Program.parse_from_string((GOLDEN / network / "programs" / "main_train.pb").read_bytes())


@cache
def executor() -> Any:
    return fluid.Executor()


@cache
def _places(*parts: str) -> tuple[str, ...]:
    """The files that are changed, relative to the golden directory."""
    found = [path for net in _SMALL for part in parts for path in sorted((GOLDEN / net / part).rglob("*"))]
    return tuple(str(path.relative_to(GOLDEN)) for path in found if path.is_file())


# One file of a directory is changed


def copy_networks(root: Path) -> None:
    for network in _SMALL:
        for part in _PARTS:
            shutil.copytree(GOLDEN / network / part, root / network / part)


def _maker(*parts: str) -> Callable[[Random], bytes]:
    def make(rng: Random) -> bytes:
        place = rng.choice(_places(*parts))
        return place.encode() + _NAME + _changed(rng, place)

    return make


def _changed(rng: Random, place: str) -> bytes:
    real = (GOLDEN / place).read_bytes()
    kind = rng.random()
    if kind < 0.6:
        return mutate(rng, real, _others())
    if place.endswith(("__model__", "/model")):
        return program_maker.change_program(rng, real) if kind < 0.9 else program_maker.make_program(rng)
    if "combined" in place:
        return stream_maker.combined(rng)
    return readers.make_pickle(rng) if "fluid_save" in place else stream_maker.dense(rng)


@cache
def _others() -> tuple[bytes, ...]:
    return tuple((GOLDEN / place).read_bytes() for place in _places(*_PARTS))


def names_a_file(data: bytes) -> bool:
    """Whether an input of these targets begins with the path of a file there is."""
    place, end, _ = data.partition(_NAME)
    return bool(end) and place in {known.encode() for known in _places(*_PARTS)}


def _put(data: bytes, root: Path) -> None:
    place, _, content = data.partition(_NAME)
    (root / place.decode()).write_bytes(content)


def _restore(data: bytes, root: Path) -> None:
    place = data.partition(_NAME)[0].decode()
    shutil.copyfile(GOLDEN / place, root / place)


def _where(data: bytes, root: Path) -> tuple[str, Path, int]:
    """Network, the changed file, and a number that the input decides."""
    place = data.partition(_NAME)[0].decode()
    return place.split("/")[0], root / place, sum(data)


# The scope stays as it was when a load is refused


@contextmanager
def watched_scope(program: Program) -> Iterator[None]:
    with scope_guard(Scope()):
        scope = global_scope()
        for variable in program.list_vars():
            if is_persistable(variable):
                _fill(scope, variable)
        before = _snapshot(scope)
        try:
            yield
        except PaddlelikeError:
            if _snapshot(scope) != before:
                raise Fault("the load was refused, but the scope is another") from None
            raise
        for variable in program.list_vars():
            if is_persistable(variable) and variable.type == VarType.LOD_TENSOR:
                _check_fit(scope, variable)


def _fill(scope: Scope, variable: Any) -> None:
    shape = [2 if dim < 0 else dim for dim in variable.shape]
    if variable.type == VarType.LOD_TENSOR and np.prod(shape, dtype=float) < 1e6:
        array = np.full(shape, 7).astype(numpy_dtype(variable.dtype))
        scope.var(variable.name).get_tensor().set(array)


def _snapshot(scope: Scope) -> dict[str, Any]:
    held = {}
    for name in scope.local_var_names():
        value = scope.var(name).value
        array = getattr(value, "array", None)
        held[name] = (id(value), scope.var(name).origin, None if array is None else array.tobytes())
    return held


def _check_fit(scope: Scope, variable: Any) -> None:
    holder = scope.find_var(variable.name)
    array = None if holder is None else getattr(holder.value, "array", None)
    if array is not None and variable.shape:
        fits = len(variable.shape) == array.ndim and all(
            want in (-1, have) for want, have in zip(variable.shape, array.shape, strict=False)
        )
        if not fits or array.dtype != numpy_dtype(variable.dtype):
            raise Fault(f"{variable.name} {variable.shape} became {array.dtype} {array.shape}")


def _persistables(data: bytes, root: Path) -> None:
    network, path, number = _where(data, root)
    directory, program, exe = str(path.parent), program_of(network), executor()
    others = (
        lambda: fluid.io.load_vars(exe, directory, program, predicate=is_persistable, strict=False),
        lambda: fluid.io.load_vars(exe, directory, program, predicate=is_persistable, lazy=True),
        lambda: fluid.io.load_vars(exe, directory, program, predicate=is_persistable, verify=True),
        lambda: str(fluid.io.plan_load(directory, program)),
        lambda: fluid.io.load_program_state(directory),
        lambda: fluid.io.load_slice(directory, path.name, rows=(number % 7 - 1, number % 5)),
        lambda: fluid.io.load_params(exe, directory, program),
    )
    with scope_guard(Scope()):
        attempt(others[number % len(others)])
    with watched_scope(program):
        fluid.io.load_persistables(exe, directory, program)


def _combined(data: bytes, root: Path) -> None:
    network, path, number = _where(data, root)
    program, exe = program_of(network), executor()
    what = is_persistable if path.name == "all_persistables" else fluid.io.is_parameter
    variables = [v for v in program.list_vars() if what(v)]
    others = (
        lambda: fluid.io.load_program_state(str(path), var_list=variables),
        lambda: fluid.io.load_vars(exe, None, program, vars=variables, filename=path.read_bytes()),
        lambda: str(fluid.io.plan_load(str(path.parent), program, filename=path.name)),
        lambda: fluid.load(program, str(path), exe, variables),
    )
    with scope_guard(Scope()):
        attempt(others[number % len(others)])
    with watched_scope(program):
        fluid.io.load_vars(exe, str(path.parent), program, vars=variables, filename=path.name)


def _saved(data: bytes, root: Path) -> None:
    network, path, _ = _where(data, root)
    program, prefix = program_of(network), str(path.parent / "model")
    values = attempt(lambda: fluid.io.load_program_state(prefix))
    if values is not None:
        with scope_guard(Scope()):
            attempt(lambda: fluid.io.fit_state(values, program))
    with watched_scope(program):
        fluid.load(program, prefix)


def _inference(data: bytes, root: Path) -> None:
    _, path, number = _where(data, root)
    model, params = ("model", "params") if "combined" in path.parent.name else (None, None)
    if model is not None and number % 3 == 0:
        given = [(path.parent / name).read_bytes() for name in (model, params)]
        with scope_guard(Scope()):
            attempt(lambda: fluid.io.load_inference_model(None, executor(), *given))
    with watched_scope(Program()):
        program, feeds, fetches = fluid.io.load_inference_model(str(path.parent), executor(), model, params)
    if not all(isinstance(name, str) for name in feeds) or not all(
        program.global_block().has_var(v.name) for v in fetches
    ):
        raise Fault(f"feeds {feeds}, fetches {fetches}")


_PUT: Final[dict[str, Any]] = {"set_up": copy_networks, "prepare": _put, "clean": _restore}

LOADERS: Final = (
    Target("load_persistables", _maker("persistables"), _persistables, **_PUT, **ROOM),
    Target("load_combined", _maker("combined"), _combined, **_PUT, **ROOM),
    Target("fluid_load", _maker("fluid_save"), _saved, **_PUT, **ROOM),
    Target("load_inference", _maker("inference", "inference_combined"), _inference, **_PUT, weight=1,
           memory=400, base=2 << 20),
)  # fmt: skip
