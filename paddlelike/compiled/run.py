"""Run a program with JAX: what ``Executor`` calls for ``FLAGS_backend=jax`` and ``with_backend("jax")``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.compiled.backend import load_jax
from paddlelike.core import Place, Scope
from paddlelike.executor.exchange.feeds import put_feeds, warn_unknown
from paddlelike.executor.exchange.fetches import get_fetched
from paddlelike.executor.exchange.files import provide_files
from paddlelike.executor.plans.cached import get_plan
from paddlelike.executor.plans.frame import Frame
from paddlelike.executor.startup import warn_overwriting
from paddlelike.framework import Operator, Program
from paddlelike.ops.remote.collective import find_job

if TYPE_CHECKING:
    from paddlelike.compiled.engine import Engine


def run_program(
    program: Program,
    feeds: Mapping[str, Any],
    fetches: list[str],
    scope: Scope,
    return_numpy: bool,
    pruned_to: tuple[Operator, ...] | None,
    services: dict[str, Any],
    place: Place,
) -> list[Any] | None:
    """Return the fetched values; None for a program without operators to compile, such as a save.

    Raises ExtraMissingError without JAX; for the rest see :meth:`~paddlelike.executor.run.Executor.run`.
    """
    if not program.plans:
        for op in program.global_block().ops:  # before JAX computes anything: it joins no job afterwards
            if op.type in ("c_gen_nccl_id", "gen_nccl_id"):
                services["remote"].find_workers().join(*find_job(op))
    engine = find_engine(program, feeds, fetches, pruned_to, place)
    plan = engine.plan
    if plan.is_batch or not engine.pieces:
        return None
    if plan.uses_files:
        with provide_files(plan, scope, services) as provided:
            frame = _run_engine(engine, program, feeds, scope, provided)
    else:
        frame = _run_engine(engine, program, feeds, scope, services)
    return [
        get_fetched(plan, frame, name, position, return_numpy)
        for name, position in zip(fetches, plan.fetch_positions, strict=True)
    ]


def _run_engine(
    engine: Engine, program: Program, feeds: Mapping[str, Any], scope: Scope, services: dict[str, Any]
) -> Frame:
    """Run a program once, and return the frame with its values."""
    plan = engine.plan
    frame = engine.create_frame(scope, services)
    if plan.initializes:
        warn_overwriting(scope, plan.initializes)
    if plan.unknown_feeds:
        warn_unknown(program, plan.unknown_feeds)
    put_feeds(plan, frame, feeds)
    engine.run(frame)
    return frame


def run_copies(
    program: Program,
    feeds: Sequence[Mapping[str, Any]],
    fetches: list[str],
    scope: Scope,
    places: Sequence[Place],
    gradients: list[str],
    *,
    average: bool,
    runs_once: Callable[[Operator], bool],
) -> list[list[Any]] | None:
    """Return for every fetch its values in all copies of a program, one per place; None if numpy has to run.

    Raises ExtraMissingError without JAX, UnsupportedError where there are fewer devices than copies.
    """
    load_jax()
    from paddlelike.compiled.parallel import Copies
    from paddlelike.compiled.pieces.piece_plan import CompiledPlan

    key = ("copies", frozenset(feeds[0]), tuple(fetches), tuple(places), len(feeds), average)
    copies = program.plans.get(key)
    if copies is None:
        plan = CompiledPlan(program, sorted(feeds[0]), [*fetches, *gradients], None)
        plan.fetch_positions, positions = (
            plan.fetch_positions[: len(fetches)],
            plan.fetch_positions[len(fetches) :],
        )
        steps = list(enumerate(plan.steps))
        copies = program.plans[key] = Copies(
            plan,
            places[: len(feeds)],
            each_copy=[index for index, step in steps if not runs_once(step.op)],
            once=[index for index, step in steps if runs_once(step.op)],
            gradients=positions,
            average=average,
        )
    found: list[list[Any]] | None = copies.run(scope, feeds)
    return found


def find_engine(
    program: Program,
    feeds: Mapping[str, Any],
    fetches: list[str],
    pruned_to: tuple[Operator, ...] | None,
    place: Place,
) -> Any:
    """Return the engine for this choice of feeds and fetches, created at its first use."""
    key = ("engine", frozenset(feeds), tuple(fetches), pruned_to, place)
    engine = program.plans.get(key)
    if engine is None:
        load_jax()
        from paddlelike.compiled.engine import Engine
        from paddlelike.compiled.pieces.piece_plan import CompiledPlan

        plan = get_plan(program, feeds, fetches, pruned_to, CompiledPlan)
        assert isinstance(plan, CompiledPlan)
        engine = program.plans[key] = Engine(plan, place)
    return engine
