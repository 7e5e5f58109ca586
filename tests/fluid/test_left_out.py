"""What is left out may be imported; using it says why, and what to do."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import paddlelike
import paddlelike.fluid as fluid
from paddlelike.errors import LeftOutError
from paddlelike.left_out import MODULES, NAMES, find_reason


@pytest.mark.parametrize(
    ("use", "path", "why"),
    [
        (lambda: fluid.dygraph.guard(), "dygraph.guard", "only static programs"),
        (lambda: fluid.dygraph.jit.declarative(len), "dygraph.jit.declarative", "only static programs"),
        (lambda: fluid.load_dygraph("x"), "load_dygraph", "only static programs"),
        (lambda: fluid.contrib.slim.Compressor(1), "contrib.slim.Compressor", "slim: pruning"),
        (lambda: fluid.core.PaddlePassBuilder.passes, "core.PaddlePassBuilder.passes", "inference engine"),
    ],
    ids=["dygraph", "below-dygraph", "function", "slim", "core"],
)
def test_a_left_out_function_raises_with_the_reason_and_a_hint(
    use: Callable[[], Any], path: str, why: str
) -> None:
    with pytest.raises(LeftOutError, match=why) as caught:
        use()
    assert str(caught.value).startswith(f"fluid.{path} is not here: ")
    assert caught.value.hint
    assert "Did you mean" not in "".join(traceback.format_exception(caught.value))


def test_left_out_names_can_be_imported_and_subclassed() -> None:
    script = """
import paddlelike
paddlelike.install()
import paddle.fluid as fluid
import paddle.fluid.dygraph.nn as nn
from paddle.fluid.dygraph.base import to_variable
from paddle.fluid.core import AnalysisConfig, create_paddle_predictor
from paddle.utils.image_util import *
from paddle.utils.plotcurve import plot_paddle_curve
from paddle.fluid.incubate.fleet.collective import DistributedStrategy, fleet
from paddle.fluid.incubate.fleet.parameter_server.pslib import fleet as pslib
class Model(fluid.dygraph.layers.Layer): pass
class Other(nn.Linear): pass
print(isinstance(3, to_variable), fluid.dygraph.jit)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("False <module dygraph.jit: only static programs are built and run here")


def test_modules_of_fluid_need_no_import_of_their_own() -> None:
    script = """
import paddlelike
paddlelike.install()
import paddle.utils
import paddle.fluid as fluid
contrib, slim = fluid.contrib, fluid.contrib.slim
print(slim.quantization.QuantizationTransformPass.__name__, slim.quantization.quantization_pass.__name__)
print(contrib.mixed_precision.decorator.decorate is contrib.mixed_precision.decorate)
print(contrib.reader.distributed_reader.distributed_batch_reader is contrib.distributed_batch_reader)
print(contrib.extend_optimizer.extend_optimizer_with_weight_decay is contrib.extend_optimizer)
for use in (
    lambda: slim.prune.Pruner(),
    lambda: slim.distillation.distiller.L2Distiller(),
    lambda: contrib.mixed_precision.fp16_utils.cast_model_to_fp16(),
    lambda: fluid.layers.device.get_places(),
    lambda: paddle.incubate.hapi.Model(),
    lambda: paddle.utils.image_util.flip(),
):
    try:
        use()
    except paddlelike.errors.LeftOutError as error:
        print(error.hint is not None, str(error).partition(" is not here")[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "QuantizationTransformPass paddlelike.fluid.contrib.slim.quantization",
        *["True"] * 3,
        "True fluid.contrib.slim.prune.Pruner",
        "True fluid.contrib.slim.distillation.distiller.L2Distiller",
        "True fluid.contrib.mixed_precision.fp16_utils.cast_model_to_fp16",
        "True fluid.layers.device.get_places",
        "True paddle.incubate.hapi.Model",
        "True paddle.utils.image_util.flip",
    ]


def test_every_reason_for_leaving_a_name_out_suggests_an_alternative() -> None:
    for path in (*MODULES, *NAMES):
        reason = find_reason(path)
        assert reason is not None, path
        assert min(len(reason.why), len(reason.instead)) > 20, path


def test_a_name_that_fluid_does_not_have_is_an_ordinary_attribute_error() -> None:
    for module in (fluid, fluid.core, fluid.io, fluid.framework, fluid.reader, fluid.layers):
        with pytest.raises(AttributeError) as caught:
            module.nothing  # noqa: B018
        assert not isinstance(caught.value, LeftOutError)


def test_no_module_of_this_package_is_called_left_out() -> None:
    package = Path(fluid.__path__[0]).parent
    taken = [
        path
        for path in MODULES
        for folder in (package, package / "fluid")
        if (folder / path.replace(".", "/")).exists() or (folder / f"{path.replace('.', '/')}.py").exists()
    ]
    assert taken == []


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("layers.nn", "fcc", "fc"),
        ("layers.control_flow", "Whil", "While"),
        ("layers.detection", "prior_boxx", "prior_box"),
        ("contrib.layers", "basic_lstmm", "basic_lstm"),
        ("io", "save_persistable", "save_persistables"),
    ],
)
def test_a_misspelled_name_gets_one_suggestion(
    module: str, name: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AttributeError) as caught:
        attrgetter(f"{module}.{name}")(paddlelike)
    sys.__excepthook__(caught.type, caught.value, caught.tb)  # the interpreter adds a near name of its own
    said = capsys.readouterr().err
    assert said.rstrip().endswith(f"has no attribute '{name}'; did you mean '{near}'?")
    assert said.lower().count("did you mean") == 1
