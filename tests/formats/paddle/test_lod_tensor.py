"""Dense streams: the golden bytes, the real files, and damaged ones."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from paddlelike.core import TENSOR_DTYPES, LoDTensor, VarType, memory
from paddlelike.errors import FormatError
from paddlelike.fluid.proto import framework_pb2
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.tensor_desc import decode_desc, encode_part
from paddlelike.storage.local.files import File
from paddlelike.testing.damage import cuts, flips, peak_memory, refuses
from tests.helpers.golden_data import GOLDEN

MANIFEST = json.loads((GOLDEN / "tensors" / "manifest.json").read_text())
DENSE = sorted(name for name in MANIFEST if not name.startswith("selected_rows"))
PER_VARIABLE = sorted(GOLDEN.glob("**/persistables/*"))

SIX_FLOATS = bytes.fromhex(
    "00000000 0000000000000000"  # LoD version, no levels
    "00000000 06000000 0805 1002 1003"  # tensor version, TensorDesc: FP32 [2, 3]
    "00000000 0000803f 00000040 00004040 00008040 0000a040"
)
TWO_LEVELS = bytes.fromhex(
    "00000000 0200000000000000"
    "1800000000000000 0000000000000000 0100000000000000 0300000000000000"
    "2000000000000000 0000000000000000 0200000000000000 0300000000000000 0500000000000000"
    "00000000 06000000 0803 1005 1001"
    "0100000000000000 0200000000000000 0300000000000000 0400000000000000 0500000000000000"
)


def dumps(value: LoDTensor | np.ndarray) -> bytes:
    return b"".join(lod_tensor.encode(value))


def described(desc: str, data: bytes = b"") -> bytes:
    """A stream without LoD with that TensorDesc."""
    raw = bytes.fromhex(desc)
    return bytes(16) + len(raw).to_bytes(4, "little") + raw + data


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(tuple))
def test_any_dims_are_written_as_protobuf_writes_them(dims: tuple[int, ...]) -> None:
    desc = framework_pb2.VarType.TensorDesc(data_type=VarType.FP32, dims=dims).SerializeToString()
    assert encode_part(VarType.FP32, dims) == bytes(4) + len(desc).to_bytes(4, "little") + desc
    assert decode_desc(desc) == (VarType.FP32, dims)


# --- golden bytes ---------------------------------------------------------------------------------


def test_a_matrix_has_the_bytes_of_paddle():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    assert dumps(array) == SIX_FLOATS
    np.testing.assert_array_equal(lod_tensor.read(SIX_FLOATS).array, array)


def test_two_lod_levels_have_the_bytes_of_paddle():
    value = LoDTensor(np.arange(1, 6).reshape(5, 1), [[0, 1, 3], [0, 2, 3, 5]])
    assert dumps(value) == TWO_LEVELS
    read = lod_tensor.read(TWO_LEVELS)
    assert read.lod() == value.lod()
    np.testing.assert_array_equal(read.array, value.array)


@pytest.mark.parametrize(
    ("array", "desc"),
    [
        pytest.param(np.zeros((130, 0), "float32"), "0805 108201 1000", id="a dim of two bytes"),
        pytest.param(np.zeros((0, 4), "float32"), "0805 1000 1004", id="no rows"),
        pytest.param(np.zeros((), "float32"), "0805", id="no dims"),
        pytest.param(np.zeros(1, "float16"), "0804 1001", id="fp16"),
        pytest.param(np.zeros(1, "bool"), "0800 1001", id="bool"),
        pytest.param(np.zeros(1, "uint8"), "0814 1001", id="uint8"),
        pytest.param(np.zeros(1, "int8"), "0815 1001", id="int8"),
        pytest.param(np.zeros(1, "uint16"), "0816 1001", id="bf16 as its bit patterns"),
    ],
)
def test_each_dtype_and_shape_is_described_as_in_paddle(array, desc):
    assert dumps(array) == described(desc, array.tobytes())
    read = lod_tensor.read(dumps(array)).array
    assert (read.shape, read.dtype) == (array.shape, array.dtype)


# --- the real system's files ----------------------------------------------------------------------


@pytest.mark.parametrize("name", DENSE)
def test_a_real_file_is_read_and_written_back(name):
    data, facts = (GOLDEN / "tensors" / name).read_bytes(), MANIFEST[name]
    value = lod_tensor.read(data)
    assert value.shape() == facts["shape"]
    assert value.lod() == facts["lod"]
    assert lod_tensor.read_header(data).dtype.name == facts["dtype"]
    assert hashlib.sha256(value.array.tobytes()).hexdigest() == facts["sha256"]
    assert dumps(value) == data


def test_real_checkpoints_of_both_versions_are_written_back():
    assert len(PER_VARIABLE) > 80
    for path in PER_VARIABLE:
        with File(path) as file:
            assert dumps(lod_tensor.read(file)) == path.read_bytes(), path


def test_fp16_is_cut_towards_zero_as_paddle_does():
    """Inputs and results as the save operator of 1.8.5 with save_as_fp16 wrote them."""
    given_, want = np.array(
        [(0.88131803, 0x3B0C), (65504, 0x7BFF), (65519, 0x7C00), (-1e9, 0xFC00), (np.nan, 0x7E00),
         (-0.0, 0x8000), (5.9604645e-08, 0x0001), (5.0033645e-08, 0), (6.1e-05, 0x03FF),
         (1.0014648, 0x3C01)]
    ).T  # fmt: skip
    got = lod_tensor.to_fp16(given_.astype("float32")).array
    assert got.view("uint16").tolist()[1:] == want.astype("int").tolist()[1:]
    assert got[0] == np.float16(0.881)  # the nearest would be 0.8813
    assert lod_tensor.to_fp16(np.array([-14895, 8398, 10**12])).array.tolist() == [
        -14888.0, 8392.0, np.inf,
    ]  # fmt: skip


# --- what is tolerated ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "desc",
    ["1202 0203 0805", "0805 1202 0203", "0805 1202 0203 2a03 616263 3001"],
    ids=["dims first", "dims packed", "unknown fields"],
)
def test_other_encodings_of_a_description_are_read(desc):
    assert decode_desc(bytes.fromhex(desc)) == (5, (2, 3))
    assert lod_tensor.read_header(described(desc, bytes(24))).shape == (2, 3)


@pytest.mark.parametrize("cut", [1, 8, 24])
def test_the_fast_path_rejects_a_truncated_stream(cut):
    whole = b"".join(lod_tensor.encode(np.zeros((2, 3), "float32")))
    assert lod_tensor.find_plain(whole) is not None
    assert lod_tensor.find_plain(whole[:-cut]) is None


def test_bytes_after_the_tensor_are_counted():
    """A parameter server's file says [1] and holds one number per server."""
    data = dumps(np.float32([0.9])) + np.float32(0.9).tobytes()
    assert len(data) == 32
    header = lod_tensor.read_header(data)
    assert (header.surplus, header.end) == (4, 28)
    assert lod_tensor.read(data).array.tolist() == [np.float32(0.9)]


