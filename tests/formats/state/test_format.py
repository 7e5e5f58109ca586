"""State files: the real ones, every form of Paddle 2, refused pickles, and damaged ones."""

from __future__ import annotations

import collections
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paddlelike.errors import FormatError
from paddlelike.formats import state
from paddlelike.formats.state import pickles
from paddlelike.testing import FormatContract
from paddlelike.testing.damage import cuts, flips, peak_memory, refuses
from tests.helpers.golden_data import GOLDEN

REAL_18 = sorted(GOLDEN.glob("*/fluid_save/*"))
REAL_26 = sorted(GOLDEN.glob("*/*/static_save/*"))

ONE = bytes.fromhex("80027d7100") + (
    b"X\1\0\0\0wq\1"
    b"cnumpy.core.multiarray\n_reconstruct\nq\2cnumpy\nndarray\nq\3K\0\x85q\4"
    b"c_codecs\nencode\nq\5X\1\0\0\0bq\6X\6\0\0\0latin1q\7\x86q\x08Rq\x09\x87q\nRq\x0b"
    b"(K\1K\2\x85q\x0ccnumpy\ndtype\nq\rX\2\0\0\0f4q\x0e\x89\x88\x87q\x0fRq\x10"
    b"(K\3X\1\0\0\0<q\x11NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tq\x12b\x89"
    b"h\5X\n\0\0\0\0\0\xc2\x80?\0\0\0\xc2\x80q\x13h\7\x86q\x14Rq\x15tq\x16bs."
)  # {"w": float32 [1, -0.0]} by Python 3.7, numpy 1.21


class TestStateFile(FormatContract):
    format = state.StateFile()
    golden_values = {"w": np.float32([1, -0.0])}
    golden_files = {"": ONE}


def dumps(values: dict[str, np.ndarray]) -> bytes:
    return b"".join(state.encode(values))


def loads(data: bytes) -> dict[str, np.ndarray]:
    return state.decode(data).read()


def old_names(data: bytes) -> bytes:
    """A pickle of numpy 2 with the module names of numpy 1."""
    return data.replace(b"numpy._core.", b"numpy.core.")


# --- golden bytes and real files ------------------------------------------------------------------


def test_one_array_has_the_bytes_of_paddle():
    array = np.float32([1, -0.0])
    assert dumps({"w": array}) == ONE
    assert loads(ONE)["w"].tobytes() == array.tobytes()


@pytest.mark.parametrize("path", REAL_18, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_file_is_read_and_written_back(path):
    values = loads(path.read_bytes())
    assert dumps(values) == path.read_bytes()
    assert all(array.flags.writeable and array.flags.c_contiguous for array in values.values())


@pytest.mark.parametrize("path", REAL_26, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_file_of_paddle_2_is_read(path):
    values = loads(path.read_bytes())
    with warnings.catch_warnings():  # numpy 2 warns of the modules that numpy 1 names
        warnings.simplefilter("ignore")
        trusted = pickle.loads(path.read_bytes())
    assert list(values) == list(trusted)
    for name, array in values.items():
        np.testing.assert_array_equal(array, trusted[name])


# One array of every kind, as Python's own pickler sees it; that it agrees with real files is above.
KINDS = {
    **{dtype: np.array([[98, 0, 1]]).astype(dtype) for dtype in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "float16", "float32", "float64", "complex64", "complex128")},
    "no dims": np.array(2.5),
    "no elements": np.zeros((0, 300)),
    "one byte": np.array([98], "uint8"),
    "5 dims": np.arange(65600.0).reshape(1, 1, 1, 1, 65600),
    chr(98): np.array([0], "uint8"),  # CPython keeps one object of such a text
    "\u4e2d": np.zeros(3),
}  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 1001, 2000])
def test_any_number_of_arrays_is_written_as_pickle_writes_it(count):
    values = {f"v{i}": np.full(2, i, "float32") for i in range(count)}
    assert dumps(values) == old_names(pickle.dumps(values, 2))


@pytest.mark.parametrize("kinds", [[kind] for kind in KINDS] + [list(KINDS)], ids=str)
def test_any_kind_of_array_is_written_as_pickle_writes_it(kinds):
    values = {kind: KINDS[kind] for kind in kinds}
    assert dumps(values) == old_names(pickle.dumps(values, 2))
    for name, array in loads(dumps(values)).items():
        assert (array.dtype, array.shape) == (values[name].dtype, values[name].shape)
        np.testing.assert_array_equal(array, values[name])


