# ruff: noqa: SIM905  (lists of names read better as text)
"""Points at which operators on sequences are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well (``tests/interop/dumps/dump_cases.py``). Left out is what Fluid
refuses or gets wrong: sequences without rows that have initial states (its gradients read foreign memory),
LSTMs of a width that is a multiple of 8 with a clipped cell (it clips the gradients of eight cells by the
first).
"""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

CASES = {}
case = partial(add_case, CASES)

F32, I32, I64 = "float32", "int32", "int64"
L1, L2, LF, LG = [[0, 2, 2, 5]], [[0, 2, 3], [0, 2, 2, 5]], [[0, 2, 5]], [[0, 1, 4]]
_rng = np.random.RandomState(7)


def real(*shape, scale=1.0):
    return (_rng.uniform(-1, 1, shape) * scale).astype(F32)


def below(high, *shape):
    return _rng.randint(0, high, shape).astype(I64)


def ids(*numbers, dtype=I64):
    return np.array(numbers, dtype).reshape(-1, 1)


# Pools and softmax

for _kind in "AVERAGE SUM SQRT MAX LAST FIRST".split():
    for _note, _lod in (("", LF), ("-empty", L1), ("-levels", L2)):
        case(
            "sequence_pool",
            {"X": (real(5, 3), _lod)},
            {"Out": F32, "MaxIndex": I32},
            "X",
            _kind.lower() + _note,
            pooltype=_kind,
            pad_value=0.5,
        )
case(
    "sequence_pool",
    {"X": (real(5, 3), L1)},
    {"Out": F32, "MaxIndex": I32},
    note="test",
    pooltype="MAX",
    is_test=True,
)
case("sequence_pool", {"X": (real(5, 3, 2), L1)}, {"Out": F32, "MaxIndex": I32}, "X", "3d", pooltype="MAX")
for _note, _lod in (("", LF), ("empty", L1), ("levels", L2)):
    case("sequence_softmax", {"X": (real(5, 1), _lod)}, {"Out": F32}, "X", _note)

# Repeated and joined

case("sequence_expand", {"X": real(2, 3), "Y": (real(5, 1), LF)}, {"Out": F32}, "X", "rows")
case("sequence_expand", {"X": (real(4, 3), LG), "Y": (real(5, 1), LF)}, {"Out": F32}, "X")
case(
    "sequence_expand",
    {"X": (real(4, 3), LG), "Y": (real(5, 1), L2)},
    {"Out": F32},
    "X",
    "level0",
    ref_level=0,
)
case("sequence_expand", {"X": real(3, 3), "Y": (real(5, 1), L2)}, {"Out": F32}, "X", "level1", ref_level=1)
case("sequence_expand_as", {"X": real(2, 3), "Y": (real(5, 1), LF)}, {"Out": F32}, "X")
case("sequence_expand_as", {"X": real(3, 3), "Y": (real(5, 1), L1)}, {"Out": F32}, "X", "empty")
case("sequence_expand_as", {"X": (real(2, 3), [[0, 1, 2]]), "Y": (real(5, 1), LF)}, {"Out": F32}, "X", "lod")
case("sequence_concat", {"X": [(real(5, 3), LF), (real(4, 3), LG)]}, {"Out": F32}, "X")
case("sequence_concat", {"X": [(real(5, 3, 2), L1), (real(5, 3, 2), L1)]}, {"Out": F32}, "X", "empty")

# Cut, turned, padded

