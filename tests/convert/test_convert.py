"""The converter: every pair of formats, exactly, in little memory, all or nothing."""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
import paddlelike.collection as dy
from paddlelike.core import LoDTensor, SelectedRows
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from paddlelike.formats import registry
from paddlelike.formats.base import FileFormat
from paddlelike.formats.hdf5 import Hdf5
from paddlelike.formats.safetensors import Safetensors

BUILT_IN = (
    "directory",
    "combined",
    "state",
    "fluid_save",
    "npz",
    "theano",
    "safetensors",
    "paddle_distributed",
    "safetensors_folder",
    "hdf5",
    "torch",
    "dynet",
    "cntk",
)

VALUES: Mapping[str, np.ndarray] = {
    "enc/W": np.arange(6, dtype="float32").reshape(2, 3),
    "b": np.float64([0.1, -0.0, np.inf]),
    "ids": np.int64([[2**62], [-1]]),
    "flag": np.array([True, False]),
    "half": np.float16([0.5, 65504]),
    "small": np.arange(4, dtype="int8").reshape(2, 1, 2),
    "byte": np.uint8([0, 255]),
    "none": np.array(2.5, "float32"),
    "empty": np.zeros((0, 4), "float32"),
    "large": np.arange(30_000, dtype="float32").reshape(100, 300),
}


#: What a text file of DyNet can hold of these.
FOR_DYNET = {n: a for n, a in VALUES.items() if a.dtype == np.float32 and a.ndim}
#: What a file of CNTK can hold of these.
FOR_CNTK = {n: a for n, a in VALUES.items() if a.dtype.kind == "f" or a.dtype == np.int8}


def path_of(tmp_path: Path, name: str, stem: str) -> Path:
    known = registry.find(name)
    return tmp_path / (stem + known.suffixes[0] if isinstance(known, FileFormat) and known.suffixes else stem)


def write(name: str, values: Mapping[str, Any], path: Path) -> None:
    """Write values with the format itself, not with the converter."""
    written = registry.find(name).write(dict(sorted(values.items())))
    if not isinstance(written, Mapping):
        path.write_bytes(b"".join(written))
        return
    for file, buffers in written.items():
        target = Path(str(path) + file) if name == "fluid_save" else path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"".join(buffers))


def read(name: str, path: Path, names: list[str]) -> dict[str, Any]:
    """Read a target with its format itself."""
    target = path.parent / (path.name + ".back.npz")
    fluid.convert(path, target, names=None if registry.find(name).holds.names else names)
    with np.load(target) as found:
        return {key: found[key] for key in found.files}


PAIRS = list(itertools.product(BUILT_IN, BUILT_IN))


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_conversions_between_all_pairs_of_formats_are_exact(src: str, dst: str, tmp_path: Path) -> None:
    source, target = path_of(tmp_path, src, "source"), path_of(tmp_path, dst, "target")
    values = FOR_DYNET if "dynet" in (src, dst) else FOR_CNTK if "cntk" in (src, dst) else VALUES
    write(src, values, source)
    names = None if registry.find(src).holds.names else list(values)
    report = fluid.convert(source, target, dst, names=names)
    assert (report.source_format, report.target_format) == (src, dst)
    assert sorted(report.names) == sorted(values)
    assert report.nbytes == sum(array.nbytes for array in values.values())
    found = read(dst, target, list(values))
    assert found.keys() == values.keys()
    for name, array in values.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name
    left = {p.name for p in tmp_path.iterdir()} - {"target.back.npz", target.name + ".back.npz"}
    assert not [name for name in left if not name.startswith(("source", "target"))]


def test_every_built_in_format_is_in_the_table() -> None:
    assert set(BUILT_IN) <= set(registry.all_formats())


