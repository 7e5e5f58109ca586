"""Random tensors. A seed of 0 means the program's ``random_seed``, or a new one every run.

Parameters
----------
shape
    Ints, or variables of shape [1], or one int variable.
mean
    The mean of the numbers.
std
    The standard deviation of the numbers.
min
    The lower bound of the numbers, included.
max
    The upper bound of the numbers, excluded.
input
    The variable that gives the length of one dim, usually a batch.
input_dim_idx
    The dim of ``input`` that gives the length.
output_dim_idx
    The dim of the result that takes the length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework import Variable, device_guard, warn_quirk
from paddlelike.layers.emit import check_variable, describe, emit, has_variables, replace_variables
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import add_shape, fill_constant

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.framework.typing import ShapeLike, Size

__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "randn",
    "uniform_random",
    "uniform_random_batch_size_like",
]


def uniform_random(
    shape: ShapeLike, dtype: DtypeLike = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Return uniform values in [min, max) (operator ``uniform_random``).

    The operator always computes float32, as in Fluid, see ``fluid.quirks()``. A ``seed`` other than 0 gives
    the same values in every run.

    Returns
    -------
    Variable
        Of ``shape``; float32.

    Raises
    ------
    TypeError
        ``shape`` is neither a list of ints nor a variable.

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
        attrs["shape"] = replace_variables(read_dims("uniform_random", shape))
        if has_variables(shape):
            inputs["ShapeTensorList"] = [read_dim(helper, dim) for dim in shape]
    return emit("uniform_random", inputs, attrs, helper=helper, dtype=kind)


def gaussian_random(
    shape: ShapeLike, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: DtypeLike = "float32"
) -> Variable:
    """Return numbers of a normal distribution, with ``mean`` and deviation ``std`` (``gaussian_random``).

    ``dtype`` is float32 or float64; a ``seed`` other than 0 gives the same values in every run.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``.

    Raises
    ------
    TypeError
        ``shape`` is neither a list of ints nor a variable.

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


def read_dims(layer: str, shape: object) -> list[Size]:
    if not isinstance(shape, list | tuple) or not shape:
        raise TypeError(f"layer {layer!r}: shape must be a list of ints, got {describe(shape)}")
    return list(shape)


def read_dim(helper: LayerHelper, dim: Size) -> Variable:
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

    Operator ``uniform_random_batch_size_like``. With ``seed`` 0 the program's seed is used.

    Returns
    -------
    Variable
        Of ``shape``, except dim ``output_dim_idx``, and of ``dtype``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

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

    Operator ``gaussian_random_batch_size_like``. With ``seed`` 0 the program's seed is used.

    Returns
    -------
    Variable
        Of ``shape``, except dim ``output_dim_idx``, and of ``dtype``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

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
    common = {"shape": read_dims(type, shape), "dtype": int(kind)}
    dims = {"input_dim_idx": batch[0], "output_dim_idx": batch[1]}
    return emit(type, {"Input": input}, {**common, **dims, **attrs}, dtype=kind)


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

    Gradients end here unless ``stop_gradient`` is False.

    Parameters
    ----------
    shape
        The dims: a list of ints.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``shape`` is not a list of ints.

    >>> import paddlelike as fluid
    >>> fluid.layers.randn([2, 3]).shape
    (2, 3)
    """
    kind = VarType.FP32 if dtype is None else convert_dtype(dtype)
    dims = read_dims("randn", shape)
    helper = LayerHelper("randn", name=name)
    found = helper.create_variable_for_type_inference(kind) if out is None else out
    seed = int(np.random.randint(0, 100))  # noqa: NPY002 (the generator that np.random.seed sets)
    attrs = {"shape": dims, "mean": 0.0, "std": 1.0, "seed": seed, "dtype": int(kind), "use_mkldnn": False}
    with device_guard(device):
        helper.append_op(type="gaussian_random", outputs={"Out": found}, attrs=attrs)
    found.stop_gradient = stop_gradient
    return found
