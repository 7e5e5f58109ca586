"""Convolutions, pools and products of predictions by Intel's oneDNN (extra ``fast``).

Without the library, the kernels of :mod:`paddlelike.ops` are used. Numbers are float32, and convolutions are
direct. Images have their channels last in memory, as in those kernels; inputs and results are numpy arrays.
"""

from __future__ import annotations

import ctypes
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array
from paddlelike.inference.onednn_library import (
    DST,
    SRC,
    Call,
    Dims,
    Eltwise,
    Handle,
    Library,
    RefusedError,
    make_aligned,
)
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last

if TYPE_CHECKING:
    from paddlelike.ops.kernels.nn.image.pool import Axis
    from paddlelike.ops.kernels.nn.image.windows import Windows

Kernel = Callable[..., Array]

_MAX, _AVERAGE = 0x1FF, 0x3FF  # of pools; the mean excludes padding
_DIRECT: Final = 1  # algorithm of convolutions
_INFERENCE: Final = 96
_WEIGHTS, _BIAS, _SCRATCHPAD = 33, 41, 80  # arguments
_WEIGHTS_LAYOUT, _SCRATCHPAD_LAYOUT = 131, 136  # of a descriptor
_KEPT: Final = 64  # number of shapes that an operation keeps
_SMALL: Final = 1 << 20  # multiplications: with fewer, or twice as many for fours of rows, numpy is faster
_BOUND: Final = 4  # number of shapes whose memory a thread keeps


class Primitive:
    """A compiled operation for arrays of certain shapes. Several threads may run it at the same time.

    Attributes
    ----------
    source, target
        The layouts of input and output.
    shape
        The shape of the output.
    """

    def __init__(
        self,
        library: Library,
        descriptor: Handle,
        source: Handle,
        target: Handle,
        shape: tuple[int, ...],
        constants: Mapping[int, Handle],
    ) -> None:
        self._library, self._constants = library, constants
        self.source, self.target, self.shape = source, target, shape
        self._primitive = library.make("primitive", descriptor, keeps=descriptor)
        self._scratchpad = library.get_layout(descriptor, _SCRATCHPAD_LAYOUT)
        self._size = library.count_bytes(self._scratchpad)

    def bind(self, source: Handle, target: Handle) -> Call:
        """Return the call for this thread and these memory objects."""
        library = self._library
        given = {SRC: source, DST: target, **self._constants}
        if self._size:
            given[_SCRATCHPAD] = library.hold(self._scratchpad, library.get_scratchpad(self._size))
        return library.bind(self._primitive, given)


class Operation(ABC):
    """An operation with constant weights: a primitive for each shape, made at its first use.

    Parameters
    ----------
    activation
        The activation of the result, or None.
    """

    def __init__(self, library: Library, activation: Eltwise | None = None) -> None:
        self._library, self._activation = library, activation
        self._found: dict[object, Primitive | None] = {}
        self._packed: list[tuple[Handle, Handle]] = []

    def find(self, shape: tuple[int, ...], adds: bool = False) -> Primitive | None:
        """Return the primitive for a shape, or None if the library refuses it.

        With ``adds``, the result is added to the numbers in the output array.
        """
        key = shape, adds
        if key not in self._found:
            try:
                made = self._make(shape, adds)
            except RefusedError:
                made = None
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[key] = made
            return made
        return self._found[key]

    @abstractmethod
    def _make(self, shape: tuple[int, ...], adds: bool) -> Primitive:
        """Return the primitive for a shape. Raises RefusedError."""

    def _hold_weights(self, descriptor: Handle, w: Array) -> Handle:
        """Return the weights in the layout that a primitive chose, which is the same for most shapes."""
        if not are_finite(w):
            raise RefusedError("the weights are not finite")
        library = self._library
        layout = library.get_layout(descriptor, _WEIGHTS_LAYOUT)
        for owner, packed in self._packed:
            if library.are_equal(library.get_layout(owner, _WEIGHTS_LAYOUT), layout):
                return packed
        found = library.hold(layout, library.pack(w, library.describe_array(w), layout), keeps=descriptor)
        self._packed.append((descriptor, found))
        return found


