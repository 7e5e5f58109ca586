"""The loaders of directories as fuzzing targets: one file changed, its names or its links."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.core.scope import Scope, global_scope, scope_guard
from paddlelike.errors import PaddlelikeError
from paddlelike.framework.program import Program
from paddlelike.io.rules import Rules, match_all
from paddlelike.io.select import is_persistable
from paddlelike.storage import manifest
from paddlelike.storage.journal import recover
from paddlelike.storage.local import list_names
from paddlelike.storage.names import relative_path
from tests.fuzz import program_maker, readers, stream_maker, tree_maker
from tests.fuzz.guard import Fault
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import Target, attempt
from tests.golden_data import GOLDEN

__all__ = ["LOADERS", "names_a_file"]

_SMALL: Final = ("fit_a_line", "sentiment_lstm")
_PARTS: Final = ("persistables", "combined", "fluid_save", "inference", "inference_combined")
_NAME: Final = b"\0"  # between the path of the changed file and its bytes


@cache
def _program(network: str) -> Program:
    return Program.parse_from_string((GOLDEN / network / "programs" / "main_train.pb").read_bytes())


@cache
def _executor() -> Any:
    return fluid.Executor(fluid.CPUPlace())


@cache
def _places(*parts: str) -> tuple[str, ...]:
    """The files that are changed, relative to the golden directory."""
    found = [path for net in _SMALL for part in parts for path in sorted((GOLDEN / net / part).rglob("*"))]
    return tuple(str(path.relative_to(GOLDEN)) for path in found if path.is_file())


# One file of a directory is changed


def _copies(root: Path) -> None:
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
        return mutated(rng, real, _others())
    if place.endswith(("__model__", "/model")):
        return program_maker.changed(rng, real) if kind < 0.9 else program_maker.made(rng)
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
def _watched_scope(program: Program) -> Iterator[None]:
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
    directory, program, exe = str(path.parent), _program(network), _executor()
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
    with _watched_scope(program):
        fluid.io.load_persistables(exe, directory, program)


def _combined(data: bytes, root: Path) -> None:
    network, path, number = _where(data, root)
    program, exe = _program(network), _executor()
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
    with _watched_scope(program):
        fluid.io.load_vars(exe, str(path.parent), program, vars=variables, filename=path.name)


def _saved(data: bytes, root: Path) -> None:
    network, path, _ = _where(data, root)
    program, prefix = _program(network), str(path.parent / "model")
    values = attempt(lambda: fluid.io.load_program_state(prefix))
    if values is not None:
        with scope_guard(Scope()):
            attempt(lambda: fluid.io.fit_state(values, program))
    with _watched_scope(program):
        fluid.load(program, prefix)


def _inference(data: bytes, root: Path) -> None:
    _, path, number = _where(data, root)
    model, params = ("model", "params") if "combined" in path.parent.name else (None, None)
    if model is not None and number % 3 == 0:
        given = [(path.parent / name).read_bytes() for name in (model, params)]
        with scope_guard(Scope()):
            attempt(lambda: fluid.io.load_inference_model(None, _executor(), *given))
    with _watched_scope(Program()):
        program, feeds, fetches = fluid.io.load_inference_model(str(path.parent), _executor(), model, params)
    if not all(isinstance(name, str) for name in feeds) or not all(
        program.global_block().has_var(v.name) for v in fetches
    ):
        raise Fault(f"feeds {feeds}, fetches {fetches}")


# Manifests, journals, rules


@cache
def _manifest() -> bytes:
    directory = GOLDEN / "fit_a_line" / "persistables"
    records = {}
    for path in sorted(directory.iterdir()):
        checksum = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        facts = {"variable": path.name, "kind": "lod_tensor", "dtype": "FP32", "shape": [13, 1], "lod": []}
        records[path.name] = manifest.Record(path.stat().st_size, checksum, (1, 2), facts)
    return manifest.encode(records, program="ab" * 32)


_JSON: Final = (
    None, True, -1, 0, 2**63, 10**40, 1.5, float("inf"), float("nan"), "", "..", "../x", "/etc/passwd", "a\0b", "x" * 500,
    [], {}, [[]] * 3, {"a": {}}, [1, 2], ["x"], "\ud800", "sha256", -(10**400), 10**5000,
)  # fmt: skip


def _json_changed(rng: Random, text: bytes) -> bytes:
    """Some values and keys of a JSON text replaced."""
    held = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = held
        while isinstance(at, dict | list) and at and rng.random() < 0.8:
            keys = list(at) if isinstance(at, dict) else range(len(at))
            key = rng.choice(keys)
            if not isinstance(at[key], dict | list) or rng.random() < 0.3:
                value = copy.deepcopy(rng.choice(_JSON))
                if isinstance(at, dict) and rng.random() < 0.3:
                    at[str(value)[:600] if not isinstance(value, int) else "7"] = at.pop(key)
                elif rng.random() < 0.15:
                    del at[key]
                else:
                    at[key] = value
                break
            at = at[key]
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(held).encode()
    finally:
        sys.set_int_max_str_digits(limit)


def _deep_json(rng: Random) -> bytes:
    depth = rng.choice((100, 990, 5000, 30000))
    return rng.choice((b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth))


def _make_manifest(rng: Random) -> bytes:
    real = _manifest()
    kind = rng.random()
    if kind < 0.3:
        return mutated(rng, real, ())
    tail = manifest._TAIL
    body = real[:-tail] + b"}"
    made = (
        _json_changed(rng, body) if kind < 0.85 else _deep_json(rng) if kind < 0.9 else mutated(rng, body, ())
    )
    made = made[:-1]
    return made + manifest._tail(made)  # whoever means harm knows how to sum up


def _put_manifest(data: bytes, root: Path) -> None:
    (root / "fit_a_line" / "persistables.manifest.json").write_bytes(data)


def _manifests(data: bytes, root: Path) -> None:
    directory = str(root / "fit_a_line" / "persistables")
    said = str(fluid.io.verify(directory))
    if "\0" in said:
        raise Fault(f"said: {said!r}")
    program = _program("fit_a_line")
    with scope_guard(Scope()):
        attempt(lambda: fluid.io.load_persistables(_executor(), directory, program))
    with scope_guard(Scope()):
        attempt(
            lambda: fluid.io.load_vars(_executor(), directory, program, predicate=is_persistable, verify=True)
        )
    manifest.decode(data)


_STATE: Final = {"checkpoint": {"step": 7, "metric": 0.5, "random": 12345, "user": {"epoch": 1}}}


def _make_checkpoint(rng: Random) -> bytes:
    made = _manifest()[: -manifest._TAIL] + b',"state":' + _json_changed(rng, json.dumps(_STATE).encode())
    return made + manifest._tail(made)


def _set_up_checkpoints(root: Path) -> None:
    for step in (7, 8):
        shutil.copytree(GOLDEN / "fit_a_line" / "persistables", root / f"step-{step:08d}")
    state = {"checkpoint": _STATE["checkpoint"] | {"step": 8}}
    good = manifest.encode(manifest.decode(_manifest()).files, state=state)
    (root / "step-00000008.manifest.json").write_bytes(good)


def _put_checkpoint(data: bytes, root: Path) -> None:
    (root / "step-00000007.manifest.json").write_bytes(data)


def _checkpoints(data: bytes, root: Path) -> None:
    found = fluid.io.Checkpoints(root)
    if str(root / "step-00000008") not in [checkpoint.path for checkpoint in found.list()]:
        raise Fault("a bad checkpoint hides a good one")
    found.latest()
    found.best()
    program = _program("fit_a_line")
    for step in (None, 7):
        with _watched_scope(program):
            found.restore(_executor(), program, step)


_JOURNAL: Final = json.dumps(
    {"direction": "forward", "format": 1, "inside": False, "paths": ["fc_0.w_0", "sub/new"], "kept": [True, False],
     "folders": ["sub"], "manifest": True, "sync": False}
).encode()  # fmt: skip


_OUTSIDE: Final = ("outside/w", "fc_0.w_0", "sub")  # where a journal leads that is believed too much


def _make_journal(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.25:
        return mutated(rng, _JOURNAL, ())
    journal = _JOURNAL
    for one, other in ((b'"forward"', b'"back"'), (b'"inside": false', b'"inside": true')):
        if rng.random() < 0.3:
            journal = journal.replace(one, other)
    return _json_changed(rng, journal) if kind < 0.95 else _deep_json(rng)


def _put_journal(data: bytes, root: Path) -> None:
    base = root / "model"
    for name in ("model", "model.saving", "outside"):
        shutil.rmtree(root / name, ignore_errors=True)
    shutil.copytree(GOLDEN / "fit_a_line" / "persistables", base)
    for name in ("new", "old"):
        (root / "model.saving" / name / "sub").mkdir(parents=True)
    (root / "model.saving" / "new" / "fc_0.w_0").write_bytes(b"new")
    (root / "model.saving" / "new" / "sub" / "new").write_bytes(b"new")
    (root / "model.saving" / "old" / "0").write_bytes(b"old")
    (root / "outside").mkdir()
    for place in _OUTSIDE:
        (root / place).write_bytes(b"outside")
    (root / "model.journal").write_bytes(data)


def _journals(data: bytes, root: Path) -> None:
    try:
        recover(str(root / "model"))
    finally:
        there = {str(path.relative_to(root)) for path in root.rglob("*")}
        foreign = {path for path in there if not path.startswith("model")}
        if foreign != {"outside", *_OUTSIDE} or any((root / p).read_bytes() != b"outside" for p in _OUTSIDE):
            raise Fault(f"files elsewhere were changed: {sorted(foreign)}")


_RULES: Final = (
    Rules().rename("encoder_*.weight", "fc_*.w_0", transpose=True).skip("cls_*").init("*", 0.5)
    .rename(["q", "k"], "qk", concat=0).rename("re:(a+)_(b)", r"\2_\1", rows=(0, 3), cast=True)
)  # fmt: skip


@cache
def _rules() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rules.json"
        _RULES.save(path)
        return path.read_bytes()


def _make_rules(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.4:
        return mutated(rng, _rules(), ())
    return _json_changed(rng, _rules()) if kind < 0.95 else _deep_json(rng)


def _put_rules(data: bytes, root: Path) -> None:
    (root / "rules.json").write_bytes(data)


def _read_rules(data: bytes, root: Path) -> None:
    rules = Rules.load(root / "rules.json")
    str(rules)
    for rule in rules:
        for name in ("encoder_3.weight", "aaa_b", "fc_0.w_0", "q"):
            attempt(lambda rule=rule, name=name: match_all(rule, name))
    program = _program("fit_a_line")
    directory = str(root / "fit_a_line" / "persistables")
    attempt(lambda: _load_by(rules, directory, program))


def _load_by(rules: Rules, directory: str, program: Program) -> None:
    with _watched_scope(program):
        fluid.io.load_vars(
            _executor(), directory, program, predicate=is_persistable, strict=False, rules=rules
        )


# Names and links


def _set_up_outside(root: Path) -> None:
    _copies(root)
    (root / "outside").mkdir()
    shutil.copyfile(GOLDEN / "fit_a_line/persistables/fc_0.b_0", root / "outside" / "w")
    (root / "outside" / "secret").write_text("secret\n")


def _fresh_model(data: bytes, root: Path) -> None:
    for path in (*root.glob("model*"), *root.glob("new*")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(GOLDEN / "fit_a_line" / "inference", root / "model")
    shutil.copyfile(GOLDEN / "fit_a_line/persistables/learning_rate_0", root / "model" / "learning_rate_0")


def _names(data: bytes, root: Path) -> None:
    name = data.decode("utf-8", "surrogateescape")
    directory = root / "model"
    path = attempt(lambda: relative_path(name))
    if path is not None and not (directory / path).resolve().is_relative_to(directory):
        raise Fault(f"{name!r} leads to {path!r}")
    program = Program()
    variable = program.global_block().create_var(name=name, shape=[1], dtype="float32", persistable=True)
    attempt(lambda: fluid.io.load_slice(str(directory), name, rows=(0, 1)))
    with scope_guard(Scope()):
        global_scope().var(name).get_tensor().set(np.ones(1, "float32"))
        attempt(lambda: fluid.io.save_vars(_executor(), str(root / "new"), program, vars=[variable]))
        attempt(lambda: fluid.io.save_vars(_executor(), str(directory), program, vars=[variable]))
    attempt(lambda: fluid.io.load_program_state(str(root / "new")))
    attempt(lambda: fluid.io.load_program_state(str(root / "new"), var_list=[variable]))
    with _watched_scope(program):
        fluid.io.load_persistables(_executor(), str(root / "new"), program)


def _put_tree(data: bytes, root: Path) -> None:
    _fresh_model(data, root)
    tree_maker.build(root / "model", json.loads(data))


def _trees(data: bytes, root: Path) -> None:
    directory, program, exe = str(root / "model"), _program("fit_a_line"), _executor()
    attempt(lambda: list_names(directory))
    attempt(lambda: fluid.io.verify(directory))
    attempt(lambda: fluid.io.load_program_state(directory))
    with _watched_scope(Program()):
        attempt(lambda: fluid.io.load_inference_model(directory, exe))
    with _watched_scope(program):
        fluid.io.load_persistables(exe, directory, program)


_PUT: Final[dict[str, Any]] = {"set_up": _copies, "prepare": _put, "clean": _restore}
_ROOM: Final[dict[str, Any]] = {"weight": 1, "memory": 200, "base": 2 << 20}

LOADERS: Final = (
    Target("load_persistables", _maker("persistables"), _persistables, **_PUT, **_ROOM),
    Target("load_combined", _maker("combined"), _combined, **_PUT, **_ROOM),
    Target("fluid_load", _maker("fluid_save"), _saved, **_PUT, **_ROOM),
    Target("load_inference", _maker("inference", "inference_combined"), _inference, **_PUT, weight=1,
           memory=400, base=2 << 20),
    Target("manifest", _make_manifest, _manifests, set_up=_copies, prepare=_put_manifest, **_ROOM),
    Target("checkpoints", _make_checkpoint, _checkpoints, set_up=_set_up_checkpoints, prepare=_put_checkpoint, **_ROOM),
    Target("journal", _make_journal, _journals, prepare=_put_journal, writes=True, **_ROOM),
    Target("rules", _make_rules, _read_rules, set_up=_copies, prepare=_put_rules, **_ROOM),
    Target("names", tree_maker.made_name, _names, set_up=_set_up_outside, prepare=_fresh_model, writes=True, **_ROOM),
    Target("tree", tree_maker.made_tree, _trees, set_up=_set_up_outside, prepare=_put_tree, **_ROOM),
)  # fmt: skip