def test_fluid_loads_a_converted_directory(tmp_path: Path) -> None:
    """From a safetensors file into a program, by the loads that scripts use."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr="w", bias_attr="b")
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        values = {"model.weight": np.ones((3, 2), "float32"), "model.bias": np.float32([1, 2])}
        write("safetensors", values, tmp_path / "m.safetensors")
        fluid.convert(
            tmp_path / "m.safetensors", tmp_path / "dir", rename={"model.weight": "w", "model.bias": "b"}
        )
        fluid.io.load_params(exe, str(tmp_path / "dir"))
        np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("b").get_tensor()), [1, 2])


def test_real_paddle_files_convert(tmp_path: Path) -> None:
    golden = Path(__file__).parent.parent / "golden" / "mnist_conv_bn"
    report = fluid.convert(golden / "persistables", tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as found, np.load(golden / "values_after_startup.npz") as values:
        assert sorted(report.names) == sorted(values.files)
        assert all(found[name].shape == values[name].shape for name in values.files)
    fluid.convert(tmp_path / "m.npz", tmp_path / "back")
    for file in (golden / "persistables").iterdir():
        assert (tmp_path / "back" / file.name).read_bytes() == file.read_bytes()


def test_values_that_the_target_cannot_hold_are_refused_before_writing(tmp_path: Path) -> None:
    values = {
        "lod": LoDTensor(np.ones((3, 1), "float32"), [[0, 1, 3]]),
        "rows": SelectedRows([1], 4, np.ones((1, 2), "float32")),
        "c": np.complex64([1j]),
        "ok": np.ones(2, "float32"),
    }
    write("directory", values, tmp_path / "dir")
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(FormatError, match=r"'lod': a tensor with 1 LoD levels.*'rows': SelectedRows"):
        fluid.convert(tmp_path / "dir", tmp_path / "m.npz")
    with pytest.raises(FormatError, match=r"'c': an array of COMPLEX64"):
        fluid.convert(tmp_path / "dir", tmp_path / "m.safetensors")
    fluid.convert(tmp_path / "dir", tmp_path / "again")  # a directory holds all of them
    assert {p.name for p in (tmp_path / "again").iterdir()} >= set(values)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "again") == before


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write("npz", {"a": np.ones(2), "b": np.zeros(2)}, tmp_path / "m.npz")
    for rename, text in (({"a": "b"}, "gives two variables the name 'b'"), ({"c": "d"}, "does not: 'c'")):
        with pytest.raises(LoadError, match=text):
            fluid.convert(tmp_path / "m.npz", tmp_path / "out", rename=rename)
    write("combined", {"a": np.ones(2)}, tmp_path / "m.pdiparams")
    with pytest.raises(LoadError, match="which stores no names"):
        fluid.convert(tmp_path / "m.pdiparams", tmp_path / "out")
    with pytest.raises(LoadError, match="holds 1 variables, names= has 2"):
        fluid.convert(tmp_path / "m.pdiparams", tmp_path / "out", names=["a", "b"])
    assert not (tmp_path / "out").exists()
    report = fluid.convert(tmp_path / "m.npz", tmp_path / "out", rename=str.upper)
    assert report.names == ("A", "B")


def test_element_types_are_converted_on_request(tmp_path: Path) -> None:
    write("npz", {"w": np.float64([0.1, 2]), "ids": np.int64([7])}, tmp_path / "m.npz")
    fluid.convert(tmp_path / "m.npz", tmp_path / "half.npz", dtype="float16")
    with np.load(tmp_path / "half.npz") as found:
        np.testing.assert_array_equal(found["w"], np.float16([0.1, 2]))
        assert found["ids"].dtype == np.int64
    with pytest.raises(FormatError, match="float16, float32 or float64"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "int.npz", dtype="int8")


def test_bfloat16_is_converted_on_request(tmp_path: Path) -> None:
    bits = np.uint16([0x3F80, 0xC0A0, 0x7F80])  # 1, -5 and infinity
    write("safetensors", {"w": bits, "scalar": bits[1].reshape(())}, tmp_path / "m.safetensors")
    with pytest.raises(FormatError, match=r"'w': an array of BF16.*\n  hint: .*: dtype='float32'"):
        fluid.convert(tmp_path / "m.safetensors", tmp_path / "m.npz")
    fluid.convert(tmp_path / "m.safetensors", tmp_path / "m.npz", dtype="float32")
    with np.load(tmp_path / "m.npz") as found:
        assert {name: array.dtype for name, array in found.items()} == {"w": "float32", "scalar": "float32"}
        assert (found["w"].tolist(), found["scalar"].tolist()) == ([1, -5, np.inf], -5)
    fluid.convert(tmp_path / "m.safetensors", tmp_path / "same.safetensors", dtype="bfloat16")
    assert (tmp_path / "same.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()


def test_an_existing_target_is_kept_without_overwrite(tmp_path: Path) -> None:
    write("npz", {"w": np.ones(2)}, tmp_path / "m.npz")
    (tmp_path / "out.safetensors").write_text("mine")
    with pytest.raises(SaveError, match="exists"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "out.safetensors")
    assert (tmp_path / "out.safetensors").read_text() == "mine"
    fluid.convert(tmp_path / "m.npz", tmp_path / "out.safetensors", overwrite=True)
    assert registry.find("safetensors").entries((tmp_path / "out.safetensors").read_bytes())


def test_unknown_sources_and_targets_are_explained(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no such file or directory"):
        fluid.convert(tmp_path / "none", tmp_path / "out")
    write("npz", {"w": np.ones(2)}, tmp_path / "model.npz")
    with pytest.raises(MissingFileError, match=r"did you mean 'model\.npz'\?"):
        fluid.convert(tmp_path / "modle.npz", tmp_path / "out")
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(FormatError, match="a PNG image"):
        fluid.convert(tmp_path / "picture", tmp_path / "out")
    write("npz", {"w": np.ones(2)}, tmp_path / "m.npz")
    with pytest.raises(FormatError, match=r"no format has the suffix '.xyz'"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "out.xyz")
    with pytest.raises(FormatError, match="no format is called 'tensorflow'"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "out", "tensorflow")


def test_progress_ends_with_all_bytes(tmp_path: Path) -> None:
    write("npz", VALUES, tmp_path / "m.npz")
    seen: list[tuple[int, int]] = []
    fluid.convert(
        tmp_path / "m.npz",
        tmp_path / "m.safetensors",
        progress=lambda done, total: seen.append((done, total)),
    )
    total = sum(array.nbytes for array in VALUES.values())
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_target_may_be_a_format_object_with_options(tmp_path: Path) -> None:
    write("npz", {"w": np.ones(2)}, tmp_path / "m.npz")
    made = Safetensors(metadata=(("made_by", "me"),))
    fluid.convert(tmp_path / "m.npz", tmp_path / "m.safetensors", made)
    assert Safetensors.read_metadata((tmp_path / "m.safetensors").read_bytes()) == {"made_by": "me"}
    with pytest.raises(FormatError, match="neither the name of a format nor a format"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "x", 5)  # type: ignore[arg-type]


def test_attributes_of_hdf5_are_written_or_refused(tmp_path: Path) -> None:  # H11
    h5py = pytest.importorskip("h5py", reason="h5py is in the extra 'hdf5'")
    write("npz", {"w": np.ones(2)}, tmp_path / "m.npz")
    fluid.convert(tmp_path / "m.npz", tmp_path / "m.h5", Hdf5(attributes=(("epoch", 3), ("by", "me"))))
    with h5py.File(tmp_path / "m.h5") as file:
        assert dict(file.attrs) == {"epoch": 3, "by": "me"}
    for value in (np.zeros(20_000), object()):
        with pytest.raises(FormatError, match="the attribute 'big' cannot be kept"):
            fluid.convert(tmp_path / "m.npz", tmp_path / "n.h5", Hdf5(attributes=(("big", value),)))
    assert not (tmp_path / "n.h5").exists()


def test_names_that_dynet_cannot_hold_are_refused(tmp_path: Path) -> None:  # D08
    write("npz", {"a b": np.ones(2, "float32"), "c": np.ones(2, "float32")}, tmp_path / "m.npz")
    with pytest.raises(FormatError, match="cannot hold 'a b': a name that is empty or has blanks"):
        fluid.convert(tmp_path / "m.npz", tmp_path / "m.model", "dynet")
    assert not (tmp_path / "m.model").exists()
    fluid.convert(tmp_path / "m.npz", tmp_path / "m.model", "dynet", rename={"a b": "/a", "c": "/c"})
    collection = dy.ParameterCollection()
    assert collection.load_param(tmp_path / "m.model", "/a").as_array().tolist() == [1, 1]


@pytest.mark.parametrize("target", ["m.npz", "m"])
def test_a_conversion_holds_few_files_open(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlelike.interop.spool._MOST_FILES", 4)
    monkeypatch.setattr("paddlelike.interop.spool._REGION", 1 << 18)
    values = {f"w{i:03}": np.full(3000, i, "float32") for i in range(200)}  # more than a page each
    np.savez_compressed(tmp_path / "packed.npz", **values)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, before[1]))
    try:
        fluid.convert(tmp_path / "packed.npz", tmp_path / "directory", "directory")
        fluid.convert(tmp_path / "directory", tmp_path / target)
        fluid.convert(tmp_path / target, tmp_path / "again.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    found = Safetensors().read_all((tmp_path / "again.safetensors").read_bytes())
    assert list(found) == list(values)
    for name, array in values.items():
        np.testing.assert_array_equal(found[name].array, array)


MEMORY = """
import sys
import paddlelike as fluid

