"""Fluid's modules below ``fluid.layers``, and the public names of each.

The layers are in folders by family. ``layers.nn``, ``layers.control_flow`` and others of Fluid's modules list
the names that Fluid 1.8 lists there, as far as they exist here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from paddlelike.left_out import make_attribute_error
from paddlelike.left_out.imported import find_imported

#: Modules of layers in earlier releases, which pickles name.
FORMER: Final = """
    control.debugging control.rank_table detection.deformable detection.deformable_conv
    detection.matching elementwise.arithmetic elementwise.cast elementwise.comparison linalg.fc
    linalg.matmul linalg.matrices linalg.norm loss.crf loss.cross_entropy loss.ctc loss.distance
    loss.focal loss.hierarchical_sigmoid loss.label loss.nce loss.sample_logits loss.sequence_labels
    metric.classification metric.metrics metric.sequence nn.batch_normalization nn.dense nn.focus
    nn.image.affine_channel nn.image.grid_sampler nn.image.pixel_shuffle nn.image.similarity_focus
    nn.lookup nn.norm nn.normalization.data_norm nn.normalization.group_norm nn.normalization.lrn
    nn.normalization.spectral_norm nn.pool nn.unfold ranking.cvm ranking.features ranking.instag
    recurrent.beam_search recurrent.cudnn_lstm recurrent.gather_tree recurrent.lod_rnn
    recurrent.lstm_unit recurrent.padded recurrent.rnn recurrent.units reduction.arg
    reduction.cumulative reduction.reduce reduction.search reduction.sort reduction.sum reduction.unique
    sequence.conv sequence.expand sequence.image sequence.lod_reset sequence.lod_sequence sequence.pad
    sequence.part sequence.pool sequence.position sequence.softmax tensor.constants tensor.creation
    tensor.crop tensor.expand tensor.hash tensor.hashing tensor.indexing tensor.joining tensor.one_hot
    tensor.pad tensor.padding tensor.range tensor.selected_rows tensor.shaping tensor.stack
