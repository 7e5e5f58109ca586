"""The names of ``fluid.contrib.layers`` and where each is defined."""

from paddlelike.distributed.growing_tables import sparse_embedding
from paddlelike.fluid.contrib.layers.matching import (
    fused_elemwise_activation,
    fused_embedding_seq_pool,
    match_matrix_tensor,
    sequence_topk_avg_pooling,
    tree_conv,
    var_conv_2d,
)
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
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "match_matrix_tensor",
    "multiclass_nms2",
    "partial_concat",
    "partial_sum",
    "sequence_topk_avg_pooling",
    "shuffle_batch",
    "sparse_embedding",
    "tdm_child",
    "tdm_sampler",
    "tree_conv",
    "var_conv_2d",
]
