"""The readers of bytes as fuzzing targets, and what must hold of what they accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from paddlelike.errors import PaddlelikeError
from paddlelike.formats import state
from paddlelike.formats.explain import HEAD, explain
from paddlelike.formats.paddle import combined, lod_tensor, selected_rows
from paddlelike.formats.state import pickles
from paddlelike.framework import Program
from paddlelike.framework.codec.schema import Messages, messages, parse
from tests.fuzz.guard import Fault, Guard
from tests.fuzz.makers import pickle_maker, program_maker, seeds, stream_maker
from tests.fuzz.makers.mutations import mutate

__all__ = ["READERS", "Target", "attempt"]

Make = Callable[[Random], bytes]


@dataclass(frozen=True)
class Target:
    """One reader: how its inputs are made, and what is done with one.

    ``read`` takes the input and a directory of its own; it raises PaddlelikeError for what is refused.
    ``prepare`` and ``clean`` put the input into that directory and out of it, outside the limits.
    """

    name: str
    make: Make
    read: Callable[[bytes, Path], None]
    weight: int = 4  # share of a campaign's inputs
    memory: int = 64  # bytes that may be taken for each byte of the input
    base: int = 256 << 10  # and whatever the input is
    set_up: Callable[[Path], None] | None = None
    prepare: Callable[[bytes, Path], None] | None = None
    clean: Callable[[bytes, Path], None] | None = None
    writes: bool = False  # whether files of the directory may be written

    def run(self, data: bytes, guard: Guard) -> None:
        """Read ``data`` within the limits."""
        root = Path(guard.root)
        try:
            if self.prepare is not None:
                self.prepare(data, root)
            with guard.input(most=self.base + self.memory * len(data), writes=self.writes):
                self.read(data, root)
        finally:
            if self.clean is not None:
                self.clean(data, root)


def attempt(call: Callable[[], Any]) -> Any:
    """What ``call`` gives; None when it is refused."""
    try:
        return call()
    except PaddlelikeError:
        return None


def mix(files: Sequence[str], maker: Make, share: float = 0.3, other: Sequence[str] = ()) -> Make:
    """Inputs of which most are mutate real files, the others made from nothing."""

    def make(rng: Random) -> bytes:
        if rng.random() < share:
            data = maker(rng)
            return mutate(rng, data, ()) if rng.random() < 0.3 else data
        real = seeds.real_files(*files)
        return mutate(rng, rng.choice(real), real + seeds.real_files(*(other or files)))

    return make


# Tensors


def _dense(data: bytes, _: Path) -> None:
    header = lod_tensor.read_header(data)
    value = lod_tensor.read(data)
    array = value.array
    assert array is not None
    if array.nbytes > len(data) or value.lod() != [list(level) for level in header.lod]:
        raise Fault(f"{header} was read as {array.shape} {array.dtype}, lod {value.lod()}")
    written = b"".join(lod_tensor.encode(value, dtype=header.dtype))
    again = lod_tensor.read(written)
    if again.lod() != value.lod() or not _same(again.array, array):
        raise Fault("written and read again, it is another value")
    if not header.lod and array.size:
        attempt(lambda: lod_tensor.read_slice(_source(data), header, start=array.size - 1, shape=(1,)))


def _rows(data: bytes, _: Path) -> None:
    header = selected_rows.read_header(data)
    value = selected_rows.read(data)
    assert value.array is not None
    if len(value.row_array) != header.row_count or value.array.nbytes > len(data):
        raise Fault(f"{header} was read as {value.row_array.shape}, {value.array.shape}")
    again = selected_rows.read(b"".join(selected_rows.encode(value, dtype=header.dtype)))
    if not _same(again.array, value.array) or not _same(again.row_array, value.row_array):
        raise Fault("written and read again, it is another value")


def _combined(data: bytes, _: Path) -> None:
    values = combined.read(data)
    if sum(v.array.nbytes for v in values if v.array is not None) > len(data):
        raise Fault("more elements than bytes")
    if len(list(combined.read_headers(data))) != len(values):
        raise Fault("as many headers as tensors are expected")


def _source(data: bytes) -> Any:
    from paddlelike.formats.sources import as_source

    return as_source(data)


def _same(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


# Pickles


def _state(data: bytes, _: Path) -> None:
    held = state.decode(data)
    arrays = held.read()
    if sum(array.nbytes for array in arrays.values()) > 4 * len(data):
        raise Fault("more elements than bytes")
    for name, array in arrays.items():
        if not isinstance(name, str) or array.dtype.kind not in "biufc" or not array.flags.c_contiguous:
            raise Fault(f"{name!r} is {array.dtype}")
    no_trace()
    again = attempt(lambda: state.decode(b"".join(state.encode(arrays))).read())
    if again is None or any(not _same(again[name], array) for name, array in arrays.items()):
        raise Fault("written and read again, it is another value")


def _pickles(data: bytes, _: Path) -> None:
    try:
        pickles.to_plain(pickles.load(data))
    finally:
        no_trace()


def no_trace() -> None:
    """Raise when a canary ran: it would have made a file."""
    if Path(pickle_maker.CANARY).exists():
        Path(pickle_maker.CANARY).unlink()
        raise Fault("the pickle ran code")


def make_pickle(rng: Random) -> bytes:
    if rng.random() < 0.4:
        return pickle_maker.make_hostile(rng)
    real = seeds.real_files(*seeds.PICKLES)
    data = rng.choice(real)
    return pickle_maker.reshuffle(rng, data) if rng.random() < 0.5 else mutate(rng, data, real)


# What is it?


def _explain(data: bytes, _: Path) -> None:
    for asked in (None, "dense", "rows"):
        said = explain(data[:HEAD], len(data), asked=asked)  # type: ignore[arg-type]
        if said is not None and (not said or "\n" in said):
            raise Fault(f"explained as {said!r}")


_ANY: Final = (
    *seeds.DENSE,
    *seeds.ROWS,
    *seeds.COMBINED,
    *seeds.PICKLES,
    *seeds.PROGRAMS,
    "*/*.json",
    "*/*.npz",
)
_MAGICS: Final = (
    b"\x89PNG\r\n\x1a\n", b"PK\3\4", b"\x80\2}", b"\x89HDF\r\n\x1a\n", b"<!DOCTYPE html>", b'{"a": [1]}',
    b"version https://git-lfs.github.com/spec/v1\n", b"[PAD]\n", b"\x1f\x8b\x08", b"\x93NUMPY", b"\x08\7\x12\5",
    b"\x20" * 800, b"\n\n\n\n<", "\u4e2d\u6587".encode() * 300, b"\xff\xd8\xff", bytes(257) + b"ustar",
)  # fmt: skip


def _make_magic(rng: Random) -> bytes:
    return rng.choice(_MAGICS) + rng.randbytes(rng.choice((0, 3, 60, 1100)))


# Programs


def _schema(data: bytes, _: Path) -> None:
    names = tuple(Messages.__dataclass_fields__)
    name = names[data[0] % len(names)] if data else names[0]
    message = parse(getattr(messages(), name), data[1:])
    if not parse(type(message), message.SerializeToString()).IsInitialized():
        raise Fault(f"a {name} that lacks something was accepted")


def _make_message(rng: Random) -> bytes:
    return b"\0" + _make_program(rng) if rng.random() < 0.7 else rng.randbytes(rng.choice((2, 5, 20)))


def _make_program(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.3:
        real = seeds.real_files(*seeds.PROGRAMS)
        return mutate(rng, rng.choice(real), real)
    if kind < 0.65:
        return program_maker.change_program(rng, rng.choice(seeds.real_files(*seeds.PROGRAMS)))
    return program_maker.make_program(rng) if kind < 0.85 else program_maker.nest_blocks(rng)


def _sort_parts(program: bytes) -> list[Any]:
    """Return a program's parts by name, as a copy has them in other places; of doubles the last one counts."""
    return [
        (
            block.idx,
            block.parent_idx,
            {one.name: one.SerializeToString() for one in block.vars},
            [
                (
                    op.type,
                    *(
                        {slot.parameter: list(slot.arguments) for slot in slots}
                        for slots in (op.inputs, op.outputs)
                    ),
                    {attr.name: attr.SerializeToString() for attr in op.attrs},
                )
                for op in block.ops
            ],
        )
        for block in parse(messages().ProgramDesc, program).blocks
    ]


