"""Operators without a lowering, by the reason; numpy runs them between the pieces.

Gradient operators are left out with what they are the gradients of. Operators of Paddle 2.x, which
only models that it saved hold, are not listed: those whose kernels are one expression are compiled.
"""

from __future__ import annotations

__all__ = ["LEFT_OUT"]

_BY_REASON = {
    "the shape of a result depends on the values": """
        beam_search beam_search_decode bipartite_match chunk_eval collect_fpn_proposals ctc_align
        detection_map distribute_fpn_proposals edit_distance filter_by_instag generate_mask_labels
        generate_proposal_labels generate_proposals locality_aware_nms matrix_nms merge_ids merge_lod_tensor
        merge_lod_tensor_infer mine_hard_examples multiclass_nms multiclass_nms2 retinanet_detection_output
        retinanet_target_assign rpn_target_assign sequence_erase sequence_topk_avg_pooling
        split_ids split_lod_tensor split_selected_rows unique unique_with_counts where_index
    """,
    "it draws random numbers, of which the values decide what else is drawn, or read": """
        dpsgd random_crop sample_logits sampling_id seed shuffle_batch tdm_sampler
    """,
    "it belongs to parameter servers and their tables": """
        fake_init get_tensor_from_selected_rows lookup_sparse_table lookup_table_dequant merge_selected_rows
        ref_by_trainer_id
    """,
    "it is fused by Paddle's inference passes; programs as scripts build them have its parts": """
        attention_lstm fused_elemwise_activation fused_embedding_fc_lstm fused_embedding_seq_pool fusion_gru
        fusion_lstm fusion_repeated_fc_relu fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc
        fusion_seqpool_concat fusion_seqpool_cvm_concat fusion_squared_mat_sub
    """,
    "it compares all pairs of scores of a query, which are not side by side": """
        positive_negative_pair
    """,
    "it takes equal numbers in the order of C++'s sort": """
        similarity_focus
    """,
    "its gradient is not the derivative, and not written yet": """
        cvm
    """,
    "feeds and fetches are the executor's": """
        feed fetch
    """,
}

LEFT_OUT = {type: reason for reason, types in _BY_REASON.items() for type in types.split()}
