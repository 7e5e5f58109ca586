"""The names of ``fluid.contrib.layers`` and where each is defined."""

from paddlelike.distributed.growing_tables import sparse_embedding as sparse_embedding
from paddlelike.fluid.contrib.layers.matching import (
    fused_elemwise_activation as fused_elemwise_activation,
    fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling,
    tree_conv as tree_conv,
    var_conv_2d as var_conv_2d,
)
from paddlelike.fluid.contrib.layers.metric_op import ctr_metric_bundle as ctr_metric_bundle
from paddlelike.fluid.contrib.layers.nn import (
    partial_concat as partial_concat,
    partial_sum as partial_sum,
    shuffle_batch as shuffle_batch,
    tdm_child as tdm_child,
    tdm_sampler as tdm_sampler,
)
from paddlelike.fluid.contrib.layers.rnn_impl import (
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
)
from paddlelike.layers.detection.suppression import multiclass_nms2 as multiclass_nms2
