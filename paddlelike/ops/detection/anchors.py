"""Anchors: the initial boxes of detectors, at every position of a feature map.

prior_box and density_prior_box give them as shares of the image (Liu et al., SSD, 2016; Zhang et al.,
FaceBoxes, 2017), anchor_generator in pixels (Ren et al., Faster R-CNN, 2015).
"""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import NO_LOD, Array, Attrs, Bool, Float, Floats, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.nn.image.windows import check_image


class PlaceAttrs(Attrs):
    """Attributes of boxes around the positions of a feature map, as fractions of the image."""

    variances: list[float] = Floats()
    clip: bool = Bool(True)
    step_w: float = Float(0.0)
    step_h: float = Float(0.0)
    offset: float = Float(0.5)

    def find_steps(self, x: Array, image: Array) -> tuple[Array, Array]:
        """Return the distance of neighboring positions in pixels of the image, along x and y."""
        real = x.dtype.type
        if self.step_w == 0 or self.step_h == 0:
            return real(image.shape[3]) / real(x.shape[3]), real(image.shape[2]) / real(x.shape[2])
        return real(np.float32(self.step_w)), real(np.float32(self.step_h))

    def find_centers(self, x: Array, image: Array) -> tuple[Array, Array]:
        """Return the positions ``(H, W, 1)`` in pixels of the image, along x and y."""
        offset = x.dtype.type(np.float32(self.offset))
        steps = self.find_steps(x, image)
        across = (np.arange(x.shape[3], dtype=x.dtype) + offset) * steps[0]
        down = (np.arange(x.shape[2], dtype=x.dtype) + offset) * steps[1]
        shape = (*x.shape[2:], 1)
        return np.broadcast_to(across[None, :, None], shape), np.broadcast_to(down[:, None, None], shape)


class PriorBoxAttrs(PlaceAttrs):
    """Attributes of prior_box; sizes are in pixels of the image."""

    min_sizes: list[float] = Floats()
    max_sizes: list[float] = Floats([])
    aspect_ratios: list[float] = Floats()
    flip: bool = Bool(True)
    min_max_aspect_ratios_order: bool = Bool(False)

    def ratios(self) -> list[np.float32]:
        """Return 1, then every other ratio once and, with ``flip``, its inverse after it."""
        found = [np.float32(1)]
        for ratio in map(np.float32, self.aspect_ratios):
            if all(abs(ratio - known) >= np.float32(1e-6) for known in found):
                found += [ratio, np.float32(1) / ratio] if self.flip else [ratio]
        return found

    def half_sizes(self) -> list[tuple[float, float]]:
        """Return half the width and height of the boxes at one position, in their order."""
        halves = []
        ratios = self.ratios()
        roots = [math.sqrt(ratio) for ratio in map(float, ratios)]
        for i, size in enumerate(map(_as_float32, self.min_sizes)):
            shaped = [(size * root / 2, size / root / 2) for root in roots]
            large = []
            if self.max_sizes:
                product = np.float32(size) * np.float32(self.max_sizes[i])
                large = [(math.sqrt(product) / 2,) * 2]
            if self.min_max_aspect_ratios_order:
                others = zip(shaped, ratios, strict=True)
                rest = [half for half, ratio in others if abs(float(ratio) - 1) >= 1e-6]
                halves += [(size / 2, size / 2), *large, *rest]
            else:
                halves += [*shaped, *large]
        return halves


def _as_float32(number: float) -> float:
    return float(np.float32(number))


