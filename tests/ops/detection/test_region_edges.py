"""Regions at the edges: none at all, images without any, random samples, and inputs that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import Generator
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.ops.kernels.detection.boxes import sample_reservoir
from paddlelike.ops.kernels.fast.polygons import suppress_polygons
from tests.helpers.fresh import fresh_programs
from tests.ops.detection.proposal_cases import ANCHORS, INFO, LOD, boxes
from tests.ops.harness.contract import call

X = np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6)
NO_ROIS = np.empty((0, 4), np.float32)
SIZES = {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 1.0}


@pytest.mark.parametrize(
    ("type", "attrs"),
    [
        ("roi_pool", SIZES),
        ("roi_align", SIZES | {"sampling_ratio": 2}),
        ("psroi_pool", SIZES | {"pooled_width": 1, "output_channels": 1}),
    ],
)
def test_an_empty_set_of_regions_gives_no_rows(type: str, attrs: dict[str, Any]) -> None:
    more = [] if type == "psroi_pool" else [None]
    found, _ = call(type, X, NO_ROIS, *more, lods={"ROIs": [[0, 0]]}, **attrs)
    out = found[0] if isinstance(found, tuple) else found
    assert out.shape == (0, attrs.get("output_channels", 2), attrs["pooled_height"], attrs["pooled_width"])


def test_a_nan_in_the_first_pixel_does_not_reach_points_outside_of_the_image() -> None:
    x = X.copy()
    x[0, 0, 0, 0] = np.nan
    filter = np.ones((1, 2, 1, 1), np.float32)
    offset = np.full((1, 2, 4, 6), -9, np.float32)
    offset[..., 3, 5] = 0
    out, _ = call("deformable_conv_v1", x, offset, filter)
    expected = np.zeros((1, 1, 4, 6), np.float32)
    expected[..., 3, 5] = x[0, :, 3, 5].sum()
    np.testing.assert_array_equal(out, expected)


def test_a_nan_stays_in_the_bins_that_hold_it() -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    x[0, 0, 0, 0] = np.nan
    attrs = {"pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0, "output_channels": 1}
    rois = np.array([[0, 0, 1, 1], [2, 1, 4, 3]], np.float32)
    out, _ = call("psroi_pool", x, rois, lods={"ROIs": [[0, 2]]}, **attrs)
    np.testing.assert_array_equal(out.ravel(), [np.nan, x[0, 0, 1:4, 2:5].mean()])


@pytest.mark.parametrize("corner", [np.inf, -np.inf, np.nan, 1e30])
def test_bins_of_an_infinite_region_stay_inside_the_image(corner: float) -> None:
    rois = np.array([[0, 0, corner, 3], [corner, corner, 2, 2], [0, corner, 2, corner]], np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        out, _ = call(
            "psroi_pool",
            X,
            rois,
            lods={"ROIs": [[0, 3]]},
            **SIZES | {"pooled_width": 1, "output_channels": 1},
        )
    assert ((out >= 0) & (out <= X.max())).all()


def test_the_compiled_suppression_of_polygons_ends_when_its_results_are_full() -> None:
    square = np.array([0, 0, 1, 0, 1, 1, 0, 1], np.float32)
    apart = square + 2 * np.arange(4, dtype=np.float32)[:, None]
    kept = np.full(2, -1)
    number = np.float32
    assert suppress_polygons.function(apart, number(0.5), number(1), kept) == 2
    assert kept.tolist() == [0, 1]


def test_offsets_that_do_not_fit_the_images_are_refused() -> None:
    rois = np.zeros((2, 4), np.float32)
    with pytest.raises(EnforceNotMet, match=r"offsets of ROIs are \[0, 1, 2\]; there are 1 images and 2"):
        call("roi_align", X, rois, None, lods={"ROIs": [[0, 1, 2]]}, **SIZES, sampling_ratio=1)
    with pytest.raises(EnforceNotMet, match="has no LoD"):
        call("roi_align", X, rois, None, **SIZES, sampling_ratio=1)


def test_offsets_of_another_length_are_refused_when_the_program_is_built() -> None:
    with fresh_programs():
        x, offset = fluid.data("x", [None, 3, 8, 8]), fluid.data("offset", [None, 18, 6, 6])
        with pytest.raises(ShapeError, match=r"Offset has shape .* it needs \(N, 18, 8, 8\)"):
            fluid.layers.deformable_conv(x, offset, None, 4, 3, padding=1, modulated=False)


def run_layer(build: Any, feed: dict[str, tuple[Any, list[int]]]) -> list[Any]:
    """The results of a layer for arrays with the lengths of their sequences."""
    with fresh_programs() as (main, _):
        variables = {n: fluid.data(n, [None, a.shape[1]], lod_level=1) for n, (a, _) in feed.items()}
        fetches = build(variables)
        place = fluid.CPUPlace()
        tensors = {n: fluid.create_lod_tensor(a, [lengths], place) for n, (a, lengths) in feed.items()}
        return list(fluid.Executor(place).run(main, tensors, fetches, return_numpy=False))


def test_an_image_without_regions_has_an_empty_sequence_on_every_level() -> None:
    rois = boxes(3, 600.0, 400.0)
    *levels, restore = run_layer(
        lambda v: [*(found := fluid.layers.distribute_fpn_proposals(v["r"], 2, 3, 3, 224))[0], found[1]],
        {"r": (rois, [0, 3])},
    )
    joined = np.concatenate([np.array(each) for each in levels])
    np.testing.assert_array_equal(joined[np.array(restore)[:, 0]], rois)
    assert [each.lod()[0][:2] for each in levels] == [[0, 0], [0, 0]]


def test_collected_regions_keep_the_empty_sequence_between_others() -> None:
    rois = boxes(3)
    (found,) = run_layer(
        lambda v: [fluid.layers.collect_fpn_proposals([v["r0"], v["r1"]], [v["s0"], v["s1"]], 2, 3, 3)],
        {
            "r0": (rois[:2], [0, 0, 2]),
            "s0": (np.ones((2, 1), np.float32), [0, 0, 2]),
            "r1": (rois[2:], [1, 0, 0]),
            "s1": (np.zeros((1, 1), np.float32), [1, 0, 0]),
        },
    )
    assert found.lod() == [[0, 1, 1, 3]]


def assign(seed: int, use_random: bool) -> tuple[list[np.ndarray[Any, Any]], Any]:
    """rpn_target_assign for two images, by a scope's generator that starts at the seed."""
    with fresh_programs(seed) as (main, _):
        names = {"a": ANCHORS, "g": boxes_of_two(), "c": np.zeros((7, 1), np.int32), "i": INFO}
        anchors, objects, crowd, info = (
            fluid.data(name, [None, *array.shape[1:]], str(array.dtype), lod_level=int(name in "gc"))
            for name, array in names.items()
        )
        moves = fluid.data("m", [None, len(ANCHORS), 4])
        logits = fluid.data("l", [None, len(ANCHORS), 1])
        found = fluid.layers.rpn_target_assign(
            moves, logits, anchors, anchors, objects, crowd, info, 16, -1.0, 0.25, 0.3, 0.2, use_random
        )
        feed = {n: array if n in "ai" else fluid.create_lod_tensor(array, [[3, 4]], fluid.CPUPlace())
                for n, array in names.items()}  # fmt: skip
        # The place of each anchor in the batch stands for its score.
        feed["l"] = np.arange(2 * len(ANCHORS), dtype=np.float32).reshape(2, -1, 1)
        feed["m"] = np.zeros((2, len(ANCHORS), 4), np.float32)
        results = fluid.Executor().run(main, feed, list(found), return_numpy=False)
    return [np.array(each) for each in results], results[2].lod()


