"""The steps of a plan as one Python function without a loop, once the plan has run often enough.

Between two calls of numpy a step checks for a LoD, for values to release, and for results that belong to the
scope. The function's source leaves out checks whose result is known from the plan. An example with three
steps:

    def run(frame):
        v, h, lods, i = frame.values, frame.holders, frame.lods, 0
        try:
            v[4] = k0(v[1], v[3])
            i = 1
            s1(frame)
            i = 2
            r = k2(v[4])
            x = r[1]
            if x is not None: v[6] = x
            r = x = None
            v[4] = None
        except BaseException:
            frame.failed = i
            raise

The source contains only positions and indices, nothing from a program or a file. It refers to kernels and
other objects by the index of their step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import LoDTensor
from paddlelike.executor.plans.frame import Binding, Frame, Run, Step, flatten_positions, write_persistable
from paddlelike.executor.plans.layout import NOTHING, Layout
from paddlelike.executor.plans.rewrites import overwriting, scalars

_RUNS: Final = 64  # runs of a plan before its function is written, which takes as long as some dozens of runs


class Unrolled:
    """The unrolled functions of a plan, one for runs with LoDs and one without, made after enough runs."""

    def __init__(self, steps: list[Step], layout: Layout) -> None:
        self._steps = steps
        self._layout = layout
        self._runs = 0
        self._functions: dict[bool, Run] = {}

    @property
    def of_arrays(self) -> Run | None:
        """The function for runs without LoDs, or None before enough of these."""
        return self._functions.get(False)

    def find(self, frame: Frame) -> Run | None:
        """Return the function that runs all steps for a frame with feeds, or None to run them one by one.

        It writes the index of a step that fails into ``Frame.failed``.
        """
        has_lods = bool(frame.lods)
        found = self._functions.get(has_lods)
        if found is None:
            self._runs += 1
            if self._runs > _RUNS:
                found = self._functions[has_lods] = unroll(self._steps, self._layout, has_lods=has_lods)
        return found


def unroll(steps: Sequence[Step], layout: Layout, *, has_lods: bool) -> Run:
    """Return a function that runs some steps; ``has_lods`` tells whether the frame begins with LoDs."""
    names: dict[str, Any] = {
        "__builtins__": {},
        "BaseException": BaseException,
        "type": type,
        "ndarray": np.ndarray,
        "LoDTensor": LoDTensor,
        "write": write_persistable,
        "hollow": scalars.make_hollow,
    }
    lines = []
    for index, step in enumerate(steps):
        binding = step.binding
        lines.append(f"i = {index}")
        names[f"s{index}"] = step.run
        if binding is None or not binding.is_plain or step.parts:
            lines.append(f"s{index}(frame)")
            has_lods = True  # only these can set LoDs
            continue
        written = _write_step(index, binding, layout, names, has_lods=has_lods)
        lines += _write_choice(index, binding, written)
    text = "\n".join(
        [
            "def run(frame):",
            " v, h, lods, i = frame.values, frame.holders, frame.lods, 0",
            " try:",
            *("  " + line for line in lines or ["pass"]),
            " except BaseException:",
            "  frame.failed = i",
            "  raise",
        ]
    )
    exec(compile(text, "<the steps of a plan>", "exec"), names)  # noqa: S102  (positions and indexes alone)
    run: Run = names["run"]
    return run


def _write_step(
    index: int, binding: Binding, layout: Layout, names: dict[str, Any], *, has_lods: bool
) -> list[str]:
    """Return the lines of a plain step; the objects that they use are added to ``names``."""
    call = _write_call(index, binding, names)
    targets = flatten_positions(binding.outputs)
    share = []
    if binding.share is not None and has_lods:
        names[f"l{index}"] = binding.share
        share = [f"if lods: l{index}(lods, r)"]
    if len(targets) > 1:
        lines = [f"r = {call}", *share]
        for item, target in enumerate(targets):
            if target >= 0:
                lines += [f"x = r[{item}]", *_write_result(binding, target, "x", layout)]
        lines.append("r = x = None")
    elif targets[0] in layout.persistables:
        lines = [f"r = {call}", *share, *_write_result(binding, targets[0], "r", layout), "r = None"]
    elif targets[0] < 0:
        lines = [call]
    elif share:
        lines = [f"v[{targets[0]}] = r = {call}", *share, "r = None"]
    else:
        lines = [f"v[{targets[0]}] = {call}"]
    if binding.dead:
        lines.append(f"{_assign(binding.dead)}None")
    for position in set(binding.hollow) - _find_watched(binding).keys():
        lines += [
            f"x = v[{position}]",
            f"if type(x) is ndarray and x.nbytes > {scalars.SMALL}: v[{position}] = hollow(x)",
            "x = None",
        ]
    return lines


def _write_call(index: int, binding: Binding, names: dict[str, Any]) -> str:
    """Return the source line that calls a kernel."""
    kernel: Callable[..., object] = binding.kernel
    given: tuple[Any, ...] = ()
    if isinstance(kernel, functools.partial) and not kernel.keywords:
        given, kernel = kernel.args, kernel.func
    names[f"k{index}"] = kernel
    names.update({f"g{index}_{item}": value for item, value in enumerate(given)})
    first = [f"g{index}_{item}" for item in range(len(given))]
    slots = [
        f"[{', '.join(map(_read, slot))}]" if isinstance(slot, list) else _read(slot)
        for slot in binding.inputs
    ]
    return f"k{index}({', '.join(first + slots)})"


def _read(position: int) -> str:
    return "None" if position == NOTHING else f"v[{position}]"


def _write_result(binding: Binding, target: int, name: str, layout: Layout) -> list[str]:
    """Return the lines that store one result, which may be None."""
    if target not in layout.persistables:
        return [f"if {name} is not None: v[{target}] = {name}"]
    fresh = binding.cls.fresh is True
    return [
        f"t = h[{target}]._value",
        f"if type(t) is LoDTensor and {name} is t._array: t.version += 1",
        f"elif {name} is not None: v[{target}] = write(frame, {target}, {name}, fresh={fresh})",
        "t = None",
    ]


def _write_choice(index: int, binding: Binding, lines: list[str]) -> list[str]:
    """Return the lines of a step; they test for large inputs if the step treats these differently."""
    watched = _find_watched(binding)
    if not watched:
        return lines
    names = [f"x{item}" for item in range(len(watched))]
    is_large = " or ".join(
        f"type({name}) is ndarray and {name}.nbytes >= {least}"
        for name, least in zip(names, watched.values(), strict=True)
    )
    forget = f" {' = '.join(names)} = None"  # no other reference may exist to overwritten memory
    return [
        *(f"{name} = v[{position}]" for name, position in zip(names, watched, strict=True)),
        f"if {is_large}:",
        forget,
        f" s{index}(frame)",
        "else:",
        *(" " + line for line in lines),
        forget,
    ]


def _find_watched(binding: Binding) -> dict[int, int]:
    """Return, by position, the size in bytes from which the step treats an input differently."""
    inputs = set(flatten_positions(binding.inputs))
    watched = dict.fromkeys(binding.candidates, overwriting.LEAST)
    return watched | {position: scalars.SMALL + 1 for position in binding.hollow if position in inputs}


def _assign(positions: Iterable[int]) -> str:
    return "".join(f"v[{position}] = " for position in positions)