class Convolution(Operation):
    """A convolution ``activation(conv(x) + bias + residual)`` with a fixed filter.

    Parameters
    ----------
    w, bias
        ``(O, C / groups, h, w)`` and ``(O,)``, or None.
    windows
        Returns the windows over an image of these spatial dims.
    """

    def __init__(
        self,
        library: Library,
        w: Array,
        bias: Array | None,
        windows: Callable[[tuple[int, int]], Windows],
        groups: int,
        activation: Eltwise | None,
    ) -> None:
        super().__init__(library, activation)
        self._w, self._bias, self._find_windows, self._groups = w, bias, windows, groups

    def _make(self, shape: tuple[int, ...], adds: bool) -> Primitive:
        library, groups, w = self._library, self._groups, self._w
        count, channels, *spatial = shape
        windows = self._find_windows((spatial[0], spatial[1]))
        after = (count, len(w), *windows.counts(spatial))
        too_small = any(a > b for a, b in zip(windows.extent, windows.padded(spatial), strict=True))
        if channels != w.shape[1] * groups or not math.prod(after) or too_small:
            raise RefusedError("the plain kernel raises the error, if there is one")
        if groups > 1:
            w = w.reshape(groups, len(w) // groups, *w.shape[1:])
        source, target = _describe_images(library, shape), _describe_images(library, after)
        bias = None if self._bias is None else library.describe_array(self._bias)
        descriptor = library.describe_primitive(
            "convolution_forward",
            ctypes.c_int(_INFERENCE),
            ctypes.c_int(_DIRECT),
            source,
            library.describe(w.shape),
            bias,
            target,
            *_describe_windows(windows),
            attributes=library.make_attributes(self._activation, adds=adds),
        )
        constants = {_WEIGHTS: self._hold_weights(descriptor, w)}
        if bias is not None:
            constants[_BIAS] = library.hold(bias, self._bias)
        return Primitive(library, descriptor, source, target, after, constants)


class Product(Operation):
    """A product ``activation(x w + bias)`` with a fixed matrix.

    Parameters
    ----------
    w, bias
        ``(K, O)`` and ``(O,)``, or None.
    cut
        The number of dims of x that are rows of the matrix.
    plain
        The same function by numpy, for little work and for shapes that the library refuses.
    """

    def __init__(
        self,
        library: Library,
        w: Array,
        bias: Array | None,
        cut: int,
        activation: Eltwise | None,
        plain: Kernel,
    ) -> None:
        super().__init__(library, activation)
        self._w, self._bias, self._cut, self._plain = w, bias, cut, plain
        self._size = w.size
        self._of_thread = threading.local()

    def __call__(self, x: Array) -> Array:
        """Return the product with the rows of x."""
        rows = len(x) if x.ndim == 2 else math.prod(x.shape[: self._cut])
        if rows < 2 or rows * self._size < (_SMALL if rows % 4 else 2 * _SMALL):
            return self._plain(x)
        x = np.ascontiguousarray(x)
        if x.dtype != np.float32 or x.size != rows * len(self._w) or not are_finite(x):
            return self._plain(x)
        found = self.find((rows, len(self._w)))
        if found is None:
            return self._plain(x)
        calls = self._of_thread.__dict__.setdefault("calls", {})
        call = calls.get(rows)
        if call is None:
            if len(calls) >= _KEPT:
                calls.clear()
            call = calls[rows] = found.bind(
                self._library.hold(found.source), self._library.hold(found.target)
            )
        out = np.empty(found.shape, np.float32)
        for memory, array in zip(call.memories, (x, out), strict=False):
            self._library.set_pointer(memory, array.ctypes.data)
        self._library.run(call)
        return out if x.ndim == 2 else out.reshape(*x.shape[: self._cut], -1)

    def _make(self, shape: tuple[int, ...], adds: bool) -> Primitive:
        library, (inner, columns) = self._library, self._w.shape
        source = library.describe(shape, (inner, 1))
        target = library.describe((shape[0], columns), (columns, 1))
        bias = None if self._bias is None else library.describe((1, columns), (columns, 1))
        descriptor = library.describe_primitive(
            "matmul",
            source,
            library.describe(self._w.shape),
            bias,
            target,
            attributes=library.make_attributes(self._activation, adds=adds),
        )
        constants = {_WEIGHTS: self._hold_weights(descriptor, self._w)}
        if bias is not None:
            constants[_BIAS] = library.hold(bias, self._bias)
        return Primitive(library, descriptor, source, target, (shape[0], columns), constants)


class Pool(Operation):
    """A pool over images.

    Parameters
    ----------
    find_axes
        Returns the windows over an image of these spatial dims.
    kind
        "max" or "avg".
    """

    def __init__(
        self, library: Library, find_axes: Callable[[Sequence[int]], Sequence[Axis]], kind: str
    ) -> None:
        super().__init__(library)
        self._find_axes, self._kind = find_axes, _MAX if kind == "max" else _AVERAGE

    def _make(self, shape: tuple[int, ...], adds: bool) -> Primitive:
        library, axes = self._library, self._find_axes(shape[2:])
        if not math.prod(shape) or any(axis.stride is None for axis in axes):
            raise RefusedError("the windows are uneven")
        after = (*shape[:2], *(len(axis.spans) for axis in axes))
        source, target = _describe_images(library, shape), _describe_images(library, after)
        ends = [max(0, axis.spans[-1][1] - axis.pad[0] - axis.size) for axis in axes]
        descriptor = library.describe_primitive(
            "pooling_forward",
            ctypes.c_int(_INFERENCE),
            ctypes.c_int(self._kind),
            source,
            target,
            Dims(*(axis.stride or 1 for axis in axes)),
            Dims(*(axis.kernel for axis in axes)),
            Dims(0, 0),
            Dims(*(axis.pad[0] for axis in axes)),
            Dims(*ends),
            attributes=library.make_attributes(None),
        )
        return Primitive(library, descriptor, source, target, after, {})


class Link(NamedTuple):
    """An operation of :class:`Images`, with the keys of its input, its output, and the residual that it
    adds.
    """

    operation: Operation
    x: int
    out: int
    residual: int | None = None


class Images:
    """Operations on images that follow each other and run without Python in between.

    Values that only these operations read stay in the thread's memory, which later runs reuse.

    Parameters
    ----------
    links
        The operations in order.
    kept
        The keys of the values that other operations read.
    """

    def __init__(self, library: Library, links: Sequence[Link], kept: Collection[int]) -> None:
        self._library, self._links = library, links
        made = {link.out for link in links}
        read = [key for link in links for key in (link.x, link.residual) if key is not None]
        self.inputs = [key for key in dict.fromkeys(read) if key not in made]
        self.outputs = [link.out for link in links if link.out in kept]
        self._lasts = {key: at for at, link in enumerate(links) for key in (link.x, link.residual, link.out)}
        self._of_thread = threading.local()

    def __call__(self, *given: Array) -> list[Array] | None:
        """Return the outputs, with channels last in memory, or None if the library does not accept these
        inputs.
        """
        bounds = self._of_thread.__dict__.setdefault("bounds", {})
        key = tuple(x.shape for x in given)
        if key not in bounds:
            if len(bounds) >= _BOUND:
                bounds.clear()
            bounds[key] = self._bind(key)
        bound = bounds[key]
        if bound is None or any(x.dtype != np.float32 for x in given):
            return None
        library = self._library
        pixels = [_see_pixels(x) for x in given]
        if not all(map(are_finite, pixels)):
            return None
        outs = [np.empty((n, h, w, c), np.float32) for n, c, h, w in bound.shapes]
        for memory, array in zip(bound.sources + bound.targets, pixels + outs, strict=True):
            library.set_pointer(memory, array.ctypes.data)
        for call in bound.calls:
            library.run(call)
        return [out.transpose(0, 3, 1, 2) for out in outs]

    def _bind(self, given: Sequence[tuple[int, ...]]) -> _Bound | None:
        """Return the calls for inputs of these shapes."""
        library, shapes = self._library, dict(zip(self.inputs, given, strict=True))
        if any(len(shape) != 4 for shape in given):
            return None
        sizes: list[int] = []  # sizes of pieces of memory, in bytes
        free: list[int] = []  # pieces
        pieces: dict[int | None, int] = {}  # by key
        steps = []
        for at, link in enumerate(self._links):
            _, x, out, residual = link
            primitive = link.operation.find(shapes[x], residual is not None)
            if primitive is None or (residual is not None and shapes[residual] != primitive.shape):
                return None
            shapes[out] = primitive.shape
            ended = [key for key in {x, residual, out} if key in pieces and self._lasts[key] == at]
            over = residual in ended and residual != x and out not in self.outputs
            if out not in self.outputs:
                piece = pieces[residual] if over else free.pop() if free else len(sizes)
                if piece == len(sizes):
                    sizes.append(0)
                sizes[piece] = max(sizes[piece], 4 * math.prod(primitive.shape))
                pieces[out] = piece
            free += [pieces[key] for key in ended if not (over and key == residual)]
            steps.append((link, primitive, over))
        memory = [make_aligned(size) for size in sizes]
        held = {
            key: library.hold(
                _describe_images(library, shape), memory[pieces[key]] if key in pieces else None
            )
            for key, shape in shapes.items()
        }
        calls = []
        for (_, x, out, residual), primitive, over in steps:
            if residual is not None and not over:
                calls.append(library.bind_copy(primitive.target, primitive.target, held[residual], held[out]))
            calls.append(primitive.bind(held[x], held[out]))
        return _Bound(
            calls,
            [held[key] for key in self.inputs],
            [held[key] for key in self.outputs],
            [shapes[key] for key in self.outputs],
        )


class _Bound(NamedTuple):
    """The calls of :class:`Images` for one shape and one thread."""

    calls: list[Call]
    sources: list[Handle]
    targets: list[Handle]
    shapes: list[tuple[int, ...]]


def are_finite(array: Array) -> bool:
    """Return whether all numbers are finite and below 1e15; the library's relu turns NaN into 0."""
    flat = array.reshape(-1)
    return math.isfinite(flat.dot(flat))


def _see_pixels(x: Array) -> Array:
    """Return ``(N, C, H, W)`` as contiguous ``(N, H, W, C)``, a view if possible."""
    seen = x.transpose(0, 2, 3, 1)
    return seen if seen.flags.c_contiguous else as_channels_last(x)


def _describe_images(library: Library, shape: Sequence[int]) -> Handle:
    """Return the layout of images ``(N, C, H, W)`` whose channels are last in memory."""
    _, channels, height, width = shape
    return library.describe(shape, (height * width * channels, 1, width * channels, channels))


def _describe_windows(windows: Windows) -> list[Any]:
    """Return strides, gaps within a window, and the padding before and after."""
    gaps = [step - 1 for step in windows.dilations]
    return [
        Dims(*windows.strides),
        Dims(*gaps),
        *(Dims(*side) for side in zip(*windows.pads, strict=True)),
    ]
