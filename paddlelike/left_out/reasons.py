"""Why modules, functions and classes of Fluid are left out: ``reasons.txt``; ``names.txt`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from paddlelike.foundation.text_tables import read_sections


class Reason(NamedTuple):
    """Why something is left out, and what to do instead."""

    why: str
    instead: str


def _read_reasons() -> dict[str, Reason]:
    rows = (section.split("\n    ") for section in read_sections("paddlelike.left_out", "reasons.txt"))
    return {key: Reason(why, instead) for key, why, instead in rows}


_REASONS: Final = _read_reasons()
DYGRAPH: Final = _REASONS["dygraph"]


def _read_names() -> dict[str, dict[str, Reason]]:
    found: dict[str, dict[str, Reason]] = {"modules": {}, "names": {}}
    for section in read_sections("paddlelike.left_out", "names.txt"):
        header, _, names = section.partition("\n")
        kind, reason, *prefixes = header.split()
        found[kind] |= {
            start + name: _REASONS[reason] for name in names.split() for start in prefixes or [""]
        }
    return found


_FOUND: Final = _read_names()
#: Modules, by Fluid's path without the leading "fluid."; a reason holds for everything below, too.
MODULES: Final[Mapping[str, Reason]] = _FOUND["modules"]
#: Functions and classes, in the same way.
NAMES: Final[Mapping[str, Reason]] = _FOUND["names"]

#: Reasons for names of ``paddle`` itself, not of ``paddle.fluid``.
PADDLE_NAMES: Final = tuple(_REASONS[key] for key in ("high_level", "paddle_2", "complex", "images"))

_SEED: Final = "set fluid.default_startup_program().random_seed = 1, and the main program's, before they run"
_NETWORK: Final = "networks are built by functions: y = fluid.layers.fc(x, 10, act='relu')"
#: Names of other frameworks and of Paddle 2, in lower case, which no function here resembles: the next step.
OF_OTHERS: Final[Mapping[str, str]] = {
    "disable_static": "programs are static here: build them with fluid.layers, run them by fluid.Executor",
    "from_numpy": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
    "manual_seed": _SEED,
    "model": f"{_NETWORK}; paddlelike.training.train fits them",
    "module": _NETWORK,
    "nn": _NETWORK,
    "no_grad": "what minimize is not called for has no gradients; variable.stop_gradient = True ends them",
    "seed": _SEED,
    "sequential": _NETWORK,
    "set_seed": _SEED,
    "to_tensor": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
}
