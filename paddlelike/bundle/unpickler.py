"""A pickle reader that constructs only objects of listed classes, and calls no other function.

Python's unpickler imports whatever a file names. This one is the standard library's unpickler in Python (its
memo is a dict, so that a large index in the file does not take memory), with other steps for importing,
calling and filling objects.
"""

from __future__ import annotations

import codecs
import pickle
import re
import reprlib
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, ClassVar, Final, NoReturn

import numpy as np

from paddlelike.bundle.own_classes import find_name, find_own, is_own, is_own_enum, is_own_tuple, restrict
from paddlelike.bundle.theano import Placeholder, make_stand_in, stand_in
from paddlelike.errors import FormatError, MissingFileError

Array = np.ndarray[Any, Any]
Classes = Mapping[str, Any] | Sequence[Any]

#: The standard library's functions by the number of the instruction.
_INSTRUCTIONS: Final[dict[int, Callable[..., Any]]] = {**pickle._Unpickler.dispatch}
_DAMAGE: Final = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RuntimeError,
    AssertionError,
    struct.error,
)


def build_class_table(classes: Classes) -> dict[str, Any]:
    """Return the classes and functions of a caller by ``module.name``."""
    if isinstance(classes, Mapping):
        return dict(classes)
    return {f"{one.__module__}.{one.__qualname__}": one for one in classes}