case("sequence_reshape", {"X": (real(6, 4), [[0, 2, 6]])}, {"Out": F32}, "X", "wider", new_dim=8)
case("sequence_reshape", {"X": (real(6, 4), [[0, 2, 6]])}, {"Out": F32}, "X", "narrower", new_dim=2)
case("sequence_reverse", {"X": (real(5, 3), L1)}, {"Y": F32}, "X")
case("sequence_slice", {"X": (real(5, 3), LF), "Offset": ids(1, 0), "Length": ids(1, 2)}, {"Out": F32}, "X")
case("sequence_pad", {"X": (real(5, 3), LF), "PadValue": real(1)}, {"Out": F32, "Length": I64}, "X")
case(
    "sequence_pad",
    {"X": (real(5, 3), L1), "PadValue": real(3)},
    {"Out": F32, "Length": I64},
    "X",
    "row",
    padded_length=4,
)
case("sequence_unpad", {"X": real(3, 4, 2), "Length": ids(2, 0, 4)[:, 0]}, {"Out": F32}, "X")
case("sequence_unpad", {"X": real(3, 4), "Length": ids(2, 1, 4)[:, 0]}, {"Out": F32}, "X", "numbers")
case("sequence_mask", {"X": ids(2, 0, 4)[:, 0]}, {"Y": F32}, out_dtype=5)
case("sequence_mask", {"X": ids(2, 4)}, {"Y": I64}, note="2d", out_dtype=3, maxlen=3)
case(
    "sequence_mask",
    {"X": ids(2, 0, 4)[:, 0], "MaxLenTensor": np.array([6], I32)},
    {"Y": I32},
    note="tensor",
    out_dtype=2,
)
case("sequence_enumerate", {"X": (below(9, 5, 1), L1)}, {"Out": I64}, win_size=3, pad_value=7)
case("sequence_erase", {"X": (ids(1, 2, 3, 2, 5), LF)}, {"Out": I64}, tokens=[2, 5])
case("sequence_erase", {"X": (ids(1, 2, 3, 2, 5), L2)}, {"Out": I64}, note="levels", tokens=[2, 5])
case(
    "sequence_scatter",
    {"X": real(2, 6), "Ids": (ids(0, 1, 1, 4, 5), LF), "Updates": (real(5, 1), LF)},
    {"Out": F32},
    "X Updates",
)
case("lod_reset", {"X": (real(5, 2), LF)}, {"Out": F32}, "X", target_lod=[0, 4, 5])
case(
    "lod_reset",
    {"X": (real(5, 2), LF)},
    {"Out": F32},
    "X",
    "append",
    target_lod=[0, 1, 2, 3, 4, 5],
    append=True,
)
case("lod_reset", {"X": (real(5, 2), LF), "Y": np.array([0, 1, 5], I32)}, {"Out": F32}, "X", "offsets")
case("lod_reset", {"X": real(5, 2), "Y": (real(5, 1), L2)}, {"Out": F32}, "X", "like")
case(
    "lod_reset", {"X": (real(5, 2), LF), "Y": (real(5, 1), L2)}, {"Out": F32}, "X", "append-like", append=True
)

# Convolutions

for _start, _length in ((-1, 3), (0, 2), (1, 2), (-2, 5)):
    case(
        "sequence_conv",
        {"X": (real(6, 2), [[0, 2, 2, 6]]), "Filter": real(2 * _length, 3)},
        {"Out": F32},
        "X Filter",
        f"{_length}-from-{_start}",
        contextLength=_length,
        contextStart=_start,
    )
for _start, _length in ((-1, 3), (-2, 5), (1, 3)):
    _rows = max(0, -_start) + max(0, _start + _length - 1)
    case(
        "sequence_conv",
        {"X": (real(6, 2), [[0, 1, 6]]), "Filter": real(2 * _length, 3), "PaddingData": real(_rows, 2)},
        {"Out": F32},
        "X Filter PaddingData",
        f"trained-{_length}-from-{_start}",
        contextLength=_length,
        contextStart=_start,
        paddingTrainable=True,
    )
case("im2sequence", {"X": real(2, 3, 5, 4)}, {"Out": F32}, "X", kernels=[2, 2])
case(
    "im2sequence",
    {"X": real(2, 3, 5, 4)},
    {"Out": F32},
    "X",
    "uneven",
    kernels=[2, 3],
    strides=[2, 1],
    paddings=[1, 0, 0, 2],
)
case(
    "im2sequence",
    {"X": real(2, 3, 6, 6), "Y": np.array([[12, 11], [8, 9]], F32)},
    {"Out": F32},
    note="sizes",
    kernels=[2, 2],
    strides=[2, 1],
    paddings=[1, 0, 1, 0],
    out_stride=[2, 2],
)

# Recurrent operators

LR = [[0, 2, 7, 8, 11]]
_LSTM = {"Hidden": F32, "Cell": F32, "BatchGate": F32, "BatchCellPreAct": F32}
_LSTMP = {"Projection": F32, "Cell": F32, "BatchGate": F32, "BatchCellPreAct": F32, "BatchHidden": F32}


def lstm(note, width=3, projected=0, first=False, lod=None, scale=1.0, **attrs):
    lod = lod or LR
    rows, count = lod[-1][-1], len(lod[-1]) - 1
    fed_back = projected or width
    biases = 7 if attrs.get("use_peepholes", True) else 4
    inputs = {
        "Input": (real(rows, 4 * width, scale=scale), lod),
        "Weight": real(fed_back, 4 * width),
        "Bias": real(1, biases * width),
    }
    if projected:
        inputs["ProjWeight"] = real(width, projected)
    if first:
        inputs["H0"], inputs["C0"] = real(count, fed_back), real(count, width)
    type, outputs = ("lstmp", _LSTMP) if projected else ("lstm", _LSTM)
    case(type, inputs, outputs, " ".join(inputs), note, **attrs)


