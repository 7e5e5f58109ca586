"""Initializers of parameters: operators at the front of the startup program.

Random initializers with seed 0 use the ``random_seed`` of the startup program; the same network and seed then
start with the same bits as in Paddle.

Parameters
----------
value
    The number in each element.
force_cpu
    It has no effect on a CPU.
uniform
    Whether to draw from a uniform distribution, otherwise from a normal one.
fan_in
    The number of inputs of a unit; None to compute it from the shape.
fan_out
    The number of outputs of a unit; None to compute it from the shape.
loc
    The mean of the numbers.
scale
    The standard deviation.
seed
    The seed; with 0 the startup program's seed decides.
low, high
    The bounds; ``low`` is included, ``high`` excluded.
diag_num
    The number of elements that are set to ``diag_val``.
diag_step
    The number of elements from one of these to the next.
diag_val
    The value of these elements.
"""

from __future__ import annotations

import math
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, Versioned, numpy_dtype
from paddlelike.errors import GraphError
from paddlelike.foundation.docstrings import complete_docstring, read_shared_entries, show_related
from paddlelike.foundation.keyword_options import NearKeywords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from paddlelike.core import Array
    from paddlelike.framework import Block, Operator, Variable
from paddlelike.framework import warn_quirk

__all__ = [
    "MSRA",
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
    "force_init_on_cpu",
    "init_on_cpu",
]

_force_cpu = False


def force_init_on_cpu() -> bool:
    """Return whether :func:`init_on_cpu` is active; here initializers always run on the CPU.

    Returns
    -------
    bool
        True inside of the ``with`` block of :func:`init_on_cpu`.

    >>> import paddlelike as fluid
    >>> fluid.initializer.force_init_on_cpu()
    False
    """
    return _force_cpu


@contextmanager
def init_on_cpu() -> Iterator[None]:
    """Request that initializers built inside the ``with`` run on the CPU (Fluid's; it changes nothing here).

    >>> import paddlelike as fluid
    >>> manager = fluid.initializer.init_on_cpu()
    """
    global _force_cpu
    before, _force_cpu = _force_cpu, True
    try:
        yield
    finally:
        _force_cpu = before


class Initializer(NearKeywords, Versioned):
    """Base class of the initializers; a call with a variable and a block inserts an operator at the block's
    front.

    Parameters
    ----------
    given
        The arguments of the subclass.

    Raises
    ------
    NotImplementedError
        The subclass does not define ``__call__``.

    >>> import paddlelike as fluid
    >>> isinstance(fluid.initializer.Xavier(), fluid.initializer.Initializer)
    True
    """

    def __init_subclass__(cls) -> None:
        complete_docstring(cls, read_shared_entries(__name__))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name.strip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert the operator that initializes ``var``, and return it."""
        raise NotImplementedError

    @staticmethod
    def _compute_fans(var: Variable) -> tuple[int, int]:
        """Return fan-in and fan-out; for a convolution both are multiplied by the size of its window."""
        shape = var.shape
        if len(shape) <= 1:
            size = 1 if not shape else shape[0]
            return size, size
        if len(shape) == 2:
            return shape[0], shape[1]
        window = int(np.prod(shape[2:]))
        return shape[1] * window, shape[0] * window


class ConstantInitializer(Initializer):
    """Initializes every element to ``value`` (operator ``fill_constant``).

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        self._value = value
        self._force_cpu = force_cpu

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert ``fill_constant``, and return it."""
        attrs = {"value": float(self._value), "force_cpu": self._force_cpu or _force_cpu}
        return _insert(var, block, "fill_constant", attrs)


class _Random(Initializer):
    """Base class of the random initializers, which have a seed; float32 values are cast for float16."""

    operator: ClassVar[str]

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _attrs(self, var: Variable) -> dict[str, Any]:
        raise NotImplementedError

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert the random operator, and return it."""
        if self._seed == 0:
            self._seed = block.program.random_seed
        return _insert(var, block, self.operator, {**self._attrs(var), "seed": self._seed})