def boxes_of_two() -> np.ndarray[Any, Any]:
    rng = np.random.RandomState(61)
    corner = rng.uniform(0, 20, (7, 2))
    return np.concatenate([corner, corner + rng.uniform(8, 18, (7, 2))], 1).astype(np.float32)


def test_a_random_sample_has_the_requested_sizes_and_no_anchor_twice() -> None:
    assert LOD == [[0, 3, 7]]
    (first, *_), _ = assign(0, use_random=False)
    picked = []
    for _ in range(4):
        (scores, _, labels, targets, _), lod = assign(0, use_random=True)
        assert np.isfinite(targets).all()
        for start, end in zip(lod[0], lod[0][1:], strict=False):
            assert end - start <= 16
            assert labels[start:end].sum() <= 4
            assert len(np.unique(scores[start:end])) == end - start
        picked.append(tuple(scores.reshape(-1).tolist()))
    assert len(set(picked)) > 1
    assert tuple(first.reshape(-1).tolist()) not in picked


def test_a_reservoir_keeps_elements_with_the_specified_probability() -> None:
    counts = np.zeros(6, np.int64)
    for seed in range(1, 3001):
        counts[sample_reservoir(Generator(seed * 7919), np.arange(6), 2)[:2]] += 1
    # Element i from 2 on takes a place with the chance 2 / i and stays with 1 - 1 / j for each later j: 0.4
    # for all of them, half of that for the first two. Six deviations of a binomial count.
    expected = 3000 * np.array([0.2, 0.2, 0.4, 0.4, 0.4, 0.4])
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()
