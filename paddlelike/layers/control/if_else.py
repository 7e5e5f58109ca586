"""Branches that each process a part of the rows of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlelike import unique_name
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Variable
from paddlelike.layers.control.sub_blocks import ConditionalBlock, find_parent
from paddlelike.layers.emit import BOOL, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import assign

__all__ = ["IfElse"]


class IfElse:
    """Two networks: one for the rows where ``cond`` is true, one for the other rows.

    Operators ``split_lod_tensor``, ``conditional_block`` and ``merge_lod_tensor``. Inside a block,
    :meth:`input` returns its rows of a variable, :meth:`output` declares its results; calling the object
    returns the results with all rows in order.

    Parameters
    ----------
    cond
        A bool variable of shape [N, 1], one for each row.

    Raises
    ------
    TypeError
        ``cond`` is not a bool variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1])
    >>> branches = fluid.layers.IfElse(x > fluid.layers.zeros_like(x))
    >>> with branches.true_block():
    ...     branches.output(branches.input(x))
    >>> with branches.false_block():
    ...     branches.output(-10.0 * branches.input(x))
    >>> (joined,) = branches()
    >>> fluid.Executor().run(feed={"x": np.array([[1], [-2], [3]], "float32")}, fetch_list=[joined])
    [array([[ 1.],
           [20.],
           [ 3.]], dtype=float32)]
    """

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        self.helper = LayerHelper("ifelse", name=name)
        self.cond = check_variable("ifelse", "cond", cond, BOOL)
        self._blocks = {side: ConditionalBlock([cond]) for side in (True, False)}
        self._outputs: dict[bool, list[Variable]] = {True: [], False: []}
        self._parts: dict[int, dict[bool, Variable]] = {}  # by the id of the input
        self._side: bool | None = None

    @contextmanager
    def true_block(self) -> Iterator[None]:
        """Build the network for the rows where the condition is true.

        Raises GraphError when the block has no output.
        """
        with self._block(True):
            yield

    @contextmanager
    def false_block(self) -> Iterator[None]:
        """Build the network for the rows where the condition is false.

        Raises GraphError when the block has no output.
        """
        with self._block(False):
            yield

    @contextmanager
    def _block(self, side: bool) -> Iterator[None]:
        self._side = side
        try:
            with self._blocks[side].block():
                yield
        finally:
            self._side = None
        if not self._outputs[side]:
            raise GraphError(f"IfElse: the {str(side).lower()} block has no output; call output(...) in it")

    def input(self, x: Variable) -> Variable:
        """Return the rows of ``x`` that belong to the block being built.

        Raises TypeError unless ``x`` is a variable, GraphError outside of a block.
        """
        side, around = self._enter("input")
        check_variable("ifelse", "x", x)
        if id(x) not in self._parts:
            key = f"ifelse_input{self.helper.name}"
            parts = {
                s: around.create_var(name=unique_name.generate(key), dtype=x.dtype) for s in (True, False)
            }
            around.append_op(
                type="split_lod_tensor",
                inputs={"X": x, "Mask": self.cond},
                outputs={"OutTrue": parts[True], "OutFalse": parts[False]},
                attrs={"level": 0},
            )
            self._parts[id(x)] = parts
        return self._parts[id(x)][side]

    def output(self, *outs: Variable) -> None:
        """Declare the results of the block being built; both blocks must have the same number of results.

        Raises TypeError unless ``outs`` is a variable, GraphError outside of a block.
        """
        side, around = self._enter("output")
        for one in outs:
            check_variable("ifelse", "outs", one)
            out = around.create_var(name=unique_name.generate(f"{self.helper.name}_output"), dtype=one.dtype)
            self._outputs[side].append(out)
            assign(one, out)

    def _enter(self, method: str) -> tuple[bool, Block]:
        if self._side is None:
            raise GraphError(
                f"IfElse.{method} must be called inside `with ie.true_block():` or the other block"
            )
        return self._side, find_parent(self.helper.main_program.current_block())

    def __call__(self) -> list[Variable]:
        """Return the results.

        Raises GraphError inside of a block, before there is one, or when the blocks have different numbers of
        outputs.
        """
        if self._side is not None:
            raise GraphError("IfElse: its results can be used after its blocks, not inside one")
        true, false = self._outputs[True], self._outputs[False]
        if not true and not false:
            raise GraphError("IfElse: build its true_block and false_block first")
        if not true or not false:
            return true or false
        if len(true) != len(false):
            raise GraphError(f"IfElse: the true block has {len(true)} outputs, the false block {len(false)}")
        return [merge_lod_tensor(t, f, self.cond, self.cond) for t, f in zip(true, false, strict=True)]


def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """Return the rows (or sequences) of ``input`` where ``mask`` is true, and the remaining ones.

    Raises TypeError unless ``input`` and ``mask`` are variables of supported dtypes.
    """
    check_variable("split_lod_tensor", "input", input)
    check_variable("split_lod_tensor", "mask", mask, BOOL)
    inputs = {"X": input, "Mask": mask}
    outputs = {"OutTrue": input.dtype, "OutFalse": input.dtype}
    true, false = emit_all("split_lod_tensor", inputs, outputs, {"level": level})
    return true, false


def merge_lod_tensor(
    in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0
) -> Variable:
    """Return rows (or sequences) of two tensors: of the first where ``mask`` is true, of the second where it
    is false.

    Raises TypeError unless the inputs are variables of supported dtypes.
    """
    inputs = {"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}
    for name, value in inputs.items():
        check_variable("merge_lod_tensor", name, value)
    return emit("merge_lod_tensor", inputs, {"level": level}, dtype=in_true.dtype)
