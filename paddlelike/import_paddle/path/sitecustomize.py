"""Restore, with warnings, names that old scripts use and Python, numpy, Pillow and protobuf removed.

Python imports this file when it starts with this folder on its path. Another ``sitecustomize`` further on the
path runs as well.
"""

import collections.abc
import functools
import importlib.util
import math
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: {module: {removed name: what takes its place}}; a text is its path.
_REMOVED: Final[dict[str, dict[str, Any]]] = {
    "collections": {name: f"collections.abc.{name}" for name in collections.abc.__all__},
    "fractions": {"gcd": "math.gcd"},
    "inspect": {"getargspec": "inspect.getfullargspec"},
    "numpy": {
        "bool": bool, "complex": complex, "float": float, "int": int, "long": int, "object": object,
        "str": str, "unicode": str,
        "bool8": "numpy.bool_", "cfloat": "numpy.complex128", "complex_": "numpy.complex128",
        "float_": "numpy.float64", "int0": "numpy.intp", "longfloat": "numpy.longdouble",
        "singlecomplex": "numpy.complex64", "string_": "numpy.bytes_", "uint0": "numpy.uintp",
        "unicode_": "numpy.str_",
        "Inf": math.inf, "Infinity": math.inf, "infty": math.inf, "PINF": math.inf, "NINF": -math.inf,
        "NaN": math.nan, "NAN": math.nan, "NZERO": -0.0, "PZERO": 0.0,
        "alltrue": "numpy.all", "asscalar": "numpy.ndarray.item", "cumproduct": "numpy.cumprod",
        "in1d": "numpy.isin", "issubsctype": "numpy.issubdtype", "mat": "numpy.asmatrix",
        "product": "numpy.prod", "rank": "numpy.ndim", "round_": "numpy.round", "row_stack": "numpy.vstack",
        "sctypes": "numpy's types by kind",
        "sometrue": "numpy.any", "trapz": "numpy.trapezoid", "typeDict": "numpy.sctypeDict",
    },
    "PIL.Image": {
        "ANTIALIAS": "PIL.Image.LANCZOS", "CUBIC": "PIL.Image.BICUBIC", "LINEAR": "PIL.Image.BILINEAR",
    },
    "time": {"clock": "time.perf_counter"},
}  # fmt: skip


def _find(path: str) -> object:
    """Return the object at a path; ``getfullargspec`` returns four values, like ``getargspec``."""
    if path == "inspect.getfullargspec":
        ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
        return lambda function: ArgSpec(*import_module("inspect").getfullargspec(function)[:4])
    if path == "numpy's types by kind":
        numpy = import_module("numpy")
        kinds = {"int": "bhil", "uint": "BHIL", "float": "efdg", "complex": "FDG", "others": "?OSUV"}
        return {kind: [numpy.dtype(each).type for each in chars] for kind, chars in kinds.items()}
    module, *names = path.split(".")
    found: Any = import_module(module)
    for name in names:
        found = getattr(found, name)
    return found


def _say(gone: str, instead: object) -> None:
    """Issue a warning at the line that called the caller."""
    warnings.warn(
        f"{gone} no longer exists; scripts that paddlelike runs get {instead}", FutureWarning, stacklevel=3
    )


def _restore(module: ModuleType) -> None:
    """Make a module provide names that were removed from it."""
    removed = _REMOVED[module.__name__]
    before: Callable[[str], Any] | None = getattr(module, "__getattr__", None)

    def get(name: str) -> Any:
        try:
            if before is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return before(name)
        except AttributeError:
            if name not in removed:
                raise
        target = removed[name]
        called = target if isinstance(target, str) else getattr(target, "__name__", target)
        _say(f"{module.__name__}.{name}", called)
        value = _find(target) if isinstance(target, str) else target
        setattr(module, name, value)
        return value

    module.__dict__["__getattr__"] = get


#: Packages that rely on the errors of today's numpy.
_OF_TODAY: Final = (
    "h5py",
    "jax",
    "matplotlib",
    "numba",
    "numpy",
    "onnx",
    "paddlelike",
    "pandas",
    "scipy",
    "sklearn",
)


def _make_ragged(module: ModuleType, values: Any, dtype: object = None, **options: Any) -> Any:
    """Return an array of objects for rows of different lengths, as old numpy did."""
    if dtype is not None:
        raise ValueError("setting an array element with a sequence")
    return module.array(values, dtype=object, **options)


def _copy_ragged(module: ModuleType, values: Any, order: str = "K", subok: bool = False) -> Any:
    return _make_ragged(module, values, order=order, subok=subok)


def _read_bytes(module: ModuleType, data: Any, dtype: Any = float, count: int = -1, **_: Any) -> Any:
    """Return an array with the bytes ``data``, writable like the result of the old ``fromstring``."""
    return module.frombuffer(data.encode("latin1") if isinstance(data, str) else data, dtype, count).copy()


def _restore_calls(numpy: ModuleType) -> None:
    """Restore removed behaviour of numpy's functions."""
    for name, error, instead, fallback in (
        ("array", "inhomogeneous shape", "an array of objects", _make_ragged),
        ("asarray", "inhomogeneous shape", "an array of objects", _make_ragged),
        ("copy", "inhomogeneous shape", "an array of objects", _copy_ragged),
        ("fromstring", "binary mode", "a copy of numpy.frombuffer", _read_bytes),
    ):
        setattr(numpy, name, _fall_back(numpy, getattr(numpy, name), error, instead, fallback))


