"""Convolutions, pools and products of predictions by Intel's oneDNN, through its C API.

The package ``onednn-cpu-gomp`` (extra ``fast``) brings the library for Linux on x86-64; where it is missing
or does not load, the kernels of :mod:`paddlelike.ops` compute. Numbers are float32, and formulas direct.
Images have their channels last in memory, as those kernels have them: what goes in and comes out are arrays
of numpy. The API: https://uxlfoundation.github.io/oneDNN/v3.2/ (``dnnl.h``, ``dnnl_types.h``).
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array
from paddlelike.framework.flags import flag
from paddlelike.ops.kernels.fast.late import FLAG
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last
from paddlelike.ops.kernels.nn.image.pool import Axis
from paddlelike.ops.kernels.nn.image.windows import Windows

Kernel = Callable[..., Array]
#: An activation in the library's terms: kind, alpha, beta.
Eltwise = tuple[int, float, float]

#: How threads wait for work; by default they spin, which takes the processor from others.
_WAITING: Final = "OMP_WAIT_POLICY"
_PACKAGE: Final = "onednn-cpu-gomp"
_RELU, _TANH, _LOGISTIC, _GELU_TANH = 0x20, 0x21, 0x29, 0x2B
_SWISH, _CLIP, _GELU_ERF, _HARD_SWISH = 0x2C, 0x2E, 0x31, 0x34
_MAX, _AVERAGE = 0x1FF, 0x3FF  # a pool's; the mean is that without padding
_DIRECT: Final = 1  # a convolution's algorithm
_INFERENCE: Final = 96
_FLOAT32: Final = 3
# What a primitive takes, and what its descriptor is asked.
_SRC, _DST, _WEIGHTS, _BIAS, _SCRATCHPAD = 1, 17, 33, 41, 80
_IMPLEMENTATION, _WEIGHTS_LAYOUT, _SCRATCHPAD_LAYOUT = 8, 131, 136
_KEPT: Final = 64  # shapes of an operation
_BOUND: Final = 4  # shapes whose memory a thread keeps
_ALIGNED: Final = 64  # bytes

_Dims = ctypes.c_int64 * 12


class _Argument(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int), ("memory", ctypes.c_void_p))


class _RefusedError(Exception):
    """An operation that the library does not have, or only as slow reference."""


class _Handle:
    """An object of the library, destroyed with this Python object; ctypes passes the pointer."""

    def __init__(self, destroy: Callable[..., object], keeps: object = None) -> None:
        self._as_parameter_ = ctypes.c_void_p()
        self._destroy, self._keeps = destroy, keeps

    def __del__(self) -> None:
        self._destroy(self._as_parameter_)


class Call(NamedTuple):
    """A primitive with all arguments, for one thread."""

    primitive: _Handle
    stream: _Handle
    size: int
    arguments: Any
    memories: list[_Handle]


class Library:
    """The library, loaded, with its engine for the CPU."""

    def __init__(self, path: str) -> None:
        given = os.environ.get(_WAITING)
        os.environ[_WAITING] = given or "passive"  # OpenMP reads it once, when it is loaded
        try:
            self._library = ctypes.CDLL(path)
        finally:
            if given is None:
                del os.environ[_WAITING]
        self._library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self._library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self.version = ".".join(map(str, (ctypes.c_int * 3).from_address(self._get_version())))
        self.set_pointer = self._library.dnnl_memory_set_data_handle
        self.set_pointer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._execute = self._library.dnnl_primitive_execute
        self._execute.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        self._engine = self.make("engine", ctypes.c_int(1), ctypes.c_size_t(0))
        self._of_thread = threading.local()
        self.set_threads(self.set_threads(1))  # AttributeError where it is without OpenMP

    def _get_version(self) -> int:
        self._library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
        return ctypes.cast(self._library.dnnl_version(), ctypes.c_void_p).value or 0

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises _RefusedError for another status than success."""
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status:
            raise _RefusedError(f"{name}: status {status}")

    def make(self, kind: str, *arguments: object, create: str = "create", keeps: object = None) -> _Handle:
        """Return a new object."""
        owner = "primitive_desc" if kind.endswith("primitive_desc") else kind
        handle = _Handle(getattr(self._library, f"dnnl_{owner}_destroy"), keeps)
        self.call(f"{kind}_{create}", ctypes.byref(handle._as_parameter_), *arguments)
        return handle

    def describe(self, shape: Sequence[int], steps: Sequence[int] | None = None) -> _Handle:
        """Return a layout of float32: its steps in elements, or None where the library may choose."""
        given = ctypes.c_int(len(shape)), _Dims(*shape), ctypes.c_int(_FLOAT32)
        if steps is None:
            return self.make("memory_desc", *given, ctypes.c_int(1), create="create_with_tag")
        return self.make("memory_desc", *given, _Dims(*steps), create="create_with_strides")

    def describe_array(self, array: Array) -> _Handle:
        """Return the layout of an array."""
        return self.describe(array.shape, [step // array.itemsize for step in array.strides])

    def are_equal(self, one: object, other: object) -> bool:
        """Return whether two layouts are the same."""
        return bool(self._library.dnnl_memory_desc_equal(one, other))

    def hold(self, layout: object, array: Array | None = None, keeps: object = None) -> _Handle:
        """Return a memory object over an array, or over nothing yet; ``keeps`` owns the layout."""
        pointer = ctypes.c_void_p(None if array is None else array.ctypes.data)
        return self.make("memory", layout, self._engine, pointer, keeps=(layout, array, keeps))

    def describe_primitive(self, kind: str, *arguments: object, attributes: _Handle) -> _Handle:
        """Return the descriptor of a primitive. Raises _RefusedError for the slow reference."""
        found = self.make(f"{kind}_primitive_desc", self._engine, *arguments, attributes)
        name = ctypes.c_char_p()
        self.call(
            "primitive_desc_query", found, ctypes.c_int(_IMPLEMENTATION), ctypes.c_int(0), ctypes.byref(name)
        )
        if (name.value or b"ref").startswith(b"ref"):
            raise _RefusedError(f"{kind}: {name.value!r}")
        return found

    def get_layout(self, descriptor: _Handle, what: int) -> ctypes.c_void_p:
        """Return a layout of a descriptor, which owns it."""
        found = self._library.dnnl_primitive_desc_query_md(descriptor, ctypes.c_int(what), ctypes.c_int(0))
        return ctypes.c_void_p(found)

    def count_bytes(self, layout: object) -> int:
        """Return the size of what has this layout."""
        return int(self._library.dnnl_memory_desc_get_size(layout))

    def make_attributes(self, activation: Eltwise | None, *, adds: bool = False) -> _Handle:
        """Return what follows a primitive: an activation; ``adds`` to the numbers at the target."""
        attributes, after = self.make("primitive_attr"), self.make("post_ops")
        if adds:
            self.call("post_ops_append_sum", after, ctypes.c_float(1), ctypes.c_int(0), ctypes.c_int(0))
        if activation is not None:
            kind, alpha, beta = activation
            self.call(
                "post_ops_append_eltwise",
                after,
                ctypes.c_int(kind),
                ctypes.c_float(alpha),
                ctypes.c_float(beta),
            )
        self.call("primitive_attr_set_post_ops", attributes, after)
        self.call("primitive_attr_set_scratchpad_mode", attributes, ctypes.c_int(1))  # the user's
        self.call(
            "primitive_attr_set_fpmath_mode", attributes, ctypes.c_int(0)
        )  # strict, whatever the process says
        return attributes

    def pack(self, array: Array, source: object, target: object) -> Array:
        """Return the bytes of an array in another layout."""
        out = make_aligned(self.count_bytes(target))
        self.run(self.bind_copy(source, target, self.hold(source, array), self.hold(target, out)))
        return out

    def bind_copy(self, source: object, target: object, x: _Handle, out: _Handle) -> Call:
        """Return the call that copies one memory object into another, each with its layout."""
        descriptor = self.make("reorder_primitive_desc", source, self._engine, target, self._engine, None)
        return self.bind(self.make("primitive", descriptor, keeps=descriptor), {_SRC: x, _DST: out})

    def bind(self, primitive: _Handle, given: Mapping[int, _Handle]) -> Call:
        """Return the call of a primitive with these arguments, by index."""
        arguments = (_Argument * len(given))(*(_Argument(i, one._as_parameter_) for i, one in given.items()))
        return Call(primitive, self.get_stream(), len(given), arguments, list(given.values()))

    def run(self, call: Call) -> None:
        """Run a primitive."""
        if self._execute(*call[:4]):
            raise RuntimeError("oneDNN did not run a primitive that it has made")

    def get_stream(self) -> _Handle:
        """Return the stream of this thread."""
        found: _Handle | None = getattr(self._of_thread, "stream", None)
        if found is None:
            found = self._of_thread.stream = self.make("stream", self._engine, ctypes.c_uint(1))
        return found

    def get_scratchpad(self, size: int) -> Array:
        """Return memory of this thread that a primitive may use while it runs."""
        found: Array | None = getattr(self._of_thread, "scratchpad", None)
        if found is None or len(found) < size:
            found = self._of_thread.scratchpad = make_aligned(size)
        return found

    def set_threads(self, count: int) -> int:
        """Set the number of threads for primitives that this thread runs; return the number before."""
        before = int(self._library.omp_get_max_threads())
        if count != before:
            self._library.omp_set_num_threads(ctypes.c_int(count))
        return before


def make_aligned(size: int) -> Array:
    """Return ``size`` bytes that start at a line of the cache."""
    whole = np.empty(size + _ALIGNED, np.uint8)
    start = -whole.ctypes.data % _ALIGNED
    return whole[start : start + size]


def find() -> Library | None:
    """Return the library; None where it does not load, or where ``FLAGS_use_fast_kernels`` is False."""
    found = load()
    return found if isinstance(found, Library) and flag(FLAG) else None


@functools.cache
def load() -> Library | str:
    """Return the library, or the reason why it cannot be used."""
    path = os.path.join(sys.prefix, "lib", "libdnnl.so.3")
    if not os.path.isfile(path):
        return f"{_PACKAGE} is not installed"
    try:
        library = Library(path)
    except (OSError, AttributeError, _RefusedError) as error:
        return f"{_PACKAGE} does not load: {error}"
    return library if library.version.startswith("3.2.") else f"{path} is version {library.version}, not 3.2"


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
        descriptor: _Handle,
        source: _Handle,
        target: _Handle,
        shape: tuple[int, ...],
        constants: Mapping[int, _Handle],
    ) -> None:
        self._library, self._constants = library, constants
        self.source, self.target, self.shape = source, target, shape
        self._primitive = library.make("primitive", descriptor, keeps=descriptor)
        self._scratchpad = library.get_layout(descriptor, _SCRATCHPAD_LAYOUT)
        self._size = library.count_bytes(self._scratchpad)

    def bind(self, source: _Handle, target: _Handle) -> Call:
        """Return the call for this thread and these memory objects."""
        library = self._library
        given = {_SRC: source, _DST: target, **self._constants}
        if self._size:
            given[_SCRATCHPAD] = library.hold(self._scratchpad, library.get_scratchpad(self._size))
        return library.bind(self._primitive, given)


class Operation:
    """An operation with constant weights: a primitive for each shape, made when that first comes.

    Parameters
    ----------
    activation
        The activation of the result, or None.
    """

    def __init__(self, library: Library, activation: Eltwise | None = None) -> None:
        self._library, self._activation = library, activation
        self._found: dict[object, Primitive | None] = {}
        self._packed: list[tuple[_Handle, _Handle]] = []

    def find(self, shape: tuple[int, ...], adds: bool = False) -> Primitive | None:
        """Return the primitive for a shape; None: the library refuses it.

        ``adds``: the result is added to the numbers at its place.
        """
        key = shape, adds
        if key not in self._found:
            try:
                made = self._make(shape, adds)
            except _RefusedError:
                made = None
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[key] = made
            return made
        return self._found[key]

    def _make(self, shape: tuple[int, ...], adds: bool) -> Primitive:
        raise NotImplementedError

    def _hold_weights(self, descriptor: _Handle, w: Array) -> _Handle:
        """Return the weights in the layout that a primitive chose; it is the same for most shapes."""
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
            raise _RefusedError("the plain kernel words the error, if it is one")
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
        How many dims of x are rows of the matrix.
    plain
        The same by numpy, for one row and for shapes that the library refuses.
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
        self._of_thread = threading.local()

    def __call__(self, x: Array) -> Array:
        """Return the product with the rows of x."""
        rows = math.prod(x.shape[: self._cut])
        if rows < 2 or x.dtype != np.float32 or x.size != rows * len(self._w):
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
        x, out = np.ascontiguousarray(x), np.empty(found.shape, np.float32)
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
            raise _RefusedError("uneven windows")
        after = (*shape[:2], *(len(axis.spans) for axis in axes))
        source, target = _describe_images(library, shape), _describe_images(library, after)
        ends = [max(0, axis.spans[-1][1] - axis.pad[0] - axis.size) for axis in axes]
        descriptor = library.describe_primitive(
            "pooling_forward",
            ctypes.c_int(_INFERENCE),
            ctypes.c_int(self._kind),
            source,
            target,
            _Dims(*(axis.stride or 1 for axis in axes)),
            _Dims(*(axis.kernel for axis in axes)),
            _Dims(0, 0),
            _Dims(*(axis.pad[0] for axis in axes)),
            _Dims(*ends),
            attributes=library.make_attributes(None),
        )
        return Primitive(library, descriptor, source, target, after, {})


class Link(NamedTuple):
    """An operation of :class:`Images`, with the keys of its input, its output, and the residual it adds."""

    operation: Operation
    x: int
    out: int
    residual: int | None = None


class Images:
    """Operations on images that follow each other, without Python between them.

    Values that only these operations read are in memory of the thread, which later runs use again.

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
        """Return the outputs, the channels last in memory; None: the library refuses these inputs."""
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
        sizes: list[int] = []  # of pieces of memory, in bytes
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
    sources: list[_Handle]
    targets: list[_Handle]
    shapes: list[tuple[int, ...]]


def _see_pixels(x: Array) -> Array:
    """Return contiguous ``(N, H, W, C)`` of ``(N, C, H, W)``, a view if possible."""
    seen = x.transpose(0, 2, 3, 1)
    return seen if seen.flags.c_contiguous else as_channels_last(x)


def _describe_images(library: Library, shape: Sequence[int]) -> _Handle:
    """Return the layout of images ``(N, C, H, W)``, the channels last in memory."""
    _, channels, height, width = shape
    return library.describe(shape, (height * width * channels, 1, width * channels, channels))


def _describe_windows(windows: Windows) -> list[Any]:
    """Return strides, gaps within a window, and padding in front and behind."""
    gaps = [step - 1 for step in windows.dilations]
    return [
        _Dims(*windows.strides),
        _Dims(*gaps),
        *(_Dims(*side) for side in zip(*windows.pads, strict=True)),
    ]


def find_activation(kind: str, keywords: Mapping[str, Any]) -> Eltwise | None:
    """Return the library's activation for an operator type, or None."""
    if kind == "relu6":
        return _CLIP, 0.0, keywords["threshold"]
    if kind == "leaky_relu":
        return _RELU, keywords["alpha"], 0.0
    if kind == "gelu":
        return (_GELU_TANH if keywords["approximate"] else _GELU_ERF), 0.0, 0.0
    if kind == "swish":
        return _SWISH, keywords["beta"], 0.0
    if kind == "hard_swish" and keywords["threshold"] == keywords["scale"]:
        return _HARD_SWISH, 1 / keywords["scale"], keywords["offset"] / keywords["scale"]
    fixed = {"relu": _RELU, "sigmoid": _LOGISTIC, "tanh": _TANH}.get(kind)
    return None if fixed is None else (fixed, 0.0, 0.0)
