"""Files of each kind, and what follows from the calls that `diagnose` names for them.

    python -m tests.inspection.advice          # writes tests/golden/advice.json.gz

needs the three interpreters of real Paddle that tests/interop/real.py names.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.inspection import diagnose
from paddlelike.interop.model_versions import convert_arrangement
from tests.helpers.golden_data import GOLDEN
from tests.interop.drivers.driver_advice import follow
from tests.interop.real import FLUID185, PADDLE262, PADDLE331

RECORDED: Final = GOLDEN / "advice.json.gz"
OLD_PROGRAMS: Final = ", with FLAGS_enable_pir_api=0 in the environment"

#: By path: the network of its program, or the file of it ("*": one of the file's own variables); the width of
#: a model's input; or shapes by name.
CASES: Final[dict[str, Any]] = {
    "inference": 13,
    "inference/__model__": 13,
    "inference/fc_0.w_0": "fit_a_line",
    "combined_inference": 13,
    "combined_inference/model": 13,
    "combined_inference/params": "combined_inference/model",
    "persistables": "fit_a_line",
    "combined": "fit_a_line",
    "combined/all_persistables": "fit_a_line",
    "fluid_save": "fit_a_line",
    "fluid_save/model": "fit_a_line",
    "fluid_save/model.pdparams": "fit_a_line",
    "fluid_save/model.pdopt": "fit_a_line",
    "saved/all": "fit_a_line",
    "saved/separate": "fit_a_line",
    "saved/chain": "fit_a_line",
    "inference262": 6,
    "inference262/model": 6,
    "inference262/model.pdmodel": 6,
    "inference262/model.pdiparams": 6,
    "persistables262": "mlp_adam",
    "combined262": "mlp_adam",
    "static_save262/model": "mlp_adam",
    "inference300": 4,
    "inference300/inference": 4,
    "inference300/inference.json": 4,
    "inference300/inference.pdiparams": 4,
    "converted262/m": 13,
    "converted331/m": 13,
    "nested/paddle262-adam.pdopt": None,
    "nested/paddle262-layer.pdparams": None,
    "nested/paddle262-one.pdparams": None,
    "nested/paddle262-several.pdparams": None,
    "nested/paddle331-ck.pdparams": None,
    "two331": {"model.row": [4, 6]},
    "two331/0.metadata": {"model.row": [4, 6]},
    "two331/0_0.distcp": {"model.row": [4, 6]},
    "safe331": {"s": [4, 6]},
    "tensor331": {"tensor331": [2, 3]},
    "all.hdf5": "*",
    "state.pt": "*",
    "mlp.npz": "*",
    "net.zip": "*",
    "objects.save": None,
    "pair/ln-pair.data": "*",
    "pair/ln-pair.meta": "*",
    "w.safetensors": "*",
}


def make_files(folder: Path) -> None:
    """Put a file of each kind into an empty folder, the current one."""
    line, adam = GOLDEN / "fit_a_line", GOLDEN / "paddle262" / "mlp_adam"
    for name in ("inference", "persistables", "fluid_save"):
        shutil.copytree(line / name, folder / name)
    shutil.copytree(line / "inference_combined", folder / "combined_inference")
    for name in ("inference", "persistables", "static_save"):
        shutil.copytree(adam / name, folder / f"{name}262")
    for name, source in (("combined", line), ("combined262", adam)):
        (folder / name).mkdir()
        shutil.copy(source / "combined" / "all_persistables", folder / name)
    shutil.copytree(GOLDEN / "paddle300", folder / "inference300")
    shutil.copytree(GOLDEN / "nested", folder / "nested")
    for name in ("two331", "safe331"):
        shutil.copytree(GOLDEN / "sharded" / name, folder / name)
    (folder / "pair").mkdir()
    for name in ("ln-pair.data", "ln-pair.meta"):
        shutil.copy(GOLDEN / "dynet" / name, folder / "pair")
    for name in ("sharded/tensor331", "tfh5/all.hdf5", "torch/state.pt", "theano/mlp.npz", "theano/net.zip"):
        shutil.copy(GOLDEN / name, folder)
    shutil.copy(GOLDEN / "theano" / "objects.save", folder)
    fluid.convert("mlp.npz", "w.safetensors")
    convert_arrangement("inference", "converted262/m.pdmodel")
    convert_arrangement("inference", "converted331/m.json")
    _save(folder / "saved")


def _save(folder: Path) -> None:
    from tests.interop.drivers.driver_advice import build

    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program = build(fluid, "fit_a_line", exe)
        fluid.io.load_persistables(exe, "persistables", program)
        fluid.io.save_persistables(exe, str(folder / "separate"), program)
        fluid.io.save_persistables(exe, str(folder / "all"), program, filename="all")
        fluid.io.save_persistables(exe, str(folder / "chain"), program)
        weights = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
        weights.set(np.array(weights) + np.float32(np.arange(13)[:, None] == 2), fluid.CPUPlace())
        fluid.io.save_persistables(exe, str(folder / "chain"), program, delta=True)


def list_calls(path: str) -> list[tuple[str, str, Any]]:
    """Return who opens a path: system, call, and the case."""
    return [(who, call, CASES[path]) for who, call in diagnose(path).calls]


def follow_here(path: str, call: str, case: Any) -> dict[str, Any]:
    """Return what our own call gives; of a conversion, what its result holds."""
    if call.startswith("fluid.convert("):
        target = Path(call.split("'")[-2])
        shutil.rmtree("directory", ignore_errors=True)
        Path("values.npz").unlink(missing_ok=True)
        eval(call, {"fluid": fluid})
        call = f"fluid.load_program_state({str(target)!r})"
    net, width = (None, case) if isinstance(case, int) else (case, None)
    return follow(call, (lambda: _declare(path)) if net == "*" else net, width, {"fluid": fluid})


def _declare(path: str) -> fluid.Program:
    """Return a program with the variables of a file."""
    program = fluid.Program()
    values = fluid.load_program_state(path.replace(".meta", ".data"))
    for each, value in values.items():
        program.global_block().create_var(name=each, shape=value.shape, dtype=value.dtype, persistable=True)
    return program


def follow_there(workplace: Path) -> dict[str, dict[str, Any]]:
    """Return what the real systems give, by version and call."""
    calls = [each for path in CASES for each in list_calls(path)]
    systems = (
        ("1.8.5", FLUID185, "1.8", ""),
        ("2.6.2", PADDLE262, "2.x", ""),
        ("3.3.1", PADDLE331, "3.x", ""),
        ("3.3.1", PADDLE331, "3.x", OLD_PROGRAMS),
    )
    found: dict[str, dict[str, Any]] = {}
    for version, system, who, suffix in systems:
        wanted = {}
        for label, call, case in calls:
            if who in label and call.endswith(OLD_PROGRAMS) == bool(suffix):
                plain = re.sub(r", (after|with) .*", "", call)
                net, width = (None, case) if isinstance(case, int) else (case, None)
                wanted[call] = [call, plain, net, width]
        job = {"calls": list(wanted.values()), "out": str(workplace / "results.json")}
        flags = {"FLAGS_enable_pir_api": "0"} if suffix else {}
        system.run("driver_advice.py", job, workplace, flags)
        found.setdefault(version, {}).update(json.loads((workplace / "results.json").read_text()))
    return found


def read_recorded() -> dict[str, dict[str, Any]]:
    """Return what the real systems gave, by version and call."""
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def record(workplace: Path) -> None:
    """Follow the calls in the real systems, and keep what they give."""
    os.chdir(workplace)
    make_files(workplace)
    compact("saved/chain")
    text = json.dumps(follow_there(workplace), sort_keys=True)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))


def compact(path: str) -> None:
    """Run `paddlelike compact`, as the advice for chains of deltas says."""
    from typer.testing import CliRunner

    from paddlelike.cli.app import app

    assert CliRunner().invoke(app, ["compact", path]).exit_code == 0


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        record(Path(home))
