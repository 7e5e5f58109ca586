"""Run a program in compiled pieces, with numpy's kernels between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import jax
import numpy as np

from paddlelike.compiled.backend import count_devices, find_device, wide_types
from paddlelike.compiled.lowerings import find_lowering
from paddlelike.compiled.packing import RefusedError
from paddlelike.compiled.pieces.compilations import PassedOverError
from paddlelike.compiled.pieces.gradients import find_forward_for_numpy, is_sparse_variable
from paddlelike.compiled.pieces.piece import Piece
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.state.repeats import CompiledFrame
from paddlelike.core import LoDTensor, Place, Scope
from paddlelike.executor.plans.frame import Frame
from paddlelike.executor.steps import run_steps
from paddlelike.framework import Operator
from paddlelike.framework.opdef import EMPTY, GRAD, registry

#: Map each output slot without a LoD to the input slot whose rows it follows.
_ROWS_LIKE: Final = {"distribute_fpn_proposals": ("RestoreIndex", "FpnRois")}


class Engine:
    """The pieces of one plan on one device."""

    def __init__(self, plan: CompiledPlan, place: Place) -> None:
        self.plan = plan
        self.device = find_device(place)
        self.refused: dict[int, str] = {}  # by step: why numpy runs it
        for index in range(len(plan.steps)):
            reason = self._find_obstacle(index)
            if reason is not None:
                self.refused[index] = reason
        self._pieces: dict[int, Piece] = {}
        self._persistables = [(n, one.name) for n, one in plan.layout.persistables.items()]
        self._has_others = count_devices() > 1

    @property
    def pieces(self) -> list[Piece]:
        """The pieces in the order in which they run."""
        found = []
        index = 0
        while index < len(self.plan.steps):
            piece = self._find_piece(index)
            if piece is not None:
                found.append(piece)
            index = index + 1 if piece is None else piece.stop
        return found

    def create_frame(self, scope: Scope, services: dict[str, Any]) -> CompiledFrame:
        """Return a frame with the persistables of ``scope``. Those on the device are not copied."""
        frame = CompiledFrame(self.plan.layout, self.plan.blocks, scope, services)
        frame.repeat = repeat = scope.found.pop(self, None)
        if repeat is not None:
            if repeat.prepare(frame):
                return frame
            frame.repeat = None
        find, holders, values = scope._vars.get, frame.holders, frame.values
        # Without calls, since a small program spends most of its time in this loop.
        for position, name in self._persistables:
            holder = find(name) or scope.find_var(name) or scope.var(name)
            holders[position] = holder
            value = holder._value
            if type(value) is LoDTensor:
                if value._lod:
                    frame.lods[position] = value._lod
                array = value._device
                if array is None or value._device_version != value.version:
                    value = value.held_array
                elif self._has_others or array.is_deleted():
                    value = self._find_on_device(value)
                else:
                    value = array
            values[position] = value
        return frame

    def _find_on_device(self, tensor: LoDTensor) -> Any:
        value = tensor.find_on_device()
        if value is None or value.is_deleted():
            return tensor.held_array
        if self._has_others and value.devices() != {self.device}:
            value = jax.device_put(value, self.device)
            tensor.keep_on_device(value)
        return value

    def run(self, frame: CompiledFrame) -> None:
        """Run all steps. Raises the errors of numpy's kernels."""
        steps = self.plan.steps
        index = 0
        failed: dict[int, str] = {}  # just refused; recorded once numpy has run it
        with wide_types():
            while index < len(steps):
                piece = None if index in failed else self._find_piece(index, failed)
                if piece is None:
                    self._run_on_host(frame, index)
                    if index in failed:
                        self.refused[index] = failed.pop(index)
                    index += 1
                    continue
                try:
                    piece.run(frame)
                    index = piece.stop
                except PassedOverError:
                    for index in range(piece.start, piece.stop):
                        self._run_on_host(frame, index)
                    index = piece.stop
                except RefusedError as error:
                    failed[error.index] = error.reason
                    self._drop_pieces(error.index)
        if frame.repeat is not None and len(self._pieces) == 1:
            frame.scope.found[self] = frame.repeat
        for position in self.plan.fetch_positions:
            self._bring_to_host(frame, position)

    def _run_on_host(self, frame: Frame, index: int) -> None:
        forward = find_forward_for_numpy(self.plan, frame, index)
        if forward is not None and forward not in self.refused:
            self.refused[forward] = (
                "its gradient, which numpy runs, reads a result that its lowering leaves out"
            )
            self._drop_pieces(forward)
            self._run_on_host(frame, forward)
        touched: Iterable[int] = self.plan.reads[index] | self.plan.writes[index]
        cls = registry.find_or_none(self.plan.steps[index].op.type)
        if cls is not None and cls.external and not cls.own_variables:
            touched = range(len(frame.values))  # it may read any variable, like a server
        for position in touched:
            self._bring_to_host(frame, position)
        lent = self._lend_lods(frame, self.plan.steps[index].op) if frame.unshown else []
        run_steps(frame, [self.plan.steps[index]])
        self._keep_lods(frame, index)
        for position in lent:
            frame.lods.pop(position, None)

    def _lend_lods(self, frame: Frame, op: Operator) -> list[int]:
        """Copy the LoD of each gradient that an operator reads to its variable; return these variables.

        The numpy kernel looks for the LoD in the scope, but a piece does not store values there that no later
        operator reads.
        """
        lent = []
        for name in op.input_arg_names:
            origin, target = (self._find_position(op, one) for one in (name.partition(GRAD)[0], name))
            if GRAD in name and origin is not None and origin not in frame.lods and target in frame.unshown:
                frame.lods[origin] = frame.unshown[target]
                lent.append(origin)
        return lent

    def _keep_lods(self, frame: Frame, index: int) -> None:
        """Record the sequences of gradients that numpy computed; their frame entries have no LoD.

        A few other results are recorded too: those whose number of rows, such as the regions of a batch,
        changes with nearly every batch. As a shape, each number would cause a compilation.
        """
        unshown, lods = frame.unshown, frame.lods
        op = self.plan.steps[index].op
        for position in self.plan.writes[index]:
            unshown.pop(position, None)
        if op.type in _ROWS_LIKE:
            result, source = _ROWS_LIKE[op.type]
            target = self._find_position(op, op.output(result)[0])
            origin = self._find_position(op, op.input(source)[0])
            if target is not None and origin in lods:
                unshown[target] = lods[origin]
        if not (lods or unshown) or not any(GRAD in name for name in op.output_arg_names):
            return
        found = [
            lods.get(n) or unshown.get(n) for n in sorted(self.plan.reads[index]) if n in lods or n in unshown
        ]
        for name in op.output_arg_names:
            origin = self._find_position(op, name.partition(GRAD)[0])
            target = self._find_position(op, name)
            if origin is None or target is None or target in lods or GRAD not in name:
                continue
            lod = lods.get(origin) or unshown.get(origin)
            cls = registry.find_or_none(op.type)
            if lod is None and found and cls is not None and cls.is_row_by_row(op.attrs):
                lod = found[0]
            value = frame.values[target]
            if lod and isinstance(value, np.ndarray) and value.shape[:1] == (lod[-1][-1],):
                unshown[target] = lod

    def _find_position(self, op: Operator, name: str) -> int | None:
        if name == EMPTY or op.block._find_var_recursive(name) is None:
            return None
        return self.plan.layout.get_position(op.block, name)

    @staticmethod
    def _bring_to_host(frame: Frame, position: int) -> None:
        value = frame.values[position] if position < len(frame.values) else None
        if value is not None and type(value) is not np.ndarray and isinstance(value, jax.Array):
            holder = frame.holders.get(position)
            frame.values[position] = np.array(value) if holder is None else holder.get_tensor().held_array

    # Pieces

    def _find_piece(self, start: int, failed: Mapping[int, str] | None = None) -> Piece | None:
        """Return the piece that begins with a step; None if numpy runs it."""
        found = self._pieces.get(start)
        if found is not None:
            return found
        stop = self._find_stop(start, failed or {})
        if not any(self.plan.reads[index] for index in range(start, stop)):
            return None  # only constants
        piece = self._pieces[start] = Piece(self.plan, start, stop, self.device)
        return piece

    def _drop_pieces(self, index: int) -> None:
        """Drop the compiled pieces that contain a step."""
        self._pieces = {n: p for n, p in self._pieces.items() if not p.start <= index < p.stop}

    def _find_stop(self, start: int, failed: Mapping[int, str]) -> int:
        """Return the end of the piece that begins with a step.

        A block and its gradient are in one piece, or both run with numpy: each engine saves the block's
        values for the gradient in its own way.
        """
        stop = start
        while stop < len(self.plan.steps) and stop not in self.refused and stop not in failed:
            stop += 1
        parted = [
            (one, other)
            for one, other in self.plan.block_gradients.items()
            if (start <= one < stop) != (start <= other < stop)
        ]
        for pair in parted:
            for index in pair:
                self.refused.setdefault(index, "a block and its gradient are not in one piece")
        return self._find_stop(start, failed) if parted else stop

    def _find_obstacle(self, index: int) -> str | None:
        """Return why a step cannot be compiled, or None if no reason is known before it runs."""
        op = self.plan.steps[index].op
        cls = registry.find_for_version(op.type, self.plan.program.paddle_version)
        if cls is not None and cls.external:
            return "it reaches outside of the program"
        if cls is None or find_lowering(cls) is None:
            return "it has no lowering"
        if op.sub_blocks() and self.plan.writes_behind(index):
            return "its block writes variables that it does not name"
        if is_sparse_variable(self.plan, self.plan.reads[index] | self.plan.writes[index]):
            return "it reads or writes a variable of SelectedRows"
        return None
