"""The stack machine that executes the opcodes of a pickle, and calls only functions of a table."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from paddlelike.errors import FormatError
from paddlelike.formats.sources import Buffer
from paddlelike.formats.state.pickled import (
    HINT,
    Constructors,
    Foreign,
    Latin1,
    PickledArray,
    Text,
    check_key,
)  # fmt: skip
from paddlelike.lazy import dataclass

_LONG: Final = 1024  # longer texts stay views of the file until they are used
_SLACK: Final = 4096  # bytes of memory that even the smallest file may use
_ITEM: Final = 8  # bytes counted for an item of a container, or an empty container
_SET: Final = 32
_ITERABLE: Final = (str, bytes, memoryview, tuple, list, set, frozenset, dict)
_DEEPEST: Final = 10_000  # marks
# Names in pickles that run code. They are not called here, but such a file is not treated as data.
_RUNS_CODE: Final = frozenset(
    ("__builtin__", "builtins", "commands", "ctypes", "importlib", "nt", "os", "posix", "pty", "runpy")
) | frozenset(("shutil", "socket", "subprocess", "sys"))
_PLAIN_CLASSES: Final = frozenset(
    ("bool", "complex", "dict", "float", "int", "list", "long", "object", "range", "slice", "str")
)  # of builtins
_OTHERS: Final = {"theano": "load it with paddlelike.bundle.load"}


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Reference:
    """A class or function that a pickle names. It is only a name and cannot be called."""

    module: str
    name: str


@dataclass(frozen=True)
class _Global:
    """A name that the pickle refers to, and the function of this package that replaces it."""

    module: str
    name: str
    make: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Machine(pickle._Unpickler):
    """The unpickler of the standard library in Python; every step that names, calls or fills objects is
    replaced.

    Its memo is a dict, so that a large index in the file does not take memory. Texts and bytes are views of
    the file.
    """

    stack: list[Any]
    metastack: list[list[Any]]  # the items before each mark
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(
        self,
        buffer: Buffer,
        constructors: Constructors,
        references: Mapping[tuple[str, str], Reference] = MappingProxyType({}),
        persistent: Callable[[Any], Any] | None = None,
        *,
        foreign: bool = False,
    ) -> None:
        self._persistent = persistent
        self._foreign = foreign
        self._data = memoryview(buffer).cast("B")
        self._constructors = constructors
        self._references = references
        self._most = _SLACK + 4 * len(self._data)
        self._charged = 0  # bytes of values beyond those that the file has
        self.at = 0

    def run(self) -> object:
        """Return the object of the next pickle."""
        self.stack, self.metastack, self.memo = [], [], dict[int, Any]()
        self.append = self.stack.append
        while True:
            opcode = self._data[self.at]
            self.at += 1
            if opcode == _STOP:
                (value,) = self.stack
                if self.metastack:
                    raise FormatError("a mark is left at the end")
                self.stack, self.memo = [], {}
                return value
            step = _STEPS.get(opcode)
            if step is None:
                raise FormatError(f"opcode {opcode:#04x} is not one of a pickle of plain data")
            step(self)

    def is_at_end(self) -> bool:
        return self.at == len(self._data)

    # integers, texts and bytes from the file

    def read(self, size: int) -> memoryview:
        at = self.at
        if size > len(self._data) - at:
            raise FormatError(
                f"the pickle is cut: it needs {size} more bytes, but {len(self._data) - at} are left"
            )
        self.at = at + size
        return self._data[at : self.at]

    def readline(self) -> bytes:
        size = bytes(self._data[self.at : self.at + _LONG]).index(b"\n")
        return bytes(self.read(size + 1))

    def take_sized(self, width: int) -> memoryview:
        return self.read(int.from_bytes(self.read(width), "little"))

    def push_text(self, view: memoryview) -> None:
        self.append(Text(view) if len(view) > _LONG else str(view, "utf-8", "surrogatepass"))

    def _decode_string(self, value: bytes | memoryview) -> object:
        """Return a byte string of Python 2, which is a name or the elements of an array."""
        return value if len(value) > _LONG else str(value, "latin1")

    def mark(self) -> None:
        """Set a mark: one byte of the file, a list in memory until it is popped."""
        if len(self.metastack) > _DEEPEST:
            raise FormatError("the pickle is nested too deeply")
        _STEPS_OF_PYTHON[pickle.MARK[0]](self)

    # containers

    def push_new(self, container: object) -> None:
        """Push an empty container, for which one byte of the file takes sixty to two hundred bytes of
        memory.
        """
        self._charge(_SET if isinstance(container, set) else _ITEM)
        self.append(container)

    def peek(self, kind: type[Kind]) -> Kind:
        value = self.stack[-1]
        if not isinstance(value, kind):
            raise FormatError(f"a {type(value).__name__} stands where a {kind.__name__} is expected")
        return value

    def pop_items(self, count: int) -> list[Any]:
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def set_items(self, items: list[Any]) -> None:
        value = self.stack[-1]
        target = value.parts if isinstance(value, Foreign) else self.peek(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[check_key(key)] = value

    def push_pairs(self, items: list[Any]) -> None:
        self.push_new({})
        self.set_items(items)

    def extend(self, items: list[Any]) -> None:
        value = self.stack[-1]
        if isinstance(value, Foreign):
            value.parts.update({len(value.parts) + at: item for at, item in enumerate(items)})
        else:
            self.peek(list).extend(items)

    def add(self, items: list[Any]) -> None:
        self.peek(set).update(map(check_key, items))

    # globals and calls

    def find_class(self, module: str, name: str) -> Reference | _Global:
        """Return the replacement of a global. Raises FormatError when the global is refused."""
        reference = self._references.get((module, name))
        if reference is not None:
            return reference
        make = self._constructors.get((module, name))
        if make is None:
            root = module.partition(".")[0]
            runs_code = root in _RUNS_CODE and name not in _PLAIN_CLASSES
            if not self._foreign or runs_code or root in _OTHERS:
                hint = _OTHERS.get(root, HINT)
                raise FormatError(f"the pickle refers to {module}.{name}, which is refused", hint=hint)
            self._charge(_ITEM)
            make = partial(Foreign, f"{module}.{name}")
        return _Global(module, name, make)

    def call(self, keywords: object = None) -> None:
        given, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Global) or not isinstance(given, tuple):
            raise FormatError(f"a {type(function).__name__} is called with a {type(given).__name__}")
        # an argument may be used many times, so that its items cost nothing in the file
        self._charge(sum(len(item) for item in given if isinstance(item, _ITERABLE)))
        value = function.make(*given)
        if isinstance(value, Foreign) and isinstance(keywords, dict):
            value.parts.update(keywords)
        self._charge(_size(value))
        self.append(value)

    def persistent_load(self, pid: object) -> object:
        if self._persistent is None:
            raise FormatError("the pickle refers to an object outside of it")
        return self._persistent(pid)

    def build(self) -> None:
        state, value = self.stack.pop(), self.stack[-1]
        if type(value) is OrderedDict and isinstance(state, dict):
            return  # attributes of a dict, such as the _metadata of a torch state_dict
        if isinstance(value, Foreign):
            value.add_state(state)
            return
        if not isinstance(state, tuple) or not hasattr(value, "set_state"):
            raise FormatError(f"a {type(value).__name__} has a {type(state).__name__} as its state")
        value.set_state(*state)
        self._charge(_size(value))

    def _charge(self, size: int) -> None:
        """Refuse a small file that builds large values by repetition."""
        self._charged += size
        if self._charged > self._most:
            raise FormatError("the pickle describes more data than it holds")


def _size(value: object) -> int:
    if isinstance(value, PickledArray):
        return value.nbytes
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, set | dict | Foreign):
        return _SET + 3 * _ITEM * len(value.parts if isinstance(value, Foreign) else value)
    return len(value.view) if isinstance(value, Latin1) else 0


_STOP: Final = pickle.STOP[0]
_STEPS_OF_PYTHON: Final[dict[int, Callable[[Any], Any]]] = {**pickle._Unpickler.dispatch}
#: Opcodes that neither name nor call nor fill anything: these stay the standard library's.
_KEPT: Final = (
    pickle.PROTO, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.INT, pickle.BININT, pickle.BININT1,
    pickle.BININT2, pickle.LONG, pickle.LONG1, pickle.LONG4, pickle.FLOAT, pickle.BINFLOAT, pickle.STRING,
    pickle.BINSTRING, pickle.SHORT_BINSTRING, pickle.UNICODE, pickle.SHORT_BINUNICODE, pickle.BINBYTES,
    pickle.BINBYTES8, pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3,
    pickle.LIST, pickle.POP, pickle.POP_MARK, pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE,
    pickle.GET, pickle.BINGET, pickle.LONG_BINGET, pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.BINPERSID,
)  # fmt: skip
_STEPS: Final[dict[int, Callable[[Machine], Any]]] = {
    **{opcode[0]: _STEPS_OF_PYTHON[opcode[0]] for opcode in _KEPT},
    pickle.MARK[0]: Machine.mark,
    pickle.FRAME[0]: lambda m: m.read(8),
    pickle.BINUNICODE[0]: lambda m: m.push_text(m.take_sized(4)),
    pickle.BINUNICODE8[0]: lambda m: m.push_text(m.take_sized(8)),
    pickle.SHORT_BINBYTES[0]: lambda m: m.append(bytes(m.take_sized(1))),
    pickle.BYTEARRAY8[0]: lambda m: m.append(m.take_sized(8)),
    pickle.EMPTY_LIST[0]: lambda m: m.push_new([]),
    pickle.APPEND[0]: lambda m: m.extend([m.stack.pop()]),
    pickle.APPENDS[0]: lambda m: m.extend(m.pop_mark()),
    pickle.EMPTY_DICT[0]: lambda m: m.push_new({}),
    pickle.DICT[0]: lambda m: m.push_pairs(m.pop_mark()),
    pickle.SETITEM[0]: lambda m: m.set_items(m.pop_items(2)),
    pickle.SETITEMS[0]: lambda m: m.set_items(m.pop_mark()),
    pickle.EMPTY_SET[0]: lambda m: m.push_new(set()),
    pickle.ADDITEMS[0]: lambda m: m.add(m.pop_mark()),
    pickle.FROZENSET[0]: lambda m: m.push_new(set(map(check_key, m.pop_mark()))),
    pickle.REDUCE[0]: Machine.call,
    pickle.NEWOBJ[0]: Machine.call,
    pickle.NEWOBJ_EX[0]: lambda m: m.call(m.stack.pop()),
    pickle.BUILD[0]: Machine.build,
}
