"""The state file, ``.pdparams`` or ``.pdopt``: a pickle of names to arrays.

``fluid.save`` of 1.8 pickles ``{name: ndarray}`` by protocol 2. The writer gives the bytes of numpy 1.x,
because Paddle 1.8 cannot open pickles with numpy 2's module names. More forms, of Paddle 2, are read: see
:class:`StateContents`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

import numpy as np

from paddlelike.core import Array, LoDTensor, VarType, convert_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.base import SNIFF_BYTES, Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import copy_into
from paddlelike.formats.entry import Entry, LeftOut, Listing
from paddlelike.formats.explain import REMOVE, explain
from paddlelike.formats.sources import Buffer, Readable, as_source
from paddlelike.formats.state import pickles
from paddlelike.formats.state.nested import flatten
from paddlelike.formats.state.pickle_writer import encode_item
from paddlelike.formats.state.pickled import Foreign, PickledArray
from paddlelike.formats.state.writer import StateWriter
from paddlelike.lazy import dataclass

_CUT_KEY: Final = "UnpackBigParamInfor@@"  # Paddle's spelling
_SLACK: Final = 1 << 12
_PROTOCOLS: Final = (b"\x02", b"\x03", b"\x04", b"\x05")
_OTHER_DTYPES: Final = {"uint32": VarType.UINT32, "uint64": VarType.UINT64}  # in no Paddle 1.8 stream


@dataclass(frozen=True)
class StateFile(FileFormat):
    """A ``.pdparams`` or ``.pdopt``: a pickle of names to arrays.

    ``plain`` are pairs of a name and a plain value that ``write`` adds: the state of a schedule, say.

    >>> [(entry.name, entry.shape) for entry in StateFile().entries(b"".join(encode({"w": np.ones(2)})))]
    [('w', (2,))]
    """

    plain: tuple[tuple[str, Any], ...] = ()

    name = "state"
    title = "a pickle, as fluid.save writes .pdparams and .pdopt"
    suffixes = (".pdparams", ".pdopt")
    advice = "open it with fluid.load or fluid.load_program_state, by the path without its suffix"
    holds = Capabilities()

    def sniff(self, head: bytes, size: int) -> bool:
        return head[:1] == pickle.PROTO and head[1:2] in _PROTOCOLS

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        return list_entries(decode(file.read_at(0, file.size)))

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        return LoDTensor(read_array(entry, into))

    def write(self, values: Values) -> Iterator[Buffer]:
        self.check(values)
        doubled = [name for name, _ in self.plain if name in values]
        if doubled:
            raise FormatError(f"{doubled[0]!r:.80} is the name of an array and of a plain value")
        return encode({name: to_array(value) for name, value in values.items()}, dict(self.plain))


class StateContents(NamedTuple):
    """The contents of a state file.

    Attributes
    ----------
    arrays
        The arrays by the file's keys, those in dicts and lists by path (``model/fc.weight``); their
        elements are still in the file: ``.dtype``, ``.shape``, ``.read()``.
    parameter_names
        Filled for files of ``paddle.save``: key (``fc.weight``) to name of the variable
        (``linear_0.w_0``).
    other
        The values that are not arrays, for example the state of a learning rate schedule.
    left_out
        The values in ``other``, one by one, arrays that no variable can be, objects, and ``name_maps``.
    name_maps
        The maps from which ``parameter_names`` is made, by path.
    """

    arrays: dict[str, PickledArray]
    parameter_names: dict[str, str]
    other: dict[str, Any]
    left_out: tuple[LeftOut, ...] = ()
    name_maps: dict[str, dict[str, str]] = {}

    def read(self) -> dict[str, Array]:
        """Read all arrays. Raises FormatError when the elements of one are damaged."""
        return {name: array.read() for name, array in self.arrays.items()}


def decode(buffer: Buffer) -> StateContents:
    """Parse a state file. Nothing in it is executed, and the elements are not read yet.

    It accepts the pickles of Fluid 1.x (Python 2 and 3) and of Paddle 2: arrays, pairs of name and array,
    tensors pickled as ``eval('data', ...)``, a separate table of names, arrays cut into pieces.

    Raises
    ------
    FormatError
        For damaged bytes, for another kind of file, and for a pickle that refers to anything else.

    >>> decode(b"".join(encode({"w": np.ones(2, "float32")}))).read()
    {'w': array([1., 1.], dtype=float32)}
    """
    head = bytes(memoryview(buffer)[:SNIFF_BYTES])
    if head[:1] != pickle.PROTO:
        what = (explain(head, len(memoryview(buffer))) or "").replace(REMOVE, "copy or save it again")
        begin = head[:4].hex(" ") or "nothing"
        raise FormatError(f"not a pickled dict of arrays: it begins with {begin}", hint=what or None)
    pickled, _ = pickles.load_all(buffer, foreign=True)  # several, where a script dumped one after another
    held = pickled[0] if len(pickled) == 1 else pickled
    flat = flatten(held, PickledArray, _SLACK + len(memoryview(buffer)), _join_pieces)
    if not isinstance(held, dict) and not flat.arrays:
        kind = held.kind if isinstance(held, Foreign) else type(held).__name__
        raise FormatError(
            f"the pickle holds no array of numbers, only a value of type {kind}",
            hint="if neither fluid.save nor paddle.save wrote it, paddlelike.bundle.load may read it",
        )
    names, left_out = flat.parameter_names, tuple(flat.left_out)
    return StateContents(flat.arrays, names, flat.plain, left_out, flat.name_maps)


def encode(values: Mapping[str, Array], plain: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Buffer]:
    """Encode ``values``, in their order, as a state file. Return its pieces lazily.

    ``plain`` are further values that are not arrays; they come last.

    Raises
    ------
    FormatError
        While iterating: an array has more than 4 GiB, or elements that are not numbers.
    """
    return StateWriter().write({**values, **{name: encode_item(value) for name, value in plain.items()}})


def list_entries(contents: StateContents, file: str = "") -> Listing:
    """Return the entries of a state file that was decoded; ``file`` is its name in a folder."""
    entries = [describe_array(name, array, file) for name, array in contents.arrays.items()]
    return Listing(entries, contents.left_out, {**contents.other, **contents.name_maps})


def describe_array(name: str, array: PickledArray, file: str = "") -> Entry:
    """Return the entry for an array in a pickle."""
    return Entry(name, _dtype(array), array.shape, nbytes=array.nbytes, file=file, payload=array)


def read_array(entry: Entry, into: Array | None) -> Array:
    """Return the array of an entry, or copy it into ``into``.

    Raises
    ------
    FormatError
        Its elements are damaged, or ``into`` has another type or shape.
    """
    array = cast("PickledArray", entry.payload).read()
    return array if into is None else copy_into(array, into)


def to_array(value: Value | Array) -> Array:
    """Return the elements of a dense value."""
    array = value if isinstance(value, np.ndarray) else value.held_array
    assert array is not None
    return array


def _dtype(array: PickledArray) -> VarType:
    name = array.dtype.newbyteorder("=").name
    return _OTHER_DTYPES.get(name) or convert_dtype(name)


def _join_pieces(held: dict[Any, Any]) -> None:
    """Join arrays of more than 2**30 bytes, which Paddle 2 cuts into flat pieces for protocols 2 and 3."""
    cuts = held.pop(_CUT_KEY, {})
    try:
        for name, cut in cuts.items():
            pieces = [held.pop(piece) for piece in cut["slices"]]
            if not all(isinstance(piece, PickledArray) for piece in pieces):
                raise TypeError("a piece is not an array")
            held[name] = PickledArray.join(pieces, cut["OriginShape"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"{_CUT_KEY} does not fit the arrays ({error!r:.200})") from error
