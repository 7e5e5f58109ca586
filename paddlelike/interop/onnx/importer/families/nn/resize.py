"""Resizing of images by sizes or factors that are known, or computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, VarType
from paddlelike.interop.onnx.importer.expressions import Expression, count
from paddlelike.interop.onnx.importer.node import AT_RUN, Node, reads
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.ops.nn.image.interpolate import scale_sizes

Numbers = Any  # an array, or an expression

_LARGEST: Final = 1 << 25  # elements of the matrix of a dim


@reads("Resize", "Upsample")
def _read_resize(node: Node) -> None:
    """Resize images: by matrices of weights, by Fluid's operators, or by sums of elements."""
    dims, mode = node.dims(), node.attr("mode", "nearest")
    if _is_computed(node):
        node.give(_resize_at_run(node, mode))
        return
    sides = [_Side(n, n, 1.0) for n in dims] if node.type == "Upsample" else _find_regions(node)
    known = _find_sizes(node, sides)
    touched = [i for i, side in enumerate(sides) if not side.is_whole() and not (side.size < 0 and i < 2)]
    if not all(dims[i] > 0 and sides[i].size > 0 for i in touched):
        factors = [side.factor for side in sides] if known else [0.0] * len(dims)
        try:
            node.give(_interpolate(node, mode, factors, touched))
        except InexpressibleError:
            node.give(_resize_at_run(node, mode))
        return
    x, outside = node.input(), np.zeros([1] * len(dims), bool)
    for axis in touched:
        matrix, beyond = make_matrix(node, mode, sides[axis])
        x = _multiply_dim(node, x, len(dims), axis, node.constant(matrix, node.dtype()))
        outside = outside | np.expand_dims(beyond, [i for i in range(len(dims)) if i != axis])
    if outside.any():
        fill = node.attr("extrapolation_value", 0.0)
        x = x * node.constant(~outside, node.dtype())
        x = x + node.constant(outside * fill, node.dtype())
    if x.name == node.value().name:
        node.alias(node.value())
    else:
        node.give(x)


class _Side(NamedTuple):
    """One dim of a resized image: its old and new size, -1 if not known, and the region that is read."""

    n: int
    size: int
    factor: float
    start: float = 0.0
    end: float = 1.0

    def is_whole(self) -> bool:
        """Return whether the dim stays unchanged."""
        return self.n == self.size and (self.factor, self.start, self.end) == (1, 0, 1)


def _find_regions(node: Node) -> list[_Side]:
    """Return the dims, with the part of each that is cut out."""
    rank, sides = node.rank(), [_Side(n, n, 1.0) for n in node.dims()]
    if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        chosen = _find_chosen(node, rank)
        starts, ends = np.split(node.known(1).astype(float), 2)
        for axis, start, end in zip(chosen, starts, ends, strict=True):
            sides[axis] = sides[axis]._replace(start=float(start), end=float(end))
    return sides


def _find_chosen(node: Node, rank: int) -> list[int]:
    axes = node.attr("axes")
    return list(range(rank)) if axes is None else [node.normalize(axis, rank) for axis in axes]


def _find_sizes(node: Node, sides: list[_Side]) -> bool:
    """Write the factors and the new sizes into the dims; return whether factors are given."""
    chosen = _find_chosen(node, len(sides))
    if node.type == "Upsample" and node.opset < 9:
        given = list(node.attr("scales", []))
    else:
        place = _find_place(node)
        given = node.known(place).reshape(-1).tolist() if node.has(place) else []
    if given:
        for axis, number in zip(chosen, given, strict=True):
            side, factor = sides[axis], float(np.float32(number))
            (size,) = scale_sizes([side.n], [(side.end - side.start) * factor]) if factor != 1 else [side.n]
            sides[axis] = side._replace(size=size if side.n >= 0 else -1, factor=factor)
        return True
    name = node.proto.input[3]
    known, partial = node.find_known(3), node.graph.partial.get(name)
    if known is None and partial is None:
        node.refuse(f"input 3, {name!r:.60}, {AT_RUN}")
    values = np.nan_to_num(partial, nan=-1) if known is None and partial is not None else known
    assert values is not None
    sizes = [int(size) for size in values.reshape(-1)]
    policy, one = node.attr("keep_aspect_ratio_policy", "stretch"), None
    if policy != "stretch":
        if min(sides[axis].n for axis in chosen) < 0:
            node.refuse(f"keep_aspect_ratio_policy is {policy}, and the size of the image is not known")
        one = {"not_larger": min, "not_smaller": max}[policy](
            size / sides[axis].n for axis, size in zip(chosen, sizes, strict=True)
        )
        sizes = [int(np.floor(one * sides[axis].n + 0.5)) for axis in chosen]
    for axis, size in zip(chosen, sizes, strict=True):
        side = sides[axis]
        factor = one if one is not None else size / side.n if side.n > 0 and size > 0 else 0.0
        sides[axis] = side._replace(size=size, factor=factor)
    return False


