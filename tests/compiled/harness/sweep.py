"""One operator through its lowering, beside the kernel of numpy: values, then gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from paddlelike.compiled.backend import settings
from paddlelike.compiled.packing import RefusedError, Uncovered, pack
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed, SparseRows
from paddlelike.core import SelectedRows
from paddlelike.executor.plans.frame import Step
from paddlelike.framework.opdef import EMPTY, OpDef, grad_name, registry
from tests.ops.harness import contract
from tests.ops.harness.contract import Case, View

__all__ = ["DifferenceError", "check_case", "check_gradients_alone", "lower_case"]


#: Lowerings are compared, not what XLA's optimizations make of them, which take most of the time.
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


class DifferenceError(AssertionError):
    """A result of a lowering that is not the kernel's."""


def check_case(case: Case, *, alone: bool = True) -> list[str]:
    """Compare value and gradients of a case. Return the types of the operators that were compared.

    ``alone``: also where nothing asks for its gradients, which is a compilation of its own.

    Raises RefusedError for an operator that cannot be compiled, DifferenceError for another result.
    """
    done: list[str] = []
    for views, values, lods in _forms(case) if alone else [*_forms(case)][-1:]:
        _compare(views, values, lods)
        done = [view.type for view in views]
    return done


def check_gradients_alone(case: Case) -> None:
    """Compare the gradients of a case whose operator was in a piece before; raises as :func:`check_case`."""
    *_, ((view, *grads), values, lods) = _forms(case)
    contract.run(view, values, lods)
    _compare(grads, values, lods)


def lower_case(case: Case, platform: str) -> str:
    """Return the module of StableHLO for devices of a kind: of the value of a case and of its gradients.

    Raises RefusedError for an operator that cannot be compiled.
    """
    *_, (views, values, lods) = _forms(case)
    compute, given, _ = _prepare(views, values, lods)
    with settings(jax.devices("cpu")[0]):
        traced = jax.jit(lambda given: compute(given)[0]).trace(given)
        return str(traced.lower(lowering_platforms=(platform,)).as_text())


def _forms(case: Case) -> Iterator[tuple[list[View], dict[str, Any], dict[str, Any]]]:
    """Yield an operator alone, then with those of its gradient, each with the values that it is given."""
    view, values, lods = contract._named(case)
    op = registry.find(case.type)
    yield [view], values, lods
    if not op.has_gradient(view):
        return
    contract.run(view, values, lods)
    rng = np.random.default_rng(3)
    for slot in op.output_slots:
        for name in view.output(slot.name):
            value = values.get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                values[grad_name(name)] = rng.standard_normal(value.shape).astype(value.dtype)
                if name in lods:
                    lods[grad_name(name)] = lods[name]
    start = contract._named(case)[1]
    given = start | {name: value for name, value in values.items() if name.endswith("@GRAD")}
    if any(name.endswith("@GRAD") for name in given):  # none are of integers
        yield [view, *(View(g.type, g.inputs, g.outputs, g.attrs) for g in op.make_grad(view))], given, lods


def _compare(views: list[View], values: dict[str, Any], lods: dict[str, Any]) -> None:
    """Run operators one after the other through both, from the same values."""
    want, want_lods = _copy(values), dict(lods)
    for view in views:
        contract.run(view, want, want_lods)
    got = _run(views, values, lods)
    names = {name for view in views for names in view.outputs.values() for name in names if name in want}
    for name in sorted(names):
        if name in got:  # a lowering may leave out what only gradients of numpy read
            _check(views[-1].type, name, got[name], want[name], want_lods.get(name))


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def _run(views: list[View], values: dict[str, Any], lods: dict[str, Any]) -> dict[str, Any]:
    compute, given, position = _prepare(views, values, lods)
    covered: list[Uncovered] = []

    def compute_all(given: dict[int, Any]) -> tuple[dict[int, Any], list[Any]]:
        results, checks = compute(given)
        covered[:] = [message for message, _ in checks]
        return results, [holds for _, holds in checks]

    with settings(jax.devices("cpu")[0]):
        results, held = jax.jit(compute_all, compiler_options=_QUICK)(given)
    for message, holds in zip(covered, held, strict=True):
        if not holds:
            raise RefusedError(message.step, message)
    back = {index: name for name, index in position.items()}
    return {back[n]: value for n, value in results.items()}


def _prepare(
    views: list[View], values: dict[str, Any], lods: dict[str, Any]
) -> tuple[
    Callable[[dict[int, Any]], tuple[dict[int, Any], list[tuple[Uncovered, Any]]]], Any, dict[str, int]
]:
    """Return what computes operators with JAX, what it is given, and the positions of the variables."""
    names = sorted(
        {n for v in views for table in (v.inputs, v.outputs) for names in table.values() for n in names}
    )
    position = {name: index for index, name in enumerate(names)} | {EMPTY: -1}
    plan = SimpleNamespace(
        program=SimpleNamespace(paddle_version=0),
        inputs_of={id(v): _place(registry.find(v.type), v.inputs, position, "input_slots") for v in views},
        outputs_of={id(v): _place(registry.find(v.type), v.outputs, position, "output_slots") for v in views},
        without_dims=set(),
        row_updates={},
        differentiated={views[0].type} if len(views) > 1 else set(),
        blocks={},
    )
    given = {
        position[n]: _convert(v, lods.get(n), "@GRAD" in n)
        for n, v in values.items()
        if n in position and v is not None
    }

    def compute(given: dict[int, Any]) -> tuple[dict[int, Any], list[tuple[Uncovered, Any]]]:
        trace = Trace(plan, dict(given), None)  # type: ignore[arg-type]
        for index, view in enumerate(views):
            op = registry.find(view.type)
            known = {name: value for name, value in view.attrs.items() if name in op.attrs}
            view.attrs = contract.full_attrs(op, known)
            trace.run(Step(lambda frame: None, view), index)  # type: ignore[arg-type]
        checks = [(message, holds) for _, message, holds in trace.checks if isinstance(message, Uncovered)]
        return {n: v for n, v in trace.values.items() if v is not None}, checks

    return compute, given, position


def _place(op: type[OpDef], names: Any, position: dict[str, int], slots: str) -> list[Any]:
    found: list[Any] = []
    for slot in getattr(op, slots):
        here = [position[name] for name in names.get(slot.name, ())]
        found.append(here if slot.several else here[0] if here else -1)
    return found


def _convert(value: Any, lod: Any, is_gradient: bool) -> Any:
    if isinstance(value, SelectedRows):
        return SparseRows(value.row_array, value.array, value.height())
    if lod and isinstance(value, np.ndarray):
        return pack(value, lod, is_gradient=is_gradient)
    return value


def _check(type: str, name: str, got: Any, want: Any, lod: Any) -> None:
    if isinstance(got, Packed):
        used = int(got.total)
        if lod and [[int(n) for n in level] for level in got.offsets] != lod:
            raise DifferenceError(f"{type}: {name} has LoD {got.offsets}, not {lod}")
        got = got.rows[:used]
    if isinstance(got, SparseRows):
        with settings(jax.devices("cpu")[0]):
            got = got.to_dense()
    if isinstance(want, SelectedRows):
        want = want.to_dense()
    got = np.asarray(got)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise DifferenceError(f"{type}: {name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}")
    # Another order of the same float64 operations; float32 where a case asks for it.
    rtol = 1e-8 if got.dtype == np.float64 else 1e-5
    if not np.allclose(got, want, rtol=rtol, atol=rtol, equal_nan=True):
        raise DifferenceError(f"{type}: {name} differs by {np.abs(got - want).max()}")
