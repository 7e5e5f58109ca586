"""Models of Paddle 2.6.2 and of Paddle 3.3.1 as directories of Fluid 1.8: 1.8.5 computes the same."""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.environment import PADDLE_VERSION
from paddlelike.interop.fluid18 import make_fluid18
from paddlelike.interop.model_versions import convert_arrangement
from tests.helpers.fresh import fresh_programs
from tests.models.archive import Files, read_archive, run_model, write_files

MODELS = read_archive("layers262")
LATER = {
    f"{archive}-{name}": files
    for archive in ("models331", "exports331")
    for name, files in read_archive(archive).items()
}

#: Reads every directory of a folder, and compares what Fluid computes with what the other Paddle did; each in
#: a process of its own: after some hundred models Fluid 1.8.5 ends by a segmentation fault.
RUN_185 = """
import os, sys
import numpy as np
import paddle.fluid as fluid
for name in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], name)
    arrays = np.load(os.path.join(folder, "io.npz"))
    values = "__params__" if os.path.exists(os.path.join(folder, "__params__")) else None
    if os.fork():
        if os.wait()[1]:
            print(name, "it died", flush=True)  # else each later process prints it again
        continue
    try:
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            program, feeds, fetches = fluid.io.load_inference_model(folder, exe, params_filename=values)
            feed = {}
            for index, one in enumerate(feeds):
                feed[one] = tensor = fluid.LoDTensor()
                tensor.set(arrays["in%d" % index], exe.place)
                lod = [arrays[key].tolist() for key in sorted(arrays) if key.startswith("in%d@lod" % index)]
                tensor.set_lod(lod)
            outs = exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
        for index, out in enumerate(outs):
            wanted = arrays["out%d" % index]
            np.testing.assert_allclose(np.array(out).reshape(wanted.shape), wanted, 2e-5, 2e-5)
    except Exception as error:
        print(name, str(error).strip().replace("\\n", " ")[-200:])
    else:
        print("same")
    sys.stdout.flush()
    os._exit(0)
"""


def split_ports(files: Files) -> tuple[Files, Files]:
    return {k: v for k, v in files.items() if k != "io.npz"}, {"io.npz": files["io.npz"]}


def convert_back(name: str, folder: Path) -> None:
    """Write a model of Paddle 2.6.2 or 3.3.1 as a directory of Fluid 1.8, its ports beside it."""
    model, ports = split_ports((MODELS | LATER)[name])
    (folder / "2").mkdir(parents=True)
    write_files(model, folder / "2")
    program = "model.pdmodel" if name in MODELS else "inference.json"
    convert_arrangement(folder / "2" / program, folder / "1")
    write_files(ports, folder / "1")


def run_back(folder: Path) -> list[tuple[Any, Any]]:
    files = {path.name: path.read_bytes() for path in (folder / "1").iterdir()}
    values = '"__params__"' if "__params__" in files else "null"
    return run_model(folder / "1", files | {"files.json": f'["__model__", {values}]'.encode()})


def check(name: str, folder: Path) -> None:
    convert_back(name, folder)
    program = decode_program((folder / "1" / "__model__").read_bytes())
    assert program.paddle_version == PADDLE_VERSION
    for got, want in run_back(folder):
        assert np.array(got).shape == (np.array(want).shape or (1,))
        np.testing.assert_allclose(np.array(got), np.array(want), rtol=2e-5, atol=2e-5)  # other kernels