def _find_place(node: Node) -> int:
    """Return the index of the input that holds the factors."""
    return 1 if node.type == "Upsample" or node.opset < 11 else 2


def _is_computed(node: Node) -> bool:
    """Return whether the region, the factors or the sizes are only known at run time."""
    if node.type == "Upsample" and node.opset < 9:
        return False
    read = [_find_place(node), 3]
    if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        read.append(1)
    return any(
        node.has(index)
        and node.find_known(index) is None
        and node.proto.input[index] not in node.graph.partial
        for index in read
    )


def make_matrix(node: Node, mode: str, side: _Side) -> tuple[Array, Array]:
    """Return the weights ``(n, count)`` of a dim's old elements in each new one, and a mask of new elements
    outside.
    """
    n, size, *region = side
    if n * size > _LARGEST:
        node.refuse(f"it makes {size} of {n} elements, by a matrix that is too large")
    x, outside = _find_positions(
        node, np.arange(size, dtype=np.float64), np.float64(n), np.float64(size), *region
    )
    matrix: Array = np.zeros((n, size))
    shrunk = min(side.factor, 1.0) if node.attr("antialias", 0) else 1.0
    for places, weights in _find_taps(node, mode, x, shrunk):
        inside = (places >= 0) & (places < n) if node.attr("exclude_outside", 0) else True
        np.add.at(matrix, (np.clip(places, 0, n - 1).astype(np.int64), np.arange(size)), weights * inside)
    matrix /= matrix.sum(0)
    return matrix, outside


