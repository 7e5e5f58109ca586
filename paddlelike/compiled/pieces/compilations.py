"""The executables of a piece by shapes, and whether compiling for new shapes is worth it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from typing import Any, Final

from paddlelike.compiled.pieces.executables import Executable
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.values import Packed, SparseRows
from paddlelike.foundation.warn import warn_user

_MOST: Final = 10  # compilations of one piece before the warning
_OFTEN: Final = 20  # of the last runs had new shapes: then numpy runs new shapes first
_RECENT: Final = 24
Signature = tuple[Any, ...]


class PassedOverError(Exception):
    """Raised when a piece is not worth compiling for these shapes: numpy runs its operators."""


class Compilations:
    """The executables of a piece by the shapes of its inputs.

    If nearly every run has new shapes, such as images of any size, compiling takes longer than running numpy.
    Then shapes are compiled at their second use. The decision depends on the shapes alone, so that equal runs
    have equal bits.

    Attributes
    ----------
    count : int
        The number of compilations of the piece, one for each choice of shapes.
    passed_over : int
        How many runs numpy took over.
    """

    def __init__(
        self, plan: CompiledPlan, first_reader: Mapping[int, int], sized: Set[int], *, pads: bool
    ) -> None:
        self.count = 0
        self.passed_over = 0
        self._plan, self._first_reader, self._pads = plan, first_reader, pads
        self._sized = sized  # inputs that determine sizes
        self._executables: dict[Signature, Executable] = {}
        self._seen: set[int] = set()  # the hashes of signatures that numpy ran
        self._recent: deque[bool] = deque(maxlen=_RECENT)  # whether the shapes of a run were new
        self._shapes: dict[int, set[Any]] = {}

    def find(self, signature: Signature) -> Executable | None:
        """Return the executable for these shapes, or None; after None, call :meth:`check_worth`."""
        found = self._executables.get(signature)
        if found is not None:
            self.count_known()
        return found

    def count_known(self) -> None:
        """Record a run with shapes that were compiled before."""
        self._recent.append(False)

    def check_worth(self, signature: Signature, values: Mapping[int, Any], sizes: tuple[Any, ...]) -> None:
        """Raise PassedOverError if these shapes are new, and nearly all earlier runs had new shapes too."""
        key = hash(signature)
        is_new = key not in self._seen
        often = sum(self._recent) >= _OFTEN
        self._recent.append(is_new)
        if not (is_new and often):
            return
        self._seen.add(key)
        if not self.passed_over:
            self._note_shapes(values, sizes)
            self._warn(
                values,
                f"{_OFTEN} of the last {_RECENT} runs of a compiled program had new shapes",
                "From now on numpy runs new shapes; they are compiled when they come again",
            )
        self.passed_over += 1
        raise PassedOverError

    def add(
        self, signature: Signature, executable: Executable, values: Mapping[int, Any], sizes: tuple[Any, ...]
    ) -> None:
        """Store the executable for values of these shapes and for the sizes computed from the values.

        At the tenth time, warn.
        """
        self._executables[signature] = executable
        self.count += 1
        self._note_shapes(values, sizes)
        if self.count == _MOST:
            self._warn(values, f"a program was compiled {_MOST} times", "Every new shape costs a compilation")

    def _note_shapes(self, values: Mapping[int, Any], sizes: tuple[Any, ...]) -> None:
        for position, value in values.items():
            given = sizes if position in self._sized else ()
            self._shapes.setdefault(position, set()).add((*describe(value), *given))

    def _warn(self, values: Mapping[int, Any], what: str, consequence: str) -> None:
        """Warn that shapes keep changing, and name the feeds, or else the values, that change."""
        for cause, advice in self._find_causes(values):
            warn_user(f"{what}, because {cause}. {consequence}. {advice}")

    def _find_causes(self, values: Mapping[int, Any]) -> list[tuple[str, str]]:
        """Return the values that came in several shapes, each with advice."""
        varying = {n: len(shapes) for n, shapes in self._shapes.items() if len(shapes) > 1}
        found = []
        for name, fed in self._plan.fed.items():
            if fed.position not in varying:
                continue
            advice = "Feed batches of one size, padded to few lengths, or sequences with a LoD"
            if isinstance(values.get(fed.position), Packed):
                advice = "Feed batches of sequences that have about as many rows"
                if self._pads:
                    advice = "sequence_pad pads to the longest sequence: give it a maxlen"
            what = f"came in {varying[fed.position]} shapes"
            if fed.position in self._sized:
                what = f"gave {varying[fed.position]} different sizes of arrays"
                advice = "Feed sizes that repeat"
            found.append((f"the feed {name!r} {what}", advice))
        if varying and not found:
            first = self._plan.steps[min(self._first_reader[n] for n in varying)].op
            cause = f"values that numpy computes, which operator {first.type!r} reads, came in "
            advice = "CompiledProgram.explain says which operators numpy runs, and why"
            found.append((f"{cause}{max(varying.values())} shapes", advice))
        return found


def describe(value: Any) -> Any:
    """Return the properties of a value, other than a JAX array, on which a compiled piece depends."""
    if isinstance(value, Packed):
        return (
            value.rows.shape,
            value.rows.dtype,
            value.longest,
            value.full,
            *(len(level) for level in value.offsets),
        )
    if isinstance(value, SparseRows):
        return (value.values.shape, value.values.dtype, value.height)
    return (value.shape, value.dtype)
