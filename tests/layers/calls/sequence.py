"""Calls of layers over sequences, recurrent layers, and what labels and searches sequences."""

from __future__ import annotations

from typing import Any

__all__ = ["TABLE"]


def _seq(n: Any, *shape: Any, name: str = "s", dtype: str = "float32", level: int = 1) -> Any:
    return n.fluid.data(name, [None, *shape], dtype, lod_level=level)


def _ids(n: Any, *shape: Any, name: str = "i", dtype: str = "int64", level: int = 1) -> Any:
    return _seq(n, *(shape or (1,)), name=name, dtype=dtype, level=level)


def _crf(n: Any, *args: Any, **kwargs: Any) -> Any:
    """A network with the weight `w` of a chain CRF over 4 labels."""
    return n.linear_chain_crf(*args, param_attr=n.attr(name="w"), **kwargs)


TABLE = {
    # recurrent layers
    "dynamic_lstm_first": lambda n: n.dynamic_lstm(
        _seq(n, 16), 16, h_0=n.x(4), c_0=n.y(4), param_attr="w", bias_attr="b", name="cell"
    )[1],
    "dynamic_lstm_activations": lambda n: n.dynamic_lstm(
        _seq(n, 16),
        16,
        use_peepholes=False,
        is_reverse=True,
        gate_activation="tanh",
        cell_activation="relu",
        candidate_activation="identity",
    )[0],
    "dynamic_lstm_level_0": lambda n: n.dynamic_lstm(n.x(16), 16)[0],
    "dynamic_lstm_refuses_width": lambda n: n.dynamic_lstm(_seq(n, 12), 16),
    "dynamic_lstm_refuses_one_first": lambda n: n.dynamic_lstm(_seq(n, 16), 16, h_0=n.x(4)),
    "dynamic_lstm_refuses_activation": lambda n: n.dynamic_lstm(_seq(n, 16), 16, gate_activation="gelu"),
    "dynamic_lstmp_clips": lambda n: n.dynamic_lstmp(
        _seq(n, 16), 16, 3, h_0=n.x(3), c_0=n.y(4), cell_clip=0.5, proj_clip=0.25, proj_activation="identity"
    )[1],
    "dynamic_lstmp_plain": lambda n: n.dynamic_lstmp(_seq(n, 16), 16, 3, use_peepholes=False, name="p")[0],
    "dynamic_gru_all": lambda n: n.dynamic_gru(
        _seq(n, 12), 4, "w", False, True, "tanh", "relu", h_0=n.x(4), origin_mode=True
    ),
    "lstm_layers": lambda n: n.lstm(
        n.exact(5, 2, 4),
        n.exact(3, 2, 6, name="f"),
        n.exact(3, 2, 6, name="g"),
        5,
        6,
        3,
        dropout_prob=0.25,
        is_test=True,
        name="deep",
        default_initializer=n.fluid.initializer.Constant(0.5),
        seed=2,
    )[1],
    "lstm_any_batch": lambda n: n.lstm(
        n.exact(5, -1, 4), n.exact(1, -1, 6, name="f"), n.exact(1, -1, 6, name="g"), 5, 6, 1
    )[0],
    "gru_unit_plain": lambda n: n.gru_unit(n.x(12), n.y(4), 12, bias_attr=False, activation="relu")[0],
    "gru_unit_gates": lambda n: n.gru_unit(n.x(12), n.y(4), 12, gate_activation="tanh", origin_mode=True)[2],
    "gru_unit_refuses_width": lambda n: n.gru_unit(n.x(12), n.y(5), 12),
    "lstm_unit_all": lambda n: n.lstm_unit(n.x(6), n.y(4), n.z(4), 1.0, "w", False, "cell")[1],
    "lstm_unit_refuses_width": lambda n: n.lstm_unit(n.x(6), n.y(3), n.z(4)),
    "lstm_unit_refuses_dims": lambda n: n.lstm_unit(n.x(6, 2), n.y(3), n.z(4)),
    "lstm_unit_refuses_rows": lambda n: n.lstm_unit(n.exact(2, 6), n.exact(3, 3, name="f"), n.z(4)),
    # sequences
    "sequence_conv_all": lambda n: n.sequence_conv(
        _seq(n, 8), 4, 4, 1, False, -3, bias_attr="b", param_attr="w", act="relu", name="c"
    ),
    "sequence_conv_plain": lambda n: n.sequence_conv(_seq(n, 8), 4, 5, bias_attr=False),
    "sequence_conv_refuses_stride": lambda n: n.sequence_conv(_seq(n, 8), 4, filter_stride=2),
    "row_conv_act": lambda n: n.row_conv(_seq(n, 8), 3, param_attr="w", act="tanh"),
    "row_conv_padded": lambda n: n.row_conv(n.x(5, 8), 3),
    "sequence_softmax_name": lambda n: n.sequence_softmax(_seq(n, 1), True, "s1"),
    "sequence_pool_levels": lambda n: n.sequence_pool(_seq(n, 8, level=2), "MAX", True, 0.5),
    "sequence_pool_refuses_level_0": lambda n: n.sequence_pool(n.x(8), "sum"),
    "sequence_pool_refuses_kind": lambda n: n.sequence_pool(_seq(n, 8), "most"),
    "sequence_concat_name": lambda n: n.sequence_concat([_seq(n, 8), _seq(n, 8, name="t")], name="c"),
    "sequence_concat_refuses": lambda n: n.sequence_concat([_seq(n, 8), _seq(n, 7, name="t")]),
    "sequence_slice_name": lambda n: n.sequence_slice(_seq(n, 8), n.ids(1), n.ids(1, name="j"), name="c"),
    "sequence_slice_refuses": lambda n: n.sequence_slice(_seq(n, 8), n.x(1), n.ids(1)),
    "sequence_expand_level": lambda n: n.sequence_expand(_seq(n, 8), _seq(n, 3, name="t", level=2), 0, "e"),
    "sequence_expand_as": lambda n: n.sequence_expand_as(n.x(8), _seq(n, 3), name="e"),
    "sequence_pad_length": lambda n: n.sequence_pad(_seq(n, 8), n.exact(8), 5, "p")[1],
    "sequence_pad_refuses_level_0": lambda n: n.sequence_pad(n.x(8), n.exact(1)),
    "sequence_pad_refuses_value": lambda n: n.sequence_pad(_seq(n, 8), n.exact(7)),
    "sequence_unpad_name": lambda n: n.sequence_unpad(n.x(5), n.ids(), name="u"),
    "sequence_unpad_refuses": lambda n: n.sequence_unpad(n.x(5, 3), n.x()),
    "sequence_mask_longest": lambda n: n.sequence_mask(n.ids(3), dtype="float32", name="m"),
    "sequence_mask_variable": lambda n: n.sequence_mask(n.ids(), n.one(4)),
    "sequence_reshape_level_0": lambda n: n.sequence_reshape(n.x(8), 4),
    "sequence_reshape_refuses": lambda n: n.sequence_reshape(_seq(n, 8, 2), 4),
    "sequence_scatter": lambda n: n.sequence_scatter(n.x(6), _ids(n), _seq(n, 1), name="s1"),
    "sequence_scatter_refuses": lambda n: n.sequence_scatter(n.x(6), _seq(n, 1), _seq(n, 1, name="t")),
    "sequence_enumerate_pad": lambda n: n.sequence_enumerate(_ids(n, dtype="int32"), 3, 7, "e"),
    "sequence_reverse_name": lambda n: n.sequence_reverse(_seq(n, 8, level=2), name="r"),
    "im2sequence_all": lambda n: n.im2sequence(n.x(3, 8, 8), [2, 3], [1, 2], [1, 2], n.y(2), [2, 1], "m"),
    "im2sequence_sides": lambda n: n.im2sequence(n.x(3, 8, 8), 2, padding=[1, 2, 3, 4]),
    "im2sequence_rows": lambda n: n.im2sequence(n.exact(2, 3, 8, 8), 2),
    "lod_reset_like": lambda n: n.lod_reset(n.x(6), _seq(n, 3, level=2)),
    "lod_reset_offsets": lambda n: n.lod_reset(_seq(n, 6), n.x(dtype="int32")),
    "lod_reset_refuses": lambda n: n.lod_reset(_seq(n, 6)),
    "lod_append_list": lambda n: n.lod_append(_seq(n, 6), [0, 1, 2]),
    "lod_append_variable": lambda n: n.lod_append(_seq(n, 6), n.x(dtype="int32")),
    "lod_append_refuses": lambda n: n.lod_append(_seq(n, 6), 3),
    # labels and searches
    "linear_chain_crf_padded": lambda n: _crf(n, n.x(5, 4), n.ids(5), length=n.ids(1, name="j")),
    "linear_chain_crf_refuses": lambda n: _crf(n, _seq(n, 4), _seq(n, 1, name="t")),
    "crf_decoding_label": lambda n: [
        _crf(n, _seq(n, 4), _ids(n)),
        n.crf_decoding(_seq(n, 4), n.attr(name="w"), _ids(n)),
    ][1],
    "crf_decoding_padded": lambda n: [
        _crf(n, n.x(5, 4), n.ids(5), length=n.ids(1, name="j")),
        n.crf_decoding(n.x(5, 4), n.attr(name="w"), length=n.ids(1, name="j")),
    ][1],
    "crf_decoding_refuses": lambda n: n.crf_decoding(_seq(n, 4), n.attr(name="w")),
    "warpctc_padded": lambda n: n.warpctc(
        n.x(6, 5), n.y(3, dtype="int32"), 4, True, n.ids(), n.ids(name="j")
    ),
    "warpctc_refuses": lambda n: n.warpctc(_seq(n, 5), _ids(n)),
    "ctc_greedy_decoder_lod": lambda n: n.ctc_greedy_decoder(_seq(n, 5), 4, name="d"),
    "ctc_greedy_decoder_padded": lambda n: n.ctc_greedy_decoder(n.x(6, 5), 0, n.ids(1), 9, "d")[1],
    "edit_distance_ignored": lambda n: n.edit_distance(_ids(n), _ids(n, name="j"), False, [0, 3])[0],
    "edit_distance_padded": lambda n: n.edit_distance(
        n.ids(5), n.ids(4, name="j"), input_length=n.ids(name="k"), label_length=n.ids(name="l")
    )[1],
    "edit_distance_refuses": lambda n: n.edit_distance(_seq(n, 1), _ids(n)),
    "beam_search_all": lambda n: n.beam_search(
        _ids(n, level=2),
        _seq(n, 1, level=2),
        _ids(n, 3, name="j", level=2),
        _seq(n, 3, name="t", level=2),
        beam_size=4,
        end_id=1,
        is_accumulated=False,
        return_parent_idx=True,
    )[2],
    "beam_search_columns": lambda n: n.beam_search(
        _ids(n, level=2), _seq(n, 1, level=2), None, _seq(n, 3, name="t", level=2), 4, 1, name="b"
    )[0],
}