def test_other_layouts_are_written_in_c_order_and_little_endian():
    array = np.arange(6.0).reshape(2, 3)
    assert dumps({"w": np.asfortranarray(array)}) == dumps({"w": array})
    assert dumps({"w": array.astype(">f8")}) == dumps({"w": array})


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_and_both_numpy_versions_are_read(protocol):
    values = {"f": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "big": np.arange(5, dtype=">i4")}
    values["scalar"] = np.float32(2)
    data = pickle.dumps(collections.OrderedDict(values), protocol)
    for form in (data, old_names(data)) if protocol < 4 else (data,):
        for name, array in loads(form).items():
            np.testing.assert_array_equal(array, values[name])
            assert array.dtype.isnative


def test_a_state_file_of_python_2_is_read():
    """Its cPickle keeps names and elements as byte strings, and numpy's flags as numbers."""
    data = (
        b"\x80\x02}q\1U\1wq\2cnumpy.core.multiarray\n_reconstruct\nq\3cnumpy\nndarray\nq\4K\0\x85"
        b"U\1bq\5\x87Rq\6(K\1K\2\x85cnumpy\ndtype\nq\7U\2f4q\x08K\0K\1\x87Rq\t"
        b"(K\3U\1<q\nNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U\x08\0\0\x80?\0\0\0\xc0tbs."
    )
    assert loads(data)["w"].tolist() == [1, -2]


# --- the forms of Paddle 2 ------------------------------------------------------------------------


