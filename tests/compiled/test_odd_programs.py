"""Programs that mix what seldom meets: compiled, they give what numpy gives, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.core import Scope
from paddlelike.errors import FeedError
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers
RNG = np.random.default_rng(6)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype("float32")


def cut(rows: Any, lengths: list[int]) -> Any:
    return fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())


def compare(
    make: Callable[[], Any], feeds: list[dict[str, Any]], optimizer: Callable[[], Any] | None = None
) -> tuple[Net, dict[str, str]]:
    """Train with both engines; return the compiled net and what it left to numpy, by type."""
    net, other = build(make, optimizer), build(make, optimizer)
    for one, two in zip(train(net, feeds), train(other, feeds, "numpy"), strict=True):
        for got, want in zip(one, two, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)  # another order of float32 sums
    assert read_state(net.scope, net.main).keys() == read_state(other.scope, other.main).keys()
    for name, value in read_state(net.scope, net.main).items():
        np.testing.assert_allclose(value, read_state(other.scope, other.main)[name], rtol=1e-3, atol=1e-5)
    assert net.scope.generator.state == other.scope.generator.state
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    return net, {engine.plan.steps[i].op.type: why for i, why in engine.refused.items()}


def read_state(scope: Scope, main: Any) -> dict[str, Any]:
    names = [var.name for var in main.list_vars() if var.persistable]
    return {name: np.array(scope.var(name).get_tensor()) for name in names}


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def test_if_else_trains_two_branches_on_parts_of_a_batch() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        total = L.reduce_sum(x, 1, keep_dim=True)
        branches = L.IfElse(total > L.zeros_like(total))
        with branches.true_block():
            branches.output(L.fc(L.sqrt(L.abs(branches.input(x))), 1))
        with branches.false_block():
            branches.output(L.fc(branches.input(x), 1) * 2.0)
        (out,) = branches()
        return [L.mean(L.square_error_cost(out, y)), out]

    batches = [numbers(6, 4), numbers(6, 4), np.abs(numbers(6, 4))]  # the last one: all in one part
    _, refused = compare(make, [{"x": x, "y": numbers(6, 1)} for x in batches], sgd)
    assert refused == {}


def test_dropout_is_computed_again_with_the_same_mask() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        first = L.dropout(L.fc(x, 6, act="tanh"), 0.5)
        second = L.dropout(L.fc(first, 6, act="tanh"), 0.3, dropout_implementation="upscale_in_train")
        loss = L.mean(L.square_error_cost(L.fc(second, 1), y))
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(0.01))
        optimizer._set_checkpoints([first, second])
        optimizer.minimize(loss)
        return loss

    _, refused = compare(make, [{"x": numbers(8, 4), "y": numbers(8, 1)} for _ in range(3)])
    assert refused == {}


def test_a_gradient_finds_the_operator_that_computes_its_sequences_again() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 4], lod_level=1)
        padded, lengths = L.sequence_pad(L.fc(x, 4), L.fill_constant([1], "float32", 0))
        back = L.reshape(L.sequence_unpad(L.tanh(padded), lengths), [-1, 4])
        loss = L.mean(L.fc(L.sequence_pool(back, "max"), 3))
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
        optimizer._set_checkpoints([back])
        optimizer.minimize(loss)
        return loss

    _, refused = compare(make, [{"x": cut(numbers(6, 4), lengths)} for lengths in ([2, 4], [5, 1])])
    assert (
        refused == {}
    )  # the gradient of sequence_unpad has no Length, and says nothing without its operator


def test_a_gradient_computed_by_numpy_has_the_lod_of_the_compiled_values() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 4], lod_level=1)
        padded, lengths = L.sequence_pad(L.fc(x, 4), L.fill_constant([1], "float32", 0))
        last = L.sequence_pool(L.reshape(L.sequence_unpad(L.tanh(padded), lengths), [-1, 4]), "last")
        doubled = (
            fluid.default_main_program()
            .current_block()
            .create_var(name="doubled", dtype="float32", shape=[-1, 4])
        )
        L.py_func(lambda a: np.array(a) * 2, last, doubled, backward_func=lambda a, b, d: np.array(d) * 2)
        return L.mean(L.fc(doubled, 3))

    _, refused = compare(make, [{"x": cut(numbers(6, 4), [2, 4])}] * 2, sgd)
    assert {"py_func", "sequence_unpad_grad"} <= set(refused)


def test_a_projected_lstm_of_eight_units_learns_as_in_fluid() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 4], lod_level=1)
        hidden, _ = L.dynamic_lstmp(L.fc(x, 32), 32, 4)  # only the output gate learns
        return L.mean(L.fc(L.sequence_pool(hidden, "last"), 3))

    _, refused = compare(make, [{"x": cut(numbers(6, 4), lengths)} for lengths in ([2, 4], [5, 1])], sgd)
    assert refused == {}


def test_sequences_with_dropout_drawn_by_numpy_keep_their_gradients() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 4], lod_level=1)
        padded, lengths = L.sequence_pad(L.fc(x, 4), L.fill_constant([1], "float32", 0))
        back = L.reshape(L.sequence_unpad(L.tanh(padded), lengths), [-1, 4])
        return L.mean(L.fc(L.sequence_pool(L.dropout(back, 0.5), "max"), 3))

    _, refused = compare(make, [{"x": cut(numbers(14, 4), [5, 6, 3])}] * 2, sgd)
    assert "dropout" in refused


def test_reductions_over_rows_of_sequences_ignore_the_padding() -> None:
    def make() -> Any:
        x, weights = fluid.data("x", [None, 3], lod_level=1), fluid.data("w", [None, 1])
        hidden = L.elementwise_mul(L.fc(x, 2, act="tanh"), weights)
        parts = [L.reduce_sum(hidden), L.reduce_mean(hidden, [0]), L.reduce_max(hidden, [0])]
        loss = L.sums([parts[0], L.reduce_sum(parts[1]), L.reduce_sum(parts[2])])
        again = L.lod_reset(hidden, target_lod=[0, 1, 5])
        return [loss, *parts, L.shape(hidden), L.sequence_pool(again, "max")]

    feeds = [{"x": cut(numbers(5, 3), lengths), "w": numbers(5, 1)} for lengths in ([3, 2], [1, 4])]
    net, refused = compare(make, feeds, sgd)
    assert refused == {}
    with pytest.raises(fluid.core.EnforceNotMet, match="shape"):  # numpy's own error
        train(net, [feeds[0] | {"w": numbers(8, 1)}])  # as many rows as there are with the unused ones


def test_a_gradient_without_a_lod_has_zeros_in_unused_rows() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None, 3], lod_level=1), fluid.data("y", [None, 1], lod_level=2)
        return L.mean(L.sequence_expand(L.fc(x, 2), y, ref_level=0))

    rows = fluid.create_lod_tensor(numbers(6, 1), [[2, 1], [3, 1, 2]], fluid.CPUPlace())
    _, refused = compare(make, [{"x": cut(numbers(3, 3), [2, 1]), "y": rows}] * 2, sgd)
    assert refused.keys() == {"sequence_expand", "sequence_expand_grad"}  # what is around them is compiled


def test_values_that_a_lowering_does_not_cover_are_left_to_numpy() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 2, 3, 3])
        scaled = L.elementwise_mul(x, L.create_parameter([1], "float32", name="scale"))
        kept = L.dropout(scaled, 0.5, dropout_implementation="upscale_in_train")
        focus = L.similarity_focus(x, axis=1, indexes=[0])
        return [L.reduce_sum(focus * kept), focus]

    plain, equal = numbers(2, 2, 3, 3), np.ones((2, 2, 3, 3), "float32")
    assert compare(make, [{"x": plain}], sgd)[1] == {}
    # The dropout masks of the step that is repeated, and the parameters, are numpy's.
    _, refused = compare(make, [{"x": plain}, {"x": equal}, {"x": plain}], sgd)
    assert refused == {"similarity_focus": "the order of equal numbers depends on the sort of C++"}


def test_sparse_gradients_are_clipped_and_positive_elements_gathered() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None], "int64"), fluid.data("y", [None])
        table = L.fc(fluid.embedding(x, [9, 3], is_sparse=True), 2, act="tanh")
        positive = L.gather_nd(table, L.where(y > L.zeros_like(y)))
        return L.reduce_mean(L.square(positive))

    def clip() -> Any:
        return fluid.optimizer.SGD(1.0, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.01))

    feeds = [
        {"x": RNG.integers(0, 9, 6), "y": np.array(y, "float32")} for y in ([1, -1] * 3, [-1] * 4 + [1, 2])
    ]
    assert compare(make, feeds, clip)[1] == {}


def test_a_penalty_on_a_gradient_trains_in_one_piece() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 4])
        x.stop_gradient = False
        score = L.fc(L.fc(x, 5, act="leaky_relu"), 1)
        (slope,) = fluid.gradients([score], [x])
        return L.reduce_mean(L.square(slope)) + L.reduce_mean(score)

    assert compare(make, [{"x": numbers(3, 4)}] * 2, sgd)[1] == {}


def test_an_empty_batch_is_refused_and_trains_nothing() -> None:
    def make() -> Any:
        return L.mean(L.fc(fluid.data("x", [None, 3]), 2))

    net = build(make, sgd)
    before = read_state(net.scope, net.main)
    with pytest.raises(FeedError, match="is fed a batch of no rows"):
        train(net, [{"x": numbers(0, 3)}])
    for name, value in read_state(net.scope, net.main).items():
        np.testing.assert_array_equal(value, before[name])


def test_an_empty_batch_of_an_evaluation_is_reported() -> None:
    exe, x = fluid.Executor(), fluid.data("x", [None, 3])
    rows, mean = L.scale(x, 2.0), L.mean(x)
    with pytest.warns(UserWarning, match=r"a batch of no rows \(shape \[0, 3\]\), whose mean is NaN"):
        assert np.isnan(exe.run(feed={"x": numbers(0, 3)}, fetch_list=[mean])[0]).all()
    pruned = fluid.default_main_program()._prune([rows])  # without the mean
    assert exe.run(pruned, feed={"x": numbers(0, 3)}, fetch_list=[rows], return_numpy=False)[0].shape() == [
        0,
        3,
    ]


def test_the_shape_of_sequences_kept_for_the_gradient_has_their_lod() -> None:
    with fluid.program_guard(main := fluid.Program()):
        L.unsqueeze(L.data("x", [4], lod_level=1) * 2.0, [1])
    (name,) = main.global_block().ops[-1].output("XShape")
    program = fluid.CompiledProgram(main).with_backend("jax")
    feed = {"x": cut(numbers(3, 4), [0, 3, 0])}
    (shape,) = fluid.Executor().run(program, feed, [name], return_numpy=False)
    assert (shape.shape(), shape.lod()) == ([0, 3, 4], [[0, 0, 3, 3]])
