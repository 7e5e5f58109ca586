"""Random tensors and dropout. A seed of 0 means the program's ``random_seed``, or a new one every run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework.graph.guards import device_guard
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import (
    FLOATS,
    INTEGERS,
    check_choice,
    check_variable,
    describe,
    is_whole,
)
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import add_shape, fill_constant
from paddlelike.layers.tensor.creation import create_named_temporary
from paddlelike.layers.tensor.sizes import has_variables, replace_variables

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike
    from paddlelike.framework.typing import ShapeLike, Size

__all__ = [
    "dropout",
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "randint",
    "randn",
    "random_crop",
    "randperm",
    "sampling_id",
    "uniform_random",
    "uniform_random_batch_size_like",
]


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Return ``x`` with each element set to 0 with probability ``dropout_prob`` (operator ``dropout``).

    ``"downgrade_in_infer"`` keeps the others unchanged and multiplies by ``1 - p`` in test programs;
    ``"upscale_in_train"`` divides them by ``1 - p`` and does nothing in test programs; ``is_test=True``
    does so in every program. With a seed every run drops the same elements. Raises TypeError unless ``x``
    is a variable of a supported dtype and GraphError for another ``dropout_implementation``.

    >>> import paddlelike as fluid
    >>> ones = fluid.layers.ones([2, 3], "float32")
    >>> tested = fluid.layers.dropout(ones, dropout_prob=0.25, is_test=True)
    >>> fluid.Executor().run(fetch_list=[tested])
    [array([[0.75, 0.75, 0.75],
           [0.75, 0.75, 0.75]], dtype=float32)]
    """
    check_variable("dropout", "x", x, FLOATS)
    check_choice(
        "dropout",
        "dropout_implementation",
        dropout_implementation,
        ("downgrade_in_infer", "upscale_in_train"),
    )
    helper = LayerHelper("dropout", name=name)
    if not seed and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    outputs = {"Out": x.dtype, "Mask": VarType.UINT8}
    attrs = {
        "dropout_prob": dropout_prob,
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    out, _ = emit_all("dropout", {"X": [x]}, outputs, attrs, helper=helper, constant=("Mask",))
    return out


def uniform_random(
    shape: ShapeLike, dtype: DtypeLike = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Return uniform values in [min, max) (operator ``uniform_random``).

    ``shape`` may be or hold int variables. The operator computes float32 whatever ``dtype`` is, as in
    Fluid, see ``fluid.quirks()``. A ``seed`` other than 0 gives the same values in every run. Raises
    TypeError when ``shape`` is neither a list of ints nor a variable.

    >>> import paddlelike as fluid
    >>> noise = fluid.layers.uniform_random([2, 3], min=0.0, max=0.5, seed=1)
    >>> (drawn,) = fluid.Executor().run(fetch_list=[noise])
    >>> drawn.shape, bool((drawn >= 0).all() and (drawn <= 0.5).all())
    ((2, 3), True)
    """
    kind = convert_dtype(dtype)
    helper = LayerHelper("uniform_random")
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"seed": seed, "min": min, "max": max}
    if kind != VarType.FP32 and not warn_quirk("uniform_random_dtype"):
        attrs["dtype"] = int(kind)
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
    else:
        attrs["shape"] = replace_variables(_dims("uniform_random", shape))
        if has_variables(shape):
            inputs["ShapeTensorList"] = [_dim(helper, dim) for dim in shape]
    return emit("uniform_random", inputs, attrs, helper=helper, dtype=kind)


def gaussian_random(
    shape: ShapeLike, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: DtypeLike = "float32"
) -> Variable:
    """Return normal values with that ``mean`` and standard deviation ``std`` (operator ``gaussian_random``).

    ``shape`` may be or hold int variables; ``dtype`` is float32 or float64; a ``seed`` other than 0 gives
    the same values in every run.

    >>> import paddlelike as fluid
    >>> noise = fluid.layers.gaussian_random([1000], mean=5.0, std=0.01, seed=1)
    >>> (drawn,) = fluid.Executor().run(fetch_list=[noise])
    >>> print(f"{drawn.mean():.1f}")
    5.0
    """
    kind = convert_dtype(dtype)
    helper = LayerHelper("gaussian_random")
    out = helper.create_variable_for_type_inference(kind)
    inputs: dict[str, Any] = {}
    attrs = {"mean": mean, "std": std, "seed": seed, "dtype": int(kind), "use_mkldnn": False}
    add_shape("gaussian_random", shape, inputs, attrs)
    helper.append_op(type="gaussian_random", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def _dims(layer: str, shape: object) -> list[Size]:
    if not isinstance(shape, list | tuple) or not shape:
        raise TypeError(f"layer {layer!r}: shape must be a list of ints, got {describe(shape)}")
    return list(shape)


def _dim(helper: LayerHelper, dim: Size) -> Variable:
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        return dim
    temporary = helper.create_variable_for_type_inference("int64")
    return fill_constant([1], "int64", dim, force_cpu=True, out=temporary)


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: DtypeLike = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """Return uniform values; dim ``output_dim_idx`` is as long as dim ``input_dim_idx`` of ``input``.

    The numbers lie between ``min`` and ``max``; ``shape`` is the shape but for one dim, ``seed`` 0
    takes the program's.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> fluid.layers.uniform_random_batch_size_like(x, [-1, 3]).shape
    (-1, 3)
    """
    attrs = {"min": min, "max": max, "seed": seed}
    batch = (input_dim_idx, output_dim_idx)
    return _batch_size_like("uniform_random_batch_size_like", input, shape, dtype, batch, attrs)


def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return normal values; dim ``output_dim_idx`` is as long as dim ``input_dim_idx`` of ``input``.

    The numbers have mean ``mean`` and standard deviation ``std``; ``shape`` is the shape but for one
    dim, ``seed`` 0 takes the program's.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> fluid.layers.gaussian_random_batch_size_like(x, [-1, 3]).shape
    (-1, 3)
    """
    attrs = {"mean": mean, "std": std, "seed": seed}
    batch = (input_dim_idx, output_dim_idx)
    return _batch_size_like("gaussian_random_batch_size_like", input, shape, dtype, batch, attrs)


def _batch_size_like(
    type: str,
    input: Variable,
    shape: Sequence[int],
    dtype: DtypeLike,
    batch: tuple[int, int],
    attrs: dict[str, Any],
) -> Variable:
    check_variable(type, "input", input)
    kind = convert_dtype(dtype)
    common = {"shape": _dims(type, shape), "dtype": int(kind)}
    dims = {"input_dim_idx": batch[0], "output_dim_idx": batch[1]}
    return emit(type, {"Input": input}, {**common, **dims, **attrs}, dtype=kind)


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

    ``shape`` may be or hold int variables; ``dtype`` is int64 by default; ``device`` is recorded
    (:func:`~paddlelike.device_guard`). Raises TypeError for another dtype than int32 and int64,
    GraphError for an empty range.

    Gradients end here unless ``stop_gradient`` is False; ``seed`` 0 takes the program's.

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
        inputs["ShapeTensorList"] = [_dim(helper, dim) for dim in shape]
    else:
        attrs["shape"] = [1] if shape is None else _dims("randint", shape)
    found = create_named_temporary(helper, name, dtype=kind) if out is None else out
    with nullcontext() if device is None else device_guard(device):
        helper.append_op(type="randint", inputs=inputs, outputs={"Out": found}, attrs=attrs)
    found.stop_gradient = stop_gradient
    return found


def randn(
    shape: Sequence[int],
    out: Variable | None = None,
    dtype: DtypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Return standard normal values (operator ``gaussian_random``), by default float32.

    Like Fluid it draws the operator's seed, 0 to 99, from numpy's global generator when the network is built;
    ``device`` is recorded (:func:`~paddlelike.device_guard`).

    ``shape`` is the shape; gradients end here unless ``stop_gradient`` is False.

    >>> import paddlelike as fluid
    >>> fluid.layers.randn([2, 3]).shape
    (2, 3)
    """
    kind = VarType.FP32 if dtype is None else convert_dtype(dtype)
    dims = _dims("randn", shape)
    helper = LayerHelper("randn", name=name)
    found = helper.create_variable_for_type_inference(kind) if out is None else out
    seed = int(np.random.randint(0, 100))  # noqa: NPY002 (the generator that np.random.seed sets)
    attrs = {"shape": dims, "mean": 0.0, "std": 1.0, "seed": seed, "dtype": int(kind), "use_mkldnn": False}
    with device_guard(device):
        helper.append_op(type="gaussian_random", outputs={"Out": found}, attrs=attrs)
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

    ``device`` is recorded (:func:`~paddlelike.device_guard`). Raises GraphError unless ``n`` is a positive
    int.

    Gradients end here unless ``stop_gradient`` is False; ``seed`` 0 takes the program's. The result
    has shape (n,).

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
    """Return a part of ``shape`` of every sample, at a random place (operator ``random_crop``).

    ``seed`` is an int, or an int64 variable of shape [1]; None draws it, as Fluid does, from numpy's global
    generator when the network is built. Raises TypeError unless ``x`` is a variable, GraphError for anything
    else.

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
        type="random_crop",
        inputs={"X": x, "Seed": seed},
        outputs={"Out": out, "SeedOut": seed},
        attrs=attrs,
    )
    return out


def sampling_id(
    x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: DtypeLike = "float32"
) -> Variable:
    """Return for each row of probabilities (N, D) the index of a column drawn by them: (N,).

    Operator ``sampling_id``. Raises TypeError unless ``x`` is a variable.

    A number between ``min`` and ``max`` chooses the class of each row; ``seed`` 0 takes the
    program's.

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
