"""Fourier transforms, and signals as overlapping frames."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Bool, Int, Long, Longs, String
from paddlelike.ops.later import register_kernel

#: How numpy scales the transform whose exponent has the other sign.
_OPPOSITE: Final[dict[str, Any]] = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


class TransformAttrs(Attrs):
    """Attributes of the transforms; with ``forward`` the exponent is negative."""

    axes: list[int] = Longs()
    normalization: str = String("backward")
    forward: bool = Bool(True)

    def scale(self, *, as_forward: bool) -> Any:
        """Return numpy's scaling mode for a transform whose exponent has that sign."""
        return self.normalization if self.forward == as_forward else _OPPOSITE[self.normalization]


class HalfAttrs(TransformAttrs):
    """Attribute ``onesided``: keep only the half of the last axis that determines the rest."""

    onesided: bool = Bool(True)


class RealAttrs(TransformAttrs):
    """Attribute ``last_dim_size``: the length of the last axis; 0 stands for an even size."""

    last_dim_size: int = Long(0)


def _like(found: Any, x: Array) -> Array:
    """Convert to the precision of ``x``, since some versions of numpy compute in double precision."""
    single = x.dtype in (np.float32, np.complex64)
    real, complex_ = (np.float32, np.complex64) if single else (np.float64, np.complex128)
    return np.asarray(found, complex_ if np.iscomplexobj(found) else real)


@register_kernel("fft_c2c", "X -> Out", TransformAttrs.table())
def _fft_c2c(x: Array, *, attrs: TransformAttrs) -> Array:
    """The transform of complex numbers along ``axes``, or its inverse."""
    transform = np.fft.fftn if attrs.forward else np.fft.ifftn
    return _like(transform(x, axes=attrs.axes, norm=attrs.scale(as_forward=attrs.forward)), x)


@register_kernel("fft_r2c", "X -> Out", HalfAttrs.table())
def _fft_r2c(x: Array, *, attrs: HalfAttrs) -> Array:
    """The transform of real numbers."""
    transform = np.fft.rfftn if attrs.onesided else np.fft.fftn
    found = transform(x, axes=attrs.axes, norm=attrs.scale(as_forward=True))
    return _like(found if attrs.forward else np.conj(found), x)


@register_kernel("fft_c2r", "X -> Out", RealAttrs.table())
def _fft_c2r(x: Array, *, attrs: RealAttrs) -> Array:
    """The inverse transform to real numbers; X holds half of their spectrum."""
    sizes = [x.shape[axis] for axis in attrs.axes]
    sizes[-1] = attrs.last_dim_size or 2 * (sizes[-1] - 1)
    scaling = attrs.scale(as_forward=False)
    return _like(np.fft.irfftn(np.conj(x) if attrs.forward else x, sizes, attrs.axes, scaling), x)


@register_kernel("complex", "X Y -> Out")
def _complex(x: Array, y: Array) -> Array:
    """Complex numbers from real and imaginary parts."""
    return _like(x + 1j * y, x)


@register_kernel("frame", "X -> Out", {"frame_length": Int(), "hop_length": Int(), "axis": Int(-1)})
def _frame(x: Array, *, frame_length: int, hop_length: int, axis: int) -> Array:
    """Cut windows along the last axis, (..., length, frames), or the first, (frames, length, ...)."""
    first = axis == 0 and x.ndim > 0
    windows = np.lib.stride_tricks.sliding_window_view(x, frame_length, 0 if first else -1)
    if first:  # (T, ..., frame_length)
        return np.ascontiguousarray(np.moveaxis(windows[::hop_length], -1, 1))
    return np.ascontiguousarray(np.swapaxes(windows[..., ::hop_length, :], -1, -2))


@register_kernel("overlap_add", "X -> Out", {"hop_length": Int(), "axis": Int(-1)})
def _overlap_add(x: Array, *, hop_length: int, axis: int) -> Array:
    """The sum of overlapping frames, ``hop_length`` apart: the inverse of :func:`_frame`."""
    frames = np.moveaxis(x, (0, 1), (-1, -2)) if axis == 0 else x
    length, count = frames.shape[-2:]
    out = np.zeros((*frames.shape[:-2], (count - 1) * hop_length + length), x.dtype)
    for index in range(count):
        out[..., index * hop_length : index * hop_length + length] += frames[..., index]
    return np.ascontiguousarray(np.moveaxis(out, -1, 0)) if axis == 0 else out
