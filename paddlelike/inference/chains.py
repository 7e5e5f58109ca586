"""Chains of operators that prediction joins: a product and the operators after it.

A product by parameters (a convolution, the ``mul`` of a fully connected layer) begins a chain. Constant
factors and summands per channel, of batch_norm for instance, are folded into copies of the parameters; a
residual and an activation are applied while the result is in the cache. Results differ by rounding from those
of the single operators.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework import Operator
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.framework.passes.views import collect_reads, collect_writes
from paddlelike.inference import onednn_library
from paddlelike.lazy import dataclass
from paddlelike.ops.kernels.linalg import SHORT, multiply_rows

if TYPE_CHECKING:
    from paddlelike.inference import onednn
    from paddlelike.inference.cells import Loop
    from paddlelike.ops.kernels.nn.conv.packed import Activation
    from paddlelike.ops.kernels.nn.image.windows import Windows

#: Products of matrices, with the attributes that transpose X and Y.
_PRODUCTS: Final = {
    "matmul": ("transpose_X", "transpose_Y"),
    "matmul_v2": ("trans_x", "trans_y"),
    "mul": (),
}
_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_LEAST: Final = 256  # elements of a matrix that the library multiplies by
_REPEATED: Final = 4096  # elements


@dataclass
class Chain:
    """A product, then operators each of which is the only reader of the result before it.

    Attributes
    ----------
    x, residual, out
        Variables: the multiplied value, the value added to the result or None, the result.
    w
        Filters ``(O, ...)``, or a matrix ``(K, O)``; an array of the scope.
    factors, bias
        The factors and summands of the product, per channel, or None.
    cut
        The number of dims of x that are rows in a product of matrices; the others are columns.
    """

    ops: list[Operator]
    x: str
    out: str
    w: Array
    cut: int = 0
    factors: Array | None = None
    bias: Array | None = None
    residual: str | None = None
    activation: Activation | None = None
    activated: onednn_library.Eltwise | None = None
    indexes: list[int] = field(default_factory=list)

    @property
    def is_product(self) -> bool:
        """Whether the chain begins with a product of matrices."""
        return self.ops[0].type in _PRODUCTS

    def make_kernel(self, library: onednn_library.Library | None) -> Callable[..., Array]:
        """Return a function of the values of x and residual; the library computes the products that it
        accepts.
        """
        factors = None if self.factors is None else self.factors.astype(self.w.dtype)
        if not self.is_product:
            from paddlelike.ops.kernels.nn.conv.packed import PackedConv  # late: of images only

            return PackedConv(
                self.w, factors, self.bias, self._find_windows, self._get_groups(), self.activation
            )
        w = self.w if factors is None else self.w * factors
        plain = _make_product(w, self.bias, self.activation, self.cut, clips=self.ops[-1].type == "relu")
        if library is None or not self.fits_library():
            return plain
        from paddlelike.inference import onednn  # late: many programs use no library

        return onednn.Product(library, w, self.bias, self.cut, self.activated, plain)

    def make_operation(self, library: onednn_library.Library) -> onednn.Convolution | None:
        """Return the chain as a convolution of the library, or None if the library cannot compute it."""
        if self.is_product or not self.fits_library():
            return None
        from paddlelike.inference import onednn  # late: many programs use no library

        w = self.w
        if self.factors is not None:
            w = w * self.factors.astype(w.dtype)[:, None, None, None]
        return onednn.Convolution(
            library, w, self.bias, self._find_windows, self._get_groups(), self.activated
        )

    def fits_library(self) -> bool:
        """Return whether the library may compute the chain, and takes less time for some inputs."""
        is_large = not self.is_product or self.w.size >= _LEAST
        return (
            is_large and self.w.dtype == np.float32 and (self.activation is None) == (self.activated is None)
        )

    def _find_windows(self, spatial: tuple[int, int]) -> Windows:
        op = self.ops[0]
        attrs = _get_class(op).make_forward_keywords(op.attrs)["attrs"]
        return cast("Windows", attrs.windows(op.type, spatial, self.w.shape[2:]))

    def _get_groups(self) -> int:
        op = self.ops[0]
        return int(_get_class(op).make_forward_keywords(op.attrs)["attrs"].groups)

    def scale(self, by: Array | float, add: Array | float) -> None:
        """Fold ``result * by + add``, one number of each per channel, into the parameters."""
        dtype = self.w.dtype
        count = self.w.shape[1] if self.is_product else len(self.w)
        by = np.broadcast_to(np.asarray(by, np.float64), count)
        before = 0.0 if self.bias is None else self.bias.astype(np.float64)
        self.factors = by if self.factors is None else self.factors * by
        self.bias = (before * by + add).astype(dtype)

    def add(self, numbers: Array) -> None:
        """Fold ``result + numbers``, one number per channel, into the parameters."""
        self.bias = numbers if self.bias is None else self.bias + numbers


class Finder:
    """Finds operators of a block that can be joined; ``kept`` are fetched variables."""

    def __init__(self, ops: Sequence[Operator], scope: Scope, kept: Collection[str]) -> None:
        self._ops, self._scope = ops, scope
        self._readers: defaultdict[str, list[int]] = defaultdict(list)
        self._writes: Counter[str] = Counter()
        self._joined: set[int] = set()
        for index, op in enumerate(ops):
            for name in collect_reads(op):
                self._readers[name].append(index)
            self._writes.update(collect_writes(op) - self._find_unchanged(op))
        for name in kept:
            self._readers[name] += [-1, -1]  # other operators read it, too

    @staticmethod
    def _find_unchanged(op: Operator) -> set[str]:
        """Return the statistics that a batch_norm lists as outputs but leaves unchanged."""
        if op.type != "batch_norm" or not _is_fixed(op):
            return set()
        return {*op.output("MeanOut"), *op.output("VarianceOut")}

    def find(self) -> list[Chain]:
        """Return the chains."""
        found = []
        for index, op in enumerate(self._ops):
            chain = self._begin(op)
            if chain is None:
                continue
            chain.indexes.append(index)
            while (following := self._find_next(chain)) is not None:
                self._joined.add(following)
                chain.ops.append(self._ops[following])
                chain.indexes.append(following)
            if len(chain.ops) > 1 or not chain.is_product:
                found.append(chain)
        return found

    def find_loops(self, library: onednn_library.Library | None) -> dict[int, Loop]:
        """Return the loops over known cells by the index of their operators."""
        found = {}
        for index, op in enumerate(self._ops):
            if op.type != "recurrent":
                continue
            from paddlelike.inference.cells import find_loop  # late: most programs have no loops

            loop = find_loop(op, self._find_constant, library)
            if loop is not None:
                read = {name: which for name, which in loop.outputs.items() if self._readers[name]}
                found[index] = loop._replace(outputs=read)
        return found

    def _find_constant(self, name: str) -> Array | None:
        """Return the value of a parameter or of a ``fill_constant`` with one element."""
        found = self._get_parameter(name)
        if found is not None or self._writes[name] != 1:
            return found
        (op,) = (op for op in self._ops if name in collect_writes(op))
        if op.type != "fill_constant" or list(op.attrs["shape"]) != [1] or op.input_arg_names:
            return None
        return np.full(1, op.attrs["value"], numpy_dtype(VarType(op.attrs["dtype"])))

    def _begin(self, op: Operator) -> Chain | None:
        if op.type in ("conv2d", "depthwise_conv2d"):
            return self._begin_convolution(op)
        return self._begin_product(op) if op.type in _PRODUCTS else None

    def _begin_product(self, op: Operator) -> Chain | None:
        (x,), (y,) = op.input("X"), op.input("Y")
        w, variable = self._get_parameter(y), op.block._find_var_recursive(x)
        if w is None or w.ndim != 2 or self._writes[x] > 1 or variable is None:
            return None
        if op.type == "mul":
            return Chain([op], x, op.output("Out")[0], w, cut=op.attrs.get("x_num_col_dims", 1))
        transposes = [op.attrs.get(name, False) for name in _PRODUCTS[op.type]]
        if transposes[0] or op.attrs.get("alpha", 1.0) != 1.0 or len(variable.shape) < 2:
            return None
        w = np.ascontiguousarray(w.T) if transposes[1] else w
        return Chain([op], x, op.output("Out")[0], w, cut=len(variable.shape) - 1)

    def _begin_convolution(self, op: Operator) -> Chain | None:
        attrs = _get_class(op).make_forward_keywords(op.attrs)["attrs"]
        w = self._get_parameter(op.input("Filter")[0])
        x = op.input("Input")[0]
        if w is None or w.ndim != 4 or self._writes[x] > 1 or op.input("Bias") or op.input("ResidualData"):
            return None
        variable = op.block._find_var_recursive(x)
        if variable is None or len(variable.shape) != 4 or attrs.data_format not in ("NCHW", "AnyLayout"):
            return None
        by_channel = w.shape[1] == 1 and attrs.groups == len(w) == variable.shape[1]
        if attrs.groups != 1 and not by_channel:
            return None
        return Chain([op], x, op.output("Output")[0], w)

    def _get_parameter(self, name: str) -> Array | None:
        """Return the value of a parameter that the program does not change."""
        holder = self._scope.find_var(name)
        value = None if holder is None else holder.value
        variable = self._ops[0].block._find_var_recursive(name)
        if not isinstance(value, LoDTensor) or variable is None or not variable.persistable:
            return None
        array = value.held_array
        if array is None or array.dtype not in _FLOATS or list(array.shape) != list(variable.shape):
            return None
        return None if self._writes[name] else array

    def _find_next(self, chain: Chain) -> int | None:
        """Add the next operator to a chain and return it, or return None at the chain's end."""
        name = chain.out
        if len(self._readers[name]) != 1 or self._writes[name] != 1 or chain.activation is not None:
            return None
        (index,) = self._readers[name]
        op = self._ops[index]
        if (
            index < chain.indexes[-1]
            or index in self._joined
            or op.input_arg_names.count(name) != 1
            or op.sub_blocks()
        ):
            return None
        join = _JOINERS.get(op.type, Finder._join_activation)
        out = join(self, chain, op)
        if out is None:
            return None
        chain.out = out
        return index

    def _join_batch_norm(self, chain: Chain, op: Operator) -> str | None:
        slots = ("Scale", "Bias", "Mean", "Variance")
        numbers = [self._get_parameter(op.input(slot)[0]) for slot in slots]
        attrs = _get_class(op).make_forward_keywords(op.attrs)["attrs"]
        others = [name for slot in ("SavedMean", "SavedVariance", "ReserveSpace") for name in op.output(slot)]
        if not _is_fixed(op) or chain.is_product or chain.residual is not None or attrs.data_layout != "NCHW":
            return None
        if any(one is None for one in numbers) or any(self._readers[name] for name in others):
            return None
        scale, bias, mean, variance = (one.astype(np.float64) for one in numbers if one is not None)
        factor = scale / np.sqrt(variance + attrs.epsilon)
        chain.scale(factor, bias - mean * factor)
        return op.output("Y")[0]

    def _join_affine(self, chain: Chain, op: Operator) -> str | None:
        scale, bias = (self._get_parameter(op.input(slot)[0]) for slot in ("Scale", "Bias"))
        if scale is None or bias is None or chain.is_product or chain.residual is not None:
            return None
        if op.attrs.get("data_layout") != "NCHW":
            return None
        chain.scale(scale, bias)
        return op.output("Out")[0]

    def _join_scale(self, chain: Chain, op: Operator) -> str | None:
        keywords = _get_class(op).make_forward_keywords(op.attrs)
        if op.input("ScaleTensor") or chain.residual is not None:
            return None
        by, add = keywords["scale"], keywords["bias"]
        if (by, add) != (1.0, 0.0):
            chain.scale(by, add if keywords["bias_after_scale"] else add * by)
        return op.output("Out")[0]

    def _join_addition(self, chain: Chain, op: Operator) -> str | None:
        x, y = op.input("X")[0], op.input("Y")[0]
        axis = _get_class(op).make_forward_keywords(op.attrs)["axis"]
        find = op.block._find_var_recursive
        first, second = find(chain.out), find(y if x == chain.out else x)
        if first is None or second is None or first.dtype != second.dtype or chain.residual is not None:
            return None
        channel = len(first.shape) - 1 if chain.is_product else 1
        numbers = self._get_parameter(y) if x == chain.out else None
        count = chain.w.shape[1] if chain.is_product else len(chain.w)
        if numbers is not None and numbers.shape == (count,):
            if axis not in ({channel, -1} if chain.is_product else {channel}):
                return None
            chain.add(numbers)
            return op.output("Out")[0]
        if chain.is_product or list(first.shape) != list(second.shape) or self._writes[second.name] != 1:
            return None
        chain.residual = second.name
        return op.output("Out")[0]

    def _join_activation(self, chain: Chain, op: Operator) -> str | None:
        cls = registry.find_for_version(op.type, op.block.program.paddle_version)
        if cls is None or not cls.by_element or len(cls.input_slots) != 1 or len(op.output_arg_names) != 1:
            return None
        keywords = cls.make_forward_keywords(op.attrs)
        kernel = cls.make_overwriting_kernel(keywords)
        chain.activated = onednn_library.find_activation(op.type, keywords)
        if kernel is not None:
            chain.activation = functools.partial(_overwrite, kernel)
        elif chain.activated is not None:
            chain.activation = functools.partial(_replace, functools.partial(cls.forward, **keywords))
        else:
            return None
        return op.output_arg_names[0]


