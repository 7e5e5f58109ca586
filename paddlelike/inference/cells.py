"""Loops over LSTM and GRU cells, which prediction computes as one step.

``layers.rnn`` runs a block of some twenty operators for each step of a ``recurrent`` operator. If the block
computes an ``LSTMCell`` or ``GRUCell``, the products with the inputs of all steps become one product before
the loop. The formula of a block is derived from its operators, as an expression of inputs, states and
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array
from paddlelike.errors import ShapeError
from paddlelike.framework import Operator
from paddlelike.inference import onednn, onednn_library
from paddlelike.ops.kernels.linalg import multiply_rows
from paddlelike.ops.kernels.special import sigmoid

Expression = tuple[object, ...]
Constants = Callable[[str], Array | None]  # the value of a variable that is the same in every run
Kernel = Callable[..., tuple[Array, ...]]
Product = Callable[[Array], Array]

_X: Final[Expression] = ("input", 0)
_H: Final[Expression] = ("state", 0)
_C: Final[Expression] = ("state", 1)


class Loop(NamedTuple):
    """A ``recurrent`` operator as a function of its input ``(T, N, I)`` and its initial states ``(N, H)``.

    Attributes
    ----------
    inputs
        The variables that the kernel takes.
    outputs
        The result that each variable gets; a result is a state after each step, ``(T, N, H)``.
    """

    kernel: Kernel
    inputs: list[str]
    outputs: dict[str, int]


def find_loop(op: Operator, find_constant: Constants, library: onednn_library.Library | None) -> Loop | None:
    """Return a ``recurrent`` operator as a loop over a known cell, or None if its cell is unknown."""
    xs, initial = op.input("inputs"), op.input("initial_states")
    inner, states = list(op.attrs["ex_states"]), list(op.attrs["states"])
    if len(xs) != 1 or not 1 <= len(initial) <= 2 or len(states) != len(initial):
        return None
    known: dict[str, Expression] = {xs[0]: _X, **{name: ("state", i) for i, name in enumerate(inner)}}
    _read_block(op.block.program.blocks[op.attrs["sub_block"]].ops, known)
    after = [known.get(name, ()) for name in states]
    found = [after.index(known[name]) if known.get(name) in after else -1 for name in op.output("outputs")]
    match = _match_gru(after[0]) if len(initial) == 1 else _match_lstm(*after)
    if match is None or -1 in found:
        return None
    make, names = match
    constants = [find_constant(name) for name in names]
    if any(one is None for one in constants):
        return None
    given = (one for one in constants if one is not None)
    kernel = make(*given, reverse=bool(op.attrs.get("reverse")), library=library)
    if kernel is None:
        return None
    return Loop(kernel, [*xs, *initial], dict(zip(op.output("outputs"), found, strict=True)))


def _read_block(ops: Sequence[Operator], known: dict[str, Expression]) -> None:
    """Add an expression for every operator of a block. An operator of another type becomes a leaf."""
    for index, op in enumerate(ops):
        slots = [known.get(name, ("variable", name)) for name in op.input("X") + op.input("Y")]
        outs = op.output("Out")
        if op.type in ("rnn_memory_helper", "assign") and len(slots) == 1:
            known[outs[0]] = slots[0]
        elif op.type in ("elementwise_add", "elementwise_mul") and _aligns_ends(op):
            known[outs[0]] = _combine(op.type[12:], *slots)
        elif op.type == "matmul" and _is_plain_product(op):
            known[outs[0]] = ("matmul", *slots)
        elif op.type == "concat" and op.attrs.get("axis") == 1 and not op.input("AxisTensor"):
            known[outs[0]] = ("concat", *slots)
        elif op.type == "split" and _is_even_split(op):
            known.update((name, ("part", i, len(outs), slots[0])) for i, name in enumerate(outs))
        elif op.type in ("sigmoid", "tanh"):
            known[outs[0]] = (op.type, slots[0])
        elif op.type == "scale" and not op.input("ScaleTensor") and op.attrs.get("bias_after_scale", True):
            known[outs[0]] = ("scale", op.attrs.get("scale", 1.0), op.attrs.get("bias", 0.0), slots[0])
        else:
            known.update((name, ("unknown", index, i)) for i, name in enumerate(op.output_arg_names))


def _combine(kind: str, *parts: Expression) -> Expression:
    """Return a sum or a product, the same for both orders of the operands."""
    return (kind, *sorted(parts, key=repr))


def _aligns_ends(op: Operator) -> bool:
    """Return whether X and Y are broadcast along their last dims."""
    find = op.block._find_var_recursive
    ranks = {len(one.shape) for name in op.input_arg_names if (one := find(name)) is not None}
    return op.attrs.get("axis", -1) == -1 or len(ranks) == 1


def _is_plain_product(op: Operator) -> bool:
    flags = (op.attrs.get(name, False) for name in ("transpose_X", "transpose_Y"))
    return not any(flags) and op.attrs.get("alpha", 1.0) == 1.0


def _is_even_split(op: Operator) -> bool:
    computed = op.input("AxisTensor") or op.input("SectionsTensorList") or op.attrs.get("sections")
    return not computed and op.attrs.get("axis") == 1


def _match_affine(found: object, *joined: Expression) -> list[str] | None:
    """Return the weight and the bias if an expression is ``concat(joined) W + b``, else None."""
    if not isinstance(found, tuple) or len(found) != 3 or found[0] != "add":
        return None
    for product, bias in (found[1:], found[:0:-1]):
        if (
            isinstance(product, tuple)
            and isinstance(bias, tuple)
            and product[:2] == ("matmul", ("concat", *joined))
            and product[2][0] == bias[0] == "variable"
        ):
            return [product[2][1], bias[1]]
    return None


def _search(found: object, kind: str) -> list[Expression]:
    """Return the subexpressions with an operator of that name, the outermost first."""
    if not isinstance(found, tuple):
        return []
    inside = [part for one in found for part in _search(one, kind)]
    return [found, *inside] if found and found[0] == kind else inside


def _match_lstm(h: Expression, c: Expression) -> tuple[Callable[..., Kernel | None], list[str]] | None:
    """Match ``LSTMCell``.

    Return a function that makes its kernel, and the constants: weight, bias, forget bias.
    """
    for gates in {part[3] for part in _search(c, "part") if isinstance(part[3], tuple)}:
        i, j, f, o = (("part", k, 4, gates) for k in range(4))
        names = _match_affine(gates, _X, _H)
        new = _combine("mul", ("sigmoid", i), ("tanh", j))
        for added in _search(c, "variable"):
            old = _combine("mul", _C, ("sigmoid", _combine("add", f, added)))
            is_cell = c == _combine("add", old, new) and h == _combine("mul", ("tanh", c), ("sigmoid", o))
            if names and is_cell:
                return _make_lstm, [*names, str(added[1])]
    return None


def _match_gru(h: Expression) -> tuple[Callable[..., Kernel | None], list[str]] | None:
    """Match ``GRUCell``.

    Return a function that makes its kernel, and the constants of gates and candidate.
    """
    for gates in {part[3] for part in _search(h, "part") if isinstance(part[3], tuple)}:
        r, u = (("part", k, 2, gates) for k in range(2))
        names = _match_affine(gates[1], _X, _H) if gates[0] == "sigmoid" else None
        for candidate in _search(h, "tanh"):
            rest = _combine("mul", ("scale", -1.0, 1.0, u), candidate)
            more = _match_affine(candidate[1], _X, _combine("mul", r, _H))
            if names and more and h == _combine("add", _combine("mul", u, _H), rest):
                return _make_gru, [*names, *more]
    return None


def _make_lstm(
    w: Array, b: Array, forget: Array, *, reverse: bool, library: onednn_library.Library | None
) -> Kernel | None:
    size = len(b) // 4
    if forget.shape != (1,) or w.shape[1:] != (4 * size,) or w.shape[0] <= size:
        return None
    # Columns in the order input, forget, output, candidate; the gates are negated for exp.
    order = np.r_[0:size, 2 * size : 4 * size, size : 2 * size]
    added = b.copy()
    added[2 * size : 3 * size] += forget
    sign = np.where(np.arange(4 * size) < 3 * size, -1, 1).astype(w.dtype)
    w, added = w[:, order] * sign, added[order] * sign
    project = _make_product(library, np.ascontiguousarray(w[:-size]), added)
    recur = _make_product(library, np.ascontiguousarray(w[-size:]))

    def run(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        steps = _multiply_inputs(x, w.dtype, project, (h, c), size)
        hs, cs = (np.empty((*x.shape[:2], size), w.dtype) for _ in range(2))
        for t in range(len(x))[:: -1 if reverse else 1]:
            z = steps[t]
            z += recur(h)
            gates, candidate = z[:, : 3 * size], z[:, 3 * size :]
            np.exp(gates, out=gates)
            gates += 1
            np.reciprocal(gates, out=gates)
            np.tanh(candidate, out=candidate)
            candidate *= gates[:, :size]
            c = np.multiply(gates[:, size : 2 * size], c, out=cs[t])
            c += candidate
            h = np.tanh(c, out=hs[t])
            h *= gates[:, 2 * size :]
        return hs, cs

    return run


def _make_gru(
    w: Array,
    b: Array,
    w_candidate: Array,
    b_candidate: Array,
    *,
    reverse: bool,
    library: onednn_library.Library | None,
) -> Kernel | None:
    size = len(b_candidate)
    if b.shape != (2 * size,) or w.shape[1:] != (2 * size,) or w_candidate.shape != (len(w), size):
        return None
    inputs = np.hstack([w[:-size], w_candidate[:-size]])
    project = _make_product(library, inputs, np.hstack([b, b_candidate]))
    recur, recur_candidate = (_make_product(library, one[-size:]) for one in (w, w_candidate))

    def run(x: Array, h: Array) -> tuple[Array]:
        steps = _multiply_inputs(x, w.dtype, project, (h,), size)
        hs = np.empty((*x.shape[:2], size), w.dtype)
        for t in range(len(x))[:: -1 if reverse else 1]:
            gates = recur(h)  # of its own memory, whose rows follow each other
            gates += steps[t, :, : 2 * size]
            sigmoid(gates, gates)
            candidate = recur_candidate(gates[:, :size] * h)
            candidate += steps[t, :, 2 * size :]
            np.tanh(candidate, out=candidate)
            h = np.subtract(h, candidate, out=hs[t])
            h *= gates[:, size:]
            h += candidate
        return (hs,)

    return run


def _make_product(library: onednn_library.Library | None, w: Array, bias: Array | None = None) -> Product:
    """Return the function ``x w + bias``, computed by the library if it accepts the shapes."""

    def multiply_plain(x: Array) -> Array:
        out = multiply_rows(x, w)
        if bias is not None:
            out += bias
        return out

    if library is None or w.dtype != np.float32:
        return multiply_plain
    return onednn.Product(library, w, bias, 1, None, multiply_plain)


def _multiply_inputs(
    x: Array, dtype: np.dtype[Any], project: Product, states: Sequence[Array], size: int
) -> Array:
    """Return the products of all steps with the inputs. Raises ShapeError for states of another shape."""
    steps, batch, width = x.shape
    if x.dtype != dtype or any(h.shape != (batch, size) or h.dtype != x.dtype for h in states):
        raise ShapeError(f"recurrent: input of shape {x.shape}, states {[h.shape for h in states]}")
    return project(x.reshape(steps * batch, width)).reshape(steps, batch, -1)
