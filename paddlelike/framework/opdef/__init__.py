"""The declaration of an operator, and the table of all operators.

An operator is one class: slots, attributes with types and defaults, shape rule, kernel and gradient.
It is checked once, when it is registered, and ``<type>_grad`` is derived from it. Executors and
the backward pass call plain functions only.

    @register
    class Mul(OpDef):
        type = "mul"
        inputs = ("X", "Y")
        outputs = ("Out",)
        attrs = {"x_num_col_dims": Int(1), "y_num_col_dims": Int(1)}
        gradient = Gradient("X", "Y", "Out@GRAD")

        @staticmethod
        def infer(x: Spec, y: Spec, *, x_num_col_dims: int, y_num_col_dims: int) -> Spec: ...

        @staticmethod
        def forward(x: Array, y: Array, *, x_num_col_dims: int, y_num_col_dims: int) -> Array: ...

        @staticmethod
        def backward(x, y, d_out, *, x_num_col_dims, y_num_col_dims) -> tuple[Array, Array]: ...

A function gets arrays by position, in the order of the slots, and those attributes that its signature names
by keyword. An operator whose functions read more than three attributes declares them as a class, and its
functions take one keyword ``attrs`` (see :mod:`.attributes`). A slot ``"X*"`` takes several variables (the
function gets a list); a slot ``"Y?"`` may be absent (the function gets None). A function with one output slot
returns the value itself. With several slots it returns a tuple in their order, with None for a slot that gets
no value.

Modules: ``slots`` (slots and arguments, and the context through which a kernel sees the run), ``attributes``,
``gradient``, ``definition`` (the class), ``operator_table`` and ``registry`` (look-up), ``remote`` (operators
between processes).
"""

from paddlelike.framework.opdef.attributes import (
    ABSENT,
    REQUIRED,
    Attr,
    Attrs,
    AttrTable,
    Block,
    Blocks,
    Bool,
    Bools,
    Float,
    Floats,
    Int,
    Ints,
    Long,
    Longs,
    String,
    Strings,
)
from paddlelike.framework.opdef.definition import (
    FlatKernel,
    GroupKernel,
    Kernel,
    OpDef,
    RowUpdate,
    Shapes,
    spares_first,
)
from paddlelike.framework.opdef.gradient import (
    OWN,
    BlockGradient,
    Gradient,
    GradOp,
    derive_grad_op,
    make_plain_op,
)
from paddlelike.framework.opdef.registry import all_ops, find, find_or_none, register
from paddlelike.framework.opdef.slots import (
    EMPTY,
    GRAD,
    NO_LOD,
    RECOMPUTED,
    Array,
    Context,
    LoD,
    OpView,
    Slot,
    Spec,
    grad_name,
    grad_names,
    make_arguments,
    name_results,
)

__all__ = [
    "ABSENT",
    "EMPTY",
    "GRAD",
    "NO_LOD",
    "OWN",
    "RECOMPUTED",
    "REQUIRED",
    "Array",
    "Attr",
    "AttrTable",
    "Attrs",
    "Block",
    "BlockGradient",
    "Blocks",
    "Bool",
    "Bools",
    "Context",
    "FlatKernel",
    "Float",
    "Floats",
    "GradOp",
    "Gradient",
    "GroupKernel",
    "Int",
    "Ints",
    "Kernel",
    "LoD",
    "Long",
    "Longs",
    "OpDef",
    "OpView",
    "RowUpdate",
    "Shapes",
    "Slot",
    "Spec",
    "String",
    "Strings",
    "all_ops",
    "derive_grad_op",
    "find",
    "find_or_none",
    "grad_name",
    "grad_names",
    "make_arguments",
    "make_plain_op",
    "name_results",
    "register",
    "spares_first",
]