def _program(data: bytes, _: Path) -> None:
    program = Program.parse_from_string(data)
    if not program.num_blocks:  # Fluid takes no bytes at all for an empty program
        return
    written = program.desc.serialize_to_string()
    again = Program.parse_from_string(written).desc.serialize_to_string()
    if again != written:
        raise Fault("written, read and written again, it is another program")
    program.to_string(True, with_details=True)
    if _sort_parts(program.clone().desc.serialize_to_string()) != _sort_parts(written):
        raise Fault("its copy is another program")
    attempt(lambda: program.clone(for_test=True))
    attempt(lambda: program._inference_optimize())
    for name in list(program.global_block().vars)[-2:]:
        pruned = attempt(lambda name=name: program._prune([name]))
        if pruned is not None:
            attempt(lambda pruned=pruned: pruned.desc.serialize_to_string())
    attempt(program.all_parameters)


READERS: Final = (
    Target("lod_tensor", mix(seeds.DENSE, stream_maker.dense, other=seeds.ROWS), _dense, weight=6),
    Target("selected_rows", mix(seeds.ROWS, stream_maker.rows, other=seeds.DENSE), _rows),
    Target("combined", mix(seeds.COMBINED, stream_maker.combined, other=seeds.DENSE), _combined),
    Target("state", make_pickle, _state, weight=6),
    Target("pickles", make_pickle, _pickles, weight=6),
    Target("explain", mix(_ANY, _make_magic), _explain),
    Target("schema", _make_message, _schema, weight=4),
    Target("program", _make_program, _program, weight=2, memory=400, base=1 << 20),
)
