"""What trainer 0 of a real job wrote (Fluid 1.8.5, two trainers and two servers), and the job's programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import paddlelike as fluid
import paddlelike.distributed.checkpoint
from paddlelike.core import VarType
from paddlelike.distributed.placement import Kind, Placement, Slice

RUNS = Path(__file__).parents[3] / "golden" / "distributed_runs"
KINDS = {"Param": Kind.PARAMETER, "Optimizer": Kind.OPTIMIZER, "RemotePrefetch": Kind.REMOTE}


def run_of(name: str) -> dict[str, Any]:
    return json.loads((RUNS / name / "run.json").read_text())


def saved_by(name: str) -> str:
    return str(RUNS / name / "saved_by_trainer0")


def find_placement(name: str) -> Placement:
    """Fluid's own table of the run, as its transpiler gave it."""
    placed = json.loads((RUNS / name / "programs" / "manifest.json").read_text())
    slices = [
        Slice(
            one["origin"],
            one["slice"],
            one["endpoint"],
            one["block_id"],
            one["offset"] // _width(one["origin_shape"]),
            tuple(one["slice_shape"]),
            tuple(one["origin_shape"]),
            VarType.FP32,
            KINDS[one["vtype"]],
        )
        for one in placed["parameters_on_pservers"]
    ]
    return Placement(slices, endpoints=placed["endpoints"], trainers=placed["trainers"])


def program_of(name: str, which: str, placement: Placement | None = None) -> fluid.Program:
    """One of the run's programs, with the table that its bytes do not hold."""
    data = (RUNS / name / "programs" / f"{which}.pb").read_bytes()
    program = fluid.Program.parse_from_string(data, trusted=True)
    program._parameters_on_pservers = find_placement(name) if placement is None else placement
    program._is_distributed = True
    number = int(which.removeprefix("pserver").split("_")[0])
    program._ps_endpoint = program._parameters_on_pservers.endpoints[number]
    return program


def _width(shape: list[int]) -> int:
    width = 1
    for dim in shape[1:]:
        width *= dim
    return width
