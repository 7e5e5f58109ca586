"""Have real Paddle 2.6.2 save one small inference model per layer or function, with inputs and outputs.

    python3 dump_layers262.py OUT.tar.xz           # tests/golden/layers262.tar.xz
    python3 dump_layers262.py OUT.tar.xz spectra   # tests/golden/spectra262.tar.xz

Runs under an interpreter that has paddlepaddle 2.6.2. The archive holds, for each case:

NAME/model.pdmodel, model.pdiparams  what `save_inference_model` or `paddle.jit.save` wrote; no `op_callstack`
NAME/io.npz                           in<i>: the feeds in order; out<i>: what the model computes
"""

import io
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import numpy as np
import paddle
from paddle.base.proto import framework_pb2

sys.path.insert(0, str(Path(__file__).parent / "layers262"))
from arrays import algebra, control, shapes
from functions import arithmetic, losses, reductions
from images import activations, images
from inputs import RNG
from layers import evaluated, layers
from networks import Translator, networks
from rarities import rarities
from spectra import detectors, spectra

warnings.simplefilter("ignore")


def save_traced(name, cls, arrays, folder):
    """Save a network of dygraph by `paddle.jit.save`."""
    paddle.disable_static()
    try:
        paddle.seed(5)
        with paddle.utils.unique_name.guard():
            layer = evaluated(cls())
            for array in [p for _, p in sorted(layer.named_parameters())]:
                if array.ndim == 1:
                    array.set_value(RNG.uniform(-0.5, 0.5, array.shape).astype("float32"))
            specs = [
                paddle.static.InputSpec([None, *a.shape[1:]], str(a.dtype), f"x{i}")
                for i, a in enumerate(arrays)
            ]
            path = str(Path(folder) / name / "model")
            Path(path).parent.mkdir()
            paddle.jit.save(layer, path, input_spec=specs)
    finally:
        paddle.enable_static()
    with paddle.static.scope_guard(paddle.static.Scope()):
        exe = paddle.static.Executor(paddle.CPUPlace())
        program, names, targets = paddle.static.load_inference_model(path, exe)
        values = exe.run(program, feed=dict(zip(names, arrays, strict=True)), fetch_list=targets)
    strip(path + ".pdmodel")
    Path(path + ".pdiparams.info").unlink()
    np.savez(
        Path(folder) / name / "io.npz",
        **{f"in{i}": a for i, a in enumerate(arrays)},
        **{f"out{i}": v for i, v in enumerate(values)},
    )
    return sorted({op.type for block in program.blocks for op in block.ops})


def save(name, function, arrays, folder):
    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.seed(11)
    with (
        paddle.utils.unique_name.guard(),
        paddle.static.program_guard(main, startup),
        paddle.static.scope_guard(paddle.static.Scope()),
    ):
        feeds = [
            paddle.static.data(
                f"x{i}",
                [-1, *a.shape[1:]] if a.ndim > 1 else a.shape,
                str(a.dtype),
            )
            for i, a in enumerate(arrays)
        ]
        if name != "lstm":  # whose batch may have any size
            for feed, array in zip(feeds, arrays, strict=True):
                feed.desc.set_shape(list(array.shape))
        out = function(*feeds)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        randomize(main)
        path = str(Path(folder) / name / "model")
        Path(path).parent.mkdir()
        paddle.static.save_inference_model(path, feeds, outs, exe, program=main)
        program, names, targets = paddle.static.load_inference_model(path, exe)
        values = exe.run(program, feed=dict(zip(names, arrays, strict=True)), fetch_list=targets)
    strip(path + ".pdmodel")
    order = [int(n[1:]) for n in names]
    io_arrays = {f"in{i}": arrays[j] for i, j in enumerate(order)} | {
        f"out{i}": v for i, v in enumerate(values)
    }
    np.savez(Path(folder) / name / "io.npz", **io_arrays)
    return sorted({op.type for block in program.blocks for op in block.ops})


def randomize(program):
    """Give biases, scales and moving averages values that are not zero or one."""
    scope = paddle.static.global_scope()
    for parameter in sorted(program.list_vars(), key=lambda v: v.name):
        if parameter.persistable and parameter.name not in ("feed", "fetch") and "auc" not in parameter.name:
            holder = scope.find_var(parameter.name)
            tensor = holder.get_tensor() if holder is not None else None
            array = np.array(tensor) if tensor is not None else None
            if (
                array is not None
                and array.dtype == np.float32
                and array.ndim == 1
                and array.size > 1
                and "learning" not in parameter.name
            ):
                tensor.set(RNG.uniform(0.5, 1.5, array.shape).astype("float32"), paddle.CPUPlace())


def strip(path):
    program = framework_pb2.ProgramDesc.FromString(Path(path).read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [attr for attr in op.attrs if attr.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    Path(path).write_bytes(program.SerializeToString(deterministic=True))


GROUPS = (layers, activations, images, losses, arithmetic, reductions, shapes, algebra, rarities, control)


def main(out, what="layers"):
    paddle.enable_static()
    types, failed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for group in (spectra, detectors) if what == "spectra" else GROUPS:
            for name, (function, arrays) in group():
                try:
                    types[name] = save(name, function, arrays, folder)
                except Exception as error:
                    failed[name] = (
                        str(error).strip().splitlines()[-1][:200] if str(error).strip() else repr(error)
                    )
        for name, cls, arrays in [] if what == "spectra" else networks():
            types[f"{name}_traced"] = save_traced(f"{name}_traced", cls, arrays, folder)
            if cls is not Translator:  # its loop is Python's
                types[f"{name}_static"] = save(
                    f"{name}_static", lambda *x, cls=cls: evaluated(cls())(*x), arrays, folder
                )
        files = sorted(p for p in Path(folder).rglob("*") if p.is_file() and p.parent.name in types)
        with tarfile.open(out, "w:xz", preset=9) as tar:
            for path in files:
                info = tarfile.TarInfo(str(path.relative_to(folder)))
                data = path.read_bytes()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    print(
        len(types),
        "models;",
        Path(out).stat().st_size,
        "bytes; operators:",
        " ".join(sorted({t for ts in types.values() for t in ts})),
    )
    for name, error in failed.items():
        print("failed:", name, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
