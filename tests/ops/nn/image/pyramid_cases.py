"""Points at which rarely used operators of layers and metrics are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, I32, I64 = "float32", "int32", "int64"
_rng = np.random.RandomState(53)


def real(*shape):
    return _rng.uniform(-1, 1, shape).astype(F32)


for _kind in ("max", "avg"):
    for _height, _shape in ((1, (2, 3, 5, 4)), (2, (2, 3, 5, 4)), (3, (1, 2, 8, 9))):
        case("spp", {"X": real(*_shape)}, {"Out": F32}, "X", f"{_kind}{_height}",
             pyramid_height=_height, pooling_type=_kind)  # fmt: skip
_places = np.stack([_rng.permutation(36)[:9].reshape(3, 3) for _ in range(4)]).reshape(2, 2, 3, 3)
case(
    "unpool", {"X": real(2, 2, 3, 3), "Indices": _places.astype(I32)}, {"Out": F32}, "X", "",
    ksize=[2, 2], strides=[2, 2], paddings=[0, 0], unpooling_type="max"
)  # fmt: skip
for _width in (1, 3, 5):
    case("conv_shift", {"X": real(3, 5), "Y": real(3, _width)}, {"Out": F32}, "X Y", str(_width))
_labels = _rng.randint(0, 3, (9, 1)).astype(F32)
_given = {
    "Score": np.round(real(9, 2), 1),
    "Label": _labels,
    "QueryID": np.array([[1], [1], [2], [1], [2], [2], [1], [3], [2]], I64),
}
_pairs = {"PositivePair": F32, "NegativePair": F32, "NeutralPair": F32}
case("positive_negative_pair", _given, _pairs, "", "", column=1)
_before = {f"Accumulate{name}": real(1) + np.array(3, F32) for name in _pairs}
case(
    "positive_negative_pair",
    dict(_given, Weight=np.abs(real(9, 1)), **_before),
    _pairs,
    "",
    "weights",
    column=-1,
)
