"""Convert the state of CNTK's learners to accumulators of update operators, and back.

CNTK adds up the gradients of a minibatch and divides the learning rate by its size; here gradients are means.
Adam normalizes gradients, so in CNTK its steps are smaller by the size N of the minibatch. Its averages are N
and N * N times ours, and its rate is N times ours.

======== ====================================================== ======================================
here     CNTK                                                   the array of a parameter
======== ====================================================== ======================================
sgd      sgd                                                    no elements
momentum momentum_sgd, nesterov                                 the velocity times the rate
adam     adam                                                   averages of squares, then of gradients
adamax   adam(adamax=True)                                      norms, then averages of gradients
======== ====================================================== ======================================

The states of ``interop.cntk.learners`` are CNTK's arrays, stacked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope
from paddlelike.errors import LoadError, NotInitializedError, SaveError
from paddlelike.framework import Block, Operator, Program
from paddlelike.interop.cntk.learners import COUNTED, STATES

KINDS: Final = ("adam", "adamax", "momentum", "sgd", *STATES)
_MANY: Final = 16  # with this many numbers of one sign, an array is not velocities
#: The accumulators of CNTK's two averages, squares (or norms) first; with the power of the minibatch's size
#: by which CNTK's are larger.
_PAIRS: Final = {"adam": (("Moment2", 2), ("Moment1", 1)), "adamax": (("InfNorm", 1), ("Moment", 1))}
#: The accumulators that hold powers of the decay rates, and the attribute with the rate.
_POWERS: Final = {"adam": {"Beta1Pow": "beta1", "Beta2Pow": "beta2"}, "adamax": {"Beta1Pow": "beta1"}}


class Update(Protocol):
    """The update of a parameter: one operator, or the operators of a CNTK learner together."""

    type: str
    block: Block
    attrs: Any

    def input(self, name: str) -> list[str]:
        """Return the variables of a slot."""


class _LearnerUpdate:
    """The operators of a learner of ``interop.cntk.learners`` for one parameter; its slots are its states."""

    def __init__(self, op: Operator, kind: str, states: Mapping[str, str]) -> None:
        self.type, self.block, self.attrs = kind, op.block, op.attrs
        self._op, self._states = op, states

    def input(self, name: str) -> list[str]:
        return [self._states[name]] if name in self._states else self._op.input(name)


def collect_updates(program: Program) -> dict[str, Update]:
    """Return the updates by the parameter's name."""
    found: dict[str, Update] = {}
    for op in program.global_block().ops:
        if op.input("Param") and op.input("Grad"):
            found[op.input("Param")[0]] = _find_learner(op) or op
    return found


def _find_learner(op: Operator) -> _LearnerUpdate | None:
    """Return the CNTK learner whose steps an ``sgd`` operator subtracts, or None for a plain ``sgd``."""
    if op.type != "sgd":
        return None
    name = op.input("Param")[0]
    for kind, states in STATES.items():
        held = {
            state: one
            for state in (*states, "count")
            for one in op.block.vars
            if one.startswith(f"{name}_{kind}_{state}_")
        }
        if held:
            return _LearnerUpdate(op, kind, held)
    return None


def check_kinds(ops: Mapping[str, Update], error: type[LoadError] | type[SaveError]) -> None:
    """Raise ``error`` unless every operator has an equivalent among CNTK's learners."""
    for name, op in ops.items():
        if op.type not in KINDS:
            raise error(
                f"{name} is updated by {op.type}, whose state differs from CNTK's: its rmsprop, "
                "adagrad, adadelta and fsadagrad have other formulas",
                hint="train with adam, adamax, momentum or sgd, or with CNTK's own formulas: RMSPropLearner, "
                "AdagradLearner, AdadeltaLearner, FSAdagradLearner of paddlelike.training",
            )


