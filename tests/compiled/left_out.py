"""Operators without a lowering, by the reason; numpy runs them between the pieces.

Gradient operators are left out with what they are the gradients of.
"""

from __future__ import annotations

__all__ = ["LEFT_OUT", "NOT_WRITTEN"]

_BY_REASON = {
    "the shape of a result depends on the values": """
        array_to_lod_tensor beam_search beam_search_decode bincount bipartite_match box_clip chunk_eval
        collect_fpn_proposals ctc_align detection_map distribute_fpn_proposals edit_distance
        filter_by_instag generate_mask_labels generate_proposal_labels generate_proposals histogram
        im2sequence linspace locality_aware_nms masked_select matrix_nms merge_ids merge_lod_tensor
        merge_lod_tensor_infer mine_hard_examples multiclass_nms multiclass_nms2 nms range repeat_interleave
        retinanet_detection_output retinanet_target_assign rpn_target_assign sequence_concat
        sequence_enumerate sequence_erase sequence_mask sequence_pad sequence_reshape sequence_scatter
        sequence_slice sequence_topk_avg_pooling sequence_unpad split_ids split_lod_tensor
        split_selected_rows target_assign unique unique@2 unique_consecutive unique_with_counts where_index
        yolo_box
    """,
    "it handles tensor arrays or rank tables, lists of changing length": """
        lod_array_length lod_rank_table lod_tensor_to_array max_sequence_len read_from_array
        reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad shrink_rnn_memory tensor_array_to_tensor
        while_grad write_to_array
    """,
    "it draws random numbers without an input of its shape, as a startup program does": """
        dpsgd gaussian_random nce randint random_crop randperm rrelu sample_logits sampling_id seed
        shuffle_batch tdm_sampler truncated_gaussian_random uniform_random
    """,
    "it belongs to parameter servers and their tables": """
        fake_init get_tensor_from_selected_rows lookup_sparse_table lookup_table_dequant merge_selected_rows
        ref_by_trainer_id split_byref
    """,
    "it is fused by Paddle's inference passes; programs as scripts build them have its parts": """
        attention_lstm cudnn_lstm fc fused_elemwise_activation fused_embedding_fc_lstm
        fused_embedding_seq_pool fusion_gru fusion_lstm fusion_repeated_fc_relu fusion_seqconv_eltadd_relu
        fusion_seqexpand_concat_fc fusion_seqpool_concat fusion_seqpool_cvm_concat fusion_squared_mat_sub
        inplace_abn
    """,
    "it counts over all batches on the host": """
        auc hash mean_iou positive_negative_pair precision_recall
    """,
    "feeds and fetches are the executor's": """
        feed fetch
    """,
}

#: These can be said in XLA; nobody has written them yet.
_NOT_WRITTEN = """
    bicubic_interp_v2 bilinear_interp_v2 box_coder center_loss conv2d_grad_grad conv2d_transpose@2
    conv3d_grad_grad conv3d_transpose@2 conv_shift deformable_conv deformable_conv_v1
    deformable_psroi_pooling depthwise_conv2d_transpose@2 dist fake_quantize_range_abs_max fold gather_tree
    hierarchical_sigmoid index_add inverse kthvalue lgamma linear_interp_v2 lstmp match_matrix_tensor
    matrix_power mode multi_dot nll_loss prroi_pool psroi_pool rnn roi_align roi_align@2
    roi_perspective_transform roi_pool roi_pool@2 sigmoid_focal_loss similarity_focus spp tdm_child top_k_v2
    tree_conv trilinear_interp_v2 unpool unpool3d unpool@2 var_conv_2d viterbi_decode warpctc yolov3_loss
"""

LEFT_OUT = {type: reason for reason, types in _BY_REASON.items() for type in types.split()}
NOT_WRITTEN = dict.fromkeys(_NOT_WRITTEN.split(), "not written yet")