@pytest.mark.parametrize(
    "name",
    ["batch_norm2d", "cond", "convnet_traced", "layer_norm", "linear", "mean", "topk", "upsample_bilinear"],
)
def test_a_directory_of_fluid_computes_the_same(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


#: What real Fluid 1.8.5 does not run on a CPU, or computes otherwise.
DIFFERENT = {
    "exports331-float16": "has no kernel of float16",
    "exports331-idx_slice_t": "is fed a number without dims",
    "exports331-matrix_nms": "has no empty result",
    "exports331-sum_of_bool": "has no sum of truth values",
    "exports331-take_clip": "has no clip of whole numbers",
    "exports331-switch": "is fed a number without dims",
    "models331-f16": "has no kernel of float16",
}


@pytest.mark.slow
def test_every_model_exported_to_fluid_computes_the_same_or_is_refused(tmp_path: Path) -> None:
    refused = 0
    for name in sorted(MODELS):
        try:
            check(name, tmp_path / name)
        except UnsupportedError:
            refused += 1
    assert len(MODELS) - refused >= 250


@pytest.mark.slow
def test_real_fluid_opens_exported_models(tmp_path: Path) -> None:
    python = os.environ.get("PADDLELIKE_FLUID185_PYTHON")
    if python is None:
        pytest.skip("PADDLELIKE_FLUID185_PYTHON names no interpreter of Paddle Fluid 1.8.5")
    (tmp_path / "all").mkdir()
    for name in sorted(MODELS | LATER):
        try:
            convert_back(name, tmp_path / "each" / name)
        except UnsupportedError:
            continue
        (tmp_path / "each" / name / "1").rename(tmp_path / "all" / name)
    command = [python, "-c", RUN_185, str(tmp_path / "all")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    names = {one.name for one in (tmp_path / "all").iterdir()}
    told = done.stdout.splitlines()
    differ = {one for one in names if re.search(rf"^{one} |{one} it died", done.stdout, re.MULTILINE)}
    drawn = {one for one in differ if re.search("331-drawn_|_seed$", one)}  # its random numbers are others
    assert differ - drawn - {"models331-norms"} == set(DIFFERENT)  # which now and then dies
    same = sum(line.endswith("same") for line in told)  # behind what the engine wrote on the line
    assert same == len(names) - len(differ)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("lstm", "rnn"),
        ("cumsum_all", "cumsum with flatten=True"),
        ("dot", r"dot of shape \[3\], in Fluid \[3, 1\]"),
        ("equal", "equal: X has shape"),
        ("mod_int", "elementwise_mod"),
        ("roll_flat", r"roll with axis=\[\]"),
        ("softplus_beta", "softplus with beta=2.0; softplus with threshold=3.0"),
        ("vision_roi_pool", "roi_pool with RoisNum"),
    ],
)
def test_operators_that_fluid_lacks_are_named(name: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        make_fluid18(decode_program(MODELS[name]["model.pdmodel"]))


def test_a_program_of_fluid_stays_as_it_is() -> None:
    program = decode_program(read_archive("models185")["convnet"]["__model__"])
    assert make_fluid18(program) is program


def test_average_pools_that_paddle_versions_compute_differently_are_refused(tmp_path: Path) -> None:
    """Real 1.8.5 divides by the whole window, real 2.6.2 and 3.3.1 by its part within the padding."""
    program = decode_program(MODELS["avg_pool2d_inclusive"]["model.pdmodel"])
    make_fluid18(program)
    (pool,) = (op for op in program.global_block().ops if op.type == "pool2d")
    pool.attrs["ceil_mode"] = True
    with pytest.raises(UnsupportedError, match="pool2d with exclusive=False and ceil_mode=True"):
        make_fluid18(program)
    for size, target in ((8, ".pdmodel"), (8, ".json"), (9, ".pdmodel"), (9, ".json")):
        folder = tmp_path / f"{size}{target}"
        with fresh_programs():
            x = fluid.data("x", [1, 2, size, size])
            out = fluid.layers.pool2d(x, 3, "avg", 2, ceil_mode=True, exclusive=False)
            fluid.io.save_inference_model(str(folder), ["x"], [out], fluid.Executor())
        if size == 9:  # which the windows fill
            convert_arrangement(folder, tmp_path / f"m{target}", overwrite=True)
            continue
        with pytest.raises(
            UnsupportedError,
            match="exclusive=False and ceil_mode=True",
        ):
            convert_arrangement(folder, tmp_path / f"m{target}")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("exports331-bf16", "of BF16"),
        ("models331-inf", "fill_any_like of -inf"),
        ("exports331-average_pads", "pool2d with exclusive=False and uneven padding"),
    ],
)
def test_forms_and_values_that_fluid_lacks_are_refused(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    write_files(LATER[name], tmp_path / "new")
    with pytest.raises(UnsupportedError, match=what):
        convert_arrangement(tmp_path / "new/inference.json", tmp_path / "old")
    assert not (tmp_path / "old").exists()


#: Start, end and step of a slice of 0 to 4; its elements in real Fluid 1.8.5, and in real Paddle 2.6.2.
BACKWARD = {
    (2**31 - 1, -1, -1): (None, [4, 3, 2, 1, 0]),  # 1.8.5 refuses it
    (2**31 - 1, 0, -3): (None, [4, 1]),
    (100, 1, -1): ([4, 3, 2], [4, 3, 2]),
    (-2, -6, -1): ([3, 2, 1, 0], [3, 2, 1]),
    (4, -1, -2): ([4, 2, 0], [4, 2, 0]),
    (4, 0, -2): ([3, 1], [4, 2]),
    (3, -1, -2): ([2, 0], [3, 1]),
    (-1, -1, -3): ([3, 0], [4, 1]),
    (-1, -3, -3): ([3], [4]),
    (3, 0, -2): ([3, 1], [3, 1]),
}


@pytest.mark.parametrize("numbers", BACKWARD, ids=str)
def test_backward_slices_select_the_same_elements_in_fluid_as_in_paddle_2(
    numbers: tuple[int, int, int],
) -> None:
    program = decode_program(MODELS["getitem_negative"]["model.pdmodel"])
    (op,) = (op for op in program.global_block().ops if op.type == "strided_slice")
    wanted = np.array(BACKWARD[numbers][1])
    x, y = (op.block.var(name) for name in (op.input("Input")[0], op.output("Out")[0]))
    for one in program.list_vars():
        one.shape = (2, 5 if one is x else len(wanted), 4) if len(one.shape) == 3 else one.shape
    op.attrs |= {name: [number] for name, number in zip(("starts", "ends", "strides"), numbers, strict=True)}
    feed = {x.name: np.arange(40, dtype="float32").reshape(2, 5, 4)}
    (found,) = fluid.Executor().run(make_fluid18(program), feed, [y.name])
    np.testing.assert_array_equal(found, feed[x.name][:, wanted])
    x.shape = (2, -1, 4)
    if numbers[2] == -1 <= numbers[1]:
        (found,) = fluid.Executor().run(make_fluid18(program), feed, [y.name])
        np.testing.assert_array_equal(found, feed[x.name][:, wanted])
        return
    with pytest.raises(UnsupportedError, match=f"strided_slice in steps of {numbers[2]}"):
        make_fluid18(program)


@pytest.mark.parametrize("numbers", [one for one in BACKWARD if BACKWARD[one][0]], ids=str)
def test_backward_slices_that_select_other_elements_in_paddle_2_are_refused(
    numbers: tuple[int, int, int], tmp_path: Path
) -> None:
    start, end, step = numbers
    with fresh_programs(), warnings.catch_warnings():
        warnings.simplefilter("ignore", fluid.errors.QuirkWarning)  # that they take others
        out = fluid.layers.strided_slice(fluid.data("x", [1, 5]), [1], [start], [end], [step])
        fluid.io.save_inference_model(str(tmp_path / "old"), ["x"], [out], fluid.Executor())
    fluids, paddles = BACKWARD[numbers]
    if fluids == paddles:
        assert convert_arrangement(tmp_path / "old", tmp_path / "new.pdmodel").operators
        return
    with pytest.raises(UnsupportedError, match=f"other elements in strided_slice in steps of {step}"):
        convert_arrangement(tmp_path / "old", tmp_path / "new.pdmodel")
    assert not (tmp_path / "new.pdmodel").exists()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["pdmodel", "json"])
def test_linspace_keeps_its_dtype_in_later_paddle(kind: str, dtype: str, tmp_path: Path) -> None:
    """Real 2.6.2 refuses a linspace without dtype; with it, it and 3.3.1 give the same numbers as here."""
    with fresh_programs():
        first = fluid.data("first", [1], dtype)
        out = fluid.layers.linspace(first, 2.5, 7, dtype)
        fluid.io.save_inference_model(str(tmp_path / "old"), ["first"], [out], fluid.Executor())
    convert_arrangement(tmp_path / "old", tmp_path / f"new.{kind}")
    with fluid.scope_guard(fluid.Scope()):
        program, _, outs = fluid.io.load_inference_model(str(tmp_path / "new"), exe := fluid.Executor())
        (op,) = (op for op in program.global_block().ops if op.type == "linspace")
        assert op.attr("dtype") == outs[0].dtype
        (found,) = exe.run(program, {"first": np.array([-1.5], dtype)}, outs)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.linspace(-1.5, 2.5, 7), rtol=1e-6, atol=1e-6)  # other roundings
