"""One name, other numbers: what operators compute in programs of Fluid, Paddle 2 and Paddle 3.

The numbers are those of paddlepaddle 1.8.5, 2.6.2 and 3.3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import find
from paddlelike.framework.opdef.registry import find_for_version
from paddlelike.ops.kernels import special
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first
from tests.helpers.small_networks import run
from tests.ops.harness.contract import full_attrs

NAN = np.nan
VERSIONS = {"1.8": 1_008_005, "2.6": 2_006_002, "3.3": 3_003_001}


def compute(type: str, version: str, *arrays: Any, **attrs: Any) -> Any:
    op = find_for_version(type, VERSIONS[version])
    assert op is not None
    with np.errstate(all="ignore"):  # as the executor does
        found = op.forward(*arrays, **op.make_forward_keywords(full_attrs(op, attrs)))
    return found if isinstance(found, tuple) else np.asarray(found)


HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5], "float32")
PAIRS = np.array([NAN, 1, NAN, 3], "float32"), np.array([3, NAN, NAN, 2], "float32")
BOUNDS, ONES = np.array([-2, -0.5, 0.25, 0.5], "float32"), np.ones(4, "float32")
WHOLE = np.array([-7, 7, -7, 7]), np.array([2, -2, -2, 2])


@pytest.mark.parametrize(
    ("type", "arrays", "wanted"),
    [
        (
            "round",
            [HALVES],
            {"1.8": [1, 2, 3, -1, -2], "2.6": [1, 2, 3, -1, -2], "3.3": [0, 2, 2, 0, -2]},
        ),
        (
            "elementwise_max",
            PAIRS,
            {"1.8": [3, NAN, NAN, 3], "2.6": [3, NAN, NAN, 3], "3.3": [NAN] * 3 + [3]},
        ),
        (
            "elementwise_min",
            PAIRS,
            {"1.8": [3, NAN, NAN, 2], "2.6": [3, NAN, NAN, 2], "3.3": [NAN] * 3 + [2]},
        ),
        ("sign", [PAIRS[0]], {"1.8": [0, 1, 0, 1], "2.6": [NAN, 1, NAN, 1], "3.3": [NAN, 1, NAN, 1]}),
        (
            "elementwise_floordiv",
            WHOLE,
            {"1.8": [-3, -3, 3, 3], "2.6": [-4, -4, 3, 3], "3.3": [-4, -4, 3, 3]},
        ),
        ("hard_shrink", [BOUNDS], {"1.8": [-2, 0, 0, 0], "2.6": [-2, 0, 0, 0], "3.3": [-2, -0.5, 0, 0.5]}),
        (
            "hard_shrink_grad",
            [BOUNDS, ONES],
            {"1.8": [1, 0, 0, 0], "2.6": [1, 0, 0, 0], "3.3": [1, 1, 0, 1]},
        ),
        ("elementwise_mod", WHOLE, {"1.8": [-1, 1, -1, 1], "2.6": [1, -1, -1, 1], "3.3": [1, -1, -1, 1]}),
        (
            "equal",
            [np.array([1e-9, NAN, np.inf], "float32"), np.array([0, NAN, np.inf], "float32")],
            {"1.8": [True, False, False], "2.6": [True, False, True], "3.3": [False, False, True]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_of_a_program_selects_the_form_of_an_operator(
    type: str, arrays: list[Any], wanted: dict[str, list[Any]], version: str
) -> None:
    np.testing.assert_array_equal(compute(type, version, *arrays), wanted[version])


@pytest.mark.parametrize(
    ("version", "wanted"), [("1.8", [0, 0, 1, 0]), ("2.6", [0, 0, 1, 0]), ("3.3", [0, 1, 1, 1])]
)
def test_the_gradient_of_a_clip_passes_at_its_bounds_since_paddle_3(version: str, wanted: list[int]) -> None:
    found = compute("clip_grad", version, BOUNDS, None, None, ONES, min=-0.5, max=0.5)
    assert found.tolist() == wanted


@pytest.mark.parametrize("version", VERSIONS)
def test_bounds_of_a_clip_may_be_equal_since_paddle_2(version: str) -> None:
    if version == "1.8":
        with pytest.raises(EnforceNotMet, match="min must be below max"):
            compute("clip", version, BOUNDS, None, None, min=0.5, max=0.5)
    else:
        assert compute("clip", version, BOUNDS, None, None, min=0.5, max=0.5).tolist() == [0.5] * 4
    with pytest.raises(EnforceNotMet, match="min must be below max"):
        compute("clip", version, BOUNDS, None, None, min=0.75, max=0.5)


def test_mish_of_paddle_2_replaces_softplus_by_x_only_above_the_threshold() -> None:
    x = np.array([1.0, -1.0, 5.5, 0.0])
    found = compute("mish", "2.6", x, threshold=-20.0)
    np.testing.assert_allclose(found, [0.76159416, 0.76159416, 5.49981628, 0.0], rtol=1e-8)
    slope = compute("mish_grad", "3.3", x[:1], np.array([0.31583398]), threshold=-20.0)
    np.testing.assert_allclose(slope, 0.32438316, rtol=1e-7)  # still with the slope of a softplus


@pytest.mark.parametrize(
    ("version", "end", "places"), [("2.6", -100, [4, 2]), ("3.3", -100, [4, 2, 0]), ("3.3", -1, [])]
)
def test_the_gradient_of_a_backward_slice_goes_to_the_selected_elements(
    version: str, end: int, places: list[int]
) -> None:
    x, attrs = np.arange(5.0), {"axes": [0], "starts": [4], "ends": [end], "strides": [-2]}
    out = compute("strided_slice", version, x, *[None] * 6, **attrs)
    assert out.tolist() == places
    wanted = np.zeros(5)
    wanted[places] = out
    found = compute("strided_slice_grad", version, out, x, *[None] * 6, **attrs)
    np.testing.assert_array_equal(found, wanted)


def test_maxima_ignore_the_axis_and_logarithms_of_integers_are_float32_in_paddle_2() -> None:
    x, y = np.arange(12, dtype="float32").reshape(3, 1, 4), np.arange(0, 16, 2, dtype="float32").reshape(2, 4)
    found = compute("elementwise_fmax", "2.6", x, y, axis=1)
    assert found.shape == (3, 2, 4)
    assert found[0].tolist() == [[0, 2, 4, 6], [8, 10, 12, 14]]
    for type in ("log1p", "log2", "log10"):
        assert compute(type, "3.3", np.array([1, 2])).dtype == np.float32


def test_a_box_of_negative_size_suppresses_no_other() -> None:
    boxes = [[0, -208, -208, -208], [-2, -2, -208, -8], [10, -208, -208, 16]]
    found = compute("nms", "2.6", np.array(boxes, "float32"), iou_threshold=0.3)
    assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize("type", ["exp", "log"])
def test_exp_and_log_of_paddle_2_write_over_floats_but_not_over_integers(type: str) -> None:
    op, x, whole = find_for_version(type, VERSIONS["2.6"]), np.array([1, 2], "float32"), np.array([1, 2])
    assert op is not None
    wanted, write = op.forward(x), op.make_overwriting_kernel({})
    assert write is not None
    assert write(x, x)
    np.testing.assert_array_equal(x, wanted)
    assert not write(whole, whole)
    assert whole.tolist() == [1, 2]
    assert op.forward(whole).dtype == np.float32


@pytest.mark.parametrize(("version", "at_zero"), [("2.6", [NAN, NAN]), ("3.3", [np.inf, -np.inf])])
def test_digamma_and_lgamma_match_paddle_at_poles_and_infinities(version: str, at_zero: list[float]) -> None:
    x = np.array([-np.inf, -1, -0.0, 0, np.inf], "float32")
    np.testing.assert_array_equal(compute("digamma", version, x), [NAN, NAN, *at_zero, np.inf])
    np.testing.assert_array_equal(compute("lgamma", version, x), [np.inf] * 5)


@pytest.mark.parametrize(
    ("start", "stop", "count", "wanted"),
    [
        (-30, 49, 4, [-30, -3, 22, 49]),
        (28, 30, 4, [28, 28, 29, 30]),
        (0.1, 0.9, 4, np.array([0.1, 0.36666664, 0.6333333, 0.9], "float32")),
        (-0.62455755, 0.7414646, 3, np.array([-0.62455755, 0.05845356, 0.7414646], "float32")),
        (4.0, 5.0, 1, [4.0]),
    ],
)
def test_linspace_of_paddle_2_ends_exactly_at_stop_and_truncates_integers(
    start: float, stop: float, count: int, wanted: Any
) -> None:
    kind = np.array(start).dtype if isinstance(start, int) else np.dtype("float32")
    dtype = int(VarType.INT64 if isinstance(start, int) else VarType.FP32)
    ends = np.array([start], kind), np.array([stop], kind)
    found = compute("linspace", "2.6", *ends, np.array([count], "int32"), dtype=dtype)
    assert found.dtype == kind
    assert found.tolist() == np.asarray(wanted, kind).tolist()


@pytest.mark.parametrize(("version", "wanted"), [("2.6", [1.0, 1.0078125]), ("3.3", [1.0, 1.015625])])
def test_bfloat16_is_cut_in_paddle_2_and_rounded_in_paddle_3(version: str, wanted: list[float]) -> None:
    x = np.array([1.00390625, 1.01171875], "float32")
    attrs = {"in_dtype": int(VarType.FP32), "out_dtype": int(VarType.BF16)}
    bits = compute("cast", version, x, **attrs)
    assert (bits.astype(np.uint32) << 16).view(np.float32).tolist() == wanted


def test_top_k_v2_picks_the_same_indices_as_paddle_2() -> None:
    """``top_k_v2`` selects and sorts; equal numbers come as C++ leaves them, NaN before all others."""
    for row, k, wanted in (
        ([0] * 10, 5, [8, 6, 7, 5, 9]),
        ([1, 3, 3, 2, 3], 3, [2, 4, 1]),
        ([NAN, 1, 2], 2, [0, 2]),
        ([1, 2, NAN], 2, [2, 1]),
    ):
        found = compute("top_k_v2", "2.6", np.array(row, "float32"), None, k=k)
        assert found[1].tolist() == wanted, row


@pytest.mark.parametrize(("falling", "wanted"), [(False, [1, 2, 0]), (True, [0, 2, 1])])
def test_nan_is_the_largest_of_a_sort_in_paddle_2(falling: bool, wanted: list[int]) -> None:
    x = np.array([NAN, 1, 2], "float32")
    assert compute("argsort", "3.3", x, axis=-1, descending=falling)[1].tolist() == wanted


def test_the_last_elements_of_a_long_sort_match_paddle_2() -> None:
    x = np.array([5] * 20 + [1, 2, 3] * 4, "float32")
    assert compute("argsort", "2.6", x)[1].tolist() == [
        *(29, 26, 23, 20, 30, 27, 24, 21, 31, 28, 25, 22, 16, 19, 18, 17, 0, 15, 14, 13, 12, 11, 10, 9),
        *(8, 7, 6, 5, 4, 3, 2, 1),
    ]


layers = fluid.layers


@pytest.mark.parametrize("axis", [-1, 0])
def test_a_vector_and_a_single_number_are_combined(axis: int) -> None:
    x, y = fluid.data("x", [4]), fluid.data("y", [1])
    x.stop_gradient = y.stop_gradient = False
    total = layers.reduce_sum(layers.elementwise_div(x, y, axis=axis))
    found = run(fluid.gradients(total, [x, y]), x=np.arange(4, dtype="f"), y=np.array([2], "f"))
    np.testing.assert_array_equal(found[0], np.full(4, 0.5))
    np.testing.assert_array_equal(found[1], [-6 / 4])


def test_the_lengths_of_joined_sequences_are_added_up() -> None:
    """Before the run as well, where one of -1 counts as -1: as in Fluid 1.8.5."""
    rows = iter(range(99))

    def sequence(length: int) -> fluid.framework.Variable:
        return fluid.data(f"x{next(rows)}", [length, 2], lod_level=1)

    for lengths, first in {(3, 4): 7, (-1, 4): 3, (-1, -1): -1, (4, -1, 9): 12}.items():
        assert layers.sequence_concat(list(map(sequence, lengths))).shape == (first, 2)


Array = np.ndarray[Any, Any]


def last(x: Array) -> Array:
    return view_channels_first(as_channels_last(x).copy())


def assert_close(one: Array, other: Array) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)  # sums in another order


@pytest.mark.parametrize("type", ["elementwise_add", "elementwise_mul", "elementwise_sub"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 1), ((5, 1, 1), -1), ((2, 5), 0), ((9,), -1), ((2, 5, 8, 9), -1)]
)
def test_arithmetic_of_images_and_channel_vectors_follows_numpy(
    type: str, shape: tuple[int, ...], axis: int
) -> None:
    rng = np.random.default_rng(4)
    x, y, d_out = (
        rng.standard_normal((2, 5, 8, 9)),
        rng.standard_normal(shape),
        rng.standard_normal((2, 5, 8, 9)),
    )
    operator, grad = find(type), find(type + "_grad")
    np.testing.assert_array_equal(operator.forward(last(x), y, axis=axis), operator.forward(x, y, axis=axis))
    expected = grad.forward(d_out, x, y, axis=axis, wanted=(True, True))
    for one, other in zip(
        grad.forward(last(d_out), last(x), y, axis=axis, wanted=(True, True)), expected, strict=True
    ):
        assert_close(one, other)


@pytest.mark.parametrize("processor", ["this", "another"])
def test_casts_of_numbers_that_no_integer_holds_give_what_fluid_gives_on_every_processor(
    processor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numpy on ARM gives the nearest integer, and 0 for NaN."""
    if processor == "another":
        monkeypatch.setattr(special, "_converts_as_x86", lambda: False)
    x = np.array([NAN, np.inf, -np.inf, 3e9, -3e9, 1e20, 300, -1.5])
    least, long = -(1 << 31), -(1 << 63)
    expected = {
        "int8": [0, 0, 0, 0, 0, 0, 44, -1],
        "uint8": [0, 0, 0, 0, 0, 0, 44, 255],
        "int32": [least] * 6 + [300, -1],
        "int64": [long, long, long, 3 * 10**9, -3 * 10**9, long, 300, -1],
    }
    for kind, numbers in expected.items():
        for given in (np.float32, np.float64):
            attrs = {"in_dtype": fluid.core.convert_dtype(given), "out_dtype": fluid.core.convert_dtype(kind)}
            assert compute("cast", "1.8", x.astype(given), **attrs).tolist() == numbers
