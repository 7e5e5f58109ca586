"""Checks of arguments of saves and loads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.executor.run import Executor
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework import Parameter, Program, Variable, default_main_program
from paddlelike.framework.codec.encode import build_message
from paddlelike.framework.graph.variable import HOLDERS

if TYPE_CHECKING:
    from paddlelike.framework import Block
    from paddlelike.framework.typing import ProgramLike


def check_executor(executor: object, function: str) -> None:
    """Raise TypeError when the argument of ``function`` is not an executor."""
    if not isinstance(executor, Executor):
        raise TypeError(
            f"{function}: executor must be a fluid.Executor, got {executor!r}\n"
            "  hint: make one with fluid.Executor(fluid.CPUPlace()); saves and loads take it before the "
            "directory, save_inference_model after the targets"
        )


def check_directory(dirname: object, function: str) -> None:
    """Raise TypeError when the argument of ``function`` is not the path of a directory."""
    if dirname is not None and not isinstance(dirname, str | bytes | os.PathLike):
        raise TypeError(
            f"{function}: dirname must be a path, got a {type(dirname).__name__}\n"
            "  hint: the executor comes first, then the directory, then the program"
        )


_known: Final[WeakKeyDictionary[Program, tuple[int, str | None]]] = WeakKeyDictionary()


@pause_collection
def fingerprint(program: Program) -> str | None:
    """Return the sha256 of a program's encoding, or None if it cannot be encoded. Copies of a program have
    the same one.

    >>> fingerprint(Program()) == fingerprint(Program().clone())
    True
    """
    import hashlib  # late: it takes long

    known, text = _known.get(program, (-1, None))
    version = program._version  # read first: another thread may change the program
    if known != version:
        try:
            message = build_message(program, by_name=True)  # in a copy these have another order
            for block in message.blocks:
                for op in block.ops:
                    op.attrs.sort(key=attrgetter("name"))
                    op.inputs.sort(key=attrgetter("parameter"))
                    op.outputs.sort(key=attrgetter("parameter"))
            text = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
        except (GraphError, TypeError, ValueError):
            text = None
        _known[program] = version, text
    return text


def is_parameter(var: Variable) -> bool:
    """Return whether ``var`` is a parameter, which training changes.

    Parameters
    ----------
    var
        A variable of a program.

    Returns
    -------
    bool
        True for a :class:`~paddlelike.framework.graph.variable.Parameter`.

    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program()), fluid.unique_name.guard():
    ...     x = fluid.data("x", [None, 4])
    ...     w = fluid.layers.create_parameter([4, 3], "float32")
    >>> is_parameter(x), is_parameter(w)
    (False, True)
    """
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """Return whether the value of ``var`` outlives a run; False for holders of feeds and fetches.

    Parameters
    ----------
    var
        A variable of a program.

    Returns
    -------
    bool
        True for parameters and other persistables.

    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
    ...     step = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
    ...     x = fluid.data("x", [None, 4])
    >>> is_persistable(step), is_persistable(x)
    (True, False)
    """
    return var.type not in HOLDERS and var.persistable


def is_belong_to_optimizer(var: Variable) -> bool:
    """Return whether ``var`` is state of training besides the parameters: accumulators, rates, counters.

    Parameters
    ----------
    var
        A variable of a program.

    Returns
    -------
    bool
        True for such a variable, False for parameters and for variables that are not persistable.

    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
    ...     step = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
    ...     w = fluid.layers.create_parameter([4, 3], "float32")
    >>> is_belong_to_optimizer(step), is_belong_to_optimizer(w)
    (True, False)
    """
    if isinstance(var, Parameter) or var.need_check_feed:
        return False
    return var.persistable and var.type not in HOLDERS


def get_program_parameter(program: Program) -> list[Variable]:
    """Return the parameters of ``program``.

    Parameters
    ----------
    program
        The program to look through.

    Returns
    -------
    list
        The variables, block by block in order of creation.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> [parameter.name for parameter in get_program_parameter(main)]
    ['fc_0.w_0', 'fc_0.b_0']
    """
    return [v for v in program.list_vars() if is_parameter(v)]


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """Return the persistable variables of ``program``, parameters included.

    Parameters
    ----------
    program
        The program to look through.

    Returns
    -------
    list
        The variables, block by block in order of creation.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
    ...     out = fluid.layers.batch_norm(fluid.data("x", [None, 4]))
    >>> [variable.name for variable in get_program_persistable_vars(main)]
    ['batch_norm_0.w_0', 'batch_norm_0.b_0', 'batch_norm_0.w_1', 'batch_norm_0.w_2']
    """
    return [v for v in program.list_vars() if is_persistable(v)]


def get_program(main_program: ProgramLike | None) -> Program:
    """Return the Program in ``main_program``: itself, the default one for None, or the program of a
    CompiledProgram.

    Raises TypeError when it is not one of these.
    """
    if main_program is None:
        return default_main_program()
    program = getattr(main_program, "_program", main_program)
    if not isinstance(program, Program):
        raise TypeError(f"main_program is a Program or None, not {main_program!r}")
    return program


def select(
    program: Program,
    vars: Iterable[Variable | str] | None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None,
) -> list[Variable]:
    """Return the variables to save or load: ``vars``, else the variables of ``program`` that ``predicate``
    accepts.

    RAW variables hold no tensor and are left out, as in Fluid. Raises TypeError for an item of ``vars`` that
    is neither a variable nor a name, and GraphError for an unknown name.
    """
    if vars is not None:
        block = program.global_block()
        chosen = [block._var_recursive(v) if isinstance(v, str) else v for v in vars]
        for variable in chosen:
            if not isinstance(variable, Variable):
                raise TypeError(f"vars holds variables or their names, not {variable!r}")
    else:
        chosen = [v for v in program.list_vars() if predicate is None or predicate(v)]
    by_name = {v.name: v for v in chosen if v.type != VarType.RAW}
    return list(by_name.values())


def describe_unchosen(program: Program, names: str = "the predicate chose none") -> str:
    """Describe which variables of a program a predicate could have chosen."""
    held = [one.name for one in program.list_vars() if one.persistable and one.type not in HOLDERS]
    if not held:
        return "the program has no persistable variable"
    return f"{names} of {', '.join(held[:5])}{' ...' * (len(held) > 5)}"


def _clone_var_in_block_(block: Block, var: Variable) -> Variable:
    """Return a persistable variable of ``block`` with the name and description of ``var``."""
    level = {"lod_level": var.lod_level} if var.type == VarType.LOD_TENSOR else {}
    return block.create_var(
        name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, persistable=True, **level
    )
