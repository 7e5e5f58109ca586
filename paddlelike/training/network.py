"""The description of a network in a checkpoint, and its differences from the network to be trained."""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Mapping
from typing import Any, Final

from paddlelike.core.roles import OpRole
from paddlelike.errors import LoadError
from paddlelike.framework import Block, Operator, Program

#: Attributes that do not change what a network computes from given parameters.
_IGNORED: Final = {
    "op_callstack", "op_device", "op_namescope", "op_role", "op_role_var", "seed", "fix_seed", "is_test",
    "use_cudnn", "use_mkldnn", "mkldnn_data_type", "data_format_", "with_quant_attr",
}  # fmt: skip
_MOST_BYTES: Final = 1 << 28  # of a description that is read


def describe_network(program: Program, loss: str) -> dict[str, Any]:
    """Return the operators that compute the loss, and which operator updates each parameter."""
    lines = list(_list_operators(program, loss))
    packed = base64.b85encode(zlib.compress("\n".join(lines).encode())).decode()
    updates = {
        op.inputs["Param"][0]: op.type
        for block in program.blocks
        for op in block.ops
        if op.attrs.get("op_role", 0) & OpRole.Optimize and op.inputs.get("Param")
    }
    return {"operators": packed, "updates": updates}


def check_network(saved: Mapping[str, Any], network: Mapping[str, Any], path: str) -> None:
    """Compare the network of a checkpoint with the given network.

    Raises
    ------
    LoadError
        They compute different things, or are updated by different optimizers.
    """
    theirs = _unpack(saved["operators"])
    mine = _unpack(network["operators"])
    for index, (own, other) in enumerate(itertools.zip_longest(mine, theirs, fillvalue="nothing more")):
        if own != other:
            raise LoadError(
                f"checkpoint {path} belongs to another network, and nothing was loaded; operator {index}:\n"
                f"  in the checkpoint: {other}\n  in the program:    {own}",
                hint="build the network as it was; fluid.io.load_persistables(..., strict=False) loads the "
                "values that fit into another one",
            )
    updates = network["updates"]
    differing = {
        name: (saved["updates"].get(name), updates.get(name))
        for name in [*updates, *saved["updates"]]
        if saved["updates"].get(name) != updates.get(name)
    }
    if saved["updates"] and updates and differing:
        name, (other, own) = next(iter(differing.items()))
        raise LoadError(
            f"checkpoint {path} belongs to another optimizer, and nothing was loaded: {name} is updated by "
            f"{own or 'none'}, in the checkpoint by {other or 'none'}",
            hint="use the optimizer that was used before; fluid.io.load_params takes the parameters alone",
        )


def _unpack(packed: str) -> list[str]:
    text = zlib.decompressobj().decompress(base64.b85decode(packed), _MOST_BYTES).decode()
    return text.split("\n") if text else []


def _list_operators(program: Program, loss: str) -> list[str]:
    """Return a line for each operator that the loss needs; temporaries are numbered by appearance."""
    block = program.global_block()
    needed, kept = {loss}, []
    for op in reversed(block.ops):
        if _is_forward(op) and needed.intersection(op.output_arg_names):
            kept.append(op)
            needed.update(op.input_arg_names)
    numbers: dict[str, int] = {}
    return [line for op in reversed(kept) for line in _describe(op, block, numbers)]


def _is_forward(op: Operator) -> bool:
    return int(op.attrs.get("op_role", 0)) & ~OpRole.Loss == OpRole.Forward


def _describe(op: Operator, block: Block, numbers: dict[str, int]) -> list[str]:
    """Return the line of an operator, then the lines of its block."""

    def name_of(name: str) -> str:
        variable = block._find_var_recursive(name)
        if variable is not None and (variable.persistable or variable.is_data):
            return name
        return f"%{numbers.setdefault(name, len(numbers))}"

    def show(slots: Mapping[str, list[str]]) -> str:
        return ", ".join(f"{slot}=[{' '.join(map(name_of, names))}]" for slot, names in sorted(slots.items()))

    attrs, inner = [], []
    for name, value in sorted(op.attrs.items()):
        if isinstance(value, Block):
            inner += [line for one in value.ops for line in _describe(one, value, numbers)]
        elif name not in _IGNORED:
            attrs.append(f"{name}={value!r}")
    line = f"{op.type}({show(op.inputs)}) -> {show(op.outputs)} {{{', '.join(attrs)}}}"
    return [line, *(f"  {each}" for each in inner)]
