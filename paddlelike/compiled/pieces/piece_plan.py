"""A plan that also says what every operator reads and writes, by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddlelike.executor.plans.frame import Positions, Step
from paddlelike.executor.plans.layout import NOTHING
from paddlelike.executor.plans.run_plan import Outputs, Plan
from paddlelike.executor.plans.touched import find_row_gradients
from paddlelike.framework import Block, Operator, Program
from paddlelike.framework.opdef import EMPTY, GRAD, OpDef, registry


class CompiledPlan(Plan):
    """A plan for one choice of feeds and fetches.

    Attributes
    ----------
    inputs_of, outputs_of : dict
        The positions by slot of each operator, by its ``id``.
    without_dims : set
        The positions of variables of shape ``()``.
    gradients : set
        The positions of values that operators (also `sum`) read as gradients.
    differentiated : set
        The types of operators whose gradient operators are in the program.
    block_gradients : dict
        For each step that runs a block, the step that computes its gradient.
    made_as_rows : set
        The ``id`` of each operator whose dense gradient may stay rows, see
        :mod:`paddlelike.executor.plans.touched`.
    row_updates : dict
        The index of such a gradient, by the ``id`` of the update that reads it.
    batch : set
        The positions of feeds, and of the results of readers in the program.
    reads, writes : list
        The positions that each step reads or writes, blocks included.
    """

    groups_steps = False

    def __init__(
        self, program: Program, feeds: Sequence[str], fetches: Sequence[str], ops: Iterable[int] | None
    ) -> None:
        self.inputs_of: dict[int, Positions] = {}
        self.outputs_of: dict[int, Positions] = {}
        self.without_dims: set[int] = set()
        self.gradients: set[int] = set()
        super().__init__(program, feeds, fetches, ops)
        types = {op.type for block in program.blocks for op in block.ops}
        self.differentiated = {type.removesuffix("_grad") for type in types if type.endswith("_grad")}
        self.block_gradients = _pair_blocks(self.steps)
        self.reads = [self._collect(step.op, self.inputs_of) for step in self.steps]
        self.writes = [self._collect(step.op, self.outputs_of) for step in self.steps]
        read_here = (w for s, w in zip(self.steps, self.writes, strict=True) if s.op.type == "read")
        self.batch = {one.position for one in self.fed.values()}.union(*read_here)
        kept = self.layout.persistables.keys()
        for step, read, written in zip(self.steps, self.reads, self.writes, strict=True):
            if step.op.sub_blocks():
                read |= written & kept  # their present values, if the block is not run
        top = program.global_block()
        run = [step.op for step in self.steps]
        kept_names = {*self.fetches, *self.fetched_by_op.values(), *self.fed}
        rows = find_row_gradients(top, run, kept_names)
        self.made_as_rows = {id(run[index]) for index in rows.producers}
        self.row_updates = {id(run[index]): index for index in rows.updates}
        fetched = [self.layout.get_position(top, name) for name in self.fetched_by_op.values()]
        needed = {*self.fetch_positions, *fetched}
        self.needed_after: list[set[int]] = [needed]
        for read in reversed(self.reads[1:]):
            self.needed_after.insert(0, self.needed_after[0] | read)

    @staticmethod
    def _arrange(ops: list[Operator]) -> list[Operator]:
        """Move each sum over workers to the operator that waits for it, so that one piece computes them
        all.
        """
        delayed: list[Operator] = []
        found: list[Operator] = []
        for op in ops:
            if op.type == "c_allreduce_sum" and not op.attrs["use_calc_stream"]:
                delayed.append(op)
                continue
            used = {*op.input_arg_names, *op.output_arg_names}
            if op.type == "c_sync_comm_stream" or any(used & set(one.output("Out")) for one in delayed):
                found += delayed
                delayed = []
            found.append(op)
        return found + delayed

    def _collect(self, op: Operator, table: dict[int, Positions]) -> set[int]:
        found = set(_flatten(table.get(id(op), ())))
        for index in op.sub_blocks():
            for inner in self.program.blocks[index].ops:
                found |= self._collect(inner, table)
        return found

    def find_unsigned(self, steps: range) -> set[int]:
        """Return the positions of state that must have no NaN and no sign bit, for updates of single rows."""
        found: set[int] = set()
        for index in self.row_updates.values():
            op = self.steps[index].op
            cls = registry.find_for_version(op.type, self.program.paddle_version)
            if cls is None or index not in steps:
                continue
            rule = cls.get_row_update(cls.make_forward_keywords(op.attrs, op.outputs))
            if rule is not None:
                found |= {n for slot in rule.unsigned for n in _flatten([self.inputs_of[id(op)][slot]])}
        return found

    def find_gradient_reads(self, block: int) -> set[int]:
        """Return the positions that the gradient of a block reads."""
        blocks = (one for one in self.program.blocks if one.forward_block_idx == block)
        return {n for one in blocks for op in one.ops for n in self._collect(op, self.inputs_of)}

    def find_writes(self, block: int) -> set[int]:
        """Return the positions that a block writes."""
        return {n for op in self.program.blocks[block].ops for n in self._collect(op, self.outputs_of)}

    def writes_behind(self, index: int) -> bool:
        """Return whether the blocks of a step write persistables that are not outputs of its operator.

        For example, a block that minimizes its loss writes parameters.
        """
        named = set(_flatten(self.outputs_of.get(id(self.steps[index].op), ())))
        return not (self.writes[index] & self.layout.persistables.keys()) <= named

    def _get_input_positions(self, cls: type[OpDef], op: Operator, block: Block) -> Positions:
        positions = super()._get_input_positions(cls, op, block)
        self.inputs_of[id(op)] = positions
        for slot, found in zip(cls.input_slots, positions, strict=True):
            several = found if isinstance(found, list) else [found]
            names = op.inputs.get(slot.name, ())
            self.gradients.update(
                n for n, name in zip(several, names, strict=False) if slot.name.endswith(GRAD) or GRAD in name
            )
        return positions

    def _bind_outputs(self, cls: type[OpDef], op: Operator, block: Block, index: int | None) -> Outputs:
        bound = super()._bind_outputs(cls, op, block, index)
        targets = [
            [self._find(block, name) for name in op.outputs.get(slot.name, ())] for slot in cls.output_slots
        ]
        self.outputs_of[id(op)] = [
            found if slot.several else found[0] if found else -1
            for slot, found in zip(cls.output_slots, targets, strict=True)
        ]
        return bound

    def _find(self, block: Block, name: str) -> int:
        if name == EMPTY:
            return -1
        position = self.layout.get_position(block, name)
        variable = block._find_var_recursive(name)
        if block.program.paddle_version >= 2_005_000 and variable is not None and variable.shape == ():
            self.without_dims.add(position)
        return position


def _pair_blocks(steps: Sequence[Step]) -> dict[int, int]:
    """Return the index of the gradient of each operator with a block; both name the same scopes."""
    scopes = ("Scope", "StepScopes", "step_scopes")
    made = {n: i for i, step in enumerate(steps) for slot in scopes for n in step.op.output(slot)}
    return {
        made[name]: index
        for index, step in enumerate(steps)
        if step.op.type.endswith("_grad")
        for slot in scopes
        for name in step.op.input(slot)
        if name in made
    }


def _flatten(positions: Positions) -> list[int]:
    found = [n for item in positions for n in (item if isinstance(item, list) else [item])]
    return [n for n in found if n > NOTHING]
