"""Manifests say what was saved, agree with the directory, and find whatever was changed since."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, strategies as st

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.local import manifest_file
from paddlelike.storage.local.manifest_file import verify
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.manifest import Author, Record

FILES = {"a/b": b"x" * 300, "empty": b"", "w": bytes(range(256)) * 300}


def save(directory, files=FILES, **options):
    transaction = Transaction(directory, **options)
    for name, data in files.items():
        transaction.add(name, [data[:7], data[7:]], {"variable": name, "shape": [len(data)]})
    return transaction.commit()


def test_a_manifest_describes_each_file(tmp_path):
    committed = save(tmp_path / "m", program="5f")
    read = manifest_file.read_manifest(tmp_path / "m")
    assert read.program == "5f"
    assert read.files == committed.files
    assert read.files["w"].facts == {"variable": "w", "shape": [76800]}
    assert read.files["w"].checksum.startswith("xxh3_128:")
    assert (committed.written, committed.nbytes) == (3, 77100)
    assert manifest_file.manifest_path(tmp_path / "m") == str(tmp_path / "m" / "__manifest__")
    found = verify(tmp_path / "m")
    assert found
    assert str(found) == f"{tmp_path / 'm'}: 3 files are as they were saved"


def test_reused_encoded_entries_equal_new_ones():
    mine, other = Author("5f", "params"), Author("77", None)
    records = {
        'q",': Record(3, "crc32:0a", (1, 2), {"variable": 'q",', "lod": [[0, 1]]}, author=other),
        "ä": Record(4, None, (3, 4), {"names": ["a", "\ud800"]}, ("0f", "1e"), mine, "AAAA"),
        "plain": Record(5, "xxh3_128:2d", (5, 6)),
    }
    for author, files in [
        (mine, records),
        (other, records),
        (other, {f"b/{p}": records[p] for p in records}),
    ]:
        for _ in range(2):
            data = manifest.encode_json(files, author=author, state=["x"])
            front = json.loads(data.decode("utf-8", "surrogatepass"))
            assert manifest.decode(data).files == files
            assert list(front["files"]) == sorted(files)
            assert [each.get("author", 0) for each in front["files"].values()] == [
                [list(one.values()) for one in front["authors"]].index(list(files[path].author))
                for path in sorted(files)
            ]


@pytest.mark.parametrize(
    ("fact", "value"),
    [("variable", 5), ("shape", [[1]]), ("shape", None), ("kind", [1]), ("dtype", {"a": 1}), ("lod", "x")],
)
def test_records_of_other_writers_stay_in_the_next_manifest(fact, value):
    facts = {"variable": "w", "kind": "lod_tensor", "dtype": "FP32", "shape": [2], "lod": [], fact: value}
    records = {"w": Record(8, 'crc32:a"b\\', (1, 2), facts)}
    assert manifest.decode(manifest.encode_json(records)).files == records
    assert manifest.measure(records.values()) > 0


@pytest.mark.parametrize("algorithm", ["xxh3_128", "sha256", "crc32"])
def test_every_flipped_bit_is_found(tmp_path, algorithm):
    save(tmp_path / "m", checksum=algorithm)
    dice = random.Random(1)
    for _ in range(60):
        name = dice.choice(["a/b", "w"])
        path = tmp_path / "m" / name
        data = bytearray(path.read_bytes())
        at = dice.randrange(len(data))
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        found = verify(tmp_path / "m")
        assert not found
        assert found.changed == (name,)
        path.write_bytes(FILES[name])
    assert verify(tmp_path / "m")


def test_verification_names_each_kind_of_fault(tmp_path):
    save(tmp_path / "m", FILES | {"gone": b"1", "link": b"2"})
    (tmp_path / "m" / "gone").unlink()
    (tmp_path / "m" / "link").unlink()
    (tmp_path / "m" / "link").symlink_to("w")
    (tmp_path / "m" / "w").write_bytes(b"short")
    (tmp_path / "m" / "more").write_bytes(b"")
    found = verify(tmp_path / "m")
    assert not found
    assert found.missing == ("gone", "link")
    assert found.cut == ("w",)
    assert set(found.extra) == {"link", "more"} - {"link"}
    assert found.good == ("a/b", "empty")
    assert "cut: w (5 bytes, saved were 76800)" in str(found)


def test_verifying_a_directory_without_a_manifest_says_so(tmp_path):
    save(tmp_path / "m", manifest=False)
    found = verify(tmp_path / "m")
    assert not found
    assert "it has no manifest" in str(found)
    assert manifest_file.read_manifest(tmp_path / "m") is None
    with pytest.raises(StorageError, match="there is no directory"):
        verify(tmp_path / "none")


def test_without_checksums_contents_are_not_verified(tmp_path):
    save(tmp_path / "m", checksum=None)
    found = verify(tmp_path / "m")
    assert not found
    assert found.unchecked == ("a/b", "empty", "w")


def test_a_save_without_a_manifest_removes_the_outdated_manifest(tmp_path):
    save(tmp_path / "m")
    save(tmp_path / "m", {"w": b"other"}, manifest=False)
    assert manifest_file.read_manifest(tmp_path / "m") is None


def test_files_of_earlier_saves_stay_in_the_manifest(tmp_path):
    save(tmp_path / "m", FILES | {"gone": b"1"})
    (tmp_path / "m" / "gone").unlink()
    (tmp_path / "m" / "theirs").write_bytes(b"1")
    save(tmp_path / "m", {"w": b"other", "new": b"2"})
    found = verify(tmp_path / "m")
    assert found.good == ("a/b", "empty", "new", "w")
    assert found.extra == ("theirs",)


def test_files_of_others_beside_a_save_are_left_out_of_its_manifest(tmp_path):
    (tmp_path / "theirs").write_bytes(b"")
    save(tmp_path, {"net.a": b"1", "net.b": b"2"}, prefix=tmp_path / "net")
    save(tmp_path, {"net.a": b"3", "net.b": b"4"}, prefix=tmp_path / "net")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.a", "net.b", "net.pdmanifest", "theirs"]
    assert verify(tmp_path / "net")
    (tmp_path / "net.a").write_bytes(b"5")
    assert verify(tmp_path / "net").changed == ("net.a",)
    with pytest.raises(ValueError, match="is not in"):
        Transaction(tmp_path, prefix=tmp_path / "deeper" / "net")


def test_a_damaged_manifest_is_explained(tmp_path):
    """Proves S9."""
    save(tmp_path / "m")
    path = tmp_path / "m" / "__manifest__"
    good = path.read_bytes()
    dice = random.Random(2)
    for _ in range(200):
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        path.write_bytes(bad)
        found = verify(tmp_path / "m")
        assert not found
        assert "damaged" in str(found)
    path.write_bytes(good)
    assert verify(tmp_path / "m")


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../b", ""])
def test_names_that_leave_the_directory_are_refused(tmp_path, name):
    data = manifest.encode({name: Record(1, None, (0, 0))})
    with pytest.raises(FormatError, match="cannot be parsed"):
        manifest.decode(data)


@given(st.binary(max_size=300))
def test_a_manifest_with_other_contents_raises_format_error(data):
    with pytest.raises(FormatError):
        manifest.decode(data)
