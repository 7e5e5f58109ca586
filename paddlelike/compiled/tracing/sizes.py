"""Numbers that determine shapes. numpy computes them from the inputs of a piece before it is compiled or run.

The shape of an XLA computation is known when it is compiled. Yet programs compute sizes, such as the number
of a graph's nodes or the greatest length, from feeds. These numbers are constants while a piece is traced,
and a piece is compiled for each choice of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np

from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.tracing.constants import has_plain_kernel, run_kernel
from paddlelike.core import Array, LoD
from paddlelike.executor.plans.layout import NOTHING
from paddlelike.framework.opdef import OpDef, registry

KnownSizes = Mapping[int, Mapping[int, Array]]  # by step and by position

#: The input slots whose numbers determine the shape of a result.
_NAMES: Final = (
    "AxesTensor AxesTensorList AxisTensor EndsTensor EndsTensorList ExpandTimes K MaxLenTensor OffsetsTensor "
    "OutSize OutputShape RepeatTimes SectionsTensorList ShapeTensor ShapeTensorList SizeTensor StartsTensor "
    "StartsTensorList StepsTensorList StridesTensor StridesTensorList depth_tensor expand_times_tensor "
    "expand_shapes_tensor repeat_times_tensor"
)
_SLOTS: Final = frozenset(_NAMES.split())
_MOST: Final = 4096  # elements of an array from which numpy computes a size


class Sizes:
    """The sizes that the operators ``start`` to ``stop`` of a plan read, computed by some of these operators.

    A size is left out if it depends on parameters, large arrays, sequences, or operators with blocks; the
    operator that reads it is then refused.

    Attributes
    ----------
    given : set
        The positions of the piece's inputs from which sizes are computed.
    """

    def __init__(self, plan: CompiledPlan, start: int, stop: int) -> None:
        self._plan = plan
        self._reads: dict[int, list[int]] = {}  # by step, the positions of sizes
        self._steps: set[int] = set()  # those that compute sizes
        wanted: set[int] = set()
        for index in reversed(range(start, stop)):
            op = plan.steps[index].op
            cls = registry.find_for_version(op.type, plan.program.paddle_version)
            if cls is None:
                continue
            if plan.writes[index] & wanted:
                self._steps.add(index)
                wanted -= plan.writes[index]
                if _is_plain(cls):
                    wanted |= plan.reads[index]
            found = list(_find_sizes(plan, cls, index))
            if found:
                self._reads[index] = found
                wanted.update(found)
        self.given = wanted - plan.layout.persistables.keys()
        if not self.given:  # constants: known while the piece is traced in any case
            self._reads = {}

    def compute(self, values: Sequence[Any], lods: Mapping[int, LoD]) -> KnownSizes:
        """Compute the sizes from the inputs of a piece; return them by step and position."""
        if not self._reads:
            return {}
        known = {
            n: np.asarray(values[n])
            for n in self.given
            if n < len(values) and _is_small(values[n]) and not lods.get(n)
        }
        found: dict[int, dict[int, Array]] = {}
        for index in sorted(self._steps | self._reads.keys()):
            sizes = {n: known[n] for n in self._reads.get(index, ()) if n in known}
            if sizes:
                found[index] = sizes
            if index in self._steps:
                self._run(index, known)
        return found

    def _run(self, index: int, known: dict[int, Array]) -> None:
        """Compute the results of a step if its inputs are known; otherwise mark them as unknown."""
        op = self._plan.steps[index].op
        cls = registry.find_for_version(op.type, self._plan.program.paddle_version)
        assert cls is not None
        results: Any = None
        if _is_plain(cls) and self._plan.reads[index] <= known.keys():
            args = [
                [known.get(n) for n in one] if isinstance(one, list) else known.get(one)
                for one in self._plan.inputs_of[id(op)]
            ]
            results = run_kernel(op, cls, args)
        for position in self._plan.writes[index]:
            known.pop(position, None)
        if results is None:
            return
        several = (results,) if len(cls.output_slots) == 1 else results
        for target, result in zip(self._plan.outputs_of[id(op)], several, strict=True):
            pairs = zip(target, result, strict=False) if isinstance(target, list) else ((target, result),)
            known.update((n, np.asarray(value)) for n, value in pairs if n > NOTHING and _is_small(value))


def describe_sizes(sizes: KnownSizes) -> tuple[Any, ...]:
    """Return a description of the sizes that a piece is compiled for."""
    return tuple(
        (index, n, value.shape, value.dtype, value.tobytes())
        for index, found in sizes.items()
        for n, value in found.items()
    )


def _find_sizes(plan: CompiledPlan, cls: type[OpDef], index: int) -> list[int]:
    """Return the positions of the inputs of a step that determine shapes."""
    found: list[int] = []
    for slot, position in zip(cls.input_slots, plan.inputs_of[id(plan.steps[index].op)], strict=True):
        if slot.name in _SLOTS or slot.name in cls.size_slots:
            found += [n for n in (position if isinstance(position, list) else [position]) if n > NOTHING]
    return found


def _is_plain(cls: type[OpDef]) -> bool:
    """Return whether numpy can compute an operator from the values of its inputs alone."""
    return cls.type != "shape" and not cls.type.endswith("_grad") and has_plain_kernel(cls)


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | jax.Array) and value.size <= _MOST
