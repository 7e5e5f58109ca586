"""Real Paddle 3.3.1 runs the models that are written here in its form.

PADDLELIKE_PADDLE331_PYTHON names an interpreter that has paddlepaddle 3.3.1.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError, UnsupportedError
from paddlelike.framework.codec.decode import decode_program
from paddlelike.interop.model_versions import convert_arrangement
from paddlelike.interop.paddle3.write import write_pir
from tests.helpers.fresh import fresh_programs
from tests.interop.real import PADDLE331
from tests.models.archive import read_archive, write_files
from tests.models.saved_layers import make_input, save_layer
from tests.zoo.layers import LAYERS

pytestmark = PADDLE331.needed


def test_our_models_give_the_recorded_results_in_paddle_3(tmp_path: Path) -> None:
    written, refused = {}, {}
    for name, files in read_archive("layers262").items():
        if "model.pdmodel" not in files:
            continue
        program = decode_program(files["model.pdmodel"])
        try:
            data = write_pir(program)
        except UnsupportedError as error:
            refused[name] = str(error)
            continue
        feeds = [op.output("Out")[0] for op in program.global_block().ops if op.type == "feed"]
        with np.load(io.BytesIO(files["io.npz"])) as arrays:
            recorded = dict(arrays)
        folder = tmp_path / name
        folder.mkdir()
        write_files({"inference.json": data}, folder)
        if "model.pdiparams" in files:
            write_files({"inference.pdiparams": files["model.pdiparams"]}, folder)
        np.savez(folder / "in.npz", **{feed: recorded[f"in{i}"] for i, feed in enumerate(sorted(feeds))})
        written[name] = recorded
    PADDLE331.run("driver331.py", {"folders": [str(tmp_path / name) for name in written]}, tmp_path)
    failed = json.loads((tmp_path / "failed.json").read_text())
    assert len(refused) <= 2, refused
    assert failed.keys() <= {"viterbi"}, failed  # its own kernel refuses the types of the recording
    for name in written.keys() - failed.keys():
        with np.load(tmp_path / name / "out.npz") as outs:
            for i, key in enumerate(outs.files):
                want = written[name][f"out{i}"]
                np.testing.assert_allclose(outs[key], want, rtol=2e-5, atol=2e-5, err_msg=name)
    assert len(written) - len(failed) >= 424


@pytest.mark.filterwarnings("ignore")
def test_layers_of_fluid_give_the_same_results_in_paddle_3(tmp_path: Path) -> None:
    """Without sequences, for which the feeds of this test have no LoD."""
    found = {}
    exe = fluid.Executor()
    for name, build in LAYERS.items():
        folder = tmp_path / name
        with fresh_programs(), fluid.scope_guard(fluid.Scope()):
            try:
                save_layer(build, folder / "old", exe)
                convert_arrangement(folder / "old", folder / "inference.json")
            except PaddlelikeError:
                continue  # no model for prediction, or an operator that is not written
            program, feeds, targets = fluid.io.load_inference_model(str(folder / "old"), exe)
            inputs = {one: program.global_block().var(one) for one in feeds}
            if any(var.lod_level for var in inputs.values()):
                continue
            feed = {one: make_input(var) for one, var in inputs.items()}
            np.savez(folder / "in.npz", **feed)
            found[name] = exe.run(program, feed=feed, fetch_list=targets)
    PADDLE331.run("driver331.py", {"folders": [str(tmp_path / name) for name in found]}, tmp_path)
    assert json.loads((tmp_path / "failed.json").read_text()) == {}
    assert len(found) >= 180
    for name, ours in found.items():
        with np.load(tmp_path / name / "out.npz") as theirs:
            for one, key in zip(ours, theirs.files, strict=True):
                if one is None:  # Fluid's answer for a tensor without elements
                    assert theirs[key].size == 0, name
                    continue
                assert theirs[key].shape == one.shape, name
                np.testing.assert_allclose(theirs[key], one, rtol=2e-5, atol=2e-5, err_msg=name)
