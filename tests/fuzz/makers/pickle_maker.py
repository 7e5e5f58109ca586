"""Hostile pickles: opcodes in any order, foreign globals, and canaries that leave a trace when they run."""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

import numpy as np

from tests.fuzz.makers.mutations import EXTREMES, mutate

__all__ = ["CANARY", "make_hostile", "reshuffle"]

CANARY: Final = "/tmp/paddlelike-canary"  # nobody else makes this file

_CALLS: Final = (
    ("os", "system", f"touch {CANARY}"),
    ("posix", "system", f"touch {CANARY}"),
    ("nt", "system", f"touch {CANARY}"),
    ("subprocess", "check_output", f"touch {CANARY}"),
    ("builtins", "eval", f"open({CANARY!r}, 'w')"),
    ("__builtin__", "eval", f"open({CANARY!r}, 'w')"),
    ("builtins", "exec", f"open({CANARY!r}, 'w')"),
    ("builtins", "open", CANARY),
    ("io", "open", CANARY),
    ("builtins", "__import__", "antigravity"),
    ("builtins", "getattr", "__class__"),
    ("builtins", "bytearray", "1000000000000"),
    ("importlib", "import_module", "antigravity"),
    ("numpy", "load", CANARY),
    ("numpy", "fromfile", CANARY),
    ("numpy.core.multiarray", "fromfile", CANARY),
    ("numpy.testing._private.utils", "runstring", "data"),
    ("paddlelike.formats.state.pickles", "load", "data"),
    ("os.path", "join", CANARY),
    ("functools", "partial", "data"),
    ("copyreg", "_reconstructor", "data"),
    ("posixpath", "os.system", f"touch {CANARY}"),
    ("collections", "OrderedDict.fromkeys", "abc"),
)
_ALLOWED: Final = (
    ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"), ("collections", "OrderedDict"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"), ("builtins", "bytearray"), ("builtins", "bytes"),
    ("builtins", "eval"), ("builtins", "frozenset"), ("builtins", "set"), ("builtins", "tuple"),
)  # fmt: skip

_CODES: Final = tuple(code.code.encode("latin1") for code in pickletools.opcodes if code.arg is None)
_SIZED: Final = ((b"U", 1), (b"T", 4), (b"X", 4), (b"\x8c", 1), (b"\x8d", 8), (b"B", 4), (b"C", 1),
                 (b"\x8e", 8), (b"\x96", 8), (b"\x8a", 1), (b"\x8b", 4))  # fmt: skip
_FIXED: Final = ((b"J", 4), (b"K", 1), (b"M", 2), (b"G", 8), (b"q", 1), (b"r", 4), (b"h", 1),
                 (b"j", 4), (b"\x80", 1), (b"\x95", 8), (b"P", 0), (b"\x82", 1), (b"Q", 0))  # fmt: skip


def make_hostile(rng: Random) -> bytes:
    """A pickle that no pickler wrote."""
    makers: tuple[Callable[[Random], bytes], ...] = (_opcodes, _opcodes, _call, _values, _values, _repeat)
    return rng.choice(makers)(rng)


def reshuffle(rng: Random, data: bytes) -> bytes:
    """A real pickle with some of its opcodes removed, repeated, moved or replaced."""
    codes = list(_split(data))
    if not codes:
        return mutate(rng, data, ())
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(codes))
        what = rng.randrange(7)
        if what == 0:
            del codes[at]
        elif what == 1:
            codes[at:at] = codes[at : at + rng.choice((1, 2, 8, 40))] * rng.choice((1, 2, 50))
        elif what == 2:
            codes.insert(rng.randrange(len(codes)), codes.pop(at))
        elif what == 3:
            codes[at] = rng.choice(codes)
        elif what == 4:
            codes[at] = _opcode(rng)
        elif what == 5:
            codes.insert(at, _opcode(rng))
        else:
            codes[at] = _global(rng)
        if not codes:
            break
    return b"".join(codes)


@cache
def _split(data: bytes) -> tuple[bytes, ...]:
    try:
        starts = [at for _, _, at in pickletools.genops(data) if at is not None]
    except ValueError:
        return ()
    return tuple(data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True))


def _opcodes(rng: Random) -> bytes:
    codes = [_opcode(rng) for _ in range(rng.choice((3, 10, 40, 200)))]
    return (
        b"\x80" + bytes([rng.randrange(7)]) + b"}" + b"".join(codes) + rng.choice((b".", b"s.", b"u.", b""))
    )


