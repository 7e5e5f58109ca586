"""What cannot be compiled runs with numpy between the pieces, and is named."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.compiled.backend import settings
from paddlelike.compiled.packing import RefusedError
from paddlelike.compiled.pieces.piece import Piece
from paddlelike.compiled.run import find_engine
from paddlelike.core import SelectedRows
from paddlelike.errors import ExtraMissingError, NotInitializedError, OperatorError, UnsupportedError
from tests.compiled.harness.nets import Net, batches, build, regression, train, use

pytestmark = pytest.mark.slow

L = fluid.layers


def engine_of(net: Net) -> Any:
    return next(v for key, v in net.main.plans.items() if key[0] == "engine")


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def test_a_training_step_is_one_piece_compiled_once() -> None:
    net = build(regression, sgd)
    train(net, batches(3))
    (piece,) = engine_of(net).pieces
    assert (len(piece), piece.compilations) == (len(net.main.global_block().ops), 1)
    assert engine_of(net).refused == {}


def test_a_python_function_splits_the_program() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 3])
        out = (
            fluid.default_main_program().current_block().create_var(name="o", dtype="float32", shape=[-1, 3])
        )
        L.py_func(lambda a: np.array(a) * 2, L.scale(x, 3.0), out)
        return L.reduce_sum(L.scale(out, 0.5))

    net = build(make)
    assert train(net, [{"x": np.ones((2, 3), "float32")}] * 2) == [[pytest.approx(18)]] * 2
    engine = engine_of(net)
    assert [(piece.start, piece.stop) for piece in engine.pieces] == [(0, 1), (2, 4)]
    assert engine.refused == {1: "it reaches outside of the program"}


def test_explanations_name_pieces_and_reasons() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 3])
        return L.reduce_sum(L.Print(L.scale(x, 2.0)))

    net = build(make)
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    text = program.explain(feed=["x"], fetch_list=net.fetch)
    assert net.exe.explain(program, {"x": 0}, net.fetch) == text
    with use("jax"):
        assert net.exe.explain(net.main, {"x": 0}, net.fetch) == text
    assert "piece 1: 1 operator" in text
    assert "print: it reaches outside of the program" in text


def test_new_shapes_compile_again_and_the_tenth_one_warns_with_the_name_of_the_feed() -> None:
    net = build(lambda: L.reduce_sum(fluid.data("x", [None, 2])))
    for rows in range(1, 10):
        train(net, [{"x": np.ones((rows, 2), "float32")}])
    with pytest.warns(UserWarning, match="compiled 10 times, because the feed 'x' came in 10 shapes"):
        train(net, [{"x": np.ones((10, 2), "float32")}])
    assert engine_of(net).pieces[0].compilations == 10


def test_sequences_of_many_lengths_share_few_compilations() -> None:
    def make() -> Any:
        words = fluid.data("w", [None, 1], "int64", lod_level=1)
        hidden = L.fc(L.embedding(words, size=[30, 8]), 32)
        state, _ = L.dynamic_lstm(hidden, 32, use_peepholes=False)
        return L.mean(L.fc(L.sequence_pool(state, "max"), 1))

    rng = np.random.default_rng(3)
    feeds = []
    for longest in (5, 6, 7, 8, 7, 6):
        lengths = [longest, 2, 3, longest - 1]
        rows = rng.integers(0, 30, (sum(lengths), 1))
        feeds.append({"w": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())})
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4, atol=1e-6)
    (piece,) = engine_of(net).pieces
    assert piece.compilations <= 3  # of 6 batches, whose rows are 15 to 21


def test_many_fed_sequences_do_not_multiply_the_compilations() -> None:
    slots = [f"s{i}" for i in range(6)]

    def make() -> Any:
        fed = [fluid.data(name, [None, 1], "int64", lod_level=1) for name in slots]
        pooled = [L.sequence_pool(L.embedding(one, size=[30, 4], param_attr="table"), "sum") for one in fed]
        return L.mean(L.fc(L.concat(pooled, 1), 1))

    rng = np.random.default_rng(3)
    feeds = []
    for _ in range(12):
        feed = {}
        for name in slots:
            lengths = rng.integers(1, 8, 16).tolist()
            rows = rng.integers(0, 30, (sum(lengths), 1))
            feed[name] = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
        feeds.append(feed)
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4, atol=1e-6)
    (piece,) = engine_of(net).pieces
    assert piece.compilations <= 3  # of 12 batches, each with six numbers of rows between 48 and 80


def test_padding_to_the_longest_sequence_is_compiled_for_each_length() -> None:
    def make() -> Any:
        hidden = L.fc(fluid.data("x", [None, 4], lod_level=1), 6, act="tanh")
        padded, lengths = L.sequence_pad(hidden, L.fill_constant([1], "float32", 0.0))
        scores = L.reduce_sum(padded, dim=2) * L.sequence_mask(lengths, dtype="float32")
        weighted = L.elementwise_mul(padded, L.softmax(scores), axis=0)
        return L.mean(L.sequence_pool(L.fc(L.sequence_unpad(weighted, lengths), 3), "sum"))

    rng = np.random.default_rng(7)
    feeds = []
    for lengths in ([2, 5, 1], [3, 3, 2], [5, 1, 2]):
        rows = rng.standard_normal((sum(lengths), 4)).astype("float32")
        feeds.append({"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())})
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4, atol=1e-6)
    assert engine_of(net).refused == {}
    assert [piece.compilations for piece in engine_of(net).pieces] == [2]


def test_a_fetched_sequence_has_its_rows_and_lod() -> None:
    net = build(lambda: [L.scale(fluid.data("x", [None, 2], lod_level=1), 2.0)])
    fed = fluid.create_lod_tensor(np.arange(10, dtype="float32").reshape(5, 2), [[2, 3]], fluid.CPUPlace())
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    (out,) = net.exe.run(program, feed={"x": fed}, fetch_list=net.fetch, scope=net.scope, return_numpy=False)
    assert out.recursive_sequence_lengths() == [[2, 3]]
    np.testing.assert_array_equal(np.array(out), np.arange(10).reshape(5, 2) * 2)


def test_a_wrong_label_is_an_error_and_changes_no_parameter() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
        return L.mean(L.cross_entropy(L.fc(x, 3, act="softmax"), y))

    net = build(make, sgd)
    feed = {"x": np.ones((2, 4), "float32"), "y": np.array([[0], [2]])}
    train(net, [feed])
    before = np.array(net.scope.find_var("fc_0.w_0").get_tensor())
    with pytest.raises(OperatorError, match="Label holds a value outside of 0 to 2"):
        train(net, [feed | {"y": np.array([[0], [3]])}])
    np.testing.assert_array_equal(np.array(net.scope.find_var("fc_0.w_0").get_tensor()), before)
    train(net, [feed])


def test_a_forgotten_startup_program_raises_the_error_of_numpy_and_disables_no_lowering() -> None:
    net = build(regression, sgd)
    empty = fluid.Scope()
    with pytest.raises(NotInitializedError, match="its startup program was run in another scope"):
        net.exe.run(fluid.CompiledProgram(net.main).with_backend("jax"), feed=batches(1)[0],
                    fetch_list=net.fetch, scope=empty)  # fmt: skip
    train(net, batches(1))
    assert engine_of(net).refused == {}


def test_conditions_and_loops_are_compiled() -> None:
    def make() -> Any:
        x = fluid.data("x", [1], "float32")
        picked = L.cond(L.less_than(x, L.fill_constant([1], "float32", 3.0)),
                        lambda: L.scale(x, 2.0), lambda: L.scale(x, -1.0))  # fmt: skip
        i, total = L.fill_constant([1], "int64", 0), L.fill_constant([1], "float32", 0.0)
        end = L.fill_constant([1], "int64", 4)
        _, total = L.while_loop(lambda i, t: L.less_than(i, end),
                                lambda i, t: [L.increment(i), t + x], [i, total])  # fmt: skip
        return [picked, total]

    net = build(make)
    got = train(net, [{"x": np.array([n], "float32")} for n in (1, 5)])
    assert [[float(v) for v in each] for each in got] == [[2, 4], [-5, 20]]
    assert engine_of(net).refused == {}


def test_a_recurrent_block_trains_as_with_numpy() -> None:
    def make() -> Any:
        x = fluid.data("x", [5, 3, 4])
        rnn = L.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            last = rnn.memory(shape=[-1, 6], batch_ref=word)
            new = L.fc([word, last], 6, act="tanh")
            rnn.update_memory(last, new)
            rnn.step_output(new)
        return L.mean(L.square(rnn()))

    feeds = [{"x": np.random.default_rng(i).standard_normal((5, 3, 4)).astype("float32")} for i in range(4)]
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)
    assert engine_of(net).refused == {}


def test_a_missing_gpu_is_an_error_with_a_hint() -> None:
    with pytest.raises(UnsupportedError, match=r"CUDAPlace\(7\): JAX sees (no|\d+) GPUs?") as error:
        fluid.Executor(fluid.CUDAPlace(7))
    assert "fluid.CPUPlace() works on every machine" in error.value.hint


def test_without_jax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(ExtraMissingError, match="need JAX") as error:
        fluid.CompiledProgram(fluid.Program()).with_backend("jax")
    assert "paddlelike[jax]" in error.value.hint


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(ValueError, match="'tensorrt', expected one of numpy, jax"):
        fluid.CompiledProgram(fluid.Program()).with_backend("tensorrt")
    startup = build(regression).startup
    with use("torch"), pytest.raises(ValueError, match="FLAGS_backend is 'torch'"):
        fluid.Executor().run(startup)


def test_the_flag_selects_the_engine_and_jax_keeps_64_bit_types_off_outside_of_runs() -> None:
    import jax

    net = build(regression, sgd)
    with use("jax"):
        net.exe.run(net.main, feed=batches(1)[0], fetch_list=net.fetch, scope=net.scope)
    assert engine_of(net).pieces[0].compilations == 1
    assert not jax.config.jax_enable_x64
    with settings(jax.devices("cpu")[0]):
        assert jax.numpy.zeros(1, "int64").dtype == "int64"


def test_the_engine_is_cached_for_each_choice_of_feeds() -> None:
    net = build(regression, sgd)
    args = (net.main, {"x": 0, "y": 0}, [net.fetch[0].name], None, fluid.CPUPlace())
    assert find_engine(*args) is find_engine(*args)


def test_a_learning_rate_warm_up_compiles_into_the_training_step() -> None:
    def momentum() -> Any:
        rate = L.linear_lr_warmup(L.piecewise_decay([4, 6], [0.1, 0.05, 0.01]), 3, 0.0, 0.1)
        return fluid.optimizer.Momentum(rate, 0.9)

    net, other = build(regression, momentum), build(regression, momentum)
    feeds = batches(8)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4, atol=1e-6)
    assert len(engine_of(net).pieces) == 1
    assert engine_of(net).refused == {}


def test_gradients_of_a_batch_norm_in_an_earlier_piece_are_compiled() -> None:
    def make() -> Any:
        x, y = fluid.data("x", [None, 2, 4, 4]), fluid.data("y", [None, 1])
        hidden = L.Print(L.batch_norm(L.conv2d(x, 3, 3)), print_phase="forward")
        return L.mean(L.square_error_cost(L.fc(hidden, 1), y))

    rng = np.random.default_rng(2)
    feeds = [{"x": rng.standard_normal((4, 2, 4, 4)).astype("float32"), "y": np.ones((4, 1), "float32")}] * 4
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4, atol=1e-6)
    refused = {engine_of(net).plan.steps[index].op.type for index in engine_of(net).refused}
    assert refused <= {"print", "print_grad"}


def test_a_fed_array_can_be_written_into_after_a_run_that_fetches_nothing() -> None:
    def make() -> Any:
        total = L.create_global_var([512, 512], 0.0, "float32", persistable=True, name="total")
        x = fluid.data("x", [512, 512])
        product = x
        for _ in range(8):  # enough for XLA to compute it in a thread of its own
            product = L.matmul(product, x)
        return L.assign(product, total)

    net = build(make)
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    memory = np.zeros((1 << 18) + 16, "float32")
    start = -memory.ctypes.data % 64 // 4  # XLA reads memory at multiples of 64 bytes without a copy
    fed = memory[start : start + (1 << 18)].reshape(512, 512)
    for _ in range(2):
        fed[:] = 1 / 512
        net.exe.run(program, feed={"x": fed}, scope=net.scope)
        fed[:] = 9
    found = np.array(net.scope.find_var("total").get_tensor())
    np.testing.assert_array_equal(found, np.float32(1 / 512))


def test_numpy_operators_see_the_shape_of_sequences_without_padding() -> None:
    def make() -> Any:
        hidden = L.fc(fluid.data("x", [None, 2], lod_level=1), 4)
        matrices = L.Print(L.reshape(hidden, [-1, 2, 2]), print_phase="forward")
        return L.mean(L.square(matrices))

    rows = np.arange(26, dtype="float32").reshape(13, 2) / 10
    feeds = [{"x": fluid.create_lod_tensor(rows, [[4, 9]], fluid.CPUPlace())}] * 3
    net, other = build(make, sgd), build(make, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)


def test_gathering_rows_of_sequences_gives_a_new_lod() -> None:
    def make() -> Any:
        x, ids = fluid.data("x", [None, 4], lod_level=1), fluid.data("ids", [None, 1], "int64", lod_level=1)
        offsets, plain = fluid.data("offsets", [None], "int32"), fluid.data("plain", [None], "int64")
        hidden = L.fc(x, 3, act="tanh")
        found = L.gather(hidden, plain), L.gather(hidden, ids, overwrite=False), L.gather(hidden, ids)
        cut = L.sequence_pool(L.lod_reset(hidden, offsets), "max")
        return sum((L.mean(L.square(one)) for one in found), L.mean(cut))

    rng = np.random.default_rng(2)
    tensor = functools.partial(fluid.create_lod_tensor, place=fluid.CPUPlace())
    feed = {
        "x": tensor(rng.standard_normal((6, 4)).astype("float32"), [[1, 3, 2]]),
        "ids": tensor(np.array([[4], [1], [4]]), [[1, 2]]),  # unused rows repeat the first one
        "offsets": np.array([0, 4, 6], "int32"),
        "plain": np.array([5, 0, 5]),
    }
    ours, theirs = build(make, sgd), build(make, sgd)
    np.testing.assert_allclose(
        train(ours, [feed] * 3), train(theirs, [feed] * 3, "numpy"), rtol=1e-5
    )  # float32
    assert not next(v for key, v in ours.main.plans.items() if key[0] == "engine").refused
    for wrong in ({"plain": np.array([5, 6])}, {"offsets": np.array([0, 4, 7], "int32")}):
        with pytest.raises(OperatorError, match=r"outside of the rows|do not cut the rows"):
            train(ours, [feed | wrong])


def test_numpy_handles_selected_rows_without_values() -> None:
    piece = object.__new__(Piece)
    with pytest.raises(RefusedError, match="holds nothing yet"):
        piece._upload(None, 0, SelectedRows([], 4), 0, {})  # type: ignore[arg-type]