def _is_of_today() -> bool:
    """Return whether the caller's caller belongs to a package that needs the errors of current numpy."""
    return str(sys._getframe(2).f_globals.get("__name__")).partition(".")[0] in _OF_TODAY


def _was_number(array: Any) -> bool:
    """Return whether older numpy converted an array of shape (1,), or rows of (n, 1, ...), to numbers."""
    return bool(array.ndim and array.size == len(array) and (array.ndim > 1 or array.size == 1))


def _let_convert(array: Any) -> Any:
    """Return a fetched array that converts to a number as in older numpy versions."""
    fetches = sys.modules.get("paddlelike.executor.exchange.fetches")
    return array if fetches is None or type(array).__name__ != "ndarray" else fetches.view_fetched(array)


def _fall_back(
    numpy: ModuleType, function: Callable[..., Any], error: str, instead: str, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """Return ``function``, wrapped so that it calls ``fallback`` when it fails with ``error``."""
    told: set[str] = set()

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            made = function(*args, **options)
            return _let_convert(made) if _was_number(made) and not _is_of_today() else made
        except ValueError as failed:
            if error not in str(failed) or _is_of_today():
                raise
        if function.__name__ not in told:
            told.add(function.__name__)
            what = "of rows of several lengths" if fallback is not _read_bytes else "of bytes"
            _say(f"numpy.{function.__name__} {what}", instead)
        return fallback(numpy, *args, **options)

    return call


def _restore_sizes(module: ModuleType) -> None:
    """Give Pillow's fonts and drawings the methods that return the size of a text."""

    def getsize(font: Any, text: Any, *_: Any, **options: Any) -> tuple[int, int]:
        return tuple(map(int, font.getbbox(text, **options)[2:]))  # type: ignore[return-value]

    def textsize(draw: Any, text: Any, font: Any = None, **options: Any) -> tuple[int, int]:
        return tuple(map(int, draw.textbbox((0, 0), text, font, **options)[2:]))  # type: ignore[return-value]

    for kind, method in (("FreeTypeFont", getsize), ("ImageFont", getsize), ("ImageDraw", textsize)):
        there = getattr(module, kind, None)
        if there is not None and not hasattr(there, method.__name__):
            setattr(there, method.__name__, method)


#: {module: what it gets besides names}
_REPAIRS: Final[dict[str, Callable[[ModuleType], None]]] = {
    "numpy": _restore_calls, "PIL.ImageDraw": _restore_sizes, "PIL.ImageFont": _restore_sizes,
}  # fmt: skip

#: {what an error of numpy says: the numpy that did it still}
_LAST_NUMPY: Final = {
    "only 0-dimensional arrays can be converted to Python scalars": "numpy<2.4",
    "was removed from the ndarray class": "numpy<2",
    "Unable to avoid copy while creating an array": "numpy<2",
    "out of bounds for": "numpy<2",
}


def _add_numpy_hint(error: BaseException | None) -> None:
    """Add to a traceback the last numpy version that supported the call."""
    for said, wanted in _LAST_NUMPY.items():
        if (
            error is not None
            and said in str(error)
            and "hint: " not in "".join(getattr(error, "__notes__", ()))
        ):
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            line = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}: " if where is not None else ""
            error.add_note(f'  hint: {line}older numpys did this; pip install "{wanted}" runs it unchanged')


def _build_messages(module: ModuleType) -> None:
    """Create the messages of a module by an old protoc from the description at its beginning."""
    builder = import_module("google.protobuf.internal.builder")
    builder.BuildMessageAndEnumDescriptors(module.DESCRIPTOR, module.__dict__)
    builder.BuildTopDescriptorsAndMessages(module.DESCRIPTOR, module.__name__, module.__dict__)


class _RestoringFinder:
    """Restores the names of modules that a script imports later."""  # importlib.abc takes long to import

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Return a spec with a restoring loader for a module in the tables or by protoc, or None for other
        modules.
        """
        if name not in _REMOVED and name not in _REPAIRS and not name.endswith("_pb2"):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            try:
                execute(module)
            except TypeError as error:
                if "Descriptors cannot be created directly" not in str(error):
                    raise
                _build_messages(module)
            if name in _REMOVED:
                _restore(module)
            if name in _REPAIRS:
                _REPAIRS[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_next() -> None:
    """Run the next ``sitecustomize`` on the path."""
    here = Path(__file__).parent
    rest = [entry for entry in sys.path if Path(entry or ".").resolve() != here.resolve()]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _hook_errors() -> None:
    """Show the hints of :func:`_add_numpy_hint` in the main thread and in others."""
    show, show_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        _add_numpy_hint(error)
        show(kind, error, trace)

    def thread_excepthook(arguments: threading.ExceptHookArgs) -> None:
        _add_numpy_hint(arguments.exc_value)
        show_in_thread(arguments)

    sys.excepthook, threading.excepthook = excepthook, thread_excepthook


_hook_errors()
for _name in _REMOVED:
    if _name in sys.modules:
        _restore(sys.modules[_name])
sys.meta_path.insert(0, _RestoringFinder())
_run_next()
