"""Random integers, permutations, crops and classes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, device_guard
from paddlelike.layers.emit import INTEGERS, check_variable, emit, has_variables, is_whole
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.random.tensors import read_dim, read_dims
from paddlelike.layers.tensor.assign import create_named_temporary

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.framework.typing import ShapeLike

__all__ = ["randint", "random_crop", "randperm", "sampling_id"]


def randint(
    low: int,
    high: int | None = None,
    shape: ShapeLike | None = None,
    out: Variable | None = None,
    dtype: DtypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Return integers in [low, high), or in [0, low) when ``high`` is None (operator ``randint``).

    ``dtype`` is int64 by default; ``device`` is recorded (:func:`~paddlelike.device_guard`).

    Gradients end here unless ``stop_gradient`` is False; with ``seed`` 0 the program's seed is used.

    Parameters
    ----------
    low
        The least integer; if ``high`` is None, the excluded upper bound.
    high
        The upper bound, excluded; None for the integers from 0 up to ``low``.
    shape
        Ints, or variables of shape [1], or one int variable.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``dtype`` is neither int32 nor int64.
    GraphError
        The range is empty.

    >>> import paddlelike as fluid
    >>> fluid.layers.randint(0, 10, shape=[2, 3]).shape
    (2, 3)
    """
    kind = VarType.INT64 if dtype is None else convert_dtype(dtype)
    if kind not in INTEGERS:
        raise TypeError(f"layer 'randint': dtype is {dtype!r}, expected int32 or int64")
    low, high = (0, low) if high is None else (low, high)
    if low >= high:
        raise GraphError(f"layer 'randint': low is {low}, high is {high}, expected low < high")
    helper = LayerHelper("randint", name=name)
    attrs: dict[str, Any] = {"low": low, "high": high, "seed": seed, "dtype": int(kind)}
    inputs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["ShapeTensor"] = shape
    elif shape is not None and has_variables(shape):
        inputs["ShapeTensorList"] = [read_dim(helper, dim) for dim in shape]
    else:
        attrs["shape"] = [1] if shape is None else read_dims("randint", shape)
    found = create_named_temporary(helper, name, dtype=kind) if out is None else out
    with nullcontext() if device is None else device_guard(device):
        helper.append_op(type="randint", inputs=inputs, outputs={"Out": found}, attrs=attrs)
    found.stop_gradient = stop_gradient
    return found


def randperm(
    n: int,
    out: Variable | None = None,
    dtype: DtypeLike = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """Return the integers 0 .. n - 1 in random order (operator ``randperm``).

    ``device`` is recorded (:func:`~paddlelike.device_guard`).

    Gradients end here unless ``stop_gradient`` is False; with ``seed`` 0 the program's seed is used.

    Parameters
    ----------
    n
        The number of integers, positive.

    Returns
    -------
    Variable
        (n,), of ``dtype``. It is ``out`` if that is given.

    Raises
    ------
    GraphError
        ``n`` is not a positive int.

    >>> import paddlelike as fluid
    >>> fluid.layers.randperm(5).shape
    (5,)
    """
    if not is_whole(n) or n <= 0:
        raise GraphError(f"layer 'randperm': n is {n!r}, expected a positive int")
    kind = convert_dtype(dtype)
    attrs = {"n": n, "dtype": int(kind), "seed": seed}
    with device_guard(device):
        found = emit("randperm", {}, attrs, dtype=kind, out=out)
    found.stop_gradient = stop_gradient
    return found


def random_crop(x: Variable, shape: Sequence[int], seed: int | Variable | None = None) -> Variable:
    """Return a part of shape ``shape`` from every sample, at a random position (operator ``random_crop``).

    ``seed`` is an int, or an int64 variable of shape [1]. With None it is drawn from numpy's global generator
    when the network is built, as in Fluid.

    Parameters
    ----------
    x
        (N, ...) samples.
    shape
        The shape of the part of each sample.

    Returns
    -------
    Variable
        (N, ...) with ``shape`` in place of the last dims of ``x``, in its dtype.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        ``seed`` is neither an int, a variable nor None.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 32, 32])
    >>> fluid.layers.random_crop(x, shape=[3, 28, 28]).shape
    (-1, 3, 28, 28)
    """
    check_variable("random_crop", "x", x)
    helper = LayerHelper("random_crop")
    out = helper.create_variable_for_type_inference(x.dtype)
    attrs: dict[str, Any] = {"shape": list(shape)}
    if not isinstance(seed, Variable):
        start = int(np.random.randint(-65536, 65536)) if seed is None else seed  # noqa: NPY002
        if not is_whole(start):
            raise GraphError(f"layer 'random_crop': seed must be an int or a variable, got {seed!r}")
        attrs["startup_seed"] = start
        name = unique_name.generate("random_crop_seed")
        seed = helper.create_variable(name=name, dtype="int64", persistable=True)
    elif seed.dtype != VarType.INT64:
        raise GraphError(f"layer 'random_crop': seed {seed.name!r} has dtype {seed.dtype.name}")
    helper.append_op(
        type="random_crop", inputs={"X": x, "Seed": seed}, outputs={"Out": out, "SeedOut": seed}, attrs=attrs
    )
    return out


def sampling_id(
    x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: DtypeLike = "float32"
) -> Variable:
    """Draw for each row of probabilities (N, D) the index of a column: (N,).

    Operator ``sampling_id``.

    A uniform number between ``min`` and ``max`` chooses the column of each row; with ``seed`` 0 the program's
    seed is used.

    Parameters
    ----------
    x
        Probabilities (N, D).
    min, max
        The bounds of the uniform numbers that choose the columns.

    Returns
    -------
    Variable
        (N,), the index of a column for each row; int64 in a run, declared with ``dtype``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> fluid.layers.sampling_id(x).shape
    (-1,)
    """
    check_variable("sampling_id", "x", x)
    attrs = {"min": min, "max": max, "seed": seed}
    out = emit("sampling_id", {"X": x}, attrs)
    out.dtype = convert_dtype(dtype)  # as Fluid declares it; the values are int64
    return out
