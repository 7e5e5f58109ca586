"""Ownership of optimizer state by workers (``ReduceStrategy.Reduce``), and the program of each worker.

Each parameter has an owner: the worker with the fewest elements so far, as Fluid chooses among its devices.
Only the owner runs a parameter's update and holds its optimizer state. Gradients that nothing else reads are
summed for the owner alone, and updated parameters are gathered from all owners. Parameters that other
operators write too, and those with sparse gradients, stay with all workers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from paddlelike.core import VarType
from paddlelike.framework import Block, Operator, OpRole, Program
from paddlelike.framework.passes.views import collect_writes
from paddlelike.lazy import dataclass


@dataclass(frozen=True)
class Sharding:
    """Which worker owns each parameter and each optimizer state of one program.

    Attributes
    ----------
    owners
        The rank of the owner of each parameter.
    state
        For each variable of the optimizer's state, the rank of the only worker that holds it.
    gradients, gradient_owners
        The gradients that are summed for a single worker, and the rank of that worker.
    """

    owners: dict[str, int] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    gradients: list[str] = field(default_factory=list)
    gradient_owners: list[int] = field(default_factory=list)

    def find_others(self, rank: int) -> list[str]:
        """Return the names of the state that other workers hold."""
        return [name for name, owner in self.state.items() if owner != rank]

    def remove_updates(self, block: Block, rank: int) -> None:
        """Remove the updates of other workers' parameters, and gather the parameters after the last one."""
        chains = {name: chain for name, chain in _find_updates(block).items() if name in self.owners}
        own = (index for name in chains if self.owners[name] == rank for index in chains[name])
        kept = _find_needed(block, own) | _find_common(block, chains)
        removed = {i for chain in chains.values() for i in _find_needed(block, chain)} - kept
        rest = [op for index, op in enumerate(block.ops) if index not in removed]
        last = max(index for chain in chains.values() for index in chain)
        behind = sum(index > last for index in range(len(block.ops)) if index not in removed)
        block.ops = rest
        params = [block.var(name) for name in self.owners]
        attrs = {"owners": list(self.owners.values()), "op_role": OpRole.Optimize}
        block._insert_op(len(rest) - behind, "gather_from_owners", {"X": params}, {"Out": params}, attrs)


def plan_sharding(program: Program, workers: int, gradients: Iterable[str]) -> Sharding:
    """Assign the parameters and optimizer states of a program to ``workers``.

    ``gradients`` are those of the backward pass.
    """
    block = program.global_block()
    updates = {name: chain for name, chain in _find_updates(block).items() if _is_dense(block, chain)}
    found = Sharding()
    sizes = [0] * workers
    for name in updates:
        owner = found.owners[name] = sizes.index(min(sizes))
        sizes[owner] += math.prod(block.var(name).shape)
    readers: dict[str, set[str | None]] = {}
    chains: list[tuple[str | None, set[int]]] = [
        (name, _find_needed(block, chain)) for name, chain in updates.items()
    ]
    for param, needed in [*chains, (None, _find_common(block, updates))]:
        for index in needed:
            for read in block.ops[index].input_arg_names:
                readers.setdefault(read, set()).add(param)
    for gradient in gradients:
        params = readers.get(gradient, {None})
        if len(params) == 1 and None not in params:
            found.gradients.append(gradient)
            found.gradient_owners.append(found.owners[str(*params)])
    for param, chain in updates.items():
        for name in block.ops[chain[0]].output_arg_names:
            if name != param and block.var(name).persistable:
                found.state[name] = found.owners[param]
    return found


def _is_update(op: Operator) -> bool:
    return bool(op.attrs.get("op_role", 0) & OpRole.Optimize)


def _find_updates(block: Block) -> dict[str, list[int]]:
    """Return, for each parameter, its update operator and the operators that depend on it.

    A parameter is left out if another operator reads or writes its state, or reads the parameter before it is
    gathered.
    """
    writers: dict[str, list[int]] = {}
    for index, op in enumerate(block.ops):
        for name in collect_writes(op):
            writers.setdefault(name, []).append(index)
    chains: dict[str, list[int]] = {}
    several: set[str] = set()
    for index, op in enumerate(block.ops):
        if _is_update(op) and op.input("Param") and op.input("Grad") and op.output("ParamOut"):
            (param,) = op.input("Param")
            several |= {param} & chains.keys()
            chains[param] = _follow(block, index, max(writers[param]))
    gate = max((chain[-1] for chain in chains.values()), default=0)
    found = {}
    for param, chain in chains.items():
        ops = [block.ops[index] for index in chain]
        written = {name for op in ops for name in collect_writes(op)}
        kept = {name for name in written if block._var_recursive(name).persistable}
        is_alone = kept <= {*ops[0].output_arg_names} and param not in several
        for index, op in enumerate(block.ops):
            known = kept - {param} if index < chain[0] or index > gate else written
            others = known.intersection([*op.input_arg_names, *collect_writes(op)])
            is_alone = is_alone and (index in chain or not others)
        if is_alone and not any(op.sub_blocks() for op in ops):
            found[param] = chain
    return found


def _follow(block: Block, first: int, last: int) -> list[int]:
    """Return an operator, and the operators up to ``last`` that depend on it."""
    chain, written = [first], {*block.ops[first].output_arg_names}
    for index in range(first + 1, last + 1):
        op = block.ops[index]
        if not written.isdisjoint([*op.input_arg_names, *collect_writes(op)]):
            chain.append(index)
            written.update(collect_writes(op))
    return chain


def _is_dense(block: Block, chain: list[int]) -> bool:
    (gradient,) = block.ops[chain[0]].input("Grad")
    return block.var(gradient).type == VarType.LOD_TENSOR


def _find_needed(block: Block, chain: Iterable[int], known: Iterable[str] = ()) -> set[int]:
    """Return the update operators that need more than ``known`` variables, and what these depend on."""
    found = set(chain)
    wanted = {name for index in found for name in block.ops[index].input_arg_names}.difference(known)
    for index in range(max(found, default=-1), -1, -1):
        op = block.ops[index]
        if index not in found and _is_update(op) and not wanted.isdisjoint(op.output_arg_names):
            found.add(index)
            wanted.update(set(op.input_arg_names).difference(known))
    return found


def _find_common(block: Block, updates: Mapping[str, list[int]]) -> set[int]:
    """Return the update operators that every worker runs: operators without an owner, and what these need."""
    own = {index for chain in updates.values() for index in _find_needed(block, chain)}
    rest = {index for index, op in enumerate(block.ops) if _is_update(op) and index not in own}
    return _find_needed(block, rest, updates)  # gathered parameters
