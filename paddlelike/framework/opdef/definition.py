"""The operator: one class with its slots, attributes, shape rule, kernel and gradient."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from paddlelike.errors import GraphError
from paddlelike.framework.opdef.attributes import Attr, AttrTable
from paddlelike.framework.opdef.gradient import BlockGradient, Gradient, GradOp
from paddlelike.framework.opdef.operator_table import OperatorTable
from paddlelike.framework.opdef.slots import EMPTY, GRAD, OpView, Slot, grad_names
from paddlelike.hooks import Hook

Kernel = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]  # by slot
#: Takes the attributes; returns whether each row of the results depends only on the same row of the inputs.
RowRule: TypeAlias = "staticmethod[[Mapping[str, Any]], bool]"
#: Takes the inputs of several operators, one sequence by slot for each.
GroupKernel = Callable[[Sequence[Sequence[Any]]], bool]


class FlatKernel(NamedTuple):
    """A kernel for several operators whose arrays are parts of one array; see ``OpDef.make_flat_kernel``.

    Attributes
    ----------
    kept
        The indexes of the input slots that are changed in place. The arrays of each slot are consecutive
        parts of one flat array. The first is the slot of parameters.
    alike
        The number of these slots, from the front, whose arrays have the shape of the parameter.
    once
        The index of the slot whose arrays, also of that shape, are concatenated in each run.
    shared
        The indexes of the slots whose variable is the same for all operators.
    run
        Takes the flat arrays of the slots ``kept`` and ``once`` and the values of ``shared``. It returns
        False and changes nothing if these values require that the operators run one by one.
    """

    kept: tuple[int, ...]
    alike: int
    once: int
    shared: tuple[int, ...]
    run: Callable[[Sequence[Any], Any, Sequence[Any]], bool]


class RowUpdate(NamedTuple):
    """The rule of an update whose gradient is 0.0 except in some rows; see ``OpDef.get_row_update``.

    Attributes
    ----------
    unsigned
        The indexes of the input slots whose arrays (of Param's shape) must not hold NaN, negative numbers or
        -0.0. The update preserves this, unless it makes Param NaN in the same place.
    holds
        A function of the arguments of ``forward`` that returns whether their numbers allow this update.
    forward
        The kernel to call in place of the operator's ``forward``, or None for ``forward``. With ``state`` it
        takes the keyword ``awake``: the rows, in rising order, whose state or gradient is not 0.0, or None.
    state
        The indexes of the input slots of the state, where rows without a gradient change unless it is 0.0.
    """

    unsigned: tuple[int, ...]
    holds: Callable[..., bool]
    forward: Kernel | None = None
    state: tuple[int, ...] = ()


class OpDef:
    """An operator. Subclass it, fill in the table and the functions, pass it to :func:`register`.

    ``infer`` raises ShapeError for operands that do not fit; ``forward`` and ``backward`` raise
    EnforceNotMet, or an error derived from it, for values that do not.
    """

    type: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]] = ("X",)
    outputs: ClassVar[tuple[str, ...]] = ("Out",)
    #: Types and defaults by name; ``Attrs.table()`` where the functions read more than three of them.
    attrs: ClassVar[Mapping[str, Attr]] = {}
    #: The names of the attributes in the order in which Fluid 1.8 declares them, where ``attrs`` has another
    #: order: it decides in which order a saved program has them (``framework/graph/order.py``). Source:
    #: ``OpProtoHolder.get_op_proto(type).attrs`` of 1.8.5.
    fluid_order: ClassVar[str] = ""
    gradient: ClassVar[Gradient | None] = None  # None declares that it has no gradient
    #: Slot whose LoD every output gets; a mapping {output slot: input slot} where they differ.
    lod: ClassVar[str | Mapping[str, str] | None] = None
    #: The LoD of ``lod`` is passed on only if the first dim stays, which the declared level tells.
    regroups: ClassVar[bool] = False
    #: {output slot: input slot} whose array the kernel overwrites and returns.
    inplace: ClassVar[Mapping[str, str]] = {}
    #: Keywords of the kernel where the operator has other variables for those outputs.
    keywords_of_copies: ClassVar[Mapping[str, Any]] = {}
    #: Outputs may share memory with inputs (reshape, slice, ...).
    views: ClassVar[bool] = False
    #: Outputs are new arrays without another reference, so that a scope may keep them without a copy.
    fresh: ClassVar[bool] = False
    #: Inputs (N, C, ...) and results may have their channels last in memory; without it, inputs are copied to
    #: C order.
    any_order: ClassVar[bool] = False
    #: Every element of the result depends only on the elements at its place.
    by_element: ClassVar[bool] = False
    #: Each row of the results depends only on the same row of the inputs; or a function of the attributes
    #: that returns this. Implied by ``by_element``.
    by_row: ClassVar[bool | RowRule] = False
    #: The kernel pairs the rows of two operands, so that both need as many.
    pairs_rows: ClassVar[bool] = False
    #: The result has the rows of X and no others where X are SelectedRows.
    keeps_rows: ClassVar[bool] = False
    #: Fluid gives a result that is created without a dtype that of X or Input; else it stays BOOL.
    keeps_dtype: ClassVar[bool] = False
    #: Input slots whose elements are sizes, beside the slots that hold nothing else in any operator.
    size_slots: ClassVar[tuple[str, ...]] = ()
    #: The kernel uses only the operator and the LoDs of the context.
    lods_only: ClassVar[bool] = False
    #: The kernel is an expression of functions that numpy and jax.numpy have in common. A compiled program
    #: evaluates it with JAX where the operator has no lowering of its own.
    traceable: ClassVar[bool] = True
    #: Results may have their channels last in memory, whatever the inputs have.
    reorders: ClassVar[bool] = False
    #: Input slots whose shape and dtype alone the kernel reads: their memory may already be free.
    shapes_of: ClassVar[tuple[str, ...]] = ()
    #: True for operators that use more than the run's variables: files, readers, other processes, Python
    #: functions, the terminal. A program read from bytes runs them only if declared trusted.
    external: ClassVar[bool] = False
    #: True for external operators that read only variables that are their inputs.
    own_variables: ClassVar[bool] = False
    #: The generation of Paddle that defines this operator: "1" (Fluid), "2" if Fluid 1.8 lacks it, or "3" if
    #: Paddle 2.6.2 lacks it and others that compute the same.
    since: ClassVar[str] = "1"
    #: "1" for operators of Fluid that Paddle 2.6.2 does not have, or has no CPU kernel of.
    until: ClassVar[str] = ""
    #: For operators of Paddle 2 without a gradient: Paddle has none either, so the results are constants.
    ends_gradients: ClassVar[bool] = False

    infer: ClassVar[Kernel]
    forward: ClassVar[Kernel]
    #: In place of ``forward``: takes the context and a run of consecutive operators of this type.
    forward_many: ClassVar[Kernel]
    backward: ClassVar[Kernel]

    # Filled in by register.
    #: The kernel (and backward) takes a Context before its arrays: its first parameter is ``ctx``.
    context: ClassVar[bool] = False
    plain_attrs: ClassVar[frozenset[str]]  # the names of attributes that cannot hold a block, common ones too
    attr_order: ClassVar[Sequence[str]]  # the names of attrs in the order in which Fluid declares them
    input_slots: ClassVar[tuple[Slot, ...]]
    output_slots: ClassVar[tuple[Slot, ...]]
    infer_attrs: ClassVar[tuple[str, ...]]
    forward_attrs: ClassVar[tuple[str, ...]]
    #: forward takes ``wanted``: per output slot, whether (for ``*`` slots: which) values are wanted.
    takes_wanted: ClassVar[bool]
    forward_of: ClassVar[builtins.type[OpDef] | None] = None  # set on derived <type>_grad classes

    @classmethod
    def make_infer_keywords(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of ``infer`` for an operator with the attributes ``given``."""
        return cls._make_attr_keywords(cls.infer_attrs, given)

    @classmethod
    def make_forward_keywords(
        cls, given: Mapping[str, Any], outputs: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, Any]:
        """Return the keywords of ``forward`` for an operator with these attributes and output variables.

        Without ``outputs`` the keyword ``wanted`` is left to the caller.
        """
        keywords = cls._make_attr_keywords(cls.forward_attrs, given)
        if cls.takes_wanted and outputs is not None:
            wanted = [
                (slot, [name != EMPTY for name in outputs.get(slot.name, ())]) for slot in cls.output_slots
            ]
            keywords["wanted"] = tuple(tuple(each) if slot.several else any(each) for slot, each in wanted)
        return keywords

    @classmethod
    def list_copied(
        cls, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """Return the slots that the kernel would overwrite but, with these variables, must not."""
        pairs = cls.inplace.items()
        return [slot for out, slot in pairs if inputs.get(slot) and outputs.get(out) != inputs[slot]]

    @classmethod
    def is_row_by_row(cls, given: Mapping[str, Any]) -> bool:
        """Return whether each row of the results depends on the same row of the inputs alone."""
        base = cls.forward_of or cls
        if not callable(base.by_row):
            return base.by_row or base.by_element
        return base.by_row({name: given.get(name, attr.fallback) for name, attr in base.attrs.items()})

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        """Return a shorter kernel with the same arguments for one operator of a program, or None without one.

        ``variables`` holds the declared variable of each input slot, or None for an absent slot or a slot of
        several variables. A kernel may rely on kind and dtype, but not on the shape, since feeds may have
        fewer dims. The results must have the bits of ``forward``.
        """
        return None

    @classmethod
    def make_overwriting_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        """Return a kernel that writes the only result of an operator over one of its inputs, or None.

        It takes that array, which is not used later, then the arguments of ``forward``. It returns False and
        changes nothing if the result has another shape, dtype or memory layout. The results must have the
        same bits.
        """
        return None

    @classmethod
    def make_overwriting_grad_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        """Return ``make_overwriting_kernel`` for the operator's gradient with these keywords."""
        return None

    @classmethod
    def make_group_kernel(cls, keywords: Mapping[str, Any]) -> GroupKernel | None:
        """Return a function that runs several operators of this type with these keywords at once, or None.

        This is only for operators whose outputs are all inputs changed in place. The function returns False
        and changes nothing if the operators must run one by one. The results must have the same bits.
        """
        return None

    @classmethod
    def make_flat_kernel(cls, keywords: Mapping[str, Any]) -> FlatKernel | None:
        """Return a kernel for several operators whose small arrays are joined into one flat array, or
        None.
        """
        return None

    @classmethod
    def make_rows_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        """Return a kernel that returns SelectedRows where ``forward`` returns a dense array, or None.

        The rows are sorted and unique. The dense array has 0.0 in missing rows and the same bits in the
        others. Inputs without a declared table may be such rows themselves. The kernel may still return the
        dense array.
        """
        return None

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate | None:
        """Return the rule by which an update of Param accepts rows in place of a dense gradient, or None.

        The rows are sorted and unique. The results have the bits of an update by the dense gradient, 0.0 in
        all other rows.
        """
        return None

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        """Return the number of products that a matrix operator adds up; 0 for other operators.

        ``shapes`` holds the shape of the first array in each slot; for a gradient slot the key lacks
        ``@GRAD``.
        """
        return 0

    @classmethod
    def count_multiply_adds(
        cls, shapes: Shapes, attrs: Mapping[str, Any], outputs: Mapping[str, Sequence[str]]
    ) -> int:
        """Return the number of multiply-adds, also for gradient operators.

        A gradient operator has as many as its operator, for each of the two operands with a gradient.
        """
        if cls.forward_of is None:
            return cls.count_products(shapes, attrs)
        wanted = sum(any(name != EMPTY for name in names) for names in outputs.values())
        return min(wanted, 2) * cls.forward_of.count_products(shapes, attrs)

    @classmethod
    def specialize_grad(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        """Return ``specialize`` for the operator's gradient with these inputs and keywords."""
        return None

    @classmethod
    def _make_attr_keywords(cls, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(cls.attrs, AttrTable):
            return {"attrs": cls.attrs.parse(given)} if names else {}
        return {name: given.get(name, cls.attrs[name].fallback) for name in names}

    @classmethod
    def find_lod_source(cls, output: str) -> str | None:
        """Return the input slot whose LoD an output slot gets, or None if the output gets no LoD."""
        return cls.lod if cls.lod is None or isinstance(cls.lod, str) else cls.lod.get(output)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return the operators that compute the gradients of ``op``, every gradient named ``<name>@GRAD``.

        Override it if other operators compute the gradient (scale, sum, cast). Raises GraphError if
        ``<type>_grad`` is not registered.
        """
        grad = OPERATORS.get(cls.type + "_grad")
        if grad is None:
            raise GraphError(f"operator {cls.type!r} has no gradient operator {cls.type + '_grad'!r}")
        outputs_of_forward = {slot.name for slot in cls.output_slots}
        inputs = {}
        for slot in grad.input_slots:
            base = slot.name.removesuffix(GRAD)
            if slot.name.endswith(GRAD):
                inputs[slot.name] = grad_names(op.output(base))
            else:
                source = op.output if base in outputs_of_forward else op.input
                inputs[slot.name] = list(source(base))
        outputs = {
            slot.name: grad_names(op.input(slot.name.removesuffix(GRAD))) for slot in grad.output_slots
        }
        assert cls.gradient is not None
        copies = cls.gradient.copies_attrs
        attrs = {name: op.attrs[name] for name in grad.attrs if name in op.attrs} if copies else {}
        return [GradOp(grad.type, inputs, outputs, attrs, own_attrs=not copies)]

    @classmethod
    def make_block_grad(cls, op: OpView, block: BlockGradient) -> list[GradOp]:
        """Return the gradient operators of an operator with a sub-block, given the block's gradient.

        Raises GraphError unless the operator overrides this.
        """
        raise GraphError(f"operator {cls.type!r} cannot be differentiated")

    @classmethod
    def more_blocks(cls, op: OpView) -> list[int]:
        """Return the blocks that the kernel runs, besides blocks named by attributes."""
        return []

    @classmethod
    def temporaries(cls, op: OpView) -> set[str]:
        """Return the persistables of the program that need not outlive the run."""
        return set()

    @classmethod
    def has_gradient(cls, op: OpView) -> bool:
        """Return whether any operator computes gradients of ``op``, an operator of this type."""
        overrides = cls.make_grad.__func__ is not OpDef.make_grad.__func__  # type: ignore[attr-defined]
        return cls.gradient is not None or overrides or "make_block_grad" in vars(cls)


def spares_first(name: str) -> RowRule:
    """Return whether an operator that works along axes leaves the first axis unchanged; used for ``by_row``.

    An axis of -1 counts as the last of at least two axes.
    """

    def check(attrs: Mapping[str, Any]) -> bool:
        axes = attrs[name]
        return all(axis > 0 or axis == -1 for axis in ([axes] if isinstance(axes, int) else axes))

    return staticmethod(check)


#: Every operator by type; in this module because ``make_grad`` looks gradient operators up.
OPERATORS: Final[OperatorTable[type[OpDef]]] = OperatorTable()


# The operators belong to a higher floor.
_load_operators: Final[Hook[[], None]] = Hook("load_operators")
_load_operator: Final[Hook[[str], bool]] = Hook("load_operator")
OPERATORS.provide(lambda: _load_operators.function(), lambda type: _load_operator.function(type))
