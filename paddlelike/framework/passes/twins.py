"""Programs and their clones: warnings that one of them runs in place of the other."""

from __future__ import annotations

from typing import Final
from weakref import ref

from paddlelike.core import Scope
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes.clone import copy
from paddlelike.framework.passes.views import has_updates

_UNTRAINED_RUNS: Final = 20  # runs without training before the warning


def clone(program: Program) -> Program:
    """Return a full copy. Both programs are watched until a run shows which one the script means to run."""
    copied = copy(program)
    program._caution, copied._caution = _Twin(copied), _Twin(program, is_copy=True)
    return copied


class _Twin:
    """A link between a program and its clone, kept until a run shows that the script uses the right one."""

    def __init__(self, program: Program, *, is_copy: bool = False) -> None:
        self.program = ref(program)
        self.is_copy = is_copy
        self.runs = 0

    def __call__(self, program: Program, scope: Scope) -> None:
        """Warn, once, when the script runs the original in place of its clone, or the clone in place of the
        original.

        A program that does not train may run a few times before the other one runs.
        """
        self.runs += 1
        other = self.program()
        if other is None:
            program._caution = None
        elif has_updates(program):
            program._caution = None
            if self.is_copy and other.plans and has_updates(other) and _is_trained(program, scope):
                warn_user(
                    "this program is a clone of one that was trained, optimizer included: each run trains "
                    "the same parameters. To evaluate, run program.clone(for_test=True)"
                )
        elif other.plans or program._is_distributed:
            program._caution = None
        elif self.runs == _UNTRAINED_RUNS:
            program._caution = None
            if has_updates(other) and not _is_trained(program, scope):
                which = "the program that it was cloned from" if self.is_copy else "its clone"
                warn_user(
                    f"this program has run {self.runs} times and trains nothing: the optimizer was added to "
                    f"{which}, which has not run yet. To train, run that one"
                )


def _is_trained(program: Program, scope: Scope) -> bool:
    """Return whether a parameter was updated or loaded since the startup program gave it a value."""
    holders = (scope.find_var(parameter.name) for parameter in program.global_block().iter_parameters())
    return any(one is not None and (one.origin is not None or one.version > 1) for one in holders)
