"""Decoders and helpers: test mode, beams, subclasses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import run, x

layers = fluid.layers


def test_rows_are_tiled_for_each_beam() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    out = layers.BeamSearchDecoder.tile_beam_merge_with_batch(x(2, 3), 2)
    np.testing.assert_array_equal(run([out], {"x": values})[0], values.repeat(2, 0))


def test_decoding_in_test_mode_gives_the_same() -> None:
    state = x(None, 4)
    cell = layers.GRUCell(4)

    def ids(is_test: bool) -> Any:
        def embedded(ids: Any) -> Any:
            return fluid.embedding(ids, size=[5, 3], param_attr=fluid.ParamAttr(name="words"))

        def scored(out: Any) -> Any:
            return layers.fc(out, 5, param_attr=fluid.ParamAttr(name="scores"), bias_attr=False)

        start = layers.fill_constant_batch_size_like(state, [-1], "int64", 0)
        helper = layers.GreedyEmbeddingHelper(embedded, start, end_token=1)
        decoder = layers.BasicDecoder(cell, helper, scored)
        return layers.dynamic_decode(decoder, state, max_step_num=5, is_test=is_test)[0].sample_ids

    one, other = run([ids(False), ids(True)], {"x": np.ones((2, 4), "float32")})
    np.testing.assert_array_equal(one, other)


def test_a_decoder_without_its_methods_is_refused() -> None:
    for call in (
        lambda: layers.RNNCell().call(None, None),
        lambda: layers.Decoder().initialize(None),
        lambda: layers.DecodeHelper().initialize(),
    ):
        with pytest.raises(NotImplementedError, match="must define"):
            call()
