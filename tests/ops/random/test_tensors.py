"""Random operators: the real system's bits for a seed, the scope's generator without."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from paddlelike.core import Generator
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Spec, registry
from tests.ops.harness.contract import FakeContext, View, full_attrs

Arrays = dict[str, Any]

BATCH = np.zeros((20, 2), np.float32)
ROWS = (np.arange(1, 601).reshape(60, 10) % 7 + 1).astype(np.float32) / np.float32(40)
IMAGES = np.arange(2 * 5 * 8 * 9, dtype=np.float32).reshape(2, 5, 8, 9)
LIKE = {"shape": [-1, 30]}
SIZES = {"ShapeTensorList": [np.array([20], np.int32), np.array([30], np.int64)]}
NORMAL = {"mean": 1.0, "std": 0.5}


def compute(type: str, inputs: Arrays, attrs: Arrays, context: Any = None) -> Any:
    """Return the result of a kernel for arrays by slot."""
    op = registry.find(type)
    values = {slot: array for slot, array in inputs.items() if array is not None}
    attrs = full_attrs(op, attrs)
    view = View(type, {slot: [slot] for slot in values}, {"Out": ["Out"]}, attrs)
    context = context or FakeContext(view, {}, {})
    args = [values.get(slot.name, [] if slot.several else None) for slot in op.input_slots]
    keywords = op.make_forward_keywords(attrs)
    return op.forward(*([context] if op.context else []), *args, **keywords)


# Digests of what paddlepaddle 1.8.5 (CPU) computed with seed 3.
REAL = [
    ("uniform_random", {}, {"shape": [20, 30]}, "b29c36c45666d141"),
    (
        "uniform_random",
        {},
        {"shape": [20, 30], "dtype": 6, "min": 2.0, "max": 5.0},
        "c653a0f225d24243",
    ),
    ("uniform_random", {"ShapeTensor": np.array([20, 30])}, {}, "b29c36c45666d141"),
    ("uniform_random", SIZES, {"shape": [-1, 30]}, "b29c36c45666d141"),
    (
        "uniform_random",
        {},
        {"shape": [3, 4], "diag_num": 2, "diag_step": 3, "diag_val": 9.0},
        "4523205680d2686b",
    ),
    ("uniform_random_batch_size_like", {"Input": BATCH}, LIKE, "b29c36c45666d141"),
    ("gaussian_random", {}, {"shape": [20, 31]} | NORMAL, "63bda16cd76fab61"),
    (
        "gaussian_random_batch_size_like",
        {"Input": BATCH},
        {"shape": [-1, 31]} | NORMAL,
        "63bda16cd76fab61",
    ),
    ("truncated_gaussian_random", {}, {"shape": [20, 31]} | NORMAL, "b10a353b29b57c1a"),
    ("randint", {}, {"shape": [20, 30], "low": -7, "high": 100}, "e10bf84249c32ae0"),
    ("randint", SIZES, {"low": -7, "high": 100, "dtype": 2}, "6e28b3f8c3ce70ce"),
    ("randperm", {}, {"n": 30}, "13db7b5228f3c462"),
    ("randperm", {}, {"n": 30, "dtype": 2}, "c9eec1225e4a8610"),
    ("sampling_id", {"X": ROWS}, {}, "7dd0a51de2de43e7"),
    (
        "sampling_id",
        {"X": ROWS},
        {"min": float(np.float32(0.2)), "max": float(np.float32(0.9))},
        "82a75b2e745a7407",
    ),
]


@pytest.mark.parametrize(("type", "inputs", "attrs", "expected"), REAL)
def test_a_seed_gives_the_same_bits_as_fluid(type: str, inputs: Arrays, attrs: Arrays, expected: str) -> None:
    out = compute(type, inputs, attrs | {"seed": 3})
    assert hashlib.sha256(out.tobytes()).hexdigest()[:16] == expected


# dropout(arange(1, 3001) / 7, fix_seed) of the real system: Out, Mask
@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"dropout_prob": 0.5, "seed": 11}, ["2fc2f8a7410ff347", "cfed824fd78c6364"]),
        (
            {
                "dropout_prob": float(np.float32(0.1)),
                "seed": 12,
                "dropout_implementation": "upscale_in_train",
            },
            ["a52bd75dfe815457", "7713fc83a04cdc56"],
        ),
    ],
)
def test_dropout_keeps_the_same_elements_as_fluid(attrs: Arrays, expected: list[str]) -> None:
    x = np.arange(1, 3001, dtype=np.float32).reshape(30, 100) / np.float32(7)
    found = compute("dropout", {"X": x}, attrs | {"fix_seed": True})
    assert [hashlib.sha256(a.tobytes()).hexdigest()[:16] for a in found] == expected


@pytest.mark.parametrize(
    ("type", "inputs", "attrs"),
    [
        ("uniform_random", {}, {"shape": [3, 5]}),
        ("uniform_random_batch_size_like", {"Input": BATCH}, LIKE),
        ("gaussian_random", {}, {"shape": [3, 5]}),
        ("gaussian_random_batch_size_like", {"Input": BATCH}, LIKE),
        ("truncated_gaussian_random", {}, {"shape": [3, 5]}),
        ("randint", {}, {"shape": [20], "low": 0, "high": 1000}),
        ("randperm", {}, {"n": 50}),
        ("seed", {}, {}),
        ("sampling_id", {"X": np.full((60, 10), 0.1, np.float32)}, {}),
        ("dropout", {"X": np.ones((9, 9), np.float32)}, {"seed": 5}),
    ],
)
def test_without_a_seed_the_generator_of_the_scope_advances(type: str, inputs: Arrays, attrs: Arrays) -> None:
    view = View(type, {}, {}, {})

    def draw_twice(state: int) -> list[Any]:
        context = FakeContext(view, {}, {})
        context.scope.generator.state = state
        out = [np.asarray(compute(type, inputs, attrs, context)) for _ in range(2)]
        assert context.scope.generator.state != state
        return out

    first, second = draw_twice(123)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(draw_twice(123), [first, second])


def test_the_seed_operator_gives_its_seed() -> None:
    out = compute("seed", {}, {"seed": 77})
    assert (out.dtype, out.tolist()) == (np.int32, [77])
    assert compute("seed", {}, {})[0] != 0


@pytest.mark.parametrize(
    ("seed", "startup_seed"), [(np.array([-77]), 0), (None, -77)], ids=["seed", "startup_seed"]
)
def test_random_crop_cuts_at_the_same_offsets_as_fluid(seed: Any, startup_seed: int) -> None:
    attrs = {"shape": [3, 4], "startup_seed": startup_seed}
    out, seed_out = compute("random_crop", {"X": IMAGES, "Seed": seed}, attrs)
    assert hashlib.sha256(out.tobytes()).hexdigest()[:16] == "0c0297bdf43b12dd"
    assert (seed_out.dtype, seed_out.tolist()) == (np.int64, [669007078])


def test_sampling_id_takes_the_last_column_when_the_row_is_too_small() -> None:
    out = compute("sampling_id", {"X": np.full((5, 3), 1e-9, np.float32)}, {"seed": 7})
    assert out.tolist() == [2] * 5
    assert out.dtype == np.int64


def test_the_largest_random_integers_do_not_overflow() -> None:
    drawn = Generator(3).integers(-(2**31), 2**31 - 1, [1000])
    assert drawn.min() < -(2**30)
    assert drawn.max() > 2**30


X2 = Spec((-1, 2), 5)


@pytest.mark.parametrize(
    ("type", "specs", "attrs", "shape"),
    [
        ("uniform_random", [None, [X2] * 3], {"shape": [5, 6, 7]}, (-1, -1, -1)),
        ("gaussian_random", [None, [X2] * 3], {"shape": [5, -1, 7]}, (5, -1, 7)),
        ("randint", [Spec((2,), 3), []], {"shape": [], "low": 0, "high": 2}, (-1, -1)),
        ("gaussian_random", [Spec((2,), 3), []], {"shape": []}, (-1, -1)),
        ("uniform_random", [Spec((2,), 3), []], {"shape": [2, 3]}, (2, 3)),
        ("uniform_random_batch_size_like", [X2], {"shape": [7, 8], "output_dim_idx": 1}, (7, -1)),
        ("sampling_id", [X2], {}, (-1,)),
        ("random_crop", [Spec((-1, 8, 9), 5), Spec((1,), 3)], {"shape": [3, 4]}, (-1, 3, 4)),
    ],
)
def test_shapes_known_at_build_time_match_fluid(
    type: str, specs: list[Any], attrs: Arrays, shape: tuple[int, ...]
) -> None:
    assert infer(type, specs, attrs).shape == shape


def infer(type: str, specs: list[Any], attrs: Arrays) -> Spec:
    op = registry.find(type)
    attrs = full_attrs(op, attrs)
    result = op.infer(*specs, **op.make_infer_keywords(attrs))
    return result if isinstance(result, Spec) else result[0]


@pytest.mark.parametrize(
    ("type", "specs", "attrs", "message"),
    [
        ("uniform_random", [None, []], {}, r"uniform_random: shape is \[\], expected one dim"),
        ("uniform_random", [None, []], {"shape": [-2]}, r"shape is \[-2\], expected dims of 0"),
        (
            "uniform_random",
            [None, []],
            {"shape": [2], "dtype": 3},
            "dtype is VarType.INT64, expected",
        ),
        (
            "uniform_random",
            [None, []],
            {"shape": [2], "min": 1.0},
            "min is 1.0, max is 1.0, an empty range",
        ),
        ("uniform_random", [Spec((-1,), 3), []], {}, r"ShapeTensor has shape \(-1,\)"),
        ("truncated_gaussian_random", [], {"shape": [2], "dtype": 6}, "expected VarType.FP32"),
        ("randint", [None, []], {"shape": [2], "low": 5, "high": 5}, "low is 5, high is 5"),
        ("randperm", [], {"n": 0}, "n is 0, expected 1 or more"),
        ("sampling_id", [Spec((3,), 5)], {}, r"X has shape \(3,\), expected two dims"),
        (
            "gaussian_random_batch_size_like",
            [X2],
            {"shape": [-1, 2], "input_dim_idx": 2},
            "input_dim_idx is 2, but there are 2 dims",
        ),
        (
            "random_crop",
            [Spec((4, 8, 9), 5), Spec((1,), 3)],
            {"shape": [9, 1]},
            r"cannot cut \[9, 1\] out of X of shape \(4, 8, 9\)",
        ),
    ],
)
def test_invalid_ranges_of_random_numbers_are_refused(
    type: str, specs: list[Any], attrs: Arrays, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        infer(type, specs, attrs)


def test_an_unknown_size_is_refused_when_the_program_runs() -> None:
    with pytest.raises(ShapeError, match=r"shape is \[-1, 2\], expected dims of 0 or more"):
        compute("uniform_random", {}, {"shape": [-1, 2], "seed": 3})


def test_a_diagonal_beyond_the_end_is_refused() -> None:
    attrs = {"shape": [3, 4], "diag_num": 3, "diag_step": 5}
    with pytest.raises(ShapeError, match="reach element 12, but shape"):
        compute("uniform_random", {}, attrs)


def test_dropout_has_no_gradient_in_tests() -> None:
    op = registry.find("dropout")
    with pytest.raises(EnforceNotMet, match="no gradient with is_test"):
        op.make_grad(View("dropout", {"X": ["x"]}, {}, full_attrs(op, {"is_test": True})))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"dropout_prob": 1.5}, "dropout_prob is 1.5, expected 0 to 1"),
        ({"dropout_implementation": "scale"}, "dropout_implementation is 'scale', expected"),
    ],
)
def test_dropout_refuses_unknown_implementations(attrs: Arrays, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer("dropout", [X2, None], attrs)


@pytest.mark.parametrize(
    ("type", "inputs"),
    [
        ("poisson", {"X": np.array(4, np.float32)}),
        ("binomial", {"count": np.array(4), "prob": np.array(0.5)}),
        ("standard_gamma", {"x": np.array(4, np.float32)}),
    ],
    ids=["poisson", "binomial", "standard_gamma"],
)
def test_random_operators_accept_shapes_without_dims(type: str, inputs: Arrays) -> None:
    drawn, first = compute(type, inputs, {}), next(iter(inputs.values()))
    assert (drawn.shape, drawn.dtype) == ((), first.dtype)
    assert drawn >= 0


def test_bernoulli_draws_1_with_the_given_probability() -> None:
    """As a type of its own, which models of Paddle 2 have and the recorded exports do not."""
    drawn = compute("bernoulli", {"X": np.repeat(np.float32([0, 0.3, 1]), 4000).reshape(3, 4000)}, {})
    assert drawn.dtype == np.float32
    assert set(np.unique(drawn)) == {0, 1}
    np.testing.assert_allclose(drawn.mean(1), [0, 0.3, 1], atol=5 * (0.21 / 4000) ** 0.5)
