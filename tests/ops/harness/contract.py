"""The promise every operator keeps, written once: its value, its shape rule, its gradient.

A case is one operator at one point with a second, independent formula (plain numpy, or a number from
the real system). The gradient is checked along one random direction in float64, through the
operators that ``make_grad`` gives, so the slots and names of the backward pass are checked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paddlelike.core import Generator, LoDTensor, Scope, SelectedRows, VarType, convert_dtype, numpy_dtype
from paddlelike.framework.opdef import (
    ABSENT,
    GRAD,
    REQUIRED,
    Array,
    LoD,
    OpDef,
    Spec,
    grad_name,
    make_arguments,
    name_results,
    registry,
)

Values = dict[str, Any]  # slot -> array, SelectedRows, LoDTensor (array with LoD), or a list of them


@dataclass(frozen=True)
class Case:
    """One operator at one point.

    ``inputs`` are away from kinks; a LoDTensor carries its LoD. ``expected`` takes the inputs by slot
    (as arrays) and the attributes by name, and returns the output of the first slot, or a dict
    {slot: value} of the outputs to compare, LoDTensors where the LoD counts too. ``wrt`` are the
    slots to differentiate by (None: all floating-point ones for which the operator has a gradient);
    ``through`` the outputs that the loss reads (None: every floating-point output that has a gradient slot).
    """

    type: str
    inputs: Values
    expected: Callable[..., Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    wrt: Sequence[str] | None = None
    through: Sequence[str] | None = None
    rtol: float = 1e-10  # float64 against a second formula: rounding only
    atol: float = 1e-12
    grad_rtol: float = 1e-4  # central differences of step 1e-6 in float64
    check_shape: bool = True
    note: str = ""

    @property
    def id(self) -> str:
        return self.type + (f"-{self.note}" if self.note else "")


class View:
    """An operator without a program."""

    def __init__(
        self,
        type: str,
        inputs: dict[str, list[str]],
        outputs: dict[str, list[str]],
        attrs: Mapping[str, Any],
    ) -> None:
        self.type, self.inputs, self.outputs, self.attrs = type, inputs, outputs, attrs

    def input(self, slot: str) -> list[str]:
        return self.inputs.get(slot, [])

    def output(self, slot: str) -> list[str]:
        return self.outputs.get(slot, [])


class FakeContext:
    """A Context over a plain dict of values."""

    def __init__(self, op: View, values: dict[str, Any], lods: dict[str, LoD]) -> None:
        self.op, self.values, self.lods, self.scope = op, values, lods, Scope()

    def lod(self, slot: str, index: int = 0) -> LoD:
        names = self.op.input(slot)
        return self.lods.get(names[index], []) if names else []

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        names = self.op.output(slot)
        if names:
            self.lods[names[index]] = lod

    def read(self, name: str) -> Any:
        return self.values.get(name)

    def read_lod(self, name: str) -> LoD:
        return self.lods.get(name, [])

    def write(self, name: str, value: Any) -> None:
        self.values[name] = value

    def random(self, seed: int) -> Generator:
        return Generator(seed) if seed else self.scope.generator

    def run_block(self, index: int) -> None:
        raise AssertionError("no program here")

    def service(self, name: str) -> Any:
        raise AssertionError(f"no service {name!r} here")


def call(type: str, *args: Any, lods: dict[str, LoD] | None = None, **attrs: Any) -> tuple[Any, FakeContext]:
    """Return the results of a kernel given by slot, and its context, which has the LoDs by slot."""
    op = registry.find(type)
    view = View(
        type,
        {slot.name: [slot.name] for slot in op.input_slots},
        {slot.name: [slot.name] for slot in op.output_slots},
        attrs,
    )
    ctx = FakeContext(view, {}, dict(lods or {}))
    keywords = op.make_forward_keywords(attrs)
    return op.forward(*([ctx] if op.context else []), *args, **keywords), ctx


def full_attrs(op: type[OpDef], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given attributes and the defaults of the rest."""
    unknown = set(given) - set(op.attrs)
    assert not unknown, f"{op.type} has no attributes {sorted(unknown)}"
    attrs = {n: a.default for n, a in op.attrs.items() if a.default not in (REQUIRED, ABSENT)}
    missing = [n for n, a in op.attrs.items() if a.default is REQUIRED and n not in given]
    assert not missing, f"{op.type} needs attributes {missing}"
    return attrs | dict(given)


