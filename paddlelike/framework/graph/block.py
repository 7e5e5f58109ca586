"""A block: variables by name, operators in order. Sub-blocks see the variables of the blocks around them.

Every change of a program goes through :meth:`Block.append_op` (or its siblings for other positions) and
:meth:`Block.create_var`; both check first and change nothing when they refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.errors import GraphError, ShapeError
from paddlelike.framework.graph.operator import Operator, complete_attrs, given_attrs, user_line
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.framework.opdef import EMPTY, GRAD, OWN, GradOp, OpDef, Spec, registry

if TYPE_CHECKING:
    from paddlelike.framework.graph.program import Program

__all__ = ["Block"]


class Block:
    """Part of a :class:`Program`; block 0 is the whole, the others belong to control-flow operators."""

    def __init__(self, program: Program, idx: int, parent_idx: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = -1
        self.vars: dict[str, Variable] = {}
        self.ops: list[Operator] = []

    # Variables

    @property
    def parent(self) -> Block | None:
        """The block around this one, or None."""
        return self.program.blocks[self.parent_idx] if self.parent_idx >= 0 else None

    def create_var(self, **kwargs: Any) -> Variable:
        """A new variable of this block; the arguments are those of :class:`Variable`."""
        return self._put(Variable(self, **kwargs))

    def create_parameter(self, **kwargs: Any) -> Parameter:
        """A new parameter, always in block 0; the arguments are those of :class:`Parameter`."""
        top = self.program.global_block()
        parameter = Parameter(top, **kwargs)
        top._put(parameter)
        return parameter

    def var(self, name: str) -> Variable:
        """The variable of that name in this block itself. Raises ValueError when there is none."""
        try:
            return self.vars[name]
        except KeyError:
            raise GraphError(f"block {self.idx} has no variable {name!r}", hint=self._near(name)) from None

    def has_var(self, name: str) -> bool:
        """Whether this block itself has that variable."""
        return name in self.vars

    def _find_var_recursive(self, name: str) -> Variable | None:
        owner = self._owner(name)
        return None if owner is None else owner.vars[name]

    def _owner(self, name: str) -> Block | None:
        """The block whose variable a name means here: this one, or the nearest around it.

        The gradient of a block also sees the variables of that block, and of those around it.
        """
        if name in self.vars:
            return self
        seen = [self]
        for block in seen:  # grows on the way
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
                f"variable {name!r} is not in block {self.idx} nor in one around it",
                hint=self._near(name),
            )
        return found

    def all_parameters(self) -> list[Parameter]:
        """The parameters of this block, in order of creation."""
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def iter_parameters(self) -> Iterator[Parameter]:
        """The parameters of this block, one by one."""
        return iter(self.all_parameters())

    def _put(self, variable: Variable) -> Variable:
        old = self.vars.get(variable.name)
        if old is not None:
            _check_same(old, variable)
        self.vars[variable.name] = variable
        self.program._changed()
        return variable

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program._changed()

    def _rename_var(self, name: str, new_name: str) -> Variable:
        """Give a variable another name, here and in every operator of this block."""
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
        """A plain variable here with the shape and type of one of another program."""
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

    def _near(self, name: str) -> str | None:
        import difflib

        near = difflib.get_close_matches(name, self.vars, 3)
        return f"near names: {', '.join(near)}" if near else None

    # Operators

    def append_op(
        self,
        type: str | None = None,  # noqa: A002  (Fluid's name)
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Put an operator at the end.

        ``inputs`` and ``outputs`` map slots to a Variable, a name, or a list of them. Raises
        ValueError for an unknown type, and EnforceNotMet when shapes or attributes do not fit; then
        nothing has changed.
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
            raise GraphError(f"operator type {type!r} is not known here", hint=_near_type(type))
        program = self.program
        op = Operator(
            self,
            cls.type,
            _input_names(cls, inputs),
            _output_names(cls, outputs),
            complete_attrs(cls, attrs or {}),
            user_line(),
        )
        common = {k: v for k, v in (attrs or {}).items() if k in program._common_attrs}
        op.attrs |= program._common_attrs | common
        op.attrs["op_role_var"] = list(op.attrs["op_role_var"])
        self._check_and_insert(index, op, cls)
        if stop_gradient:
            for name in op.output_arg_names:
                self._var_recursive(name).stop_gradient = True
        return op

    def append_grad_op(self, grad: GradOp, forward: Operator, role: int) -> Operator:
        """Put an operator of the backward pass at the end, with what it inherits from ``forward``.

        Its gradients must have been created: they are shaped as what they are the gradients of.
        """
        cls = registry.find(grad.type)
        attrs = given_attrs(cls, grad.attrs)
        if not grad.own_attrs:
            attrs["op_namescope"] = forward.attrs.get("op_namescope", "/")
            attrs["op_role_var"] = []
        attrs |= {"op_role": role, "op_device": forward.attrs.get("op_device", "")}
        op = Operator(self, grad.type, grad.inputs, grad.outputs, attrs, forward.line)
        self._check_and_insert(len(self.ops), op, cls)
        return op

    def _check_and_insert(self, index: int, op: Operator, cls: type[OpDef]) -> None:
        """Apply the shape rule, then let the operator in."""
        specs = _infer(self, op, cls)
        for name, spec in specs:
            variable = self._find_var_recursive(name)
            if variable is not None:
                _apply(variable, spec)
        for name in op.output_arg_names:
            written = self._find_var_recursive(name)
            if written is not None:
                written.op = op
        self.ops.insert(index, op)
        self.program._changed()

    def _remove_op(self, index: int) -> None:
        del self.ops[index]
        self.program._changed()

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """This block as text."""
        from paddlelike.framework.codec import text  # text knows every part of a program

        return text.of_block(self, with_details=with_details)

    def __str__(self) -> str:
        return self.to_string(True)


def _check_same(old: Variable, new: Variable) -> None:
    """A name may be declared again only as what it is; a different one is a slip."""
    for what in ("type", "dtype", "shape", "lod_level", "persistable"):
        before, after = getattr(old, what), getattr(new, what)
        given = not (what == "shape" and not after) and not (what == "dtype" and not new.shape)
        if before != after and given:
            raise GraphError(
                f"variable {old.name!r} is declared again with {what} {after}; it has {before}",
                hint="pass another name, or build the network under fluid.unique_name.guard()",
            )


def _near_type(type: str | None) -> str | None:  # noqa: A002
    import difflib

    near = difflib.get_close_matches(type or "", registry.all_ops(), 3)
    return f"near names: {', '.join(near)}" if near else None


def _names(given: Any) -> list[str]:
    """The names in what was given for a slot."""
    if given is None:
        return []
    if isinstance(given, Variable):
        return [given.name]
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes):
        return [given.decode()]
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names(one)]
    raise TypeError(f"a slot takes variables or their names, not {given!r}")


def _input_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Names by slot. Every slot of the operator is there when any inputs are given, as in Paddle."""
    if given is None and not any(not slot.optional for slot in cls.input_slots):
        return {}
    slots = {}
    for slot in cls.input_slots:
        names = _names((given or {}).get(slot.name))
        if not names and not slot.optional and not (slot.several and slot.name in (given or {})):
            raise GraphError(f"operator {cls.type!r} needs its input {slot.name!r}")
        if len(names) > 1 and not slot.several:
            raise GraphError(
                f"operator {cls.type!r} takes one variable in {slot.name!r}, got {len(names)}: {names}"
            )
        slots[slot.name] = names
    return slots