"""

_WORDS: Final = {
    "control_flow": """
        While Switch increment array_write create_array less_than less_equal greater_than greater_equal
        equal not_equal array_read array_length cond IfElse DynamicRNN StaticRNN
        reorder_lod_tensor_by_rank Print is_empty case switch_case while_loop
    """,
    "detection": """
        prior_box density_prior_box multi_box_head bipartite_match target_assign detection_output
        ssd_loss rpn_target_assign retinanet_target_assign sigmoid_focal_loss anchor_generator
        roi_perspective_transform generate_proposal_labels generate_proposals generate_mask_labels
        iou_similarity box_coder polygon_box_transform yolov3_loss yolo_box box_clip multiclass_nms
        locality_aware_nms matrix_nms retinanet_detection_output distribute_fpn_proposals
        box_decoder_and_assign collect_fpn_proposals
    """,
    "distributions": """
        Uniform Normal Categorical MultivariateNormalDiag
    """,
    "io": """
        data read_file double_buffer py_reader create_py_reader_by_data load
    """,
    "loss": """
        center_loss bpr_loss cross_entropy square_error_cost edit_distance warpctc nce hsigmoid
        sampled_softmax_with_cross_entropy softmax_with_cross_entropy rank_loss margin_rank_loss
        sigmoid_cross_entropy_with_logits teacher_student_sigmoid_loss huber_loss kldiv_loss npair_loss
        mse_loss
    """,
    "metric_op": """
        accuracy auc
    """,
    "nn": """
        log1p logsumexp clamp addmm addcmul bmm nonzero index_select dist dot t cross interpolate
        diag_embed meshgrid fc embedding linear_chain_crf crf_decoding cos_sim chunk_eval conv2d conv3d
        softmax pool2d pool3d adaptive_pool2d adaptive_pool3d batch_norm inplace_abn instance_norm
        data_norm conv2d_transpose conv3d_transpose reduce_sum reduce_mean reduce_max reduce_min
        reduce_prod reduce_all reduce_any dropout split ctc_greedy_decoder l2_normalize matmul topk
        transpose im2sequence row_conv multiplex layer_norm group_norm spectral_norm smooth_l1 one_hot
        autoincreased_step_counter reshape squeeze unsqueeze lod_reset lod_append lrn pad
        pad_constant_like label_smooth roi_pool roi_align dice_loss image_resize image_resize_short
        resize_bilinear resize_trilinear resize_nearest gather gather_nd scatter scatter_nd_add
        scatter_nd random_crop mean_iou relu selu log crop crop_tensor elu relu6 pow stanh hard_sigmoid
        swish prelu brelu leaky_relu soft_relu flatten stack pad2d unstack unique unique_with_counts
        expand expand_as scale elementwise_add elementwise_div elementwise_sub elementwise_mul
        elementwise_max elementwise_min elementwise_pow elementwise_mod elementwise_floordiv
        uniform_random_batch_size_like gaussian_random sampling_id gaussian_random_batch_size_like sum
        slice strided_slice shape rank size logical_and logical_or logical_xor logical_not clip
        clip_by_norm mean mul maxout space_to_depth affine_grid affine_channel similarity_focus hash
        grid_sampler log_loss add_position_encoding bilinear_tensor_product merge_selected_rows
        get_tensor_from_selected_rows shuffle_channel temporal_shift py_func psroi_pool prroi_pool
        pixel_shuffle fsp_matrix continuous_value_model where sign deformable_conv unfold
        deformable_roi_pooling filter_by_instag shard_index hard_swish mish gather_tree uniform_random
        randint randn randperm allclose elementwise_equal flip roll log_softmax index_sample
    """,
    "ops": """
        sigmoid logsigmoid exp tanh atan tanh_shrink sqrt rsqrt abs ceil floor cos acos asin sin round
        reciprocal square softplus softsign softshrink hard_shrink cumsum thresholded_relu gelu erf
    """,
    "rnn": """
        RNNCell GRUCell LSTMCell Decoder BeamSearchDecoder rnn dynamic_decode DecodeHelper
        TrainingHelper GreedyEmbeddingHelper SampleEmbeddingHelper BasicDecoder dynamic_lstm
        dynamic_lstmp dynamic_gru gru_unit lstm_unit lstm beam_search beam_search_decode
    """,
    "sequence_lod": """
        sequence_conv sequence_softmax sequence_pool sequence_concat sequence_first_step
        sequence_last_step sequence_slice sequence_expand sequence_expand_as sequence_pad sequence_unpad
        sequence_reshape sequence_scatter sequence_enumerate sequence_mask sequence_reverse
    """,
    "tensor": """
        create_tensor create_parameter create_global_var cast tensor_array_to_tensor concat sums assign
        fill_constant_batch_size_like fill_constant argmin argmax argsort ones zeros reverse has_inf
        has_nan isfinite range linspace full_like zeros_like ones_like diag eye kron arange full tril
        triu trace
    """,
}
#: Names by module, in Fluid's own order; those that are not here are left out of the module's list.
LISTED: Final[Mapping[str, tuple[str, ...]]] = {
    module: tuple(words.split()) for module, words in _WORDS.items()
}

#: Names that can be imported from one of Fluid's modules without being listed there: where each is defined.
UNLISTED: Final[Mapping[str, Mapping[str, str]]] = {
    "control_flow": {
        "ConditionalBlock": "paddlelike.layers.control.sub_blocks",
        "array_to_lod_tensor": "paddlelike.layers.control.tensor_array",
        "lod_rank_table": "paddlelike.layers.control.tensor_array",
        "lod_tensor_to_array": "paddlelike.layers.control.tensor_array",
        "max_sequence_len": "paddlelike.layers.control.tensor_array",
        "merge_lod_tensor": "paddlelike.layers.control.if_else",
        "select_input": "paddlelike.layers.control.sub_blocks",
        "shrink_memory": "paddlelike.layers.control.tensor_array",
        "split_lod_tensor": "paddlelike.layers.control.if_else",
    },
    "detection": {"detection_map": "paddlelike.layers.detection.average_precision"},
    "distributions": {"Distribution": "paddlelike.layers.random.distributions"},
    "nn": dict.fromkeys(("_pull_sparse", "_pull_sparse_v2"), "paddlelike.distributed.fleet.pslib_tables"),
}


def present_names(module: ModuleType) -> None:
    """Add Fluid's public names to one of its modules below ``layers``.

    For any other name it raises AttributeError. Names are looked up in :mod:`paddlelike.layers` when they are
    used, because that package imports the module before it has all of its names.
    """
    short = module.__name__.rpartition(".")[2]

    def names() -> list[str]:
        layers = set(sys.modules["paddlelike.layers"].__all__)
        return [name for name in LISTED[short] if name in layers]

    def get(name: str) -> object:
        if name == "__all__":
            return names()
        if name in UNLISTED.get(short, {}):
            return getattr(import_module(UNLISTED[short][name]), name)
        if name in names():
            return getattr(sys.modules["paddlelike.layers"], name)
        found = find_imported(name)
        if found is not None:
            return found
        raise make_attribute_error(module.__name__, name, names())

    for name in LISTED[short]:  # Fluid's layers.nn.dropout is the function, not the module that holds it
        vars(module).pop(name, None)
    vars(module).update(__getattr__=get, __dir__=names)


def _add_module(name: str) -> ModuleType:
    """Create a module that only re-exports names, so that ``import`` finds it."""
    module = ModuleType(f"paddlelike.layers.{name}", f"The names of Fluid's ``layers.{name}``.")
    module.__spec__ = ModuleSpec(module.__name__, None)
    sys.modules[module.__name__] = module
    present_names(module)
    return module


control_flow = _add_module("control_flow")
distributions = _add_module("distributions")
metric_op = _add_module("metric_op")
ops = _add_module("ops")
rnn = _add_module("rnn")
sequence_lod = _add_module("sequence_lod")