lstm("")
lstm("plain", use_peepholes=False)
lstm("reverse", is_reverse=True)
lstm("first", first=True)
lstm("first-reverse", first=True, is_reverse=True)
lstm("activations", gate_activation="tanh", cell_activation="relu", candidate_activation="sigmoid")
lstm("identity", cell_activation="identity", candidate_activation="relu")
lstm("width-8", width=8, first=True)
lstm("width-16", width=16, use_peepholes=False)
lstm("empty", lod=[[0, 2, 2, 7, 8, 11]])
lstm("large", scale=40.0)
lstm("", projected=2)
lstm("plain", projected=2, use_peepholes=False)
lstm("reverse-first", projected=2, is_reverse=True, first=True)
lstm("width-8", projected=2, width=8)
lstm("width-8-clip-far", projected=2, width=8, cell_clip=20.0)
lstm("cell-clip", projected=2, cell_clip=0.2)
lstm("projection-clip", projected=2, proj_clip=0.1)
lstm("identity", projected=2, proj_activation="identity")
lstm("activations", projected=2, proj_activation="relu", cell_activation="sigmoid")


def gru(note, width=3, first=False, bias=True, lod=None, **attrs):
    lod = lod or LR
    inputs = {"Input": (real(lod[-1][-1], 3 * width), lod), "Weight": real(width, 3 * width)}
    if bias:
        inputs["Bias"] = real(1, 3 * width)
    if first:
        inputs["H0"] = real(len(lod[-1]) - 1, width)
    outputs = {"Hidden": F32, "BatchGate": F32, "BatchResetHiddenPrev": F32, "BatchHidden": F32}
    case("gru", inputs, outputs, " ".join(inputs), note, **attrs)


gru("")
gru("without-bias", bias=False)
gru("reverse", is_reverse=True)
gru("first-origin", first=True, origin_mode=True)
gru("activations", activation="relu", gate_activation="tanh")
gru("width-8", width=8)
gru("empty", lod=[[0, 2, 2, 7, 8, 11]])

for _note, _attrs in {
    "": {},
    "origin": {"origin_mode": True},
    "relu-tanh": {"activation": 3, "gate_activation": 2},
    "identity": {"activation": 0},
}.items():
    _inputs = {"Input": real(5, 9), "HiddenPrev": real(5, 3), "Weight": real(3, 9), "Bias": real(1, 9)}
    if _note == "identity":
        del _inputs["Bias"]
    case(
        "gru_unit",
        _inputs,
        {"Hidden": F32, "Gate": F32, "ResetHiddenPrev": F32},
        " ".join(_inputs),
        _note,
        **_attrs,
    )
case(
    "lstm_unit",
    {"X": real(5, 12), "C_prev": real(5, 3)},
    {"C": F32, "H": F32},
    "X C_prev",
    through=["C", "H"],
    forget_bias=0.5,
)

# Conditional random fields

_CRF = {"LogLikelihood": F32, "Alpha": F32, "EmissionExps": F32, "TransitionExps": F32}
for _note, _lod in (("", [[0, 3, 4, 9]]), ("short", [[0, 1, 2]])):
    _rows = _lod[0][-1]
    case(
        "linear_chain_crf",
        {
            "Emission": (real(_rows, 4, scale=2), _lod),
            "Transition": real(6, 4),
            "Label": (below(4, _rows, 1), _lod),
        },
        _CRF,
        "Emission Transition",
        _note,
    )
case(
    "linear_chain_crf",
    {
        "Emission": real(3, 5, 4, scale=2),
        "Transition": real(6, 4),
        "Label": below(4, 3, 5, 1),
        "Length": ids(3, 5, 1),
    },
    _CRF,
    "Emission Transition",
    "padded",
    ignore=("Alpha", "EmissionExps"),
)
for _note, _label in (("", {}), ("label", {"Label": (below(4, 9, 1), [[0, 3, 4, 9]])})):
    case(
        "crf_decoding",
        dict({"Emission": (real(9, 4, scale=2), [[0, 3, 4, 9]]), "Transition": real(6, 4)}, **_label),
        {"ViterbiPath": I64},
        note=_note,
    )
