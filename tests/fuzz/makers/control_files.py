"""What lies beside a directory as fuzzing targets: manifests, checkpoints, journals; and files of rules."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import paddlelike as fluid
from paddlelike.core import Scope, scope_guard
from paddlelike.framework import Program
from paddlelike.io.calls import is_persistable
from paddlelike.io.rules.rule import match_targets
from paddlelike.io.rules.rules import Rules
from paddlelike.storage import manifest
from paddlelike.storage.local.files import recover
from tests.fuzz.guard import Fault
from tests.fuzz.loaders import ROOM, copy_networks, executor, program_of, watched_scope
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target, attempt
from tests.helpers.golden_data import GOLDEN

__all__ = ["CONTROL_FILES", "change_json"]


@cache
def _manifest() -> bytes:
    directory = GOLDEN / "fit_a_line" / "persistables"
    records = {}
    for path in sorted(directory.iterdir()):
        checksum = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        facts = {"variable": path.name, "kind": "lod_tensor", "dtype": "FP32", "shape": [13, 1], "lod": []}
        records[path.name] = manifest.Record(path.stat().st_size, checksum, (1, 2), facts)
    return manifest.encode_json(records, author=manifest.Author("ab" * 32, None))


_JSON: Final = (
    None, True, -1, 0, 2**63, 10**40, 1.5, float("inf"), float("nan"), "", "..", "../x", "/etc/passwd", "a\0b", "x" * 500,
    [], {}, [[]] * 3, {"a": {}}, [1, 2], ["x"], "\ud800", "sha256", -(10**400), 10**5000,
)  # fmt: skip


def change_json(rng: Random, text: bytes) -> bytes:
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
        return mutate(rng, real, ())
    tail = manifest._TAIL
    body = real[:-tail] + b"}"
    made = change_json(rng, body) if kind < 0.85 else _deep_json(rng) if kind < 0.9 else mutate(rng, body, ())
    made = made[:-1]
    return made + manifest._tail(made)  # whoever means harm knows how to sum up


def _put_manifest(data: bytes, root: Path) -> None:
    (root / "fit_a_line" / "persistables" / "__manifest__").write_bytes(data)


def _manifests(data: bytes, root: Path) -> None:
    directory = str(root / "fit_a_line" / "persistables")
    said = str(fluid.io.verify(directory))
    if "\0" in said:
        raise Fault(f"said: {said!r}")
    program = program_of("fit_a_line")
    with scope_guard(Scope()):
        attempt(lambda: fluid.io.load_persistables(executor(), directory, program))
    with scope_guard(Scope()):
        attempt(
            lambda: fluid.io.load_vars(executor(), directory, program, predicate=is_persistable, verify=True)
        )
    manifest.decode(data)


_STATE: Final = {"checkpoint": {"step": 7, "metric": 0.5, "random": 12345, "user": {"epoch": 1}}}


def _make_checkpoint(rng: Random) -> bytes:
    made = _manifest()[: -manifest._TAIL] + b',"state":' + change_json(rng, json.dumps(_STATE).encode())
    return made + manifest._tail(made)


def _set_up_checkpoints(root: Path) -> None:
    for step in (7, 8):
        shutil.copytree(GOLDEN / "fit_a_line" / "persistables", root / f"step-{step:08d}")
    state = {"checkpoint": _STATE["checkpoint"] | {"step": 8}}
    good = manifest.encode(manifest.decode(_manifest()).files, state=state)
    (root / "step-00000008" / "__manifest__").write_bytes(good)


def _put_checkpoint(data: bytes, root: Path) -> None:
    (root / "step-00000007" / "__manifest__").write_bytes(data)


def _checkpoints(data: bytes, root: Path) -> None:
    found = fluid.io.Checkpoints(root)
    if str(root / "step-00000008") not in [checkpoint.path for checkpoint in found.list()]:
        raise Fault("a bad checkpoint hides a good one")
    found.latest()
    found.best()
    program = program_of("fit_a_line")
    for step in (None, 7):
        with watched_scope(program):
            found.restore(executor(), program, step)


_JOURNAL: Final = json.dumps(
    {"direction": "forward", "format": 2, "targets": [["fc_0.w_0", None, [1, 3, 5]], ["sub/new", None, [1, 3, 5]]],
     "folders": ["sub"], "sync": False}
).encode()  # fmt: skip


_OUTSIDE: Final = ("outside/w", "fc_0.w_0", "sub")  # where a journal leads that is believed too much


def _make_journal(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.25:
        return mutate(rng, _JOURNAL, ())
    journal = _JOURNAL
    for one, other in ((b'"forward"', b'"back"'), (b"[1, 3, 5]", b"null")):
        if rng.random() < 0.3:
            journal = journal.replace(one, other)
    return change_json(rng, journal) if kind < 0.95 else _deep_json(rng)


def _put_journal(data: bytes, root: Path) -> None:
    base = root / "model"
    for name in ("model", ".model.saving-directory", "outside"):
        shutil.rmtree(root / name, ignore_errors=True)
    shutil.copytree(GOLDEN / "fit_a_line" / "persistables", base)
    for name in ("new", "old"):
        (root / ".model.saving-directory" / name / "sub").mkdir(parents=True)
    (root / ".model.saving-directory" / "new" / "fc_0.w_0").write_bytes(b"new")
    (root / ".model.saving-directory" / "new" / "sub" / "new").write_bytes(b"new")
    (root / ".model.saving-directory" / "old" / "0").write_bytes(b"old")
    (root / "outside").mkdir()
    for place in _OUTSIDE:
        (root / place).write_bytes(b"outside")
    (root / ".model.saving-directory" / "journal").write_bytes(data)


def _journals(data: bytes, root: Path) -> None:
    try:
        recover(str(root / "model"))
    finally:
        there = {str(path.relative_to(root)) for path in root.rglob("*")}
        foreign = {path for path in there if not path.startswith(("model", ".model"))}
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
        return mutate(rng, _rules(), ())
    return change_json(rng, _rules()) if kind < 0.95 else _deep_json(rng)


def _put_rules(data: bytes, root: Path) -> None:
    (root / "rules.json").write_bytes(data)


def _read_rules(data: bytes, root: Path) -> None:
    rules = Rules.load(root / "rules.json")
    str(rules)
    for rule in rules:
        for name in ("encoder_3.weight", "aaa_b", "fc_0.w_0", "q"):
            attempt(lambda rule=rule, name=name: match_targets(rule, name))
    program = program_of("fit_a_line")
    directory = str(root / "fit_a_line" / "persistables")
    attempt(lambda: _load_by(rules, directory, program))


def _load_by(rules: Rules, directory: str, program: Program) -> None:
    with watched_scope(program):
        fluid.io.load_vars(
            executor(), directory, program, predicate=is_persistable, strict=False, rules=rules
        )


CONTROL_FILES: Final = (
    Target("manifest", _make_manifest, _manifests, set_up=copy_networks, prepare=_put_manifest, **ROOM),
    Target("checkpoints", _make_checkpoint, _checkpoints, set_up=_set_up_checkpoints, prepare=_put_checkpoint, **ROOM),
    Target("journal", _make_journal, _journals, prepare=_put_journal, writes=True, **ROOM),
    Target("rules", _make_rules, _read_rules, set_up=copy_networks, prepare=_put_rules, **ROOM),
)  # fmt: skip