def run(view: View, values: dict[str, Any], lods: dict[str, LoD]) -> None:
    """Run one operator on named values, as an executor would."""
    op = registry.find(view.type)
    args = make_arguments(op.input_slots, view.inputs, values.get)
    attrs = full_attrs(op, {n: v for n, v in view.attrs.items() if n in op.attrs})
    keywords = op.make_forward_keywords(attrs, view.outputs)
    if op.context:
        args.insert(0, FakeContext(view, values, lods))
    for slot in op.output_slots:
        sources, names = view.input(op.find_lod_source(slot.name) or ""), view.output(slot.name)
        each = slot.name.endswith(GRAD) and len(sources) == len(names)  # of its own variable
        for name, source in zip(names, sources if each else sources[:1] * len(names), strict=False):
            if source in lods:
                lods[name] = lods[source]
    before = [None if not isinstance(a, np.ndarray) else a.copy() for a in args]
    results = op.forward(*args, **keywords)
    for slot, arg, old in zip(op.input_slots, args[op.context :], before[op.context :], strict=True):
        if old is not None and slot.name not in op.inplace.values():
            assert np.array_equal(arg, old, equal_nan=arg.dtype.kind == "f"), (
                f"{op.type} wrote into its input {slot.name}"
            )
    values |= {name: value for _, name, value in name_results(op.output_slots, view.outputs, results)}


def _named(case: Case) -> tuple[View, dict[str, Any], dict[str, LoD]]:
    op = registry.find(case.type)
    values: dict[str, Any] = {}
    lods: dict[str, LoD] = {}
    inputs: dict[str, list[str]] = {}
    for slot in op.input_slots:
        given = case.inputs.get(slot.name)
        items = [] if given is None else given if isinstance(given, list) else [given]
        inputs[slot.name] = [f"{slot.name}_{i}" for i in range(len(items))]
        for name, item in zip(inputs[slot.name], items, strict=True):
            if isinstance(item, LoDTensor):
                lods[name] = item.lod()
                item = np.array(item)
            # a copy: an operator that works in place must not spoil the case
            values[name] = item.copy() if isinstance(item, np.ndarray) else item
    outputs = {
        s.name: [f"{s.name}_out_{i}" for i in range(_outputs_of(case, s.name) if s.several else 1)]
        for s in op.output_slots
    }
    for out, source in op.inplace.items():
        if inputs.get(source):
            outputs[out] = list(inputs[source])
    return View(case.type, inputs, outputs, full_attrs(op, case.attrs)), values, lods


def _outputs_of(case: Case, slot: str) -> int:
    """How many variables a ``*`` output slot has: as many as ``expected`` gives."""
    value = _expected(case)[slot]
    return len(value)


def _expected(case: Case) -> dict[str, Any]:
    op = registry.find(case.type)

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(v) for v in value]
        return np.array(value) if isinstance(value, LoDTensor | np.ndarray) else value

    arrays = {slot: plain(value) for slot, value in case.inputs.items()}
    attrs = full_attrs(op, case.attrs)
    wanted = case.expected.__code__
    names = wanted.co_varnames[: wanted.co_argcount + wanted.co_kwonlyargcount]
    result = case.expected(**{n: arrays[n] if n in arrays else attrs.get(n) for n in names})
    return result if isinstance(result, dict) else {op.output_slots[0].name: result}


