"""The advice of errors of models, conversions and predictors, followed to the letter."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.inference import AnalysisConfig, PaddleTensor, create_paddle_predictor
from paddlelike.interop import repack
from paddlelike.interop.recipes import find_rules
from paddlelike.view.server import LoopbackServer, Predictor
from tests.hints.advice import ROWS, SUMS, Advice, each, fill, new_network, read_rows
from tests.hints.files.test_files import WEIGHTS, after, build, export, load, predict, save, save_unnamed
from tests.hints.files.test_formats import command, convert, save_deltas
from tests.io.deltas.tables import HEIGHT
from tests.io.deltas.test_growing_tables import Training as GrowingTraining

layers = fluid.layers
NAMES = ["fc_0.b_0", "fc_0.w_0"]


def view(*arguments: object) -> bool:
    """Return whether a command prints the type of the layer of the model."""
    return "mul" in command(*arguments)


def write_onnx(*arguments: Any, file: str = "m.onnx", **options: Any) -> Any:
    """Write a model as ONNX, read it again and run it."""
    fluid.export_onnx(*arguments[:1], file, *arguments[1:], **options)
    return run_onnx(file)


def run_onnx(file: str = "m.onnx", **options: Any) -> Any:
    with new_network():
        exe = fluid.Executor()
        program, names, targets = fluid.import_onnx(file, **options)
        return exe.run(program, feed={names[0]: ROWS}, fetch_list=targets)[0]


def export_values(how: str) -> Any:
    """Export a network whose values are in another scope, or nowhere."""
    out, exe, scope = (
        layers.fc(read_rows(), 1, param_attr=fill(2.0), bias_attr=False),
        fluid.Executor(),
        fluid.Scope(),
    )
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    if how == "startup":
        exe.run(startup)
    elif how == "load":
        save()
        exe.run(startup)
        fluid.io.load_persistables(exe, "m", main)
    else:
        exe.run(startup, scope=scope)
    fluid.export_onnx(main, "m.onnx", ["x"], [out], **({"scope": scope} if how == "scope" else {}))
    return float(fluid.load_program_state("m.onnx")["fc_0.w_0"].sum())


def predict_by(*arguments: str) -> Any:
    predictor = create_paddle_predictor(AnalysisConfig(*arguments))
    return predictor.run([PaddleTensor(ROWS)])[0].as_ndarray()


def feed_predictor(count: int = 1, dtype: str = "float32", **changed: Any) -> Any:
    export()
    predictor = create_paddle_predictor(AnalysisConfig("model"))
    tensor = PaddleTensor(ROWS.astype(dtype))
    for name, value in changed.items():
        setattr(tensor, name, value)
    return predictor.run([tensor] * count)[0].as_ndarray()


def copy_tensors(name: str = "x", fed: bool = True) -> Any:
    export()
    config = AnalysisConfig("model")
    config.switch_use_feed_fetch_ops(False)
    predictor = create_paddle_predictor(config)
    tensor = predictor.get_input_tensor(name)
    if fed:
        tensor.copy_from_cpu(ROWS)
        predictor.zero_copy_run()
    return predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()


def write_round(instead: bool) -> Any:
    """Write a model that rounds for Paddle 3, read it again and run it."""
    with new_network():
        x = read_rows()
        if instead:
            above, below = (layers.scale(layers.relu(one), bias=0.5) for one in (x, layers.scale(x, -1.0)))
            out = layers.elementwise_sub(layers.floor(above), layers.floor(below))
        else:
            out = layers.round(x)
        fluid.io.save_inference_model("model", ["x"], [out], fluid.Executor())
    fluid.convert("model", "m.json")
    with new_network():
        exe = fluid.Executor()
        program, names, targets = fluid.io.load_inference_model(".", exe, "m.json")
        rows = np.array([[-0.5, 0.5, -1.5, 2.5]], "float32")
        return exe.run(program, feed={names[0]: rows}, fetch_list=targets)[0]


def cut(fetch: str) -> Any:
    export(bias=True)
    repack.prune("model", "small", None, [fetch])
    return predict("small")


def merge(target: str) -> Any:
    save(bias=True)
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    repack.merge("m", target)
    return load(dirname=target, filename="__params__", bias=True)


def read_growing_tables(copy: Any, path: str) -> Any:
    """Save growing tables, and load a copy of their directory."""
    one, other = GrowingTraining(3), GrowingTraining(0)
    one.save(Path("m"))
    copy("m", path)
    other.load(Path(path))
    return other.values() == one.values()


def divide(names: list[str] | None) -> Any:
    save_unnamed()
    repack.split("m", "named", names)
    return load(dirname="named", bias=True)


def divide_beside() -> Any:
    """Split a combined file beside its program, as Paddle exports both."""
    export(bias=True, params_filename="all")
    os.remove("model/__manifest__")
    repack.split("model", "parts")
    return predict("parts")


def make_two_programs() -> None:
    export()
    shutil.copy("model/__model__", "model/other.pdmodel")


def serve(**inputs: Any) -> Any:
    """Answer a prediction as the server does."""
    with new_network():
        fluid.io.save_inference_model("served", ["x"], [layers.scale(read_rows(), 2.0)], fluid.Executor())
    (output,) = Predictor("served").run(inputs)["outputs"].values()
    return output["values"]


def listen(port: int | None) -> Any:
    """Listen on a port that is in use, or on one that is free."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        number = used.getsockname()[1] if port is None else port
        with LoopbackServer({}, port=number):
            return True


