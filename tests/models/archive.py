"""Models that real Paddle saved, with inputs and outputs: archives in ``tests/golden``."""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.framework.codec.decode import decode_program
from tests.helpers.golden_data import GOLDEN, Arrays

Files = dict[str, bytes]  # by name


@cache
def read_archive(name: str) -> dict[str, Files]:
    """Return the files of each model in an archive, by the model's name."""
    models: dict[str, Files] = {}
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as tar:
        for member in tar:
            model, file = member.name.split("/")
            data = tar.extractfile(member)
            assert data is not None
            models.setdefault(model, {})[file] = data.read()
    return models


def find_names(files: Files) -> tuple[str | None, str | None]:
    """Return the file names of the program and of the parameters, as ``load_inference_model`` takes them."""
    if "files.json" in files:
        model, params = json.loads(files["files.json"])
        return model, params
    return "model.pdmodel", "model.pdiparams" if "model.pdiparams" in files else None


def collect_types(models: dict[str, Files]) -> set[str]:
    """Return the types of all operators in some models."""
    programs = [decode_program(files[find_names(files)[0] or "__model__"]) for files in models.values()]
    return {op.type for program in programs for block in program.blocks for op in block.ops}


def write_files(files: Files, folder: Path) -> None:
    """Write the files of a model."""
    for name, data in files.items():
        (folder / name).write_bytes(data)


def run_model(folder: Path, files: Files) -> list[tuple[Any, Any]]:
    """Return the outputs of a model, each with the one of real Paddle."""
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        loaded = fluid.io.load_inference_model(str(folder), exe, *find_names(files))
        program, feeds, targets = loaded
        with np.load(io.BytesIO(files["io.npz"])) as file:
            arrays = dict(file)
        feed = {name: _make_tensor(arrays, f"in{i}") for i, name in enumerate(feeds)}
        outs = exe.run(program, feed=feed, fetch_list=targets, return_numpy=False)
    return [(out, _make_tensor(arrays, f"out{i}")) for i, out in enumerate(outs)]


def _make_tensor(arrays: Arrays, key: str) -> Any:
    tensor = fluid.LoDTensor()
    tensor.set(arrays[key], fluid.CPUPlace())
    tensor.set_lod([arrays[lod].tolist() for lod in sorted(arrays) if lod.startswith(f"{key}@lod")])
    return tensor