def _output_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    slots = {}
    for slot in cls.output_slots:
        if slot.name not in (given or {}):
            if slot.optional:
                continue
            raise GraphError(f"operator {cls.type!r} needs its output {slot.name!r}")
        slots[slot.name] = _names((given or {})[slot.name])
    return slots


def _infer(block: Block, op: Operator, cls: type[OpDef]) -> list[tuple[str, Spec]]:
    """What the operator's shape rule says of its outputs."""
    infer = getattr(cls, "infer", None)
    if infer is None:
        return [] if cls.forward_of is None else _infer_grad(block, op, cls)
    args = []
    for slot in cls.input_slots:
        specs = [_spec_of(block, n) for n in op.inputs.get(slot.name, ()) if n != EMPTY]
        args.append(specs if slot.several else (specs[0] if specs else None))
    try:
        results = infer(*args, **{name: op.attrs.get(name) for name in cls.infer_attrs})
    except (IndexError, ZeroDivisionError, AttributeError) as error:
        shapes = {n: list(block._var_recursive(n).shape) for n in op.input_arg_names}
        raise ShapeError(f"operator {cls.type!r} does not fit its inputs {shapes}: {error}") from error
    if len(cls.output_slots) == 1:
        results = (results,)
    found = []
    for slot, result in zip(cls.output_slots, results, strict=True):
        many = result if isinstance(result, list) else [result]
        source = cls.lod if isinstance(cls.lod, str) else (cls.lod or {}).get(slot.name)
        level = 0
        if source is not None and op.inputs.get(source):
            level = block._var_recursive(op.inputs[source][0]).lod_level
        for name, spec in zip(op.outputs.get(slot.name, ()), many, strict=False):
            if spec is not None:
                found.append((name, spec if spec.lod_level is not None else spec._replace(lod_level=level)))
    return found


def _infer_grad(block: Block, op: Operator, cls: type[OpDef]) -> list[tuple[str, Spec]]:
    """A gradient is shaped as what it is the gradient of, unless the operator says otherwise."""
    assert cls.forward_of is not None
    rule = getattr(cls.forward_of, "infer_grad", None)
    found = []
    for slot, names in op.outputs.items():
        for index, name in enumerate(names):
            base = name.split("@GRAD")[0]
            source = op.inputs.get(slot.removesuffix("@GRAD")) or ()
            forward = block._find_var_recursive(source[index] if index < len(source) else base)
            if forward is None:
                continue
            spec = _spec(forward)._replace(lod_level=_grad_lod(block, op, cls.forward_of, forward))
            if rule is not None:
                spec = rule(slot, spec, op.attrs)
            found.append((name, spec))
    return found


def _grad_lod(block: Block, op: Operator, cls: type[OpDef], forward: Variable) -> int:
    """The LoD level of the gradient of ``forward``."""
    source = cls.gradient.lod if cls.gradient is not None else None
    if source == OWN:
        return forward.lod_level
    names = op.inputs.get(source) if source is not None else None
    return block._var_recursive(names[0]).lod_level if names else 0


def _spec_of(block: Block, name: str) -> Spec:
    """What is known of an input; a gradient that a loop hands on may be made only after it is read."""
    if GRAD in name and not block._has_var_recursive(name):
        name = name.split(GRAD)[0]
    return _spec(block._var_recursive(name))


def _spec(variable: Variable) -> Spec:
    return Spec(variable.shape, variable.dtype, variable.lod_level, variable.type)


def _apply(variable: Variable, spec: Spec) -> None:
    variable.shape = tuple(int(dim) for dim in spec.shape)
    variable.dtype = convert_dtype(spec.dtype)
    if spec.lod_level is not None:
        variable.lod_level = spec.lod_level
    if spec.kind is not None:
        variable.type = spec.kind
