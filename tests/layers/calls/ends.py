"""Where networks end: losses, metrics, images; and what belongs nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls.net import Net

TABLE: dict[str, Callable[[Net], Any]] = {
    # losses
    "square_error_cost_rows": lambda n: n.square_error_cost(n.x(4), n.y(4)),
    "cross_entropy_ignore": lambda n: n.cross_entropy(n.x(6), n.ids(1), ignore_index=3),
    "cross_entropy_deep": lambda n: n.cross_entropy(n.x(5, 6), n.ids(5, 1)),
    "softmax_with_ce_all": lambda n: n.softmax_with_cross_entropy(
        n.x(6), n.ids(1), ignore_index=2, numeric_stable_mode=False, return_softmax=True)[1],
    "softmax_with_ce_soft": lambda n: n.softmax_with_cross_entropy(n.x(6, 4), n.y(6, 4),
        soft_label=True, axis=1),
    "sigmoid_ce_normalize": lambda n: n.sigmoid_cross_entropy_with_logits(
        n.x(6), n.y(6), ignore_index=-1, normalize=True, name="s"),
    "smooth_l1_weights": lambda n: n.smooth_l1(n.x(4), n.y(4), n.z(4), n.x(4, name="o"), 2.0),
    "margin_rank_loss_margin": lambda n: n.margin_rank_loss(n.x(1), n.y(1), n.z(1), 0.5, "m"),
    "rank_loss_refuses": lambda n: n.rank_loss(3, n.y(1), n.z(1)),
    "label_smooth_prior": lambda n: n.label_smooth(n.x(6), n.exact(1, 6), 0.2, "float64", "s"),
    "label_smooth_refuses": lambda n: n.label_smooth(n.x(6), epsilon=2.0),
    "kldiv_loss_sum": lambda n: n.kldiv_loss(n.x(6), n.y(6), "sum"),
    "teacher_student": lambda n: n.teacher_student_sigmoid_loss(n.x(1), n.y(1), 10.0, -10.0),
    "center_loss_attrs": lambda n: n.center_loss(
        n.x(6), n.ids(1), 5, n.one(0.1, "float32"), n.fluid.initializer.Constant(1.0), update_center=False),
    "npair_exact": lambda n: n.npair_loss(n.exact(4, 6), n.exact(4, 6, name="p"), n.exact(4, name="l")),
    "nce_log_uniform": lambda n: n.nce(
        n.x(6), n.ids(1), 20, sampler="log_uniform", is_sparse=True, bias_attr=False, name="n"),
    "nce_custom": lambda n: n.nce(
        n.x(6), n.ids(1), 3, num_neg_samples=2, sampler="custom_dist", custom_dist=[0.2, 0.5, 0.3], seed=1),
    "nce_alias": lambda n: n.nce(
        n.x(6), n.ids(1), 7, sampler="custom_dist", custom_dist=[0.05, 0.3, 0.02, 0.25, 0.18, 0.1, 0.1]),
    "nce_weights": lambda n: n.nce(n.x(6), n.ids(1), 20, sample_weight=n.y(1)),
    "nce_refuses": lambda n: n.nce(n.x(6), n.ids(1), 20, sampler="other"),
    "hsigmoid_custom": lambda n: n.hsigmoid(
        n.x(6), n.ids(1), 8, path_table=n.ids(4, name="t"), path_code=n.ids(4, name="c"), is_custom=True),
    "hsigmoid_sparse": lambda n: n.hsigmoid(n.x(6), n.ids(1), 8, is_sparse=True, bias_attr=False, name="h"),
    "hsigmoid_refuses": lambda n: n.hsigmoid(n.x(6), n.ids(1), 1),
    "sampled_softmax_custom": lambda n: n.sampled_softmax_with_cross_entropy(
        n.x(20), n.ids(1), 5, use_customized_samples=True, customized_samples=n.ids(6, name="s"),
        customized_probabilities=n.y(6), remove_accidental_hits=False),
    "dice_loss_deep": lambda n: n.dice_loss(n.x(4, 6), n.ids(4, 1), 1e-3),
    "huber_loss_delta": lambda n: n.huber_loss(n.x(1), n.y(1), 0.5),
    "log_loss_epsilon": lambda n: n.log_loss(n.x(1), n.y(1), 1e-3, "l"),
    # metrics
    "accuracy_given": lambda n: n.accuracy(
        n.x(6), n.ids(1), 2, n.create_tensor("int32"), n.create_tensor("int32")),
    "auc_settings": lambda n: n.auc(n.x(2), n.ids(1), "PR", 100, slide_steps=3)[1],
    "mean_iou": lambda n: n.mean_iou(n.exact(4, 4, dtype="int32"), n.exact(4, 4, dtype="int32",
        name="f"), 3)[0],
    # images
    "image_resize_scale": lambda n: n.image_resize(n.x(3, 4, 4), scale=2.0, resample="NEAREST"),
    "image_resize_variable": lambda n: n.image_resize(n.x(3, 4, 4), out_shape=n.exact(2, dtype="int32")),
    "image_resize_list": lambda n: n.image_resize(n.x(3, 4, 4), out_shape=[n.one(8), 6],
        align_corners=False),
    "image_resize_scale_variable": lambda n: n.image_resize(n.x(3, 4, 4), scale=n.one(2, "float32")),
    "image_resize_actual": lambda n: n.image_resize(n.x(3, 4, 4), [8, 8], actual_shape=n.exact(2,
        dtype="int32")),
    "image_resize_refuses": lambda n: n.image_resize(n.x(3, 4, 4)),
    "image_resize_refuses_kind": lambda n: n.image_resize(n.x(3, 4, 4), [8, 8], resample="OTHER"),
    "interpolate_bicubic": lambda n: n.interpolate(n.x(3, 4, 4), [8, 8], resample="BICUBIC"),
    "resize_bilinear": lambda n: n.resize_bilinear(n.x(4, 4, 3), [8, 8], align_mode=0, data_format="NHWC"),
    "resize_nearest": lambda n: n.resize_nearest(n.x(3, 4, 4), [8, 8], align_corners=False, name="r"),
    "resize_trilinear": lambda n: n.resize_trilinear(n.x(3, 4, 4, 4), [8, 8, 8]),
    "resize_trilinear_scale": lambda n: n.resize_trilinear(n.x(3, 4, 4, 4), scale=1.5),
    "image_resize_short": lambda n: n.image_resize_short(n.x(3, 4, 8), 6),
    "affine_grid": lambda n: n.affine_grid(n.x(2, 3), [2, 3, 4, 4]),
    "affine_grid_variable": lambda n: n.affine_grid(n.x(2, 3), n.exact(4, dtype="int32")),
    "grid_sampler": lambda n: n.grid_sampler(n.x(3, 4, 4), n.y(4, 4, 2)),
    "pixel_shuffle_refuses": lambda n: n.pixel_shuffle(n.x(4, 4, 4), 2.0),
    # others
    "print_settings": lambda n: n.Print(n.x(6), 5, "here", 10, False, False, False, False, "forward"),
    "get_tensor_from_selected_rows": lambda n: n.get_tensor_from_selected_rows(n.rows()),
    "merge_selected_rows": lambda n: n.merge_selected_rows(n.rows()),
    "gather_tree": lambda n: n.gather_tree(n.exact(5, 2, 2, dtype="int64"), n.exact(5, 2, 2,
        dtype="int64", name="p")),
    "load": lambda n: n.load(n.create_tensor("float32", persistable=True), "./there", True),
    "chunk_eval": lambda n: n.chunk_eval(
        n.fluid.data("a", [None, 1], "int64", lod_level=1), n.fluid.data("b", [None, 1], "int64",
        lod_level=1),
        "IOB", 3, [1])[0],
    "ctc_greedy_decoder": lambda n: n.ctc_greedy_decoder(n.fluid.data("a", [None, 8], lod_level=1), 0),
    "sigmoid_focal_loss": lambda n: n.sigmoid_focal_loss(
        n.x(6), n.fluid.data("l", [None, 1], "int32"), n.exact(1, dtype="int32")),
    # readers
    "py_reader_named": lambda n: n.read_file(n.py_reader(2, [[-1, 3]], ["float32"], [1], "r", False)),
    "py_reader_buffered": lambda n: n.read_file(
        n.py_reader(2, [(-1, 3), (-1, 1)], ["float32", "int64"], name="r"))[1],
    "py_reader_by_data": lambda n: n.read_file(n.create_py_reader_by_data(2, [n.x(3), n.ids(1)]))[0],
    "double_buffer": lambda n: n.read_file(
        n.double_buffer(n.py_reader(2, [[-1, 3]], ["float32"], use_double_buffer=False))),
}  # fmt: skip