def look(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))

tiny, source, target, warm = sys.argv[1:]
fluid.convert(tiny, warm)  # whatever is imported, is
before = look("VmRSS")
fluid.convert(source, target)
print(look("VmHWM") - before)
"""


LARGE = [
    ("npz", "safetensors"),
    ("directory", "npz"),
    ("safetensors", "directory"),
    ("safetensors", "hdf5"),
    ("hdf5", "torch"),
    ("compressed", "directory"),
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(("src", "dst"), LARGE, ids=["-".join(pair) for pair in LARGE])
def test_a_conversion_needs_the_memory_of_the_largest_variable_and_a_constant(
    src: str, dst: str, tmp_path: Path
) -> None:
    """160 MiB in variables of 16 MiB: by the account of the operating system, all memory included."""
    arrays = {f"w{i}": np.full((4, 1 << 20), float(i), "float32") for i in range(10)}
    name = "npz" if src == "compressed" else src
    source = path_of(tmp_path, name, "source")
    if src == "compressed":
        np.savez_compressed(source, **arrays)
    else:
        write(name, arrays, source)
    write("npz", {"w": np.ones(2)}, tmp_path / "tiny.npz")
    target = path_of(tmp_path, dst, "target")
    paths = [str(p) for p in (tmp_path / "tiny.npz", source, target, tmp_path / f"warm{target.suffix}")]
    done = subprocess.run([sys.executable, "-c", MEMORY, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    largest = arrays["w0"].nbytes
    constant = 80 << 20  # pieces of up to four threads, pages not yet given back, the interpreter: 2 to 44
    assert int(done.stdout) < (2 if src == "compressed" else 1) * largest + constant


def test_a_lod_is_left_out_on_request(tmp_path: Path) -> None:
    rows = fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 2]], fluid.CPUPlace())
    write("directory", {"rows": rows, "w": np.ones(2)}, tmp_path / "source")
    with pytest.raises(FormatError, match="'rows': a tensor with 1 LoD levels") as caught:
        fluid.convert(tmp_path / "source", tmp_path / "target.npz")
    assert "convert(drop_lod=True)" in str(caught.value)
    report = fluid.convert(tmp_path / "source", tmp_path / "target.npz", drop_lod=True)
    assert report.without_lod == ("rows",)
    assert "their LoD was left out: rows" in str(report)
    with np.load(tmp_path / "target.npz") as found:
        np.testing.assert_array_equal(found["rows"], np.ones((3, 2)))
    kept = fluid.convert(tmp_path / "source", tmp_path / "copy", drop_lod=True)  # which has a LoD
    assert kept.without_lod == ()


@pytest.mark.parametrize(("name", "format"), [("/w", "dynet"), ("w", "cntk")])
def test_the_names_decide_which_system_a_model_file_is_written_for(
    name: str, format: str, tmp_path: Path
) -> None:  # noqa: A002
    np.savez(tmp_path / "source.npz", **{name: np.ones((2, 3), "float32")})
    assert fluid.convert(tmp_path / "source.npz", tmp_path / "net.model").target_format == format
    assert fluid.convert(tmp_path / "net.model", tmp_path / "back.npz").source_format == format


@pytest.mark.parametrize("form", ["combined", "bytes of somebody else"])
def test_a_file_of_several_variables_in_a_directory_is_refused(tmp_path: Path, form: str) -> None:
    """Else all but the first variable would be left out in silence."""
    folder, values = tmp_path / "model", {"a": np.float32([1, 2]), "b": np.float32([3])}
    write("directory", values, folder)
    if form == "combined":
        write("combined", values, folder / "b")
    else:
        (folder / "b").write_bytes((folder / "b").read_bytes() + b"more")
    with pytest.raises(LoadError, match=r"b in .*model holds \d+ bytes after its variable"):
        fluid.convert(folder, tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()
