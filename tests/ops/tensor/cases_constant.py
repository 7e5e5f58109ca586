"""Cases of the operators that make tensors, of diagonals and counters."""

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case

X = np.random.default_rng(3).standard_normal((5, 2))
WHOLE = np.arange(10, dtype=np.int64).reshape(5, 2)
SEQUENCES = LoDTensor(X, [[0, 2, 3], [0, 2, 4, 5]])


def one(number: float, dtype: str = "float32") -> np.ndarray:
    return np.array([number], dtype)


def fill(note: str, expected: np.ndarray, inputs: dict | None = None, **attrs: object) -> Case:
    return Case("fill_constant", inputs or {}, lambda: expected, attrs, note=note)


def like(note: str, result: tuple[int, ...], x: object = X, **attrs: object) -> Case:
    attrs = {"shape": [-1, 7], "value": 2.5} | attrs
    by_rows = not isinstance(x, LoDTensor)  # sequences are counted while running only
    return Case(
        "fill_constant_batch_size_like",
        {"Input": x},
        lambda: np.full(result, 2.5, np.float32),
        attrs,
        check_shape=by_rows,
        note=note,
    )


CASES = [
    fill("float", np.full((2, 3), 2.75, np.float32), shape=[2, 3], value=2.75),
    fill("no-dims", np.float32(2.75), shape=[], value=2.75),
    fill("no-rows", np.zeros((0, 3), np.float32), shape=[0, 3], value=2.75),
    fill("cut", np.array([2, 2]), shape=[2], value=2.75, dtype=3),
    fill("bool", np.array([True]), shape=[1], value=2.75, dtype=0),
    fill("half", np.full(2, 3.9, np.float16), shape=[2], str_value="3.9", dtype=4),
    fill("exact", np.array([2**53 + 1]), shape=[1], str_value=str(2**53 + 1), dtype=3),
    fill("infinite", np.array([-np.inf]), shape=[1], str_value="-inf", dtype=6),
    fill("text", np.array([1e-3]), shape=[1], str_value="1e-3", value=7.0, dtype=6),
    fill(
        "shape-tensor",
        np.full((3, 1), 2.75, np.float32),
        {"ShapeTensor": np.array([3, 1], np.int32)},
        value=2.75,
    ),
    fill(
        "shape-tensors",
        np.full((4, 3), 2.75, np.float32),
        {"ShapeTensorList": [one(4, "int32"), one(3, "int64")]},
        shape=[-1, 3],
        value=2.75,
    ),
    fill("tensor", np.full(2, 4, np.float32), {"ValueTensor": one(4)}, shape=[2], value=1.0),
    like("rows", (5, 7)),
    like("columns", (3, 2), shape=[3, -1], input_dim_idx=1, output_dim_idx=1),
    like("sequences", (3, 7), SEQUENCES),
    like("columns-of-sequences", (2, 7), SEQUENCES, input_dim_idx=1),
    Case("fill_zeros_like", {"X": X}, lambda X: X * 0),
    Case("fill_zeros_like", {"X": WHOLE}, lambda X: X * 0, note="whole"),
    Case("fill_zeros_like2", {"X": X}, lambda X: np.zeros((5, 2), np.int64), {"dtype": 3}),
    Case("fill_any_like", {"X": X}, lambda X: X * 0 + 3.5, {"value": 3.5}),
    Case(
        "fill_any_like",
        {"X": X},
        lambda X: np.full((5, 2), -3),
        {"value": -3.5, "dtype": 3},
        note="whole",
    ),
    Case(
        "fill",
        {},
        lambda: np.array([[1, 2], [3, 4]]),
        {"value": [1.0, 2.0, 3.0, 4.75], "shape": [2, 2], "dtype": 3},
    ),
    *(
        Case(
            "assign_value",
            {},
            lambda: np.array([[1, 0], [0, 1]]),
            {"shape": [2, 2], "dtype": number, name: [1, 0, 0, 1]},
            note=name,
        )
        for number, name in (
            (0, "bool_values"),
            (2, "int32_values"),
            (3, "int64_values"),
            (5, "fp32_values"),
        )
    ),
    Case("eye", {}, lambda: np.array([[1, 0, 0], [0, 1, 0]]), {"num_rows": 2, "num_columns": 3}),
    Case("eye", {}, lambda: np.identity(3, np.int64), {"num_rows": 3, "dtype": 3}, note="square"),
    Case("diag", {"Diagonal": X[:, 0]}, lambda Diagonal: np.eye(5) * Diagonal),
    Case(
        "diag_embed",
        {"Input": X},
        lambda Input: np.stack([np.diag(row) for row in Input]),
    ),
    Case(
        "diag_embed",
        {"Input": X},
        lambda Input: np.stack([np.diag(row, 2) for row in Input], 1),
        {"offset": -2, "dim1": 2, "dim2": 0},
        note="turned",
    ),
    # Values of the real 1.8.5, where the steps are added up in the element type.
    Case(
        "range",
        {"Start": one(0), "End": one(1), "Step": one(0.1)},
        lambda: np.array(
            [
                0,
                0.10000000149011612,
                0.20000000298023224,
                0.30000001192092896,
                0.4000000059604645,
                0.5,
                0.6000000238418579,
                0.7000000476837158,
                0.8000000715255737,
                0.9000000953674316,
            ]
        ),
        atol=0,
        rtol=0,
    ),
    Case(
        "range",
        {"Start": one(10, "int32"), "End": one(0, "int32"), "Step": one(-3, "int32")},
        lambda: np.array([10, 7, 4, 1]),
        note="down",
    ),
    Case(
        "range",
        {"Start": one(1), "End": one(2.05), "Step": one(0.35)},
        lambda: np.array([1, 1.35, 1.7], np.float32),
        note="end-excluded",
    ),
    Case(
        "range",
        {"Start": one(5), "End": one(5), "Step": one(1)},
        lambda: np.zeros(0, np.float32),
        note="empty",
    ),
    Case(
        "linspace",
        {"Start": one(-1.3), "Stop": one(77.7), "Num": one(12, "int32")},
        lambda: np.array(
            [
                -1.2999999523162842,
                5.881817817687988,
                13.06363582611084,
                20.245452880859375,
                27.427270889282227,
                34.60908889770508,
                41.79090881347656,
                48.97272491455078,
                56.154541015625,
                63.33635711669922,
                70.51817321777344,
                77.69998931884766,
            ]
        ),
        atol=0,
        rtol=0,
    ),
    Case(
        "linspace",
        {"Start": one(3), "Stop": one(-2), "Num": one(1, "int32")},
        lambda: np.array([3], np.float32),
        note="one",
    ),
    Case("shape", {"Input": X}, lambda: np.array([5, 2], np.int32)),
]
