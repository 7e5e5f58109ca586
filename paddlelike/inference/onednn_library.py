"""Intel's oneDNN through its C API: the library, its objects, and calls of its primitives.

The package ``onednn-cpu-gomp`` (extra ``fast``) brings the library for Linux on x86-64. The API:
https://uxlfoundation.github.io/oneDNN/v3.2/ (``dnnl.h``, ``dnnl_types.h``).
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array
from paddlelike.framework.flags import flag
from paddlelike.ops.kernels.fast.late import FLAG

#: An activation in the library's terms: kind, alpha, beta.
Eltwise = tuple[int, float, float]

#: Threads sleep while they wait for work; by default they spin, which slows other processes.
_WAITING: Final = "OMP_WAIT_POLICY"
_PACKAGE: Final = "onednn-cpu-gomp"
_FLOAT32: Final = 3
_IMPLEMENTATION: Final = 8  # the query for a descriptor's name
#: Arguments of a primitive.
SRC: Final = 1
DST: Final = 17
_ALIGNED: Final = 64  # bytes
_RELU, _TANH, _LOGISTIC, _GELU_TANH = 0x20, 0x21, 0x29, 0x2B
_SWISH, _CLIP, _GELU_ERF, _HARD_SWISH = 0x2C, 0x2E, 0x31, 0x34

Dims = ctypes.c_int64 * 12


class _Argument(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int), ("memory", ctypes.c_void_p))


class RefusedError(Exception):
    """Raised when the library lacks an operation, or has only its slow reference implementation."""


class Handle:
    """An object of the library, destroyed with this Python object; ctypes passes the pointer."""

    def __init__(self, destroy: Callable[..., object], keeps: object = None) -> None:
        self._as_parameter_ = ctypes.c_void_p()
        self._destroy, self._keeps = destroy, keeps

    def __del__(self) -> None:
        self._destroy(self._as_parameter_)


class Call(NamedTuple):
    """A primitive with all arguments, for one thread."""

    primitive: Handle
    stream: Handle
    size: int
    arguments: object
    memories: list[Handle]


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
        self._library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int * 3)
        self.version = ".".join(map(str, self._library.dnnl_version().contents))
        self.set_pointer = self._library.dnnl_memory_set_data_handle
        self.set_pointer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._execute = self._library.dnnl_primitive_execute
        self._execute.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        self._engine = self.make("engine", ctypes.c_int(1), ctypes.c_size_t(0))
        self._of_thread = threading.local()
        self.set_threads(self.set_threads(1))  # AttributeError for a library without OpenMP

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the library. Raises RefusedError for any status except success."""
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status:
            raise RefusedError(f"{name}: status {status}")

    def make(self, kind: str, *arguments: object, create: str = "create", keeps: object = None) -> Handle:
        """Return a new object of the library."""
        owner = "primitive_desc" if kind.endswith("primitive_desc") else kind
        handle = Handle(getattr(self._library, f"dnnl_{owner}_destroy"), keeps)
        self.call(f"{kind}_{create}", ctypes.byref(handle._as_parameter_), *arguments)
        return handle

    def describe(self, shape: Sequence[int], steps: Sequence[int] | None = None) -> Handle:
        """Return a float32 layout with these strides in elements; None lets the library choose."""
        given = ctypes.c_int(len(shape)), Dims(*shape), ctypes.c_int(_FLOAT32)
        if steps is None:
            return self.make("memory_desc", *given, ctypes.c_int(1), create="create_with_tag")
        return self.make("memory_desc", *given, Dims(*steps), create="create_with_strides")

    def describe_array(self, array: Array) -> Handle:
        """Return the layout of an array."""
        return self.describe(array.shape, [step // array.itemsize for step in array.strides])

    def are_equal(self, one: object, other: object) -> bool:
        """Return whether two layouts are the same."""
        return bool(self._library.dnnl_memory_desc_equal(one, other))

    def hold(self, layout: object, array: Array | None = None, keeps: object = None) -> Handle:
        """Return a memory object over an array, or without an array yet; ``keeps`` owns the layout."""
        pointer = ctypes.c_void_p(None if array is None else array.ctypes.data)
        return self.make("memory", layout, self._engine, pointer, keeps=(layout, array, keeps))

    def describe_primitive(self, kind: str, *arguments: object, attributes: Handle) -> Handle:
        """Return the descriptor of a primitive. Raises RefusedError for a slow reference implementation."""
        found = self.make(f"{kind}_primitive_desc", self._engine, *arguments, attributes)
        name = ctypes.c_char_p()
        self.call(
            "primitive_desc_query", found, ctypes.c_int(_IMPLEMENTATION), ctypes.c_int(0), ctypes.byref(name)
        )
        if (name.value or b"ref").startswith(b"ref"):
            raise RefusedError(f"{kind}: {name.value!r}")
        return found

    def get_layout(self, descriptor: Handle, what: int) -> ctypes.c_void_p:
        """Return a layout of a descriptor, which owns it."""
        found = self._library.dnnl_primitive_desc_query_md(descriptor, ctypes.c_int(what), ctypes.c_int(0))
        return ctypes.c_void_p(found)

    def count_bytes(self, layout: object) -> int:
        """Return the size in bytes of an array with this layout."""
        return int(self._library.dnnl_memory_desc_get_size(layout))

    def make_attributes(self, activation: Eltwise | None, *, adds: bool = False) -> Handle:
        """Return the attributes of a primitive: the activation after it, and whether it ``adds`` to the
        target.
        """
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
        )  # strict arithmetic, whatever the process sets
        return attributes

    def pack(self, array: Array, source: object, target: object) -> Array:
        """Return the bytes of an array in another layout."""
        out = make_aligned(self.count_bytes(target))
        self.run(self.bind_copy(source, target, self.hold(source, array), self.hold(target, out)))
        return out

    def bind_copy(self, source: object, target: object, x: Handle, out: Handle) -> Call:
        """Return the call that copies one memory object into another, each with its layout."""
        descriptor = self.make("reorder_primitive_desc", source, self._engine, target, self._engine, None)
        return self.bind(self.make("primitive", descriptor, keeps=descriptor), {SRC: x, DST: out})

    def bind(self, primitive: Handle, given: Mapping[int, Handle]) -> Call:
        """Return the call of a primitive with these arguments, by index."""
        arguments = (_Argument * len(given))(*(_Argument(i, one._as_parameter_) for i, one in given.items()))
        return Call(primitive, self.get_stream(), len(given), arguments, list(given.values()))

    def run(self, call: Call) -> None:
        """Run a primitive."""
        if self._execute(*call[:4]):
            raise RuntimeError("oneDNN failed to run a primitive")

    def get_stream(self) -> Handle:
        """Return the stream of this thread."""
        found: Handle | None = getattr(self._of_thread, "stream", None)
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
        """Set the number of threads for primitives that this thread runs; return the previous number."""
        before = int(self._library.omp_get_max_threads())
        if count != before:
            self._library.omp_set_num_threads(ctypes.c_int(count))
        return before


def make_aligned(size: int) -> Array:
    """Return ``size`` bytes that start at a cache line."""
    whole = np.empty(size + _ALIGNED, np.uint8)
    start = -whole.ctypes.data % _ALIGNED
    return whole[start : start + size]


def find() -> Library | None:
    """Return the library, or None if it does not load or ``FLAGS_use_fast_kernels`` is False."""
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
    except (OSError, AttributeError, RefusedError) as error:
        return f"{_PACKAGE} does not load: {error}"
    return library if library.version.startswith("3.2.") else f"{path} is version {library.version}, not 3.2"


def find_activation(kind: str, keywords: Mapping[str, Any]) -> Eltwise | None:
    """Return the library's activation for an operator type, or None if the library lacks it."""
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
