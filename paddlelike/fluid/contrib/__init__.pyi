"""The names of ``fluid.contrib`` and where each is defined."""

from paddlelike.distributed.fleet.hdfs import HDFSClient as HDFSClient
from paddlelike.fluid.contrib import (
    decoder as decoder,
    extend_optimizer as extend_optimizer,
    layers as layers,
    mixed_precision as mixed_precision,
    model_stat as model_stat,
    quantize as quantize,
    reader as reader,
)
from paddlelike.fluid.contrib.decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    InitState as InitState,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
)
from paddlelike.fluid.contrib.extend_optimizer import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)
from paddlelike.fluid.contrib.layers import multiclass_nms2 as multiclass_nms2
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
from paddlelike.fluid.contrib.memory_usage_calc import memory_usage as memory_usage
from paddlelike.fluid.contrib.mixed_precision import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    decorate as decorate,
)
from paddlelike.fluid.contrib.model_stat import summary as summary
from paddlelike.fluid.contrib.op_frequence import op_freq_statistic as op_freq_statistic
from paddlelike.fluid.contrib.quantize import QuantizeTranspiler as QuantizeTranspiler
from paddlelike.fluid.contrib.reader import distributed_batch_reader as distributed_batch_reader
