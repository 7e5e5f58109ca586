"""The bytes of the programs of the zoo, without lines of the script: dumped from Fluid 1.8.5, and compared.

    python3.7 tests/zoo/encoded.py OUT.json.gz

Runs under an interpreter that has paddlepaddle 1.8.5, whose operators then have an empty ``op_callstack``.
Writes {"attributes": {operator: names in Fluid's order}, "programs": {entry: {program: digest}}}.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
if __name__ == "__main__":
    sys.modules["paddlelike"] = importlib.import_module("paddle.fluid")

import paddlelike as fluid

__all__ = ["VARYING", "digest", "drop_lines", "encode_layer", "encode_optimizer"]

#: Fluid collects the variables that a loop or branch reads in sets of Python, whose order changes from run
#: to run, and so do its bytes.
VARYING = ("dynamic_rnn", "optimizer Lookahead", "static_rnn", "switch", "while", "cond")


def encode_layer(build: Callable[[], Any]) -> dict[str, bytes]:
    """Return {program: bytes} of a layer: main and startup, a copy for tests, what is exported, gradients."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    out = build()
    found = {"main": encode(main), "startup": encode(startup), "for_test": encode(main.clone(for_test=True))}
    if out.block.idx == 0:
        found["model"] = export(main, out.name)
    try:
        fluid.backward.append_backward(fluid.layers.mean(out))
    except Exception:  # of many kinds: the layer has no gradient
        return found
    return dict(found, with_backward=encode(main))


def encode_optimizer(apply: Callable[[Any], None], net: Callable[[], Any]) -> dict[str, bytes]:
    """Return {program: bytes} of a network that is trained, and of what is exported from it."""
    loss = net()
    apply(loss)
    main = fluid.default_main_program()
    return {
        "main": encode(main),
        "startup": encode(fluid.default_startup_program()),
        "model": export(main, "fc_1.tmp_0"),
    }


def encode(program: Any) -> bytes:
    return program.desc.serialize_to_string()


def export(program: Any, target: str) -> bytes:
    """Return the file ``__model__`` of a copy of a program; b"" where there is none."""
    copy = program.clone()
    block = copy.global_block()
    wanted = {target}
    for op in reversed(block.ops):
        if wanted & set(op.output_arg_names):
            wanted |= set(op.input_arg_names)
    feeds = [name for name in sorted(wanted) if block.has_var(name) and block.var(name).is_data]
    folder = tempfile.mkdtemp()
    try:
        executor = fluid.Executor(fluid.CPUPlace())
        target = block.var(target)
        fluid.io.save_inference_model(folder, feeds, [target], executor, copy, program_only=True)
        return Path(folder, "__model__").read_bytes()
    except Exception:  # of many kinds
        return b""
    finally:
        shutil.rmtree(folder)


def drop_lines(desc: Any) -> None:
    """Remove ``op_callstack`` from a ProgramDesc of either system."""
    for block in desc.blocks:
        for op in block.ops:
            for index in reversed(range(len(op.attrs))):
                if op.attrs[index].name == "op_callstack":
                    del op.attrs[index]


def digest(data: bytes, message: Any) -> str | None:
    """Return the digest of a program without ``op_callstack``; None for no program."""
    if not data:
        return None
    desc = message.FromString(data)
    drop_lines(desc)
    return hashlib.sha256(desc.SerializeToString()).hexdigest()[:24]


def main(out: str) -> None:
    """Dump what the real system writes."""
    import paddle.fluid.framework as framework
    import paddle.fluid.proto.framework_pb2 as pb2

    from tests.zoo.layers import LAYERS
    from tests.zoo.optimizers import OPTIMIZERS, net

    entries = {name: lambda build=build: encode_layer(build) for name, build in LAYERS.items()}
    for name, apply in OPTIMIZERS.items():
        entries["optimizer " + name] = lambda apply=apply: encode_optimizer(apply, net)
    programs = {}
    for name, encode_entry in entries.items():
        framework._name_scope = framework.NameScope()
        seed = 13 if name.startswith("optimizer ") else 0
        train, startup = fluid.Program(), fluid.Program()
        train.random_seed = startup.random_seed = seed
        with fluid.unique_name.guard(), fluid.program_guard(train, startup):
            try:
                found = encode_entry()
            except Exception:  # of many kinds: the layer refuses
                continue
        programs[name] = {key: digest(data, pb2.ProgramDesc) for key, data in found.items()}
    protos = [pb2.OpProto.FromString(bytes(text)) for text in fluid.core.get_all_op_protos()]
    attributes = {proto.type: [attr.name for attr in proto.attrs] for proto in protos}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        record = {"attributes": attributes, "programs": programs}
        file.write(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())
    sys.stdout.write(f"{len(programs)} entries\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