class UniformInitializer(_Random):
    """Draws uniformly from [low, high); ``diag_num`` elements, ``diag_step`` apart, are then set to
    ``diag_val`` (operator ``uniform_random``).

    Raises
    ------
    GraphError
        ``low`` is above ``high``.

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-0.1, 0.1))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    operator = "uniform_random"

    def __init__(
        self,
        low: float = -1.0,
        high: float = 1.0,
        seed: int = 0,
        diag_num: int = 0,
        diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        if high < low:
            raise GraphError(f"Uniform: low {low} is above high {high}")
        super().__init__(seed)
        self._low, self._high = low, high
        self._diagonal = {"diag_num": diag_num, "diag_step": diag_step, "diag_val": diag_val}

    def _attrs(self, var: Variable) -> dict[str, Any]:
        return {"min": self._low, "max": self._high, **self._diagonal}


class NormalInitializer(_Random):
    """Draws from the normal distribution of mean ``loc`` and standard deviation ``scale`` (operator
    ``gaussian_random``).

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.02))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    operator = "gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed)
        self._loc, self._scale = loc, scale

    def _attrs(self, var: Variable) -> dict[str, Any]:
        return {"mean": self._loc, "std": self._scale, "use_mkldnn": False}


class TruncatedNormalInitializer(_Random):
    """Draws from a normal distribution cut off at two standard deviations, ``scale``, from the mean ``loc``
    (operator ``truncated_gaussian_random``).

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormal(0.0, 0.02))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    operator = "truncated_gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed)
        self._loc, self._scale = loc, scale

    def _attrs(self, var: Variable) -> dict[str, Any]:
        return {"mean": self._loc, "std": self._scale}


class _Fan(_Random):
    """Draws from a uniform or normal distribution whose variance follows from the fans of the weight."""

    def __init__(self, uniform: bool, seed: int) -> None:
        super().__init__(seed)
        self._uniform = uniform

    def _variance(self, var: Variable) -> float:
        raise NotImplementedError

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert the random operator, and return it."""
        if self._seed == 0:
            self._seed = block.program.random_seed
        variance = self._variance(var)
        if self._uniform:
            limit = math.sqrt(3.0 * variance)
            attrs = {"min": -limit, "max": limit, "seed": self._seed}
            return _insert(var, block, "uniform_random", attrs)
        attrs = {"mean": 0.0, "std": math.sqrt(variance), "seed": self._seed}
        return _insert(var, block, "gaussian_random", attrs)


