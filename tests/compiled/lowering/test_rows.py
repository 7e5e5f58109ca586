"""Rows of sequences, and rows without a LoD, joined, paired and reshaped: one piece, and numpy's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.compiled.engine import Engine
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers
LENGTHS = {"x": [3, 2, 4], "y": [3, 2, 4], "z": [2, 2], "label": [3, 2, 4]}


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def make_feeds(net: Net) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    feeds: list[dict[str, Any]] = []
    for _ in range(2):
        arrays = {n: rng.standard_normal((sum(LENGTHS[n]), 6)).astype("float32") for n in "xyz"}
        arrays["label"] = rng.integers(0, 5, (9, 1))
        feed = {n: fluid.create_lod_tensor(a, [LENGTHS[n]], fluid.CPUPlace()) for n, a in arrays.items()}
        feed["flat"] = rng.standard_normal((9, 6)).astype("float32")
        feeds.append({n: value for n, value in feed.items() if net.main.global_block().has_var(n)})
    return feeds


def sequences(name: str) -> Any:
    return fluid.data(name, [None, 6], lod_level=1)


def flat() -> Any:
    return fluid.data("flat", [None, 6])


def refused(net: Net) -> list[str]:
    """Return the types of the operators that numpy ran, but for ``print``."""
    (engine,) = (v for key, v in net.main.plans.items() if key[0] == "engine")
    types = [engine.plan.steps[index].op.type for index in engine.refused]
    return [type for type in types if type != "print"]


def compare(make: Callable[[], Any]) -> None:
    """Train with both engines; assert equal losses, and that numpy ran nothing of the compiled program."""
    losses = []
    for backend in ("numpy", "jax"):
        net = build(make, sgd)
        losses.append(train(net, make_feeds(net), backend))
    assert refused(net) == []
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)  # sums in another order


def scores() -> Any:
    """Return the loss of scores of positives and negatives, as a session has them."""
    positive, negative = L.fc(sequences("x"), 1), L.fc(sequences("z"), 1)
    labels = L.concat([L.ones_like(positive), L.zeros_like(negative)], axis=0)
    return L.mean(L.sigmoid_cross_entropy_with_logits(L.concat([positive, negative], axis=0), labels))


def labels() -> Any:
    label = fluid.data("label", [None, 1], dtype="int64", lod_level=1)
    return L.mean(L.softmax_with_cross_entropy(L.fc(flat(), 5), label))


def softened_labels() -> Any:
    label = fluid.data("label", [None, 1], dtype="int64", lod_level=1)
    return L.mean(L.cross_entropy(L.softmax(L.fc(flat(), 5)), label))


def labelled_parts() -> Any:
    """Return the loss of labels, which are sequences, of rows of two branches, which are not."""
    label = fluid.data("label", [None, 1], dtype="int64", lod_level=1)
    total = L.reduce_sum(flat(), dim=1, keep_dim=True)
    x, branches = L.fc(flat(), 5), L.IfElse(total > L.zeros_like(total))
    with branches.true_block():
        branches.output(L.fc(branches.input(x), 5, act="softmax"))
    with branches.false_block():
        branches.output(L.softmax(branches.input(x)))
    return L.mean(L.cross_entropy(branches()[0], label))


def images() -> Any:
    rows = L.reshape(L.fc(sequences("x"), 16), [-1, 1, 4, 4])
    return L.mean(L.pool2d(L.conv2d(rows, 2, 3, padding=1), 2, "max", 2))


def lengths() -> Any:
    both = L.stack([L.l2_normalize(L.fc(sequences(n), 4), axis=1) for n in "xy"], axis=1)
    return L.mean(L.fc(L.reduce_sum(both, dim=1), 1))


def products() -> Any:
    """Return the loss of rows that are multiplied by a table, matrix by matrix, and with each other."""
    table = L.create_parameter([7, 4], "float32")
    x, y = (L.fc(sequences(n), 4) for n in "xy")
    words = L.matmul(x, table, transpose_y=True)
    matrices = L.matmul(L.reshape(x, [-1, 2, 2]), L.reshape(y, [-1, 2, 2]), transpose_y=True)
    return L.mean(words) + L.mean(matrices) + L.mean(L.matmul(x, y, transpose_x=True))


def others() -> Any:
    """Return the loss of operators that few networks apply to each row of sequences."""
    x, y = (L.fc(sequences(n), 4) for n in "xy")
    images = L.reshape(x, [-1, 4, 1, 1])
    wide = L.pad2d(L.maxout(L.shuffle_channel(images, 2), 2), [0, 0, 1, 1])
    chosen = L.multiplex([x, y], L.cast(L.argmax(x, axis=1), "int32") * 0)
    parts = [
        L.bilinear_tensor_product(x, y, 3), L.cumsum(x, axis=1), chosen, wide, L.pixel_shuffle(images, 2),
        L.strided_slice(y, axes=[1], starts=[0], ends=[4], strides=[2]),
        L.teacher_student_sigmoid_loss(L.fc(x, 1), L.reduce_sum(L.ones_like(y), dim=1, keep_dim=True)),
    ]  # fmt: skip
    return L.sums([L.mean(L.square(part)) for part in parts])


def print_between(layer: Callable[[], Any]) -> Any:
    """Return the loss of a layer; numpy runs an operator between it and its gradient."""
    return L.mean(L.Print(L.mean(layer()), print_phase="forward"))


def projected() -> Any:
    """Return states whose gradient is not given the input: it cannot compute them again."""
    return print_between(lambda: L.dynamic_lstmp(L.fc(sequences("x"), 16), 16, 3)[0])


def running_sums() -> Any:
    """Return the loss of sums along all rows, and along those that each branch gets."""
    x = L.fc(flat(), 4)
    positive = L.reduce_sum(flat(), dim=1, keep_dim=True) > L.zeros_like(L.reduce_sum(flat(), 1, True))
    branches = L.IfElse(positive)
    with branches.true_block():
        branches.output(L.log(1.1 + L.square(L.cumsum(branches.input(x), axis=0, exclusive=True))))
    with branches.false_block():
        branches.output(L.tanh(L.cumsum(branches.input(x), axis=0, reverse=True)))
    rows = L.cumsum(L.cumsum(L.fc(sequences("x"), 4), axis=0, reverse=True), axis=1)
    return L.mean(branches()[0]) + L.mean(L.tanh(rows))


@pytest.mark.parametrize(
    "make",
    [scores, labels, softened_labels, labelled_parts, images, lengths, running_sums, products, others],
)
def test_rows_of_sequences_train_in_one_piece(make: Callable[[], Any]) -> None:
    compare(make)


def test_concat_of_sequences_and_plain_rows_counts_all_rows() -> None:
    compare(lambda: L.mean(L.fc(L.concat([L.fc(sequences("x"), 4), L.fc(flat(), 4)], axis=0), 1)))


def test_a_lod_that_does_not_fit_its_array_is_dropped_as_on_numpy() -> None:
    def make() -> Any:
        joined = L.concat([L.fc(sequences("x"), 4), L.fc(flat(), 4)], axis=0)
        return L.mean(L.fc(L.Print(joined, message="", print_phase="forward"), 1))

    compare(make)


def test_joined_sequences_have_the_rows_of_both() -> None:
    net = build(lambda: L.concat([sequences("x"), sequences("z")], axis=0))
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    feed = make_feeds(net)[0]
    (found,) = net.exe.run(program, feed=feed, fetch_list=net.fetch, scope=net.scope, return_numpy=False)
    np.testing.assert_array_equal(np.array(found), np.concatenate([np.array(feed["x"]), np.array(feed["z"])]))
    assert found.recursive_sequence_lengths() == [[3, 2, 4, 2, 2]]


@pytest.mark.parametrize("shape", [[-1, 2, 4], [0, 4, 2]])
def test_the_gradient_of_a_reshape_may_be_in_another_piece(shape: list[int]) -> None:
    def make() -> Any:
        rows = L.transpose(L.reshape(L.fc(sequences("x"), 8), shape), [0, 2, 1])
        rows = L.Print(rows, message="", print_phase="forward")
        return L.mean(L.fc(L.reshape(rows, [-1, 8]), 1))

    compare(make)


def test_unique_ignores_the_padding_rows() -> None:
    def make() -> Any:
        ids, wanted = fluid.data("ids", [None], dtype="int64"), fluid.data("wanted", [None], dtype="bool")
        some = L.gather(ids, L.reshape(L.where(wanted), [-1]))
        found, index, counts = L.unique_with_counts(some)
        return [found, index, counts]

    net = build(make)
    wanted = np.array([True, False, True, True, False, True])
    found, index, counts = train(net, [{"ids": np.array([7, 5, 7, 3, 5, 7]), "wanted": wanted}])[0]
    assert (found.tolist(), index.tolist(), counts.tolist()) == ([7, 3], [0, 0, 1, 0], [3, 1])
    assert refused(net) == []


def test_numpy_runs_an_operator_whose_compiled_gradient_lacks_a_result() -> None:
    losses = []
    for backend in ("numpy", "jax"):
        net = build(projected, sgd)
        losses.append(train(net, make_feeds(net), backend))
    assert refused(net) == ["lstmp", "lstmp_grad"]
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)  # sums in another order


def test_an_operator_runs_on_numpy_if_its_gradient_does(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Engine._find_obstacle
    monkeypatch.setattr(
        Engine,
        "_find_obstacle",
        lambda self, index: find(self, index) or _refuse(self.plan.steps[index].op.type),
    )
    losses = []
    for backend in ("numpy", "jax"):
        net = build(lambda: L.mean(L.dynamic_lstm(L.fc(sequences("x"), 16), 16)[0]), sgd)
        losses.append(train(net, make_feeds(net) * 2, backend))
    assert refused(net) == ["lstm_grad", "lstm"]  # in the order in which that was known
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)  # sums in another order


def _refuse(type: str) -> str | None:
    return "for this test" if type == "lstm_grad" else None


def test_operators_that_read_no_lod_treat_sequences_of_one_row_as_rows() -> None:
    def make() -> Any:
        x, y = (fluid.data(name, [None, 2, 3], lod_level=1) for name in "xy")
        user, item = (L.fc(one, 4, num_flatten_dims=2) for one in (x, y))
        scores = L.matmul(user, item, transpose_y=True)  # (N, 2, 2)
        turned = L.cumsum(L.transpose(scores, [1, 0, 2]), axis=0)
        chosen = L.gather(L.reshape(turned, [2, 3, 2]), fluid.layers.assign(np.array([1, 0, 1], "int32")))
        return [L.mean(L.square(chosen) + L.reduce_sum(scores)), scores]

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 2, 3)).astype("float32") for _ in range(2)]
    place = fluid.CPUPlace()
    feed = {n: fluid.create_lod_tensor(a, [[1, 1, 1]], place) for n, a in zip("xy", arrays, strict=True)}
    found = []
    for backend in ("numpy", "jax"):
        net = build(make, sgd)
        program = fluid.CompiledProgram(net.main).with_backend(backend)
        found += [
            net.exe.run(program, feed, net.fetch, scope=net.scope, return_numpy=False) for _ in range(2)
        ]
    assert refused(net) == []
    for want, got in zip(found[:2], found[2:], strict=True):
        for one, other in zip(want, got, strict=True):
            # sums in another order, of terms up to 1
            np.testing.assert_allclose(np.array(other), np.array(one), rtol=2e-5, atol=1e-6)
            assert other.recursive_sequence_lengths() == one.recursive_sequence_lengths()


def assert_one_piece_like_numpy(make: Callable[[], Any], feed: dict[str, Any]) -> None:
    """Compare the losses of two steps with those of numpy; all operators are compiled."""
    losses = []
    for backend in ("numpy", "jax"):
        net = build(make, sgd)
        losses.append(train(net, [feed] * 2, backend))
    assert refused(net) == []
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-5)  # sums in another order


def test_padded_input_lengths_and_initial_states_may_be_fed_with_a_lod() -> None:
    """The LoD of each fed field says that every sample has one row of it."""

    def make() -> Any:
        x = fluid.data("x", [None, 4, 3], lod_level=1)
        length = fluid.data("length", [None, 1], "int64", lod_level=1)
        first = L.fc(fluid.data("y", [None, 3], lod_level=1), 5)
        gates = L.fc(L.sequence_unpad(x, length), 20)
        hidden, _ = L.dynamic_lstm(gates, 20, h_0=first, c_0=first)
        return L.mean(hidden) + L.mean(L.dynamic_gru(L.fc(hidden, 15), 5, is_reverse=True, h_0=first))

    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in (("x", (3, 4, 3)), ("y", (3, 3)))}
    arrays["length"] = np.array([[4], [1], [2]])
    feed = {n: fluid.create_lod_tensor(a, [[1, 1, 1]], fluid.CPUPlace()) for n, a in arrays.items()}
    assert_one_piece_like_numpy(make, feed)


def test_dropout_of_rows_with_fed_offsets_draws_the_masks_of_numpy() -> None:
    def make() -> Any:
        rows = L.lod_reset(L.fc(flat(), 4), fluid.data("offsets", [4], "int32"))
        return L.mean(L.sequence_pool(L.dropout(rows, 0.4), "sum"))

    rng = np.random.default_rng(0)
    feed = {"flat": rng.standard_normal((9, 6)).astype("float32"), "offsets": np.array([0, 2, 5, 9], "int32")}
    assert_one_piece_like_numpy(make, feed)


def test_rows_with_several_ids_look_up_a_table() -> None:
    def make() -> Any:
        ids = fluid.data("ids", [None, 3], "int64", lod_level=1)
        return L.mean(L.square(L.sequence_pool(fluid.embedding(ids, [9, 4]), "sum")))

    rows = np.array([[1, 2, 1], [8, 0, 3], [2, 2, 2], [5, 1, 0], [4, 4, 8]])
    feed = {"ids": fluid.create_lod_tensor(rows, [[3, 2]], fluid.CPUPlace())}
    assert_one_piece_like_numpy(make, feed)