def check_learner(ops: Mapping[str, Update], arrays: Mapping[str, Array], count: float | None) -> None:
    """Raise LoadError if the arrays of a learner's state have the shapes of another kind of learner.

    fsadagrad counts a norm where Adam counts updates; adagrad keeps squares where momentum has both signs.
    """
    kinds = {op.type for op in ops.values()}
    found = ""
    if kinds & set(_PAIRS) and count is not None and count != round(count):
        found = "fsadagrad"
    if "cntk_fsadagrad" in kinds and count and count == round(count):
        found = "adam"
    values = np.concatenate([one.reshape(-1) for one in arrays.values()]) if arrays else np.zeros(0)
    if "momentum" in kinds and values.size >= _MANY and values.min() >= 0 < values.max():
        found = "adagrad"
    if "cntk_adagrad" in kinds and values.size and values.min() < 0:
        found = "momentum_sgd"
    if found:
        raise LoadError(
            f"the checkpoint is of {found}, whose formula differs from {', '.join(sorted(kinds))}",
            hint="minimize with the optimizer that matches it: paddlelike.training has CNTK's own",
        )


def decode_state(
    op: Update, array: Array, count: float | None, *, rate: float, batch: float, unit_gain: bool
) -> dict[str, Array]:
    """Return the values of an operator's accumulators, computed from CNTK's state of its parameter.

    ``rate`` is the operator's own learning rate, ``batch`` the samples of a minibatch. Without ``unit_gain``
    CNTK's averages of gradients are 1 / (1 - beta1) times ours.

    Raises LoadError when the learner in the file has another kind.
    """
    kind, shape = op.type, tuple(op.block.var(op.input("Param")[0]).shape)
    _check_shape(op, array, shape, count)
    if kind in STATES:
        parts = np.split(array, len(STATES[kind])) if len(STATES[kind]) > 1 else [array]
        values = {
            op.input(state)[0]: part.reshape(shape) for state, part in zip(STATES[kind], parts, strict=True)
        }
        return values | ({op.input("count")[0]: np.full([1], count, array.dtype)} if kind in COUNTED else {})
    if kind == "sgd":
        return {}
    if kind == "momentum":
        if not rate:
            raise LoadError("the learning rate is 0, so the velocity cannot be computed")
        return {op.input("Velocity")[0]: array.reshape(shape) / np.asarray(rate, array.dtype)}
    values = {
        op.input(slot)[0]: half.reshape(shape)
        / np.asarray(_find_scale(op, slot, power, batch, unit_gain=unit_gain), array.dtype)
        for half, (slot, power) in zip(np.split(array, 2), _PAIRS[kind], strict=True)
    }
    steps = round(count or 0)
    for slot, attribute in _POWERS[kind].items():
        power = float(op.attrs[attribute]) ** (steps + 1)
        values[op.input(slot)[0]] = np.full([1], power, array.dtype)
    return values


def _check_shape(op: Update, array: Array, shape: tuple[int, ...], count: float | None) -> None:
    """Raise LoadError unless the file's array can be the state of the operator."""
    name, size = op.input("Param")[0], math.prod(shape)
    parts = 2 if op.type in _PAIRS else len(STATES.get(op.type, ("one",)))
    wanted = parts * size
    if op.type == "sgd":
        wanted = 1 if array.shape == () else -1
    counted = op.type in _PAIRS or op.type in COUNTED
    if array.size != wanted or counted != (count is not None) or (parts > 1 and array.shape[0] % parts):
        raise LoadError(
            f"the checkpoint keeps an array of shape {list(array.shape)} of {name} {list(shape)}, which "
            f"does not fit {op.type}: it was trained with another kind of learner",
            hint="minimize with the optimizer that matches it: paddlelike.training has CNTK's own",
        )


def _find_scale(op: Update, slot: str, power: int, batch: float, *, unit_gain: bool) -> float:
    """Return how many times larger CNTK's values of an accumulator of Adam are."""
    is_mean = slot in ("Moment1", "Moment")  # of gradients
    return batch**power / (1 if unit_gain or not is_mean else 1 - float(op.attrs["beta1"]))


