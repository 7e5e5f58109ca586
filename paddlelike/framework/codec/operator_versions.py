"""The table of operator versions that Paddle 1.8.5 puts into exported models."""

from __future__ import annotations

from typing import Any, Final

from paddlelike.framework.environment import PADDLE2_VERSION

_DEFAULT_VERSION: Final = "1.5.0"
_CHANGED_IN: Final = "1.6.0"

# How the operator of version 1.6.0 relates to the one before: framework.proto, CompatibleInfo.Type.
_DEFINITELY_NOT: Final = (
    "center_loss coalesce_tensor crop_tensor deformable_conv deformable_conv_v1 dpsgd eye fill_any_like "
    "filter_by_instag gather_nd hard_swish instance_norm lookup_table_v2 match_matrix_tensor "
    "multiclass_nms2 one_hot_v2 prroi_pool pull_box_sparse scatter_nd_add sequence_pad "
    "sequence_topk_avg_pooling sequence_unpad shard_index size strided_slice trilinear_interp unfold "
    "unique unique_with_counts var_conv_2d"
)
_POSSIBLE: Final = (
    "bilinear_interp chunk_eval conditional_block conditional_block_infer conv2d conv2d_transpose conv3d "
    "conv3d_transpose crf_decoding ctc_align data_norm depthwise_conv2d depthwise_conv2d_transpose "
    "edit_distance expand fc fused_embedding_seq_pool group_norm hash leaky_relu linear_chain_crf "
    "lod_reset matmul mul nearest_interp one_hot pow prior_box reshape2 slice uniform_random "
    "uniform_random_batch_size_like warpctc"
)
_BUG_FIX: Final = "layer_norm"


def add_operator_versions(message: Any) -> None:
    """Fill the ``op_compatible_map`` of a ProgramDesc, unless it has one or Paddle 2 wrote the program."""
    if message.op_compatible_map.pair or message.version.version >= PADDLE2_VERSION:
        return
    table = message.op_compatible_map
    groups = ((1, _DEFINITELY_NOT), (2, _POSSIBLE), (3, _BUG_FIX))
    kinds = {name: kind for kind, names in groups for name in names.split()}
    table.default_required_version = _DEFAULT_VERSION
    for name, kind in sorted(kinds.items()):
        pair = table.pair.add()
        pair.op_name = name
        pair.compatible_info.version = _CHANGED_IN
        pair.compatible_info.type = kind
