"""HDF5 files: h5py reads ours, ours reads TensorFlow users' and Keras'."""

from __future__ import annotations

import io
import os
import time
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import ExtraMissingError, FormatError
from paddlelike.formats import hdf5
from paddlelike.formats.entry import list_left_out
from paddlelike.formats.hdf5 import Hdf5, read_attributes
from paddlelike.storage.local.filesystem.file import File
from paddlelike.testing.formats import Files, FormatContract

h5py = pytest.importorskip("h5py", reason="h5py is in the extra 'hdf5'")

GOLDEN = Path(__file__).parent.parent / "golden" / "tfh5"
VALUES = {"net/b": np.float32([1, -2])}


class TestHdf5(FormatContract):
    format = Hdf5()
    golden_values = VALUES
    golden_files = {
        "": b"".join(Hdf5().write(VALUES))
    }  # the layout is HDF5's own; h5py and the real files judge it
    memory_per_byte = 4096  # objects of h5py for a small file

    @pytest.fixture(autouse=True)
    def without_forks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Read in this process: a fork for each of thousands of files takes minutes."""
        monkeypatch.setattr(hdf5, "try_aside", lambda check, *_: check())

    @classmethod
    def damaged(cls, files: Files) -> Iterator[Files]:
        """A part of the damages: the HDF5 library takes a millisecond for each."""
        every = list(super().damaged(files))
        yield from every[:: max(1, len(every) // 1500)]

    @classmethod
    def oversized(cls, files: Files) -> Iterator[Files]:
        """A part of them, for the same reason."""
        yield from islice(super().oversized(files), 0, None, 7)

    @pytest.mark.slow  # the HDF5 library parses 5,600 files
    def test_memory_is_bounded_by_the_file(self) -> None:
        assert next(self.oversized(self.golden_files), None) is not None  # else nothing is read
        super().test_memory_is_bounded_by_the_file()


def test_h5py_reads_our_files_with_blanks_in_place_of_slashes() -> None:  # H03, H06, H08, H11
    file = b"".join(Hdf5((("version", "1.0"), ("epoch", 7))).write(VALUES | {"a": np.array([True])}))
    with h5py.File(io.BytesIO(file)) as opened:
        assert sorted(opened) == ["a", "net b"]
        np.testing.assert_array_equal(opened["net b"][()], VALUES["net/b"])
        assert dict(opened.attrs) == {"version": "1.0", "epoch": 7}
    assert read_attributes(file) == {"version": "1.0", "epoch": 7}


@pytest.mark.parametrize(
    "name", ["trainable", "trainable-version", "all", "latest", "slashes-kept", "no-bias"]
)
def test_hdf5_files_of_the_published_recipe_are_read(name: str) -> None:  # H03, H06, H09, H10
    values = np.load(GOLDEN / "values.npz")
    found = Hdf5().read_all((GOLDEN / f"{name}.hdf5").read_bytes())
    assert len(found) >= 3
    for key, value in found.items():
        np.testing.assert_array_equal(value.array, values["at:" + key.replace("/", "|")])


def test_every_dtype_is_read_from_plain_chunked_and_compressed_datasets() -> None:
    golden = np.load(GOLDEN / "dtypes.npz")
    found = Hdf5().read_all((GOLDEN / "dtypes.hdf5").read_bytes())
    by_key = {name.replace("/", "|"): name for name in found} | {
        name.replace("/", " "): name for name in found
    }
    assert len(found) >= 10
    for key in golden.files:
        if key in by_key:
            np.testing.assert_array_equal(found[by_key[key]].array, golden[key], err_msg=key)


def test_weights_of_keras_files_are_read_in_the_order_of_keras() -> None:
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened.attrs["layer_names"] = [b"dense_2", b"dense_1", b"empty"]
        opened.create_group("empty").attrs["weight_names"] = []
        for layer in ("dense_1", "dense_2"):
            group = opened.create_group(layer)
            group.attrs["weight_names"] = [f"{layer}/kernel:0".encode(), f"{layer}/bias:0".encode()]
            group.create_dataset(f"{layer}/kernel:0", data=np.ones((2, 3)))
            group.create_dataset(f"{layer}/bias:0", data=np.zeros(3))
    names = [entry.name for entry in Hdf5().entries(file.getvalue())]
    assert names == ["dense_2/kernel:0", "dense_2/bias:0", "dense_1/kernel:0", "dense_1/bias:0"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_keras_zip_files_are_read(compression: int, tmp_path: Path) -> None:
    """Keras 3: ``saving_lib.save_model``, whose archive begins with its metadata."""
    inner = io.BytesIO()
    with h5py.File(inner, "w") as opened:
        opened["layers/dense/vars/0"] = np.arange(6, dtype="f4").reshape(2, 3)
        opened["layers/dense/vars/1"] = np.zeros(3, "f4")
        opened["optimizer/vars/0"] = np.int64(7)
    with zipfile.ZipFile(tmp_path / "net.keras", "w", compression) as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.3.3"}')
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", inner.getvalue())
    fluid.convert(tmp_path / "net.keras", tmp_path / "net.npz")
    with np.load(tmp_path / "net.npz") as found:
        assert sorted(found.files) == ["layers/dense/vars/0", "layers/dense/vars/1", "optimizer/vars/0"]
        np.testing.assert_array_equal(found["layers/dense/vars/0"], np.arange(6).reshape(2, 3))
        assert found["optimizer/vars/0"] == 7
    with zipfile.ZipFile(tmp_path / "other.keras", "w") as archive:
        archive.writestr("metadata.json", "{}")
    with pytest.raises(FormatError, match=r"has no model\.weights\.h5"):
        Hdf5().entries((tmp_path / "other.keras").read_bytes())


@pytest.mark.parametrize("name", ["a b", "", "."])
def test_names_that_cannot_be_keys_are_refused(name: str) -> None:  # H06
    with pytest.raises(FormatError, match="a name that cannot be a key"):
        Hdf5().write({name: np.ones(2)})


def test_without_h5py_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ExtraMissingError, match=r"paddlelike\[hdf5\]"):
        Hdf5().entries((GOLDEN / "trainable.hdf5").read_bytes())


def test_texts_stored_with_the_weights_are_read_as_metadata() -> None:  # H11, H12
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened["w"] = np.ones((2, 3), "f")
        opened["tf_version"] = "1.2"
        opened["fixed"] = np.array([b"a", b"bc"])
        opened.attrs["epoch"] = 3
    assert [entry.name for entry in Hdf5().entries(file.getvalue())] == ["w"]
    assert read_attributes(file.getvalue()) == {"tf_version": "1.2", "fixed": ["a", "bc"], "epoch": 3}


@pytest.mark.parametrize("kind", ["virtual dataset", "external storage", "link to another file"])
def test_datasets_in_other_files_are_named_and_never_opened(kind: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as opened:
        opened["w"] = np.ones((2, 3), "f")
    with h5py.File(tmp_path / "model.h5", "w") as opened:
        if kind == "virtual dataset":
            layout = h5py.VirtualLayout((2, 3), "f4")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "w", shape=(2, 3))
            opened.create_virtual_dataset("w", layout)
        elif kind == "external storage":
            opened.create_dataset("w", (24,), "u1", external=[(str(tmp_path / "other.h5"), 0, 24)])
        else:
            opened["group/w"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/")
            opened["w"] = h5py.SoftLink("group/w/w")  # through the other file
            opened["round"] = h5py.SoftLink("round")
        opened["bias"] = np.ones(2, "f")
        opened["soft"] = h5py.SoftLink("/deep/../bias")  # HDF5 knows no parent
        opened["deep/soft"] = h5py.SoftLink("soft2")
        opened["deep/soft2"] = h5py.SoftLink("/./bias")
    entries = Hdf5().entries((tmp_path / "model.h5").read_bytes())
    assert [entry.name for entry in entries] == ["bias", "deep/soft", "deep/soft2"]
    left_out = {one.name: one.what for one in list_left_out(entries)}
    assert kind in left_out.pop("w")
    assert left_out.pop("soft") == "a broken link"
    if kind == "link to another file":
        assert left_out.pop("group/w").startswith("a link to another file, ")
        assert left_out.pop("round") == "a broken link"
    assert left_out == {}
    report = fluid.convert(tmp_path / "model.h5", tmp_path / "m.npz")
    assert (bool(report), len(report.names)) == (False, 3)


def test_texts_and_weights_of_keras_in_other_files_are_never_opened(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as opened:
        opened["dense/w"] = np.ones(3, "f")
        opened["dense"].attrs["weight_names"] = [b"w"]
    with h5py.File(tmp_path / "model.h5", "w") as opened:
        opened["text"] = b"a"
        opened.create_dataset("secret", (4,), "S8", external=[(str(tmp_path / "other.h5"), 0, 32)])
        opened["model_weights/dense"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "dense")
        opened["model_weights/own/w"] = np.zeros(2, "f")
        opened["model_weights/own"].attrs["weight_names"] = [b"w", b"/model_weights/dense/w"]
        opened["model_weights"].attrs["layer_names"] = [b"dense", b"own"]
    data = (tmp_path / "model.h5").read_bytes()
    assert [entry.name for entry in Hdf5().entries(data)] == ["w"]
    assert Hdf5().read_all(data)["w"].held_array.tolist() == [0, 0]
    assert read_attributes(data)["text"] == "a"
    assert "secret" not in read_attributes(data)


def test_links_within_the_file_are_followed() -> None:
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened["a"] = np.ones(2, "f")
        opened["hard"] = opened["a"]
        opened["soft"] = h5py.SoftLink("/a")
        opened["group/self"] = opened
    assert [entry.name for entry in Hdf5().entries(file.getvalue())] == ["a", "hard", "soft"]
    with h5py.File(file, "a") as opened:
        opened["gone"] = h5py.SoftLink("/b")
        opened["deep/gone"] = h5py.SoftLink("c")
    entries = Hdf5().entries(file.getvalue())
    assert [entry.name for entry in entries] == ["a", "hard", "soft"]
    assert [(one.name, one.what) for one in list_left_out(entries)] == [
        ("deep/gone", "a broken link"),
        ("gone", "a broken link"),
    ]


def test_datasets_that_cannot_be_variables_are_named_and_the_rest_is_read() -> None:
    others = {
        "null": h5py.Empty("f"),
        "enumeration": np.ones(2, h5py.enum_dtype({"A": 0, "B": 1}, "i4")),
        "texts": np.array([b"a", b"bc"]),
        "records": np.zeros(1, "f4,i4"),
        "unsigned": np.zeros(2, "u8"),
    }
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened["w"] = np.ones(2, "f")
        for name, value in others.items():
            opened[name] = value
    entries = Hdf5().entries(file.getvalue())
    assert [entry.name for entry in entries] == ["w"]
    assert {one.name: one.what for one in list_left_out(entries)} == {
        "null": "a null dataset, without shape and elements",
        "enumeration": "an array of an enumeration",
        "texts": "texts",
        "records": "an array of records",
        "unsigned": "an array of uint64",
    }


def test_weights_of_two_equal_inner_keras_models_are_named_by_their_layers() -> None:
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened.attrs["layer_names"] = [b"vgg", b"vgg_2", b"head"]
        for index, layer in enumerate(("vgg", "vgg_2", "head")):
            name = "out/kernel:0" if layer == "head" else "dense/kernel:0"
            opened.create_group(layer)[name] = np.full(2, index, "f4")
            opened[layer].attrs["weight_names"] = [name.encode()]
    found = Hdf5().read_all(file.getvalue())
    assert {name: value.array.tolist() for name, value in found.items()} == {
        "vgg/dense/kernel:0": [0, 0],
        "vgg_2/dense/kernel:0": [1, 1],
        "out/kernel:0": [2, 2],
    }


def test_split_lists_and_optimizer_arrays_of_keras_are_read() -> None:
    """``hdf5_format.save_attributes_to_hdf5_group`` cuts lists of over 64 kB."""
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        root = opened.create_group("model_weights")
        root.attrs["layer_names0"], root.attrs["layer_names1"] = [b"b"], [b"a"]
        for layer in "ab":
            root.create_group(layer)[f"{layer}/kernel:0"] = np.ones(1, "f4")
            root[layer].attrs["weight_names0"] = [f"{layer}/kernel:0".encode()]
        opened["optimizer_weights/Adam/iterations:0"] = np.int64(3)
    names = [entry.name for entry in Hdf5().entries(file.getvalue())]
    assert names == ["b/kernel:0", "a/kernel:0", "optimizer_weights/Adam/iterations:0"]


def test_broken_files_are_refused() -> None:
    data = (GOLDEN / "all.hdf5").read_bytes()
    with pytest.raises(FormatError):
        Hdf5().entries(data[: len(data) // 2])


def test_a_keras_file_that_unpacks_without_end_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("model.weights.h5", bytes(5 << 20))
    with pytest.raises(FormatError, match="packed into"):
        Hdf5().entries(file.getvalue())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit needs a fork")
@pytest.mark.parametrize("what", ["never ends", "crashes"])
def test_a_file_that_keeps_the_library_busy_or_crashes_it_is_a_format_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    here = os.getpid()

    def fail(*_: object) -> None:
        assert os.getpid() != here, "it was read in this process"
        time.sleep(600) if what == "never ends" else os._exit(1)

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["w"] = np.ones(3)
    monkeypatch.setattr(hdf5, "_PATIENCE", 0.2)
    monkeypatch.setattr(hdf5, "_list_attributes", fail)
    with File(path) as source:
        for one in (source, path.read_bytes()):
            with pytest.raises(FormatError, match="crashes on this file, or does not finish"):
                hdf5.Hdf5().entries(one)


def test_a_file_is_read_in_a_forked_process_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = hdf5.try_aside
    monkeypatch.setattr(hdf5, "try_aside", lambda *given: calls.append(1) or real(*given))
    path = tmp_path / "a.h5"
    for number in (1, 2):
        with h5py.File(path, "w") as file:
            file["w"] = np.full(3, number)
        for _ in range(3):
            with File(path) as opened:
                (entry,) = hdf5.Hdf5().entries(opened)
                assert np.array(hdf5.Hdf5().read(opened, entry))[0] == number
                assert hdf5.read_attributes(opened) == {}
    assert len(calls) == 2
