"""Parts of detectors: how often they are compiled where values choose regions, and what numpy runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import build, train
from tests.compiled.harness.sweep import check_gradients_alone
from tests.ops.harness.collect import CASES

pytestmark = pytest.mark.slow

L = fluid.layers
#: Their gradient operators do not read all that the operators read.
PARTED = ("affine_channel", "group_norm", "instance_norm", "lod_reset", "scatter_nd_add", "temporal_shift")


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def engine_of(net: Any) -> Any:
    (engine,) = (value for key, value in net.main.plans.items() if key[0] == "engine")
    return engine


def refused(net: Any) -> list[str]:
    engine = engine_of(net)
    return [engine.plan.steps[index].op.type for index in sorted(engine.refused)]


def make_boxes(rng: np.random.Generator, count: int) -> Any:
    corners = rng.uniform(0, 30, (count, 2))
    return np.concatenate([corners, corners + rng.uniform(2, 33, (count, 2))], 1).astype("float32")


@pytest.mark.parametrize("type", PARTED)
def test_a_gradient_may_be_compiled_apart_from_its_operator(type: str) -> None:
    for case in [case for case in CASES if case.type == type][:2]:
        check_gradients_alone(case)


def pyramid() -> Any:
    """Pool regions from two levels of a pyramid, put them in order again, and classify them."""
    image, rois = fluid.data("image", [None, 3, 64, 64]), fluid.data("rois", [None, 4], lod_level=1)
    label = fluid.data("label", [None, 1], "int64", lod_level=1)
    fine = L.conv2d(image, 4, 3, stride=4, padding=1)
    levels, restore = L.distribute_fpn_proposals(rois, 2, 3, 2, 16)
    maps = [fine, L.conv2d(fine, 4, 3, stride=2, padding=1)]
    pooled = [L.roi_align(x, one, 2, 2, 1 / s) for x, one, s in zip(maps, levels, (4, 8), strict=True)]
    rows = L.gather(L.concat(pooled), restore)
    rows = L.batch_norm(L.conv2d(rows, 6, 1))
    return L.mean(L.softmax_with_cross_entropy(L.fc(rows, 3), label))


def test_batches_with_similar_numbers_of_regions_share_one_compilation() -> None:
    rng = np.random.default_rng(5)
    feeds = []
    for lengths in ([18, 17], [20, 14], [17, 26], [22, 23]):
        boxes, labels = make_boxes(rng, sum(lengths)), rng.integers(0, 3, (sum(lengths), 1))
        feed = {
            n: fluid.create_lod_tensor(a, [lengths], fluid.CPUPlace())
            for n, a in (("rois", boxes), ("label", labels))
        }
        feeds.append({**feed, "image": rng.standard_normal((2, 3, 64, 64)).astype("float32")})
    net, other = build(pyramid, sgd), build(pyramid, sgd)
    # Sums in another order; a normalization makes them larger.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-4)
    assert refused(net) == ["distribute_fpn_proposals"]
    assert [piece.compilations for piece in engine_of(net).pieces] == [1, 1]
    moved = [one.scope.find_var("batch_norm_0.w_2").get_tensor() for one in (net, other)]
    np.testing.assert_allclose(*map(np.array, moved), rtol=1e-4, atol=1e-6)


def test_objects_are_matched_with_anchors_in_one_piece() -> None:
    def make() -> Any:
        anchors, boxes = fluid.data("anchors", [40, 4]), fluid.data("boxes", [None, 4], lod_level=1)
        label = fluid.data("label", [None, 1], "int32", lod_level=1)
        x, spread = fluid.data("x", [None, 6]), L.fill_constant([40, 4], "float32", 0.1)
        places, scores = L.reshape(L.fc(x, 160), [-1, 40, 4]), L.reshape(L.fc(x, 120), [-1, 40, 3])
        return L.reduce_sum(L.ssd_loss(places, scores, boxes, label, anchors, spread))

    rng = np.random.default_rng(6)
    feeds = []
    for lengths in ([3, 1], [2, 4], [1, 1]):
        boxes, labels = (
            make_boxes(rng, sum(lengths)) / 64,
            rng.integers(1, 3, (sum(lengths), 1)).astype("int32"),
        )
        feed = {
            n: fluid.create_lod_tensor(a, [lengths], fluid.CPUPlace())
            for n, a in (("boxes", boxes), ("label", labels))
        }
        x = rng.standard_normal((2, 6)).astype("float32")
        feeds.append({**feed, "x": x, "anchors": make_boxes(rng, 40) / 64})
    net, other = build(make, sgd), build(make, sgd)
    np.testing.assert_allclose(
        train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5
    )  # sums in another order
    assert refused(net) == []


def test_regions_are_decoded_with_their_own_codes() -> None:
    def make() -> list[Any]:
        boxes, codes = (
            fluid.data("boxes", [None, 4], lod_level=1),
            fluid.data("codes", [None, 3, 4], lod_level=1),
        )
        info = fluid.data("info", [None, 3])
        decoded = L.box_coder(boxes, [0.1, 0.1, 0.2, 0.2], codes, "decode_center_size", False, axis=1)
        return [L.reduce_sum(L.square(L.box_clip(decoded, info)))]

    rng = np.random.default_rng(7)
    feed = {"boxes": make_boxes(rng, 5), "codes": rng.standard_normal((5, 3, 4)).astype("float32")}
    feed = {n: fluid.create_lod_tensor(a, [[2, 3]], fluid.CPUPlace()) for n, a in feed.items()}
    feed["info"] = np.array([[64, 60, 1], [50, 64, 1]], "float32")
    net, other = build(make), build(make)
    np.testing.assert_allclose(train(net, [feed]), train(other, [feed], "numpy"), rtol=1e-5, atol=1e-5)
    assert refused(net) == []


def test_the_focal_loss_of_chosen_anchors_is_compiled() -> None:
    def make() -> Any:
        rows = L.fc(fluid.data("x", [None, 6], lod_level=1), 3)
        label, count = fluid.data("label", [None, 1], "int32", lod_level=1), fluid.data("count", [1], "int32")
        return L.reduce_sum(L.sigmoid_focal_loss(rows, label, count))

    rng = np.random.default_rng(8)
    feed = {
        "x": rng.standard_normal((5, 6)).astype("float32"),
        "label": rng.integers(0, 4, (5, 1)).astype("int32"),
    }
    feed = {n: fluid.create_lod_tensor(a, [[2, 3]], fluid.CPUPlace()) for n, a in feed.items()}
    feed["count"] = np.array([4], "int32")
    net, other = build(make, sgd), build(make, sgd)
    np.testing.assert_allclose(train(net, [feed] * 2), train(other, [feed] * 2, "numpy"), rtol=1e-5)
    assert refused(net) == []


def test_a_feature_map_is_resized_to_the_size_of_another_one() -> None:
    def make() -> Any:
        image = fluid.data("image", [None, 3, None, None])
        fine = L.conv2d(image, 4, 3, stride=2, padding=1)
        coarse = L.conv2d(fine, 4, 3, stride=2, padding=1)
        size = L.cast(L.slice(L.shape(fine), axes=[0], starts=[2], ends=[4]), "int32")
        resized = [resize(coarse, out_shape=size) for resize in (L.resize_nearest, L.resize_bilinear)]
        return L.mean(L.square(L.sum([fine, *resized])))

    rng = np.random.default_rng(9)
    feeds = [{"image": rng.standard_normal((1, 3, 10, width)).astype("float32")} for width in (14, 9)]
    net, other = build(make, sgd), build(make, sgd)
    # Sums in another order.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)
    assert refused(net) == []
    assert len(engine_of(net).pieces) == 1


def test_a_loss_is_normalized_by_the_number_of_labels_in_used_rows() -> None:
    def make() -> Any:
        rows = L.fc(fluid.data("x", [None, 6], lod_level=1), 3)
        sequences, flat = fluid.data("y", [None, 3], lod_level=1), fluid.data("z", [None, 3])
        loss = L.sigmoid_cross_entropy_with_logits
        parts = [loss(rows, one, ignore_index=-1, normalize=True) for one in (sequences, flat)]
        return L.reduce_sum(L.sum(parts))

    rng = np.random.default_rng(10)
    rows = {"x": rng.standard_normal((5, 6)), "y": rng.integers(-1, 2, (5, 3))}
    feed: dict[str, Any] = {
        n: fluid.create_lod_tensor(a.astype("float32"), [[2, 3]], fluid.CPUPlace()) for n, a in rows.items()
    }
    feed["z"] = rng.integers(-1, 2, (5, 3)).astype("float32")
    net, other = build(make, sgd), build(make, sgd)
    # Sums in another order.
    np.testing.assert_allclose(train(net, [feed] * 2), train(other, [feed] * 2, "numpy"), rtol=1e-5)
    assert refused(net) == []
