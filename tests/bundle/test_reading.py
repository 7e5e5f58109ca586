"""Files of the real Theano, read without it. The marks T.. are rows of the list of Theano's features."""

from __future__ import annotations

import collections
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike import bundle
from paddlelike.errors import FormatError, LoadError, MissingFileError
from paddlelike.testing.damage import peak_memory
from tests.bundle.models import GOLDEN, Affine, AffineRenamed, Attributes, Net

CLASSES = {"tmodel.Net": Net, "tmodel.Affine": Affine, "m.Attributes": Attributes}


@pytest.mark.parametrize(
    "name",
    ["shared", "shared-proto0", "shared-proto1", "shared-proto2", "py2-shared", "py2-shared-proto0"],
)
def test_shared_variables_come_back_as_named_arrays(name: str) -> None:  # T14, T16, T19
    values = np.load(GOLDEN / ("py2-mlp.npz" if name.startswith("py2") else "mlp.npz"))
    found = bundle.load(GOLDEN / f"{name}.zip")
    assert [one.name for one in found] == ["W1", "b1", "W2", "b2"]
    for one, key in zip(found, ("0.W", "0.b", "1.W", "1.b"), strict=True):
        np.testing.assert_array_equal(one.get_value(), values[key])


@pytest.mark.parametrize("prefix", ["", "py2-"])
def test_values_are_exact_and_sharing_is_kept(prefix: str) -> None:  # T16, T21, T23
    everything = bundle.load(GOLDEN / f"{prefix}everything.zip")
    assert everything["again"] is everything["layers"][0][0]
    golden = np.load(GOLDEN / f"{prefix}everything.npz")
    for key in golden.files:
        group, name = key.split(".", 1)
        value = everything[group][name]
        value = value.get_value() if isinstance(value, bundle.SharedVariable) else value
        np.testing.assert_array_equal(value, golden[key], err_msg=key)
        assert np.asarray(value).dtype == golden[key].dtype, key


def test_numpy_load_finds_only_the_arrays_of_a_bundle() -> None:  # T17, T18, T20
    """numpy.load is the second reader; it shows dtype and shape of every member."""
    seen = json.loads((GOLDEN / "numpy-sees.json").read_text())
    for file in ("shared.zip", "everything.zip", "net.zip", "graph.zip"):
        found = bundle.arrays(GOLDEN / file)
        wanted = {name: kind for name, kind in seen[file].items() if name != "pkl"}
        assert {name: [str(a.dtype), list(a.shape)] for name, a in found.items()} == wanted, file


@pytest.mark.parametrize("name", ["net.zip", "py2-net.zip"])
def test_a_class_of_the_caller_gets_its_state(name: str) -> None:  # T10-T12
    net = bundle.load(GOLDEN / name, classes=CLASSES)
    assert type(net) is Net
    assert net.training_set["x"].shape == (8, 4)
    assert [w.name for layer in net.layers for w in layer] == ["W1", "b1", "W2", "b2"]


def test_a_missing_dataset_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # T13
    monkeypatch.setattr(Net, "home", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"train.pkl"):
        bundle.load(GOLDEN / "net.zip", classes=CLASSES)


@pytest.mark.parametrize(
    "name",
    [f"{prefix}affine-{form}" for prefix in ("", "py2-") for form in ("long.zip", "long.pkl", "proto0.pkl")],
)
def test_plain_pickles_and_bundles_open_alike(name: str) -> None:  # T05-T07, T24, T25
    values = np.load(GOLDEN / ("py2-mlp.npz" if name.startswith("py2") else "mlp.npz"))
    found = bundle.load(GOLDEN / name, classes=CLASSES)
    np.testing.assert_array_equal(found.W, values["0.W"])
    later = bundle.load(GOLDEN / name, classes={"tmodel.Affine": AffineRenamed})
    np.testing.assert_array_equal(later.bias, values["0.b"])


def test_renamed_attributes_are_mapped(tmp_path: Path) -> None:  # T25
    old = Attributes()
    old.W, old.b = np.ones(2), 3  # type: ignore[attr-defined]
    bundle.dump(old, tmp_path / "old")
    new = bundle.load(tmp_path / "old", classes=[Attributes], rename={"W": "weights", "b": "bias"})
    assert vars(new).keys() == {"weights", "bias"}


@pytest.mark.parametrize("prefix", ["", "py2-"])
def test_several_objects_come_from_one_file(prefix: str) -> None:  # T08
    array, plain, texts = bundle.load_all(GOLDEN / f"{prefix}objects.save")
    np.testing.assert_array_equal(array, np.load(GOLDEN / f"{prefix}mlp.npz")["0.W"])
    assert (plain, texts) == ({"epoch": 7, "lr": 0.1}, ["a", "b"])


