"""Printing variables while a program runs, and calling Python functions from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import check_choice, check_variable, check_variables, describe, emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.ops.control.callbacks import register_function

__all__ = ["Print", "py_func"]


def Print(  # noqa: N802  (Fluid's name)
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Return ``input``, which is printed whenever the program computes it (operator ``print``).

    The first ``first_n`` times (-1: always) ``summarize`` elements (-1: all) are printed after ``message``;
    ``print_tensor_name``, ``print_tensor_type``, ``print_tensor_shape`` and ``print_tensor_lod`` add the
    name, dtype, shape and LoD. ``print_phase`` is ``"forward"``, ``"backward"`` (print the gradient) or
    ``"both"``.

    Parameters
    ----------
    input
        A variable of any shape.
    first_n
        The number of times it is printed; -1 for always.
    message
        A text that is printed before the elements; None for none.
    summarize
        The number of elements that are printed; -1 for all.
    print_tensor_name, print_tensor_type, print_tensor_shape, print_tensor_lod
        Whether to print the name, the type, the shape or the LoD of the variable.
    print_phase
        ``"forward"``, ``"backward"`` for its gradient, or ``"both"``.

    Returns
    -------
    Variable
        The values of ``input``, in its shape and dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        ``print_phase`` is neither ``"forward"``, ``"backward"`` nor ``"both"``.

    >>> import paddlelike as fluid
    >>> x = fluid.layers.fill_constant([3], "float32", 0.5)
    >>> seen = fluid.layers.Print(x, message="half", print_tensor_name=False)
    >>> _ = fluid.Executor().run(fetch_list=[seen])
    half
        shape: [3]
        dtype: float32
        data: 0.5, 0.5, 0.5
    """
    check_variable("Print", "input", input)
    check_choice("Print", "print_phase", print_phase.upper(), ("FORWARD", "BACKWARD", "BOTH"))
    attrs = {
        "first_n": first_n,
        "summarize": summarize,
        "message": message or "",
        "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type,
        "print_tensor_shape": print_tensor_shape,
        "print_tensor_lod": print_tensor_lod,
        "print_phase": print_phase.upper(),
    }
    return emit("print", {"In": input}, attrs, layer=f"print_{input.name}", dtype=input.dtype)


Outputs = TypeVar("Outputs", bound="Variable | Sequence[Variable] | None")


def py_func(
    func: Callable[..., Any],
    x: Variable | Sequence[Variable] | None,
    out: Outputs,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Variable | Sequence[Variable] | None = None,
) -> Outputs:
    """Call a Python function with the values of ``x``, and write its results to ``out`` (``py_func``).

    The function gets LoDTensors, which numpy accepts as arrays, and may return arrays. ``x`` and ``out`` are
    variables or lists of variables; create those of ``out`` with a shape and a dtype. ``backward_func`` takes
    the inputs, the outputs (without ``skip_vars_in_backward_input``) and the outputs' gradients, and returns
    one gradient per input, which may be None for an input whose gradients stop, such as a label. Without
    ``backward_func`` gradients stop here. A saved program does not contain the function.

    Parameters
    ----------
    func
        The function. It gets LoDTensors, one per variable of ``x``, and may return arrays.
    x
        A variable, or a list of variables.
    out
        A variable, or a list of variables, with shape and dtype.
    backward_func
        A function of the inputs, the outputs and the gradients of the outputs that returns a gradient per
        input, or None for an input without a gradient; None to end gradients here.
    skip_vars_in_backward_input
        Variables of ``x`` and ``out`` that ``backward_func`` does not take.

    Returns
    -------
    Variable or list
        ``out``, with the values of the function, in the declared shapes and dtypes.

    Raises
    ------
    TypeError
        ``func`` is not callable.
    GraphError
        An output has no shape.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.fill_constant([2], "float32", 3.0)
    >>> out = fluid.default_main_program().global_block().create_var(name="out", shape=[2], dtype="float32")
    >>> y = fluid.layers.py_func(lambda a: np.asarray(a) * 2, x, out)
    >>> fluid.Executor().run(fetch_list=[y])
    [array([6., 6.], dtype=float32)]
    """
    if not callable(func) or not (backward_func is None or callable(backward_func)):
        raise TypeError(f"layer 'py_func': func must be a function, got {describe(func)}")
    inputs = [] if x is None else check_variables("py_func", "x", x)
    outputs = [] if out is None else check_variables("py_func", "out", out)
    for one in outputs:
        if not one.shape:
            raise GraphError(
                f"layer 'py_func': out {one.name!r} has no shape",
                hint="create it with the shape and dtype that the function will return",
            )
    skipped = [] if skip_vars_in_backward_input is None else skip_vars_in_backward_input
    names = [one.name for one in check_variables("py_func", "skip_vars_in_backward_input", skipped)]
    known = {one.name for one in [*inputs, *outputs]}
    if not known.issuperset(names):
        raise GraphError(
            f"layer 'py_func': skip_vars_in_backward_input names {sorted(set(names) - known)}, which are "
            "neither in x nor in out"
        )
    LayerHelper("py_func").append_op(
        type="py_func",
        inputs={"X": inputs},
        outputs={"Out": outputs},
        attrs={
            "forward_callable_id": register_function(func),
            "backward_callable_id": -1 if backward_func is None else register_function(backward_func),
            "backward_skip_vars": names,
        },
    )
    return out