def _find_positions(
    node: Node, at: Numbers, n: Numbers, size: Numbers, factor: Numbers, start: Numbers, end: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the positions in the old dim of new elements ``at``, and a mask of positions outside."""
    rule = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    rule = "asymmetric" if node.type == "Upsample" else rule
    steps, one = np.maximum(size - 1, 1), size <= 1
    if rule == "align_corners":
        x = at * ((n - 1) / steps)
    elif rule == "tf_crop_and_resize":
        x = (start + (at / steps + one * 0.5) * (end - start)) * (n - 1)
        return x, (x < 0) + (x > n - 1)
    elif rule == "asymmetric":
        x = at / factor
    elif rule == "half_pixel":
        x = (at + 0.5) / factor - 0.5
    elif rule == "pytorch_half_pixel":
        x = ((at + 0.5) / factor - 0.5) * (1 - one * 1.0)
    elif rule == "tf_half_pixel_for_nn":
        x = (at + 0.5) / factor
    elif rule == "half_pixel_symmetric":
        x = n / 2 * (1 - size / (n * factor)) + (at + 0.5) / factor - 0.5
    else:
        node.refuse(f"coordinate_transformation_mode is {rule!r}")
    return x, x < -np.inf


def _find_taps(node: Node, mode: str, x: Numbers, shrunk: float) -> list[tuple[Numbers, Numbers]]:
    """Return the old indexes from which each element is computed, with their weights.

    ``shrunk``, at most 1, is the factor by which antialiasing brings positions closer together.
    """
    if mode == "nearest":
        rule = node.attr("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
        rule = "floor" if node.type == "Upsample" else rule
        rounded = {
            "floor": lambda: np.floor(x),
            "ceil": lambda: np.ceil(x),
            "round_prefer_floor": lambda: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda: np.floor(x + 0.5),
        }
        return [(rounded[rule](), x * 0 + 1)]
    low = np.floor(x)
    if mode not in ("linear", "cubic"):
        node.refuse(f"mode is {mode!r}")
    a, taps = node.attr("cubic_coeff_a", -0.75), []
    reach = int(np.ceil((1 if mode == "linear" else 2) / shrunk))
    for offset in range(1 - reach, reach + 1):
        d = abs(x - low - offset) * shrunk
        if mode == "linear":
            taps.append((low + offset, np.maximum(1 - d, 0)))
            continue
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        taps.append((low + offset, near * (d <= 1) + far * ((d > 1) * (d < 2))))
    return taps


def _resize_at_run(node: Node, mode: str) -> Expression:
    """Return an image of computed size, factors or region, as a weighted sum of old elements."""
    if node.attr("antialias", 0):
        node.refuse(f"it has antialias, and the new size of {node.proto.input[0]!r:.60} {AT_RUN}")
    rank, real, x = node.rank(), VarType.FP64, node.input()
    axes, crops = (
        _find_chosen(node, rank),
        node.attr("coordinate_transformation_mode") == "tf_crop_and_resize",
    )
    old = [node.size(axis).cast(real) for axis in axes]
    region = node.row(1, real) if crops else x.number(0.0, real)
    place = 3 if node.has(3) else _find_place(node)
    given = [node.row(place, real)[i : i + 1] for i in range(len(axes))]
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if place == 3 and policy != "stretch":
        shares = [new / n for new, n in zip(given, old, strict=True)]
        kind = {"not_larger": "min", "not_smaller": "max"}[policy]
        one = node.emit("concat", shares, axis=0).reduce(kind, 0)
    for i, (axis, n) in enumerate(zip(axes, old, strict=True)):
        start, end = (
            (region[i + half : i + half + 1] for half in (0, len(axes))) if crops else (region, region + 1)
        )
        if place != 3:
            factor = given[i]
            wide = n.cast(VarType.FP32) * ((end - start) * factor).cast(VarType.FP32)
            size = np.floor(wide).cast(real)
        elif policy == "stretch":
            factor, size = given[i] / n, given[i]
        else:
            factor, size = one, np.floor(one * n + 0.5)
        at = count(x.number(0, VarType.INT64), size.cast(VarType.INT64)).cast(real)
        positions, outside = _find_positions(node, at, n, size, factor, start, end)
        shape = [-1 if i == axis else 1 for i in range(rank)]
        total: Any = None
        share: Expression | None = None
        for near, weights in _find_taps(node, mode, positions, 1.0):
            part = x.take(near.clip(0, n - 1).cast(VarType.INT64), axis)
            if mode == "nearest":
                total = part
                break
            if node.attr("exclude_outside", 0):
                weights = weights * ((near >= 0) * (near < n))
            part = part * weights.cast(x.dtype).reshape(*shape)
            total, share = (part, weights) if total is None else (total + part, share + weights)
        x = total if share is None else total / share.cast(x.dtype).reshape(*shape)
        if crops:
            beyond = outside.cast(x.dtype).reshape(*shape)
            x = x * (1 - beyond) + beyond * node.attr("extrapolation_value", 0.0)
    return x


def _multiply_dim(node: Node, x: Expression, rank: int, axis: int, matrix: Expression) -> Expression:
    """Return the product of one dim with a matrix."""
    order = [*(i for i in range(rank) if i != axis), axis]
    out = node.emit("mul", x.transpose(order), matrix, x_num_col_dims=rank - 1)
    return out.transpose([order.index(i) for i in range(rank)])


def _interpolate(node: Node, mode: str, factors: Sequence[float], touched: Sequence[int]) -> Expression:
    """Return an image of any size, larger by one factor."""
    rule = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    rule = "asymmetric" if node.type == "Upsample" else rule
    nearest = node.attr("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
    if (
        node.rank() != 4
        or set(touched) != {2, 3}
        or len({factors[i] for i in touched}) != 1
        or factors[2] <= 0
    ):
        node.refuse(
            f"X has dims {node.dims()}, and its output size is unknown or scaled by different factors"
        )
    factor = factors[2]
    if mode == "nearest" and factor == int(factor):  # then every rule repeats each element that many times
        even = rule == "asymmetric" and (nearest == "floor" or node.type == "Upsample" or node.opset < 11)
        if even or rule in ("half_pixel", "pytorch_half_pixel"):
            return node.emit(
                "nearest_interp", node.input(), scale=factor, align_corners=False, interp_method="nearest"
            )
    if mode == "linear" and rule in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"):
        options = {"align_corners": rule == "align_corners", "align_mode": int(rule == "asymmetric")}
        return node.emit("bilinear_interp", node.input(), scale=factor, interp_method="bilinear", **options)
    raise InexpressibleError(
        f"mode is {mode} with {rule}, and height and width of X of dims {node.dims()} are not known"
    )