def pool_means(**options: Any) -> Any:
    """Convert a model with means of windows to Paddle 2, and run it; sums are counted otherwise there."""
    with new_network():
        x = fluid.data("x", [None, 1, 4, 4])
        out = layers.pool2d(x, 2, "avg", pool_stride=2, **options)
        fluid.io.save_inference_model("pool", ["x"], [out], fluid.Executor())
    fluid.convert("pool", "new.pdmodel", overwrite=True)
    with new_network():
        exe = fluid.Executor()
        program, names, targets = fluid.io.load_inference_model("new", exe)
        image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
        return float(exe.run(program, feed={names[0]: image}, fetch_list=targets)[0][0, 0, 0, 0])


def export_alone(copied: bool) -> Any:
    """Convert the directory of a program to the two files of Paddle 2, with its values or without."""
    export()
    Path("alone").mkdir()
    for name in ("__model__", *["fc_0.w_0"] * copied):
        shutil.copy(f"model/{name}", "alone")
    fluid.convert("alone", "new.pdmodel")
    return predict("new")


def join(program: bool) -> Any:
    """Merge a combined file without names, with its program beside it or without."""
    export(bias=True, params_filename="all")
    os.remove("model/__manifest__")
    if not program:
        os.remove("model/__model__")
    repack.merge("model", "joined", "__params__")
    return predict("joined", params_filename="__params__")


def change_rules(rules: Any, **options: Any) -> Any:
    save()
    return convert("m.npz", rules=rules, overwrite=True, **options)["w"]


def use_recipe(name: str) -> Any:
    save()
    return convert("m.npz", rules=find_rules(name))["fc_0.weight"]


def open_onnx(data: bytes) -> Any:
    """Open a model, or the file of another system by the calls that read those."""
    Path("m.onnx").write_bytes(data)
    return fluid.import_onnx("m.onnx")


