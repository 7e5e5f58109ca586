"""Points at which fused operators are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, I64 = "float32", "int64"
LOD = [[0, 3, 4, 7]]
_rng = np.random.RandomState(41)


def real(*shape):
    return _rng.uniform(-1, 1, shape).astype(F32)


#: What a kernel works on has no value here.
_GRU = ("ReorderedH0", "XX", "BatchedInput", "BatchedOut")
_LSTM = ("XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0")
for _note, _attrs in (
    ("", {}),
    ("batch", {"use_seq": False}),
    ("reverse", {"is_reverse": True}),
    ("origin", {"origin_mode": True, "activation": "relu"}),
):
    _given = {"X": (real(7, 5), LOD), "WeightX": real(5, 12), "WeightH": real(4, 12), "Bias": real(1, 12)}
    if _note != "reverse":
        _given["H0"] = real(3, 4)
    case("fusion_gru", _given, dict.fromkeys([*_GRU, "Hidden"], F32), "", _note, ignore=_GRU, **_attrs)
for _note, _bias, _attrs in (
    ("", 28, {}),
    ("plain", 16, {"use_peepholes": False}),
    ("batch", 28, {"use_seq": False}),
    ("reverse", 28, {"is_reverse": True}),
    ("relu", 16, {"use_peepholes": False, "candidate_activation": "relu", "cell_activation": "relu"}),
):
    _states = {"H0": real(3, 4), "C0": real(3, 4)} if _note != "reverse" else {}
    _given = dict({"WeightH": real(4, 16), "Bias": real(1, _bias)}, **_states)
    _outputs = dict.fromkeys(["Hidden", "Cell", *_LSTM], F32)
    case(
        "fusion_lstm", dict(_given, X=(real(7, 5), LOD), WeightX=real(5, 16)),
        dict(_outputs, CheckedCell=F32), "", _note, ignore=(*_LSTM, "CheckedCell"), **_attrs
    )  # fmt: skip
    _ids = _rng.randint(0, 9, (7, 1)).astype(I64)
    case(
        "fused_embedding_fc_lstm", dict(_given, Ids=(_ids, LOD), Embeddings=real(9, 16)),
        _outputs, "", _note, ignore=_LSTM, **_attrs
    )  # fmt: skip

for _note, _x, _attrs in (
    ("", real(3, 5), {}),
    ("relu", real(3, 5), {"activation_type": "relu"}),
    ("dims", real(2, 3, 5), {"in_num_col_dims": 2}),
    ("flat", real(2, 5, 1), {}),
):
    case("fc", {"Input": _x, "W": real(5, 4), "Bias": real(1, 4)}, {"Out": F32}, "", _note, **_attrs)
case("fc", {"Input": real(3, 5), "W": real(9, 8)}, {"Out": F32}, "", "padding", padding_weights=True)
case(
    "fusion_repeated_fc_relu",
    {"X": real(3, 5), "W": [real(5, 4), real(4, 6), real(6, 3)], "Bias": [real(1, 4), real(6), real(1, 3)]},
    {"ReluOut": [F32, F32], "Out": F32},
)
case(
    "fusion_squared_mat_sub", {"X": real(3, 5), "Y": real(5, 4)},
    dict.fromkeys(["SquaredX", "SquaredY", "SquaredXY", "Out"], F32), scalar=0.5
)  # fmt: skip

for _kind in ("SUM", "AVERAGE", "SQRT"):
    _xs = [(np.abs(real(7, 4)), LOD), (np.abs(real(5, 4)), [[0, 2, 3, 5]])]
    case("fusion_seqpool_concat", {"X": _xs}, {"Out": F32}, "", _kind.lower(), pooltype=_kind)
    _xs = [(np.abs(real(7, 4)), LOD), (np.abs(real(5, 4)), [[0, 2, 3, 5]])]
    case(
        "fusion_seqpool_cvm_concat", {"X": _xs, "CVM": real(3, 2)}, {"Out": F32}, "", _kind.lower(),
        pooltype=_kind
    )  # fmt: skip
for _note, _columns, _attrs in (("", 1, {}), ("padding", 1, {"padding_idx": 2})):
    _ids = _rng.randint(0, 5, (7, _columns)).astype(I64)
    case(
        "fused_embedding_seq_pool", {"W": real(5, 3), "Ids": (_ids, LOD)}, {"Out": F32},
        "W" if not _attrs else "", _note, **_attrs
    )  # fmt: skip
for _start, _length in ((-1, 3), (0, 2), (-2, 3)):
    case(
        "fusion_seqconv_eltadd_relu",
        {"X": (real(7, 4), LOD), "Filter": real(4 * _length, 3), "Bias": real(1, 3)},
        {"Out": F32, "ColMat": F32}, "", f"{_start}", contextLength=_length, contextStart=_start
    )  # fmt: skip
for _act in ("identity", "relu", "tanh"):
    case(
        "fusion_seqexpand_concat_fc",
        {"X": [(real(7, 4), LOD), (real(3, 2), [[0, 1, 2, 3]]), (real(3, 3), [[0, 1, 2, 3]])],
         "FCWeight": real(9, 5), "FCBias": real(1, 5)},
        {"Out": F32, "FCOut": F32}, "", _act, ignore=("FCOut",), fc_activation=_act
    )  # fmt: skip

for _functors in (
    ["elementwise_add", "relu"], ["relu", "elementwise_add"], ["elementwise_mul", "scale"],
    ["elementwise_add", "scale"], ["scale", "elementwise_add"], ["tanh", "elementwise_add"],
    ["elementwise_mul", "tanh"], ["elementwise_mul", "sigmoid"],
):  # fmt: skip
    for _keep in (False, True):
        # The gradient of Y is odd when tanh(Y) is not kept: tests/framework/test_quirks.py checks it.
        _exact = _keep or _functors[1] not in ("tanh", "sigmoid")
        case(
            "fused_elemwise_activation", {"X": real(2, 3, 4), "Y": real(3, 4) if _keep else real(3)},
            {"Out": F32, "IntermediateOut": F32}, "X Y" if _exact else "X",
            f"{'-'.join(_functors)}-{_keep}", ["Out"],
            functor_list=_functors, scale=0.5, axis=1, save_intermediate_out=_keep
        )  # fmt: skip
for _note, _more in (
    ("", {"H0": real(3, 4), "AttentionBias": real(1, 1)}),
    ("scalar", {"AttentionScalar": real(1, 1) + np.array(1, F32), "AttentionScalarBias": real(1, 1)}),
):
    _given = {
        "X": (real(7, 5), LOD), "C0": real(3, 4), "AttentionWeight": real(9, 1),
        "LSTMWeight": real(9, 16), "LSTMBias": real(1, 16),
    }  # fmt: skip
    _rest = ("AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT")
    case(
        "attention_lstm", dict(_given, **_more), dict.fromkeys(["Hidden", "Cell", *_rest], F32), "", _note,
        ignore=_rest
    )  # fmt: skip
