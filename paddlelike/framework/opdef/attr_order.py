"""The order in which Fluid 1.8 declares an operator's attributes, where it differs from the class here.

Classes list attributes by use: those that functions read, then those that they ignore. Fluid's order decides
in which order an operator of a saved program has its attributes, see ``paddlelike/framework/graph/order.py``.
Source: ``OpProtoHolder.get_op_proto(type).attrs`` of 1.8.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

#: The attributes by the types of the operators that have them.
_ORDERS: Final = {
    """
        abs ceil cos exp floor log log1p logsigmoid reciprocal relu round rsqrt sigmoid sin softplus
        softsign sqrt square tanh tanh_shrink
    """: """
        use_mkldnn use_cudnn
    """,
    "addmm": "use_mkldnn Alpha Beta",
    "batch_norm": """
        is_test momentum epsilon data_layout use_mkldnn fuse_with_relu use_global_stats
        trainable_statistics
    """,
    "bicubic_interp bilinear_interp nearest_interp trilinear_interp": """
        data_layout out_d out_h out_w scale interp_method align_corners align_mode
    """,
    "cast": "out_dtype in_dtype",
    "concat": "use_mkldnn axis use_quantizer",
    "conv2d depthwise_conv2d": """
        is_test strides paddings padding_algorithm groups dilations use_cudnn
        fuse_relu_before_depthwise_conv use_mkldnn use_quantizer fuse_relu fuse_brelu
        fuse_brelu_threshold fuse_activation fuse_alpha fuse_beta fuse_residual_connection Scale_in
        Scale_out Scale_in_eltwise Scale_weights force_fp32_output data_format workspace_size_MB
        exhaustive_search
    """,
    "conv2d_transpose depthwise_conv2d_transpose": """
        is_test output_size groups dilations strides paddings use_cudnn use_mkldnn fuse_relu
        fuse_activation fuse_alpha fuse_beta data_format padding_algorithm workspace_size_MB
    """,
    "conv3d": """
        is_test strides paddings padding_algorithm groups dilations use_cudnn use_mkldnn fuse_relu
        fuse_activation fuse_alpha fuse_beta fuse_residual_connection data_format force_fp32_output
        workspace_size_MB exhaustive_search
    """,
    "conv3d_transpose": """
        output_size dilations strides paddings groups use_cudnn use_mkldnn data_format padding_algorithm
        workspace_size_MB
    """,
    "create_py_reader": """
        shape_concat ranks lod_levels dtypes need_check_feed use_data_config device_index device_count
    """,
    "cudnn_lstm": "max_len dropout_prob is_bidirec input_size hidden_size num_layers is_test seed",
    "density_prior_box": """
        variances clip flatten_to_2d step_w step_h offset fixed_sizes fixed_ratios densities
    """,
    "distributed_lookup_table": """
        table_names height_sections endpoints trainer_id lookup_table_version padding_idx dtype
    """,
    """
        elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min
        elementwise_mod elementwise_mul elementwise_pow elementwise_sub
    """: """
        axis use_mkldnn x_data_format y_data_format
    """,
    "eye": "dtype num_rows num_columns",
    "fake_quantize_range_abs_max": "window_size bit_length is_test",
    "fc": """
        in_num_col_dims activation_type use_mkldnn padding_weights
        @ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@ use_quantizer Scale_in Scale_weights Scale_out
        force_fp32_output
    """,
    "fill_constant": "dtype shape value str_value force_cpu",
    "fused_embedding_fc_lstm fusion_lstm": """
        use_peepholes is_reverse use_seq gate_activation cell_activation candidate_activation
    """,
    "fused_embedding_seq_pool": """
        combiner padding_idx grad_inplace is_sparse @ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@
    """,
    "gaussian_random_batch_size_like": "shape input_dim_idx output_dim_idx mean std seed dtype",
    "gelu": "approximate use_mkldnn use_cudnn",
    "hard_swish": "threshold scale offset",
    "hierarchical_sigmoid": """
        num_classes remote_prefetch trainer_id height_sections epmap table_names is_sparse
    """,
    "inplace_abn": """
        is_test momentum epsilon data_layout use_mkldnn fuse_with_relu use_global_stats
        trainable_statistics activation alpha use_sync_bn
    """,
    "listen_and_serv": """
        endpoint pserver_id grad_to_block_id distributed_mode dc_asgd optimize_blocks
        prefetch_var_name_to_block_id sparse_grad_to_param Fanin checkpint_block_id lr_decay_block_id
        rpc_get_thread_num rpc_send_thread_num rpc_prefetch_thread_num
    """,
    "load": "load_as_fp16 file_path seek shape",
    "load_combine": "load_as_fp16 file_path model_from_memory",
    "locality_aware_nms multiclass_nms multiclass_nms2": """
        background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k normalized
    """,
    "lookup_table": """
        is_sparse is_distributed padding_idx grad_inplace remote_prefetch trainer_id height_sections
        epmap table_names
    """,
    "lrn": "n k alpha beta use_mkldnn data_format is_test",
    "lstmp": """
        use_peepholes is_reverse cell_clip proj_clip gate_activation cell_activation
        candidate_activation proj_activation
    """,
    "matmul": """
        transpose_X transpose_Y alpha use_mkldnn fused_reshape_Out fused_transpose_Out use_quantizer
        Scale_x Scale_y Scale_out force_fp32_output head_number
    """,
    "matrix_nms": """
        background_label score_threshold post_threshold nms_top_k keep_top_k normalized use_gaussian
        gaussian_sigma
    """,
    "max_pool2d_with_index max_pool3d_with_index": "ksize global_pooling adaptive strides paddings",
    "mul": "use_mkldnn x_num_col_dims y_num_col_dims scale_x scale_y scale_out force_fp32_output",
    "nce": """
        num_total_classes num_neg_samples sampler seed is_sparse remote_prefetch trainer_id
        height_sections epmap table_names custom_neg_classes
    """,
    "p_norm": "porder axis epsilon keepdim",
    "pool2d": """
        pooling_type ksize global_pooling strides paddings exclusive adaptive use_cudnn ceil_mode
        use_mkldnn use_quantizer data_format is_test padding_algorithm
    """,
    "pool3d": """
        pooling_type ksize global_pooling strides paddings exclusive adaptive use_cudnn ceil_mode
        use_mkldnn data_format padding_algorithm
    """,
    "prior_box": """
        min_sizes max_sizes aspect_ratios variances flip clip step_w step_h offset
        min_max_aspect_ratios_order use_mkldnn use_quantizer
    """,
    "prroi_pool roi_pool": "spatial_scale pooled_height pooled_width",
    "psroi_pool": "output_channels spatial_scale pooled_height pooled_width",
    "recurrent": "has_states ex_states states sub_block reverse is_train skip_eager_deletion_vars",
    "recv": "epmap trainer_id with_barrier varnames recv_varnames do_not_run",
    "recv_save": """
        dtype overwrite file_path shape slice_varnames remote_varnames slice_shapes endpoints trainer_id
    """,
    "roi_align": "spatial_scale pooled_height pooled_width sampling_ratio",
    "rpn_target_assign": """
        rpn_batch_size_per_im rpn_straddle_thresh rpn_positive_overlap rpn_negative_overlap
        rpn_fg_fraction use_random
    """,
    "sample_logits": "use_customized_samples uniq remove_accidental_hits num_samples seed",
    "save": "overwrite save_as_fp16 file_path",
    "save_combine": "overwrite save_as_fp16 file_path save_to_memory",
    "selu": "scale alpha",
    "sequence_conv": "paddingTrainable contextLength contextStart contextStride",
    "sequence_pool": "is_test pooltype pad_value",
    "softmax": "axis use_cudnn data_format use_mkldnn is_test",
    "split": "sections num axis",
    "split_byref": "sections num",
    "strided_slice": "axes starts ends strides infer_flags decrease_axis",
    "transpose transpose2": "axis use_mkldnn data_format use_quantizer",
    "uniform_random": "shape min max seed diag_num diag_step diag_val dtype",
    "uniform_random_batch_size_like": """
        shape input_dim_idx output_dim_idx min max seed diag_num diag_step diag_val dtype
    """,
    "yolo_box": "class_num anchors downsample_ratio conf_thresh clip_bbox scale_x_y",
    "yolov3_loss": "class_num anchors anchor_mask downsample_ratio ignore_thresh use_label_smooth scale_x_y",
}
_BY_TYPE: Final = {type_: attrs.split() for types, attrs in _ORDERS.items() for type_ in types.split()}


def order_attrs(type_: str, names: Iterable[str]) -> Sequence[str]:
    """Return ``names``, all attributes of an operator as its class lists them, in the order of Fluid."""
    return _BY_TYPE.get(type_) or list(names)
