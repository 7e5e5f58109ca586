"""Points at which operators of fluid.contrib are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well:

    python3.7 -m tests.interop.dumps.dump_cases tests.ops.contrib.recorded_cases contrib.json.gz
"""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

CASES = {}
case = partial(add_case, CASES)
_rng = np.random.RandomState(50)

F32, F64, I32, I64 = "float32", "float64", "int32", "int64"
SHUFFLED = {"Out": F32, "ShuffleIdx": I64, "SeedOut": I64}


def real(*shape, dtype=F32):
    return _rng.uniform(-1, 1, shape).astype(dtype)


for _seed in (0, 1, 2, -5, 12345, 2**31 - 1, 2**40 + 3):
    for _rows in (1, 2, 7, 130):
        case(
            "shuffle_batch",
            {"X": real(_rows, 2), "Seed": np.array([_seed], "int64")},
            SHUFFLED,
            wrt="X",
            note=f"{_seed}-{_rows}",
            startup_seed=9,
        )
case(
    "shuffle_batch",
    {"X": real(2, 3, 2), "Seed": np.array([4], "int64")},
    SHUFFLED, wrt="X", note="three-dims", startup_seed=0,
)  # fmt: skip
case(
    "shuffle_batch",
    {"X": (real(5, 3), [[0, 2, 5]]), "Seed": np.array([4], "int64")},
    SHUFFLED, wrt="X", note="lod", startup_seed=0,
)  # fmt: skip

TREE = np.array(
    [[0, 0, 0, 1, 0], [0, 1, 0, 2, 3], [0, 2, 1, 4, 5], [0, 2, 1, 6, 0], [1, 3, 2, 0, 0], [2, 3, 2, 0, 0],
     [3, 3, 3, 0, 0]], I32,
)  # fmt: skip
for _dtype, _number in ((I32, 2), (I64, 3)):
    for _note, _x in {
        "column": np.array([[0], [1], [2], [3], [4], [6]], _dtype),
        "lod": (np.array([[1], [2], [3]], _dtype), [[0, 1, 3]]),
        "wide": np.array([[1, 2, 3], [3, 2, 1]], _dtype),
        "flat": np.array([1, 2], _dtype),
    }.items():
        case(
            "tdm_child",
            {"X": _x, "TreeInfo": TREE.astype(_dtype)},
            {"Child": _dtype, "LeafMask": _dtype},
            note=_note + "-" + _dtype, child_nums=2, dtype=_number,
        )  # fmt: skip

TRAVEL = np.array([[1, 3, 0], [1, 4, 0], [2, 5, 7], [2, 6, 8]], I32)
LAYER = np.arange(1, 9, dtype=I32).reshape(8, 1)
for _seed in (1, 7, 100):
    for _positive in (True, False):
        case(
            "tdm_sampler",
            {"X": np.array([[0], [1], [2], [3], [3]], I32), "Travel": TRAVEL, "Layer": LAYER},
            {"Out": I32, "Labels": I32, "Mask": I32},
            note=f"{_seed}-{_positive}",
            neg_samples_num_list=[1, 3, 1], layer_offset_lod=[0, 2, 6, 8], output_positive=_positive,
            seed=_seed, dtype=2,
        )  # fmt: skip
case(
    "tdm_sampler",
    {
        "X": np.arange(400).reshape(400, 1) % 300,
        "Travel": np.array([[1 + i % 20, 21 + i] for i in range(300)]),
        "Layer": np.arange(1, 321).reshape(320, 1),
    },
    {"Out": I64, "Labels": I64, "Mask": I64},
    note="many", neg_samples_num_list=[3, 20], layer_offset_lod=[0, 20, 320], output_positive=True,
    seed=3, dtype=3,
)  # fmt: skip

for _dtype in (F32, F64):
    for _start, _length in ((0, -1), (1, 2), (-2, 1), (-3, -1)):
        # The real partial_sum reads out of bounds for a negative start, and dies.
        for _type in ("partial_concat", "partial_sum") if _start >= 0 else ("partial_concat",):
            case(
                _type,
                {"X": [real(4, 5, dtype=_dtype) for _ in range(3)]},
                {"Out": _dtype},
                wrt="X",
                note=f"{_start}-{_length}-{_dtype}",
                start_index=_start, length=_length,
            )  # fmt: skip
