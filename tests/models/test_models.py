"""Models that Fluid 1.8.5 and Paddle 2.6.2 saved for prediction run here and give the same outputs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.opdef import registry
from tests.helpers.fresh import fresh_programs
from tests.models.archive import collect_types, find_names, read_archive, run_model, write_files
from tests.ops.harness.collect import PADDLE2

ARCHIVES = ("models185", "layers262", "spectra262")
#: float32 sums in another order than the real system's; log and exp of another library.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.mark.parametrize(
    ("archive", "name"), [(archive, name) for archive in ARCHIVES for name in sorted(read_archive(archive))]
)
def test_a_recorded_model_gives_its_outputs(archive: str, name: str, tmp_path: Path) -> None:
    files = read_archive(archive)[name]
    write_files(files, tmp_path)
    pairs = run_model(tmp_path, files)
    assert pairs
    for got, want in pairs:
        assert got.lod() == want.lod()
        ours, real = np.array(got), np.array(want)
        assert (ours.shape, ours.dtype) == (real.shape, real.dtype)
        if real.dtype.kind in "fc":
            np.testing.assert_allclose(ours, real, **CLOSE)
        else:
            np.testing.assert_array_equal(ours, real)


def test_test_models_use_every_paddle2_operator_except_the_listed() -> None:
    saved = [*read_archive("exports331").values(), *read_archive("pir_versions").values()]
    exports = (decode_program(files["inference.json"]) for files in saved)
    types = {op.type for program in exports for block in program.blocks for op in block.ops}
    for archive in ("layers262", "spectra262", "quantized262"):
        models = {name: files for name, files in read_archive(archive).items() if name != "operators"}
        types |= collect_types(models)
    later = {name.removesuffix(registry.LATER) for name in PADDLE2}
    recorded = ("fake_",)  # compared with both versions in tests/alike/operators
    unused = {t for t in later - types if not t.endswith(("@3", "_grad")) and not t.startswith(recorded)}
    assert unused == {"bernoulli", "memcpy", "share_data"}  # Paddle 3's bernoulli is read as a comparison


@pytest.mark.parametrize("name", ["ptq", "qat"])
def test_a_network_that_paddle2_quantized_computes_the_same(name: str, tmp_path: Path) -> None:
    files = read_archive("quantized262")[name]
    write_files(files, tmp_path)
    ((got, want),) = run_model(tmp_path, files)
    np.testing.assert_allclose(np.array(got), np.array(want), **CLOSE)


def test_quantization_steps_match_paddle2() -> None:
    exe = fluid.Executor()
    with np.load(io.BytesIO(read_archive("quantized262")["operators"]["ops.npz"])) as recorded:
        for i, (op, axis, bits, rounding) in enumerate(json.loads(str(recorded["cases"]))):
            x, scale = recorded[f"x{i}"], recorded[f"s{i}"]
            with fresh_programs():
                inputs = {"X": [fluid.data("x", x.shape)], "Scale": [fluid.data("s", scale.shape)]}
                block = fluid.default_main_program().global_block()
                outputs = {"Y": [block.create_var(name="y")]}
                attrs = {"quant_axis": axis, "bit_length": bits, "round_type": rounding}
                block.append_op(op, inputs, outputs, attrs)
                (found,) = exe.run(feed={"x": x, "s": scale}, fetch_list=["y"])
            np.testing.assert_array_equal(found, recorded[f"y{i}"], err_msg=f"{op} {axis} {bits} {rounding}")


@pytest.mark.parametrize("name", ["vision_roi_align", "vision_roi_pool"])
@pytest.mark.parametrize("counts", [[3], [1]])
def test_region_counts_that_do_not_match_are_refused(name: str, counts: list[int], tmp_path: Path) -> None:
    files = read_archive("layers262")[name]
    write_files(files, tmp_path)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe, *find_names(files))
        image, boxes = np.zeros((1, 2, 6, 6), "float32"), np.array([[0, 0, 4, 4]] * 2, "float32")
        feed = dict(zip(feeds, (image, boxes, np.array(counts, "int32")), strict=True))
        with pytest.raises(OperatorError, match="there are 1 images and 2 regions"):
            exe.run(program, feed=feed, fetch_list=targets)
