"""The advice of errors of saves and loads, followed to the letter."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.io.asynchronous import wait_for_pending
from paddlelike.io.save import compact as compact_module
from paddlelike.storage.local.directory import LocalDirectory
from paddlelike.storage.local.transaction import Transaction
from tests.hints.advice import ROWS, SUMS, Advice, each, fill, new_network, read_rows, run
from tests.io.deltas.tables import Training

layers, io = fluid.layers, fluid.io
WEIGHTS = np.full((4, 1), 2.0)


def build(value: float = 2.0, bias: bool = False) -> fluid.Variable:
    """Build a layer whose weights are ``value``, and run its startup program."""
    out = layers.fc(read_rows(), 1, param_attr=fill(value), bias_attr=fill(3.0) if bias else False)
    fluid.Executor().run(fluid.default_startup_program())
    return out


def read(name: str = "fc_0.w_0") -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def save(bias: bool = False, **options: Any) -> None:
    """Save weights of 2 and biases of 3 into the folder ``m``."""
    with new_network():
        build(bias=bias)
        io.save_persistables(fluid.Executor(), "m", **options)


def save_state(path: str = "m") -> None:
    with new_network():
        build()
        fluid.save(fluid.default_main_program(), path)


def save_trained() -> None:
    """Save weights of 2 and the state of Momentum as one file."""
    with new_network():
        loss = layers.mean(layers.fc(read_rows(), 1, param_attr=fill(2.0), bias_attr=False))
        fluid.optimizer.Momentum(0.5, 0.9).minimize(loss)
        fluid.Executor().run(fluid.default_startup_program())
        io.save_persistables(fluid.Executor(), "m", filename="all")


def export(bias: bool = False, **options: Any) -> None:
    with new_network():
        out = build(bias=bias)
        io.save_inference_model("model", ["x"], [out], fluid.Executor(), **options)


def load(
    call: Callable[..., Any] = io.load_persistables, dirname: str = "m", bias: bool = False, **options: Any
) -> Any:
    """Load into a network whose weights are 0, and return them."""
    with new_network():
        build(0.0, bias)
        call(fluid.Executor(), dirname, **options)
        return read()


def predict(*arguments: Any, **options: Any) -> Any:
    with new_network():
        exe = fluid.Executor()
        program, names, targets = io.load_inference_model(*(arguments or ("model",)), exe, **options)
        return exe.run(program, feed={names[0]: ROWS}, fetch_list=targets)[0]


def load_state(path: str, **options: Any) -> Any:
    with new_network():
        build(0.0)
        fluid.load(fluid.default_main_program(), path, **options)
        return read()


def after(prepare: Callable[[], object], *calls: Callable[[], Any]) -> Any:
    """Return the results of calls, or the one result of one, after ``prepare``."""
    prepare()
    results = each(*calls)
    return results[0] if len(results) == 1 else results


def set_state(leave_out: bool) -> Any:
    state = {"fc_0.w_0": np.ones((4, 1), "float32"), "fc_0.b_0": np.ones(2, "float32")}
    build(0.0, bias=True)
    if leave_out:
        del state["fc_0.b_0"]
    fluid.set_program_state(fluid.default_main_program(), state)
    return [float(read().sum()), float(read("fc_0.b_0").sum())]


def load_subset(whole: bool) -> Any:
    """Load the values of a smaller network by a load of all, or by a state."""
    with new_network():
        build(0.0)
        layers.fc(read_rows_again(), 3, param_attr=fill(5.0), bias_attr=False, name="other")
        fluid.Executor().run(fluid.default_startup_program())
        main = fluid.default_main_program()
        if whole:
            fluid.load(main, "m")
        else:
            fluid.set_program_state(main, fluid.load_program_state("m"))
        return [float(read().sum()), float(read("other.w_0").sum())]


def read_rows_again() -> fluid.Variable:
    return fluid.default_main_program().global_block().var("x")


def export_targets(feeds: list[str]) -> Any:
    with new_network():
        out = layers.elementwise_add(read_rows(), fluid.data("y", [None, 4]))
        io.save_inference_model("model", feeds, [out], fluid.Executor())
        exe = fluid.Executor()
        program, names, targets = io.load_inference_model("model", exe)
        return exe.run(program, feed=dict.fromkeys(names, ROWS), fetch_list=targets)[0]


def export_other(target: str) -> Any:
    with new_network():
        x, y = read_rows(), fluid.data("y", [None, 4])
        double = layers.scale(x, 2.0)
        out = {"double": double, "sum": layers.elementwise_add(double, y)}[target]
        io.save_inference_model("model", ["x"], [out], fluid.Executor())
    return predict()


def save_gradient(how: str) -> Any:
    loss = layers.mean(layers.fc(read_rows(), 1, param_attr=fill(2.0), bias_attr=False))
    fluid.optimizer.SGD(0.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
    if how == "fetch":
        return run("fc_0.w_0@GRAD", {"x": np.ones((2, 4), "float32")}).sum()
    persistable = how == "persistable"
    io.save_vars(
        exe, "m", predicate=lambda v: v.name.startswith("fc_0.w_0") and (not persistable or v.persistable)
    )
    return sorted(name for name in os.listdir("m") if not name.startswith("__"))


def save_without_values(prepare: str) -> Any:
    """Save a variable that has no value, or that a startup program or a load gave one."""
    weight = layers.create_parameter([2], "float32", attr=fill(4.0))
    exe = fluid.Executor()
    if prepare == "startup":
        exe.run(fluid.default_startup_program())
    elif prepare == "load":
        exe.run(fluid.default_startup_program())
        io.save_vars(exe, "other", vars=[weight])
        fluid.global_scope().find_var(weight.name).get_tensor().set(np.zeros(2, "float32"), None)
        io.load_vars(exe, "other", vars=[weight])
    io.save_vars(exe, "saved", vars=[weight])
    return fluid.load_program_state("saved")[weight.name].tolist()


def slice_rows(first: int, last: int) -> Any:
    return io.load_slice("m", "fc_0.w_0", (first, last))


def save_sequences() -> None:
    with new_network():
        tensor = fluid.create_lod_tensor(ROWS, [[1, 1]], fluid.CPUPlace())
        variable = (
            fluid.default_main_program()
            .global_block()
            .create_var(name="rows", shape=[-1, 4], dtype="float32", lod_level=1, persistable=True)
        )
        fluid.global_scope().var("rows").get_tensor().set(ROWS, fluid.CPUPlace())
        fluid.global_scope().find_var("rows").get_tensor().set_lod(tensor.lod())
        io.save_vars(fluid.Executor(), "m", vars=[variable])


def load_sequences() -> Any:
    variable = (
        fluid.default_main_program()
        .global_block()
        .create_var(name="rows", shape=[-1, 4], dtype="float32", lod_level=1, persistable=True)
    )
    io.load_vars(fluid.Executor(), "m", vars=[variable])
    tensor = fluid.global_scope().find_var("rows").get_tensor()
    return [np.array(tensor).sum(), tensor.lod()[0][1]]


def damage(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[-1] ^= 1
    Path(path).write_bytes(bytes(data))


def checkpoint(*steps: int) -> io.Checkpoints:
    """Save checkpoints of the steps; the weights hold the number of the step."""
    build()
    exe, found = fluid.Executor(), io.Checkpoints("steps", keep_last=9)
    for step in steps:
        fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(np.full((4, 1), step, "float32"), None)
        found.save(exe, None, step)
    return found


def restore(*steps: int, step: int | None = None, mend: Callable[[], object] = lambda: None) -> Any:
    found = checkpoint(*steps)
    mend()
    state = found.restore(fluid.Executor(), step=step)
    return None if state is None else [state["step"], float(read()[0, 0])]


def export_printing() -> None:
    with new_network():
        io.save_inference_model(
            "model", ["x"], [layers.scale(layers.Print(read_rows()), 2.0)], fluid.Executor()
        )


def load_by_program(path: str) -> Any:
    """Load by an operator ``load`` whose attribute is the path."""
    with new_network():
        block = fluid.default_main_program().global_block()
        block.create_var(name="w", shape=[4, 1], dtype="float32", persistable=True)
        block.append_op("load", {}, {"Out": ["w"]}, {"file_path": path})
        fluid.Executor().run(fluid.default_main_program())
        return read("w")


def load_combined(names: list[str], path: str = "m/all") -> Any:
    with new_network():
        block = fluid.default_main_program().global_block()
        for name in names:
            block.create_var(
                name=name, shape=[4, 1] if "w" in name else [1], dtype="float32", persistable=True
            )
        block.append_op("load_combine", {}, {"Out": names}, {"file_path": path})
        fluid.Executor().run(fluid.default_main_program())
        return [float(read(name).sum()) for name in names]


def save_with_bias() -> None:
    save(bias=True, filename="all")


def save_unnamed() -> None:
    """Save as Paddle does, without a manifest."""
    save_with_bias()
    os.remove("m/__manifest__")


NAMES = ["fc_0.b_0", "fc_0.w_0"]


def save_rows(filename: str | None) -> Any:
    """Save a table that holds only some rows."""
    with new_network():
        block, exe = fluid.default_main_program().global_block(), fluid.Executor()
        kind = fluid.core.VarDesc.VarType.SELECTED_ROWS
        table = block.create_var(name="t", shape=[9, 1], dtype="float32", type=kind, persistable=True)
        held = fluid.global_scope().var("t").get_selected_rows()
        held.set_height(9)
        held.set_rows([4])
        held.get_tensor().set(np.full((1, 1), 5.0, "float32"), fluid.CPUPlace())
        io.save_vars(exe, "m", vars=[table], filename=filename)
    with new_network():
        block = fluid.default_main_program().global_block()
        table = block.create_var(name="t", shape=[9, 1], dtype="float32", type=kind, persistable=True)
        io.load_vars(exe, "m", vars=[table])
        found = fluid.global_scope().find_var("t").get_selected_rows()
        return [list(found.rows()), np.array(found.get_tensor()).ravel().tolist()]


def save_aside(reported: bool | None) -> Any:
    """Save in the background where a save fails; then save again."""
    build()
    exe = fluid.Executor()
    with mock.patch.object(Transaction, "commit", side_effect=RuntimeError("no")):
        handle = io.save_persistables(exe, "m", blocking=False)
        with contextlib.suppress(fluid.errors.SaveError, RuntimeError):
            handle.wait() if reported else handle.done() or wait_for_pending()
    try:
        io.save_persistables(exe, "m")
    except fluid.errors.SaveError:
        if reported is None:
            io.save_persistables(exe, "m")
        else:
            raise
    return load()


def read_checkpoint(again: bool) -> Any:
    """Read a checkpoint that another process removes meanwhile."""
    found = checkpoint(1, 2)
    latest = found.latest()
    shutil.rmtree(latest.path)
    if again:
        latest = found.latest()
    with found.reading(latest) as path:
        io.load_persistables(fluid.Executor(), path)
        return float(read()[0, 0])


def load_over(how: str) -> Any:
    """Load in place from a damaged directory, then from a good one, or start again."""
    save(bias=True)
    shutil.copytree("m", "good")
    damage("m/fc_0.w_0")
    build(0.0, bias=True)
    exe = fluid.Executor()
    try:
        io.load_persistables(exe, "m", in_place=True, verify=True)
    except fluid.errors.LoadError:
        if how == "bad":
            raise
    if how == "startup":
        exe.run(fluid.default_startup_program())
    else:
        io.load_persistables(exe, "good", in_place=True, verify=True)
    return float(read().sum())


def load_while_saved(times: int) -> Any:
    """Load a directory that is saved again during the first tries."""
    save()
    stamps, left = LocalDirectory.stamp, [times]

    def stamp(self: Any) -> Any:
        left[0] -= 1
        return object() if left[0] >= 0 else stamps(self)

    with mock.patch.object(LocalDirectory, "stamp", stamp):
        return load()


def open_pipe(path: str) -> Any:
    save_state()
    os.mkfifo("pipe.pdparams")
    return load_state(path)


def save_chain(name: str = "m") -> Any:
    """Save a table of which a row is changed by a link of a chain of deltas."""
    training = Training()
    training.save(name, delta=True)
    training.step(3)
    training.save(name, delta=True)
    return training


def load_chain(name: str = "m") -> bool:
    """Return whether a load gives the values of the same training."""
    with new_network():
        again = save_chain("again")
        return Training().loaded(name) == again.values()


def continue_chain(whole: bool) -> Any:
    """Save deltas after the link of a chain was replaced."""
    training = save_chain()
    next(Path("m/__deltas__").glob("emb.*.1")).write_bytes(b"other")
    if whole:
        training.save("m")
        training.step(4)
    training.save("m", delta=True)
    return training.loaded("m") == training.values() and Path("m/__deltas__").exists()


def double_chain(how: str) -> Any:
    """Load a directory with a file beside its chain; return whether the table is the one of that file."""
    training = save_chain()
    before = training.values()
    training.step(5)
    training.save("whole")
    shutil.copy("whole/emb", "m/emb")
    if how == "remove":
        os.remove("m/emb")
    elif how == "move":
        Path("apart").mkdir()
        shutil.move("m/emb", "apart/emb")
    again = Training()
    again.load("m")
    if how == "move":
        table = again.main.global_block().var("emb")
        with fluid.scope_guard(again.scope):
            io.load_vars(again.exe, "apart", again.main, vars=[table])
    found, last = again.values(), training.values()
    assert all(found[name] == value for name, value in before.items() if name != "emb")
    return [found["emb"] == before["emb"], found["emb"] == last["emb"]]


def compact_while_saved(times: int) -> Any:
    """Compact a chain that is saved again meanwhile."""
    training, encode, left = save_chain(), compact_module.encode_value, [times]

    def save_meanwhile(value: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            training.save("m", delta=True)
        return encode(value)

    with mock.patch.object(compact_module, "encode_value", save_meanwhile):
        try:
            io.compact("m")
        except fluid.errors.SaveError:
            if times == 1:
                raise
            io.compact("m")
    return training.loaded("m") == training.values() and not Path("m/__deltas__").exists()


ADVICE: dict[str, Advice] = {
    "rows in a combined file": Advice(
        lambda: save_rows("all"),
        "save without filename=, one file for each variable",
        lambda: save_rows(None),
        [[4], [5.0]],
    ),
    "a checkpoint that was removed": Advice(
        lambda: read_checkpoint(again=False),
        "ask latest() again",
        lambda: read_checkpoint(again=True),
        1.0,
    ),
    "a pipe in the place of a state": Advice(
        lambda: open_pipe("pipe"),
        "{} is not a file: no pipe, socket or device is read",
        lambda: open_pipe("m"),
        WEIGHTS,
    ),
    "a directory that is saved again and again": Advice(
        lambda: load_while_saved(99),
        "load when no other process saves there",
        lambda: load_while_saved(0),
        WEIGHTS,
    ),
    "outputs that a combined file lacks": Advice(
        lambda: after(save_state, lambda: load_combined(["other.w_0"], "m.pdparams")),
        "its outputs are the variables in the file, in the order of their saving",
        lambda: after(save_state, lambda: load_combined(["fc_0.w_0"], "m.pdparams")),
        [8.0],
    ),
    "a chain without its manifest": Advice(
        lambda: after(lambda: [save_chain(), os.remove("m/__manifest__")], load_chain),
        "copy __manifest__ with the files, or load another checkpoint",
        lambda: after(
            lambda: [save_chain(), shutil.copytree("m", "copy"), os.remove("m/__manifest__")],
            lambda: load_chain("copy"),
            lambda: [shutil.copy("copy/__manifest__", "m"), load_chain()][1],
        ),
        [True, True],
    ),
    "a file beside its chain": Advice(
        lambda: double_chain("both"),
        "keep one: remove the file; or move it into another directory, and load it from there by load_vars after the rest",
        lambda: [double_chain("remove"), [shutil.rmtree("m"), double_chain("move")][1]],
        [[True, False], [False, True]],
    ),
    "a link that was replaced": Advice(
        lambda: continue_chain(whole=False),
        "a save without delta= writes whole values; the next one with it begins new chains",
        lambda: continue_chain(whole=True),
        True,
    ),
    "a chain that is saved while it is compacted": Advice(
        lambda: compact_while_saved(1),
        "compact it again",
        lambda: compact_while_saved(2),
        True,
    ),
    "values that are half loaded": Advice(
        lambda: load_over("bad"),
        "load a good directory, or run the startup program again",
        lambda: each(
            lambda: load_over("good"),
            lambda: [shutil.rmtree("m"), shutil.rmtree("good"), load_over("startup")][2],
        ),
        [8.0, 0.0],
    ),
    "a save in the background that failed": Advice(
        lambda: save_aside(False),
        "save again; wait() of the handle reports a failure earlier",
        lambda: each(lambda: save_aside(None), lambda: [shutil.rmtree("m"), save_aside(True)][1]),
        [WEIGHTS, WEIGHTS],
    ),
    "a directory in the place of the executor": Advice(
        lambda: io.save_persistables("m", fluid.Executor()),  # type: ignore[arg-type]
        "make one with fluid.Executor(fluid.CPUPlace()); saves and loads take it before the directory, save_inference_model after the targets",
        lambda: after(
            lambda: each(
                lambda: [build(), io.save_persistables(fluid.Executor(fluid.CPUPlace()), "m")], export
            ),
            load,
            predict,
        )[1],
        2 * SUMS,
    ),
    "a program in the place of the directory": Advice(
        lambda: io.load_persistables(fluid.Executor(), fluid.Program()),  # type: ignore[arg-type]
        "the executor comes first, then the directory, then the program",
        lambda: after(save, lambda: load(main_program=None)),
        WEIGHTS,
    ),
    "a directory that is not there": Advice(
        lambda: after(save, lambda: load(dirname="elsewhere")),
        "check the path",
        lambda: after(save, load),
        WEIGHTS,
    ),
    "a near name of a directory": Advice(
        lambda: after(
            lambda: [save(), os.rename("m", "model_of_today")], lambda: load(dirname="model_of_toda")
        ),
        "did you mean {}?",
        lambda: after(
            lambda: [save(), os.rename("m", "model_of_today")], lambda: load(dirname="model_of_today")
        ),
        WEIGHTS,
    ),
    "a combined file as a directory": Advice(
        lambda: after(lambda: save(filename="all"), lambda: load(dirname="m/all")),
        "a combined file is read by dirname={}, filename={}",
        lambda: after(lambda: save(filename="all"), lambda: load(dirname="m", filename="all")),
        WEIGHTS,
    ),
    "a combined file that is not there": Advice(
        lambda: after(save, lambda: load(filename="all")),
        "leave filename out for a directory with one file per variable",
        lambda: after(save, load),
        WEIGHTS,
    ),
    "a model without a directory": Advice(
        lambda: predict("nowhere"),
        "the path is that of save_inference_model; relative ones begin at {}",
        lambda: after(export, lambda: predict(os.path.join(os.getcwd(), "model")), lambda: predict("model"))[
            1
        ],
        2 * SUMS,
    ),
    "a model that prints": Advice(
        lambda: after(export_printing, predict),
        "if you trust the source of this model: load_inference_model(..., trusted=True)",
        lambda: after(export_printing, lambda: predict(trusted=True)),
        2 * ROWS,
    ),
    "a model of another name": Advice(
        lambda: after(lambda: export(model_filename="net"), predict),
        "the directory holds {}: pass it as model_filename=",
        lambda: after(lambda: export(model_filename="net"), lambda: predict(model_filename="net")),
        2 * SUMS,
    ),
    "values without a program": Advice(
        lambda: after(save, lambda: predict("m")),
        "the directory holds no program: save_inference_model writes one. For values alone, as save_persistables writes them, build the network and call load_persistables",
        lambda: after(lambda: [export(), save()], predict, load)[0] + 0 * load().sum(),
        2 * SUMS,
    ),
    "a feed that the target does not need": Advice(
        lambda: export_targets(["z"]),
        "feed the inputs the targets are computed from: {}",
        lambda: export_targets(["x", "y"]),
        2 * ROWS,
    ),
    "an input that is not fed": Advice(
        lambda: export_targets(["x"]),
        "add it to feeded_var_names, or choose targets that do not need it",
        lambda: [export_targets(["x", "y"]).sum(), export_other("double").sum()],
        [56.0, 56.0],
    ),
    "a load of an empty program": Advice(
        lambda: after(save, load_other),
        "pass the program that was built (main_program=), or vars=",
        lambda: after(
            save,
            lambda: load(main_program=None),
            lambda: load(io.load_vars, vars=None, predicate=lambda one: one.persistable),
        )[1],
        WEIGHTS,
    ),
    "the prefix of a save that is not there": Advice(
        lambda: load_state("nowhere/m"),
        "there is no directory {}: check the path",
        lambda: after(lambda: save_state("here/m"), lambda: load_state("here/m")),
        WEIGHTS,
    ),
    "a directory of a save of fluid.save": Advice(
        lambda: after(lambda: save_state("d/m"), lambda: load(dirname="d")),
        "fluid.load(program, {})",
        lambda: after(lambda: save_state("d/m"), lambda: load_state("d/m")),
        WEIGHTS,
    ),
    "a directory with one combined file": Advice(
        lambda: after(save_with_bias, lambda: load(bias=True)),
        "pass filename={}",
        lambda: after(save_with_bias, lambda: load(bias=True, filename="all")),
        WEIGHTS,
    ),
    "a directory of directories": Advice(
        lambda: after(
            lambda: [save(), os.mkdir("all"), os.rename("m", "all/m")], lambda: load(dirname="all")
        ),
        "did you mean {}/{}?",
        lambda: after(
            lambda: [save(), os.mkdir("all"), os.rename("m", "all/m")], lambda: load(dirname="all/m")
        ),
        WEIGHTS,
    ),
    "a prefix that ends like a file": Advice(
        lambda: after(lambda: save_state("m.pdparams"), lambda: load_state("m.pdparams")),
        "the file is {}; pass its whole name: a last .pdparams is not part of the prefix",
        lambda: after(lambda: save_state("m.pdparams"), lambda: load_state("m.pdparams.pdparams")),
        WEIGHTS,
    ),
    "values of other names": Advice(
        lambda: after(save, lambda: load_renamed(rules=False)),
        "of them may have other names in the files: plan_load(...).rules() proposes them; pass these as rules=",
        lambda: after(save, lambda: load_renamed(rules=True)),
        WEIGHTS,
    ),
    "a state of other names": Advice(
        lambda: [
            build(),
            fluid.set_program_state(fluid.default_main_program(), {"other": np.ones((4, 1), "float32")}),
        ],
        "the state has {}; the program has {}",
        lambda: [
            build(),
            fluid.set_program_state(fluid.default_main_program(), {"fc_0.w_0": np.ones((4, 1), "float32")}),
            read(),
        ][2],
        np.ones((4, 1)),
    ),
    "a path of an operator": Advice(
        lambda: after(save, lambda: load_by_program("m/fc_0.w_1")),
        "check the attribute file_path of the load operators",
        lambda: after(save, lambda: load_by_program("m/fc_0.w_0")),
        WEIGHTS,
    ),
    "fewer outputs than variables": Advice(
        lambda: after(save_with_bias, lambda: load_combined(NAMES[:1])),
        "load a combined file with the variables that were saved into it",
        lambda: after(save_with_bias, lambda: load_combined(NAMES)),
        [3.0, 8.0],
    ),
    "a state without a variable": Advice(
        lambda: after(save, lambda: fluid.load_program_state("m", [fluid.data("none", [1])])),
        "pass variables that were saved there",
        lambda: after(save, lambda: fluid.load_program_state("m", [build_weight()])["fc_0.w_0"]),
        WEIGHTS,
    ),
    "a part of a combined file": Advice(
        lambda: after(save_with_bias, lambda: fluid.load_program_state("m/all", [build_weight()])),
        "pass the variables of one save, all of them",
        lambda: after(save_with_bias, lambda: fluid.load_program_state("m/all", build_both())["fc_0.w_0"]),
        WEIGHTS,
    ),
    "a file that was deleted": Advice(
        lambda: after(lambda: [save(), os.remove("m/fc_0.w_0")], load),
        "the manifest lists {}: deleted after the save, or not copied with the directory",
        lambda: after(
            lambda: [
                save(),
                shutil.copytree("m", "copy"),
                os.remove("m/fc_0.w_0"),
                shutil.copy("copy/fc_0.w_0", "m"),
            ],
            load,
        ),
        WEIGHTS,
    ),
    "a slice of sequences": Advice(
        lambda: after(save_sequences, lambda: io.load_slice("m", "rows", (0, 1))),
        "fluid.io.load_vars reads it whole, with its LoD",
        lambda: after(save_sequences, load_sequences),
        [28.0, 1],
    ),
    "rows that are not there": Advice(
        lambda: after(save, lambda: slice_rows(2, 9)),
        "choose 0 <= first <= last <= {}",
        lambda: after(save, lambda: slice_rows(2, 4)),
        [[2.0], [2.0]],
    ),
    "a slice of a combined file": Advice(
        lambda: after(save_unnamed, lambda: io.load_slice("m", "fc_0.w_0", (0, 2), filename="all")),
        "pass names=, the variables it holds or the program it was saved from",
        lambda: after(
            save_unnamed,
            lambda: io.load_slice("m", "fc_0.w_0", (0, 2), filename="all", names=NAMES),
            lambda: io.load_slice("m", "fc_0.w_0", (0, 2), filename="all", names=build_program()),
        )[1],
        [[2.0], [2.0]],
    ),
    "another call than the one that saved": Advice(
        lambda: after(save_trained, lambda: load(filename="all")),
        "a combined file stores no names: load it with the program, and the call (params or persistables), that saved it, or pass names={}",
        lambda: after(
            save_trained,
            lambda: load(filename="all", names=["fc_0.w_0", "fc_0.w_0_velocity_0", "learning_rate_0"]),
        ),
        WEIGHTS,
    ),
    "a gradient that is saved": Advice(
        lambda: save_gradient("all"),
        "a gradient lives for one run: fetch it, or add `and v.persistable` to the predicate",
        lambda: each(lambda: float(save_gradient("fetch")), lambda: save_gradient("persistable")),
        [4.0, ["fc_0.w_0"]],
    ),
    "a variable without a value": Advice(
        lambda: save_without_values("nothing"),
        "run the startup program first (exe.run({}), or load the values",
        lambda: each(lambda: save_without_values("startup"), lambda: save_without_values("load")),
        [[4.0, 4.0]] * 2,
    ),
    "a file that exists": Advice(
        lambda: after(save, lambda: save_by_program("m/fc_0.w_0")),
        "remove the file or choose another path",
        lambda: after(
            save,
            lambda: [os.remove("m/fc_0.w_0"), save_by_program("m/fc_0.w_0")][1],
            lambda: save_by_program("m/other"),
        ),
        [[7.0, 7.0]] * 2,
    ),
    "a larger network than the saved one": Advice(
        lambda: after(save_state, lambda: load_subset(whole=True)),
        "the program must be the network that was saved; set_program_state accepts a subset",
        lambda: after(save_state, lambda: load_state("m").sum(), lambda: load_subset(whole=False)[0]),
        [8.0, 8.0],
    ),
    "a state of another network": Advice(
        lambda: set_state(leave_out=False),
        "the state must be of the same network; leave these names out of the dict to set the others",
        lambda: set_state(leave_out=True),
        [4.0, 3.0],
    ),
    "a directory of variables without an executor": Advice(
        lambda: after(save, lambda: load_state("m")),
        "fluid.load(program, path, executor=exe), or fluid.io.load_persistables(exe, directory)",
        lambda: after(save, lambda: load_state("m", executor=fluid.Executor()).sum(), lambda: load().sum()),
        [8.0, 8.0],
    ),
    "a file that was damaged": Advice(
        lambda: after(lambda: [save(bias=True), damage("m/fc_0.w_0")], lambda: load(bias=True, verify=True)),
        "they were damaged, or replaced by another program after the save; verify=False loads them as they are, fluid.io.verify compares all files of the directory",
        lambda: after(
            lambda: [save(bias=True), damage("m/fc_0.w_0")],
            lambda: float(load(bias=True, verify=False)[0, 0]),
            lambda: len(io.verify("m").changed),
        ),
        [2.0, 1],
    ),
    "files of another save": Advice(
        lambda: after(
            lambda: [save(bias=True), damage("m/fc_0.w_0"), damage("m/fc_0.b_0")],
            lambda: load(bias=True, verify=True),
        ),
        "no file is as it was saved: {} probably belongs to another save; verify=False loads the files as they are",
        lambda: after(
            lambda: [save(bias=True), damage("m/fc_0.w_0"), damage("m/fc_0.b_0")],
            lambda: load(bias=True, verify=False)[:3],
        ),
        WEIGHTS[:3],
    ),
    "a directory without a manifest": Advice(
        lambda: after(lambda: [save(), os.remove("m/__manifest__")], lambda: load(verify=True)),
        "load without verify=True, or save again to have a manifest",
        lambda: after(
            lambda: [save(), os.remove("m/__manifest__")],
            lambda: load().sum(),
            lambda: [save(), load(verify=True).sum()][1],
        ),
        [8.0, 8.0],
    ),
    "a step without a checkpoint": Advice(
        lambda: restore(1, 3, step=2),
        "choose a step with a checkpoint: {}",
        lambda: restore(1, 3, step=3),
        [3, 3.0],
    ),
    "checkpoints that are damaged": Advice(
        lambda: restore(1, mend=lambda: [damage(str(one)) for one in Path("steps").rglob("fc_0.w_0")]),
        "remove the damaged directories to start over",
        lambda: restore(1, mend=lambda: [shutil.rmtree(one) for one in Path("steps").iterdir()]),
        None,
    ),
}


def load_renamed(rules: bool) -> Any:
    """Load into a network whose layer has another name."""
    with new_network():
        layers.fc(read_rows(), 1, param_attr=fluid.ParamAttr(name="other.w_0"), bias_attr=False)
        exe, main = fluid.Executor(), fluid.default_main_program()
        exe.run(fluid.default_startup_program())
        if rules:
            io.load_persistables(exe, "m", rules=io.plan_load("m", main).rules())
        else:
            io.load_persistables(exe, "m")
        return read("other.w_0")


def load_other() -> Any:
    """Load into a program that holds no persistable."""
    layers.scale(read_rows(), 2.0)
    return io.load_persistables(fluid.Executor(), "m")


def build_weight() -> Any:
    build()
    return fluid.default_main_program().global_block().var("fc_0.w_0")


def build_both() -> Any:
    build(bias=True)
    return fluid.default_main_program().all_parameters()


def build_program() -> fluid.Program:
    build(bias=True)
    return fluid.default_main_program()


def save_by_program(path: str) -> Any:
    block = fluid.default_main_program().global_block()
    value = layers.fill_constant([2], "float32", 7.0)
    block.append_op("save", {"X": [value]}, {}, {"file_path": path, "overwrite": False})
    fluid.Executor().run(fluid.default_main_program())
    name = os.path.basename(path)
    return fluid.load_program_state(path)[name].tolist()


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_a_save_or_load_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
