"""A program from the graph of a CNTK function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from paddlelike import unique_name
from paddlelike.core import Array
from paddlelike.errors import FormatError, PaddlelikeError, UnsupportedError
from paddlelike.framework import Program, Variable, default_main_program, program_guard
from paddlelike.input import data
from paddlelike.interop.cntk.function import INPUT, PARAMETER, Function, Leaf, Node, split_output
from paddlelike.interop.cntk.operations import NUMBERS, name_operation
from paddlelike.interop.cntk.reading.recurrent import SHIFTS, add_recurrence
from paddlelike.interop.cntk.reading.step import DATA_TYPES, Step, Value, load_readers
from paddlelike.interop.reader_tables import InexpressibleError

_REDUCE: Final = NUMBERS["ReduceElements"]  # without padding


class Built(NamedTuple):
    """A program without values.

    Attributes
    ----------
    feeds
        The names of the inputs, in the order of the file.
    outputs
        The outputs of the function.
    arrays
        The values of parameters and constants, by name.
    values
        The value of each leaf and output of the function, by its uid.
    """

    program: Program
    startup: Program
    feeds: list[str]
    outputs: list[Variable]
    arrays: dict[str, Array]
    values: dict[str, Value]


def build_program(function: Function, *, title: str, batch: float | None = None) -> Built:
    """Return the program of a function; parameters have their uids as names.

    ``batch`` is the size of the minibatches for training, or None for prediction.

    Raises
    ------
    UnsupportedError
        It has operations that no program expresses: all of them are listed.
    FormatError
        An operation lacks an input or an attribute.
    """
    program, startup = Program(), Program()
    given = [text for leaf in function.leaves.values() for text in (leaf.name, leaf.uid)]
    prefix = "cntk_" if any(".tmp_" in text for text in given) else None  # names that layers would give
    with unique_name.guard(prefix), program_guard(program, startup):
        build = _Build(function, batch=batch, title=title)
        build.run()
        build.name_outputs()
        outputs = [build.values[uid].variable for uid in function.outputs]
    return Built(program, startup, build.feeds, outputs, build.arrays, build.values)


class _Build:
    def __init__(self, function: Function, *, batch: float | None, title: str) -> None:
        self.function = function
        self.batch = batch
        self.title = title
        self.values: dict[str, Value] = {}
        self.feeds: list[str] = []
        self.arrays: dict[str, Array] = {}
        self._groups = list(function.order())

    def run(self) -> None:
        self._check_all()
        needed = {uid for group in self._groups for node in group for uid in node.inputs}
        for leaf in self.function.leaves.values():
            if leaf.uid in needed or leaf.uid in self.function.outputs:
                self.values[leaf.uid] = self._add_leaf(leaf)
        refused: list[str] = []
        for group in self._groups:
            node = group[0]
            try:
                self._add(group)
            except InexpressibleError as error:
                refused.append(f"{name_operation(node.op)} ({node.uid}): {error}")
                break  # later operators read it
        if refused:
            self._refuse(refused)
        self._settle(self.function.outputs)

    def name_outputs(self) -> None:
        """Name the output of a named layer after the layer, if that name is free."""
        block = default_main_program().global_block()
        inner = {
            name
            for one in default_main_program().blocks[1:]
            for op in one.ops
            for name in (*op.input_arg_names, *op.output_arg_names)
        }
        ports = {*self.feeds, *self.arrays, *inner}
        for uid, name in self.function.output_names.items():
            value = self.values.get(uid)
            if value is None or value.variable.name in ports or block.has_var(name) or name in ports:
                continue
            block._rename_var(value.variable.name, name)
            ports.add(name)

    def _check_all(self) -> None:
        """Raise one error that lists all operations that are not in the table."""
        table = load_readers()
        missing = Counter(
            name_operation(node.op)
            for group in self._groups
            for node in group
            if node.op not in table and node.op not in SHIFTS
        )
        if missing:
            self._refuse(
                [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(missing.items())]
            )

    def _refuse(self, reasons: list[str]) -> None:
        raise UnsupportedError(
            f"{self.title}: these operations are not supported in programs: {'; '.join(reasons)}",
            hint="its values alone are read by paddlelike.convert and fluid.load_program_state",
        )

    def _add_leaf(self, leaf: Leaf) -> Value:
        if leaf.data_type not in DATA_TYPES:
            raise FormatError(f"{leaf.uid!r:.200} has elements of type {leaf.data_type}")
        dtype = DATA_TYPES[leaf.data_type]
        if leaf.kind == INPUT:
            lead = [-1] if leaf.dynamic else []
            shape = [*lead, *leaf.shape] or [1]
            variable = data(self._name(leaf), shape, dtype, lod_level=int(leaf.sequence))
            self.feeds.append(variable.name)
            return Value(variable, leaf.dynamic, leaf.sequence, len(leaf.shape))
        block = default_main_program().global_block()
        array = np.ascontiguousarray(leaf.value).reshape(leaf.shape or (1,))
        make = block.create_parameter if leaf.kind == PARAMETER else block.create_var
        variable = make(name=leaf.uid, shape=list(array.shape), dtype=dtype, persistable=True)
        if leaf.kind != PARAMETER:
            variable.stop_gradient = True
        self.arrays[leaf.uid] = array
        return Value(variable, dynamic=False, sequence=False, rank=len(leaf.shape))

    def _name(self, leaf: Leaf) -> str:
        """Return the name of an input, or its uid if it has no name or shares it."""
        names = [one.name for one in self.function.leaves.values()]
        free = leaf.name and names.count(leaf.name) == 1 and leaf.name not in self.function.leaves
        return leaf.name if free else leaf.uid

    def _add(self, group: list[Node]) -> None:
        """Add the operators of a node, or of a loop through time."""
        node = group[0]
        if len(group) > 1 or node.op in SHIFTS:
            self._settle(uid for one in group for uid in one.inputs)
            self.values.update(add_recurrence(self.function, group, self.values, self._read))
        else:
            self.values.update(self._read(node, self.values))

    def _settle(self, uids: Iterable[str]) -> None:
        """Convert the steps of sequences to a padded dim."""
        for uid in uids:
            value = self.values.get(uid)
            if value is not None and value.padding is not None:
                step = Step(self.function.nodes[split_output(uid)[0]], [value], batch=self.batch)
                out = step.pad_steps(value)[0]
                self.values[uid] = Value(out, dynamic=True, sequence=False, rank=value.rank + 1)

    def _read(self, node: Node, values: Mapping[str, Value]) -> dict[str, Value]:
        """Append the operators of a node, and return its outputs by uid."""
        if node.op != _REDUCE:
            self._settle(node.inputs)
        given = [values[uid] for uid in node.inputs]
        step = Step(node, given, batch=self.batch)
        try:
            made = load_readers()[node.op](step)
        except KeyError:
            raise InexpressibleError("it is part of a recurrent loop") from None
        except (FormatError, UnsupportedError):
            raise
        except (PaddlelikeError, ValueError, TypeError, IndexError) as error:
            raise FormatError(
                f"{node.uid} ({name_operation(node.op)}) does not fit its inputs of shapes "
                f"{', '.join(str(list(one.shape)) for one in given)}: {error!s:.300}"
            ) from error
        several = (made,) if isinstance(made, Value) else made
        kept = [_keep_steps(step, value) for value in several]
        return {f"{node.uid}_Output_{index}": value for index, value in enumerate(kept)}


def _keep_steps(step: Step, made: Value) -> Value:
    """Return a value of steps, with the LoD of the first sequence among its sources if operators dropped
    it.
    """
    if not made.sequence or made.variable.lod_level > 0:
        return made
    like = next(value.variable for value in step.values if value.sequence)
    return made._replace(variable=step.emit("lod_reset", {"X": made.variable, "Y": like}))