_JOINERS: Final[Mapping[str, Callable[[Finder, Chain, Operator], str | None]]] = {
    "affine_channel": Finder._join_affine,
    "batch_norm": Finder._join_batch_norm,
    "elementwise_add": Finder._join_addition,
    "scale": Finder._join_scale,
}


def _get_class(op: Operator) -> type[OpDef]:
    cls = registry.find_for_version(op.type, op.block.program.paddle_version)
    assert cls is not None  # the types are those of this module
    return cls


def _is_fixed(op: Operator) -> bool:
    return bool(_get_class(op).make_forward_keywords(op.attrs)["attrs"].fixed_statistics)


def _overwrite(kernel: Callable[[Array, Array], bool], array: Array) -> None:
    kernel(array, array)


def _replace(kernel: Callable[[Array], Array], array: Array) -> None:
    array[...] = kernel(array)


def _make_product(
    w: Array, bias: Array | None, activation: Activation | None, cut: int, *, clips: bool
) -> Callable[[Array], Array]:
    """Return the function ``activation(x w + bias)`` of x, whose dims from ``cut`` on become the columns of a
    matrix. ``clips``: the activation is relu.
    """
    dtype, columns, is_small = w.dtype, w.shape[1], w.size < SHORT
    add, maximum = np.add, np.maximum
    last = 0  # number of rows
    # A number of rows, as many rows of biases, and zeros for relu: numpy takes half a microsecond to
    # broadcast a row.
    repeated: tuple[int, Array | None, Array | None] = (0, None, None)

    def multiply_all(x: Array) -> Array:
        nonlocal last, repeated
        if x.dtype is not dtype and x.dtype != dtype:
            raise ShapeError(f"mul: x has dtype {x.dtype}, y {dtype}")
        matrix = x if x.ndim == 2 else x.reshape(math.prod(x.shape[:cut]), -1)
        rows, biases, zeros = len(matrix), bias, None
        out = matrix.dot(w) if rows == 1 and is_small else multiply_rows(matrix, w)
        if last != rows:
            last = rows
        elif rows * columns <= _REPEATED:
            kept = repeated  # by one name: another thread may replace it
            if kept[0] != rows:
                zeros = np.zeros((rows, columns), dtype)
                kept = repeated = rows, None if bias is None else zeros + bias, zeros if clips else None
            _, biases, zeros = kept
        if biases is not None:
            out = add(out, biases, out) if columns > 1 else out + biases
        if zeros is not None:
            maximum(out, zeros, out=out)
        elif activation is not None:
            activation(out)
        return out if x.ndim == 2 else out.reshape(*x.shape[:cut], columns)

    return multiply_all
