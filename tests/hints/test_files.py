"""The advice of errors of files and of other systems' models, followed to the letter."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from paddlelike.core import SelectedRows
from paddlelike.fluid.contrib.slim import quantization as slim
from paddlelike.formats import hdf5
from paddlelike.formats.hdf5 import Hdf5
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.io.checkpoints import checkpoints
from paddlelike.testing.formats import MemoryFolder
from tests.hints.advice import ROWS, SUMS, Advice, fill, new_network, read_rows, run

layers, io = fluid.layers, fluid.io
CPU = fluid.CPUPlace()


def command(*arguments: str) -> str:
    """Return what a command prints; raise its error."""
    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        raise RuntimeError(done.stderr)
    return done.stdout


def save_model(target: fluid.Variable, names: tuple[str, ...] = ("x",), home: str = "model") -> str:
    exe = fluid.Executor(CPU)
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    io.save_inference_model(home, list(names), [target], exe)
    return home


def check(by_numpy: bool) -> Any:
    """Run the command on the arrays of an npz file, or of an HDF5 file that has none."""
    save_model(layers.fc(read_rows(), 1, param_attr=fill(1.0)))
    if by_numpy:
        np.savez("inputs", x=ROWS)
    else:
        Path("inputs.npz").write_bytes(b"".join(Hdf5().write({})))
    command("check", "model", "inputs.npz", "-o", "found.npz")
    (found,) = np.load("found.npz").values()
    return found


def unpickle(version: int) -> Any:
    state = pickle.dumps(fluid.regularizer.L2Decay(0.5))
    return str(pickle.loads(state.replace(b"version\x94K\x01", b"version\x94K" + bytes([version]))))


def write_hdf5(attribute: Any) -> Any:
    import h5py

    format = Hdf5(attributes=(("kept", attribute),))
    Path("it.h5").write_bytes(b"".join(format.write({"w": fluid.LoDTensor(ROWS)})))
    with h5py.File("it.h5") as file:
        return file.attrs["kept"].tolist()


def read_hdf5(crashes: bool) -> Any:
    """Read a file, where the HDF5 library ends the process that reads it, or a good copy."""
    Path("it.h5").write_bytes(b"".join(Hdf5().write({"w": fluid.LoDTensor(ROWS)})))
    if not crashes:
        return fluid.load_program_state("it.h5")["w"]
    with mock.patch.object(hdf5, "try_aside", return_value=None):
        return fluid.load_program_state("it.h5")


def write_onnx(nodes: list[tuple[str, list[str], list[str]]], *inputs: Any) -> str:
    """Write a model whose nodes read ``x``, a matrix, and other inputs; its outputs are of the last node."""
    from onnx import TensorProto, checker, helper, save

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4]) for name in nodes[-1][2]]
    between = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4]) for n in nodes[:-1] for name in n[2]
    ]
    made = [
        helper.make_node(kind, read, written, **({"axis": 0} if kind == "ConcatFromSequence" else {}))
        for kind, read, written in nodes
    ]
    graph = helper.make_graph(made, "graph", [x, *inputs], ends, value_info=between)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    checker.check_model(model)
    save(model, "it.onnx")
    return "it.onnx"


def run_onnx(file: str, **values: Any) -> Any:
    program, feeds, fetches = fluid.import_onnx(file, values=values)
    return run(fetches[0], {feeds[0]: ROWS}, program)


def extract(file: str, source: str, target: str) -> Any:
    from onnx.utils import extract_model

    extract_model(file, "part.onnx", [source], [target])
    return run_onnx("part.onnx")


def filter_texts(cut: bool) -> Any:
    """Read a model that counts texts after a product, or only its part before that."""
    from onnx import TensorProto, helper

    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [None, 4])
    file = write_onnx(
        [("ConcatFromSequence", ["s"], ["r"]), ("Add", ["r", "x"], ["t"]), ("Neg", ["t"], ["y"])], sequence
    )
    return extract(file, "t", "y") if cut else run_onnx(file)


def take_lower_part(**values: Any) -> Any:
    from onnx import TensorProto, helper

    index = helper.make_tensor_value_info("q", TensorProto.INT64, [])
    return run_onnx(write_onnx([("Trilu", ["x", "q"], ["y"])], index), **values)


def transform(cut: bool) -> Any:
    file = write_onnx([("Neg", ["x"], ["r"]), ("DFT", ["r"], ["y"])])
    return extract(file, "x", "r") if cut else run_onnx(file)


def write_outside(read: Any) -> Any:
    save_model(layers.fc(read_rows(), 50, param_attr=fill(1.0)))
    fluid.export_onnx("model", "it.onnx", external_data=True)
    return read("it.onnx")


def load_one_file(cut: int) -> Any:
    layers.fc(read_rows(), 3, param_attr=fill(2.0))
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    io.save_params(exe, ".", filename="all")
    data = Path("all").read_bytes()
    Path("all").write_bytes(data[: len(data) - cut])
    io.load_params(exe, ".", filename="all")
    return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def write_table(ids: list[int], rows: Any, width: int = 4, **others: Any) -> Any:
    """Write a table as servers of Paddle 2 do, and read it again."""
    counts = np.zeros((len(ids), 3), "float32")
    values = {
        "000": SelectedRows(ids, 1 << 62, np.asarray(rows, "float32")),
        "000_counts": SelectedRows(ids, 1 << 62, counts),
        **others,
    }
    files = {name: b"".join(parts) for name, parts in ServerTables(shards=1).write(values).items()}
    return ServerTables(width=width).read_all(MemoryFolder(files))["000"].held_array


def parse(damaged: bool) -> Any:
    layers.scale(read_rows(), 2.0)
    data = fluid.default_main_program().desc.serialize_to_string()
    return len(fluid.Program.parse_from_string(b"\x0a\x00" if damaged else data).global_block().ops)


def load_twice_built(guarded: bool) -> Any:
    """Save a network; then load it into a program that has it twice, or into one built under guards."""
    from contextlib import nullcontext

    exe = fluid.Executor(CPU)

    def build(value: float) -> fluid.Variable:
        return layers.fc(layers.fc(read_rows(), 4, param_attr=fill(value)), 1, param_attr=fill(value))

    build(2.0)
    exe.run(fluid.default_startup_program())
    io.save_params(exe, "saved")
    for _ in range(2):
        with new_network() if guarded else nullcontext():
            out = build(1.0)
            exe.run(fluid.default_startup_program())
            io.load_params(exe, "saved")
            found = exe.run(feed={"x": ROWS}, fetch_list=[out])[0]
    return found


def convert_slice(reversed_after: bool) -> Any:
    x = fluid.data("x", [1, 5])
    if reversed_after:
        out = layers.reverse(layers.strided_slice(x, [1], [1], [4], [2]), [1])
    else:
        out = layers.strided_slice(x, [1], [4], [0], [-2])
    save_model(out)
    command("convert", "model", "new.pdmodel")
    program, feeds, fetches = io.load_inference_model(
        ".", fluid.Executor(CPU), "new.pdmodel", "new.pdiparams"
    )
    return run(fetches[0], {feeds[0]: np.arange(5, dtype="float32")[None]}, program)


def freeze(initialized: bool) -> Any:
    """Freeze a program that was quantized with ``abs_max``; its output is near that of the plain program."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    x = fluid.data("x", [None, 4, 1, 1])
    out = layers.scale(layers.conv2d(x, 2, 1, param_attr=fill(0.5), bias_attr=False), 1.0)
    scope, exe = fluid.global_scope(), fluid.Executor(CPU)
    if initialized:
        exe.run(startup)
    graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=True)
    slim.QuantizationTransformPass(scope, CPU, activation_quantize_type="abs_max").apply(graph)
    slim.QuantizationFreezePass(scope, CPU, weight_quantize_type="abs_max").apply(graph)
    found = exe.run(graph.to_program(), feed={"x": ROWS.reshape(2, 4, 1, 1)}, fetch_list=[out.name])[0]
    return np.abs(found[:, :, 0, 0] - SUMS / 2).max() < 0.2


