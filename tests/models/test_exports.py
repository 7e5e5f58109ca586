"""A `__model__` that is exported here is Fluid 1.8.5's but for `op_callstack`."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.framework.codec.schema import messages
from tests.helpers.canonical import SETS
from tests.helpers.golden_data import GOLDEN
from tests.helpers.networks import NETWORKS
from tests.helpers.runs import building
from tests.models.archive import find_names, read_archive, run_model, write_files
from tests.zoo.encoded import drop_lines


def encode(data: bytes) -> bytes:
    """Return a ProgramDesc without call stacks.

    Slots that are sets in Paddle, in an order that changes from run to run, are sorted.
    """
    program = messages().ProgramDesc.FromString(data)
    for block in program.blocks:
        for op in block.ops:
            for part in (*op.inputs, *op.outputs):
                if part.parameter in SETS.get(op.type, ()):
                    part.arguments[:] = sorted(part.arguments)
    drop_lines(program)
    return bytes(program.SerializeToString(deterministic=True))


@pytest.mark.parametrize("name", [name for name in NETWORKS if (GOLDEN / name / "inference").exists()])
def test_exports_of_trained_networks_give_their_recorded_results(name: str, tmp_path: Path) -> None:
    real = (GOLDEN / name / "inference" / "__model__").read_bytes()
    ops = messages().ProgramDesc.FromString(real).blocks[0].ops
    feeds = [op.outputs[0].arguments[0] for op in ops if op.type == "feed"]
    with building(name) as run:
        run.exe.run(run.startup)
        fluid.io.save_inference_model(str(tmp_path), feeds[::-1], run.built.infer, run.exe, run.main)
    assert encode((tmp_path / "__model__").read_bytes()) == encode(real)


def load_networks() -> Any:
    """Return the module that the real system ran, over this package."""
    paddle = types.ModuleType("paddle")
    paddle.fluid = fluid  # type: ignore[attr-defined]
    path = Path(__file__).parent / "dump_models185.py"
    spec = importlib.util.spec_from_file_location("networks185", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patched = pytest.MonkeyPatch()
    patched.setitem(sys.modules, "paddle", paddle)
    patched.setitem(sys.modules, "paddle.fluid", fluid)
    with contextlib.closing(types.SimpleNamespace(close=patched.undo)):
        spec.loader.exec_module(module)
    module.strip = lambda path: None  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("name", sorted(read_archive("models185")))
def test_a_whole_network_is_exported_as_by_fluid(name: str, tmp_path: Path) -> None:
    files = read_archive("models185")[name]
    model = find_names(files)[0] or "__model__"
    load_networks().save(name, tmp_path)
    assert encode((tmp_path / name / model).read_bytes()) == encode(files[model])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the program computes auc")
@pytest.mark.parametrize("first", "abcdefghijklmnopqrstuvwxyz")
def test_a_paddle2_model_exported_again_keeps_its_format(first: str, tmp_path: Path) -> None:
    for name, files in read_archive("layers262").items():
        if not name.startswith(first) or name == "while_loop":  # see below
            continue
        (tmp_path / name / "old").mkdir(parents=True)
        write_files(files, tmp_path / name / "old")
        pairs = run_model(tmp_path / name / "old", files)
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor()
            loaded = fluid.io.load_inference_model(str(tmp_path / name / "old"), exe, *find_names(files))
            program, feeds, targets = loaded
            fluid.io.save_inference_model(str(tmp_path / name / "new"), feeds, targets, exe, program)
        again = run_model(tmp_path / name / "new", {**files, "files.json": b"[null, null]"})
        for (one, _), (other, _) in zip(pairs, again, strict=True):
            assert (one.lod(), np.array(one).tobytes()) == (other.lod(), np.array(other).tobytes()), name


def test_exporting_drops_a_loop_that_updates_a_feed_with_a_warning(tmp_path: Path) -> None:
    write_files(read_archive("layers262")["while_loop"], tmp_path)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        loaded = fluid.io.load_inference_model(str(tmp_path), exe, "model.pdmodel", None)
        program, feeds, targets = loaded
        with pytest.warns(UserWarning, match=r"operator 'while' updates 'x0', which is fed: as in Fluid"):
            fluid.io.save_inference_model(str(tmp_path / "again"), feeds, targets, exe, program)


def test_exporting_keeps_the_paddle2_version(tmp_path: Path) -> None:
    files = read_archive("layers262")["dot"]
    write_files(files, tmp_path)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        loaded = fluid.io.load_inference_model(str(tmp_path), exe, *find_names(files))
        program, feeds, targets = loaded
        assert program.clone(for_test=True).paddle_version == program.paddle_version == 2006002
        fluid.io.save_inference_model(str(tmp_path / "again"), feeds, targets, exe, program)
        again, *_ = fluid.io.load_inference_model(str(tmp_path / "again"), exe)
        assert again.paddle_version == 2006002
        assert not again.encoded.op_compatible_map.pair  # 1.8's table