# --- memory ---------------------------------------------------------------------------------------


def test_encoding_does_not_copy():
    array = np.zeros((256, 1024), "float32")
    _, data = lod_tensor.encode(array)
    assert np.shares_memory(np.frombuffer(data, "uint8"), array)


@pytest.mark.parametrize(
    "array", [np.arange(12.0).reshape(3, 4).T, np.arange(12.0)[::2], np.arange(6.0).astype(">f8")]
)
def test_other_layouts_are_written_in_c_order_and_little_endian(array):
    np.testing.assert_array_equal(lod_tensor.read(dumps(array)).array, array)


def test_reading_fills_a_given_array():
    into = np.empty((2, 3), "float32")
    assert lod_tensor.read(io.BytesIO(SIX_FLOATS), into=into).held_array is into
    assert into.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_reading_allocates_only_the_array(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(dumps(np.zeros((512, 1024), "float32")))
    with File(path) as file:
        read = []
        taken = peak_memory(lambda: read.append(lod_tensor.read(file)))
    assert taken < 1.05 * 512 * 1024 * 4
    assert memory.is_placed(read[0].held_array)


@pytest.mark.parametrize(
    "into",
    [np.empty((3, 2), "float32"), np.empty((2, 3), "float64"), np.empty((3, 2), "float32").T],
    ids=["shape", "dtype", "order"],
)
def test_an_array_that_does_not_fit_is_refused(into):
    with pytest.raises(FormatError, match=r"holds float32 \[2, 3\], the array to fill"):
        lod_tensor.read(SIX_FLOATS, into=into)


@pytest.mark.parametrize(
    "dims", ["10ffffffffffffff3f", "10808080808080808040", "108080808020", "1000 10ffffffffffffffff3f"]
)
def test_a_declared_size_is_checked_before_memory_is_allocated(dims):
    data = described("0806" + dims, bytes(64))
    assert refuses(lod_tensor.read, data)  # and imports what explains the refusal
    assert peak_memory(lambda: refuses(lod_tensor.read, data)) < 100_000


# --- slices ---------------------------------------------------------------------------------------


def test_a_range_of_rows_is_read_without_the_rest():
    data = memoryview(dumps(np.arange(40, dtype="int64").reshape(10, 4)))
    header = lod_tensor.read_header(data)
    offset, size = header.locate_rows(3, 5)
    assert np.frombuffer(data[offset : offset + size], "int64").tolist() == [*range(12, 20)]
    with File(GOLDEN / "tensors" / "shape_4d_dim200") as file:
        header = lod_tensor.read_header(file)
        part = lod_tensor.read_slice(file, header, start=7, shape=(2, 3))
        whole = lod_tensor.read(file).array
    np.testing.assert_array_equal(part.reshape(-1), whole.reshape(-1)[7:13])


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (9, 11), (5, 4)])
def test_rows_beyond_the_end_are_refused(start, stop):
    header = lod_tensor.read_header(dumps(np.zeros((10, 4))))
    with pytest.raises(FormatError, match=r"the tensor has 40 \(FP64 \[10, 4\]\)"):
        header.locate_rows(start, stop)