def test_bundles_that_theano_cannot_load_are_read_or_explained() -> None:  # T21
    (dotted,) = bundle.load(GOLDEN / "trap-dot.zip")
    assert (dotted.name, dotted.get_value().tolist()) == ("layer1.W", [3, 3])
    (named_pkl,) = bundle.load(GOLDEN / "trap-pkl.zip")
    assert named_pkl.get_value().tolist() == [4, 4]
    assert "objects or records" in repr(bundle.load(GOLDEN / "trap-object.zip"))
    for file in ("trap-x_2.zip", "py2-trap-x_2.zip"):
        with pytest.warns(UserWarning, match="2 members are called 'x_2'"):
            bundle.load(GOLDEN / file)
        found = bundle.arrays(GOLDEN / file)
        assert {name: a[0] for name, a in found.items()} == {"x": 0, "x_2": 1, "x_2 (2)": 2}


def test_an_unreadable_array_does_not_hide_the_other_arrays() -> None:  # T21
    file = io.BytesIO()
    records = np.zeros(2, [("a", "f4"), ("b", "i4")])
    bundle.dump({"w": np.ones(3), "records": records, "texts": np.array(["a", "bc"])}, file)
    with zipfile.ZipFile(file, "a") as archive:
        member = io.BytesIO()
        np.save(member, np.array([{}, None]), allow_pickle=True)
        archive.writestr("objects", member.getvalue())
    with pytest.warns(UserWarning, match="left out: records, objects"):
        found = bundle.arrays(file)
    assert {name: array.tolist() for name, array in found.items()} == {"w": [1, 1, 1], "texts": ["a", "bc"]}
    file.seek(0)
    loaded = bundle.load(file)
    assert loaded["w"].tolist() == [1, 1, 1]
    assert "objects or records" in repr(loaded["records"])


def test_defaultdicts_are_read() -> None:
    file = io.BytesIO()
    bundle.dump(
        {"list": collections.defaultdict(list, a=[1]), "none": collections.defaultdict(None, b=2)}, file
    )
    found = bundle.load(file)
    assert found["list"] == {"a": [1]}
    assert found["list"]["new"] == []
    with pytest.raises(KeyError):
        found["none"]["new"]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_unpickled_random_state_continues_its_sequence(protocol: int) -> None:
    state = np.random.RandomState(3)
    state.standard_normal(5)
    found = bundle.load(io.BytesIO(pickle.dumps(state, protocol)))
    assert found.standard_normal(700).tolist() == state.standard_normal(700).tolist()


@pytest.mark.parametrize(
    "state",
    [
        ("MT19937", np.zeros(624, "u4"), 10**6, 0, 0.0),  # numpy would read there
        ("MT19937", np.zeros(3, "u4"), 1, 0, 0.0),
        ("Philox", np.zeros(624, "u4"), 1, 0, 0.0),
        {},
    ],
    ids=["position", "key", "kind", "nothing"],
)
def test_an_unknown_generator_state_is_refused(state: object) -> None:
    class Damaged:
        def __reduce__(self) -> Any:
            return vars(np.random)["__RandomState_ctor"], (), state

    with pytest.raises(FormatError, match="RandomState is not one of MT19937"):
        bundle.load(io.BytesIO(pickle.dumps(Damaged(), 2)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_are_read_as_their_component_arrays(form: str) -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="scipy comes with scikit-learn, of the extra 'test'")
    dense = np.float32([[0, 2, 0], [1, 0, 3]])
    file = io.BytesIO()
    bundle.dump({"m": getattr(sparse, f"{form}_matrix")(dense)}, file)
    found = bundle.load(file)["m"]
    assert found.shape == (2, 3)
    assert found.toarray().tolist() == dense.tolist()
    assert sorted(found.data) == [1, 2, 3]
    assert f"{form}_matrix of shape (2, 3)" in repr(found)


def test_a_zip_bomb_is_refused_before_memory_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paddlelike.formats.elements._MOST_UNPACKED", (1 << 20, 64))
    file = io.BytesIO()
    bundle.dump({"w": np.zeros(1 << 20)}, file)

    def read() -> None:
        for call in (bundle.arrays, bundle.load):
            file.seek(0)
            with pytest.raises(FormatError, match="more than 64 times as many"):
                call(file)

    assert peak_memory(read) < 1 << 20
    monkeypatch.setattr("paddlelike.bundle.writer._LARGE", 1 << 20)
    for value in (np.zeros(1 << 20), np.ones((1 << 10, 1 << 10)).T, np.eye(1 << 10)):  # large ones of ours
        file = io.BytesIO()
        bundle.dump({"w": value}, file)
        file.seek(0)
        np.testing.assert_array_equal(bundle.load(file)["w"], value)


def test_an_expression_of_theano_is_a_placeholder_with_its_class_name() -> None:
    found = bundle.load(GOLDEN / "graph.zip")
    assert found.class_name == "theano.tensor.var.TensorVariable"
    assert "whose class is not here" in repr(found)


# What a file may not do


class Evil:
    def __reduce__(self) -> Any:
        return print, ("executed",)


def in_bundle(data: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("pkl", data)
    return file


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_executed(protocol: int, capsys: pytest.CaptureFixture[str]) -> None:  # T16
    data = pickle.dumps([Evil()], protocol)
    for file in (io.BytesIO(data), in_bundle(data)):
        with pytest.raises(FormatError, match=r"print, which is not on the list"):
            bundle.load(file)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"(ios\nsystem\nS'true'\n.",
        b"c__builtin__\nset\n(I1\ntR.",  # a function of the list, given nonsense
        b"ctmodel\nAffine\n}S'__init__'\nI1\nsb.",  # the state of a class
        b"\x80\x02cm\nAttributes\n)\x81(N}U\x01xK\x01stb.",  # slots
        b"\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a bytearray of 8 EiB
        b"\x80\x02r\xff\xff\xff\xff.",  # a memo index of 4 GiB, with nothing on the stack
        b"\x80\x02\x82\x01.",  # an extension
        b"P1234\n.",
        b"(lp0\n",
        b"",
        b"\x80\x02cnumpy\ndtype\nU\x05O8,O8\x85R.",
    ],
)
def test_crafted_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        bundle.load(io.BytesIO(data), classes=CLASSES)


