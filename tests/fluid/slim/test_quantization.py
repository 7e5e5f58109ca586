"""``fluid.contrib.slim.quantization`` beside Fluid 1.8.5: programs after each pass, losses, scales."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import paddlelike.fluid as fluid
from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.fluid.contrib.slim import quantization as slim
from paddlelike.fluid.contrib.slim.quantization.post_training_quantization import find_threshold
from tests.fluid.slim import cases

REAL: Final[dict[str, Any]] = json.loads(
    lzma.decompress((Path(__file__).parents[2] / "golden" / "slim185.json.xz").read_bytes())
)
CPU = fluid.CPUPlace()


def check_programs(mine: Any, real: Any, rel: float = 1e-5) -> None:
    """Compare programs; scales that a float32 forward pass found may differ in the last digits."""
    mine = json.loads(json.dumps(mine))
    assert mine["vars"] == real["vars"]
    assert [op[:3] for op in mine["ops"]] == [op[:3] for op in real["ops"]]
    for own, other in zip(mine["ops"], real["ops"], strict=True):
        assert own[3].keys() == other[3].keys(), own[:3]
        for name, value in own[3].items():
            floats = isinstance(value, float) or (
                isinstance(value, list) and value and type(value[0]) is float
            )
            assert value == (pytest.approx(other[3][name], rel=rel) if floats else other[3][name]), own[:3]


def check_values(mine: Any, real: Any, **tolerance: float) -> None:
    assert mine.keys() == real.keys()
    for name in mine:
        assert mine[name][:2] == real[name][:2], name
        np.testing.assert_allclose(
            cases.decode(mine[name]), cases.decode(real[name]), err_msg=name, **tolerance
        )


def check_mostly_equal(mine: Any, real: Any) -> None:
    """Compare results: where the last digit of a sum decides, a number is rounded to the next step."""
    apart = np.abs(np.asarray(mine) - real)
    assert np.median(apart) < 1e-5
    assert apart.max() < 2e-2


def list_cases(kind: str, *quick: str) -> list[Any]:
    """Return the recorded cases; all but a few are slow."""
    return [
        pytest.param(case, marks=[] if case in quick else [pytest.mark.slow], id=case)
        for case in sorted(REAL[kind])
    ]


@pytest.mark.parametrize("case", list_cases("training", "residual moving", "mlp clipped"))
def test_training_passes_give_the_programs_losses_and_integers_of_fluid(case: str) -> None:
    real = REAL["training"][case]
    found = cases.run_training(*case.split(), trained=real["trained"])
    for stage in ("train", "test", "frozen", "int8", "mobile"):
        check_programs(found[stage], real[stage])
    check_values(found["values"], real["values"], rtol=0)  # bits: weights were set to the trained ones
    check_mostly_equal(found["losses"], real["losses"])
    for stage in ("test_out", "frozen_out"):
        check_mostly_equal(cases.decode(found[stage]), cases.decode(real[stage]))


@pytest.mark.parametrize("case", list_cases("after", "mlp kl", "depthwise min_max"))
def test_quantization_of_a_saved_model_finds_the_scales_of_fluid(case: str, tmp_path: Path) -> None:
    found, real = cases.run_after_training(*case.split(), str(tmp_path)), REAL["after"][case]
    rel = 1e-2 if case.endswith("kl") else 1e-5  # a number at the edge of a bin may move the minimum
    check_programs(found["program"], real["program"], rel)
    check_values(found["values"], real["values"], rtol=rel)


@pytest.mark.parametrize("case", list_cases("weights", "residual 8 channel_wise_abs_max"))
def test_weight_quantization_gives_the_integers_of_fluid(case: str, tmp_path: Path) -> None:
    net, bits, kind = case.split()
    found, real = cases.run_on_weights(net, int(bits), kind, str(tmp_path)), REAL["weights"][case]
    integers = found["quantized_model"]["program"]["vars"]
    for name, value in found["quantized_model"]["values"].items():
        if "i" in value[0]:  # declared as what they are: Fluid declares floats
            assert integers[name][2] == {"8": fluid.core.VarDesc.VarType.INT8}.get(bits, 1)
            integers[name][2] = int(fluid.core.VarDesc.VarType.FP32)
    for model in found:
        check_programs(found[model]["program"], real[model]["program"])
        check_values(found[model]["values"], real[model]["values"], rtol=0)


def build() -> Any:
    out = fluid.layers.conv2d(fluid.data("x", [None, 2, 6, 6]), 3, 3)
    fluid.layers.fc(out, 2)
    return fluid.default_main_program()


def make_graph(for_test: bool = True) -> Any:
    return fluid.framework.IrGraph(fluid.core.Graph(build().desc), for_test=for_test)


def test_a_pass_leaves_the_program_that_the_graph_was_made_of() -> None:
    graph = make_graph()
    before = str(fluid.default_main_program())
    slim.QuantizationTransformPass(fluid.Scope(), CPU).apply(graph)
    assert str(fluid.default_main_program()) == before != str(graph.to_program())


def test_a_clone_of_a_graph_is_another_graph_of_the_same_program() -> None:
    graph = make_graph()
    clone = graph.clone()
    assert str(clone.to_program()) == str(graph.to_program())
    clone.safe_remove_nodes(clone.topology_sort()[-1])
    assert len(clone.all_op_nodes()) == len(graph.all_op_nodes()) - 1


def test_nodes_report_their_kind_and_edges_follow_inputs_of_operators() -> None:
    graph = make_graph()
    conv = graph.topology_sort()[0]
    assert (conv.name(), conv.is_op(), conv.node_type()) == ("conv2d", True, fluid.core.Node.Type.Operation)
    assert sorted(node.name() for node in conv.inputs) == ["conv2d_0.w_0", "x"]
    weight = graph._find_node_by_name(conv.inputs, "conv2d_0.w_0")
    assert (weight.is_var(), weight.persistable(), weight.shape()) == (True, True, [3, 2, 3, 3])
    assert [node.name() for node in weight.outputs] == ["conv2d"]
    other = graph.create_persistable_node("other", weight.type(), [3, 2, 3, 3], weight.dtype())
    graph.update_input_link(weight, other, conv)
    assert conv.op().input("Filter") == ["other"]
    assert (weight.outputs, other.outputs) == ([], [conv])


def test_a_graph_with_a_cycle_has_no_program() -> None:
    graph = make_graph()
    ops = graph.topology_sort()
    assert (graph.has_circle(), graph.graph_num()) == (False, 1)
    graph.link_to(ops[-1].outputs[0], ops[0])
    assert graph.has_circle()
    with pytest.raises(GraphError, match="wait for each other"):
        graph.to_program()


def test_a_reader_stays_before_the_operator_that_overwrites_its_input() -> None:
    x = fluid.data("x", [None, 2])
    kept = fluid.layers.scale(x, 2.0)
    read = fluid.layers.scale(kept, 3.0)
    fluid.layers.assign(x, output=kept)
    graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
    reader = next(op for op in graph.all_op_nodes() if op.output("Out") == [read.name])
    assert any(node.is_ctrl_var() for node in reader.outputs)
    types = [op.type for op in graph.to_program().global_block().ops]
    assert types == ["scale", "scale", "assign"]


def test_a_graph_is_drawn_as_dot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = make_graph()
    graph.draw(tmp_path / "pictures", "net", marked_nodes=graph.all_persistable_nodes())
    text = (tmp_path / "pictures" / "net.dot").read_text()
    assert text.startswith("digraph G {\n")
    assert text.count("yellow") == 4
    assert capsys.readouterr().out == f"Total ops num = {len(graph.all_op_nodes())}.\n"


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: slim.QuantizationTransformPass(weight_quantize_type="max"), ValueError, "expected one of"),
        (
            lambda: slim.AddQuantDequantPass(fluid.Scope(), CPU, quantizable_op_type=["fc"]),
            ValueError,
            "'fc'",
        ),
        (lambda: slim.QuantizationFreezePass(None, CPU), EnforceNotMet, "scope is None"),  # type: ignore[arg-type]
        (lambda: slim.QuantizationTransformPass().apply(build()), TypeError, "takes an IrGraph"),
        (lambda: fluid.core.Graph(build()), TypeError, "the desc of a Program"),  # type: ignore[attr-defined]
        (lambda: fluid.framework.IrGraph(build()), TypeError, "core.Graph"),  # type: ignore[attr-defined]
        (lambda: slim.PostTrainingQuantization(fluid.Executor(CPU)), EnforceNotMet, "model_dir is None"),
        (lambda: slim.WeightQuantization("m").quantize_weight_to_int("o", weight_bits=4), ValueError, "4"),
    ],
    ids=["way", "type", "scope", "program", "graph", "ir-graph", "model", "bits"],
)
def test_a_wrong_argument_is_named(use: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_freezing_with_another_quantization_type_than_training_is_an_error() -> None:
    graph, scope, exe = make_graph(), fluid.Scope(), fluid.Executor(CPU)
    with fluid.scope_guard(scope):
        exe.run(fluid.default_startup_program())
    slim.QuantizationTransformPass(scope, CPU, activation_quantize_type="range_abs_max").apply(graph)
    with pytest.raises(EnforceNotMet, match=r"has no variable 'conv2d_0\.w_0\.scale'"):
        slim.QuantizationFreezePass(scope, CPU, weight_quantize_type="range_abs_max").apply(graph)


@pytest.mark.parametrize(
    ("change", "real"),
    [
        (lambda u: u, [0.9990466068556998, 0.998292922595283, 0.9993061925342772]),
        (lambda u: u**4, [0.9948668872530106, 0.9910904232237954, 0.994644406659063]),
        (
            lambda u: np.where(u < 0.9, u * 0.1, u),
            [0.9991338041436393, 0.9988633785542333, 0.9995488433924038],
        ),
        (lambda u: np.floor(u * 40) / 8, [4.752410888671875] * 3),
        (lambda u: np.floor(u * 3), [1.00048828125] * 3),
        (lambda u: (u > 0.9997) * 1.0, [0.000244140625, 0.500244140625, 0.000244140625]),
    ],
    ids=["even", "small", "peaks", "steps", "few", "one"],
)
def test_the_scale_with_the_least_divergence_matches_fluid(change: Any, real: list[float]) -> None:
    draws = [np.random.RandomState(seed).uniform(0, 1, 4000) for seed in (1, 2, 3)]
    assert [find_threshold(change(draw).astype("float32")) for draw in draws] == real


def save_loop(folder: Path, kind: str) -> np.ndarray:
    """Write a model with a loop and return samples of its input."""
    x = fluid.data("x", [-1, 5, 3])
    if kind == "recurrent":
        rows, loop = fluid.layers.transpose(x, [1, 0, 2]), fluid.layers.StaticRNN()
        with loop.step():
            row = loop.step_input(rows)
            before = loop.memory(shape=[-1, 4], batch_ref=row)
            after = fluid.layers.fc([row, before], 4, act="tanh")
            loop.update_memory(before, after)
            loop.step_output(after)
        last = fluid.layers.reduce_mean(loop(), 0)
    else:
        count = fluid.layers.fill_constant([1], "int64", 0)
        _, last = fluid.layers.while_loop(
            lambda i, h: fluid.layers.less_than(i, fluid.layers.fill_constant([1], "int64", 3)),
            lambda i, h: [fluid.layers.increment(i), fluid.layers.tanh(h)],
            [count, fluid.layers.reduce_mean(x, 1)],
        )
    out, exe = fluid.layers.fc(last, 2), fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(folder), ["x"], [out], exe)
    return np.random.RandomState(1).uniform(-2, 2, (24, 5, 3)).astype("float32")


def sample_loop(folder: Path, kind: str, **options: Any) -> tuple[slim.PostTrainingQuantization, np.ndarray]:
    samples = save_loop(folder, kind)
    quantization = slim.PostTrainingQuantization(
        fluid.Executor(CPU),
        model_dir=str(folder),
        sample_generator=lambda: ((row,) for row in samples),
        batch_size=8,
        is_full_quantize=True,
        **options,
    )
    return quantization, samples


def quantize_loop(folder: Path, kind: str, **options: Any) -> tuple[fluid.Program, np.ndarray]:
    quantization, samples = sample_loop(folder, kind, **options)
    return quantization.quantize(), samples


def test_a_model_that_quantizes_a_counter_is_saved_with_a_warning(tmp_path: Path) -> None:
    quantization, _ = sample_loop(tmp_path / "a", "while", algo="KL")
    quantization.quantize()
    with pytest.warns(UserWarning, match=r"quantizes integers.*fill_constant_0\.tmp_0\.quant_dequant"):
        quantization.save_quantized_model(str(tmp_path / "b"))
    with pytest.raises(fluid.errors.LoadError, match="wants INT64"):
        fluid.io.load_inference_model(str(tmp_path / "b"), fluid.Executor(CPU))


def test_a_loop_does_not_change_the_recorded_range_of_its_sequence(tmp_path: Path) -> None:
    program, samples = quantize_loop(tmp_path, "recurrent", algo="min_max")
    (found,) = [op for op in program.global_block().ops if op.type == "transpose2"]
    assert found.attr("out_min") == samples.min()
    assert found.attr("out_max") == samples.max()


def test_a_model_whose_loop_counts_in_integers_is_quantized(tmp_path: Path) -> None:
    program, _ = quantize_loop(tmp_path, "while", algo="KL")
    names = ["fill_constant_0.tmp_0.quant_dequant.scale", "fill_constant_1.tmp_0.quant_dequant.scale"]
    found = [np.array(fluid.global_scope().find_var(name).get_tensor()).item() for name in names]
    assert found == [0.500244140625] * 2  # those of 1.8.5
    assert "tanh" in [op.type for op in program.block(1).ops]  # 1.8.5 loses the blocks of loops


def test_a_loaded_model_that_is_saved_again_keeps_one_output(tmp_path: Path) -> None:
    exe = fluid.Executor(CPU)
    cases.save_model("mlp", str(tmp_path / "a"))
    program, feeds, targets = fluid.io.load_inference_model(str(tmp_path / "a"), exe)
    with fluid.unique_name.guard():
        fluid.io.save_inference_model(str(tmp_path / "b"), feeds, targets, exe, program)
    again, _, outputs = fluid.io.load_inference_model(str(tmp_path / "b"), exe)
    assert outputs[0].shape == targets[0].shape == (-1, 1)
    assert [op.type for op in again.global_block().ops] == [op.type for op in program.global_block().ops]


def test_a_loaded_model_is_cut_at_an_inner_variable(tmp_path: Path) -> None:
    x, exe = fluid.data("x", [-1, 1]), fluid.Executor(CPU)
    first = fluid.layers.scale(x, 10.0)
    out = fluid.layers.scale(first, 10.0)
    with fluid.unique_name.guard():  # as in a new process
        fluid.io.save_inference_model(str(tmp_path / "a"), ["x"], [out], exe)
    program, feeds, _ = fluid.io.load_inference_model(str(tmp_path / "a"), exe)
    with fluid.unique_name.guard():
        target = program.global_block().var(first.name)
        fluid.io.save_inference_model(str(tmp_path / "b"), feeds, [target], exe, program)
    cut, _, targets = fluid.io.load_inference_model(str(tmp_path / "b"), exe)
    (found,) = exe.run(cut, feed={"x": np.ones((1, 1), "float32")}, fetch_list=targets)
    assert found.item() == 10.0  # 1.8.5 writes a model that makes 100
