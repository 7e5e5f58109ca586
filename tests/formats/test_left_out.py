"""What a file holds is read, or named in the report and in the exit status."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from paddlelike import inspection
from paddlelike.errors import LoadError, PaddlelikeError
from paddlelike.formats import registry
from paddlelike.formats.dynet import LOOKUP_PARAMETER, PARAMETER, Block, encode
from paddlelike.formats.entry import list_left_out

GOLDEN = Path(__file__).parents[1] / "golden/nested"
REAL = sorted(path.name for path in GOLDEN.iterdir() if path.suffix != ".json")


def list_all(data: bytes) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Return the shapes of what is read of a file, and what is named."""
    form = registry.sniff(data)
    assert form is not None
    entries = form.entries(data)  # type: ignore[arg-type]
    read = {entry.name: entry.shape for entry in entries}
    for entry in entries:
        form.read(data, entry)  # type: ignore[arg-type]
    return read, {one.name: one.what for one in list_left_out(entries) if one.is_value}


@pytest.mark.parametrize("name", REAL)
def test_every_value_that_the_real_system_loads_is_read_or_named(name: str) -> None:
    listed = json.loads((GOLDEN / f"{name}.json").read_text())
    listed = {path: shape for path, shape in listed.items() if "StructuredToParameterName@@" not in path}
    read, named = list_all((GOLDEN / name).read_bytes())
    if list(listed) == [""]:  # one tensor, which has the name that Paddle gave it
        assert [list(shape) for shape in read.values()] == list(listed.values())
        return
    arrays = {path: tuple(shape) for path, shape in listed.items() if shape is not None}
    foreign = {path for path in arrays if path.startswith(("float8", "uint"))}
    assert read == {path: shape for path, shape in arrays.items() if path not in foreign}
    assert set(named) >= {path for path, shape in listed.items() if shape is None} | foreign


CNTK = sorted(
    path.stem for path in (GOLDEN.parent / "cntk").glob("*.npz") if path.with_suffix(".model").exists()
)


@pytest.mark.parametrize("name", CNTK)
def test_every_parameter_and_constant_that_cntk_lists_is_read(name: str) -> None:
    data = (GOLDEN.parent / "cntk" / f"{name}.model").read_bytes()
    form = registry.sniff(data)
    assert form is not None
    read = {entry.name: np.array(form.read(data, entry)) for entry in form.entries(data)}  # type: ignore[arg-type]
    with np.load(GOLDEN.parent / "cntk" / f"{name}.npz") as listed:
        for key in (key for key in listed.files if key[:2] in ("p:", "c:")):
            np.testing.assert_array_equal(read[key[2:]], listed[key], err_msg=key)


LEAVES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.text(max_size=5),
    st.booleans(),
    st.floats(allow_nan=False),
    st.sampled_from(
        [np.ones(2), np.zeros((1, 3), "int32"), np.array(["a"]), np.float32(2), np.array([None])]
    ),
)
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner, inner),
        st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    ),
    max_leaves=12,
)


def find_leaves(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, one in items for k, v in find_leaves(one, f"{path}/{key}".strip("/")).items()}
    return {path: value}


@given(st.dictionaries(st.text("xyz", min_size=1, max_size=2), NESTED, max_size=4), st.sampled_from((2, 4)))
def test_every_leaf_of_a_pickle_is_read_or_named(held: dict[str, Any], protocol: int) -> None:
    leaves = find_leaves(held, "")
    read, named = list_all(pickle.dumps(held, protocol))
    good = {path: value.shape for path, value in leaves.items() if is_number(value)}
    assert read == good
    assert named.keys() == leaves.keys() - good.keys()


def test_every_pickle_of_a_file_with_several_is_read_or_named(tmp_path: Path) -> None:
    with (tmp_path / "p.save").open("wb") as file:
        for one in (np.ones((3, 2), "f4"), [np.arange(4)], {"epoch": 3, "b": np.zeros(1), "none": []}):
            pickle.dump(one, file, 2)
    report = fluid.convert(tmp_path / "p.save", tmp_path / "p.npz")
    assert report.names == ("0", "1/0", "2/b")
    assert [(one.name, one.what, one.is_value) for one in report.left_out] == [
        ("2/epoch", "3", True),
        ("2/none", "[]", False),
    ]


