"""The default programs, and ``with`` blocks that select the programs, name scope and device of new operators.

See :class:`~paddlelike.foundation.current.Current` for the threads in which a block has an effect.
"""

from __future__ import annotations

from paddlelike.errors import GraphError
from paddlelike.foundation.current import Block
from paddlelike.framework.graph.operator import DEVICE, NAME_SCOPE, NameScope
from paddlelike.framework.graph.program import MAIN_PROGRAM, STARTUP_PROGRAM, Program
from paddlelike.framework.graph.variable import Variable


def default_main_program() -> Program:
    """Return the program that layers are built into.

    Returns
    -------
    Program
        The program of the innermost :func:`program_guard` of this thread, else the program of the process.

    >>> import paddlelike as fluid
    >>> x = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    >>> [op.type for op in fluid.default_main_program().global_block().ops]
    ['scale']
    """
    return MAIN_PROGRAM.get()


def default_startup_program() -> Program:
    """Return the program that initializers are built into.

    Returns
    -------
    Program
        The program of the innermost :func:`program_guard` of this thread, else the program of the process.

    >>> import paddlelike as fluid
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    >>> [op.type for op in fluid.default_startup_program().global_block().ops]
    ['fill_constant', 'uniform_random']
    """
    return STARTUP_PROGRAM.get()


def switch_main_program(program: Program) -> Program:
    """Make ``program`` the default main program, and return the previous default.

    Parameters
    ----------
    program
        The new default.

    Returns
    -------
    Program
        The default until now.

    See Also
    --------
    fluid.framework.switch_startup_program, fluid.program_guard

    >>> import paddlelike as fluid
    >>> before = switch_main_program(fluid.Program())
    >>> _ = switch_main_program(before)
    """
    return MAIN_PROGRAM.set(program)


def switch_startup_program(program: Program) -> Program:
    """Make ``program`` the default startup program, and return the previous default.

    Parameters
    ----------
    program
        The new default.

    Returns
    -------
    Program
        The default until now.

    See Also
    --------
    fluid.framework.switch_main_program, fluid.program_guard

    >>> import paddlelike as fluid
    >>> before = switch_startup_program(fluid.Program())
    >>> _ = switch_startup_program(before)
    """
    return STARTUP_PROGRAM.set(program)


def program_guard(main_program: Program, startup_program: Program | None = None) -> Block:
    """Build layers into the given programs inside the ``with`` block.

    Layers go to ``main_program``, the initial values of their parameters to ``startup_program``.

    Parameters
    ----------
    main_program
        The program that layers are built into.
    startup_program
        The program of the initial values; None to keep the current one.

    Returns
    -------
    Block
        A context manager; it also decorates functions.

    Raises
    ------
    TypeError
        ``main_program`` or ``startup_program`` is not a Program.

    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.program_guard(main, startup):
    ...     y = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    >>> len(main.global_block().ops), len(startup.global_block().ops)
    (2, 2)
    """
    for name, program in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(program, Program) and (program is not None or name == "main_program"):
            raise TypeError(f"program_guard: {name} is {program!r}, expected a Program")
    if startup_program is None:
        return MAIN_PROGRAM.replaced(main_program)
    main_program._startup = startup_program
    return Block({MAIN_PROGRAM: main_program, STARTUP_PROGRAM: startup_program})


def name_scope(prefix: str | None = None) -> Block:
    """Mark operators built inside with a path such as ``/encoder/`` (attribute ``op_namescope``).

    Parameters
    ----------
    prefix
        The name of this level of the path; None for none.

    Returns
    -------
    Block
        A context manager; it also decorates functions.

    Raises
    ------
    GraphError
        ``prefix`` is empty.

    >>> import paddlelike as fluid
    >>> with fluid.name_scope("encoder"):
    ...     y = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    """
    if not prefix:
        raise GraphError("name_scope: the name is empty", hint='pass a name, such as "encoder"')
    return NAME_SCOPE.replaced(NAME_SCOPE.get().create_child(prefix))


def reset_name_scope() -> None:
    """Forget all name scopes, so that suffixes are counted as in a new process."""
    NAME_SCOPE.set(NameScope())


def device_guard(device: str | None = None) -> Block:
    """Mark operators built inside with a device (attribute ``op_device``); all run on the CPU here.

    Parameters
    ----------
    device
        ``"cpu"``, ``"gpu"`` or ``"gpu:0"``; None for no mark.

    Returns
    -------
    Block
        A context manager; it also decorates functions.

    Raises
    ------
    ValueError
        ``device`` is neither ``"cpu"``, ``"gpu"`` (with or without an index) nor None.

    >>> import paddlelike as fluid
    >>> with fluid.device_guard("cpu"):
    ...     y = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    """
    name = "" if device is None else device
    if name.split(":")[0] not in ("", "cpu", "gpu"):
        raise ValueError(f"device_guard takes 'cpu', 'gpu' or None, not {device!r}")
    return DEVICE.replaced(name)


def _get_var(name: str, program: Program | None = None) -> Variable:
    """Return the variable of that name in block 0 of a program, by default the main program.

    Scripts import it although Fluid does not list it. Raises GraphError when there is none.
    """
    return (default_main_program() if program is None else program).global_block().var(name)
