"""Inputs of a network: fed variables, and tensors read from files."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.framework import Variable, default_main_program
from paddlelike.layers.emit import check_variable, describe
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["data", "load"]


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: DtypeLike = "float32",
    lod_level: int = 0,
    type: VarType = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """Return a variable whose value is fed: the older form of :func:`~paddlelike.data`, which does not check
    feeds.

    It appends no operator. A batch dim of -1 is put in front of ``shape``, unless ``append_batch_size`` is
    False or ``shape`` has a dim of -1 or None already. Gradients end here unless ``stop_gradient`` is False.

    Parameters
    ----------
    name
        The name by which it is fed.
    shape
        The shape of a sample, or of a batch: ints, -1 or None where a dim is not known.
    append_batch_size
        Whether a batch dim of -1 is put in front of ``shape``.
    lod_level
        The number of levels of sequences that the rows have.
    type
        The kind of the value: a tensor with a LoD, an array of tensors, ...

    Returns
    -------
    Variable
        A variable to be fed, of ``dtype``: of ``shape``, with a batch dim in front unless it has one.

    Raises
    ------
    TypeError
        ``name`` or ``shape`` is invalid.

    >>> import paddlelike as fluid
    >>> fluid.layers.data("image", [1, 28, 28]).shape
    (-1, 1, 28, 28)
    """
    dims = check_data("layers.data", name, shape)
    if append_batch_size and -1 not in dims:
        dims = [-1, *dims]
    return default_main_program().global_block().create_var(
        name=name,
        shape=dims,
        dtype=dtype,
        type=type,
        lod_level=lod_level,
        stop_gradient=stop_gradient,
        is_data=True,
        persistable=False,
    )  # fmt: skip


def check_data(layer: str, name: object, shape: Sequence[int | None]) -> list[int]:
    """Return the dims of a data variable, None as -1. Raises TypeError for an invalid name or shape."""
    if not isinstance(name, str | bytes):
        raise TypeError(
            f"layer {layer!r}: name must be a string, got {describe(name)}\n  hint: the name comes first: "
            "fluid.data('x', [None, 13], 'float32')"
        )
    if not isinstance(shape, list | tuple):
        raise TypeError(
            f"layer {layer!r}: shape of {name!r} must be a list of ints, got {describe(shape)}\n  hint: "
            f"[None, {shape}] for a batch of rows of {shape} numbers"
            if isinstance(shape, int)
            else f"layer {layer!r}: shape of {name!r} must be a list of ints, got {describe(shape)}"
        )
    for dim in shape:
        if dim is not None and not isinstance(dim, numbers.Number):
            raise TypeError(
                f"layer {layer!r}: shape of {name!r} is {list(shape)}, expected ints, and None where the "
                f"size is known at run time only; got {describe(dim)}"
            )
    return [-1 if dim is None else int(dim) for dim in shape]


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Read a tensor file into ``out`` when the program runs (operator ``load``).

    ``out`` takes the shape of the tensor in the file.

    Parameters
    ----------
    out
        The variable to read into.
    file_path
        The path of a tensor file.
    load_as_fp16
        Whether to convert the values to float16.

    Raises
    ------
    TypeError
        ``out`` is not a variable.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> file = f"{tempfile.mkdtemp()}/x"
    >>> x = fluid.layers.fill_constant([2], "float32", 3.0)
    >>> _ = x.block.append_op("save", {"X": x}, {}, {"file_path": file})
    >>> _ = fluid.Executor().run()
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main):
    ...     y = fluid.layers.create_tensor("float32", name="y")
    ...     fluid.layers.load(y, file)
    >>> fluid.Executor().run(main, fetch_list=[y])
    [array([3., 3.], dtype=float32)]
    """
    check_variable("load", "out", out)
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op(type="load", inputs={}, outputs={"Out": out}, attrs=attrs)
