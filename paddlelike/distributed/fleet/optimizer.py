"""``fluid.incubate.fleet.utils.utils``: programs in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from paddlelike.distributed.fleet.strategy import DistributedStrategy
from paddlelike.errors import UnsupportedError
from paddlelike.framework import Operator, Parameter, Program, Variable, default_startup_program
from paddlelike.optimizer import Optimizer


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """Return the program in a file. Raises UnsupportedError for the text format, which has no parser."""
    if is_text:
        raise UnsupportedError(
            f"load_program: {model_filename}: programs in text cannot be read",
            hint="save the program with is_text=False",
        )
    return Program.parse_from_string(Path(model_filename).read_bytes())


def load_program_binary(path: str) -> Program:
    """Return the program in a file."""
    return load_program(path)


def load_program_text(path: str) -> Program:
    """Raise UnsupportedError: programs in text cannot be read."""
    return load_program(path, is_text=True)


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Write a program into a file, or its description as text."""
    if is_text:
        Path(model_filename).write_text(program.to_string(throw_on_error=False))
    else:
        Path(model_filename).write_bytes(program.desc.serialize_to_string())


ParamGrads = list[tuple[Parameter, Variable]]


class _Fleet(Protocol):
    """The part of a fleet that makes programs from a network."""

    def _transpile(self, program: Program, startup: Program, strategy: DistributedStrategy) -> None: ...


class DistributedOptimizer:
    """A wrapper of an optimizer whose updates run on servers.

    Raises TypeError where ``optimizer`` is not an optimizer.
    """

    def __init__(self, optimizer: Optimizer, strategy: object = None) -> None:
        if not callable(getattr(optimizer, "minimize", None)):  # of mixed precision, or the script's own
            raise TypeError(
                "fleet.distributed_optimizer: expected an optimizer such as fluid.optimizer.SGD(0.1), not "
                f"{optimizer!r}"
            )
        self._optimizer = optimizer
        self._strategy = strategy

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
    ) -> ParamGrads:
        """Append the gradients by the wrapped optimizer, and raise the errors of that optimizer."""
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Append the updates by the wrapped optimizer, and raise the errors of that optimizer."""
        return self._optimizer.apply_gradients(params_grads)


class TranspilerOptimizer(DistributedOptimizer):
    """An optimizer whose ``minimize`` also makes the programs of this process's role."""

    _strategy: DistributedStrategy

    def __init__(self, owner: _Fleet, optimizer: Optimizer, strategy: DistributedStrategy) -> None:
        super().__init__(optimizer, strategy)
        self._owner = owner

    def minimize(
        self,
        loss: Variable,
        scopes: object = None,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], ParamGrads]:
        """Append the training step, then make ``fleet.main_program`` and ``fleet.startup_program`` of it.

        A trainer waits here until the servers listen, unless its DistributeTranspilerConfig has
        ``wait_port = False``.

        Parameters
        ----------
        loss
            The loss.
        scopes
            They are not used, as in Fluid.
        startup_program, parameter_list, no_grad_set
            The same as for the wrapped optimizer.

        Returns
        -------
        tuple
            The update operators, and pairs of parameters and gradients.

        Raises
        ------
        TypeError
            ``loss`` or ``startup_program`` is a list.
        GraphError
            The program cannot be transpiled.
        DeadlineError
            Some servers do not listen in time.
        """
        if isinstance(loss, (list, tuple)) or isinstance(startup_program, (list, tuple)):
            raise TypeError("fleet: minimize takes one loss and one startup program, not lists of them")
        result = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        startup = default_startup_program() if startup_program is None else startup_program
        self._owner._transpile(loss.block.program, startup, self._strategy)
        return result
