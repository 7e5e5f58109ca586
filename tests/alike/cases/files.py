"""Models for prediction and saved states: which files, which programs, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.alike.recording import refused, warned

X = np.arange(8, dtype="float32").reshape(2, 4)


def _net(fluid):
    x = fluid.data("x", [None, 4])
    label = fluid.data("l", [None, 1], "int64")
    h = fluid.layers.dropout(fluid.layers.fc(x, 3, act="relu"), 0.5)
    prediction = fluid.layers.fc(h, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, h, prediction, loss


def _files(path="model"):
    found = []
    for folder, _, names in os.walk(path):
        found += [os.path.relpath(Path(folder) / name, path) for name in names]
    return sorted(name for name in found if "manifest" not in name)  # ours


def _program(fluid, path):
    with open(path, "rb") as file:
        return fluid.Program.parse_from_string(file.read())


def a_model(fluid):
    exe, _, prediction, _ = _net(fluid)
    names = fluid.io.save_inference_model("model", ["x"], [prediction], exe)
    program, feeds, targets = fluid.io.load_inference_model("model", exe)
    return {
        "names": names,
        "files": _files(),
        "saved": _program(fluid, "model/__model__"),
        "main": fluid.default_main_program(),
        "loaded": [feeds, [v.name for v in targets]],
        "seed": program.random_seed,
        "values": exe.run(program, feed={"x": X}, fetch_list=targets),
    }


def a_combined_model(fluid):
    exe, _, prediction, _ = _net(fluid)
    save = fluid.io.save_inference_model
    save("model", ["x"], [prediction], exe, model_filename="m", params_filename="p")
    program, feeds, targets = fluid.io.load_inference_model("model", exe, "m", "p")
    return [_files(), feeds, exe.run(program, feed={"x": X}, fetch_list=targets)]


def a_model_in_memory(fluid):
    exe, _, prediction, _ = _net(fluid)
    save = fluid.io.save_inference_model
    save("model", ["x"], [prediction], exe, model_filename="m", params_filename="p")
    with open("model/m", "rb") as model, open("model/p", "rb") as params:
        found = fluid.io.load_inference_model(None, exe, model.read(), params.read())
    program, feeds, targets = found
    return [type(found).__name__, feeds, exe.run(program, feed={"x": X}, fetch_list=targets)]


def two_targets(fluid):
    exe, h, prediction, _ = _net(fluid)
    names = fluid.io.save_inference_model("model", ["x"], [h, prediction], exe)
    program, feeds, targets = fluid.io.load_inference_model("model", exe)
    return [names, program, feeds, exe.run(program, feed={"x": X}, fetch_list=targets)]


def two_feeds(fluid):
    exe, _, _, loss = _net(fluid)
    fluid.io.save_inference_model("model", ["l", "x"], [loss], exe)
    program, feeds, targets = fluid.io.load_inference_model("model", exe)
    return [program, feeds, [v.name for v in targets]]


def one_feed_as_text(fluid):
    exe, _, prediction, _ = _net(fluid)
    fluid.io.save_inference_model("model", "x", prediction, exe)
    return fluid.io.load_inference_model("model", exe)[1]


def a_fed_value_between(fluid):
    exe, h, prediction, _ = _net(fluid)
    fluid.io.save_inference_model("model", [h.name], [prediction], exe)
    return [_files(), _program(fluid, "model/__model__")]


def without_feeds(fluid):
    exe = _net(fluid)[0]
    out = fluid.layers.scale(fluid.layers.fill_constant([2], "float32", 3.0), 2.0)
    fluid.io.save_inference_model("model", [], [out], exe)
    program, feeds, targets = fluid.io.load_inference_model("model", exe)
    return [program, feeds, exe.run(program, fetch_list=targets)]


def the_program_alone(fluid):
    exe, _, prediction, _ = _net(fluid)
    fluid.io.save_inference_model("model", ["x"], [prediction], exe, program_only=True)
    return _files()


def not_for_deployment(fluid):
    exe, _, prediction, _ = _net(fluid)
    fluid.io.save_inference_model("model", ["x"], [prediction], exe, export_for_deployment=False)
    return [_files(), _program(fluid, "model/__model__.main_program")]


def saved_twice(fluid):
    exe, _, prediction, _ = _net(fluid)
    save = fluid.io.save_inference_model
    first = save("one", ["x"], [prediction], exe)
    second = save("two", ["x"], [prediction], exe)
    return [first, second, fluid.default_main_program(), _program(fluid, "two/__model__")]


def of_a_program_for_test(fluid):
    exe, _, prediction, _ = _net(fluid)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.io.save_inference_model("model", ["x"], [prediction], exe, main_program=test)
    return [test, _program(fluid, "model/__model__")]


def of_a_compiled_program(fluid):
    exe, _, prediction, _ = _net(fluid)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    fluid.io.save_inference_model("model", ["x"], [prediction], exe, main_program=compiled)
    return _files()


def with_an_auc(fluid):
    x = fluid.data("x", [None, 4])
    label = fluid.data("l", [None, 1], "int64")
    prediction = fluid.layers.fc(x, 2, act="softmax")
    value = fluid.layers.auc(prediction, label)[0]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    kinds = []
    with warned(kinds):
        fluid.io.save_inference_model("model", ["x", "l"], [value], exe)
    return kinds


def models_refused(fluid):
    exe, _, prediction, _loss = _net(fluid)
    save = fluid.io.save_inference_model
    return {
        "no_place": refused(save, None, ["x"], [prediction], exe),
        "number": refused(save, "m", [3], [prediction], exe),
        "variable": refused(save, "m", [prediction], [prediction], exe),
        "name": refused(save, "m", ["x"], ["fc_1.tmp_2"], exe),
        "nothing": refused(save, "m", ["x"], [], exe),
        "unknown": refused(save, "m", ["x", "nobody"], [prediction], exe),
        "unused": refused(save, "m", ["x", "l"], [prediction], exe),
    }


def loads_refused(fluid):
    exe, _, prediction, _ = _net(fluid)
    load = fluid.io.load_inference_model
    fluid.io.save_inference_model("model", ["x"], [prediction], exe)
    Path("empty").mkdir()
    Path("garbage").mkdir()
    with open("garbage/__model__", "wb") as file:
        file.write(b"\x93garbage")
    Path("model/fc_1.w_0").unlink()
    return {
        "no_place": refused(load, "nowhere", exe),
        "no_model": refused(load, "empty", exe),
        "garbage": refused(load, "garbage", exe),
        "no_value": refused(load, "model", exe),
        "other_name": refused(load, "model", exe, "other"),
    }


# fluid.save and what belongs to it


def a_state(fluid):
    _net(fluid)
    main = fluid.default_main_program()
    fluid.save(main, "deep/net")
    state = fluid.load_program_state("deep/net")
    return {"files": _files("deep"), "state": state, "saved": _program(fluid, "deep/net.pdmodel")}


def a_state_and_back(fluid):
    exe, _, _, loss = _net(fluid)
    main = fluid.default_main_program()
    fluid.save(main, "net")
    before = fluid.load_program_state("net")
    exe.run(feed={"x": X, "l": np.array([[0], [1]])}, fetch_list=[loss])
    fluid.load(main, "net.pdparams", exe)
    after = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in before}
    return sorted(name for name in before if not (before[name] == after[name]).all())


def a_changed_state(fluid):
    _net(fluid)
    main = fluid.default_main_program()
    fluid.save(main, "net")
    state = fluid.load_program_state("net")
    state = {"fc_0.w_0": state["fc_0.w_0"] * 2, "surplus": state["fc_0.b_0"]}
    kinds = []
    with warned(kinds):
        fluid.set_program_state(main, state)
    value = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    return [kinds, bool((value == state["fc_0.w_0"]).all())]


def states_from_older_saves(fluid):
    exe = _net(fluid)[0]
    main = fluid.default_main_program()
    fluid.io.save_persistables(exe, "each", main)
    fluid.io.save_persistables(exe, "one", main, "all")
    wanted = [v for v in main.list_vars() if fluid.io.is_persistable(v)]
    load = fluid.load_program_state
    return {
        "each": sorted(load("each")),
        "chosen": sorted(load("each", wanted[:2])),
        "one": sorted(load("one/all", wanted)),
        "no_list": refused(load, "one/all"),
    }


def older_saves_into_a_program(fluid):
    exe = _net(fluid)[0]
    main = fluid.default_main_program()
    fluid.io.save_persistables(exe, "each", main)
    fluid.io.save_persistables(exe, "one", main, "all")
    wanted = [v for v in main.list_vars() if fluid.io.is_persistable(v)]
    fluid.load(main, "each", exe)
    fluid.load(main, "one/all", exe, wanted)
    return {
        "no_executor": refused(fluid.load, main, "each"),
        "no_list": refused(fluid.load, main, "one/all", exe),
    }


def states_refused(fluid):
    exe = _net(fluid)[0]
    main = fluid.default_main_program()
    fluid.save(main, "net")
    state = fluid.load_program_state("net")
    other = fluid.Program()
    with fluid.program_guard(other, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 4]), 3), 2)
        fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    return {
        "no_name": refused(fluid.save, main, "folder/"),
        "nowhere": refused(fluid.load, main, "nowhere/net", exe),
        "another_program": refused(fluid.load, other, "net", exe),
        "other_shape": refused(fluid.set_program_state, main, {"fc_0.w_0": state["fc_0.b_0"]}),
        "other_dtype": refused(
            fluid.set_program_state, main, {"fc_0.w_0": state["fc_0.w_0"].astype("float64")}
        ),
    }
