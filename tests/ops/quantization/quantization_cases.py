"""Points at which quantization is compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, I64 = "float32", "int64"
_rng = np.random.RandomState(43)


def real(*shape):
    return _rng.uniform(-3, 3, shape).astype(F32)


def one(value, dtype=F32):
    return np.array([value], dtype)


for _bits in (8, 4):
    for _type in ("fake_quantize_abs_max", "fake_channel_wise_quantize_abs_max"):
        case(_type, {"X": real(3, 4, 2, 2)}, {"Out": F32, "OutScale": F32}, "", str(_bits), bit_length=_bits)
for _type in ("fake_quantize_abs_max", "fake_channel_wise_quantize_abs_max"):
    case(_type, {"X": np.zeros((2, 3), F32)}, {"Out": F32, "OutScale": F32}, "", "zeros")
_sums = {"InAccum": one(2.2), "InState": one(1.7)}
_names = {"Out": F32, "OutScale": F32, "OutState": F32, "OutAccum": F32}
for _type in ("fake_quantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max"):
    case(_type, dict({"X": real(3, 5), "InScale": one(1.5)}, **_sums), _names, "", "", moving_rate=0.8)
    case(
        _type, {"X": real(3, 5), "InScale": one(1.5)}, {"Out": F32, "OutScale": F32}, "", "test", is_test=True
    )
case("moving_average_abs_max_scale", dict({"X": real(3, 5)}, **_sums), _names, ignore=("Out",))
case(
    "fake_quantize_range_abs_max",
    {"X": real(3, 5), "InScale": one(1.5), "Iter": one(0, I64)},
    {"Out": F32, "OutScale": F32, "OutScales": F32}, "", "", ignore=("OutScales",), window_size=4
)  # fmt: skip
case(
    "fake_quantize_range_abs_max",
    {"X": real(3, 5), "InScale": one(1.5), "Iter": one(3, I64)},
    {"Out": F32, "OutScale": F32}, "", "test", is_test=True
)  # fmt: skip
case("fake_dequantize_max_abs", {"X": real(3, 5), "Scale": one(1.5)}, {"Out": F32}, max_range=127.0)
case(
    "fake_channel_wise_dequantize_max_abs", {"X": real(3, 4, 2), "Scales": [real(3)]}, {"Out": F32},
    "", "one", quant_bits=[8]
)  # fmt: skip
case(
    "fake_channel_wise_dequantize_max_abs", {"X": real(3, 4), "Scales": [real(4), one(0.7)]}, {"Out": F32},
    "", "two", quant_bits=[8, 6]
)  # fmt: skip
_bytes = _rng.randint(-128, 128, (3, 5)).astype("int8")
case("dequantize_abs_max", {"X": _bytes, "Scale": one(0.4)}, {"Out": F32}, max_range=127.0)
case("dequantize_log", {"X": _bytes, "Dict": np.abs(real(128))}, {"Out": F32})
_table = np.concatenate([real(5, 2), _rng.randint(0, 2**30, (5, 3)).astype("int32").view(F32)], 1)
for _note, _padding in (("", -1), ("padding", 2)):
    case(
        "lookup_table_dequant", {"W": _table, "Ids": np.array([[0], [2], [4], [2]], I64)}, {"Out": F32}, "",
        _note, padding_idx=_padding
    )  # fmt: skip
