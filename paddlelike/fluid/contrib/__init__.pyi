"""The names of ``fluid.contrib`` and where each is defined."""

from paddlelike.distributed.fleet.hdfs import HDFSClient
from paddlelike.fluid.contrib import (
    decoder,
    extend_optimizer,
    layers,
    mixed_precision,
    model_stat,
    quantize,
    reader,
)
from paddlelike.fluid.contrib.decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from paddlelike.fluid.contrib.extend_optimizer import extend_with_decoupled_weight_decay
from paddlelike.fluid.contrib.layers import multiclass_nms2
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
from paddlelike.fluid.contrib.memory_usage_calc import memory_usage
from paddlelike.fluid.contrib.mixed_precision import AutoMixedPrecisionLists, decorate
from paddlelike.fluid.contrib.model_stat import summary
from paddlelike.fluid.contrib.op_frequence import op_freq_statistic
from paddlelike.fluid.contrib.quantize import QuantizeTranspiler
from paddlelike.fluid.contrib.reader import distributed_batch_reader

__all__ = [
    "AutoMixedPrecisionLists",
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "BeamSearchDecoder",
    "HDFSClient",
    "InitState",
    "QuantizeTranspiler",
    "StateCell",
    "TrainingDecoder",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "decoder",
    "decorate",
    "distributed_batch_reader",
    "extend_optimizer",
    "extend_with_decoupled_weight_decay",
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "layers",
    "match_matrix_tensor",
    "memory_usage",
    "mixed_precision",
    "model_stat",
    "multiclass_nms2",
    "op_freq_statistic",
    "partial_concat",
    "partial_sum",
    "quantize",
    "reader",
    "sequence_topk_avg_pooling",
    "shuffle_batch",
    "summary",
    "tdm_child",
    "tdm_sampler",
    "tree_conv",
    "var_conv_2d",
]
