"""Calls of layers on regions, proposals and their targets, each recorded from the real system.

Runs under Python 3.7 as well; see tests/layers/calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls.net import Net

__all__ = ["CALLS"]


def _boxes(n: Net, name: str = "rois", width: int = 4, level: int = 1) -> Any:
    return n.fluid.data(name, [None, width], "float32", lod_level=level)


def _differentiable(n: Net, out: Any, *inputs: Any) -> Any:
    """The output; the program holds the operators of its gradient by the inputs, too."""
    for one in inputs:
        one.stop_gradient = False
    n.fluid.backward.append_backward(n.mean(out))
    return out


def _features(n: Net, channels: int = 8) -> Any:
    return n.x(channels, 16, 16)


def _pool(layer: str, *args: Any, channels: int = 8, **kwargs: Any) -> Callable[[Net], Any]:
    def build(n: Net) -> Any:
        x, rois = _features(n, channels), _boxes(n)
        # The real prroi_pool refuses regions without a gradient.
        wanted = [x, rois] if layer == "prroi_pool" else [x]
        return _differentiable(n, getattr(n, layer)(x, rois, *args, **kwargs), *wanted)

    return build


def _deformable_pool(n: Net, no_trans: bool = False, **kwargs: Any) -> Any:
    x, trans = _features(n), n.x(2, *kwargs.get("part_size", (2, 2)), name="trans")
    out = n.deformable_roi_pooling(x, _boxes(n), trans, no_trans, pooled_height=2, pooled_width=2, **kwargs)
    return _differentiable(n, out, x, trans)


def _deformable_conv(n: Net, modulated: bool = True, mask: bool = True, **kwargs: Any) -> Any:
    x, offset = n.x(4, 8, 8), n.x(18, 8, 8, name="offset")
    weights = n.x(9, 8, 8, name="mask") if mask else None
    out = n.deformable_conv(x, offset, weights, 6, 3, padding=1, modulated=modulated, **kwargs)
    return _differentiable(n, out, x, offset)


def _ints(n: Net, name: str) -> Any:
    return n.fluid.data(name, [None, 1], "int32", lod_level=1)


def _counted(n: Net, use: bool) -> Any:
    x = n.x(11)
    return n.continuous_value_model(x, n.y(2), use), x


def _lods(n: Net, name: str, width: int, dtype: str = "float32") -> Any:
    return n.fluid.data(name, [None, width], dtype, lod_level=1)


def _fused(n: Net, functors: Any, **kwargs: Any) -> Any:
    x, y = n.x(4, 5), n.exact(4, 5, name="y")
    return n.fluid.contrib.layers.fused_elemwise_activation(x, y, functors, 1, **kwargs), x, y


def _tags(n: Net) -> Any:
    return n.fluid.data("tags", [None, 1], "int64", lod_level=1), n.fluid.data("f", [None], "int64")


def _proposals(n: Net, *args: Any, **kwargs: Any) -> Any:
    x = n.fluid.data("info", [None, 3], "float32")
    anchors, variances = n.exact(8, 8, 3, 4, name="a"), n.exact(8, 8, 3, 4, name="v")
    return n.generate_proposals(n.x(3, 8, 8), n.y(12, 8, 8), x, anchors, variances, *args, **kwargs)


def _labels(n: Net, *args: Any, **kwargs: Any) -> Any:
    ints = _ints(n, "classes"), _ints(n, "crowd")
    return n.generate_proposal_labels(_boxes(n), *ints, _boxes(n, "boxes"), n.x(3), *args, **kwargs)


def _anchored(n: Net, classes: int) -> Any:
    """Moves and scores that have gradients, anchors, variances."""
    moves, logits = n.y(90, 4), n.z(90, classes)
    moves.stop_gradient = logits.stop_gradient = False
    return moves, logits, n.exact(90, 4, name="a"), n.exact(90, 4, name="v")


_TABLE: dict[str, Callable[[Net], Any]] = {
    "roi_pool": _pool("roi_pool", 7, 7, 0.0625),
    "roi_pool_plain": _pool("roi_pool"),
    "roi_pool_offsets": lambda n: n.roi_pool(
        _features(n), _boxes(n, level=0), 2, 2, rois_lod=n.fluid.data("lod", [None], "int64")
    ),
    "roi_align": _pool("roi_align", 7, 7, 0.0625, 2),
    "roi_align_plain": _pool("roi_align", name="a"),
    "roi_align_refuses_integers": lambda n: n.roi_align(n.ids(8, 4, 4), _boxes(n)),
    "psroi_pool": _pool("psroi_pool", 2, 0.5, 2, 2),
    "psroi_pool_refuses_sizes": lambda n: n.psroi_pool(_features(n), _boxes(n), 2, 1, 2, 2),
    "psroi_pool_refuses_height": lambda n: n.psroi_pool(_features(n), _boxes(n), 2, 1.0, 2.0, 2),
    "prroi_pool": _pool("prroi_pool", 0.5, 3, 3),
    "prroi_pool_counts": lambda n: n.prroi_pool(
        _features(n), _boxes(n, level=0), 0.5, 3, 3, n.fluid.data("counts", [None], "int64"), name="p"
    ),
    "roi_perspective_transform": lambda n: n.roi_perspective_transform(
        _features(n), _boxes(n, width=8), 4, 6
    )[2],
    "roi_perspective_transform_out": lambda n: n.roi_perspective_transform(
        _features(n), _boxes(n, width=8), 4, 6, 0.25
    )[0],
    "deformable_roi_pooling": _deformable_pool,
    "deformable_roi_pooling_still": lambda n: _deformable_pool(n, True, sample_per_part=4, group_size=[2, 2]),
    "deformable_roi_pooling_parts": lambda n: _deformable_pool(n, part_size=(4, 3), trans_std=0.2, name="d"),
    "deformable_conv": _deformable_conv,
    "deformable_conv_plain": lambda n: _deformable_conv(n, modulated=False, mask=False),
    "deformable_conv_groups": lambda n: _deformable_conv(
        n, groups=2, deformable_groups=1, im2col_step=1, bias_attr=False, name="c"
    ),
    "deformable_conv_attr": lambda n: _deformable_conv(n, param_attr=n.attr("w"), bias_attr=n.attr("b")),
    "deformable_conv_refuses_groups": lambda n: _deformable_conv(n, groups=3),
    "generate_proposals": lambda n: _proposals(n)[0],
    "generate_proposals_counts": lambda n: _proposals(
        n, 100, 10, 0.7, 2.0, 0.9, "p", return_rois_num=True
    )[2],
    "generate_proposals_refuses_doubles": lambda n: n.generate_proposals(
        n.x(3, 8, 8, dtype="float64"), n.y(12, 8, 8), n.z(3), n.exact(8, 8, 3, 4), n.exact(8, 8, 3, 4)
    ),
    "generate_proposal_labels": lambda n: _labels(n, class_nums=5)[2],
    "generate_proposal_labels_all": lambda n: _labels(
        n, 64, 0.5, 0.6, 0.4, 0.1, [1.0, 1.0, 2.0, 2.0], 2, False, True, True
    )[0],
    "generate_proposal_labels_refuses_classes": lambda n: n.generate_proposal_labels(
        _boxes(n), n.ids(1), _ints(n, "crowd"), _boxes(n, "boxes"), n.x(3), class_nums=5
    ),
    "generate_mask_labels": lambda n: n.generate_mask_labels(
        n.x(3), _ints(n, "classes"), _ints(n, "crowd"), _boxes(n, "segments", 2, 3), _boxes(n), _ints(n, "l"),
        5, 14,
    )[2],
    "distribute_fpn_proposals": lambda n: n.distribute_fpn_proposals(_boxes(n), 2, 5, 4, 224)[1],
    "distribute_fpn_proposals_named": lambda n: n.distribute_fpn_proposals(
        _boxes(n), 3, 4, 4, 224, "d"
    )[0][1],
    "collect_fpn_proposals": lambda n: n.collect_fpn_proposals(
        [_boxes(n, f"r{i}") for i in range(3)], [_boxes(n, f"s{i}", 1) for i in range(3)], 2, 3, 50
    ),
    "rpn_target_assign": lambda n: n.mean(
        n.rpn_target_assign(*_anchored(n, 1), _boxes(n, "boxes"), _ints(n, "crowd"), n.x(3))[0]
    ),
    "rpn_target_assign_all": lambda n: n.rpn_target_assign(
        *_anchored(n, 1), _boxes(n, "boxes"), _ints(n, "crowd"), n.x(3), 64, -1.0, 0.25, 0.6, 0.4, False
    )[4],
    "retinanet_target_assign": lambda n: n.retinanet_target_assign(
        *_anchored(n, 8), _boxes(n, "boxes"), _ints(n, "labels"), _ints(n, "crowd"), n.x(3), 8
    )[5],
    "retinanet_target_assign_overlaps": lambda n: n.retinanet_target_assign(
        *_anchored(n, 8), _boxes(n, "boxes"), _ints(n, "labels"), _ints(n, "crowd"), n.x(3), 8, 0.6, 0.3
    )[0],
    "retinanet_target_assign_refuses_labels": lambda n: n.retinanet_target_assign(
        *_anchored(n, 8), _boxes(n, "boxes"), n.ids(1), _ints(n, "crowd"), n.x(3), 8
    ),
    "retinanet_detection_output": lambda n: n.retinanet_detection_output(
        [n.x(9, 4), n.y(5, 4)], [n.x(9, 3, name="s"), n.z(5, 3)],
        [n.exact(9, 4), n.exact(5, 4, name="f")], n.x(3, name="info"), 0.1, 50, 20, 0.4, 0.9,
    ),
    "continuous_value_model": lambda n: _differentiable(n, *_counted(n, True)),
    "continuous_value_model_dropped": lambda n: _differentiable(n, *_counted(n, False)),
    "filter_by_instag": lambda n: n.filter_by_instag(
        n.x(3), *_tags(n), False
    )[1],
    "filter_by_instag_lod": lambda n: n.filter_by_instag(
        _boxes(n), *_tags(n), True, 3
    )[0],
    "fused_elemwise_activation": lambda n: _differentiable(n, *_fused(n, "elementwise_add,relu")),
    "fused_elemwise_activation_list": lambda n: _differentiable(
        n, *_fused(n, ["scale", "elementwise_add"], scale=2.0, save_intermediate_out=False)
    ),
    "fused_elemwise_activation_refuses": lambda n: _fused(n, ["relu"]),
    "fused_embedding_seq_pool": lambda n: n.mean(
        n.fluid.contrib.layers.fused_embedding_seq_pool(_lods(n, "ids", 1, "int64"), [20, 4])
    ),
    "fused_embedding_seq_pool_padding": lambda n: n.fluid.contrib.layers.fused_embedding_seq_pool(
        _lods(n, "ids", 1, "int64"), [20, 4], True, -2, param_attr="table"
    ),
    "match_matrix_tensor": lambda n: n.fluid.contrib.layers.match_matrix_tensor(
        _lods(n, "x", 6), _lods(n, "y", 6), 3, "relu", n.attr("w"), name="m"
    )[0],
    "match_matrix_tensor_refuses_widths": lambda n: n.fluid.contrib.layers.match_matrix_tensor(
        _lods(n, "x", 6), _lods(n, "y", 5), 3
    ),
    "sequence_topk_avg_pooling": lambda n: n.fluid.contrib.layers.sequence_topk_avg_pooling(
        _lods(n, "x", 1), _lods(n, "r", 4), _lods(n, "c", 4), [1, 3], 2
    ),
    "var_conv_2d": lambda n: n.fluid.contrib.layers.var_conv_2d(
        _lods(n, "x", 1), _lods(n, "r", 4), _lods(n, "c", 4), 2, 3, [3, 5], 2, act="relu"
    ),
    "tree_conv": lambda n: n.fluid.contrib.layers.tree_conv(
        n.x(10, 5), n.fluid.data("edges", [None, 9, 2], "int32"), 6, 2, 3, name="t"
    ),
    "tree_conv_plain": lambda n: n.fluid.contrib.layers.tree_conv(
        n.x(10, 5), n.fluid.data("edges", [None, 9, 2], "int32"), 6, act=None, bias_attr=False
    ),
    "similarity_focus": lambda n: n.similarity_focus(n.x(3, 4, 5), 2, [0, 1], name="s"),
    "similarity_focus_refuses_axis": lambda n: n.similarity_focus(n.x(3, 4, 5), 4, [0]),
    "similarity_focus_refuses_none": lambda n: n.similarity_focus(n.x(3, 4, 5), 1, []),
    "similarity_focus_refuses_tuples": lambda n: n.similarity_focus(n.x(3, 4, 5), 1, (0,)),
    "retinanet_detection_output_refuses_variables": lambda n: n.retinanet_detection_output(
        n.x(9, 4), n.y(9, 3), n.exact(9, 4), n.z(3)
    ),
}  # fmt: skip


def _call(build: Callable[[Net], Any]) -> Callable[[Any], Any]:
    return lambda fluid: build(Net(fluid))


CALLS = {name: _call(build) for name, build in _TABLE.items()}
