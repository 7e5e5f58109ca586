"""How often programs on batches of different lengths are compiled, and in how many pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.compiled.pieces import compilations
from paddlelike.errors import PaddlelikeError
from tests.compiled.harness.nets import build, train

pytestmark = pytest.mark.slow

L = fluid.layers
Feed = dict[str, Any]


def rows(rng: Any, lengths: list[int], *, width: int = 1, below: int = 20) -> Any:
    ids = rng.integers(0, below, (sum(lengths), width))
    return fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())


def sequences(name: str, width: int = 1) -> Any:
    return fluid.data(name, [None, width], "int64", lod_level=1)


def embed(ids: Any, name: str) -> Any:
    return L.squeeze(fluid.embedding(ids, [20, 4], param_attr=name), [1])


def words_with_negatives() -> Any:
    """Return the loss of words and four labels each, of which one is right: recommendation by sessions."""
    labels = L.sequence_reshape(sequences("labels", 4), 1)
    words = L.dropout(embed(sequences("words"), "table"), 0.2)
    chosen = L.dropout(embed(labels, "table"), 0.2)
    each = L.sequence_reshape(L.expand(L.fc(words, 4, act="tanh"), [1, 4]), 4)
    scores = L.reduce_sum(chosen * each, dim=1, keep_dim=True)
    return L.reduce_sum(L.bpr_loss(L.sequence_reshape(scores, 4), sequences("right")))


def feed_words(rng: Any) -> Feed:
    lengths = rng.integers(9, 15, 4).tolist()
    right = rows(rng, lengths, below=4)
    return {"words": rows(rng, lengths), "labels": rows(rng, lengths, width=4), "right": right}


def text_with_tags() -> Any:
    """Return a hinge loss of a text, its tag, and three tags that it has not."""
    right, wrong = embed(sequences("right"), "tags"), embed(sequences("wrong"), "tags")
    text = L.fc(L.sequence_pool(embed(sequences("text"), "words"), "max"), 4)
    near = L.cos_sim(right, text)
    far = L.sequence_reshape(L.cos_sim(wrong, L.sequence_expand_as(text, wrong)), 3)
    margin = L.fill_constant([L.shape(near)[0], 1], "float32", 0.1)
    gap = L.elementwise_add(L.elementwise_sub(margin, near), L.reduce_max(far, dim=1, keep_dim=True))
    return L.mean(L.elementwise_max(L.fill_constant([L.shape(gap)[0], 1], "float32", 0.0), gap))


def feed_text(rng: Any) -> Feed:
    lengths = rng.integers(9, 15, 4).tolist()
    return {"text": rows(rng, lengths), "right": rows(rng, [1] * 4), "wrong": rows(rng, [3] * 4)}


def fields_of_clicks() -> Any:
    """Return a loss of clicks of six fields, which come as one sequence each."""
    values = L.reshape(fluid.data("values", [None, 6]), [-1, 6, 1])
    fields = L.reshape(fluid.embedding(sequences("fields"), [20, 4], is_sparse=True), [-1, 6, 4]) * values
    click = L.fc(L.reshape(fields, [-1, 24]), 1, act="sigmoid")
    return L.mean(L.log_loss(click, L.cast(sequences("label"), "float32")))


def feed_fields(rng: Any) -> Feed:
    values = rng.standard_normal((5, 6)).astype("float32")
    return {"fields": rows(rng, [6] * 5), "values": values, "label": rows(rng, [1] * 5, below=2)}


def history_with_target() -> Any:
    """Return a loss of attention, without a mask, on a history and the target behind it."""
    parts = [L.reduce_sum(fluid.embedding(sequences(n), [20, 4]), dim=1) for n in ("history", "target")]
    padded, _ = L.sequence_pad(L.sequence_concat(parts), L.zeros([1], "float32"))
    weights = L.softmax(L.matmul(padded, padded, transpose_y=True))
    return L.mean(L.square(L.fc(L.reduce_sum(L.matmul(weights, padded), dim=1), 1)))


def feed_history(rng: Any, longest: int = 14) -> Feed:
    lengths = [longest, *rng.integers(9, 14, 3).tolist()]
    return {"history": rows(rng, lengths), "target": rows(rng, [1] * 4)}


@pytest.mark.parametrize(
    ("make", "feed", "compilations"),
    [
        (words_with_negatives, feed_words, 1),
        (text_with_tags, feed_text, 2),
        (fields_of_clicks, feed_fields, 1),
        (history_with_target, feed_history, 1),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_eight_batches_of_different_lengths_need_few_compilations(
    make: Callable[[], Any], feed: Callable[[Any], Feed], compilations: int
) -> None:
    rng = np.random.default_rng(3)
    feeds = [feed(rng) for _ in range(8)]
    net, other = (build(make, lambda: fluid.optimizer.SGD(0.001)) for _ in range(2))
    assert np.allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5, atol=1e-6)
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    assert ([len(engine.pieces), engine.refused], engine.pieces[0].compilations) == ([1, {}], compilations)


def test_gradients_of_numpy_kernels_have_the_lod_of_their_values() -> None:
    """``Print`` runs with numpy, and with it the gradient between two pieces."""

    def make() -> Any:
        words = L.reduce_sum(fluid.embedding(sequences("words"), [20, 4]), dim=1)
        hidden = L.Print(L.fc(words, 4), message="hidden")
        return L.mean(L.sequence_pool(L.square(hidden), "sum"))

    feeds = [{"words": rows(np.random.default_rng(0), lengths)} for lengths in ([3, 9], [9, 4], [2, 14])]
    net, other = (build(make, lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    assert np.allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    assert {engine.plan.steps[index].op.type for index in engine.refused} == {"print"}
    assert [piece.compilations for piece in engine.pieces] == [1] * len(engine.pieces)


@pytest.mark.parametrize("count", [8, 5])
def test_padding_rows_are_left_out_of_sums_of_sequences_and_plain_rows(count: int) -> None:
    """Eight rows are as many as five have with the unused ones: numpy refuses them, and so does this."""

    def make() -> Any:
        words = L.reduce_sum(fluid.embedding(sequences("words"), [20, 4]), dim=1)
        return [L.sums([words, fluid.data("more", [None, 4])])]

    feed = {"words": rows(np.random.default_rng(0), [2, 3]), "more": np.ones((count, 4), "float32")}
    found: list[Any] = []
    for backend in ("numpy", "jax"):
        net = build(make)
        program = fluid.CompiledProgram(net.main).with_backend(backend)
        try:
            (value,) = net.exe.run(
                program, feed=feed, fetch_list=net.fetch, scope=net.scope, return_numpy=False
            )
            found.append(np.array(value))
        except PaddlelikeError as error:
            found.append(type(error))
    if count == 5:
        assert np.allclose(*found)
    else:
        assert isinstance(found[0], type)
        assert found[0] is found[1]


def test_the_warning_at_the_tenth_compilation_suggests_padding_to_the_longest_sequence() -> None:
    def make() -> Any:
        padded, _ = L.sequence_pad(L.cast(sequences("words"), "float32"), L.zeros([1], "float32"))
        return L.reduce_sum(padded)

    rng = np.random.default_rng(0)
    net = build(make)
    train(net, [{"words": rows(rng, [n, 1])} for n in range(1, 10)])
    with pytest.warns(UserWarning, match="the feed 'words' came in 10 shapes.* give it a maxlen"):
        train(net, [{"words": rows(rng, [10, 1])}])


def test_shapes_that_keep_changing_run_on_numpy_until_one_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compilations, "_OFTEN", 3)
    monkeypatch.setattr(compilations, "_RECENT", 4)

    def make() -> Any:
        hidden = L.dropout(L.fc(fluid.data("x", [None, 3]), 4, act="tanh"), 0.5)
        return L.mean(L.square(L.fc(hidden, 1) - 1.0))

    def adam() -> Any:
        return fluid.optimizer.Adam(0.1)

    rng = np.random.default_rng(0)
    feeds = [{"x": rng.standard_normal((n, 3)).astype("float32")} for n in (1, 2, 3, 4, 5, 2, 5, 6, 5)]
    ours, theirs = build(make, adam), build(make, adam)
    losses = train(ours, feeds[:3])
    with pytest.warns(UserWarning, match="3 of the last 4 runs .* because the feed 'x' came in 4 shapes"):
        losses += train(ours, feeds[3:4])
    losses += train(ours, feeds[4:])  # without another warning
    # Another order of float32 sums.
    np.testing.assert_allclose(losses, train(theirs, feeds, "numpy"), rtol=1e-5)
    for name in (v.name for v in ours.main.list_vars() if v.persistable):
        found, want = (np.array(net.scope.find_var(name).get_tensor()) for net in (ours, theirs))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6, err_msg=name)
    # Compiled: 1, 2, 3, the second 5, and 6, since shapes came back; numpy: 4, and 5 at first.
    (piece,) = next(v for key, v in ours.main.plans.items() if key[0] == "engine").pieces
    assert (piece.compilations, piece.compiled.passed_over) == (5, 2)
    program = fluid.CompiledProgram(ours.main).with_backend("jax")
    assert "numpy ran it 2 times, for new shapes" in program.explain(["x"], ours.fetch)
