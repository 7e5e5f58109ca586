"""Operators in programs of Paddle 2.6.2 and 3.3.1 as both compute them: see `dump_versions.py`.

Our program is read from a message, as the one of a file: it declares the shapes that the real one has.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import AttrType, VarType
from paddlelike.errors import NotInitializedError
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.codec.schema import messages
from tests.alike.operators.asking import _record, decode

__all__ = ["GOLDEN", "VERSIONS", "ask"]

Plain = dict[str, Any]

GOLDEN = Path(__file__).parent / "versions.json.xz"
VERSIONS = {"262": 2_006_002, "331": 3_003_001}
_FIELDS = {bool: "b", int: "i", float: "f", str: "s"}
_LISTS = {bool: "bools", int: "ints", float: "floats", str: "strings"}
_TYPES = {"b": "BOOLEAN", "i": "INT", "f": "FLOAT", "s": "STRING"}


def ask(case: Plain, version: int, want: Plain) -> Plain:
    """Return what a program of a version makes of a case; it declares the shapes of the real outcome."""
    stage = "build"
    try:
        program, feed = _build(case, version, want)
        block = program.global_block()
        stage = "run"
        names = [f"{slot}_{i}_out" for slot in case["outputs"] for i in range(len(case["outputs"][slot]))]
        outcome = {"out": _run(program, feed, names)}
        if want.get("grad") is None:
            return outcome
        stage = "gradient"
        targets = [f"{slot}_{i}" for slot in case["wrt"] for i in range(len(case["inputs"].get(slot, ())))]
        through = [n for n in names if n.rsplit("_", 2)[0] in case["through"] and outcome["out"][n]]
        above = []
        for name in through:
            dtype, dims, _, lod = outcome["out"][name][:4]
            rng = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
            feed["above_" + name] = _make(rng.uniform(-1, 1, dims).astype(dtype), lod)
            shape = block.var(name).shape
            above.append(block.create_var(name="above_" + name, shape=shape, dtype=dtype, lod_level=len(lod)))
        grads = fluid.gradients(
            [block.var(name) for name in through], [block.var(name) for name in targets], above
        )
        values = _run(program, feed, [grad.name for grad in grads if grad is not None])
        outcome["grad"] = {
            name: None if grad is None else values[grad.name]
            for name, grad in zip(targets, grads or [None] * len(targets), strict=True)
        }
    except Exception as error:
        return {"refused": stage, "why": f"{type(error).__name__}: {str(error)[-300:]}"}
    return outcome


def _build(case: Plain, version: int, want: Plain) -> tuple[Any, dict[str, Any]]:
    message = messages().ProgramDesc()
    message.version.version = version
    block = message.blocks.add()
    block.idx, block.parent_idx = 0, -1
    op = block.ops.add()
    op.type = case["type"]
    feed = {}
    for slot, records in sorted(case["inputs"].items()):
        names = op.inputs.add()
        names.parameter = slot
        for i, record in enumerate(records):
            names.arguments.append(f"{slot}_{i}")
            _declare(block, f"{slot}_{i}", record[0], record[1], record[3])
            feed[f"{slot}_{i}"] = _make(decode(record), record[3])
    for slot, dtypes in sorted(case["outputs"].items()):
        names = op.outputs.add()
        names.parameter = slot
        for i, dtype in enumerate(dtypes):
            name = f"{slot}_{i}_out"
            names.arguments.append(name)
            real = (want.get("out") or {}).get(name) or [dtype, [-1], "", []]
            _declare(block, name, real[0], real[1], real[3])
    for name, value in case["attrs"].items():
        attr = op.attrs.add()
        attr.name = name
        if isinstance(value, list):
            kind = _LISTS[type(value[0])] if value else "ints"
            attr.type = int(AttrType[kind.upper().replace("BOOLS", "BOOLEANS")])
            getattr(attr, kind).extend(value)
        else:
            attr.type = int(AttrType[_TYPES[_FIELDS[type(value)]]])
            setattr(attr, _FIELDS[type(value)], value)
    return decode_program(message.SerializeToString()), feed


def _declare(block: Any, name: str, dtype: str, dims: list[int], lod: list[list[int]]) -> None:
    variable = block.vars.add()
    variable.name = name
    variable.type.type = int(VarType.LOD_TENSOR)
    tensor = variable.type.lod_tensor
    tensor.tensor.data_type = int(fluid.core.convert_np_dtype_to_dtype_(dtype))
    tensor.tensor.dims.extend([-1, *dims[1:]] if lod else dims)
    tensor.lod_level = len(lod)
    variable.stop_gradient = not dtype.startswith("float")


def _make(array: Any, lod: list[list[int]]) -> Any:
    tensor = fluid.LoDTensor()
    tensor.set(array, fluid.CPUPlace())
    tensor.set_lod(lod)
    return tensor


def _run(program: Any, feed: dict[str, Any], names: list[str]) -> dict[str, Any]:
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        found = {}
        for name in names:
            try:
                found[name] = _record(exe.run(program, feed, [name], return_numpy=False)[0])
            except NotInitializedError:
                found[name] = None
        return found
