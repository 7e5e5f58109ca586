"""The stack machine that executes the opcodes of a pickle, and calls only functions of a table."""

from __future__ import annotations

import codecs
import pickle
import struct
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

_LONG: Final = 1024  # texts beyond this stay views of the file until somebody wants them
_SLACK: Final = 4096  # bytes that even the smallest file may make
_ITEM: Final = 8  # what an item of a container, or an empty one, is counted for
_SET: Final = 32
_ITERABLE: Final = (str, bytes, memoryview, tuple, list, set, frozenset, dict)
_MARK: Final = object()
# What pickles that run code name. Nothing is called here, but such a file is not taken for data.
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


class Machine:
    """The stack machine that executes the opcodes of a pickle."""

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
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._most = _SLACK + 4 * len(self._data)
        self._charged = 0  # bytes of values beyond those that the file has
        self.at = 0

    def run(self) -> object:
        while True:
            opcode = self._data[self.at]
            self.at += 1
            if opcode == _STOP:
                (value,) = self._stack
                self._stack, self._memo = [], {}
                return value
            step = _STEPS.get(opcode)
            if step is None:
                raise FormatError(f"opcode {opcode:#04x} is not one of a pickle of plain data")
            step(self)

    def is_at_end(self) -> bool:
        return self.at == len(self._data)

    # integers, texts and bytes from the file

    def take(self, size: int) -> memoryview:
        at = self.at
        if size > len(self._data) - at:
            raise FormatError(
                f"the pickle is cut: it needs {size} more bytes, but {len(self._data) - at} are left"
            )
        self.at = at + size
        return self._data[at : self.at]

    def take_int(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def take_sized(self, width: int) -> memoryview:
        return self.take(self.take_int(width))

    def take_line(self) -> str:
        size = bytes(self._data[self.at : self.at + _LONG]).index(b"\n")
        return str(self.take(size + 1)[:-1], "utf-8")

    def push_text(self, view: memoryview) -> None:
        self._stack.append(Text(view) if len(view) > _LONG else str(view, "utf-8", "surrogatepass"))

    def push_string(self, view: memoryview) -> None:
        """Push a byte string of Python 2, which is a name or the elements of an array."""
        self._stack.append(view if len(view) > _LONG else str(view, "latin1"))

    def push_literal(self, line: str) -> None:
        """Push a byte string of protocol 0, written as a literal of Python 2 with quotes and escapes."""
        if len(line) < 2 or line[0] not in "'\"" or line[-1] != line[0]:
            raise FormatError("a string has no quotes")
        self._stack.append(codecs.escape_decode(line[1:-1].encode("latin1"))[0].decode("latin1"))

    def push_decimal(self, line: str) -> None:
        """Push a whole number of protocol 0; ``00`` and ``01`` are False and True."""
        flags = {"00": False, "01": True}
        self._stack.append(flags[line] if line in flags else int(line.removesuffix("L")))

    def push_int(self, view: memoryview) -> None:
        self._stack.append(int.from_bytes(view, "little", signed=True))

    # the stack

    def push(self, value: object) -> None:
        self._stack.append(value)

    def pop(self) -> object:
        value = self._stack.pop()
        if value is _MARK:
            raise FormatError("a mark stands where a value is expected")
        return value

    def pop_tuple(self, count: int) -> tuple[Any, ...]:
        return tuple([self.pop() for _ in range(count)][::-1])

    def pop_to_mark(self) -> list[Any]:
        stack = self._stack
        start = len(stack) - 1
        while stack[start] is not _MARK:  # below the bottom is an IndexError
            start -= 1
            if start < 0:
                raise FormatError("no mark is set")
        items = stack[start + 1 :]
        del stack[start:]
        return items

    def peek(self, kind: type[Kind]) -> Kind:
        value = self._stack[-1]
        if not isinstance(value, kind):
            raise FormatError(f"a {type(value).__name__} stands where a {kind.__name__} is expected")
        return value

    def memoize(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def push_new(self, container: object) -> None:
        """Push an empty container, for which one byte of the file takes sixty to two hundred bytes of
        memory.
        """
        self._charge(_SET if isinstance(container, set) else _ITEM)
        self._stack.append(container)

    # containers

    def set_items(self, items: list[Any]) -> None:
        value = self._stack[-1]
        target = value.parts if isinstance(value, Foreign) else self.peek(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[check_key(key)] = value

    def push_pairs(self, items: list[Any]) -> None:
        self.push_new({})
        self.set_items(items)

    def append(self, items: list[Any]) -> None:
        value = self._stack[-1]
        if isinstance(value, Foreign):
            value.parts.update({len(value.parts) + at: item for at, item in enumerate(items)})
        else:
            self.peek(list).extend(items)

    def add(self, items: list[Any]) -> None:
        self.peek(set).update(map(check_key, items))

    # globals and calls

    def push_global(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise FormatError("the name of a global is not text")
        reference = self._references.get((module, name))
        if reference is not None:
            self._stack.append(reference)
            return
        make = self._constructors.get((module, name))
        if make is None:
            root = module.partition(".")[0]
            runs_code = root in _RUNS_CODE and name not in _PLAIN_CLASSES
            if not self._foreign or runs_code or root in _OTHERS:
                hint = _OTHERS.get(root, HINT)
                raise FormatError(f"the pickle refers to {module}.{name}, which is refused", hint=hint)
            self._charge(_ITEM)
            make = partial(Foreign, f"{module}.{name}")
        self._stack.append(_Global(module, name, make))

    def call(self, keywords: object = None) -> None:
        given, function = self.pop(), self.pop()
        if not isinstance(function, _Global) or not isinstance(given, tuple):
            raise FormatError(f"a {type(function).__name__} is called with a {type(given).__name__}")
        # an argument may be used many times, so that its items cost nothing in the file
        self._charge(sum(len(item) for item in given if isinstance(item, _ITERABLE)))
        value = function.make(*given)
        if isinstance(value, Foreign) and isinstance(keywords, dict):
            value.parts.update(keywords)
        self._charge(_size(value))
        self._stack.append(value)

    def push_persistent(self) -> None:
        identifier = self.pop()
        if self._persistent is None:
            raise FormatError("the pickle refers to an object outside of it")
        self._stack.append(self._persistent(identifier))

    def build(self) -> None:
        state, value = self.pop(), self._stack[-1]
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


def _unpack(layout: str) -> Callable[[Machine], None]:
    code = struct.Struct(layout)
    return lambda m: m.push(code.unpack(m.take(code.size))[0])


_STOP: Final = pickle.STOP[0]
_STEPS: Final[dict[int, Callable[[Machine], Any]]] = {
    opcode[0]: step
    for opcode, step in (
        (pickle.STRING, lambda m: m.push_literal(m.take_line())),
        (pickle.UNICODE, lambda m: m.push(codecs.decode(m.take_line(), "raw_unicode_escape"))),
        (pickle.INT, lambda m: m.push_decimal(m.take_line())),
        (pickle.LONG, lambda m: m.push_decimal(m.take_line())),
        (pickle.FLOAT, lambda m: m.push(float(m.take_line()))),
        (pickle.DICT, lambda m: m.push_pairs(m.pop_to_mark())),
        (pickle.PUT, lambda m: m.memoize(int(m.take_line()))),
        (pickle.GET, lambda m: m.push(m._memo[int(m.take_line())])),
        (pickle.PROTO, lambda m: m.take(1)),
        (pickle.FRAME, lambda m: m.take(8)),
        (pickle.MARK, lambda m: m.push(_MARK)),
        (pickle.POP, lambda m: m.pop()),
        (pickle.POP_MARK, lambda m: m.pop_to_mark()),
        (pickle.NONE, lambda m: m.push(None)),
        (pickle.NEWTRUE, lambda m: m.push(True)),
        (pickle.NEWFALSE, lambda m: m.push(False)),
        (pickle.BININT, _unpack("<i")),
        (pickle.BININT1, _unpack("<B")),
        (pickle.BININT2, _unpack("<H")),
        (pickle.BINFLOAT, _unpack(">d")),
        (pickle.LONG1, lambda m: m.push_int(m.take_sized(1))),
        (pickle.LONG4, lambda m: m.push_int(m.take_sized(4))),
        (pickle.BINSTRING, lambda m: m.push_string(m.take_sized(4))),
        (pickle.SHORT_BINSTRING, lambda m: m.push_string(m.take_sized(1))),
        (pickle.SHORT_BINBYTES, lambda m: m.push(bytes(m.take_sized(1)))),
        (pickle.BINBYTES, lambda m: m.push(m.take_sized(4))),
        (pickle.BINBYTES8, lambda m: m.push(m.take_sized(8))),
        (pickle.BYTEARRAY8, lambda m: m.push(m.take_sized(8))),
        (pickle.SHORT_BINUNICODE, lambda m: m.push_text(m.take_sized(1))),
        (pickle.BINUNICODE, lambda m: m.push_text(m.take_sized(4))),
        (pickle.BINUNICODE8, lambda m: m.push_text(m.take_sized(8))),
        (pickle.EMPTY_TUPLE, lambda m: m.push(())),
        (pickle.TUPLE, lambda m: m.push(tuple(m.pop_to_mark()))),
        (pickle.TUPLE1, lambda m: m.push(m.pop_tuple(1))),
        (pickle.TUPLE2, lambda m: m.push(m.pop_tuple(2))),
        (pickle.TUPLE3, lambda m: m.push(m.pop_tuple(3))),
        (pickle.EMPTY_LIST, lambda m: m.push_new([])),
        (pickle.LIST, lambda m: m.push(m.pop_to_mark())),
        (pickle.APPEND, lambda m: m.append([m.pop()])),
        (pickle.APPENDS, lambda m: m.append(m.pop_to_mark())),
        (pickle.EMPTY_DICT, lambda m: m.push_new({})),
        (pickle.SETITEM, lambda m: m.set_items(list(m.pop_tuple(2)))),
        (pickle.SETITEMS, lambda m: m.set_items(m.pop_to_mark())),
        (pickle.EMPTY_SET, lambda m: m.push_new(set())),
        (pickle.ADDITEMS, lambda m: m.add(m.pop_to_mark())),
        (pickle.FROZENSET, lambda m: m.push_new(set(map(check_key, m.pop_to_mark())))),
        (pickle.GLOBAL, lambda m: m.push_global(m.take_line(), m.take_line())),
        (pickle.STACK_GLOBAL, lambda m: m.push_global(*m.pop_tuple(2))),
        (pickle.REDUCE, lambda m: m.call()),
        (pickle.NEWOBJ, lambda m: m.call()),
        (pickle.NEWOBJ_EX, lambda m: m.call(m.pop())),
        (pickle.BUILD, lambda m: m.build()),
        (pickle.BINPERSID, lambda m: m.push_persistent()),
        (pickle.BINPUT, lambda m: m.memoize(m.take_int(1))),
        (pickle.LONG_BINPUT, lambda m: m.memoize(m.take_int(4))),
        (pickle.MEMOIZE, lambda m: m.memoize(len(m._memo))),
        (pickle.BINGET, lambda m: m.push(m._memo[m.take_int(1)])),
        (pickle.LONG_BINGET, lambda m: m.push(m._memo[m.take_int(4)])),
    )
}