class Reduced:
    """Pickles as the call of ``function`` with ``arguments``."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple:
        return self.call


def test_a_table_of_parameter_names_is_kept_apart_from_the_arrays():
    held = {"weight": np.ones(2), "StructuredToParameterName@@": {"weight": "linear_0.w_0"}}
    got = state.decode(pickle.dumps(held, 4))
    assert got.parameter_names == {"weight": "linear_0.w_0"}
    assert list(got.arrays) == ["weight"]
    assert got.other == {}


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_stored_by_name_or_by_eval_are_read(protocol):
    held = {
        "weight": Reduced(tuple, ("linear_0.w_0", np.ones(2))),
        "bias": Reduced(eval, "data", {"data": np.zeros(3)}),
        "LR_Scheduler": {"last_epoch": 3, "last_lr": 0.1, "seen": [np.arange(2), "text" * 500]},
        "tags": {"a"},
    }
    got = state.decode(pickle.dumps(held, protocol))
    shapes = {"weight": (2,), "bias": (3,), "LR_Scheduler/seen/0": (2,)}
    assert {name: array.shape for name, array in got.arrays.items()} == shapes
    assert got.parameter_names == {"weight": "linear_0.w_0"}
    assert got.other["LR_Scheduler/last_epoch"] == 3
    assert got.other["LR_Scheduler/seen/1"] == "text" * 500
    assert got.other["tags"] == {"a"}


def test_arrays_in_dicts_and_lists_are_read_and_other_values_are_named():
    layer = {
        "weight": Reduced(tuple, ("linear_0.w_0", np.ones(2))),
        "StructuredToParameterName@@": {"b": "b_0"},
    }
    held = {
        "epoch": 3,
        "model": layer,
        "shadow": [np.zeros(1), (np.zeros(2), "text")],
        0: {"nothing": None, "LR_Scheduler": {"last_lr": 0.5, "inner": {"last_epoch": 4}}},
        "counts": collections.Counter("aa"),
        "labels": np.array(["a"]),
        "dates": np.zeros(1, "M8[s]"),
        "objects": np.array([None]),
        "records": np.zeros(1, "f4,i4"),
    }
    got = state.decode(pickle.dumps(held, 2))
    shapes = {"model/weight": (2,), "shadow/0": (1,), "shadow/1/0": (2,)}
    assert {name: array.shape for name, array in got.arrays.items()} == shapes
    assert got.parameter_names == {"model/weight": "linear_0.w_0", "model/b": "b_0"}
    assert {one.name: one.what for one in got.left_out} == {
        "epoch": "3",
        "model/StructuredToParameterName@@": "the names of 1 variables",
        "StructuredToParameterName@@": "the names of 1 variables",
        "shadow/1/1": "'text'",
        "0/nothing": "None",
        "0/LR_Scheduler/last_lr": "0.5",
        "0/LR_Scheduler/inner/last_epoch": "4",
        "counts": "an object of collections.Counter",
        "counts/0/a": "2",
        "labels": "an array of dtype 'U1'",
        "dates": "an array of dtype 'M8'",
        "objects": "an array of dtype 'O8'",
        "records": "an array of dtype 'V8'",
    }
    assert got.other["0"]["LR_Scheduler"]["inner"] == {"last_epoch": 4}


def test_one_tensor_and_a_list_of_them_have_names():
    (one,) = state.decode(pickle.dumps(Reduced(tuple, ("linear_0.w_0", np.ones(2))), 2)).arrays
    assert one == "linear_0.w_0"
    assert list(state.decode(pickle.dumps([np.ones(2), np.ones(3)], 2)).arrays) == ["0", "1"]


def test_two_paths_with_the_same_text_get_different_names():
    got = loads(pickle.dumps({"a/b": np.zeros(1), "a": {"b": np.ones(1)}}, 2))
    assert {name: array.tolist() for name, array in got.items()} == {"a/b": [0], "a/b (2)": [1]}


def test_an_array_stored_in_pieces_is_joined():
    whole = np.arange(12.0).reshape(3, 4)
    held = {
        "w@@.0": whole.reshape(-1)[:7],
        "w@@.1": whole.reshape(-1)[7:],
        "UnpackBigParamInfor@@": {"w": {"OriginShape": (3, 4), "slices": ["w@@.0", "w@@.1"]}},
    }
    got = loads(pickle.dumps(held, 2))
    assert list(got) == ["w"]
    np.testing.assert_array_equal(got["w"], whole)
    held["UnpackBigParamInfor@@"]["w"]["OriginShape"] = (3, 5)
    with pytest.raises(FormatError, match=r"float64 \[3, 5\] takes 120 bytes, the file has 96"):
        loads(pickle.dumps(held, 2))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("exit 7",), "system"),
        (print, ("x",), "builtins__.print|builtin__.print"),
        (getattr, (1, "real"), "getattr"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_global_that_is_not_in_the_table_is_named_and_refused(function, arguments, name):
    with pytest.raises(FormatError, match=rf"refers to \S*{name}\S*, which is refused") as caught:
        state.decode(pickle.dumps({"w": Reduced(function, *arguments)}, 2))
    assert "arrays and plain values only" in caught.value.hint


@pytest.mark.parametrize(
    "arguments",
    [("data", {"data": 1}), ("1 + 1", {"data": np.ones(1)}), ("data", {"data": np.ones(1), "x": 1})],
)
def test_a_call_of_eval_on_other_text_is_refused(arguments):
    with pytest.raises(FormatError, match="wants to run code, which is refused"):
        state.decode(pickle.dumps({"w": Reduced(eval, *arguments)}, 2))


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([1, 2], "holds no array of numbers, only a value of type list"),
        ({"w": {(1, (2,)): 3}}, "a key of a dict or set is a tuple"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unknown_contents_of_a_state_file_are_refused(held, message):
    with pytest.raises(FormatError, match=message):
        state.decode(pickle.dumps(held, 2))


def test_a_flat_tuple_as_a_key_is_named_by_its_text():
    array = np.ones(1, np.float32)
    (name,) = state.decode(pickle.dumps({"w": {("t", 1): array}}, 2))[0]
    assert name == "w/('t', 1)"
    with pytest.raises(FormatError, match="is a tuple"):
        state.decode(pickle.dumps({"w": {(1 << 99999,): array}}, 2))


def test_a_file_that_is_not_a_pickle_is_explained():
    path = GOLDEN / "fit_a_line/persistables/fc_0.w_0"
    with pytest.raises(FormatError, match="not a pickled dict of arrays: it begins with 00 00 00 00"):
        state.decode(path.read_bytes())
    with pytest.raises(FormatError, match="this is a zip archive"):
        state.decode(b"PK\3\4" + bytes(50))


# --- memory ---------------------------------------------------------------------------------------


def test_headers_are_available_before_any_element_is_read():
    data = dumps({"w": np.zeros((1 << 18, 4), "float32")})
    got = []
    assert peak_memory(lambda: got.append(state.decode(data))) < 100_000
    assert (got[0].arrays["w"].shape, got[0].arrays["w"].nbytes) == ((1 << 18, 4), 1 << 22)


def test_a_state_file_is_written_in_pieces():
    values = {"w": np.full(1 << 22, 200, "uint8")}
    assert peak_memory(lambda: collections.deque(state.encode(values), maxlen=0)) < 8 << 20


BOMBS = {
    "memo index": b"\x80\x02}}r\xff\xff\xff\x7f.",
    "length of a text": b"\x80\x02X\xff\xff\xff\x7f.",
    "length of bytes": b"\x80\x04\x8e" + (1 << 50).to_bytes(8, "little") + b".",
    "dims": ONE.replace(b"(K\1K\2\x85", b"(K\1\x8a\6\0\0\0\0\0\1\x85"),
    "tuples of tuples": b"\x80\x02]" + b"q\1h\1h\1\x86" * 60 + b"}h\1K\1s.",
}  # fmt: skip


def test_a_small_file_of_many_arrays_with_the_same_elements_is_refused():
    raw, dtype = b"a" * 65536, np.dtype("uint8")
    call = np._core.numeric._frombuffer
    held = {f"v{i}": Reduced(call, raw, dtype, (65536,), "C") for i in range(1000)}
    data = pickle.dumps(held, 4)
    assert len(data) < 130_000
    with pytest.raises(FormatError, match="describes more data than it holds"):
        state.decode(data)


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_cannot_cause_a_large_allocation(name):
    assert peak_memory(lambda: refuses(state.decode, BOMBS[name])) < 4 << 20
    assert refuses(state.decode, BOMBS[name])


# --- damage ---------------------------------------------------------------------------------------


def test_data_whose_size_contradicts_its_shape_is_refused():
    """Two bytes of text may be one element or two, which only reading tells."""
    data = dumps({"w": np.full(2000, 0x80, "uint8")})
    got = state.decode(data.replace(b"\xc2\x80", b"aa", 1))
    with pytest.raises(FormatError, match=r"uint8 \[2000\] takes 2000 bytes, the file has 2001"):
        got.read()
    got = state.decode(data.replace(b"\xc2\x80", b"\xc2\xc2", 1))
    with pytest.raises(FormatError, match="not latin1 text"):
        got.read()


def test_a_cut_file_is_a_format_error():
    assert all(refuses(loads, cut) for cut in cuts(ONE))


@pytest.mark.parametrize("path", REAL_26[-1:] + REAL_18[:1], ids=["protocol 4", "protocol 2"])
def test_a_changed_byte_gives_another_value_or_a_format_error(path):
    data = path.read_bytes()[:1500]
    for changed in flips(data):
        assert refuses(loads, changed) or isinstance(loads(changed), dict)


OPCODES = st.sampled_from(
    [bytes([code]) for code in b"}])(te0NRbsuaelqhKX\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94\x81."]
)


@given(st.lists(OPCODES | st.binary(max_size=3), max_size=40))
def test_any_opcodes_decode_to_a_value_or_raise_a_format_error(codes):
    data = b"\x80\x02" + b"".join(codes)
    refuses(lambda data: pickles.to_plain(pickles.load(data)), data)  # no other error than FormatError
    assert refuses(loads, data) or isinstance(loads(data), dict)


def test_additional_pickle_globals_can_be_allowed():
    data = pickle.dumps(Reduced(os.getcwd), 2)
    name = (os.getcwd.__module__, "getcwd")
    assert pickles.load(data, constructors={name: lambda: "here"}) == "here"


# --- crafted files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(-3, -4), (3.0, 4.0), ("3", 4), (0, 2**70), (True, 12), (0, 2**47, 2**47)], ids=str
)
def test_pieces_of_an_impossible_shape_are_refused(shape):
    pieces = np.zeros(0 if 0 in shape else 12)
    held = {"w@@.0": pieces, "UnpackBigParamInfor@@": {"w": {"OriginShape": shape, "slices": ["w@@.0"]}}}
    with pytest.raises(FormatError, match="dims"):
        loads(pickle.dumps(held, 2))


def test_impossible_dims_of_an_empty_array_are_refused():
    dtype, call = np.dtype("float32"), np._core.numeric._frombuffer
    held = {"w": Reduced(call, b"", dtype, (0, 2**47, 2**47), "C")}
    with pytest.raises(FormatError, match="an array cannot have the dims"):
        loads(pickle.dumps(held, 4))


def test_a_key_of_thousands_of_digits_is_refused():
    assert list(loads(pickle.dumps({1 << 30000: np.ones(1)}, 2))) == ["a number of many digits"]


CJK = "".join(map(chr, range(0x4E00, 0x4E00 + 340))).encode()
TEXT = b"X" + len(CJK).to_bytes(4, "little") + CJK + b"q\1"
SET = b"cbuiltins\nset\nq\2" + b"h\2h\1\x85R" * 3000 + b"u."
LATIN = b"X\6\0\0\0latin1q\3c_codecs\nencode\nq\2" + b"h\2h\1h\3\x86R" * 3000 + b"u."
AGAIN = {
    "sets of one text": b"\x80\x02}(" + TEXT + SET,
    "sets of one tuple": b"\x80\x02}((" + b"K\1" * 900 + b"tq\1" + SET,
    "empty sets": b"\x80\x04}(" + b"\x8f" * 20000 + b"u.",
    "frozen sets": b"\x80\x04}(" + b"(\x91" * 20000 + b"u.",
    "empty lists": b"\x80\x04}(" + b"]" * 20000 + b"u.",
    "bytes of one text": b"\x80\x02}(X\xe8\3\0\0" + b"a" * 1000 + b"q\1" + LATIN,
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_small_file_that_expands_enormously_is_refused(name):
    """Small files that would make thousands of times their size."""
    taken = peak_memory(lambda: refuses(state.decode, AGAIN[name]))
    assert taken < 40 * len(AGAIN[name]) + 100_000
    with pytest.raises(FormatError, match="describes more data than it holds"):
        state.decode(AGAIN[name])