def is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc"


KINDS = ["f4", "f8", "f2", "i1", "i8", "?", "c8", "u1", "u2", "u4", "u8", "S3", "f4,i4"]
HELD = {"f4", "f8", "f2", "i1", "i8", "?", "c8", "u1"}


@given(st.lists(st.sampled_from(KINDS), unique=True, max_size=len(KINDS)))
@settings(max_examples=40, deadline=None)
def test_every_array_of_npz_and_hdf5_is_read_or_named(kinds: list[str]) -> None:
    arrays = {f"in/{kind}": np.zeros(2, kind) for kind in kinds}
    npz, hdf5 = io.BytesIO(), io.BytesIO()
    np.savez(npz, w=np.ones(1), **arrays)
    with h5py.File(hdf5, "w") as file:
        for name, array in {"w": np.ones(1), **arrays}.items():
            file[name] = array
    for data in (npz.getvalue(), hdf5.getvalue()):
        read, named = list_all(data)
        assert sorted(read) == sorted(["w", *(f"in/{kind}" for kind in kinds if kind in HELD)])
        assert sorted(named) == sorted(f"in/{kind}" for kind in kinds if kind not in HELD)


TYPES = {"F32": 4, "F64": 8, "BF16": 2, "I8": 1, "BOOL": 1, "U16": 2, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1}


@given(st.lists(st.sampled_from(sorted(TYPES)), unique=True))
@settings(max_examples=40, deadline=None)
def test_every_tensor_of_safetensors_is_read_or_named(kinds: list[str]) -> None:
    header, at = {}, 0
    for kind in kinds:
        header[kind] = {"dtype": kind, "shape": [3], "data_offsets": [at, at + 3 * TYPES[kind]]}
        at += 3 * TYPES[kind]
    text = json.dumps(header).encode()
    read, named = list_all(len(text).to_bytes(8, "little") + text + bytes(at))
    assert sorted([*read, *named]) == sorted(kinds)
    assert {kind for kind in kinds if kind[:2] in ("F8", "U1", "U6")} == set(named)


@given(st.lists(st.sampled_from(KINDS), unique=True))
@settings(max_examples=40, deadline=None)
def test_every_array_of_a_theano_bundle_is_read_or_named(kinds: list[str]) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        bundle.writestr("pkl", pickle.dumps({}))
        for kind in ["w", *kinds]:
            array = io.BytesIO()
            np.save(array, np.zeros(2, "f4" if kind == "w" else kind))
            bundle.writestr(kind, array.getvalue())
    read, named = list_all(file.getvalue())
    assert sorted(read) == sorted(["w", *(kind for kind in kinds if kind in HELD)])
    assert sorted(named) == sorted(kind for kind in kinds if kind not in HELD)


@given(st.lists(st.sampled_from(range(1, 24)), unique=True))
@settings(max_examples=40, deadline=None)
def test_every_initializer_of_an_onnx_file_is_read_or_named(kinds: list[int]) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    tensors = []
    for kind in kinds:
        tensor = onnx.TensorProto(name=str(kind), data_type=kind, dims=[2])
        if kind == onnx.TensorProto.STRING:
            tensor.string_data.extend([b"a", b"b"])
        else:
            half = kind in (21, 22, 23)  # two elements a byte
            size = 1 if half else onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize * 2
            tensor.raw_data = bytes(size)
        tensors.append(tensor)
    graph = onnx.helper.make_graph([], "g", [], [], tensors)
    model = onnx.helper.make_model(graph, ir_version=10)
    model.graph.doc_string = "a model"
    read, named = list_all(model.SerializeToString())
    assert sorted([*read, *named], key=int) == sorted(map(str, kinds), key=int)
    assert {"1", "10", "11", "16"} & set(map(str, kinds)) <= read.keys()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_every_block_of_a_dynet_file_is_read_and_every_gradient_named(kinds: list[Any]) -> None:
    values = np.ones((2, 3), "float32")
    blocks = [
        Block(LOOKUP_PARAMETER if is_lookup else PARAMETER, f"/w{i}", values, values if full else None)
        for i, (is_lookup, full) in enumerate(kinds)
    ]
    entries = registry.find("dynet").entries(b"".join(encode(blocks)))
    assert [entry.name for entry in entries] == [block.name for block in blocks]
    named = [one.name for one in list_left_out(entries)]
    assert named == [block.name for block in blocks if block.gradients is not None]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paddlelike", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_exit_status_of_convert_is_1_where_values_are_left_out(tmp_path: Path) -> None:
    left = run("convert", GOLDEN / "paddle331-ck.pdparams", tmp_path / "a.npz")
    assert left.returncode == 1
    assert "'opt/LR_Scheduler/last_epoch' (1)" in left.stderr
    assert run("convert", GOLDEN / "paddle262-layer.pdparams", tmp_path / "b.npz").returncode == 0
    assert run("convert", GOLDEN / "paddle262-adam.pdopt", tmp_path / "c.pdopt").returncode == 0
    assert run("inspect", GOLDEN / "torch-ck.pt").returncode == 1
    shown = run("inspect", GOLDEN / "paddle331-ck.pdparams")
    assert (shown.returncode, "epoch = 3" in shown.stdout) == (0, True)
    assert "epoch (3)" in run("doctor", GOLDEN / "paddle331-ck.pdparams").stdout


