"""Damaged files are not converted: the copy's own checksums would fit the damaged values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import FormatError, LoadError
from paddlelike.inspection.diagnosis import diagnose
from paddlelike.interop.convert import convert
from paddlelike.interop.repack import merge, prune, split
from paddlelike.io import asynchronous
from paddlelike.io.report import SaveReport

#: Numbers whose bytes are ASCII, which pickles hold as they are.
W = np.frombuffer(bytes(range(32, 128)), "float32").reshape(4, 6)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A network, saved as a directory, a combined file, pickles and a model for prediction."""
    main = fluid.Program()
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        w = fluid.layers.create_parameter([4, 6], "float32", name="w")
        out = fluid.layers.matmul(x, w)
        fluid.global_scope().var("w").get_tensor().set(W)
        fluid.io.save_params(exe, str(tmp_path / "each"), main)
        fluid.io.save_params(exe, str(tmp_path / "all"), main, filename="params")
        fluid.save(main, str(tmp_path / "net"))
        fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [out], exe, main)
        (tmp_path / "fetch").write_text(out.name)
    return tmp_path


def damage(path: Path) -> None:
    """Flip a bit of an element of w."""
    data = bytearray(path.read_bytes())
    data[data.index(W.tobytes()) + 40] ^= 16
    path.write_bytes(data)


Act = Callable[[Path, Path, bool], object]

WAYS: dict[str, tuple[str, Act]] = {
    "convert a directory": ("each/w", lambda at, to, v: convert(at / "each", to / "w.npz", verify=v)),
    "convert a file": (
        "each/w",
        lambda at, to, v: convert(at / "each" / "w", to / "w.npz", names=["w"], verify=v),
    ),
    "convert a combined file": (
        "all/params",
        lambda at, to, v: convert(at / "all" / "params", to / "w.npz", names=["w"], verify=v),
    ),
    "convert a prefix": ("net.pdparams", lambda at, to, v: convert(at / "net", to / "w.npz", verify=v)),
    "convert a pickle": (
        "net.pdparams",
        lambda at, to, v: convert(at / "net.pdparams", to / "w.npz", verify=v),
    ),
    "merge": ("each/w", lambda at, to, v: merge(at / "each", to / "new", verify=v)),
    "split": ("all/params", lambda at, to, v: split(at / "all", to / "new", verify=v)),
    "prune": (
        "model/w",
        lambda at, to, v: prune(at / "model", to / "new", None, [(at / "fetch").read_text()], verify=v),
    ),
    "convert a model to ONNX": (
        "model/w",
        lambda at, to, v: convert(at / "model", to / "m.onnx", verify=v),
    ),
}


@pytest.mark.parametrize(
    "way", [pytest.param(one, marks=pytest.mark.slow if "ONNX" in one else ()) for one in WAYS]
)
def test_damaged_values_are_not_copied(saved: Path, tmp_path: Path, way: str) -> None:
    file, act = WAYS[way]
    for name in ("good", "bad", "anyway"):
        (tmp_path / name).mkdir()
    act(saved, tmp_path / "good", True)
    damage(saved / file)
    with pytest.raises(LoadError, match="its bytes are not those that were saved"):
        act(saved, tmp_path / "bad", True)
    assert list((tmp_path / "bad").iterdir()) == []
    act(saved, tmp_path / "anyway", False)
    good, anyway = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("good", "anyway")
    )
    assert good.keys() == anyway.keys()
    assert good != anyway


@pytest.mark.parametrize("suffix", ["npz", "pt"])
def test_the_checksums_of_zip_files_are_compared(saved: Path, suffix: str) -> None:
    path = saved / f"w.{suffix}"
    convert(saved / "each", path)
    convert(path, saved / "good.safetensors")
    damage(path)
    with pytest.raises(LoadError, match="is damaged: its CRC-32 is"):
        convert(path, saved / "bad.safetensors")
    program, exe = fluid.Program(), fluid.Executor()
    program.global_block().create_var(name="w", shape=[4, 6], dtype="float32", persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(LoadError, match="is damaged: its CRC-32 is"):
            fluid.io.load_persistables(exe, str(saved), program, filename=path.name)
        assert fluid.io.load_persistables(exe, str(saved), program, filename=path.name, verify=False)


def test_a_zip_file_with_contradicting_member_names_is_refused(saved: Path) -> None:
    path = saved / "w.npz"
    convert(saved / "each", path)
    data = path.read_bytes()
    path.write_bytes(data[:-100] + data[-100:].replace(b"w.npy", b"v.npy"))
    with pytest.raises(FormatError, match=r"'v.npy' is called b'w.npy' in its own header"):
        convert(path, saved / "bad.safetensors")


@pytest.mark.parametrize("form", ["each", "each/w", "net", "net.pdparams"])
def test_doctor_finds_damage_in_every_format(saved: Path, form: str) -> None:
    assert not [one for one in diagnose(saved / form).findings if one.level == "error"]
    damage(saved / {"each": "each/w", "net": "net.pdparams"}.get(form, form))
    (found,) = [one for one in diagnose(saved / form).findings if one.level == "error"]
    assert "was saved" in found.what or "were saved" in found.what


def test_a_missing_saved_file_is_reported(saved: Path) -> None:
    (saved / "model" / "w").unlink()
    with pytest.warns(UserWarning, match="lacks files that were saved there: w"), pytest.raises(LoadError):
        merge(saved / "model", saved / "new")


def test_a_conversion_waits_for_a_running_save(saved: Path) -> None:
    gate = threading.Event()

    def work() -> SaveReport:
        assert gate.wait(30)
        return SaveReport("each")

    pending = asynchronous.start_save("each", work)
    threading.Timer(0.2, gate.set).start()
    convert(saved / "each", saved / "w.npz")
    assert pending.done()