ADVICE: dict[str, Advice] = {
    "an input of another shape": Advice(
        lambda: serve(x=[[1, 2, 3]]),
        "send as many numbers; -1 is any number",
        lambda: serve(x=ROWS.tolist()),
        2 * ROWS,
    ),
    "an input that the model lacks": Advice(
        lambda: serve(y=ROWS.tolist()),
        "send the inputs that the model feeds: {}",
        lambda: serve(x=ROWS.tolist()),
        2 * ROWS,
    ),
    "a port that is in use": Advice(
        lambda: listen(None),
        "name another --port",
        lambda: listen(0),
        True,
    ),
    "means of windows that are counted otherwise": Advice(
        lambda: pool_means(pool_padding=[0, 1, 0, 1], exclusive=False),
        "exclusive=True computes the same in both, and so do sizes that the windows fill",
        lambda: each(
            lambda: pool_means(pool_padding=[0, 1, 0, 1], exclusive=True),
            lambda: pool_means(exclusive=False),
        ),
        [2.5, 2.5],
    ),
    "a program without its parameters": Advice(
        lambda: export_alone(copied=False),
        "give the directory of the model, and copy the files of the parameters into it",
        lambda: export_alone(copied=True),
        2 * SUMS,
    ),
    "a combined file to be merged": Advice(
        lambda: join(program=False),
        "copy the program (__model__ or .pdmodel) beside it",
        lambda: join(program=True),
        2 * SUMS + 3,
    ),
    "rules of a load in a conversion": Advice(
        lambda: change_rules(fluid.io.Rules().init("w", 1.0)),
        "a conversion renames, skips, transposes, cuts and joins; dtype= converts elements",
        lambda: each(
            lambda: change_rules(fluid.io.Rules().rename("fc_0.w_0", "w")),
            lambda: change_rules(fluid.io.Rules().rename("fc_0.w_0", "w", transpose=True)).T,
            lambda: change_rules(fluid.io.Rules().rename("fc_0.w_0", "w"), dtype="float64"),
        ),
        [WEIGHTS] * 3,
    ),
    "the rules of another network": Advice(
        lambda: use_recipe("db"),
        "use the rules pytorch, which fit networks of any layers",
        lambda: use_recipe("pytorch"),
        WEIGHTS.T,
    ),
    "the arguments of export_onnx": Advice(
        lambda: fluid.export_onnx(fluid.default_main_program(), ["x"]),  # type: ignore[call-arg, arg-type]
        "export_onnx(program or directory, 'model.onnx', ['x'], [prediction])",
        lambda: each(
            lambda: [export(), write_onnx("model").sum()][1],
            lambda: write_onnx(
                fluid.default_main_program(), ["x"], [layers.scale(read_rows(), 2.0)], file="n.onnx"
            ).sum(),
        ),
        [56.0, 56.0],
    ),
    "a file of another system as a model": Advice(
        lambda: open_onnx(b""),
        "files of other systems are opened by load_inference_model, fluid.load and fluid.convert",
        lambda: each(
            lambda: [export(), predict().sum()][1], lambda: [save(), convert("m.npz")["fc_0.w_0"].sum()][1]
        ),
        [56.0, 8.0],
    ),
    "a model without a program": Advice(
        lambda: after(save, lambda: command("graph", "m")),
        "name a __model__, .pdmodel or .json file, or a directory with one",
        lambda: after(
            lambda: [export(), fluid.convert("model", "p.pdmodel"), fluid.convert("model", "j.json")],
            *(
                lambda path=path: "matmul" in view_type(path) or "mul" in view_type(path)
                for path in ("model/__model__", "p.pdmodel", "j.json", "model")
            ),
        ),
        [True] * 4,
    ),
    "a directory of two programs": Advice(
        lambda: after(make_two_programs, lambda: command("graph", "model")),
        "name one of {}",
        lambda: after(make_two_programs, lambda: view("graph", "model/__model__")),
        True,
    ),
    "a suffix that is not known": Advice(
        lambda: after(save, lambda: convert("out.abc")),
        "pass format=; known suffixes: {}",
        lambda: after(
            save,
            lambda: [fluid.convert("m", "out.abc", format="npz"), np.load("out.abc")["fc_0.w_0"].sum()][1],
            lambda: convert("out.npz")["fc_0.w_0"].sum(),
        ),
        [8.0, 8.0],
    ),
    "a target that exists": Advice(
        lambda: after(lambda: [save(), Path("out.npz").write_text("mine")], lambda: convert("out.npz")),
        "remove it, choose another path, or pass overwrite=True",
        lambda: after(
            lambda: [save(), Path("out.npz").write_text("mine")],
            lambda: convert("other.npz")["fc_0.w_0"].sum(),
            lambda: convert("out.npz", overwrite=True)["fc_0.w_0"].sum(),
            lambda: [os.remove("out.npz"), convert("out.npz")["fc_0.w_0"].sum()][1],
        ),
        [8.0] * 3,
    ),
    "chains of deltas": Advice(
        lambda: after(save_deltas, lambda: convert("out")),
        "`paddlelike compact {}` writes them whole; or save it without delta=",
        lambda: after(save_deltas, lambda: [command("compact", "m"), convert("out")["emb"].shape][1]),
        (HEIGHT, 16),
    ),
    "a combined file without names": Advice(
        lambda: after(save_unnamed, lambda: fluid.convert("m/all", "out")),
        "pass names=[...], for example [v.name for v in program.list_vars() if v.persistable]",
        lambda: after(save_unnamed, convert_by_program),
        WEIGHTS,
    ),
    "a model with options of values": Advice(
        lambda: after(export, lambda: fluid.convert("model", "m.onnx", dtype="float64")),
        "to convert the values alone, pass a format, for example format='directory'",
        lambda: after(
            export,
            lambda: [
                fluid.convert("model", "out", dtype="float64", format="directory"),
                fluid.load_program_state("out")["fc_0.w_0"],
            ][1],
        ),
        WEIGHTS,
    ),
    "values written as a model": Advice(
        lambda: after(save, lambda: fluid.convert("m", "m.onnx")),
        "{}; format='onnx' writes values alone",
        lambda: after(
            save,
            lambda: [
                fluid.convert("m", "m.onnx", format="onnx"),
                fluid.load_program_state("m.onnx")["fc_0.w_0"],
            ][1],
        ),
        WEIGHTS,
    ),
    "a program without outputs": Advice(
        lambda: [build(), fluid.export_onnx(fluid.default_main_program(), "m.onnx")],
        "name its feeds and fetches: {}(program, file, feeds, fetches)",
        lambda: write_onnx(build().block.program, ["x"], ["fc_0.tmp_0"]),
        2 * SUMS,
    ),
    "a model without values": Advice(
        lambda: export_values("nowhere"),
        "run the startup program, or load the values, first; or pass scope=",
        lambda: each(*(lambda how=how: export_values(how) for how in ("startup", "load", "scope"))),
        [8.0] * 3,
    ),
    "an ONNX file without a name": Advice(
        lambda: fluid.export_onnx(build().block.program, "./", ["x"], ["fc_0.tmp_0"]),
        "end the path with a name, such as model.onnx",
        lambda: write_onnx(build().block.program, ["x"], ["fc_0.tmp_0"], file="model.onnx"),
        2 * SUMS,
    ),
    "an ONNX file to be converted to ONNX": Advice(
        lambda: [build_onnx(), fluid.convert("m.onnx", "other.onnx")],
        "use onnx.version_converter to change its opset, or pass format='onnx' for its values alone",
        lambda: [
            [build_onnx(), change_opset()][1].sum(),
            [
                fluid.convert("m.onnx", "v.onnx", format="onnx"),
                fluid.load_program_state("v.onnx")["fc_0.w_0"].sum(),
            ][1],
        ],
        [56.0, 8.0],
    ),
    "a round for Paddle 3": Advice(
        lambda: write_round(instead=False),
        "use floor(relu(x) + 0.5) - floor(relu(-x) + 0.5), which rounds halves away from zero in both",
        lambda: write_round(instead=True),
        [[-1, 1, -2, 3]],
    ),
    "rules of no name": Advice(
        lambda: after(
            lambda: [save(), export()],
            lambda: command("convert", "m", "out", "--rules", "nonsense"),
        ),
        "recipes: {}; fluid.io.Rules(...).save(path) writes a file",
        lambda: after(lambda: save(bias=True), plan_by_rules),
        WEIGHTS,
    ),
    "a fetch that a model lacks": Advice(
        lambda: cut("qqqqqqqq"),
        "paddlelike graph shows the variables",
        lambda: [export(bias=True), "fc_0.tmp_0" in command("graph", "model"), cut("fc_0.tmp_0")][2],
        2 * SUMS,
    ),
    "a directory that holds files": Advice(
        lambda: merge("full"),
        "choose another path",
        lambda: merge("new"),
        WEIGHTS,
    ),
    "growing tables to be merged": Advice(
        lambda: read_growing_tables(repack.merge, "one"),
        "load {} as it is, or write a file per variable: paddlelike split",
        lambda: each(
            lambda: read_growing_tables(lambda *_: None, "m"),
            lambda: read_growing_tables(repack.split, "parts"),
        ),
        [True, True],
    ),
    "a combined file without its program": Advice(
        lambda: divide(None),
        "copy the program (__model__ or .pdmodel) beside it, or pass the names",
        lambda: each(lambda: float(divide(NAMES).sum()), lambda: float(divide_beside().sum())),
        [8.0, float((2 * SUMS + 3).sum())],
    ),
    "a configuration without a model": Advice(
        lambda: create_paddle_predictor(AnalysisConfig()),
        "give AnalysisConfig the directory, or the file of the program and that of the parameters",
        lambda: [
            after(export, lambda: predict_by("model").sum()),
            after(
                lambda: export(params_filename="all", model_filename="net"),
                lambda: predict_by("model/net", "model/all").sum(),
            ),
        ],
        [56.0, 56.0],
    ),
    "too many tensors": Advice(
        lambda: feed_predictor(2),
        "pass one tensor for each of its inputs: {}",
        feed_predictor,
        2 * SUMS,
    ),
    "an array that a predictor refuses": Advice(
        lambda: feed_predictor(dtype="complex64"),
        "convert it to one of {}",
        lambda: feed_predictor(dtype="float32"),
        2 * SUMS,
    ),
    "a tensor of another shape": Advice(
        lambda: feed_predictor(shape=[3, 3]),
        "set shape and dtype to those of the data",
        lambda: feed_predictor(shape=[2, 4]),
        2 * SUMS,
    ),
    "an output before the run": Advice(
        lambda: copy_tensors(fed=False),
        "copy_from_cpu() gives an input its array; run() gives the outputs theirs",
        copy_tensors,
        2 * SUMS,
    ),
}


def view_type(path: str) -> str:
    return command("graph", path)


def convert_by_program() -> Any:
    build(bias=True)
    program = fluid.default_main_program()
    fluid.convert("m/all", "out", names=[v.name for v in program.list_vars() if v.persistable])
    return load(dirname="out", bias=True)


def build_onnx() -> None:
    out = build()
    fluid.export_onnx(out.block.program, "m.onnx", ["x"], [out])


def change_opset() -> Any:
    import onnx
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load("m.onnx"), 20), "m20.onnx")
    return run_onnx("m20.onnx")


def plan_by_rules() -> Any:
    fluid.io.Rules().skip("fc_0.b_0").save("rules.json")
    return load(bias=True, rules=fluid.io.Rules.load("rules.json"))


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_model_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