def save_checkpoint(fails: bool) -> Any:
    layers.fc(read_rows(), 1, param_attr=fill(3.0))
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    kept = fluid.io.Checkpoints("checkpoints", every=1)
    with mock.patch.object(checkpoints.Checkpoints, "_look", side_effect=OSError(5, "Input/output error")):
        try:
            kept.save(exe, None, 1)
        except fluid.errors.SaveError:
            if fails:
                raise
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(ROWS[:1].T, CPU)
    fluid.io.Checkpoints("checkpoints").restore(exe)
    return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def compact(restored: bool) -> Any:
    layers.fc(read_rows(), 1)
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    io.save_persistables(exe, "saved")
    manifest = Path("saved/__manifest__")
    good = manifest.read_bytes()
    manifest.write_bytes(good[: len(good) // 2])
    if restored:
        manifest.write_bytes(good)
    return list(io.compact("saved").files)


ADVICE: dict[str, Advice] = {
    "a file without arrays": Advice(
        lambda: check(by_numpy=False),
        "write an npz file with numpy.savez(file, name=array)",
        lambda: check(by_numpy=True),
        SUMS,
    ),
    "a state of a newer release": Advice(
        lambda: unpickle(9),
        "load it with the release that wrote it, or a newer one",
        lambda: unpickle(1),
        str(fluid.regularizer.L2Decay(0.5)),
    ),
    "an attribute that HDF5 cannot hold": Advice(
        lambda: write_hdf5({"a": 1}),
        "HDF5 attributes hold texts, numbers and arrays of them, below 64 kB",
        lambda: write_hdf5(ROWS[0]),
        [0.0, 1.0, 2.0, 3.0],
    ),
    "a file that ends the HDF5 library": Advice(
        lambda: read_hdf5(crashes=True),
        "the file is damaged: get another copy; h5repack or h5debug of HDF5 may tell more",
        lambda: read_hdf5(crashes=False),
        ROWS,
    ),
    "arrays beside an ONNX model": Advice(
        lambda: write_outside(fluid.load_program_state),
        "open the model with paddlelike.import_onnx, which reads files beside it",
        lambda: write_outside(run_onnx),
        np.repeat(SUMS, 50, 1),
    ),
    "an input of ONNX that variables cannot hold": Advice(
        lambda: filter_texts(cut=False),
        "cut the model behind it by onnx.utils.extract_model, or give it another type there",
        lambda: filter_texts(cut=True),
        -ROWS,
    ),
    "an operator of ONNX that programs lack": Advice(
        lambda: transform(cut=False),
        "cut the model before these operators by onnx.utils.extract_model, and compute the rest outside",
        lambda: transform(cut=True),
        -ROWS,
    ),
    "an input of ONNX that an operator needs early": Advice(
        lambda: take_lower_part(),
        "give inputs that are the same at every run: import_onnx(file, values={{}}); or {}",
        lambda: take_lower_part(q=0),
        np.triu(ROWS),
    ),
    "a combined file that is cut": Advice(
        lambda: load_one_file(cut=3),
        "the {} before it are well formed: the file is damaged here, or something follows its last tensor",
        lambda: load_one_file(cut=0),
        np.full((4, 3), 2.0),
    ),
    "an id twice in a server's table": Advice(
        lambda: write_table([3, 3], ROWS),
        "join the rows of an id",
        lambda: write_table([3], ROWS.sum(0, keepdims=True)),
        ROWS.sum(0, keepdims=True),
    ),
    "a dense value beside a server's table": Advice(
        lambda: write_table([3, 5], ROWS, fc=fluid.LoDTensor(ROWS)),
        "save_one_table writes one table; rules=fluid.io.Rules().skip(...) leaves others out",
        lambda: write_table([3, 5], ROWS),
        ROWS,
    ),
    "a server's table of another width": Advice(
        lambda: write_table([3, 5], ROWS, width=8),
        "the width or the accessor differs, or no id reached embedx_threshold",
        lambda: write_table([3, 5], ROWS),
        ROWS,
    ),
    "a program without required fields": Advice(
        lambda: parse(damaged=True),
        "it is damaged, or written by a Paddle newer than 3.3",
        lambda: parse(damaged=False),
        1,
    ),
    "a program that holds its network twice": Advice(
        lambda: load_twice_built(guarded=False),
        "the program holds the network more than once: {} beside {}, as when a cell of a notebook is run again. "
        "Build it under `with fluid.program_guard(fluid.Program(), fluid.Program()), "
        "fluid.unique_name.guard():`, so that every run gives the same names",
        lambda: load_twice_built(guarded=True),
        16 * SUMS,
    ),
    "a slice backwards for Paddle 2": Advice(
        lambda: convert_slice(reversed_after=False),
        "a slice with steps above zero, then layers.reverse, computes the same in both",
        lambda: convert_slice(reversed_after=True),
        [[3.0, 1.0]],
    ),
    "freezing without values": Advice(
        lambda: freeze(initialized=False),
        "run the startup program, or load it",
        lambda: freeze(initialized=True),
        True,
    ),
    "older checkpoints that cannot be listed": Advice(
        lambda: save_checkpoint(fails=True),
        "restore it as it is: the checkpoint is complete",
        lambda: save_checkpoint(fails=False),
        np.full((4, 1), 3.0),
    ),
    "chains with a damaged manifest": Advice(
        lambda: compact(restored=False), "restore it from a copy", lambda: compact(restored=True), []
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_about_a_file_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