def test_a_tensor_with_lod_is_not_read_in_slices():
    with File(GOLDEN / "tensors" / "lod2_case1_int64") as file:
        header = lod_tensor.read_header(file)
        with pytest.raises(FormatError, match="2 LoD levels"):
            lod_tensor.read_slice(file, header, start=0, shape=(1,))


# --- damage ---------------------------------------------------------------------------------------


def with_lod(*levels: list[int]) -> bytes:
    header = lod_tensor.encode_header("int8", (5,), levels)
    return header + bytes(5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_lod([0, 2, 4]), r"level 0 ends at 4, but there are 5 rows; .* INT8 \[5\]"),
        (with_lod([0, 1], [0, 2, 5]), "level 0 ends at 1, but there are 2 sequences in level 1"),
        (with_lod([0, 3, 2, 5]), "level 0 does not rise from 0"),
        (with_lod([1, 5]), "level 0 does not rise from 0"),
        (with_lod([]), "level 0 does not rise from 0"),
        (SIX_FLOATS[:-1], r"offset 26: the data of FP32 \[2, 3\] takes 24 bytes, but 23 are left"),
        (described("0807"), "element type 7 .LOD_TENSOR. is not one of BOOL, "),
        (described("0863"), "element type 99 is unknown"),
        (described("1002 1003"), "names no element type"),
        (described("0805 10ffffffffffffffffff01"), r"an array cannot have the dims \[-1\]"),
        (described("0805" + "1001" * 33, bytes(4)), "an array cannot have the dims"),
        (described("0805 10"), "ends inside a number"),
        (described("0d00000000 0805"), "field 1 of the TensorDesc has wire type 5"),
        (described("0805 44 00"), "holds wire type 4"),
        (bytes(4) + (1 << 60).to_bytes(8, "little"), "offset 12: a LoD of 1152921504606846976 lev"),
        (bytes(12) + b"\1\0\0\0" + SIX_FLOATS[16:], r"offset 12: tensor version 1 .01 00 00 00. w"),
        (b"\2\0\0\0" + SIX_FLOATS[4:], "version 2 .02 00 00 00. where a Paddle tensor has 0"),
    ],
)
def test_an_error_about_a_damaged_file_names_offset_and_field(data, message):
    with pytest.raises(FormatError, match=message):
        lod_tensor.read(data)


@pytest.mark.parametrize("data", [SIX_FLOATS, TWO_LEVELS], ids=["plain", "lod"])
def test_a_cut_file_is_a_format_error(data):
    assert all(refuses(lod_tensor.read, cut) for cut in cuts(data))


@pytest.mark.parametrize("data", [SIX_FLOATS, TWO_LEVELS], ids=["plain", "lod"])
def test_a_changed_byte_gives_another_value_or_a_format_error(data):
    for changed in flips(data):
        assert refuses(lod_tensor.read, changed) or lod_tensor.read(changed).array.nbytes <= 65


def test_a_file_that_shrinks_after_its_header_was_read_is_an_error(tmp_path: Path):
    path = tmp_path / "w"
    path.write_bytes(dumps(np.zeros((100, 100))))
    with File(path) as file:
        header = lod_tensor.read_header(file)
        path.write_bytes(path.read_bytes()[:10002])
        with pytest.raises(FormatError, match="only 9976 of 80000 bytes could be read"):
            lod_tensor.read_data(file, header)


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_a_tensor_or_raise_a_format_error(data):
    for stream in (data, bytes(12) + data, bytes(16) + len(data).to_bytes(4, "little") + data):
        assert refuses(lod_tensor.read, stream) or lod_tensor.read(stream).held_array.nbytes <= len(stream)


ARRAYS = st.sampled_from(list(TENSOR_DTYPES.values())).flatmap(
    lambda row: hnp.arrays(row.numpy, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
)


@given(ARRAYS, st.integers(0, 3))
def test_written_tensors_are_read_back(array, before):
    """Also out of a file that does not stand at its beginning."""
    file = io.BytesIO(bytes(before) + dumps(array))
    file.seek(before)
    read = lod_tensor.read(file).array
    assert (read.shape, read.dtype, read.tobytes()) == (array.shape, array.dtype, array.tobytes())
    assert dumps(read) == dumps(array)


def test_uint16_arrays_are_written_as_bf16_if_the_dtype_says_so():
    """A uint16 array is bf16 unless somebody says otherwise; nothing else is ambiguous."""
    header, _ = lod_tensor.encode(np.zeros(1, "uint16"), dtype=VarType.BF16)
    assert lod_tensor.read_header(bytes(header) + b"\0\0").dtype is VarType.BF16
