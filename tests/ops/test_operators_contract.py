"""Every operator has the slots, attributes, defaults and gradients of Paddle 1.8.5's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from paddlelike.core import AttrType
from paddlelike.framework.graph.operator import COMMON_ATTRS
from paddlelike.framework.opdef import ABSENT, REQUIRED, Attr, AttrTable, GradOp, OpDef, Slot, registry
from tests.helpers.golden_data import table
from tests.ops.harness.collect import LATER, PADDLE2
from tests.ops.harness.contract import View

GOLDEN = table("operators185")
FORWARD = {name: op for name, op in registry.all_ops().items() if op.forward_of is None}

#: Operators of this package alone: tables that grow, of which Paddle's programs know nothing.
OURS = [
    *("count_sparse_table", "distributed_sparse_embedding", "make_sparse_table", "sparse_embedding"),
    *("gather_from_owners", "reduce_to_owners"),
]

#: Operators that only builds with CUDA have, which the table was not made with.
OF_CUDA = ["c_gen_nccl_id", "gen_nccl_id", "sync_batch_norm"]

_ABORTED = "needs a program around it: the question aborted the real system"
#: Operators whose gradient is not compared, and why.
NOT_ASKED = {
    "conditional_block": _ABORTED,
    "py_func": "the functions that it calls decide",
    "recurrent": _ABORTED,
    "reshape": "the real system refused the question: its several Shape inputs must be one",
    "run_program": _ABORTED,
    "while": _ABORTED,
}

#: Values with which the real system was asked, where any other is refused.
ASKED_WITH = {"fused_elemwise_activation": {"functor_list": ["elementwise_add", "relu"]}}

#: A value for an attribute that must be given.
GIVEN = {
    AttrType.INT: 1, AttrType.FLOAT: 1.0, AttrType.STRING: "x", AttrType.INTS: [1, 1],
    AttrType.FLOATS: [1.0, 1.0], AttrType.STRINGS: ["a"], AttrType.BOOLEAN: False,
    AttrType.BOOLEANS: [False], AttrType.LONG: 1, AttrType.LONGS: [1, 1], AttrType.BLOCK: 0,
}  # fmt: skip


def test_every_operator_belongs_to_paddle_or_is_listed_as_ours() -> None:
    unknown = [name for name in FORWARD if name not in GOLDEN and not name.endswith("_grad")]
    unknown = [name for name in unknown if name not in PADDLE2]
    assert sorted(unknown) == sorted([*LATER, *OURS, *OF_CUDA])


@pytest.mark.parametrize("name", [name for name in FORWARD if name in GOLDEN])
def test_the_slots_attributes_and_gradient_of_an_operator_match_paddle(name: str) -> None:
    op, golden = FORWARD[name], GOLDEN[name]
    assert list(op.inputs) == golden["inputs"]
    assert list(op.outputs) == golden["outputs"]
    assert {key: describe_attr(attr) for key, attr in op.attrs.items()} == golden["attrs"]
    if name not in NOT_ASKED:
        check_gradient(name, golden["grad"], bare=False)
        if any("?" in slot for slot in golden["inputs"]):
            check_gradient(name, golden.get("grad_bare", golden["grad"]), bare=True)


def check_gradient(name: str, wanted: list[Any], *, bare: bool) -> None:
    """Compare the gradient with all slots filled or, ``bare``, with those empty that may be absent."""
    op = FORWARD[name]
    if not wanted:
        assert op.gradient is None
        assert "make_grad" not in vars(op)
        return
    view = fill_slots(op, bare=bare)
    got = op.make_grad(view)
    assert [grad.type for grad in got] == [grad["type"] for grad in wanted], f"bare: {bare}"
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.inputs == theirs["inputs"]
        assert mine.outputs == theirs["outputs"]
        assert mine.own_attrs is not theirs["inherits_op_namescope"]
        assert attributes(mine) == wanted_attributes(theirs, view.attrs)


def test_functions_with_many_attributes_take_an_attributes_object() -> None:
    for name, op in FORWARD.items():
        derived = registry.find_or_none(f"{name}_grad")
        functions = [*getattr(op, "infer_attrs", ()), *op.forward_attrs]
        if derived is not None and derived.forward_of is op:
            functions += derived.forward_attrs
        assert isinstance(op.attrs, AttrTable) or len(set(functions)) <= 3, f"{name}: a subclass of Attrs"


def describe_attr(attr: Attr) -> list[Any]:
    """An attribute as the table tells it."""
    if attr.default is REQUIRED or attr.default is ABSENT:
        return [attr.type.name, repr(attr.default)]
    return [attr.type.name, simplify(attr.default)]


def simplify(value: Any) -> Any:
    """Tuples as lists, floats as the float32 prints."""
    if isinstance(value, list | tuple):
        return [simplify(item) for item in value]
    return float(str(np.float32(value))) if isinstance(value, float) else value


def fill_slots(op: type[OpDef], *, bare: bool) -> View:
    """The operator with a variable <slot>_0 in every slot (and <slot>_1 where it takes several)."""

    def names(slot: Slot) -> list[str]:
        if bare and slot.optional:
            return []
        return [f"{slot.name}_{i}" for i in range(2 if slot.several else 1)]

    attrs = {
        key: GIVEN[attr.type] if attr.default is REQUIRED else attr.default
        for key, attr in op.attrs.items()
        if attr.default is not ABSENT
    } | ASKED_WITH.get(op.type, {})
    return View(
        op.type,
        {slot.name: names(slot) for slot in op.input_slots},
        {
            slot.name: [f"{slot.name}_{i}" for i in range(2 if slot.several else 1)]
            for slot in op.output_slots
        },
        attrs,
    )


def attributes(grad: GradOp) -> dict[str, Any]:
    """The attributes of a gradient operator of ours, its own defaults filled in."""
    full = {**defaults(grad.type), **grad.attrs}
    return {key: simplify(value) for key, value in full.items() if key not in COMMON_ATTRS}


def wanted_attributes(golden: Any, forward: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: simplify(forward[key]) for key in golden["attrs_kept"]}
    new = {key: value for key, (_, value) in golden["attrs_new"].items()}
    return {key: simplify(value) for key, value in defaults(golden["type"]).items()} | kept | new


def defaults(name: str) -> dict[str, Any]:
    return {
        key: attr.default
        for key, attr in registry.find(name).attrs.items()
        if attr.default is not ABSENT and attr.default is not REQUIRED
    }