def encode_state(op: Update, scope: Scope, *, rate: float, batch: float, unit_gain: bool) -> Array:
    """Return CNTK's state of a parameter, computed from the accumulators."""
    name = op.input("Param")[0]
    if op.type == "sgd":
        return np.zeros((), read_value(scope, name).dtype)
    if op.type == "momentum":
        velocity = read_value(scope, op.input("Velocity")[0])
        return np.asarray(velocity * np.asarray(rate, velocity.dtype))
    if len(STATES.get(op.type, ())) == 1:
        return read_value(scope, op.input(STATES[op.type][0])[0]).copy()
    slots = [(state, 0) for state in STATES[op.type]] if op.type in STATES else _PAIRS[op.type]
    halves = []
    for slot, power in slots:
        half = read_value(scope, op.input(slot)[0])
        scale = _find_scale(op, slot, power, batch, unit_gain=unit_gain) if op.type in _PAIRS else 1
        halves.append(np.atleast_1d(half * np.asarray(scale, half.dtype)))
    return np.concatenate(halves) if halves[0].ndim > 1 else np.stack(halves)


def count_updates(ops: Mapping[str, Update], scope: Scope) -> float | None:
    """Return the number of updates that Adam's averages contain, or None without such averages."""
    for op in ops.values():
        if op.type in COUNTED:
            return float(read_value(scope, op.input("count")[0]).reshape(-1)[0])
        for slot, attribute in _POWERS.get(op.type, {}).items():
            power = float(read_value(scope, op.input(slot)[0]).reshape(-1)[0])
            base = float(op.attrs[attribute])
            if slot == "Beta1Pow" and 0 < base < 1 and power > 1e-30:
                return float(max(round(math.log(power) / math.log(base)) - 1, 0))
    for op in ops.values():  # the first power is too small to tell
        if "Beta2Pow" in _POWERS.get(op.type, {}):
            power = float(read_value(scope, op.input("Beta2Pow")[0]).reshape(-1)[0])
            return float(max(round(math.log(max(power, 1e-300)) / math.log(float(op.attrs["beta2"]))) - 1, 0))
    return None


def read_value(scope: Scope, name: str) -> Array:
    """Return the array of a variable. Raises NotInitializedError when it holds none."""
    holder = scope.find_var(name)
    value = None if holder is None else holder.value
    if not isinstance(value, LoDTensor) or value.held_array is None:
        raise NotInitializedError(f"{name!r} holds no tensor", hint="run the startup program first")
    return value.held_array


def convert_rate(op: Update, rate: float, *, batch: float, reference: int, unit_gain: bool) -> float:
    """Return the learning rate of an operator here, computed from the rate of a CNTK learner.

    ``reference`` is the number of samples that CNTK's rate is for; 0 means any minibatch.
    """
    for_batch = rate * batch / reference if reference else rate
    return for_batch * _find_gain(op, batch, unit_gain=unit_gain)


def invert_rate(op: Update, rate: float, *, batch: float, reference: int, unit_gain: bool) -> float:
    """Return the learning rate of a CNTK learner, computed from the rate of an operator here."""
    for_batch = rate / _find_gain(op, batch, unit_gain=unit_gain)
    return for_batch * reference / batch if reference else for_batch


def _find_gain(op: Update, batch: float, *, unit_gain: bool) -> float:
    if op.type == "momentum":
        return 1 - float(op.attrs["mu"]) if unit_gain else 1.0
    if op.type not in _PAIRS:
        return 1.0
    return 1 / batch if unit_gain else 1 / (batch * (1 - float(op.attrs["beta1"])))


def list_rates(ops: Mapping[str, Update], scope: Scope) -> Iterator[tuple[str, str, float]]:
    """Yield each parameter, the variable of its learning rate, and the rate."""
    for name, op in ops.items():
        variable = op.input("LearningRate")[0]
        yield name, variable, float(read_value(scope, variable).reshape(-1)[0])