def test_rename_and_rules_accept_names_of_nested_values(tmp_path: Path) -> None:
    source = GOLDEN / "paddle331-ck.pdparams"
    renamed = fluid.convert(source, tmp_path / "a.npz", rename={"model/0.weight": "w"})
    assert "w" in renamed.names
    rules = fluid.io.Rules().skip("opt/*").skip("ema/*").rename("model/*", "*")
    chosen = fluid.convert(source, tmp_path / "b", rules=rules)
    assert sorted(chosen.names) == ["0.bias", "0.weight", "1._mean", "1._variance", "1.bias", "1.weight"]
    assert not chosen
    values = fluid.load_program_state(tmp_path / "b")
    assert values["0.weight"].shape == (2, 3)


def test_a_pickle_keeps_the_schedule_and_the_names(tmp_path: Path) -> None:
    for name in ("paddle262-adam.pdopt", "paddle262-layer.pdparams"):
        report = fluid.convert(GOLDEN / name, tmp_path / name)
        assert report.left_out == ()
        before, after = (pickle.loads((folder / name).read_bytes()) for folder in (GOLDEN, tmp_path))
        assert before.keys() == after.keys()
        for key, value in before.items():
            np.testing.assert_equal(after[key], value)


def test_loads_name_the_values_they_leave_out(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match=r"adam.* holds values that no variable can hold: .*LR_Scheduler/last_epoch"
    ):
        state = fluid.load_program_state(tmp_path / "adam") if make_pair(tmp_path) else {}
    assert "linear_0.w_0_moment1_0" in state
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
        fluid.layers.create_parameter([2], "float32", name="w")
        fluid.layers.create_parameter([2], "float32", name="odd")
        exe = fluid.Executor()
        exe.run(startup)
        np.savez(tmp_path / "m.npz", w=np.ones(2, "f4"), odd=np.ones(2, "f4"), more=np.ones(2, "u2"))
        report = fluid.io.load_vars(exe, str(tmp_path), main, filename="m.npz")
        assert any("'more' (an array of uint16)" in note for note in report.notes)
        np.savez(tmp_path / "m.npz", w=np.ones(2, "f4"), odd=np.ones(2, "u2"))
        with pytest.raises(LoadError, match="an array of uint16, which no variable can hold"):
            fluid.io.load_vars(exe, str(tmp_path), main, filename="m.npz")


def make_pair(folder: Path) -> bool:
    """Put the two files of an optimizer and a layer under one prefix."""
    (folder / "adam.pdopt").write_bytes((GOLDEN / "paddle262-adam.pdopt").read_bytes())
    (folder / "adam.pdparams").write_bytes((GOLDEN / "paddle262-layer.pdparams").read_bytes())
    return True


def test_a_file_without_convertible_values_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "texts.npz", labels=np.array(["a"]))
    with pytest.raises(PaddlelikeError, match=r"it holds 'labels' \(an array of texts\)"):
        fluid.convert(tmp_path / "texts.npz", tmp_path / "texts")
    assert not (tmp_path / "texts").exists()
    found = inspection.inspect(tmp_path / "texts.npz")
    assert not found
    assert found.to_dict()["left_out"]["texts.npz"][0]["name"] == "labels"
