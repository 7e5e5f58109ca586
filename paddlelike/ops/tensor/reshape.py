"""Operators that give the same elements another shape: reshape, squeeze, flatten, transpose.

Each has two forms. The plain form keeps X for its gradient. The form with a ``2`` keeps only the output
XShape, an empty array of shape ``[0, *X.shape]``.

Outputs keep X's LoD where the first dim stays the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    REQUIRED,
    Array,
    Bool,
    Gradient,
    Int,
    Ints,
    OpDef,
    Spec,
    String,
    register,
    spares_first,
)
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import count_elements, is_known, normalize_axis, read_numbers


def _register_twin(cls: type[OpDef], mark: str = "", **more: Any) -> None:
    """Register ``<type>2``, which is ``cls`` with XShape, from which its gradient takes X's shape."""

    @functools.wraps(cls.infer)
    def infer(*args: Any, **attrs: Any) -> tuple[Spec, Spec]:
        x: Spec = args[0]
        return cls.infer(*args, **attrs), Spec((0, *x.shape), x.dtype, x.lod_level)

    @functools.wraps(cls.forward)
    def forward(*args: Any, **attrs: Any) -> tuple[Array, Array]:
        x: Array = args[0]
        return cls.forward(*args, **attrs), np.empty((0, *x.shape), x.dtype)

    body: dict[str, Any] = {
        "__doc__": f"As ``{cls.type}``; XShape keeps the shape of X.",
        "__module__": __name__,
        "type": cls.type + "2" + mark,
        "until": "",
        "outputs": ("Out", "XShape"),
        "gradient": Gradient("Out@GRAD", "XShape", outputs=("X@GRAD",), lod=OWN, lod_in_run="XShape"),
        "lod": _add_xshape(cls.lod),
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
        "backward": staticmethod(_backward_by_xshape),
    }
    register(type(cls.__name__ + "2", (cls,), body | more))