@register
class PriorBox(OpDef):
    """Boxes of each size and ratio at every position of Input ``(N, C, H, W)``, as fractions of Image.

    Boxes and Variances are ``(H, W, priors, 4)``. Every position has, for each of ``min_sizes``, a box of
    each ratio (1 first) and one with sides of ``sqrt(min_size * max_size)``.
    """

    type = "prior_box"
    inputs = ("Input", "Image")
    outputs = ("Boxes", "Variances")
    fluid_order = (
        "min_sizes max_sizes aspect_ratios variances flip clip step_w step_h offset "
        "min_max_aspect_ratios_order use_mkldnn use_quantizer"
    )
    attrs = PriorBoxAttrs.table(use_mkldnn=Bool(False), use_quantizer=Bool(False))

    @staticmethod
    def infer(x: Spec, image: Spec, *, attrs: PriorBoxAttrs) -> tuple[Spec, Spec]:
        _check_pair("prior_box", x, image)
        if attrs.max_sizes and len(attrs.max_sizes) != len(attrs.min_sizes):
            raise ShapeError(
                f"prior_box: max_sizes has {len(attrs.max_sizes)} numbers, min_sizes "
                f"{len(attrs.min_sizes)}; expected equal numbers",
                hint="leave max_sizes out, or give one for each of min_sizes",
            )
        _check_variances("prior_box", attrs.variances)
        count = len(attrs.ratios()) * len(attrs.min_sizes) + len(attrs.max_sizes)
        spec = Spec((*x.shape[2:], count, 4), x.dtype, NO_LOD)
        return spec, spec

    @staticmethod
    def forward(x: Array, image: Array, *, attrs: PriorBoxAttrs) -> tuple[Array, Array]:
        halves = np.array(attrs.half_sizes(), x.dtype)
        centers = attrs.find_centers(x, image)
        out = np.empty((*x.shape[2:], len(halves), 4), x.dtype)
        for axis, size in enumerate((image.shape[3], image.shape[2])):
            out[..., axis] = (centers[axis] - halves[:, axis]) / x.dtype.type(size)
            out[..., axis + 2] = (centers[axis] + halves[:, axis]) / x.dtype.type(size)
        return _clip(out, attrs), _repeat_variances(attrs.variances, out)


class DensityPriorBoxAttrs(PlaceAttrs):
    """Attributes of density_prior_box: for each fixed size a density, and boxes of every ratio."""

    densities: list[int] = Ints([])
    fixed_sizes: list[float] = Floats([])
    fixed_ratios: list[float] = Floats([])
    flatten_to_2d: bool = Bool(False)


@register
class DensityPriorBox(OpDef):
    """Boxes of fixed sizes and ratios, ``density * density`` of each in a grid around every position.

    Input ``(N, C, H, W)``, Image ``(N, 3, h, w)``; Boxes and Variances ``(H, W, priors, 4)`` as shares of
    the image, or ``(H * W * priors, 4)`` with ``flatten_to_2d``.
    """

    type = "density_prior_box"
    inputs = ("Input", "Image")
    outputs = ("Boxes", "Variances")
    fluid_order = "variances clip flatten_to_2d step_w step_h offset fixed_sizes fixed_ratios densities"
    attrs = DensityPriorBoxAttrs.table()

    @staticmethod
    def infer(x: Spec, image: Spec, *, attrs: DensityPriorBoxAttrs) -> tuple[Spec, Spec]:
        _check_pair("density_prior_box", x, image)
        if len(attrs.fixed_sizes) != len(attrs.densities):
            raise ShapeError(
                f"density_prior_box: fixed_sizes has {len(attrs.fixed_sizes)} numbers, densities "
                f"{len(attrs.densities)}; expected equal numbers"
            )
        _check_variances("density_prior_box", attrs.variances)
        count = len(attrs.fixed_ratios) * sum(density**2 for density in attrs.densities)
        dims: tuple[int, ...] = (*x.shape[2:], count, 4)
        if attrs.flatten_to_2d:
            dims = (-1, 4)  # as Paddle declares it
        return Spec(dims, x.dtype, NO_LOD), Spec(dims, x.dtype, NO_LOD)

    @staticmethod
    def forward(x: Array, image: Array, *, attrs: DensityPriorBoxAttrs) -> tuple[Array, Array]:
        steps = attrs.find_steps(x, image)
        average = int((steps[0] + steps[1]) * 0.5)
        shifts, sides = _arrange_grids(attrs, average)
        out = np.empty((*x.shape[2:], len(sides), 4), x.dtype)
        for axis, center in enumerate(attrs.find_centers(x, image)):
            # Paddle keeps the first point of a grid and each of its points as float32.
            start = (center - average / 2 + shifts[:, 2] / 2).astype(np.float32)
            point = (start + shifts[:, axis].astype(np.float32)).astype(np.float64)
            size = image.shape[3 - axis]
            out[..., axis] = np.maximum((point - sides[:, axis] / 2) / size, 0)
            out[..., axis + 2] = np.minimum((point + sides[:, axis] / 2) / size, 1)
        boxes, variances = _clip(out, attrs), _repeat_variances(attrs.variances, out)
        if attrs.flatten_to_2d:
            return boxes.reshape(-1, 4), variances.reshape(-1, 4)
        return boxes, variances


