"""The advice of errors of runs, feeds, fetches and of Python itself, followed to the letter."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.exchange.fetches import _fetch_var
from paddlelike.foundation.tracebacks import install_hook
from paddlelike.framework.opdef import registry
from tests.hints.advice import ROWS, SUMS, Advice, each, fill, hold, new_network, read_rows, run

layers = fluid.layers
ONES = np.ones((2, 4), "float32")
IDS = np.array([[1], [2]], "int64")


PICTURES = np.arange(24, dtype="float32").reshape(2, 3, 4)


def read_pictures() -> fluid.Variable:
    return layers.scale(fluid.data("picture", [None, 3, 4]), 2.0)


def fetch_unset(ended: bool) -> Any:
    """Fetch a persistable that a startup program sets, or does not."""
    value = layers.create_global_var([2], 3.0, "float32", persistable=True)
    exe = fluid.Executor()
    if ended:
        exe.run(fluid.default_startup_program())
    return exe.run(feed={"x": ROWS}, fetch_list=[double(), value])[1]


def double() -> fluid.Variable:
    return layers.scale(read_rows(), 2.0)


def make_out() -> fluid.Variable:
    return layers.fc(read_rows(), 1, param_attr=fill(1.0), bias_attr=False)


def execute(**options: Any) -> Any:
    return fluid.Executor(fluid.CPUPlace()).run(**options)[0]


def train(rows: Any, **options: Any) -> Any:
    """Return the weights, at first ones, after a step of rate 0.5 on each batch."""
    loss = layers.mean(make_out())
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for array in rows:
        if len(array) or options.get("all_batches"):
            exe.run(feed={"x": array}, fetch_list=[loss])
    return read_value("fc_0.w_0")


def read_value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def run_copies(feed: Any, copies: int, trains: bool = True) -> Any:
    out = make_out()
    if trains:
        fluid.optimizer.SGD(0.0).minimize(layers.mean(out))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name="mean_0.tmp_0" if trains else None, places=[fluid.CPUPlace()] * copies
    )
    return exe.run(program, feed=feed, fetch_list=[out])[0]


def run_with_cpu_num(count: str, rows: Any) -> Any:
    with mock.patch.dict(os.environ, {"CPU_NUM": count}):
        return run_copies({"x": rows}, len(fluid.cpu_places()))


def count_lines(dataset: bool) -> Any:
    x = fluid.data("x", [None, 1], "int64")
    total = layers.create_global_var([1], 0, "int64", persistable=True, name="total")
    layers.assign(layers.elementwise_add(total, layers.reduce_sum(x)), total)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    lines = None
    if dataset:
        Path("lines").write_text("1 3\n1 4\n")
        lines = fluid.DatasetFactory().create_dataset("QueueDataset")
        lines.set_use_var([x])
        lines.set_filelist(["lines"])
    exe.train_from_dataset(fluid.default_main_program(), lines)
    return read_value("total")


def feed_sequences(value: Any) -> Any:
    x = fluid.data("words", [None, 1], "int64", lod_level=1)
    return run(layers.sequence_pool(layers.cast(x, "float32"), "sum"), {"words": value})


def fetch_sparse(how: str) -> Any:
    """Return the sum of the gradient of an embedding of which two rows are looked up."""
    ids = fluid.data("ids", [None, 1], "int64")
    out = layers.embedding(ids, [3, 2], is_sparse=how != "dense", param_attr=fill(1.0))
    fluid.backward.append_backward(layers.reduce_sum(out))
    gradient = fluid.default_main_program().global_block().var("embedding_0.w_0@GRAD")
    if how == "tensor":
        gradient = layers.get_tensor_from_selected_rows(layers.merge_selected_rows(gradient))
    return run(gradient, {"ids": IDS}).sum()


def fetch_sequences(return_numpy: bool) -> Any:
    x = fluid.data("x", [None, 4], lod_level=1)
    tensor = fluid.create_lod_tensor(ROWS, [[1, 1]], fluid.CPUPlace())
    return np.array(run(layers.scale(x, 2.0), {"x": tensor}, return_numpy=return_numpy))


def read_later(name: str) -> Any:
    """Run a network, then look for a value in the scope."""
    out = make_out()
    run(out, {"x": ROWS})
    return _fetch_var("fc_0.tmp_0" if name == "temporary" else "fc_0.w_0")


def write_in_branch(before: bool) -> Any:
    """Read a variable that a branch writes, which is not taken."""
    out = fluid.default_main_program().global_block().create_var(name="out", shape=[2, 4], dtype="float32")
    if before:
        layers.assign(hold(3 * ROWS), out)
    branch = layers.control.branches.ConditionalBlock([hold(np.array([False]))], is_scalar_condition=True)
    with branch.block():
        layers.assign(hold(ROWS), out)
    return run(layers.scale(out, 1.0))


def clone_for_test(before_minimize: bool) -> Any:
    """Predict with a clone of a program whose gradients pass through a layer before they are applied."""
    x = fluid.data("x", [None, 4])
    out = layers.fc(x, 1, param_attr=fill(2.0))
    test = program = fluid.default_main_program()
    if before_minimize:
        test = program.clone(for_test=True)
    optimizer = fluid.optimizer.SGD(0.1)
    optimizer.apply_gradients([(p, layers.clip(g, -1, 1)) for p, g in optimizer.backward(layers.mean(out))])
    if not before_minimize:
        test = program.clone(for_test=True)
    return run(out, {"x": ROWS}, test)


def explain(prune: bool) -> Any:
    out = double()
    layers.Print(out)
    program = fluid.default_main_program()
    program = program._prune([out]) if prune else program
    explained = fluid.Executor().explain(program, feed={"x": ROWS}, fetch_list=[out])
    return [name for step in explained.steps for name in step.operators]


def load_model(names: list[str]) -> Any:
    out, exe = double(), fluid.Executor()
    fluid.io.save_inference_model("m", ["x"], [out], exe)
    program, feeds, targets = fluid.io.load_inference_model("m", exe)
    return exe.run(program, feed=dict.fromkeys(names or feeds, ROWS), fetch_list=targets)[0]


def run_unknown(prune: bool) -> Any:
    out = double()
    layers.assign(out)
    data = fluid.default_main_program().desc.serialize_to_string().replace(b"assign", b"zzzign")
    program = fluid.Program.parse_from_string(data)
    return run(out.name, {"x": ROWS}, program._prune([out.name]) if prune else program)


def explain_compiled(compiled: bool) -> Any:
    out, program = double(), fluid.default_main_program()
    explained = fluid.Executor().explain(
        fluid.CompiledProgram(program)._program if not compiled else object(),
        feed={"x": ROWS},
        fetch_list=[out],
    )
    return explained.steps[0].operators


def train_pieces(joined: bool) -> Any:
    """Return the weights after a step on two batches joined, or what a pass would merge."""
    if not joined:
        return fluid.BuildStrategy()._finalize_strategy_and_create_passes()
    return train([np.concatenate([ONES, 3 * ONES])])


def check_finite(flag: bool) -> Any:
    with np.errstate(all="ignore"):
        fluid.set_flags({"FLAGS_check_nan_inf": flag})
        try:
            return run(layers.log(read_rows()), {"x": 0 * ROWS})
        finally:
            fluid.set_flags({"FLAGS_check_nan_inf": False})


def show(mistake: Callable[[], object]) -> Callable[[], None]:
    """Return the mistake with what the traceback of a script says as the text of its error."""

    def shown() -> None:
        before, text = sys.excepthook, io.StringIO()
        others = [one for one in sys.meta_path if "import_paddle" not in type(one).__module__]
        sys.excepthook = sys.__excepthook__
        install_hook()
        try:
            with mock.patch.object(sys, "meta_path", others):
                mistake()
        except Exception:
            with contextlib.redirect_stderr(text):
                sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        finally:
            sys.excepthook = before
        raise RuntimeError(text.getvalue())

    return shown


def batch_reader() -> Iterator[Any]:
    yield from ROWS


def save_and_load() -> Any:
    out, exe, main = make_out(), fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    fluid.save(main, "m")
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(np.zeros((4, 1), "float32"), None)
    fluid.load(main, "m", exe)
    return exe.run(main, feed={"x": ROWS}, fetch_list=[out])[0]


def evaluate() -> Any:
    out = make_out()
    program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.5).minimize(layers.mean(out))
    run(out, {"x": ROWS}, program)
    return run(out, {"x": ROWS}, program)


def open_model() -> Any:
    exe = fluid.Executor()
    fluid.io.save_inference_model("m", ["x"], [double()], exe)
    program, feed_names, fetch_vars = fluid.io.load_inference_model("m", exe)
    return exe.run(program, feed={feed_names[0]: ROWS}, fetch_list=fetch_vars)[0]


def take_two() -> Any:
    exe = fluid.Executor()
    fluid.io.save_inference_model("m", ["x"], [double()], exe)
    program, names = fluid.io.load_inference_model("m", exe)
    return program, names


def guard() -> Any:
    main_program, startup_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup_program):
        out = double()
    return run(out, {"x": ROWS}, main_program)


def enter_program() -> Any:
    with fluid.Program():  # type: ignore[attr-defined]
        return None


def list_scope() -> Any:
    exe = fluid.Executor()
    make_out()
    exe.run(fluid.default_startup_program())
    return fluid.global_scope().local_var_names()


def call_numpy_in_layers() -> Any:
    return [run(layers.exp(hold(0 * ROWS))).sum(), np.exp(run(hold(0 * ROWS))).sum()]


def use_list(results: Any) -> Any:
    return results.item()


def multiply_fed(shape: list[int], value: Any, columns: int = 1) -> Any:
    """Multiply fed rows by weights of ones; ``layers.data`` puts a batch axis in front of the shape."""
    x = layers.data("x", shape)
    return run(layers.fc(x, 1, columns, param_attr=fill(1.0), bias_attr=False), {"x": value})


def keep_unknown(how: str) -> Any:
    """Run a program with an unknown operator, or do what does not run it."""
    out = double()
    layers.assign(out)
    data = fluid.default_main_program().desc.serialize_to_string().replace(b"assign", b"zzzign")
    program = fluid.Program.parse_from_string(data)
    if how == "run":
        return registry.find("zzzign")
    Path("net").write_bytes(program.desc.serialize_to_string())
    again = fluid.Program.parse_from_string(Path("net").read_bytes())
    rest = again._prune([again.global_block().var(out.name)])
    return ["zzzign" in str(again), run(out.name, {"x": ROWS}, rest).sum()]


ADVICE: dict[str, Advice] = {
    "an array of another rank": Advice(
        lambda: multiply_fed([2, 4], ROWS.reshape(1, 1, 2, 4), 2),
        "reshape the array",
        lambda: multiply_fed([2, 4], ROWS.reshape(1, 2, 4), 2),
        SUMS[None],
    ),
    "a batch that layers.data was given": Advice(
        lambda: multiply_fed([2, 4], ROWS),
        ". Or, if {} is the batch: layers.data puts a batch axis in front, so declare layers.data({}, {})",
        lambda: multiply_fed([4], ROWS),
        SUMS,
    ),
    "a type of operators that is not known": Advice(
        lambda: keep_unknown("run"),
        "a program that holds it can be printed, pruned, converted and saved, but not run",
        lambda: keep_unknown("save"),
        [True, 56.0],
    ),
    "kernels of GPUs": Advice(
        lambda: fluid.ParallelExecutor(use_cuda=True, loss_name=layers.mean(make_out()).name),
        "pass use_cuda=False",
        lambda: run_parallel(),
        SUMS,
    ),
    "a batch of fewer rows than copies": Advice(
        lambda: run_with_cpu_num("3", ROWS),
        "feed larger batches, or set CPU_NUM to a smaller value",
        lambda: [run_with_cpu_num("2", ROWS).sum(), run_with_cpu_num("3", np.ones((3, 4), "float32")).sum()],
        [28.0, 12.0],
    ),
    "batches for other copies": Advice(
        lambda: run_copies([{"x": ROWS}] * 3, 2),
        "feed one dict with the whole batch, which is split; or build with places=[...] of {}",
        lambda: [run_copies({"x": ROWS}, 2).sum(), run_copies([{"x": ROWS}] * 3, 3).sum()],
        [28.0, 84.0],
    ),
    "a dataset that is None": Advice(
        lambda: count_lines(dataset=False),
        'fluid.DatasetFactory().create_dataset("QueueDataset") makes one',
        lambda: count_lines(dataset=True),
        [7],
    ),
    "rows of different lengths": Advice(
        lambda: feed_sequences([[1, 2], [3]]),
        "wrap numbers by numpy.array(value, dtype), rows of different lengths by fluid.create_lod_tensor",
        lambda: feed_sequences(fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]], fluid.CPUPlace())),
        [[3], [3]],
    ),
    "a feed of None": Advice(
        lambda: run(double(), {"x": None}),
        "None is not data: did the function that makes the batch return it?",
        lambda: run(double(), {"x": (lambda: ROWS)()}),
        2 * ROWS,
    ),
    "a feed of a list": Advice(
        lambda: run(double(), {"x": ROWS.tolist()}),
        "wrap it: numpy.array(value, dtype); fluid.DataFeeder does so for lists of samples",
        lambda: [
            run(double(), {"x": np.array(ROWS.tolist(), "float32")}).sum(),
            run(
                double(), fluid.DataFeeder(["x"], fluid.CPUPlace()).feed([(row,) for row in ROWS.tolist()])
            ).sum(),
        ],
        [56.0, 56.0],
    ),
    "words": Advice(
        lambda: feed_sequences(np.array([["a"], ["b"]])),
        "words become ids by a vocabulary; rows of different lengths by fluid.create_lod_tensor",
        lambda: feed_sequences(
            fluid.create_lod_tensor(
                np.array([[{"a": 5, "b": 6}[word]] for word in "ab"]), [[1, 1]], fluid.CPUPlace()
            )
        ),
        [[5], [6]],
    ),
    "an empty batch": Advice(
        lambda: train([ROWS[:0]], all_batches=True),
        "leave out empty batches: `if len(array):` around the run",
        lambda: train([ONES, ROWS[:0]]),
        np.full((4, 1), 0.5),
    ),
    "a shape that does not fit": Advice(
        lambda: run(double(), {"x": ROWS.reshape(4, 2)}),
        "None is any size; reshape the array, or declare the variable with the shape that is fed",
        lambda: each(
            lambda: run(double(), {"x": ROWS.reshape(4, 2).reshape(-1, 4)}).sum(),
            lambda: run(layers.scale(fluid.data("wide", [None, 2]), 2.0), {"wide": ROWS.reshape(4, 2)}).sum(),
        ),
        [56.0, 56.0],
    ),
    "a batch without its axis": Advice(
        lambda: run(read_pictures(), {"picture": PICTURES[0]}),
        "the array has no batch axis: feed {{}: array[None]}, a batch of one sample of shape {}",
        lambda: run(read_pictures(), {"picture": PICTURES[0][None]}),
        2 * PICTURES[:1],
    ),
    "one number of a batch": Advice(
        lambda: run(read_pictures(), {"picture": PICTURES[0, :1]}),
        "feed a batch, whose first axis counts the samples; it declares {}",
        lambda: run(read_pictures(), {"picture": PICTURES}),
        2 * PICTURES,
    ),
    "a fetch that nothing computes": Advice(
        lambda: fetch_unset(ended=False),
        "persistables get values from the startup program or a load, temporaries from an operator",
        lambda: fetch_unset(ended=True),
        [3.0, 3.0],
    ),
    "several batches": Advice(
        lambda: execute(feed=[{"x": ROWS}, {"x": ROWS}], fetch_list=[double()]),
        "several copies of a batch need fluid.CompiledProgram(...).with_data_parallel()",
        lambda: run_copies([{"x": ROWS}, {"x": ROWS}], 2),
        np.concatenate([SUMS, SUMS]),
    ),
    "a temporary after the run": Advice(
        lambda: read_later("temporary"),
        "only persistable variables outlive a run; fetch others: exe.run(fetch_list=[variable])",
        lambda: run(make_out(), {"x": ROWS}),
        SUMS,
    ),
    "a sparse gradient": Advice(
        lambda: fetch_sparse("sparse"),
        "use layers.get_tensor_from_selected_rows, or is_sparse=False",
        lambda: each(lambda: fetch_sparse("tensor"), lambda: fetch_sparse("dense")),
        [4.0, 4.0],
    ),
    "a dict of fetches": Advice(
        lambda: execute(feed={"x": ROWS}, fetch_list={"out": double()}),
        "pass its values: list(fetches.values()); the results have their order",
        lambda: execute(feed={"x": ROWS}, fetch_list=list({"out": double()}.values())),
        2 * ROWS,
    ),
    "sequences as an array": Advice(
        lambda: fetch_sequences(return_numpy=True),
        "exe.run(..., return_numpy=False) returns LoDTensors; numpy.array(tensor) gives the rows",
        lambda: fetch_sequences(return_numpy=False),
        2 * ROWS,
    ),
    "a fetch by the name in the script": Advice(
        lambda: execute(feed={"x": ROWS}, fetch_list=[double().name, "loss"]),
        "pass the variable itself: fetch_list=[variable]",
        lambda: execute(feed={"x": ROWS}, fetch_list=[double()]),
        2 * ROWS,
    ),
    "a fetch of None": Advice(
        lambda: execute(feed={"x": ROWS}, fetch_list=[None]),
        "did the function that made the variable return it?",
        lambda: execute(feed={"x": ROWS}, fetch_list=[double()]),
        2 * ROWS,
    ),
    "a program that prints": Advice(
        lambda: explain(prune=False),
        "explain the program without it: program._prune([the variables you fetch])",
        lambda: explain(prune=True),
        ["scale"],
    ),
    "a feed that was left out": Advice(
        lambda: run(double()),
        "feed it: exe.run(..., feed={{}: array})",
        lambda: run(double(), feed={"x": ROWS}),
        2 * ROWS,
    ),
    "a branch that was not taken": Advice(
        lambda: write_in_branch(before=False),
        "write it before this operator, as by layers.assign(value, variable): its own has not run",
        lambda: write_in_branch(before=True),
        3 * ROWS,
    ),
    "a clone made after the gradients": Advice(
        lambda: clone_for_test(before_minimize=False),
        "call program.clone(for_test=True) before minimize: the clone then has no operator that needs it",
        lambda: clone_for_test(before_minimize=True),
        2 * ROWS.sum(axis=1, keepdims=True),
    ),
    "a feed of other names": Advice(
        lambda: load_model(["y"]),
        "feed these names alone, as load_inference_model returns them",
        lambda: load_model([]),
        2 * ROWS,
    ),
    "an operator without a kernel": Advice(
        lambda: run_unknown(prune=False),
        "prune it to targets that do not need this operator to run the rest",
        lambda: run_unknown(prune=True),
        2 * ROWS,
    ),
    "a program of nothing": Advice(
        lambda: run(double(), {"x": ROWS}, fluid.Program()),
        "run the program in which the network was built; None is the default main program",
        lambda: [
            run(double(), {"x": ROWS}, fluid.default_main_program()).sum(),
            run(double(), {"x": ROWS}).sum(),
        ],
        [56.0, 56.0],
    ),
    "an object to be explained": Advice(
        lambda: explain_compiled(compiled=True),
        "pass the Program that the CompiledProgram was made of",
        lambda: explain_compiled(compiled=False),
        ("scale",),
    ),
    "merged batches": Advice(
        lambda: train_pieces(joined=False),
        "feed these batches as one; RecomputeOptimizer then saves memory",
        lambda: train_pieces(joined=True),
        np.full((4, 1), 0.0),
    ),
    "values that are not finite": Advice(
        lambda: check_finite(flag=True),
        "mend the operator or its inputs, or set FLAGS_check_nan_inf to False to go on",
        lambda: check_finite(flag=False),
        np.full((2, 4), -np.inf),
    ),
    "an executor that fits": Advice(
        show(lambda: fluid.Executor().fit(ROWS)),  # type: ignore[attr-defined]
        "optimizer.minimize(loss) appends the training to the program; call exe.run(program, feed={...}, fetch_list=[loss]) for each batch",
        lambda: train([ONES]),
        np.full((4, 1), 0.5),
    ),
    "a program in another mode": Advice(
        show(lambda: fluid.default_main_program().eval()),
        "program.clone(for_test=True), taken before minimize, is the program to evaluate",
        evaluate,
        SUMS,
    ),
    "the state of a program": Advice(
        show(lambda: fluid.default_main_program().state_dict()),
        "fluid.save(program, path) and fluid.load(program, path, exe) save and load its values",
        save_and_load,
        SUMS,
    ),
    "a program that is called": Advice(
        show(lambda: fluid.default_main_program()(ROWS)),  # type: ignore[operator]
        "run it: exe.run(program, feed={name: array}, fetch_list=[variable])",
        lambda: run(double(), {"x": ROWS}, fluid.default_main_program()),
        2 * ROWS,
    ),
    "a program in with": Advice(
        show(enter_program),
        "with fluid.program_guard(main_program, startup_program): layers are added to these programs",
        guard,
        2 * ROWS,
    ),
    "a variable that is called": Advice(
        show(lambda: double()(ROWS)),  # type: ignore[operator]
        "a variable gets its value when the program runs; feed data by its name",
        lambda: run(double(), {"x": ROWS}),
        2 * ROWS,
    ),
    "the matrix product of variables": Advice(
        show(lambda: hold(ROWS) @ hold(ROWS.T)),  # type: ignore[operator]
        "layers.matmul(x, y) multiplies matrices",
        lambda: run(layers.matmul(hold(ROWS), hold(ROWS.T.copy()))),
        ROWS @ ROWS.T,
    ),
    "numpy's function of a variable": Advice(
        show(lambda: np.exp(hold(ROWS))),  # type: ignore[call-overload]
        "numpy computes with arrays, and a variable gets its value when the program runs: use {}, or fetch the variable and compute with the array",
        call_numpy_in_layers,
        [8.0, 8.0],
    ),
    "a variable that the scope lacks": Advice(
        show(lambda: fluid.global_scope().find_var("w").get_tensor()),  # type: ignore[union-attr]
        "find_var returned None: the scope has no such variable; scope.local_var_names() lists them",
        lambda: "fc_0.w_0" in list_scope(),
        True,
    ),
    "a reader that is iterated": Advice(
        show(lambda: list(fluid.io.batch(batch_reader, 2))),  # type: ignore[call-overload]
        "a reader is a function that returns an iterator: call it, for sample in reader():",
        lambda: np.array([sample for batch in fluid.io.batch(batch_reader, 2)() for sample in batch]),
        ROWS,
    ),
    "a list of results": Advice(
        show(lambda: use_list(fluid.Executor().run(feed={"x": ROWS}, fetch_list=[double()]))),
        "Executor.run returns a list with a value for each fetch: (value,) = exe.run(...)",
        lambda: next(
            value.sum() for (value,) in [fluid.Executor().run(feed={"x": ROWS}, fetch_list=[double()])]
        ),
        56.0,
    ),
    "two of three values": Advice(
        show(take_two),
        "it returns three values: program, feed_names, fetch_vars = fluid.io.load_inference_model(...)",
        open_model,
        2 * ROWS,
    ),
    "a list of names as a key": Advice(
        show(lambda: {"feed": {["x"]: ROWS}}),  # type: ignore[dict-item]
        "a feed has names as keys; load_inference_model returns a list of them: feed={names[0]: array}",
        open_model,
        2 * ROWS,
    ),
    "an option of another function": Advice(
        show(lambda: fluid.data("x", [4], append_batch_size=True)),  # type: ignore[call-arg]
        "fluid.data takes the whole shape, [None, ...] with the batch axis; layers.data has append_batch_size",
        lambda: [fluid.data("x", [None, 4]).shape, layers.data("y", [4], append_batch_size=True).shape],
        [(-1, 4), (-1, 4)],
    ),
}


def run_parallel() -> Any:
    out = make_out()
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.0).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    with mock.patch.dict(os.environ, {"CPU_NUM": "1"}):
        executor = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    return np.array(executor.run(fetch_list=[out.name], feed={"x": ROWS})[0])


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_run_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


@pytest.mark.obeys("the executor of numpy names the element: fluid.set_flags({'FLAGS_backend': 'numpy'})")
@pytest.mark.slow
def test_the_advice_to_let_numpy_name_the_element_works() -> None:
    with new_network():
        ids = fluid.data("ids", [None, 1], "int64")
        out = layers.embedding(ids, [3, 2])
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        feed = {"ids": np.array([[1], [7]], "int64")}
        try:
            fluid.set_flags({"FLAGS_backend": "jax"})
            with pytest.raises(fluid.core.EnforceNotMet, match="the executor of numpy names the element"):
                exe.run(feed=feed, fetch_list=[out])
            fluid.set_flags({"FLAGS_backend": "numpy"})
            with pytest.raises(fluid.core.EnforceNotMet, match=r"Ids hold 7 \(element 1 of 2\)"):
                exe.run(feed=feed, fetch_list=[out])
        finally:
            fluid.set_flags({"FLAGS_backend": "numpy"})
