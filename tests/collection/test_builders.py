"""Builders compute what DyNet's compute, and keep their parameters as DyNet does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import paddlelike.collection as dy
from paddlelike.errors import GraphError
from tests.collection.models import GOLDEN, OneLayerMLP, arrays_of, read_golden

ORDER = json.loads((GOLDEN / "hl-all.json").read_text())["order"]


@pytest.mark.parametrize("meta", ["hl-all", "hl-p0", "hl-p2", "hl-p3"])
def test_loaded_builders_give_the_outputs_of_dynet(meta: str, tmp_path: Path) -> None:  # D18-D31, D33
    """In each pickle protocol of DyNet's Pythons. 1e-6: float32, products in another order."""
    (tmp_path / "m.meta").write_bytes((GOLDEN / f"{meta}.meta").read_bytes())
    (tmp_path / "m.data").write_bytes((GOLDEN / "hl-all.data").read_bytes())
    objects = dict(
        zip(
            ORDER,
            dy.load(tmp_path / "m", dy.ParameterCollection(), {"user_mlp.OneLayerMLP": OneLayerMLP}),
            strict=True,
        )
    )
    golden = read_golden("hl.npz")
    for kind in [kind for kind in ORDER if kind not in "EW"]:
        dy.renew_cg()
        inputs, one = [dy.inputVector(x) for x in golden["xs"]], objects[kind]
        if isinstance(one, OneLayerMLP):
            outputs = [one(x) for x in inputs]
        else:
            begin = one if isinstance(one, dy.BiRNNBuilder) else one.initial_state()
            outputs = begin.transduce(inputs)
        found = np.array([output.npvalue() for output in outputs])
        np.testing.assert_allclose(found, golden[f"{kind}:out"], rtol=0, atol=1e-6, err_msg=kind)


def test_a_layer_normalized_lstm_keeps_its_gains(tmp_path: Path) -> None:  # D44
    golden = read_golden("ln.npz")

    def outputs(builder: dy.VanillaLSTMBuilder) -> np.ndarray:
        dy.renew_cg()
        states = builder.initial_state().transduce([dy.inputVector(x) for x in golden["xs"]])
        return np.array([state.npvalue() for state in states])

    collection = dy.ParameterCollection()
    builder = dy.VanillaLSTMBuilder(1, 3, 4, collection, True)
    collection.populate(GOLDEN / "ln-whole.model")
    np.testing.assert_allclose(outputs(builder), golden["out"], rtol=0, atol=1e-6)
    dy.save(tmp_path / "ln", [builder])
    (again,) = dy.load(tmp_path / "ln", dy.ParameterCollection())
    np.testing.assert_array_equal(outputs(again), outputs(builder))
    below = [line.split()[1] for line in (tmp_path / "ln.data").read_text().splitlines() if line[0] == "#"]
    assert sum(name.startswith("/vanilla-lstm-builder/") for name in below) == 3  # what DyNet's load expects
    assert sum(name.startswith("/vanilla-lstm-builder-ln/") for name in below) == 6


def test_builders_name_their_collections_as_dynet_does() -> None:  # D16, D17
    m = dy.ParameterCollection()
    builders = [
        dy.LSTMBuilder(2, 3, 4, m),
        dy.VanillaLSTMBuilder(1, 3, 4, m),
        dy.GRUBuilder(1, 3, 4, m),
        dy.SimpleRNNBuilder(1, 3, 4, m),
        dy.CoupledLSTMBuilder(1, 3, 4, m),
        dy.BiRNNBuilder(1, 3, 4, m, dy.LSTMBuilder),
    ]
    assert [one.param_collection().name() for one in builders] == [
        "/vanilla-lstm-builder/",
        "/vanilla-lstm-builder_1/",
        "/gru-builder/",
        "/simple-rnn-builder/",
        "/lstm-builder/",
        "/birnn/",
    ]
    inner = [p.name() for p in builders[-1].param_collection().parameters_list()]
    assert inner[0] == "/birnn/vanilla-lstm-builder/_0"
    assert inner[3] == "/birnn/vanilla-lstm-builder_1/_0"


def test_collections_of_builders_are_found_by_prefix_in_any_order(tmp_path: Path) -> None:  # D18, D19
    m = dy.ParameterCollection()
    one, two = dy.LSTMBuilder(2, 3, 4, m), dy.LSTMBuilder(1, 3, 5, m)
    one.param_collection().populate(GOLDEN / "builders.model", "/vanilla-lstm-builder")
    two.param_collection().populate(GOLDEN / "builders.model", "/vanilla-lstm-builder_1/")
    golden = read_golden("builders.npz")
    for name, array in arrays_of(m).items():
        np.testing.assert_array_equal(array, golden[name])
    two.param_collection().save(tmp_path / "b")
    one.param_collection().save(tmp_path / "b", append=True)
    assert (tmp_path / "b").read_bytes() == (GOLDEN / "builders.model").read_bytes()


def test_an_rnn_state_computes_from_the_states_before_it() -> None:  # D27
    m = dy.ParameterCollection()
    builder = dy.SimpleRNNBuilder(1, 2, 3, m)
    start = builder.initial_state()
    states = start.add_inputs([dy.inputVector([1.0, 2.0]), dy.inputVector([0.5, -1.0])])
    assert states[1].prev() is states[0]
    w, u, b = (p.as_array() for p in m.parameters_list())
    h1 = np.tanh(w @ [1, 2] + b)
    h2 = np.tanh(w @ [0.5, -1] + u @ h1 + b)
    np.testing.assert_allclose(states[1].output().npvalue(), h2, rtol=1e-5)
    np.testing.assert_allclose(states[1].h()[0].npvalue(), states[1].s()[-1].npvalue())
    with pytest.raises(GraphError, match="has 1 memories, got 2"):
        builder.initial_state([h1, h1])
