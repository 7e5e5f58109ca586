"""The plans of a program, each bound at its first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlelike.errors import FeedError
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework import Operator, Program
from paddlelike.framework.passes.views import find_needed_ops


def get_plan(
    program: Program,
    feeds: Mapping[str, Any],
    fetches: list[str],
    pruned_to: tuple[Operator, ...] | None,
    kind: type[Plan] = Plan,
) -> Plan:
    """Return the plan for this choice of feeds and fetches, created at its first use.

    With ``pruned_to``, only these operators run, and those that they and the fetches need.
    """
    key = (kind, frozenset(feeds), tuple(fetches), pruned_to)
    plan = program.plans.get(key)
    if plan is None:
        _check_feed_names(feeds)
        ops = None
        if pruned_to is not None:
            block = program.global_block()
            ops = find_needed_ops(block, targets=set(fetches), fed=set(feeds), kept=pruned_to)
        plan = pause_collection(kind)(program, sorted(feeds), fetches, ops)
        _check_feed_operators(plan, feeds)
        program.plans[key] = plan
    return plan


def _check_feed_names(feeds: Mapping[str, Any]) -> None:
    """Raise TypeError unless all keys are names."""
    for name in feeds:
        if not isinstance(name, str):
            shown = repr(getattr(name, "name", "x"))
            raise TypeError(f"feed has the key {name!r}, expected the name of a variable: {{{shown}: array}}")


def _check_feed_operators(plan: Plan, feeds: Mapping[str, Any]) -> None:
    """Raise FeedError unless the feeds are exactly the ones that the program's feed operators name, if it has
    any.
    """
    if plan.fed_by_op and set(plan.fed_by_op.values()) != set(feeds):
        wanted = sorted(plan.fed_by_op.values())
        raise FeedError(
            f"the program has feed operators for {wanted}, but feed holds {sorted(feeds)}",
            hint="feed these names alone, as load_inference_model returns them",
        )
