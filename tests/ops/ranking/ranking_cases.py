"""Points at which operators of ranking, and similarity_focus, are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, F64, I64 = "float32", "float64", "int64"
_rng = np.random.RandomState(37)

_x, _counts = _rng.uniform(0, 9, (5, 6)).astype(F32), _rng.uniform(0, 3, (5, 2)).astype(F32)
for _use in (True, False):
    case("cvm", {"X": _x, "CVM": _counts}, {"Y": F32}, "X", f"rows-{_use}", use_cvm=_use)
    _given = {"X": (_x, [[0, 2, 5]]), "CVM": _counts[:2]}
    case("cvm", _given, {"Y": F32}, "X", f"sequences-{_use}", use_cvm=_use)
case("cvm", {"X": _x.astype(F64), "CVM": _counts.astype(F64)}, {"Y": F64}, "X", "float64")

_tags = np.array([[1], [2], [1], [3], [2], [7]], I64)
_ins = _rng.standard_normal((5, 3))
for _note, _lod, _wanted in (
    ("", None, [1]),
    ("several", None, [2, 7]),
    ("none", None, [9]),
    ("lod", [0, 2, 3, 5], [2]),
):
    _offsets = [0, 1, 2, 3, 4, 6] if _lod is None else [0, 1, 3, 6]
    case(
        "filter_by_instag",
        {
            "Ins": _ins if _lod is None else (_ins, [_lod]),
            "Ins_tag": (_tags, [_offsets]),
            "Filter_tag": np.array(_wanted, I64),
        },
        {"Out": F64, "LossWeight": F64, "IndexMap": I64},
        "Ins", _note, is_lod=_lod is not None, out_val_if_empty=3
    )  # fmt: skip

_x = _rng.standard_normal((2, 3, 4, 5)).astype(F32)
for _axis in (1, 2, 3):
    case("similarity_focus", {"X": _x}, {"Out": F32}, "", f"axis{_axis}", axis=_axis, indexes=[0, 2])
_ties = np.round(_rng.uniform(0, 3, (2, 2, 6, 7))).astype(F64)
case("similarity_focus", {"X": _ties}, {"Out": F64}, "", "ties", axis=1, indexes=[1])
