"""Every public name of Paddle 1.8.5 (api185.txt) is here with its parameters, or says why it is not."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paddlelike.left_out import find_left_out, find_reason


class Name(NamedTuple):
    """A line of api185.txt: module, name, and the parameters as Python 3.7 writes them, or ""."""

    module: str
    name: str
    parameters: str

    @property
    def path(self) -> str:
        """The path below ``paddle`` or ``paddle.fluid``."""
        return f"{self.module}.{self.name}".removeprefix("paddle.").removeprefix("fluid.")


LINES = (Path(__file__).parent / "api185.txt").read_text().splitlines()
NAMES = [
    Name(*re.fullmatch(r"(\S+) (\w+)(.*)", line).groups())  # type: ignore[union-attr]
    for line in LINES
]

#: What is neither here nor in paddlelike.left_out, and why.
MISSING = {
    "paddle.fluid.distributed.fleet.Fleet": "the folder of that path is the fleet for parameter servers",
}

_SEEN = "the seed and the share of tests, which Paddle takes by name"
_REFUSED = "it is refused, with whatever parameters"
_ENUM = "an enumeration"
#: Where parameters differ, and why.
DIFFERENT = {
    "paddle.dataset.movielens.test": _SEEN,
    "paddle.dataset.movielens.train": _SEEN,
    "paddle.fluid.communicator.Communicator": "the mode may be left out",
    "paddle.fluid.incubate.fleet.base.fleet_base.Mode": _ENUM,
    "paddle.fluid.incubate.fleet.base.mode.Mode": _ENUM,
    "paddle.fluid.incubate.fleet.base.role_maker.Role": _ENUM,
    "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.TranspilerOptimizer": (
        "fleet.distributed_optimizer makes it"
    ),
    "paddle.fluid.io.DataLoader": _REFUSED,
    "paddle.fluid.layer_helper_base.LayerHelperBase": "it is LayerHelper itself",
    "paddle.fluid.optimizer.DGCMomentumOptimizer": _REFUSED,
    "paddle.fluid.optimizer.PipelineOptimizer": _REFUSED,
    "paddle.fluid.profiler.cuda_profiler": _REFUSED,
    "paddle.fluid.reader.DataLoader": _REFUSED,
}


def find(module: str, name: str) -> Any:
    """The object of that name here; AttributeError or ImportError when there is none."""
    return getattr(importlib.import_module("paddlelike" + module.removeprefix("paddle")), name)


def look_up(name: Name) -> tuple[str, Any]:
    """ "here", "left out" or "missing", with the object or the reason."""
    reason = find_reason(name.path)
    if reason is not None:
        return "left out", reason.why
    try:
        found = find(name.module, name.name)
    except (AttributeError, ImportError):
        return "missing", None
    return ("left out", str(found)) if type(found) is type(find_left_out("Layer")) else ("here", found)


def have_parameters(text: str, found: Any) -> bool:
    """Whether an object takes the parameters, in the order and with the defaults, that the text says.

    Parameters that can only be named, and have a default, may come on top. Methods are compared elsewhere.
    """
    theirs = re.findall(
        r"[^,\s(=]+(?:=(?:'[^']*'|[\w.]*\([^)]*\)|\[[^]]*\]|\{[^}]*\}|<[^>]*>|[^,]*))?", text[1:-1]
    )
    more = {inspect.Parameter.KEYWORD_ONLY} | ({inspect.Parameter.VAR_KEYWORD} if "**" not in text else set())
    ours = [p for p in inspect.signature(found).parameters.values() if p.kind not in more]
    if [p.name for p in ours] != [one.partition("=")[0].lstrip("*") for one in theirs]:
        return False
    pairs = [(p, one.partition("=")[2]) for p, one in zip(ours, theirs, strict=True) if "=" in one]
    return all(is_default(p.default, text) for p, text in pairs)


def is_default(value: Any, text: str) -> bool:
    """Whether a default is what Python 3.7 printed; objects without a literal are taken to be."""
    return text.startswith(("<", "functools")) or text in (repr(value), str(value))


FOUND = {name: look_up(name) for name in NAMES}


def test_every_paddle_name_exists_or_explains_its_absence(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = defaultdict(list)
    for name, (kind, what) in FOUND.items():
        kinds[kind].append((name, what))
    with capsys.disabled():
        print(f"\napi: {len(kinds['here'])} of {len(NAMES)}")  # noqa: T201
        for why, count in Counter(what for _, what in kinds["left out"]).most_common():
            print(f"  left out {count}: {why}")  # noqa: T201
    assert [f"{name.module}.{name.name}" for name, _ in kinds["missing"]] == list(MISSING)


@pytest.mark.parametrize("module", sorted({name.module for name in NAMES}))
def test_parameters_match_paddle(module: str) -> None:
    wrong = []
    for name, (kind, found) in FOUND.items():
        path = f"{name.module}.{name.name}"
        if name.module != module or kind != "here" or not name.parameters or path in DIFFERENT:
            continue
        if not have_parameters(name.parameters, found):
            wrong.append(f"{path}{name.parameters} is here {inspect.signature(found)}")
    assert wrong == []


def test_layers_take_no_other_parameters() -> None:
    layers = [(name, found) for name, (_, found) in FOUND.items() if name.module == "paddle.fluid.layers"]
    functions = [(name, found) for name, found in layers if inspect.isfunction(found)]
    assert len(functions) > 280
    for name, found in functions:
        kinds = {one.kind for one in inspect.signature(found).parameters.values()}
        assert inspect.Parameter.KEYWORD_ONLY not in kinds, name
        assert (inspect.Parameter.VAR_KEYWORD in kinds) == ("**" in name.parameters), name


@pytest.mark.parametrize("path", DIFFERENT)
def test_parameters_listed_as_different_differ(path: str) -> None:
    (name,) = (name for name in NAMES if f"{name.module}.{name.name}" == path)
    assert not have_parameters(name.parameters, find(name.module, name.name))
