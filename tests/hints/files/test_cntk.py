"""The advice of errors of CNTK's models and checkpoints, followed to the letter; real CNTK wrote some of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike import training
from tests.hints.advice import ROWS, SUMS, Advice, fill, read_rows

layers = fluid.layers
CPU = fluid.CPUPlace()
GOLDEN = Path(__file__).parents[2] / "golden" / "cntk"


def adagrad(rate: float) -> Any:
    return training.AdagradLearner(rate, batch_size=1)


def save(
    path: str = "net.dnn", optimizer: Any = fluid.optimizer.SGD, by_mean: bool = True, external: Any = None
) -> Any:
    """Train a network for no step and save it as CNTK's checkpoint."""
    out = layers.fc(read_rows(), 1, param_attr=fill(1.0))
    cost = layers.square_error_cost(out, fluid.data("y", [None, 1]))
    loss = layers.mean(cost) if by_mean else layers.reduce_sum(cost)
    optimizer(0.1).minimize(loss)
    exe, main = fluid.Executor(CPU), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    return fluid.export_cntk_checkpoint(main, path, ["x", "y"], [out], loss, external_state=external)


def restore(minimized: bool = True, optimizer: Any = None, source: str = "") -> Any:
    """Read a checkpoint and give its optimizer the learner's state; return the learning rate."""
    if source:
        for suffix in ("", ".ckp"):
            shutil.copy(GOLDEN / f"{source}.dnn{suffix}", f"net.dnn{suffix}")
    else:
        save(optimizer=optimizer or fluid.optimizer.SGD)
    checkpoint = fluid.import_cntk_checkpoint("net.dnn")
    startup = fluid.Program()
    with fluid.program_guard(checkpoint.program, startup):
        if minimized:
            (optimizer or fluid.optimizer.SGD)(0.5).minimize(checkpoint.loss, checkpoint.startup_program)
            fluid.Executor(CPU).run(checkpoint.startup_program)
    checkpoint.restore()
    return sorted(checkpoint.learner.arrays) == sorted(
        one.name for one in checkpoint.program.all_parameters()
    )


def read(file: str = "net.dnn", door: Any = fluid.import_cntk) -> Any:
    """Compute by the model that a door makes of a checkpoint whose state of training is away."""
    save()
    Path("net.dnn.ckp").rename("kept.ckp")
    program, _, fetches = door(file)[:3]
    return fluid.Executor(CPU).run(program, {"x": ROWS, "y": SUMS}, fetches[:1])[0]


def save_external(state: Any) -> Any:
    save(external=state)
    return fluid.import_cntk_checkpoint("net.dnn").external_state


ADVICE: dict[str, Advice] = {
    "an external state with an object": Advice(
        lambda: save_external({"a": object()}),
        "None, bool, int, float, str, list, dict, arrays of float16, float32, float64, int8 or int16",
        lambda: save_external({"a": [None, True, 2, 0.5, "b", {"c": []}]}),
        {"a": [None, True, 2, 0.5, "b", {"c": []}]},
    ),
    "an optimizer that was not appended": Advice(
        lambda: restore(minimized=False),
        "call minimize(checkpoint.loss, checkpoint.startup_program) first",
        lambda: restore(),
        True,
    ),
    "a checkpoint of another learner": Advice(
        lambda: restore(source="ck-adagrad", optimizer=fluid.optimizer.Adam),
        "minimize with the optimizer that matches it: paddlelike.training has CNTK's own",
        lambda: restore(source="ck-adagrad", optimizer=adagrad),
        True,
    ),
    "an optimizer that CNTK lacks": Advice(
        lambda: save(optimizer=fluid.optimizer.Adadelta),
        "train with adam, adamax, momentum or sgd, or with CNTK's own formulas: RMSPropLearner, "
        "AdagradLearner, AdadeltaLearner, FSAdagradLearner of paddlelike.training",
        lambda: bool(save(optimizer=lambda rate: training.AdadeltaLearner(rate, 1))),
        True,
    ),
    "a loss that is no mean over samples": Advice(
        lambda: save(by_mean=False),
        "make the loss by layers.mean(cost), with a cost for each sample",
        lambda: bool(save(by_mean=True)),
        True,
    ),
    "an external state without names": Advice(
        lambda: save_external([1, 2]),
        'put it into one: {"state": ...}',
        lambda: save_external({"state": [1, 2]}),
        {"state": [1, 2]},
    ),
    "a model without its state of training": Advice(
        lambda: read(door=fluid.import_cntk_checkpoint),
        "import_cntk opens it as a model, without the state of training",
        lambda: read(),
        SUMS,
    ),
    "a state of training as a model": Advice(
        lambda: read("kept.ckp"),
        "a model is a .model, .dnn or .cmf; the .ckp beside it holds the state of training",
        lambda: read("net.dnn"),
        SUMS,
    ),
    "a path without a name": Advice(
        lambda: save("./"),
        "end the path with a name, such as model.cmf",
        lambda: bool(save("./model.cmf")),
        True,
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_about_a_model_of_cntk_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
