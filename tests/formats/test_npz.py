"""npz files: numpy reads ours, ours reads numpy's, compressed and Fortran-ordered ones too."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from paddlelike import bundle
from paddlelike.errors import FormatError
from paddlelike.formats import registry
from paddlelike.formats.entry import list_left_out
from paddlelike.formats.explain import HEAD, explain
from paddlelike.formats.npz import Npz, TheanoBundle
from paddlelike.testing import FormatContract

GOLDEN = Path(__file__).parent.parent / "golden" / "theano"


def save(*, compressed: bool = False, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


class TestNpz(FormatContract):
    format = Npz()
    golden_values = {"b": np.float32([1, -2])}
    golden_files = {"": b"".join(Npz().write({"b": np.float32([1, -2])}))}  # numpy reads it: see below
    memory_per_byte = 4096  # objects of zipfile for a file of a few hundred bytes


class TestTheanoBundle(FormatContract):
    format = TheanoBundle()
    golden_values = {"b": np.float32([1, -2])}
    golden_files = {"": b"".join(TheanoBundle().write({"b": np.float32([1, -2])}))}  # judged below
    memory_per_byte = 4096  # objects of zipfile for a file of a few hundred bytes


def test_the_names_a_and_a_npy_are_distinguished() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("a", "a.npy"):
            with archive.open(name, "w") as member:
                np.save(member, np.ones(2))
    with pytest.raises(FormatError, match=r"several arrays have the same name: \['a'\]"):
        Npz().entries(file.getvalue())
    assert [entry.name for entry in TheanoBundle().entries(file.getvalue())] == ["a", "a.npy"]


def test_a_bundle_is_a_dict_of_the_arrays() -> None:
    values = {"layer/w": np.arange(6, dtype="f4").reshape(2, 3), "fc_0.b_0": np.array(2.5)}
    file = b"".join(TheanoBundle().write(values))
    found = bundle.load(io.BytesIO(file))
    assert list(found) == list(values)
    for name, array in values.items():
        np.testing.assert_array_equal(found[name], array)
    assert np.load(io.BytesIO(file)).files == [*values, "pkl"]
    with pytest.raises(FormatError, match="means something else in a bundle"):
        TheanoBundle().write({"pkl": np.ones(2)})


@pytest.mark.parametrize("name", ["everything", "net", "py2-shared", "trap-dot", "trap-x_2"])
def test_bundles_written_by_theano_are_recognized_and_read(name: str) -> None:
    file = (GOLDEN / f"{name}.zip").read_bytes()
    assert registry.sniff(file) == TheanoBundle()
    wanted = {
        key: value for key, value in bundle.arrays(io.BytesIO(file)).items() if value.dtype.kind in "biufc"
    }
    left_out = [one.name for one in list_left_out(TheanoBundle().entries(file))]
    assert left_out == (["array_7"] if name == "everything" else [])
    found = TheanoBundle().read_all(file)
    assert list(found) == list(wanted)
    for key, array in wanted.items():
        np.testing.assert_array_equal(found[key].array, array)
    assert "paddlelike.bundle.load" in str(explain(file[:HEAD], len(file)))


def test_arrays_of_unsupported_types_are_skipped_and_the_others_are_read() -> None:
    file = io.BytesIO()
    bundle.dump({"w": np.ones(2, "f4"), "seed": np.arange(3, dtype="u4")}, file)
    entries = TheanoBundle().entries(file.getvalue())
    assert [entry.name for entry in entries] == ["w"]
    assert list_left_out(entries) == (("seed", "an array of uint32", True, False),)


def test_other_zip_files_are_not_bundles() -> None:
    for name in ("config.json", "a"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, "{}")
        assert registry.sniff(file.getvalue()) is None


def test_numpy_reads_our_npz_files() -> None:
    values = {
        "layer/w": np.arange(6, dtype="f4").reshape(2, 3),
        "b": np.array(2.5),
        "empty": np.zeros((0, 2)),
    }
    with np.load(io.BytesIO(b"".join(Npz().write(values)))) as seen:
        assert seen.files == list(values)
        for name, array in values.items():
            np.testing.assert_array_equal(seen[name], array)
            assert seen[name].dtype == array.dtype


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "compressed"])
def test_npz_files_of_numpy_are_read(compressed: bool) -> None:
    values = {
        "c": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "scalar": np.array(True),
        "empty": np.zeros((0, 5), "float16"),
    }
    file = save(compressed=compressed, **values)
    found = Npz().read_all(file)
    for name, array in values.items():
        got = found[name].array
        assert got is not None
        np.testing.assert_array_equal(got, array)
        assert got.dtype == array.dtype.newbyteorder("=")
    entries = {entry.name: entry for entry in Npz().entries(file)}
    assert (entries["c"].offset is None) == compressed
    np.testing.assert_array_equal(Npz().read_slice(file, entries["f"], 1, 2), values["f"][1:2])


def test_arrays_of_unsupported_types_are_named() -> None:
    others = {
        "texts": np.array(["text"]),
        "bytes": np.array([b"text"]),
        "objects": np.array([None]),
        "records": np.zeros(1, "f4,i4"),
        "dates": np.zeros(1, "M8[s]"),
        "long double": np.zeros(2, "g"),
        "unsigned": np.zeros(2, "u8"),
    }
    file = io.BytesIO()
    np.savez(file, w=np.ones(2), **others)
    entries = Npz().entries(file.getvalue())
    assert [entry.name for entry in entries] == ["w"]
    assert [one.name for one in list_left_out(entries)] == list(others)


def test_a_member_with_an_impossible_size_is_refused() -> None:
    file = bytearray(save(compressed=True, w=np.zeros(10)))
    directory = file.rindex(b"PK\x01\x02")
    file[directory + 24 : directory + 28] = (1 << 31).to_bytes(4, "little")  # the uncompressed size
    with pytest.raises(FormatError, match=r"impossible|another size|damaged"):
        Npz().read_all(bytes(file))


def test_a_zip_file_without_arrays_is_not_an_npz_file() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert not Npz().sniff(file.getvalue()[:1024], len(file.getvalue()))
    entries = Npz().entries(file.getvalue())
    assert (entries, list_left_out(entries)) == ([], (("readme.txt", "not an array", True, False),))


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
def test_a_flipped_bit_of_the_directory_never_drops_renames_or_changes_a_member(compressed: bool) -> None:
    arrays = {"w": np.arange(4.0), "é": np.arange(2), "b": np.ones(3, "f4")}
    good = save(compressed=compressed, **arrays)
    for bit in range(8 * good.index(b"PK\1\2"), 8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        try:
            if Npz().find_damage(bytes(bad)) is not None:
                continue
            found = {entry.name: Npz().read(bytes(bad), entry) for entry in Npz().entries(bytes(bad))}
        except FormatError:
            continue
        assert found.keys() == arrays.keys(), bit
        for name, array in arrays.items():
            np.testing.assert_array_equal(np.array(found[name]), array)


def test_a_flipped_bit_of_a_stored_member_is_found() -> None:
    bad = bytearray(save(w=np.arange(4.0)))
    bad[bad.index(np.float64(3).tobytes())] ^= 1
    assert "member 'w.npy' is damaged: its CRC-32 is" in str(Npz().find_damage(bytes(bad)))


def _read_after(change: tuple[bytes, bytes], **arrays: np.ndarray) -> dict[str, object]:
    """Read an npz in which some bytes are others, in the directory and before the members."""
    return Npz().read_all(save(**arrays).replace(*change))


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(FormatError, match=r"two members have the name 'a\.npy'"):
        _read_after((b"b.npy", b"a.npy"), a=np.ones(2), b=np.zeros(2))


def test_an_encrypted_member_is_refused() -> None:
    file = bytearray(save(a=np.ones(2)))
    file[6] |= 1  # the flags before the member, and in the directory
    file[file.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FormatError, match="encrypted"):
        Npz().read_all(bytes(file))


def test_elements_are_aligned_as_numpy_aligns_them() -> None:
    ours, theirs = b"".join(Npz().write({"abc": np.ones((3, 7))})), save(abc=np.ones((3, 7)))
    header = theirs[theirs.index(b"\x93NUMPY") :][:128]
    assert header in ours