def check_value_and_shape(case: Case) -> None:
    """The kernel agrees with the second formula, and the shape rule with the kernel."""
    op = registry.find(case.type)
    view, values, lods = _named(case)
    specs = _infer(op, view, values, lods)
    run(view, values, lods)
    for slot, expected in _expected(case).items():
        many = expected if isinstance(expected, list) else [expected]
        names = view.output(slot)
        assert len(names) == len(many), f"{case.id}: {slot} has {len(names)} values"
        for name, want in zip(names, many, strict=True):
            got = values[name]
            if isinstance(want, LoDTensor):
                assert lods.get(name, []) == want.lod(), f"{case.id}: {slot} has LoD {lods.get(name, [])}"
                want = np.array(want)
            if isinstance(want, SelectedRows):
                assert isinstance(got, SelectedRows)
                assert (got.rows(), got.height()) == (want.rows(), want.height())
                want, got = want.array, got.array
            assert got.shape == np.shape(want), f"{case.id}: {slot} is {got.shape}, not {np.shape(want)}"
            np.testing.assert_allclose(got, want, case.rtol, case.atol, err_msg=f"{case.id}: {slot}")
    if not case.check_shape:
        return
    for slot in op.output_slots:
        inferred = [name in specs for name in view.output(slot.name)]
        assert all(inferred) or not any(inferred), f"{case.id}: {slot.name} has specs for {inferred}"
    for name, one in specs.items():
        got = values.get(name)
        if got is None or isinstance(got, SelectedRows):
            continue
        fits = len(one.shape) == got.ndim
        fits = fits and all(a in (-1, b) for a, b in zip(one.shape, got.shape, strict=True))
        assert fits, f"{case.id}: {name} inferred {one.shape}, computed {got.shape}"
        assert one.dtype == convert_dtype(got.dtype), f"{case.id}: {name} {one.dtype} {got.dtype}"


def _infer(op: type[OpDef], view: View, values: dict[str, Any], lods: dict[str, LoD]) -> dict[str, Spec]:
    """Return the spec of each output variable."""

    def spec(name: str) -> Spec:
        value = values[name]
        if isinstance(value, SelectedRows):
            return Spec((value.height(), *value.array.shape[1:]), convert_dtype(value.array.dtype), 0)
        level = len(lods.get(name, []))
        dims = (-1, *value.shape[1:]) if level else value.shape  # as data with sequences is declared
        return Spec(dims, convert_dtype(value.dtype), level, VarType.LOD_TENSOR)

    results = op.infer(
        *make_arguments(op.input_slots, view.inputs, spec), **op.make_infer_keywords(view.attrs)
    )
    return {name: one for _, name, one in name_results(op.output_slots, view.outputs, results)}


def check_gradient(case: Case) -> None:
    """The gradient operators agree with central differences along one random direction."""
    op = registry.find(case.type)
    rng = np.random.default_rng(7)
    view, start, lods = _named(case)
    grad_ops = op.make_grad(view)
    reads = {name for g in grad_ops for names in g.inputs.values() for name in names}
    makes = {name for g in grad_ops for names in g.outputs.values() for name in names}
    wrt = [
        name
        for slot in (s.name for s in op.input_slots)
        if case.wrt is None or slot in case.wrt
        for name in view.input(slot)
        if grad_name(name) in makes and _is_float(start[name])
    ]
    assert wrt, f"{case.id}: nothing to differentiate by; makes {sorted(makes)}"

    def loss(values: dict[str, Any], weights: dict[str, Array]) -> float:
        copy = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}
        run(view, copy, dict(lods))
        return float(sum((copy[name] * w).sum() for name, w in weights.items()))

    values = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in start.items()}
    run(view, values, lods)
    weights = {
        name: rng.standard_normal(values[name].shape)
        for slot in op.output_slots
        if case.through is None or slot.name in case.through
        for name in view.output(slot.name)
        if grad_name(name) in reads and _is_float(values.get(name))
    }
    assert weights, f"{case.id}: no output has a gradient"
    for slot in op.output_slots:
        for name in view.output(slot.name):
            if name not in weights and _is_float(values.get(name)):
                values[grad_name(name)] = np.zeros_like(values[name])
    values |= {grad_name(name): weight for name, weight in weights.items()}
    for grad_op in grad_ops:
        run(View(grad_op.type, grad_op.inputs, grad_op.outputs, grad_op.attrs), values, lods)
    for name in wrt:
        grad = values[grad_name(name)]
        if isinstance(grad, SelectedRows):
            grad = grad.to_dense()
        assert grad.shape == start[name].shape, f"{case.id}: d{name} has shape {grad.shape}"
        step = rng.standard_normal(grad.shape) * 1e-6
        up, down = (loss(start | {name: start[name] + s * step}, weights) for s in (1, -1))
        np.testing.assert_allclose(
            (grad * step).sum(), (up - down) / 2, rtol=case.grad_rtol, atol=1e-11,
            err_msg=f"{case.id}: d{name}",
        )  # fmt: skip


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == numpy_dtype("float64")