class RestrictedUnpickler(pickle._Unpickler):
    """Reads one pickle after another.

    Parameters
    ----------
    file
        A binary file object.
    size
        The number of bytes left, the limit for the size that one opcode may claim.
    classes
        More classes that the pickle may create, by ``module.name``; plain values, numpy arrays and the
        classes of this package are always allowed.
    rename
        New names of attributes; a state that is a dict is renamed before its object receives it.
    find_array
        Returns the array of a persistent id. None refuses such ids.
    trusted
        Keep operators and datasets that act outside of the process as they were saved.
    """

    stack: list[Any]  # of the machine, set up by load()
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(
        self,
        file: IO[bytes],
        size: int,
        *,
        classes: Mapping[str, Any],
        rename: Mapping[str, str],
        find_array: Callable[[str], Any] | None = None,
        trusted: bool = False,
    ) -> None:
        super().__init__(file, encoding="latin1")
        self._trusted = trusted
        self._size = size
        self._classes = classes
        self._rename = rename
        self._find_array = find_array
        self._spent = 0  # elements that were copied or hashed

    def read_object(self) -> Any:
        """Return the next object.

        Raises FormatError for damaged bytes and for a class that is not on the list, MissingFileError when a
        dataset's files are gone.
        """
        try:
            return self.load()
        except (FormatError, MissingFileError):
            raise
        except (*_DAMAGE, MemoryError) as error:
            raise FormatError(f"the pickle is damaged ({type(error).__name__}: {error!s:.200})") from error

    def find_class(self, module: str, name: str) -> object:
        """Return the class or function for ``module.name``. Raises FormatError when it is refused."""
        known = self._classes.get(f"{module}.{name}", _PLAIN.get(f"{module}.{name}"))
        if known is None and self._classes and module.startswith("paddlelike."):
            known = self._classes.get(find_name(module, name))
        if known is None:
            known = stand_in(module, name)
        if known is None:
            known = find_own(module, name)
        if known is None:
            raise FormatError(
                f"the pickle refers to {module}.{name}, which is not on the list of allowed classes",
                hint="pass classes=[...] if it is yours and you trust the file; "
                "paddlelike.bundle.arrays(file) reads the arrays of a bundle without it",
            )
        return known

    def persistent_load(self, pid: object) -> object:
        """Return the array of a persistent id. Raises FormatError when there is none."""
        if self._find_array is None or not isinstance(pid, str | bytes):
            raise FormatError(f"the pickle refers to {shorten(pid)} outside of it, and this is not a bundle")
        return self._find_array(pid if isinstance(pid, str) else pid.decode("latin1"))

    # The steps that do more than push plain values

    def _call(self, function: Any, arguments: Any) -> object:
        may = any(function is known for known in (*_PLAIN.values(), *self._classes.values()))
        may = may or (isinstance(function, type) and stand_in(*_find_names(function)) is not None)
        may = may or (is_own_enum(function) and _is_one_integer(arguments))
        if not may or not isinstance(arguments, tuple):
            raise FormatError(
                f"the pickle calls {shorten(function)}, which is not on the list of allowed functions"
            )
        for one in arguments:
            if isinstance(one, _CONTAINERS):
                self._spend(len(one))
                if function in _HASHING:
                    self._check_keys(one)
        return function(*arguments)

    def _spend(self, count: int) -> None:
        """Count elements that are copied or hashed, as a file may refer to the same elements many times."""
        self._spent += count
        if self._spent > 4 * self._size + 1000:
            raise FormatError(
                f"the pickle has {self._size} bytes, but copies or hashes over {4 * self._size} elements"
            )

    def _check_keys(self, keys: Iterable[Any]) -> None:
        """Count the elements of tuples to be hashed, once for every reference to a tuple."""
        for key in keys:
            pending = [key]
            while pending:
                one = pending.pop()
                if isinstance(one, tuple | frozenset):
                    self._spend(len(one))
                    pending += one

    def _hash(self, step: Callable[[Any], None], keys: slice) -> None:
        """Run one instruction of the pickle that uses values on the stack as keys."""
        self._check_keys(self.stack[keys])
        step(self)

    def _reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def _new(self) -> None:
        arguments, made = self.stack.pop(), self.stack.pop()
        if not isinstance(made, type) or made in _PLAIN.values() or _is_misused(made, arguments):
            raise FormatError(f"the pickle creates an object of {shorten(made)}, which is refused")
        self.append(_make(made, *arguments))

    def _new_with_keywords(self) -> None:
        keywords = self.stack.pop()
        if keywords:
            raise FormatError("the pickle creates an object with keyword arguments, which is refused")
        self._new()

    def _instance(self, made: object, arguments: list[Any]) -> None:
        """Create an instance of an old-style Python 2 class (protocol 0), without calling it."""
        if not isinstance(made, type) or arguments or made in _PLAIN.values():
            raise FormatError(f"the pickle creates an object of {shorten(made)}, which is refused")
        self.append(_make(made))

    def _build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, type) or (callable(target) and not hasattr(target, "__setstate__")):
            raise FormatError(
                f"the pickle sets the state of {shorten(target)}, which is not an object of its own"
            )
        if is_own(type(target)):
            target.__setstate__(state)
            if not self._trusted:
                restrict(target)
            return
        if isinstance(target, np.random.RandomState):
            _check_random_state(state)
        if isinstance(state, dict) and self._rename:
            state = {self._rename.get(key, key): value for key, value in state.items()}
        setter = getattr(target, "__setstate__", None)
        if setter is not None:
            setter(state)
        elif isinstance(state, dict):
            vars(target).update(state)
        else:
            raise FormatError(f"a {type(state).__name__} cannot be the state of a {type(target).__name__}")

    def _bytearray(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        if length > self._size:
            raise FormatError(f"the pickle is cut: it needs {length} bytes, but has {self._size}")
        self.append(bytearray(self.read(length)))

    def get_extension(self, code: int) -> NoReturn:
        """Raise FormatError: the extension codes of copyreg hide the names of classes."""
        raise FormatError(f"the pickle refers to the extension {code}")

    dispatch: ClassVar[dict[int, Callable[..., Any]]] = {
        **_INSTRUCTIONS,
        pickle.REDUCE[0]: lambda self: self._reduce(),
        pickle.NEWOBJ[0]: lambda self: self._new(),
        pickle.NEWOBJ_EX[0]: lambda self: self._new_with_keywords(),
        pickle.INST[0]: lambda self: self._instance(
            self.find_class(self.readline()[:-1].decode(), self.readline()[:-1].decode()), self.pop_mark()
        ),
        pickle.OBJ[0]: lambda self: self._from_mark(),
        pickle.BUILD[0]: lambda self: self._build(),
        pickle.BYTEARRAY8[0]: lambda self: self._bytearray(),
        pickle.SETITEM[0]: lambda self: self._hash(_INSTRUCTIONS[pickle.SETITEM[0]], slice(-2, -1)),
        pickle.SETITEMS[0]: lambda self: self._hash(_INSTRUCTIONS[pickle.SETITEMS[0]], slice(0, None, 2)),
        pickle.DICT[0]: lambda self: self._hash(_INSTRUCTIONS[pickle.DICT[0]], slice(0, None, 2)),
        pickle.ADDITEMS[0]: lambda self: self._hash(_INSTRUCTIONS[pickle.ADDITEMS[0]], slice(None)),
        pickle.FROZENSET[0]: lambda self: self._hash(_INSTRUCTIONS[pickle.FROZENSET[0]], slice(None)),
    }

    def _from_mark(self) -> None:
        made, *arguments = self.pop_mark()
        self._instance(made, arguments)


def shorten(value: object) -> str:
    """Return the beginning of a value's text; also of a tuple that contains itself, whose text has no end."""
    return reprlib.repr(value)[:80]


def _make(made: Any, *arguments: Any) -> object:
    """Return a new object of a class, without calling its ``__init__``."""
    return made.__new__(made, *arguments)


def _is_misused(made: type, arguments: object) -> bool:
    """Return whether a pickle passes arguments to a class of this package that is not a named tuple."""
    return is_own(made) and bool(arguments) and not is_own_tuple(made)


def _is_one_integer(arguments: object) -> bool:
    return isinstance(arguments, tuple) and len(arguments) == 1 and type(arguments[0]) is int


def _find_names(made: type) -> tuple[str, str]:
    module, _, name = getattr(made, "class_name", "").rpartition(".")
    return module, name


def _empty_array(subtype: object, *_: object) -> Array:
    """Return an empty array for numpy's ``_reconstruct``; its state sets shape and elements."""
    if subtype is not np.ndarray and subtype is not _ndarray:
        raise FormatError("the pickle holds an array of another class than numpy.ndarray")
    return np.ndarray((0,), np.uint8)


def _ndarray(*_: object) -> NoReturn:
    raise FormatError("the pickle calls numpy.ndarray, unlike any pickled array")


def _from_buffer(raw: bytes, dtype: np.dtype[Any], shape: Sequence[int], order: str, *_: object) -> Array:
    order = order if order in ("C", "F") else "C"
    return np.frombuffer(raw, dtype).reshape(shape, order=order).copy(order=order)  # type: ignore[call-overload,no-any-return]


def _scalar(dtype: Any, raw: Any = b"") -> object:
    """Return a numpy scalar from its dtype and bytes."""
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(dtype, np.dtype) or dtype.hasobject or len(raw) != dtype.itemsize:
        raise FormatError("the pickle holds a numpy scalar with too many or too few bytes for its dtype")
    return np.frombuffer(raw, dtype)[0]


def _dtype(code: object, *_: object) -> np.dtype[Any]:
    if not isinstance(code, str) or not re.fullmatch(r"[<>|=]?[a-zA-Z]\d{0,8}(\[\w{1,8}\])?", code):
        raise FormatError(f"the pickle holds a damaged dtype: {shorten(code)}")
    return np.dtype(code)


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise FormatError(f"bytes are kept as text in {encoding!r}")
    return codecs.latin_1_encode(text)[0]


def _bytes(value: object = b"", *_: object) -> bytes:
    if not isinstance(value, bytes | bytearray):
        raise FormatError(f"the pickle makes a bytes object from a {type(value).__name__}")
    return bytes(value)


def _reconstructor(made: Any, base: object, state: object) -> object:
    """Create an object like ``copyreg._reconstructor``, without state of a base class."""
    if is_own_tuple(made) and type(state) is tuple:
        return made(*state)
    if not isinstance(made, type) or base is not object or state is not None or made in _PLAIN.values():
        raise FormatError(f"the pickle makes an object of {shorten(made)} by its base {shorten(base)}")
    return _make(made)


def _make_bytearray(value: object = b"", *_: object) -> bytearray:
    return bytearray(_bytes(value.encode("latin1") if isinstance(value, str) else value))


def _make_defaultdict(factory: object = None) -> defaultdict[Any, Any]:
    if factory is not None and factory not in _FACTORIES:
        raise FormatError(f"a defaultdict calls {shorten(factory)}")
    return defaultdict(factory)


def _take_array(array: object, *_: object) -> Array:
    """Return the array in a pickled GPU array of Theano, without the name of the device."""
    if type(array) is not np.ndarray:
        raise FormatError(f"the pickle makes a GPU array of a {type(array).__name__}")
    return array


def _make_random_state(*_: object) -> np.random.RandomState:
    """Create a RandomState for numpy's ``__randomstate_ctor``; its state follows."""
    return np.random.RandomState()


def _make_bit_generator(*_: object) -> Placeholder:
    """Return the bit generator for a RandomState of numpy 1.24 or later; the state replaces all of it."""
    return make_stand_in("numpy.random.BitGenerator")()


def _check_random_state(state: object) -> None:
    """Raise FormatError unless a state is valid for MT19937: numpy does not check the position."""
    if isinstance(state, dict) and isinstance(inner := state.get("state"), dict):
        kind, key, position = state.get("bit_generator"), inner.get("key"), inner.get("pos")
    elif isinstance(state, tuple) and len(state) >= 3:
        kind, key, position = state[:3]
    else:
        kind = key = position = None
    twister = kind == "MT19937" and isinstance(key, np.ndarray) and key.shape == (624,)
    if not twister or type(position) is not int or not 0 <= position <= 624:
        raise FormatError(
            f"the state of a RandomState is not one of MT19937 ({shorten(kind)}, {shorten(position)})"
        )


def _python2(names: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{module}.{name}": value for name, value in names.items() for module in ("builtins", "__builtin__")
    }


def _make_range(*arguments: Any) -> range:
    made = range(*arguments)
    if len(made) > 1 << 20:
        raise FormatError(f"a range has {len(made)} numbers, expected at most {1 << 20}")
    return made


_CONTAINERS: Final = (list, tuple, set, frozenset, dict, str, bytes, bytearray, range, deque)
_HASHING: Final = (set, frozenset, dict, OrderedDict, Counter)
_FACTORIES: Final = (list, dict, set, frozenset, tuple, int, float, str, bool, OrderedDict)

#: What every pickle may make: plain values and numpy's arrays.
_PLAIN: Final[dict[str, Any]] = {
    **_python2({
        "set": set, "frozenset": frozenset, "tuple": tuple, "complex": complex, "slice": slice,
        "object": object, "bytes": _bytes, "bytearray": _make_bytearray,
        "list": list, "dict": dict, "int": int, "float": float, "str": str, "bool": bool,
        "range": _make_range, "xrange": _make_range,
    }),
    "collections.defaultdict": _make_defaultdict,
    "theano.sandbox.cuda.type.CudaNdarray_unpickler": _take_array,
    "theano.gpuarray.type.GpuArray_unpickler": _take_array,
    "theano.sandbox.gpuarray.type.GpuArray_unpickler": _take_array,
    "mtrand.__RandomState_ctor": _make_random_state,
    "numpy.random.__RandomState_ctor": _make_random_state,
    "numpy.random._pickle.__randomstate_ctor": _make_random_state,
    "numpy.random._pickle.__bit_generator_ctor": _make_bit_generator,
    "numpy.random._mt19937.MT19937": make_stand_in("numpy.random.MT19937"),
    "numpy.random.bit_generator.__pyx_unpickle_SeedSequence": _make_bit_generator,
    "collections.Counter": Counter,
    "collections.OrderedDict": OrderedDict,
    "collections.deque": deque,
    "_codecs.encode": _encode,
    "copyreg._reconstructor": _reconstructor,
    "copy_reg._reconstructor": _reconstructor,
    "numpy.ndarray": _ndarray,
    "numpy.dtype": _dtype,
    **{f"numpy.{core}.multiarray._reconstruct": _empty_array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _scalar for core in ("core", "_core")},
    **{f"numpy.{core}.numeric._frombuffer": _from_buffer for core in ("core", "_core")},
}  # fmt: skip
