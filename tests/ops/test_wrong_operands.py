"""Operands that do not fit are refused when the program is built, with their shapes and numbers."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.core import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Spec, registry


def _spec(*shape: int) -> Spec:
    return Spec(shape, VarType.FP32)


WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("reshape", [_spec(3, 2), None, None], {"shape": [4, -1]}, r"\[3, 2\] has 6 elements, .* \[4, -1\]"),
    ("reshape2", [_spec(3, 2), None, None], {"shape": [-1, -1]}, "only one dim may be -1"),
    ("reshape", [_spec(3, 2), None, None], {"shape": [3, 2, 0]}, r"dim 2 is 0 \(copy\), but X has 2 dims"),
    ("reshape", [_spec(3, 2), None, None], {"shape": []}, "the shape is empty"),
    ("squeeze2", [_spec(3, 1)], {"axes": [0]}, "dim 0 is 3, only a dim of 1 can be left out"),
    ("unsqueeze", [_spec(3), None, None], {"axes": [3]}, "axes is 3, but the input has 2 dims"),
    ("flatten", [_spec(3)], {"axis": 2}, r"axis is 2, expected 0 \.\. 1"),
    ("transpose2", [_spec(3, 2)], {"axis": [0, 0]}, r"axis is \[0, 0\], expected every number"),
    (
        "concat",
        [[_spec(3, 2), _spec(4, 3)], None],
        {"axis": 0},
        r"X\[1\] has shape \(4, 3\), X\[0\] \(3, 2\)",
    ),
    ("stack", [[_spec(3, 2), _spec(3)]], {"axis": 0}, r"X\[1\] has shape \(3,\)"),
    ("split", [_spec(3, 5), None, None], {"axis": 1, "num": 2, "sections": []}, "into 2 equal parts"),
    (
        "split",
        [_spec(3, 5), None, None],
        {"axis": 1, "num": 0, "sections": [2, 4]},
        r"\[2, 4\] add up to 6, but dim 1 of X \[3, 5\] is 5",
    ),
    ("unstack", [_spec(3, 2)], {"axis": 0, "num": 2}, r"num is 2, but dim 0 of X \(3, 2\) is 3"),
    ("unbind", [_spec(-1, 2)], {"axis": 0}, r"dim 0 of X \(-1, 2\) must be known"),
    (
        "slice",
        [_spec(4), None, None, None, None],
        {"axes": [0], "starts": [3], "ends": [2], "infer_flags": [1], "decrease_axis": []},
        "nothing is left of axis 0 of 4, from 3 to 2",
    ),
    ("crop", [_spec(4, 3), None, None], {"offsets": [], "shape": [2]}, r"the shape is \[2\]"),
    ("pad", [_spec(4, 3)], {"paddings": [1, 1]}, "expected 4 numbers of 0 or more"),
    (
        "pad2d",
        [_spec(1, 1, 2, 2), None],
        {"paddings": [3, 0, 0, 0], "mode": "reflect", "data_format": "NCHW"},
        "too small to be reflected by 3",
    ),
    (
        "expand",
        [_spec(4, 3), None, None],
        {"expand_times": [2]},
        r"\[2\], expected one per dim of X \(4, 3\)",
    ),
    ("expand_as", [_spec(2, 3), _spec(4, 4)], {}, r"\(4, 4\), expected multiples"),
    ("top_k", [_spec(2, 3), None], {"k": 4}, r"k is 4, expected 1 \.\. the last dim of X \(2, 3\)"),
    ("scatter", [_spec(4, 2), _spec(3), _spec(3, 3)], {}, r"Updates has shape \(3, 3\), expected \(3, 2\)"),
    ("gather_nd", [_spec(4, 2), _spec(5, 3)], {}, r"last dim must be 1 \.\. 2"),
    ("where", [_spec(4), _spec(4), _spec(5)], {}, r"Y has shape \(5,\) and Condition \(4,\)"),
    ("one_hot", [_spec(4), None], {"depth": 3, "dtype": 5}, r"X has shape \(4,\)"),
    ("lookup_table_v2", [_spec(4), _spec(4)], {}, r"W has shape \(4,\), expected \(rows, width\)"),
    ("huber_loss", [_spec(4, 1), _spec(3, 1)], {}, r"X has shape \(4, 1\), Y \(3, 1\)"),
    ("kldiv_loss", [_spec(4), _spec(4)], {"reduction": "most"}, "'most', expected none, mean"),
    ("nll_loss", [_spec(4, 3), _spec(3), None], {"reduction": "mean"}, r"\(4, 3\) and Label \(3,\)"),
    ("chunk_eval", [_spec(4), _spec(4), None], {"chunk_scheme": "BIO"}, "'BIO', expected one of"),
]


@pytest.mark.parametrize(
    ("type_", "specs", "attrs", "text"), WRONG, ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_error_for_mismatched_operands_shows_their_sizes(
    type_: str, specs: list[Any], attrs: dict[str, Any], text: str
) -> None:
    op = registry.find(type_)
    with pytest.raises(ShapeError, match=text) as caught:
        op.infer(*specs, **op.make_infer_keywords(attrs))
    assert str(caught.value).startswith(type_.rstrip("2").removesuffix("_v"))
