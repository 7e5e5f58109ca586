"""The names of ``fluid.contrib.layers`` and where each is defined."""

from paddlelike.fluid.contrib.layers.metric_op import ctr_metric_bundle
from paddlelike.fluid.contrib.layers.nn import (
    partial_concat,
    partial_sum,
    shuffle_batch,
    tdm_child,
    tdm_sampler,
)
from paddlelike.fluid.contrib.layers.rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm
from paddlelike.layers.detection.suppression import multiclass_nms2

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "multiclass_nms2",
    "partial_concat",
    "partial_sum",
    "shuffle_batch",
    "tdm_child",
    "tdm_sampler",
]
