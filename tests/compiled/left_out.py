"""Operators without a lowering, by the reason; numpy runs them between the pieces.

Gradient operators are left out with what they are the gradients of. Operators of Paddle 2.x, which
only models that it saved hold, are not listed: those whose kernels are one expression are compiled.
"""

from __future__ import annotations

__all__ = ["LEFT_OUT"]

_BY_REASON = {
    "how many regions it gives depends on all of them, and C++'s unstable sorts order equal scores": """
        collect_fpn_proposals distribute_fpn_proposals generate_mask_labels generate_proposal_labels
        generate_proposals locality_aware_nms matrix_nms retinanet_detection_output retinanet_target_assign
        rpn_target_assign
    """,
    "its average precision goes through the detections of all batches one by one": """
        detection_map
    """,
    "beams end at different steps, so that the rows of a loop become fewer": """
        beam_search beam_search_decode
    """,
    "where no instance is left its result has a row of its own": """
        filter_by_instag
    """,
    "it draws random numbers, of which the values decide what else is drawn": """
        tdm_sampler
    """,
    "its seed is a variable that the run before wrote": """
        random_crop shuffle_batch
    """,
    "it belongs to parameter servers and their tables": """
        fake_init lookup_sparse_table lookup_table_dequant merge_ids ref_by_trainer_id split_ids
        split_selected_rows
    """,
    "its tables grow": """
        count_sparse_table make_sparse_table sparse_embedding
    """,
    "feeds and fetches are the executor's": """
        feed fetch
    """,
}

LEFT_OUT = {type: reason for reason, types in _BY_REASON.items() for type in types.split()}