def _arrange_grids(attrs: DensityPriorBoxAttrs, average: int) -> tuple[Array, Array]:
    """Return for each box its shift along x and y in the grid, the shift of the grid, width and height."""
    shifts, sides = [], []
    for density, size in zip(attrs.densities, map(np.float32, attrs.fixed_sizes), strict=True):
        shift = average // density
        for root in np.sqrt(np.array(attrs.fixed_ratios, np.float32)):
            sides += [(size * root, size / root)] * density**2
            shifts += [(j * shift, i * shift, shift) for i in range(density) for j in range(density)]
    return np.array(shifts, np.float64).reshape(-1, 3), np.array(sides, np.float64).reshape(-1, 2)


class AnchorGeneratorAttrs(Attrs):
    """Attributes of anchor_generator; sizes and ``stride`` (along x and y) are in pixels of the image."""

    anchor_sizes: list[float] = Floats()
    aspect_ratios: list[float] = Floats()
    variances: list[float] = Floats()
    stride: list[float] = Floats([16.0, 16.0])
    offset: float = Float(0.5)


@register
class AnchorGenerator(OpDef):
    """Boxes of every ratio and size at every position of Input ``(N, C, H, W)``, in pixels of the image.

    Anchors and Variances are ``(H, W, ratios * sizes, 4)``. A ratio is height over width. The sides of a box
    as large as one stride are rounded to pixels, then scaled to each size.
    """

    type = "anchor_generator"
    inputs = ("Input",)
    outputs = ("Anchors", "Variances")
    attrs = AnchorGeneratorAttrs.table()

    @staticmethod
    def infer(x: Spec, *, attrs: AnchorGeneratorAttrs) -> tuple[Spec, Spec]:
        check_image("anchor_generator", x)
        _check_variances("anchor_generator", attrs.variances)
        spec = Spec((*x.shape[2:], len(attrs.aspect_ratios) * len(attrs.anchor_sizes), 4), x.dtype, NO_LOD)
        return spec, spec

    @staticmethod
    def forward(x: Array, *, attrs: AnchorGeneratorAttrs) -> tuple[Array, Array]:
        real = x.dtype.type
        stride = [real(np.float32(step)) for step in attrs.stride]
        ratios = np.repeat(np.array(attrs.aspect_ratios, np.float32), len(attrs.anchor_sizes)).astype(x.dtype)
        sizes = np.tile(np.array(attrs.anchor_sizes, np.float32), len(attrs.aspect_ratios)).astype(x.dtype)
        width = _round(np.sqrt(stride[0] * stride[1] / ratios))
        sides = sizes / stride[0] * width, sizes / stride[1] * _round(width * ratios)
        out = np.empty((*x.shape[2:], len(sizes), 4), x.dtype)
        offset = real(np.float32(attrs.offset))
        for axis, (step, side) in enumerate(zip(stride, sides, strict=True)):
            place = np.arange(x.shape[3 - axis], dtype=x.dtype) * step + offset * (step - 1)
            center = (place[:, None] if axis == 0 else place[:, None, None]).astype(np.float64)
            half = 0.5 * (side - 1).astype(np.float64)  # 0.5 is a double in Paddle's kernel
            out[..., axis], out[..., axis + 2] = center - half, center + half
        return out, _repeat_variances(attrs.variances, out)


def _round(x: Array) -> Array:
    """Return positive numbers rounded, halves up."""
    return np.floor(x + x.dtype.type(0.5))


def _clip(boxes: Array, attrs: PlaceAttrs) -> Array:
    return np.clip(boxes, 0, 1, out=boxes) if attrs.clip else boxes


def _repeat_variances(variances: list[float], boxes: Array) -> Array:
    out = np.empty(boxes.shape, boxes.dtype)
    out[...] = np.array(variances, np.float32)
    return out


def _check_pair(op: str, x: Spec, image: Spec) -> None:
    check_image(op, x)
    if len(image.shape) != 4:
        raise ShapeError(f"{op}: Image has shape {image.shape}; it needs (N, C, H, W)")


def _check_variances(op: str, variances: list[float]) -> None:
    if len(variances) != 4 or min(variances) <= 0:
        raise ShapeError(f"{op}: variances are {variances}; they must be 4 numbers above 0")