def _add_xshape(lod: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the sources of the outputs' LoDs, XShape included."""
    given = {"Out": lod} if isinstance(lod, str) else dict(lod or {})
    return {**given, "XShape": "X"}


def _backward_by_x(d_out: Array, x: Array) -> Array:
    return d_out.reshape(x.shape)


def _backward_by_xshape(d_out: Array, xshape: Array) -> Array:
    return d_out.reshape(xshape.shape[1:])


def _make_spec(x: Spec, shape: Sequence[int]) -> Spec:
    """Return a spec of ``shape``, which has the LoD of X only if it has the first dim of X."""
    same = bool(shape) and bool(x.shape) and shape[0] == x.shape[0]
    return Spec(tuple(shape), x.dtype, None if same else NO_LOD)


@register
class Reshape(OpDef):
    """``Out = X`` in another shape: 0 copies the dim of X at that place, and a -1 stands for the remaining
    size.

    The shape comes from ShapeTensor (one tensor per dim), else Shape, else the attribute.
    """

    type = "reshape"
    regroups = True
    size_slots = ("Shape",)
    inputs = ("X", "Shape?", "ShapeTensor*?")
    attrs = {"shape": Ints([])}
    lod = {"Out": "X"}
    views = True
    gradient = Gradient(
        "Out@GRAD", "X", "Out", "Shape", "ShapeTensor", outputs=("X@GRAD", "Shape@GRAD", "ShapeTensor@GRAD")
    )

    @staticmethod
    def infer(x: Spec, size: Spec | None, sizes: list[Spec] | None, *, shape: list[int]) -> Spec:
        if sizes:
            got = (x.shape[i] if dim == 0 else dim for i, dim in enumerate(shape))
            return _make_spec(x, tuple(got) or (-1,) * len(sizes))
        if size is not None and not shape:
            return Spec((-1,) * max(count_elements(size.shape), 1), x.dtype)
        return _make_spec(x, _reshape_dims(x.shape, shape))

    @staticmethod
    def forward(x: Array, size: Array | None, sizes: list[Array] | None, *, shape: list[int]) -> Array:
        if not sizes and size is None:
            return x.reshape(_find_dims(x.shape, tuple(shape)))
        return x.reshape(_reshape_dims(x.shape, read_numbers(shape, size, sizes)))

    @staticmethod
    def backward(
        d_out: Array, x: Array, out: Array, size: Array | None, sizes: list[Array] | None
    ) -> tuple[Array, None, None]:
        return d_out.reshape(x.shape), None, None


@functools.lru_cache(maxsize=4096)
def _find_dims(dims: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    return _reshape_dims(dims, shape)


def _reshape_dims(dims: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return ``shape`` with zeros copied from ``dims``, and its -1 computed if ``dims`` are known."""
    problem = ""
    if not shape:
        problem = "the shape is empty"
    elif min(shape) < -1 or list(shape).count(-1) > 1:
        problem = "only one dim may be -1, the others are 0 or more"
    elif 0 in shape[len(dims) :]:
        problem = f"dim {list(shape).index(0, len(dims))} is 0 (copy), but X has {len(dims)} dims"
    if problem:
        raise ShapeError(f"reshape: X of shape {list(dims)} to {list(shape)}: {problem}")
    out = [dims[i] if dim == 0 else dim for i, dim in enumerate(shape)]
    if not is_known(dims):
        return out
    size = math.prod(dims)
    rest = math.prod(dim for i, dim in enumerate(out) if shape[i] != -1)
    if -1 in shape and rest and size % rest == 0:
        out[list(shape).index(-1)] = size // rest
    elif -1 in shape or rest != size:
        raise ShapeError(
            f"reshape: X of shape {list(dims)} has {size} elements, they do not fill {list(shape)}",
            hint="the number of elements stays the same; 0 copies a dim of X, one dim may be -1",
        )
    return out


_register_twin(
    Reshape,
    attrs={"shape": Ints([]), "use_quantizer": Bool(False)},
    by_row=staticmethod(lambda attrs: attrs["shape"][:1] in ([-1], [0])),  # with the same number of rows
)


@register
class Squeeze(OpDef):
    """``Out = X`` without the dims ``axes``, which must be 1; by default every dim of 1."""

    type = "squeeze"
    regroups = True
    until = "1"
    attrs = {"axes": Ints([])}
    lod = {"Out": "X"}
    views = True
    gradient = Gradient("Out@GRAD", "X", lod=OWN)

    @staticmethod
    def infer(x: Spec, *, axes: list[int]) -> Spec:
        return _make_spec(x, _squeeze_dims(x.shape, axes))

    @staticmethod
    def forward(x: Array, *, axes: list[int]) -> Array:
        return x.reshape(_find_squeezed_dims(x.shape, tuple(axes)))

    backward = staticmethod(_backward_by_x)


@functools.lru_cache(maxsize=4096)
def _find_squeezed_dims(dims: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    return _squeeze_dims(dims, axes)


def _squeeze_dims(dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    if not axes:
        return [dim for dim in dims if dim != 1]
    gone = {normalize_axis("squeeze", axis, len(dims), name="axes") for axis in axes}
    wrong = [axis for axis in sorted(gone) if dims[axis] not in (1, -1)]
    if wrong:
        raise ShapeError(
            f"squeeze: axes {list(axes)} of X with shape {list(dims)}: "
            f"dim {wrong[0]} is {dims[wrong[0]]}, only a dim of 1 can be left out"
        )
    return [dim for axis, dim in enumerate(dims) if axis not in gone]


_spares_rows = spares_first("axes")
_register_twin(Squeeze, by_row=staticmethod(lambda attrs: bool(attrs["axes"]) and _spares_rows(attrs)))


class _SqueezeLater(Squeeze):
    """The form of Paddle 2.x: dims of ``axes`` other than 1 stay."""

    @staticmethod
    def infer(x: Spec, *, axes: list[int]) -> Spec:
        return _make_spec(x, _squeeze_ones(x.shape, axes))

    @staticmethod
    def forward(x: Array, *, axes: list[int]) -> Array:
        return x.reshape(_squeeze_ones(x.shape, axes))


def _squeeze_ones(dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    ones = [axis for axis in axes if dims[normalize_axis("squeeze", axis, len(dims))] in (1, -1)]
    return _squeeze_dims(dims, ones) if ones or not axes else list(dims)


_register_twin(_SqueezeLater, LATER, since="2")


@register
class Unsqueeze(OpDef):
    """``Out = X`` with new dims of 1, inserted one after the other at ``axes``."""

    type = "unsqueeze"
    regroups = True
    until = "1"
    inputs = ("X", "AxesTensor?", "AxesTensorList*?")
    attrs = {"axes": Ints([])}
    lod = {"Out": "X"}
    views = True
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, axis: Spec | None, several: list[Spec] | None, *, axes: list[int]) -> Spec:
        if several or axis is not None:
            more = len(several) if several else count_elements(axis.shape if axis is not None else ())
            return Spec((-1,) * (len(x.shape) + more), x.dtype, 0)
        return _make_spec(x, _unsqueeze_dims(x.shape, axes))

    @staticmethod
    def forward(x: Array, axis: Array | None, several: list[Array] | None, *, axes: list[int]) -> Array:
        return x.reshape(_unsqueeze_dims(x.shape, read_numbers(axes, axis, several)))

    backward = staticmethod(_backward_by_x)


def _unsqueeze_dims(dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    out = list(dims)
    for axis in axes:
        out.insert(normalize_axis("unsqueeze", axis, len(out) + 1, name="axes"), 1)
    return out


_register_twin(Unsqueeze, by_row=_spares_rows)


@register
class Flatten(OpDef):
    """``Out = X`` as a matrix: the dims before ``axis`` become its rows, the others its columns."""

    type = "flatten"
    regroups = True
    until = "1"
    attrs = {"axis": Int(1)}
    lod = {"Out": "X"}
    views = True
    gradient = Gradient("Out@GRAD", "X", lod=OWN)

    @staticmethod
    def infer(x: Spec, *, axis: int) -> Spec:
        if not 0 <= axis <= len(x.shape):
            raise ShapeError(f"flatten: axis is {axis}, expected 0 .. {len(x.shape)} for X of {x.shape}")
        # As in Paddle's declaration, an unknown dim, -1, is a factor like the others.
        return _make_spec(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))

    @staticmethod
    def forward(x: Array, *, axis: int) -> Array:
        return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))

    backward = staticmethod(_backward_by_x)


_register_twin(Flatten, by_row=staticmethod(lambda attrs: attrs["axis"] == 1))


@register
class Transpose(OpDef):
    """``Out[i...]``: dim k of Out is dim ``axis[k]`` of X."""

    type = "transpose"
    regroups = True
    attrs = {
        "axis": Ints(REQUIRED),
        "use_mkldnn": Bool(False),
        "data_format": String("AnyLayout"),
        "use_quantizer": Bool(False),
    }
    any_order = True
    views = True
    gradient = Gradient("Out@GRAD", "X", "Out", lod=OWN, lod_in_run="")

    @staticmethod
    def infer(x: Spec, *, axis: list[int]) -> Spec:
        if sorted(axis) != list(range(len(x.shape))):
            raise ShapeError(
                f"transpose: axis is {list(axis)}, expected every number of "
                f"0 .. {len(x.shape) - 1} once for X of shape {x.shape}"
            )
        return Spec(tuple(x.shape[a] for a in axis), x.dtype)

    @staticmethod
    def forward(x: Array, *, axis: list[int]) -> Array:
        return x.transpose(axis)

    @staticmethod
    def backward(d_out: Array, x: Array, out: Array, *, axis: list[int]) -> Array:
        return d_out.transpose(np.argsort(axis))


def _transpose2_backward(d_out: Array, xshape: Array, *, axis: list[int]) -> Array:
    return d_out.transpose(np.argsort(axis))


_register_twin(
    Transpose,
    by_row=staticmethod(lambda attrs: attrs["axis"][:1] == [0]),
    backward=staticmethod(_transpose2_backward),
)


@register_kernel(
    "flatten_contiguous_range", "X -> Out XShape?", {"start_axis": Int(1), "stop_axis": Int(1)}, views=True
)
def _flatten(x: Array, *, start_axis: int, stop_axis: int) -> tuple[Array, None]:
    """X with a range of dims joined into one."""
    if not x.ndim:
        return x.reshape(1), None
    start, stop = start_axis % x.ndim, stop_axis % x.ndim + 1
    return x.reshape(*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]), None


@register
class Shape(OpDef):
    """``Out``: the dims of Input, int32."""

    type = "shape"
    inputs = ("Input",)
    any_order = True

    @staticmethod
    def infer(x: Spec) -> Spec:
        return Spec((len(x.shape),), VarType.INT32)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array(x.shape, np.int32)
