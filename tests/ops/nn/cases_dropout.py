"""Cases of dropout."""

from typing import Any

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(3).standard_normal((4, 3))
P = float(np.float32(0.3))
KEPT = float(np.float32(0.7))
UPSCALE = "upscale_in_train"


def draw_mask(seed: int, p: float = P) -> np.ndarray[Any, Any]:
    """An element stays where its number of the engine, scaled to [0, 1), is p or more."""
    out, x = np.empty(X.size, np.uint8), seed
    for i in range(X.size):
        x = 48271 * x % (2**31 - 1)
        out[i] = (x - 1) / (2**31 - 2) >= p
    return out.reshape(X.shape)


def case(note: str, expected: Any, inputs: dict[str, Any] | None = None, **attrs: Any) -> Case:
    return Case("dropout", {"X": X} | (inputs or {}), expected, {"dropout_prob": P} | attrs, note=note)


def make_case(note: str, out: Any, kept: np.ndarray[Any, Any], **kwargs: Any) -> Case:
    return case(note, lambda X: {"Out": out(X), "Mask": kept}, **kwargs)


CASES = [
    make_case("downgrade", lambda x: x * draw_mask(5), draw_mask(5), seed=5, fix_seed=True),
    make_case(
        "upscale",
        lambda x: x * draw_mask(5) / KEPT,
        draw_mask(5),
        seed=5,
        fix_seed=True,
        dropout_implementation=UPSCALE,
    ),
    make_case("seed-zero", lambda x: x * draw_mask(1), draw_mask(1), seed=0, fix_seed=True),
    make_case(
        "seed-tensor",
        lambda x: x * draw_mask(9),
        draw_mask(9),
        inputs={"Seed": np.array([9], np.int32)},
        seed=5,
        fix_seed=True,
    ),
    make_case("keep-all", lambda x: x, draw_mask(5, 0), seed=5, fix_seed=True, dropout_prob=0.0),
    *(
        make_case(
            f"keep-none-{how}",
            lambda x: x * 0,
            draw_mask(5, 1.0),
            seed=5,
            fix_seed=True,
            dropout_prob=1.0,
            dropout_implementation=how,
        )
        for how in (UPSCALE, "downgrade_in_infer")
    ),
    Case(
        "dropout",
        {"X": X},
        lambda X: X * KEPT,
        {"dropout_prob": P, "is_test": True},
        wrt=(),
        note="test",
    ),
    Case(
        "dropout",
        {"X": X},
        lambda X: X,
        {"dropout_prob": P, "is_test": True, "dropout_implementation": UPSCALE},
        wrt=(),
        note="test-upscale",
    ),
]