def name_in_file(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


MANY = b"]q\x01(" + b"K\x01" * 200_000 + b"e"
#: Sixty tuples, each twice in the next one: the hash, the text and a copy of the last have no end.
NESTED = b"\x80\x02)q\x00" + b"".join(b"h%ch%c\x86q%c" % (n - 1, n - 1, n) for n in range(1, 60))


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02](" + MANY + (name_in_file("builtins", "list") + b"h\x01\x85R") * 300 + b"e.",
        b"\x80\x02](" + MANY + (name_in_file("builtins", "set") + b"h\x01\x85R") * 300 + b"e.",
        b"\x80\x02" + name_in_file("builtins", "range") + b"J\xff\xff\xff\x7f\x85R.",
        NESTED + b"0}h\x3bK\x01s.",
        NESTED + b"0}(h\x3bK\x01u.",
        NESTED + b"0(h\x3bK\x01d.",
        NESTED + name_in_file("builtins", "frozenset") + b"]h\x3ba\x85R.",
        NESTED + b"h\x3bh\x3bR.",
        NESTED + b"h\x3b)\x81.",
        NESTED + b"h\x3bQ.",
    ],
    ids=["lists", "sets", "range", "key", "keys", "dict", "frozenset", "called", "made", "id"],
)
def test_a_pickle_that_exceeds_limits_of_time_or_memory_is_refused(data: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(FormatError):
            bundle.load(io.BytesIO(data))

    assert peak_memory(refuse) < 100 << 20


def test_containers_of_a_training_history_are_read_as_written() -> None:
    values = {
        "last": collections.deque([1.5, 2.5], maxlen=3),
        "seen": collections.Counter("aab"),
        "epochs": range(3, 9, 2),
        ("W", 0): [("W", 0)] * 3,
    }
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert bundle.load(io.BytesIO(pickle.dumps(values, protocol))) == values


def test_a_class_is_instantiated_only_when_the_caller_passes_it() -> None:
    with pytest.raises(FormatError, match=r"tmodel.Net, which is not on the list(.|\n)*classes="):
        bundle.load(GOLDEN / "net.zip")
    assert set(bundle.arrays(GOLDEN / "net.zip")) == {"W1", "b1", "W2", "b2"}  # T20: the arrays survive


def test_a_bundle_that_is_cut_or_flipped_only_raises_our_error() -> None:
    whole = (GOLDEN / "shared.zip").read_bytes()
    for length in range(0, len(whole), 7):
        with pytest.raises(FormatError):
            bundle.load(io.BytesIO(whole[:length]))
    for at in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        try:
            bundle.load(io.BytesIO(bytes(damaged)))
        except FormatError:
            continue


def test_a_member_with_an_overstated_size_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        header = (
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
        )
        archive.writestr("W", header.ljust(127) + b"\n")
        archive.writestr("pkl", pickle.dumps(None))
    with pytest.raises(FormatError, match="does not take"):
        bundle.arrays(file)


def test_gpu_arrays_are_read_as_arrays() -> None:  # T15: a pickle of the context's name, then the NPY file
    npy = io.BytesIO()
    np.save(npy, np.float32([1, 2]))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("W", pickle.dumps("dev0", 2) + npy.getvalue())
        archive.writestr("pkl", b"\x80\x02X\x0a\x00\x00\x00gpuarray.WQ.")
    assert bundle.load(file).tolist() == [1, 2]


def test_the_error_names_the_kind_of_each_other_file(tmp_path: Path) -> None:  # T06, T26
    with pytest.raises(MissingFileError, match="no such file: "):
        bundle.load(tmp_path / "none")
    bundle.dump([1], tmp_path / "model.bundle")
    with pytest.raises(MissingFileError, match=r"did you mean 'model\.bundle'\?"):
        bundle.load(tmp_path / "modle.bundle")
    (tmp_path / "text").write_text("hello")
    with (tmp_path / "text").open() as text, pytest.raises(LoadError, match="mode 'rb'"):
        bundle.load(text)  # type: ignore[arg-type]
    np.savez(tmp_path / "arrays.npz", a=np.ones(2))
    with pytest.raises(FormatError, match=r"has no member 'pkl', it has a\.npy"):
        bundle.load(tmp_path / "arrays.npz")