class XavierInitializer(_Fan):
    """Draws numbers of mean 0 and variance ``2 / (fan_in + fan_out)`` (Glorot & Bengio 2010).

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Xavier(uniform=False))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(uniform, seed)
        self._fan_in, self._fan_out = fan_in, fan_out

    def _variance(self, var: Variable) -> float:
        of_shape = self._compute_fans(var)
        fan_in = of_shape[0] if self._fan_in is None else self._fan_in
        fan_out = of_shape[1] if self._fan_out is None else self._fan_out
        return 2.0 / float(fan_in + fan_out)


class MSRAInitializer(_Fan):
    """Draws numbers of mean 0 and variance ``2 / fan_in`` (He et al. 2015).

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.MSRA(uniform=False))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    """

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        super().__init__(uniform, seed)
        self._fan_in = fan_in

    def _variance(self, var: Variable) -> float:
        fan_in = self._compute_fans(var)[0] if self._fan_in is None else self._fan_in
        return 2.0 / float(fan_in)


class BilinearInitializer(Initializer):
    """The weight (C, 1, K, K) of a transposed convolution that interpolates bilinearly.

    As Fluid computes it, under Python 3, the rows are shifted: see ``fluid.quirks()``.

    >>> import paddlelike as fluid
    >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Bilinear())
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.conv2d_transpose(x, 3, None, 4, padding=1, stride=2, groups=3, param_attr=attr).shape
    (-1, 3, 16, 16)
    """

    def __init__(self) -> None:
        self._shifted = warn_quirk("bilinear_weights")

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert ``assign_value``, and return it. Raises GraphError for another shape."""
        if len(var.shape) != 4 or var.shape[2] != var.shape[3]:
            raise GraphError(f"Bilinear: {var.name!r} has shape {list(var.shape)}, expected [C, 1, K, K]")
        size = var.shape[3]
        factor = math.ceil(size / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        index = np.arange(size * size)
        row = index / size if self._shifted else index // size
        across, down = (1 - np.abs(place / factor - center) for place in (index % size, row))
        weight = np.broadcast_to((across * down).reshape(size, size), var.shape)
        return NumpyArrayInitializer(weight.astype("float32"))(var, block)


class NumpyArrayInitializer(Initializer):
    """Initializes a variable with the values of an array (operator ``assign_value``).

    Parameters
    ----------
    value
        An array in the shape of the parameter.

    Raises
    ------
    GraphError
        ``value`` is not a numpy array.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> value = fluid.initializer.NumpyArrayInitializer(np.ones((4, 2), "float32"))
    >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=fluid.ParamAttr(initializer=value))
    """

    def __init__(self, value: Array) -> None:
        if not isinstance(value, np.ndarray):
            raise GraphError(f"NumpyArrayInitializer: value must be a numpy array, got {value!r}")
        self._value = value

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Insert ``assign_value``, and return it. Raises GraphError for an unsuitable size or dtype."""
        if self._value.size > 1024 * 1024 * 1024:
            raise GraphError(
                "NumpyArrayInitializer: the array has over 2**30 elements, too many for a program"
            )
        slot, dtype = _value_slot(var.dtype)
        values = self._value.astype(numpy_dtype(dtype)).reshape(-1).tolist()
        attrs = {slot: values, "shape": list(self._value.shape)}
        return _insert(var, block, "assign_value", attrs, dtype=dtype, with_shape=False)


def _value_slot(dtype: VarType) -> tuple[str, VarType]:
    """Return the attribute of ``assign_value`` for values of ``dtype``, and their element type there."""
    if dtype in (VarType.FP16, VarType.FP32):
        return "fp32_values", VarType.FP32
    if dtype == VarType.INT32:
        return "int32_values", VarType.INT32
    raise GraphError(f"NumpyArrayInitializer cannot fill a {dtype.name} variable; use float32 or int32")


def _insert(
    var: Variable,
    block: Block,
    type: str,  # noqa: A002
    attrs: dict[str, Any],
    *,
    dtype: VarType | None = None,
    with_shape: bool = True,
) -> Operator:
    """Insert the operator at the front; a float16 variable is first filled as float32, then cast."""
    if var.type == VarType.SELECTED_ROWS:
        return insert_table(var, block, type, attrs)
    dtype = var.dtype if dtype is None else dtype
    target = var
    if var.dtype == VarType.FP16 and type != "fill_constant":
        dtype = VarType.FP32
        target = block.create_var(
            name=unique_name.generate(f"{type}.{var.name}.tmp"), shape=var.shape, dtype=dtype, type=var.type
        )
    shape = {"shape": list(var.shape)} if with_shape else {}
    op = block._prepend_op(
        type=type,
        inputs={} if type == "uniform_random" else None,  # as Fluid writes them
        outputs={"Out": [target]},
        attrs={**shape, "dtype": int(dtype), **attrs},
    )
    if target is not var:
        block._insert_op(
            1,
            type="cast",
            inputs={"X": [target]},
            outputs={"Out": [var]},
            attrs={"in_dtype": int(dtype), "out_dtype": int(var.dtype)},
        )
    var.op = op
    return op


_RULES: Final = {
    "fill_constant": ("value", None),
    "uniform_random": ("min", "max"),
    "gaussian_random": ("mean", "std"),
}


def insert_table(var: Variable, block: Block, type: str, attrs: dict[str, Any]) -> Operator:  # noqa: A002
    """Insert the operator that makes an empty table; the initializer's rule makes its rows later."""
    if type not in _RULES:
        raise GraphError(
            f"{var.name!r} is a growing table (sparse_embedding): {type} cannot make single rows",
            hint="use Constant, Uniform, Normal or Xavier",
        )
    names = (name for name in _RULES[type] if name is not None)
    numbers = dict(zip(("first", "second"), (float(attrs[name]) for name in names), strict=False))
    seed = (attrs.get("seed", 0) << 32) + zlib.crc32(var.name.encode())  # tables have rows of their own
    given = {"width": var.shape[1], "dtype": int(var.dtype), "kind": type, "seed": seed, **numbers}
    var.op = block._prepend_op(type="make_sparse_table", outputs={"Out": [var]}, attrs=given)
    return var.op


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer

show_related(__name__)
