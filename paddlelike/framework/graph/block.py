"""A block: variables by name and operators in order. Inner blocks can use the variables of outer blocks.

Every change of a program goes through :meth:`Block.append_op` (or its variants for other positions) and
:meth:`Block.create_var`; when a check fails, both leave the program unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core import VarType, Versioned
from paddlelike.errors import GraphError, LeftOutError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework.graph.attributes import complete_attrs, convert_given_attrs
from paddlelike.framework.graph.desc import BlockDesc
from paddlelike.framework.graph.inference import (
    apply_spec,
    collect_input_names,
    collect_output_names,
    infer_outputs,
)
from paddlelike.framework.graph.operator import Operator, find_user_line
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.framework.opdef import GradOp, OpDef, registry
from paddlelike.hooks import Hook
from paddlelike.left_out.reasons import OPERATORS

if TYPE_CHECKING:
    from paddlelike.framework.graph.program import Program

_format_block: Final[Hook[..., str]] = Hook("format_block")


class Block(Versioned):
    """Part of a :class:`Program`: block 0 is the outermost, the others belong to control-flow operators.

    A program creates its blocks; scripts read them.

    Parameters
    ----------
    program
        The program that contains this block.
    idx
        The place of this block in ``program.blocks``.
    parent_idx
        The place of the block that contains this one; -1 for the outermost.

    See Also
    --------
    fluid.framework.Operator, fluid.framework.Parameter, fluid.Program, fluid.Variable

    >>> import paddlelike as fluid
    >>> block = fluid.Program().global_block()
    >>> block.idx, block.parent_idx, block.ops
    (0, -1, [])
    """

    #: Whether its encoding lists the variables in the order of ``vars``, otherwise in the order of Fluid's
    #: hash table.
    is_ordered = False

    def __init__(self, program: Program, idx: int, parent_idx: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = -1
        self.vars: dict[str, Variable] = {}
        self.ops: list[Operator] = []

    @property
    def desc(self) -> BlockDesc:
        """Fluid's C++ description of this block."""
        return BlockDesc(self)

    # Variables

    @property
    def parent(self) -> Block | None:
        """The block that contains this one, or None for the outermost block."""
        return self.program.blocks[self.parent_idx] if self.parent_idx >= 0 else None

    @property
    def backward_block(self) -> Block | None:
        """The block with the backward pass for a loss of this block, or None without such a pass."""
        if self.idx == 0:
            return None
        later = self.program.blocks[self.idx + 1 :]
        return next((block for block in later if block.forward_block_idx == self.idx), None)

    def create_var(self, **kwargs: Any) -> Variable:
        """Create a variable in this block; the arguments are as for :class:`Variable`.

        With ``initializer=``, the operator that sets its value is appended to this block. Raises GraphError
        when the block has a variable of that name with another shape or type.
        """
        variable = self._put(Variable(self, **kwargs))
        if kwargs.get("initializer") is not None:
            kwargs["initializer"](variable, self)
        return variable

    def create_parameter(self, **kwargs: Any) -> Parameter:
        """Create a parameter, always in block 0; the arguments are as for :class:`Parameter`.

        Raises GraphError for a shape without positive dims, and the errors of :meth:`create_var`.
        """
        top = self.program.global_block()
        parameter = Parameter(top, **kwargs)
        top._put(parameter)
        return parameter

    def var(self, name: str) -> Variable:
        """Return the variable of that name in this block, not in outer blocks.

        Raises GraphError when there is none, TypeError for anything but a name.
        """
        try:
            return self.vars[name]
        except KeyError:
            if not isinstance(name, str):
                raise TypeError(f"Block.var takes the name of a variable, got {name!r}") from None
            raise GraphError(
                f"block {self.idx} has no variable {name!r}", hint=suggest_names(name, self.vars) or None
            ) from None

    def has_var(self, name: str) -> bool:
        """Return whether this block has that variable; outer blocks do not count."""
        return name in self.vars

    def _find_var_recursive(self, name: str) -> Variable | None:
        """Return the variable of that name in this block or an outer one, or None without one."""
        owner = self._find_owner(name)
        return None if owner is None else owner.vars[name]

    def _find_owner(self, name: str) -> Block | None:
        """Return the block that defines a name: this block or the nearest outer one.

        A block that computes gradients also sees the variables of its forward block and of that block's outer
        blocks.
        """
        if name in self.vars:
            return self
        seen = [self]
        for block in seen:  # grows while it is iterated
            if name in block.vars:
                return block
            blocks = block.program.blocks
            seen.extend(blocks[i] for i in (block.forward_block_idx, block.parent_idx) if i >= 0)
        return None

    def _has_var_recursive(self, name: str) -> bool:
        return self._find_var_recursive(name) is not None

    def _var_recursive(self, name: str) -> Variable:
        found = self._find_var_recursive(name)
        if found is None:
            raise GraphError(
                f"variable {name!r} is not in block {self.idx} or an outer block",
                hint=("" if re.search(r"\.tmp_\d+$", name) else suggest_names(name, self.vars))
                or "was it built in another program? Build both under one fluid.program_guard(main, startup)",
            )
        return found

    def all_parameters(self) -> list[Parameter]:
        """Return the parameters of this block, in order of creation."""
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def iter_parameters(self) -> Iterator[Parameter]:
        """Return an iterator over the parameters of this block."""
        return iter(self.all_parameters())

    def _put(self, variable: Variable) -> Variable:
        old = self.vars.get(variable.name)
        if old is not None:
            _check_same(old, variable)
        self.vars[variable.name] = variable  # a new variable has recorded the change
        return variable

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program._note_change()

    def _rename_var(self, name: str, new_name: str) -> Variable:
        """Rename a variable of this block, also in the operators of this block.

        Raises GraphError when there is no such variable, and when the new name is taken.
        """
        variable = self.var(name)
        if new_name in self.vars:
            raise GraphError(f"block {self.idx} already has a variable {new_name!r}")
        self.vars = {new_name if n == name else n: v for n, v in self.vars.items()}
        variable.name = new_name
        for op in self.ops:
            op._rename_input(name, new_name)
            op._rename_output(name, new_name)
        return variable

    def _clone_variable(self, variable: Variable, force_persistable: bool = True) -> Variable:
        """Create a variable with the shape and type of one from another program."""
        tensor = variable.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
        forced = force_persistable and variable.type not in (VarType.STEP_SCOPES, VarType.RAW)
        return self.create_var(
            name=variable.name,
            type=variable.type,
            shape=variable.shape if tensor else None,
            dtype=variable.dtype if tensor else None,
            lod_level=variable.lod_level if variable.type == VarType.LOD_TENSOR else None,
            persistable=True if forced else variable.persistable,
            is_data=variable.is_data,
            need_check_feed=variable.need_check_feed,
        )

    # Operators

    def append_op(
        self,
        type: str | None = None,  # noqa: A002  (Fluid's name)
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Append an operator.

        ``inputs`` and ``outputs`` map slots to a Variable, a name, or a list of them. Raises GraphError for
        an unknown type, variable or slot, ShapeError and EnforceNotMet when shapes or attributes do not
        fit; the program is then unchanged.
        """
        return self._insert_op(len(self.ops), type, inputs, outputs, attrs, stop_gradient)

    def _prepend_op(
        self,
        type: str | None = None,  # noqa: A002
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Operator:
        return self._insert_op(0, type, inputs, outputs, attrs)

    def _insert_op(
        self,
        index: int,
        type: str | None = None,  # noqa: A002
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        cls = registry.find_or_none(type or "")
        if cls is None:
            if (left_out := OPERATORS.get(type or "")) is not None:
                raise LeftOutError(f"operator {type!r}: {left_out.why}", hint=left_out.instead)
            raise GraphError(
                f"operator type {type!r} is not known here",
                hint=suggest_names(type, registry.all_ops()) or None,
            )
        given = {name: value for name, value in (attrs or {}).items() if name != "op_callstack"}
        op = Operator(
            self,
            cls.type,
            collect_input_names(cls, inputs),
            collect_output_names(cls, outputs),
            complete_attrs(cls, self.program._common_attrs | given),
            find_user_line(),
        )
        self._check_and_insert(index, op, cls)
        if stop_gradient:
            for name in op.output_arg_names:
                self._var_recursive(name).stop_gradient = True
        return op

    def append_grad_op(self, grad: GradOp, forward: Operator, role: int) -> Operator:
        """Append an operator of the backward pass with the device and name scope of ``forward``.

        Its outputs must have been created: they get the shapes of the variables they are gradients of.
        Raises the ShapeError and EnforceNotMet of :meth:`append_op`.
        """
        cls = registry.find_for_version(grad.type, self.program.paddle_version) or registry.find(grad.type)
        attrs = convert_given_attrs(cls, grad.attrs)
        if grad.own_attrs:
            attrs |= {"op_device": forward.attrs.get("op_device", ""), "op_role": role}
        else:
            common = {"op_role_var": [], "op_namescope": "/", "op_device": ""}
            common |= {name: forward.attrs[name] for name in common if name in forward.attrs}
            attrs |= common | {"op_role_var": [], "op_role": role}
            order = {name: attrs[name] for name in forward.attrs if name in attrs}
            attrs = order | attrs  # Fluid copies the attributes of the forward operator, then sets its own
        op = Operator(self, grad.type, grad.inputs, grad.outputs, attrs, forward.line)
        self._check_and_insert(len(self.ops), op, cls)
        return op

    def _check_and_insert(self, index: int, op: Operator, cls: type[OpDef]) -> None:
        """Apply the shape rule, then insert the operator."""
        self._infer_shape(op, cls)
        for name in op.output_arg_names:
            written = self._find_var_recursive(name)
            if written is not None:
                written.op = op
        self.ops.insert(index, op)
        self.program._note_change()

    def _infer_shape(self, op: Operator, cls: type[OpDef]) -> None:
        """Set the shapes of the outputs of ``op`` by its shape rule."""
        for name, spec in infer_outputs(self, op, cls):
            variable = self._find_var_recursive(name)
            if variable is not None:
                apply_spec(variable, spec)

    def op_size(self) -> int:
        """Return the number of operators."""
        return len(self.ops)

    def _sync_with_cpp(self) -> None:
        """Do nothing: Fluid has a second copy of the graph in C++."""

    def _remove_op(self, index: int, end: int | None = None) -> None:
        """Remove the operator at ``index``, or all from ``index`` up to ``end``, exclusive."""
        del self.ops[index : index + 1 if end is None else end]
        self.program._note_change()

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """Return this block as text; ``with_details`` adds attributes that a ProgramDesc does not hold."""
        return _format_block.function(self, with_details=with_details)

    def __str__(self) -> str:
        return self.to_string(True)


def _check_same(old: Variable, new: Variable) -> None:
    """Raise GraphError unless a variable that is declared again has the same type and shape."""
    for what in ("type", "dtype", "shape", "lod_level", "persistable"):
        before, after = getattr(old, what), getattr(new, what)
        given = not (what == "shape" and not after) and not (what == "dtype" and not new.shape)
        if before != after and given:
            raise GraphError(
                f"variable {old.name!r} is declared again with {what} {after}; it has {before}",
                hint="pass another name, or build the network under fluid.unique_name.guard()",
            )
