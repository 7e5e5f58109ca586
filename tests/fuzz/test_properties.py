"""Round trips of arbitrary values through every format, and files put together and taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from paddlelike.core import TENSOR_DTYPES, LoDTensor, SelectedRows
from paddlelike.errors import FormatError
from paddlelike.formats import state
from paddlelike.formats.paddle import combined, lod_tensor, selected_rows
from paddlelike.formats.state import pickles
from paddlelike.framework import Program
from paddlelike.framework.codec.schema import messages, parse
from paddlelike.storage import manifest
from tests.fuzz.makers import seeds

DTYPES = sorted({row.numpy for row in TENSOR_DTYPES.values()}, key=str)
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@st.composite
def lod_tensors(draw: Any) -> LoDTensor:
    """A tensor with up to three levels that fit its rows."""
    levels: list[list[int]] = []
    count = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(0, 3))):
        lengths = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
        levels.append([0, *np.cumsum(lengths).tolist()])
        count = levels[-1][-1]
        if count == 0:
            break
    array = draw(hnp.arrays(draw(st.sampled_from(DTYPES)), (count, draw(st.integers(1, 3)))))
    return LoDTensor(array, levels)


def same(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


@given(lod_tensors())
def test_dense_tensors_survive_encoding_and_decoding(value: LoDTensor) -> None:
    read = lod_tensor.read(b"".join(lod_tensor.encode(value)))
    assert read.lod() == value.lod()
    assert same(read.array, value.array)


@given(
    ARRAYS.filter(lambda a: a.ndim > 0),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9),
    st.integers(0, 2**62),
)
def test_selected_rows_survive_encoding_and_decoding(array: Any, rows: list[int], height: int) -> None:
    read = selected_rows.read(b"".join(selected_rows.encode(SelectedRows(rows, height, array))))
    assert (read.rows(), read.height()) == (rows, height)
    assert same(read.array, array)


@given(st.lists(lod_tensors(), min_size=1, max_size=6), st.data())
def test_a_combined_file_is_its_concatenated_tensors(values: list[LoDTensor], data: Any) -> None:
    streams = [b"".join(lod_tensor.encode(value)) for value in values]
    whole = b"".join(combined.encode(values))
    assert whole == b"".join(streams)
    assert all(
        same(a.array, b.array) and a.lod() == b.lod()
        for a, b in zip(combined.read(whole), values, strict=True)
    )
    at = data.draw(st.integers(0, len(values)))
    halves = [b"".join(part) for part in (streams[:at], streams[at:]) if part]
    assert sum(len(combined.read(half)) for half in halves) == len(values)


@given(st.lists(lod_tensors(), min_size=1, max_size=4), st.binary(min_size=1, max_size=11))
def test_extra_bytes_after_a_combined_file_are_reported(values: list[LoDTensor], more: bytes) -> None:
    try:
        combined.read(b"".join(combined.encode(values)) + more)
    except FormatError:
        return
    raise AssertionError("eleven bytes are not a tensor")


@given(st.dictionaries(NAMES, ARRAYS, max_size=5))
def test_state_files_survive_encoding_and_decoding(values: dict[str, Any]) -> None:
    read = state.decode(b"".join(state.encode(values))).read()
    assert list(read) == list(values)
    assert all(same(read[name], values[name]) for name in values)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


@given(PLAIN, st.integers(2, 5))
def test_values_that_python_pickled_are_read_back(value: Any, protocol: int) -> None:
    import pickle

    assert pickles.to_plain(pickles.load(pickle.dumps(value, protocol))) == value


@settings(max_examples=30)
@given(st.sampled_from(seeds.real_files(*seeds.PROGRAMS)))
def test_programs_survive_encoding_and_decoding(data: bytes) -> None:
    message = parse(messages().ProgramDesc, data)
    program = Program.parse_from_string(data)
    assert Program.parse_from_string(program.desc.serialize_to_string()).to_string() == program.to_string()
    assert [len(block.ops) for block in message.blocks] == [len(block.ops) for block in program.blocks]


PATHS = st.from_regex(r"[a-z_0-9]{1,9}(/[a-z_.0-9]{0,3}[a-z]){0,2}", fullmatch=True)
RECORDS = st.builds(
    manifest.Record,
    st.integers(0, 2**62),
    st.none() | st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True),
    st.tuples(st.integers(0, 2**63), st.integers(0, 2**63)),
    st.fixed_dictionaries({"variable": NAMES, "shape": st.lists(st.integers(0, 99), max_size=3)}),
)


@given(st.dictionaries(PATHS, RECORDS, max_size=4), st.binary(min_size=1, max_size=3), st.data())
def test_manifests_survive_encoding_and_any_changed_byte_is_found(
    files: dict[str, Any], new: bytes, data: Any
) -> None:
    written = manifest.encode(files, author=manifest.Author("ab", None))
    read = manifest.decode(written)
    assert (read.files, read.program) == (files, "ab")
    at = data.draw(st.integers(0, len(written) - 1))
    changed = written[:at] + new + written[at + len(new) :]
    if changed != written:
        try:
            manifest.decode(changed)
        except FormatError:
            return
        raise AssertionError("a changed manifest was trusted")


@given(lod_tensors(), st.data())
def test_a_file_cut_anywhere_is_refused(value: LoDTensor, data: Any) -> None:
    whole = b"".join(lod_tensor.encode(value))
    at = data.draw(st.integers(0, len(whole) - 1))
    try:
        lod_tensor.read(whole[:at])
    except FormatError:
        return
    raise AssertionError(f"{at} of {len(whole)} bytes were taken for a tensor")


def test_real_files_of_every_kind_are_tested() -> None:
    for kind in (seeds.DENSE, seeds.ROWS, seeds.COMBINED, seeds.PICKLES, seeds.PROGRAMS):
        assert len(seeds.real_files(*kind)) >= 3, kind
    assert isinstance(seeds.GOLDEN, Path)