def _opcode(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(_CODES)
    if kind < 0.6:
        return _text(rng)
    if kind < 0.75:
        return _global(rng)
    if kind < 0.9:
        code, size = rng.choice(_FIXED)
        small = rng.randrange(6) if rng.random() < 0.8 else rng.choice(EXTREMES)
        return code + (small % 256**size).to_bytes(size, "little")
    code, width = rng.choice(_SIZED)
    body = rng.randbytes(rng.choice((0, 1, 4, 16, 300)))
    size = len(body) if rng.random() < 0.8 else rng.choice(EXTREMES)
    return code + (size % 256**width).to_bytes(width, "little") + body


def _text(rng: Random) -> bytes:
    text = rng.choice(
        ("w", "data", "latin1", "f4", "<", "b", "StructuredToParameterName@@", "UnpackBigParamInfor@@",
         "slices", "OriginShape", "".join(map(chr, range(0x4E00, 0x4E00 + rng.choice((3, 300, 2000))))))
    ).encode()  # fmt: skip
    return b"X" + len(text).to_bytes(4, "little") + text


def _global(rng: Random) -> bytes:
    module, name = rng.choice(_ALLOWED) if rng.random() < 0.6 else rng.choice(_CALLS)[:2]
    if rng.random() < 0.7:
        return f"c{module}\n{name}\n".encode()
    return b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name)) + b"\x93"


def _call(rng: Random) -> bytes:
    """A dict whose value is the result of a call that must not happen."""
    module, name, argument = rng.choice(_CALLS)
    text = argument.encode()
    value = b"X" + len(text).to_bytes(4, "little") + text
    forms = (
        f"c{module}\n{name}\n".encode() + value + b"\x85R",
        f"c{module}\n{name}\n".encode() + value + b"\x85\x81",
        f"c{module}\n{name}\n".encode() + value + b"}\x92",
        f"(i{module}\n{name}\n".encode(),
        b"(" + f"c{module}\n{name}\n".encode() + value + b"o",
        b"}" + f"c{module}\n{name}\n".encode() + value + b"\x86b",
        f"cbuiltins\neval\n{'X'}".encode() + value[1:] + b"}X\4\0\0\0dataNs\x86R",
    )
    return b"\x80\x02}X\1\0\0\0w" + rng.choice(forms) + b"s."


class _Reduced:
    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[object, ...]:
        return self.call


def _values(rng: Random) -> bytes:
    """Honest pickles of odd values, as Python writes them, with a change now and then."""
    held: dict[object, object] = {f"v{i}": _value(rng, 3) for i in range(rng.randrange(4))}
    if rng.random() < 0.5:
        pieces = {f"w@@.{i}": np.zeros(rng.randrange(7)) for i in range(rng.randrange(3))}
        shape = tuple(
            rng.choice((0, 1, 2, 3, -1, -3, 2**40, 3.0, "3", 10**20)) for _ in range(rng.randrange(4))
        )
        cut = {"OriginShape": rng.choice((shape, list(shape))), "slices": [*pieces]}
        held |= pieces | {"UnpackBigParamInfor@@": {"w": cut}}
    if rng.random() < 0.3:
        held["StructuredToParameterName@@"] = _value(rng, 2)
    if rng.random() < 0.1:
        held[rng.choice((1, None, 2.5, b"w", 10 ** rng.choice((3, 6000))))] = 1
    data = pickle.dumps(held, rng.randrange(2, 6))
    return reshuffle(rng, data) if rng.random() < 0.3 else data


def _value(rng: Random, depth: int) -> object:
    kind = rng.randrange(14 if depth else 9)
    if kind < 3:
        shape = [rng.randrange(3) for _ in range(rng.randrange(4))]
        return np.zeros(shape, rng.choice(("f4", ">i8", "O", "U3", "f4,i4", "c16", "M8[s]", "?")))
    plain: tuple[object, ...] = (
        rng.getrandbits(rng.choice((8, 70, 30000))), rng.random(), "text" * rng.choice((1, 500)),
        b"bytes" * rng.choice((1, 500)), None, np.float32(rng.random()),
    )  # fmt: skip
    if kind < 9:
        return plain[kind - 3]
    inner = [_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 9:
        return {f"k{i}": value for i, value in enumerate(inner)}
    if kind == 10:
        return tuple(inner)
    if kind == 11:
        return _Reduced(tuple, ("name", np.zeros(2)))
    if kind == 12:
        return _Reduced(eval, "data", {"data": np.zeros(2)})
    inner.append(inner)
    return inner


def _repeat(rng: Random) -> bytes:
    """A small file that would make much: one part used again and again."""
    unit = b"".join(_opcode(rng) for _ in range(rng.choice((1, 2, 4))))
    text = _text(rng)
    again = rng.choice(
        (unit, rng.choice(_CODES), b"h\1h\1\x86q\1", b"h\2h\1\x85R", b"h\2h\1\x85\x81", b"h\1\x94", b"]h\1a")
    )
    module, name = rng.choice(_ALLOWED)
    setup = text + b"q\1" + f"c{module}\n{name}\n".encode() + b"q\2"
    return (
        b"\x80\x02}(" + setup + again * rng.choice((60, 1000, 5000)) + rng.choice((b"u.", b"e.", b"t.", b"."))
    )
