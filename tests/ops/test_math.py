"""Mathematical operators: what the cases and the recordings do not cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from paddlelike.core import LoDTensor, LoDTensorArray, SelectedRows, VarType
from paddlelike.errors import EnforceNotMet, ShapeError, UnsupportedError
from paddlelike.framework.opdef import Spec, find
from paddlelike.ops.kernels.special import erf
from tests.ops.harness.contract import View, full_attrs, run

_rng = np.random.default_rng(14)
X = _rng.standard_normal((3, 4))


def _spec(*shape: int) -> Spec:
    return Spec(shape, VarType.FP32)


def _infer(type: str, *specs: Any, **attrs: Any) -> Any:
    op = find(type)
    every = full_attrs(op, attrs)
    return op.infer(*specs, **op.make_infer_keywords(every))


def _forward(type: str, *arrays: Any, **attrs: Any) -> Any:
    op = find(type)
    every = full_attrs(op, attrs)
    return op.forward(*arrays, **op.make_forward_keywords(every))


WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    (
        "elementwise_add",
        [_spec(2, 3), _spec(4)],
        {},
        r"X has shape \(2, 3\), Y \(4,\).* dim 3 does not match dim 4",
    ),
    ("elementwise_add", [_spec(2, 3), _spec(2)], {"axis": 3}, r"axis must be -1 or one of 0 \.\. 2"),
    ("elementwise_mul", [_spec(2, 3), _spec(3)], {"axis": 2}, "1 dims do not fit after dim 2 of 2"),
    ("less_than", [_spec(1), _spec(3)], {}, r"Y is broadcast over X, not X over Y"),
    ("logical_or", [_spec(2), _spec(3)], {}, r"X has shape \(2,\), Y \(3,\)"),
    ("allclose", [_spec(2), _spec(3)], {}, r"Input has shape \(2,\), Other \(3,\)"),
    ("minus", [_spec(2), _spec(3)], {}, r"X has shape \(2,\), Y \(3,\)"),
    ("mul", [_spec(2, 3), _spec(4, 5)], {}, "X has 3 columns, Y has 4 rows"),
    ("mul", [_spec(3), _spec(3, 5)], {}, r"x_num_col_dims is 1 and X has shape \(3,\)"),
    ("matmul", [_spec(2, 3), _spec(2, 3)], {}, "X has 3 columns and Y 2 rows"),
    (
        "matmul",
        [_spec(2, 3), _spec(4, 3)],
        {"transpose_X": True, "transpose_Y": True},
        r"X has shape \(2, 3\) \(transposed\), Y \(4, 3\) \(transposed\): X has 2 columns and Y 3 rows",
    ),
    ("matmul", [_spec(5, 2, 3), _spec(4, 3, 2)], {}, r"a stack of \(5,\) matrices, Y one of \(4,\)"),
    ("bmm", [_spec(5, 2, 3), _spec(4, 3, 2)], {}, r"expected \(B, N, K\) and \(B, K, M\)"),
    ("dot", [_spec(1, 2, 3), _spec(1, 2, 3)], {}, "two equal shapes of 1 or 2 dims"),
    ("addmm", [_spec(4), _spec(3, 2), _spec(2, 4)], {}, r"Input has shape \(4,\), X \(3, 2\), Y \(2, 4\)"),
    ("cross", [_spec(4, 2), _spec(4, 2)], {}, r"no dim of X \(4, 2\) is 3"),
    ("cross", [_spec(4, 3), _spec(4, 3)], {"dim": 0}, "is 4, expected 3"),
    ("fsp", [_spec(2, 3, 4, 4), _spec(2, 3, 4, 5)], {}, r"expected \(N, C, H, W\) and \(N, D, H, W\)"),
    (
        "bilinear_tensor_product",
        [_spec(3, 2), _spec(3, 4), _spec(5, 4, 2), None],
        {},
        r"Weight \(5, 4, 2\), Bias None; expected",
    ),
    ("trace", [_spec(3, 4)], {"dim1": 1}, r"dim1 1 and dim2 -1 are the same dim"),
    ("tril_triu", [_spec(3)], {"lower": True}, r"X has shape \(3,\), expected 2 dims or more"),
    ("reduce_sum", [_spec(3, 4)], {"dim": [2]}, "dim is 2, but the input has 2 dims"),
    ("reduce_sum", [_spec(3, 4)], {"dim": []}, "dim is empty"),
    ("softmax", [_spec(3, 4)], {"axis": 2}, "axis is 2, but the input has 2 dims"),
    ("cumsum", [_spec(3, 4)], {"axis": -3}, "axis is -3, but the input has 2 dims"),
    ("norm", [_spec(3, 4)], {"axis": 2}, "axis is 2, but the input has 2 dims"),
    ("p_norm", [_spec(3, 4)], {"porder": 0.0}, r"porder is 0\.0, expected a number above 0"),
    ("squared_l2_distance", [_spec(3, 4), _spec(2, 4)], {}, r"X has shape \(3, 4\), Y \(2, 4\)"),
    ("cos_sim", [_spec(3, 4), _spec(3, 5)], {}, r"X has shape \(3, 4\), Y \(3, 5\)"),
    ("prelu", [_spec(2, 3, 4), _spec(4)], {"mode": "channel"}, "holds 4 numbers; mode 'channel' .* needs 3"),
    ("prelu", [_spec(2, 3, 4), _spec(1)], {"mode": "row"}, "mode is 'row', expected one of all, channel"),
    ("maxout", [_spec(2, 5, 4, 4)], {"groups": 2}, "groups is 2 and X .* has 5 channels at axis 1"),
    ("sum", [[_spec(2, 3), _spec(3, 2)]], {}, r"X has the shapes \(2, 3\), \(3, 2\)"),
]


@pytest.mark.parametrize(("type", "specs", "attrs", "message"), WRONG)
def test_shapes_that_do_not_fit_are_refused(
    type: str, specs: list[Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=f"{type}: .*{message}"):
        _infer(type, *specs, **attrs)


# As Paddle 1.8.5 has it: which dims of the output are known before the batch is.
UNKNOWN: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = [
    ("elementwise_add", [_spec(-1, 3), _spec(3)], {}, (-1, 3)),
    ("elementwise_add", [_spec(-1, 3), _spec(-1, 1)], {}, (-1, 3)),
    ("elementwise_add", [_spec(-1, 3), _spec(2, 3)], {}, (2, 3)),
    ("elementwise_add", [_spec(-1, 3), _spec(1)], {}, (-1, 3)),
    ("mul", [_spec(-1, 3), _spec(3, 4)], {}, (-1, 4)),
    ("mul", [_spec(-1, -1, 4), _spec(4, 5)], {"x_num_col_dims": 2}, (-1, -1, 5)),
    ("matmul", [_spec(-1, -1, 4), _spec(-1, 4, -1)], {}, (-1, -1, -1)),
    ("matmul", [_spec(-1, 3, 4), _spec(4, 5)], {}, (-1, 3, 5)),
    ("matmul", [_spec(-1, 3), _spec(3)], {}, (-1,)),
    ("bmm", [_spec(-1, 2, 4), _spec(-1, 4, 5)], {}, (-1, 2, 5)),
    ("dot", [_spec(-1, 3), _spec(-1, 3)], {}, (-1, 1)),
    ("kron", [_spec(-1), _spec(2, 4)], {}, (2, -1)),
    ("kron", [_spec(-1, 3), _spec(2, 4)], {}, (-1, 12)),
    ("reduce_sum", [_spec(-1, 3, -1)], {"dim": [1], "keep_dim": True}, (-1, 1, -1)),
    ("reduce_sum", [_spec(-1, 3)], {"dim": [0]}, (3,)),
    ("sum", [[_spec(-1, 3), _spec(2, 3)]], {}, (-1, 3)),
]


@pytest.mark.parametrize(("type", "specs", "attrs", "shape"), UNKNOWN)
def test_unknown_dims_pass_through(
    type: str, specs: list[Any], attrs: dict[str, Any], shape: tuple[int, ...]
) -> None:
    assert _infer(type, *specs, **attrs).shape == shape


def test_several_heads_of_matmul_are_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="head_number is 2"):
        _infer("matmul", _spec(2, 4), _spec(4, 2), head_number=2)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(EnforceNotMet, match=r"min is 2\.0 and max 1\.0"):
        _infer("clip", _spec(3), None, None, min=2.0, max=1.0)
    with pytest.raises(EnforceNotMet, match=r"min is 3\.0 and max 2\.0"):
        _forward("clip", X, np.array([3.0]), None, min=0.0, max=2.0)


@pytest.mark.parametrize("type", ["mul", "matmul", "elementwise_mul", "elementwise_add", "bmm", "dot"])
def test_a_gradient_that_is_not_required_is_not_computed(type: str) -> None:
    grad = find(type + "_grad")
    a = _rng.standard_normal((2, 3, 3) if type == "bmm" else (3, 3))
    slots = {"X": a, "Y": a, "Out@GRAD": a if type != "dot" else a[:, :1]}
    arrays = [slots[slot.name] for slot in grad.input_slots]
    assert _forward_wanted(grad, arrays, (False, True))[0] is None
    assert _forward_wanted(grad, arrays, (True, False))[1] is None


def _forward_wanted(grad: Any, arrays: list[Any], wanted: tuple[bool, bool]) -> Any:
    attrs = full_attrs(grad, {})
    return grad.forward(*arrays, **grad.make_forward_keywords(attrs), wanted=wanted)


def test_the_gradient_of_an_addition_is_not_copied() -> None:
    d_x, _ = _forward_wanted(find("elementwise_add_grad"), [X, X, X[0]], (True, True))
    assert d_x is X
    assert find("elementwise_add_grad").views
    assert not find("elementwise_add").views


def test_kernels_do_not_write_into_shared_gradients_of_an_addition() -> None:
    above = X.copy()
    d_x, d_y = _forward_wanted(find("elementwise_sub_grad"), [above, X, X], (True, True))
    assert (d_x == X).all()
    assert (d_y == -X).all()
    assert (above == X).all()


def test_selected_rows_times_a_number_are_selected_rows() -> None:
    out = _forward("elementwise_mul", SelectedRows([4, 1], 6, X[:2]), np.array([0.5]))
    assert (out.rows(), out.height()) == ([4, 1], 6)
    assert (out.array == X[:2] / 2).all()
    assert _infer("elementwise_mul", Spec((6, 4), VarType.FP32, 0, VarType.SELECTED_ROWS), _spec(1)).kind == (
        VarType.SELECTED_ROWS
    )


def test_isfinite_checks_the_values_of_selected_rows() -> None:
    rows = SelectedRows([4, 1], 6, np.array([[1.0], [np.nan]]))
    assert _forward("isfinite", rows).tolist() == [False]
    assert _forward("isnan", rows).tolist() == [True]
    assert _infer("isnan", Spec((6, 1), VarType.FP32, 0, VarType.SELECTED_ROWS)).kind == VarType.LOD_TENSOR


def test_tensor_arrays_are_added_element_by_element() -> None:
    a, b, c = (LoDTensor(np.full((2, 1), number)) for number in (1.0, 10.0, 100.0))
    a.set_lod([[0, 1, 2]])
    out = _forward("sum", [LoDTensorArray([a, LoDTensor()]), LoDTensorArray([b, LoDTensor(), c])])
    assert [tensor.shape() for tensor in out] == [[2, 1], [0], [2, 1]]
    assert out[0].lod() == [[0, 1, 2]]
    assert [float(tensor.array[0, 0]) for tensor in (out[0], out[2])] == [11.0, 100.0]


def test_a_sum_shares_no_memory_with_its_inputs() -> None:
    out = _forward("sum", [X])
    assert not np.shares_memory(out, X)


@pytest.mark.parametrize("dim", [[1], [-1]])
def test_a_reduction_of_inner_dims_keeps_the_lod(dim: list[int]) -> None:
    assert _reduced_lod(dim) == [[0, 1, 3]]


def test_a_reduction_of_the_first_dim_has_no_lod() -> None:
    assert _reduced_lod([0]) == []
    assert _reduced_lod([-2]) == []


def _reduced_lod(dim: list[int]) -> list[list[int]]:
    op = find("reduce_sum")
    view = View("reduce_sum", {"X": ["x"]}, {"Out": ["out"]}, full_attrs(op, {"dim": dim}))
    lods = {"x": [[0, 1, 3]]}
    run(view, {"x": X}, lods)
    return lods.get("out", [])


def test_no_element_of_a_softmax_is_zero() -> None:
    # Paddle counts what is more than 64 below the greatest as 64 below it
    for width in (2, 9000):
        x = np.zeros((1, width), np.float32)
        x[0, 0] = 1000
        out = _forward("softmax", x)
        np.testing.assert_allclose(out[0, 1], math.exp(-64), rtol=1e-5)
        assert out.dtype == np.float32


def test_erf_in_float32_is_within_4_units_in_the_last_place() -> None:
    x = np.linspace(-6, 6, 24001, dtype=np.float32)
    exact = np.array([math.erf(number) for number in x])
    np.testing.assert_allclose(erf(x), exact, rtol=5e-7)  # 4 * 2**-23
    assert np.abs(erf(x)).max() == 1
