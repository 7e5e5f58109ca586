"""Compiled kernels beside numpy's, over the cases of the operators that use them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

from paddlelike.core import SelectedRows
from paddlelike.framework.opdef import registry
from paddlelike.ops.kernels import fast
from paddlelike.ops.kernels.fast.late import KERNELS
from paddlelike.ops.update.base import Update
from tests.helpers.fast_kernels import force_kernels, needs_numba
from tests.ops import test_recorded
from tests.ops.harness import contract
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case, check_gradient, check_value_and_shape
from tests.ops.harness.points import WITHOUT_FORMULA
from tests.ops.kernels.fast.test_large import OF_STEPS

for _module in pkgutil.iter_modules(fast.__path__, f"{fast.__name__}."):
    importlib.import_module(_module.name)

_TYPES = {
    "batch_norm",
    "crf_decoding",
    "edit_distance",
    "gru",
    "gru_unit",
    "layer_norm",
    "linear_chain_crf",
    "lookup_table",
    "lookup_table_v2",
    "lstm",
    "lstmp",
    "pool2d",
    "softmax",
    "softmax_with_cross_entropy",
    *(type for type, op in registry.all_ops().items() if issubclass(op, Update)),
}
_RECORDED_TYPES = {
    "bipartite_match",
    "generate_proposals",
    "iou_similarity",
    "locality_aware_nms",
    "multiclass_nms",
    "multiclass_nms2",
    "psroi_pool",
    "roi_pool",
}
_CHOSEN = [case for case in CASES if case.type in _TYPES]
_RECORDED = [name for name, case in WITHOUT_FORMULA.items() if case.type in _RECORDED_TYPES]


def differentiable(case: Case) -> bool:
    op = registry.find(case.type)
    return case.wrt != () and (op.gradient is not None or "make_grad" in vars(op))


def compute(case: Case, dtype: type) -> dict[str, Any]:
    """Return the results of an operator and of its gradient, in float32 or float64."""
    op = registry.find(case.type)
    view, values, lods = contract._named(case)
    values = {name: convert(value, dtype) for name, value in values.items()}
    rng = np.random.default_rng(3)
    contract.run(view, values, lods)
    if differentiable(case):
        for slot in op.output_slots:
            for name in view.output(slot.name):
                if getattr(values.get(name), "dtype", None) == dtype:
                    d = rng.standard_normal(values[name].shape).astype(dtype)
                    values[contract.grad_name(name)] = d
        for grad in op.make_grad(view):
            contract.run(contract.View(grad.type, grad.inputs, grad.outputs, grad.attrs), values, lods)
    return {name: value.array if isinstance(value, SelectedRows) else value for name, value in values.items()}


def convert(value: Any, dtype: type) -> Any:
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows(), value.height(), value.array.astype(dtype))
    return value.astype(dtype) if getattr(value, "dtype", None) == np.float64 else value


@pytest.mark.parametrize("case", _CHOSEN, ids=lambda case: case.id)
def test_every_kernel_matches_the_documented_formula(case: Case) -> None:
    with force_kernels(compiled=False):
        check_value_and_shape(case)


@pytest.mark.usefixtures("textbook")  # where Fluid's gradient is odd, differences are not
@pytest.mark.parametrize("case", list(filter(differentiable, _CHOSEN)), ids=lambda case: case.id)
def test_every_kernel_computes_the_gradient(case: Case) -> None:
    with force_kernels(compiled=False):
        check_gradient(case)


@pytest.mark.parametrize("case", _CHOSEN, ids=lambda case: case.id)
def test_every_kernel_gives_the_numbers_of_numpy(case: Case) -> None:
    want = compute(case, np.float32)
    with force_kernels(compiled=False) as called:
        got = compute(case, np.float32)
    compare(got, want, exact=all(KERNELS[name].exact for name in called))


def compare(got: dict[str, Any], want: dict[str, Any], *, exact: bool) -> None:
    """Assert equal bits, or a distance of a few roundings of the greatest element."""
    for name, value in want.items():
        if not isinstance(value, np.ndarray):
            continue
        assert got[name].dtype == value.dtype
        if exact or value.dtype.kind != "f":
            np.testing.assert_array_equal(got[name], value, err_msg=name)
        else:  # sums in another order
            atol = 1e-5 * float(np.abs(value).max(initial=0, where=np.isfinite(value)))
            np.testing.assert_allclose(got[name], value, 1e-5, atol, err_msg=name)


@pytest.mark.parametrize("name", _RECORDED)
def test_every_kernel_gives_what_fluid_gives(name: str) -> None:
    check_recorded(name, compiled=False)


def check_recorded(name: str, *, compiled: bool) -> set[str]:
    """Compare with Fluid 1.8.5's values and gradients; return the kernels that were called."""
    with force_kernels(compiled=compiled) as called:
        test_recorded.test_values_lods_shapes_and_gradients_match_the_recorded_results(name)
    return called


def test_every_kernel_is_tested() -> None:
    with force_kernels(compiled=False) as called:
        for case in _CHOSEN:
            compute(case, np.float64)
    for name in _RECORDED:
        called |= check_recorded(name, compiled=False)
    elsewhere = {"boxes.find_overlaps", "pools.find_maxima", "pools.find_maxima_dx"}  # see test_large.py
    elsewhere |= {"recurrent.run_lstm_back"}  # see test_large.py
    elsewhere |= {name for name in KERNELS if name.startswith("winograd.")}  # see test_tiles.py
    elsewhere |= {"depthwise.convolve", "depthwise.convolve_dw"}  # see nn/convolution/
    of_rules = {name for name, kernel in KERNELS.items() if kernel.text}  # see update/test_rules.py
    assert KERNELS.keys() - called - of_rules - OF_STEPS == elsewhere


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("type", sorted(_TYPES))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_kernels_give_what_python_gives(type: str, dtype: Any) -> None:
    for case in (case for case in _CHOSEN if case.type == type):
        want = compute(case, dtype)
        with force_kernels(compiled=True) as called:
            got = compute(case, dtype)
        compare(got, want, exact=all(KERNELS[name].exact for name in called))


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("name", _RECORDED)
def test_compiled_kernels_give_what_fluid_gives(name: str) -> None:
    check_recorded(name, compiled=True)