for _note, _label in (("padded", {}), ("padded-label", {"Label": below(4, 3, 5)})):
    case(
        "crf_decoding",
        dict(
            {"Emission": real(3, 5, 4, scale=2), "Transition": real(6, 4), "Length": ids(3, 5, 1)}, **_label
        ),
        {"ViterbiPath": I64},
        note=_note,
    )

# CTC

_CTC = {"Loss": F32, "WarpCTCGrad": F32}
_words = ids(1, 2, 2, 1, 2, 1, 1, dtype=I32)
for _note, _attrs in {"": {}, "blank": {"blank": 3}, "times": {"norm_by_times": True}}.items():
    case(
        "warpctc",
        {"Logits": (real(12, 5, scale=3), [[0, 5, 6, 12]]), "Label": (_words, [[0, 2, 3, 7]])},
        _CTC,
        "Logits",
        _note,
        **_attrs,
    )
case(
    "warpctc",
    {"Logits": (real(12, 5, scale=3), [[0, 5, 6, 12]]), "Label": (_words, [[0, 2, 4, 7]])},
    _CTC,
    "Logits",
    "does-not-fit",
)
case(
    "warpctc",
    {"Logits": (real(12, 5, scale=3), [[0, 5, 6, 12]]), "Label": (_words[:5], [[0, 2, 2, 5]])},
    _CTC,
    "Logits",
    "no-label",
)
for _note, _attrs in {"padded": {}, "padded-times": {"norm_by_times": True}}.items():
    case(
        "warpctc",
        {
            "Logits": real(7, 3, 5, scale=3),
            "Label": np.array([[1, 2, 0], [3, 0, 0], [1, 1, 4]], I32),
            "LogitsLength": ids(5, 2, 6)[:, 0],
            "LabelLength": ids(2, 1, 3)[:, 0],
        },
        _CTC,
        "Logits",
        _note,
        **_attrs,
    )
case("ctc_align", {"Input": (ids(0, 1, 1, 0, 2, 2, 0, 3, 3, 0, 0, 1), [[0, 6, 12]])}, {"Output": I64})
case(
    "ctc_align",
    {"Input": (ids(0, 1, 1, 0, 2, 2, 2, 3, 3, 0, 0, 1), [[0, 6, 12]])},
    {"Output": I64},
    note="all",
    merge_repeated=False,
    blank=1,
)
case("ctc_align", {"Input": (ids(0, 0, 0), [[0, 1, 3]])}, {"Output": I64}, note="nothing")
case(
    "ctc_align",
    {"Input": np.array([[0, 1, 1, 0, 2, 2], [2, 3, 3, 0, 0, 1]]), "InputLength": ids(6, 3)},
    {"Output": I64, "OutputLength": I64},
    note="padded",
    padding_value=9,
)

# Search

_BEAM = {"selected_ids": I64, "selected_scores": F32, "parent_idx": I32}
_SOURCES = [[0, 2, 4], [0, 1, 2, 3, 4]]
_CHANCES = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.5, 0.1], [0.7, 0.5, 0.1]], F32)
_WORDS = np.array([[4, 2, 5], [2, 1, 3], [3, 5, 2], [8, 2, 1]])


def beam(note, before=(1, 2, 3, 4), scores=_CHANCES, words=_WORDS, lod=None, **attrs):
    lod = lod or _SOURCES
    so_far = np.array([[0.1], [0.65], [0.3], [0.4]], F32)[: len(scores)]
    inputs = {"pre_ids": (ids(*before), lod), "pre_scores": (so_far, lod), "scores": (scores, lod)}
    if words is not None:
        inputs["ids"] = (words, lod)
    case("beam_search", inputs, _BEAM, note=note, **dict({"beam_size": 2, "end_id": 0, "level": 0}, **attrs))


beam("")
beam("ended", before=(1, 0, 3, 0))
beam("source-ended", before=(0, 0, 3, 4))
beam("three", beam_size=3)
beam("ties", scores=np.array([[0.5] * 3, [0.5] * 3, [0.9, 0.9, 0.1], [0.9, 0.9, 0.1]], F32))
beam("chances", is_accumulated=False)
beam("columns", words=None)
beam("uneven", lod=[[0, 1, 4], [0, 1, 2, 3, 4]])
beam("begin", before=(1, 1), scores=_CHANCES[:2], words=_WORDS[:2], lod=[[0, 1, 2], [0, 1, 2]])
for _dtype in (I32, I64):
    for _width in (1, 2, 3, 9, 20):
        case(
            "hash",
            {"X": (below(1000, 4, _width).astype(_dtype), LG)},
            {"Out": _dtype},
            note=f"{_dtype}-{_width}",
            num_hash=3,
            mod_by=100000,
        )
