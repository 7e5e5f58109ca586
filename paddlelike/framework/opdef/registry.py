"""What an operator must offer, and the table of all operators.

An operator is one class: slots, attributes with types and defaults, shape rule, kernel and gradient.
The registry checks the class once, when it is registered, and derives ``<type>_grad`` from it, so
that whoever runs or differentiates a program meets plain functions only.

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

Arrays go by position in the order of the slots, attributes by keyword, and only those attributes that
the function's signature names. A slot written ``"X*"`` takes several variables (the function gets a
list), ``"Y?"`` may be absent (the function gets None). A function with one output slot returns the
value itself; with several, a tuple in slot order, None for a slot it leaves alone.
"""

from __future__ import annotations

import builtins
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, MethodType
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from paddlelike.core.dtypes import AttrType, VarType
from paddlelike.core.scope import Scope
from paddlelike.errors import EnforceNotMet, GraphError

__all__ = [
    "ABSENT",
    "EMPTY",
    "GRAD",
    "OWN",
    "REQUIRED",
    "Array",
    "Attr",
    "Block",
    "BlockGradient",
    "Blocks",
    "Bool",
    "Bools",
    "Context",
    "Float",
    "Floats",
    "GradOp",
    "Gradient",
    "Int",
    "Ints",
    "LoD",
    "Long",
    "Longs",
    "OpDef",
    "OpView",
    "Slot",
    "Spec",
    "String",
    "Strings",
    "all_ops",
    "find",
    "find_or_none",
    "grad_name",
    "provide_operators",
    "register",
]

Array = np.ndarray[Any, Any]
LoD = list[list[int]]  # offsets per level, as Paddle stores them

GRAD: Final = "@GRAD"
OWN: Final = "own"  # see Gradient
EMPTY: Final = "@EMPTY@"  # Paddle's name for a gradient nobody wants


def grad_name(name: str) -> str:
    """The name of the gradient of a variable, or of the gradient slot of a slot."""
    return name + GRAD


class Spec(NamedTuple):
    """What is known of a variable while a program is built; a dim of -1 is not known yet."""

    shape: tuple[int, ...]
    dtype: VarType
    lod_level: int | None = None  # None: as the operator's ``lod`` says
    kind: VarType | None = None  # None: leave the variable's kind as it is


class _Marker:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


REQUIRED: Final = _Marker("REQUIRED")  # whoever appends the operator must give the attribute
ABSENT: Final = _Marker("ABSENT")  # not filled in when it is not given


class Attr(NamedTuple):
    """An attribute's type and default."""

    type: AttrType
    default: Any


def Int(default: Any = REQUIRED) -> Attr:  # noqa: N802  (these read as types in a class body)
    return Attr(AttrType.INT, default)


def Float(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.FLOAT, default)


def String(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.STRING, default)


def Ints(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.INTS, default)


def Floats(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.FLOATS, default)


def Strings(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.STRINGS, default)


def Bool(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.BOOLEAN, default)


def Bools(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.BOOLEANS, default)


def Block(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.BLOCK, default)


def Blocks(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.BLOCKS, default)


def Long(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.LONG, default)


def Longs(default: Any = REQUIRED) -> Attr:  # noqa: N802
    return Attr(AttrType.LONGS, default)


class Slot(NamedTuple):
    """A named place for variables in an operator."""

    name: str
    several: bool = False
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> Slot:
        """``"X"``, ``"X*"`` (several), ``"X?"`` (may be absent), ``"X*?"`` (both)."""
        name = text.rstrip("*?")
        return cls(name, "*" in text[len(name) :], "?" in text[len(name) :])


class Gradient:
    """How ``<type>_grad`` is made from an operator.

    ``inputs`` are the slots that ``backward`` takes, by position: slots of the operator, or of its
    outputs with ``@GRAD``; a mark of their own (``"Mean?"``) goes before the operator's. ``outputs``
    are the slots it returns, by default the gradient of every forward input slot in order. ``lod`` is
    the slot whose LoD level they take over, OWN when each takes that of what it is the gradient of.
    ``views``: gradients may share memory with what ``backward`` takes (None: as the operator's outputs do).
    """

    def __init__(
        self,
        *inputs: str,
        outputs: Sequence[str] | None = None,
        copies_attrs: bool = True,
        lod: str | None = None,
        views: bool | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = None if outputs is None else tuple(outputs)
        self.copies_attrs = copies_attrs
        self.lod = lod
        self.views = views


class OpView(Protocol):
    """An operator of a program, as shape rules of gradients and kernels may see it."""

    type: str

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def input(self, slot: str) -> list[str]: ...
    def output(self, slot: str) -> list[str]: ...


class GradOp(NamedTuple):
    """An operator of the backward pass, before it is put into a block."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    own_attrs: bool = False  # True: does not inherit op_namescope and its like from the forward


class BlockGradient(NamedTuple):
    """The gradient of the sub-block of an operator, as far as its own gradient has to know it."""

    number: int  # of the block that the steps are put into
    steps: list[GradOp]
    knows: Callable[[str], bool]  # whether a name means a variable around that block, or of the forward one
    exists: Callable[[str], bool]  # whether a gradient has been computed before


class Context(Protocol):
    """What a kernel with ``context = True`` gets as first argument, besides its arrays."""

    @property
    def op(self) -> OpView:
        """The operator that runs."""

    @property
    def scope(self) -> Scope:
        """The scope of the run: holds the persistables, or has a parent that does."""

    def lod(self, slot: str, index: int = 0) -> LoD:
        """The LoD (offsets) of a variable of an input slot; [] when it has none."""

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Give a variable of an output slot its LoD."""

    def read(self, name: str) -> Any:
        """The value of any variable this operator can see, or None."""

    def read_lod(self, name: str) -> LoD:
        """The LoD of any variable this operator can see."""

    def write(self, name: str, value: Any) -> None:
        """Set any variable this operator can see."""

    def run_block(self, index: int) -> None:
        """Run a sub-block of the program on the same values."""

    def clear(self, index: int) -> None:
        """Forget the values of a sub-block's own variables, as every step begins without them."""

    def inside(self, index: int) -> Context:
        """The context as a sub-block sees it: its own variables hide those of the same name around it."""

    def owns(self, name: str) -> bool:
        """Whether the block that this context looks from has a variable of that name itself."""

    def is_read(self, slot: str) -> bool:
        """Whether any operator of the run reads the variable in an output slot."""

    def snapshot(self, index: int) -> Any:
        """The values of a sub-block's own variables."""

    def overwritten(self) -> Any:
        """A snapshot of the variables around the sub-block that it reads and then overwrites.

        Counters are not among them: the gradient of the block takes them back.
        """

    def reveal(self, snapshot: Any) -> None:
        """Show the values before a block overwrote them to the gradients of what ran before it.

        None: they are what they are.
        """

    def restore(self, snapshot: Any) -> Any:
        """Put the values of a snapshot back; returns one of what was there."""

    def random(self, seed: int) -> Any:
        """A generator that starts at ``seed``; at 0 the scope's own, which moves on."""

    def service(self, name: str) -> Any:
        """What the caller of the run lends to operators (storage, wire), or None."""


Kernel = Callable[..., Any]
OpClass = TypeVar("OpClass", bound="type[OpDef]")


class OpDef:
    """An operator. Subclass it, fill in the table and the functions, pass it to :func:`register`."""

    type: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]] = ("X",)
    outputs: ClassVar[tuple[str, ...]] = ("Out",)
    attrs: ClassVar[Mapping[str, Attr]] = {}
    gradient: ClassVar[Gradient | None] = None  # None: declared to have no gradient
    #: Slot whose LoD every output takes over; a mapping {output slot: input slot} where they differ.
    lod: ClassVar[str | Mapping[str, str] | None] = None
    #: {output slot: input slot} whose array the kernel overwrites and returns.
    inplace: ClassVar[Mapping[str, str]] = {}
    #: Outputs may share memory with inputs (reshape, slice, ...).
    views: ClassVar[bool] = False
    #: The kernel (and backward) takes a Context before its arrays.
    context: ClassVar[bool] = False
    #: Outputs are new arrays that nobody else holds, so that a scope may take them over.
    fresh: ClassVar[bool] = False
    #: False for operators that act on something besides their outputs (save, print, send).
    pure: ClassVar[bool] = True

    infer: ClassVar[Kernel]
    forward: ClassVar[Kernel]
    backward: ClassVar[Kernel]

    # Filled in by register.
    input_slots: ClassVar[tuple[Slot, ...]]
    output_slots: ClassVar[tuple[Slot, ...]]
    infer_attrs: ClassVar[tuple[str, ...]]
    forward_attrs: ClassVar[tuple[str, ...]]
    #: forward takes ``wanted``: per output slot, whether (for ``*`` slots: which) values are wanted.
    takes_wanted: ClassVar[bool]
    forward_of: ClassVar[builtins.type[OpDef] | None] = None  # set on derived <type>_grad classes

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """The operators that compute the gradients of ``op``, every gradient named ``<name>@GRAD``.

        Override it where the gradient of an operator is other operators (scale, sum, cast).
        """
        grad = find(cls.type + "_grad")
        outputs_of_forward = {slot.name for slot in cls.output_slots}
        inputs = {}
        for slot in grad.input_slots:
            base = slot.name.removesuffix(GRAD)
            if slot.name.endswith(GRAD):
                inputs[slot.name] = [grad_name(name) for name in op.output(base)]
            else:
                source = op.output if base in outputs_of_forward else op.input
                inputs[slot.name] = list(source(base))
        outputs = {
            slot.name: [grad_name(name) for name in op.input(slot.name.removesuffix(GRAD))]
            for slot in grad.output_slots
        }
        assert cls.gradient is not None
        copies = cls.gradient.copies_attrs
        attrs = {name: op.attrs[name] for name in grad.attrs if name in op.attrs} if copies else {}
        return [GradOp(grad.type, inputs, outputs, attrs, own_attrs=not copies)]

    @classmethod
    def make_block_grad(cls, op: OpView, block: BlockGradient) -> list[GradOp]:
        """The same for an operator with a sub-block, which takes the gradient of that block too."""
        raise GraphError(f"operator {cls.type!r} cannot be differentiated")

    @classmethod
    def more_blocks(cls, op: OpView) -> list[int]:
        """Blocks that the kernel runs besides those that attributes of a block's type name."""
        return []

    @classmethod
    def temporaries(cls, op: OpView) -> set[str]:
        """Variables that the program calls persistable and that need not outlive the run."""
        return set()

    @classmethod
    def has_gradient(cls, op: OpView) -> bool:
        """Whether any operator computes gradients of ``op``, one of this type."""
        overrides = cls.make_grad.__func__ is not OpDef.make_grad.__func__  # type: ignore[attr-defined]
        return cls.gradient is not None or overrides or "make_block_grad" in vars(cls)


_OPS: dict[str, type[OpDef]] = {}


class OperatorLoader:
    """Imports the operators at the first look-up, once, whichever thread asks first."""

    def __init__(self) -> None:
        self._load: Callable[[], object] | None = None
        self._lock = threading.RLock()
        self._running = False

    def provide(self, load: Callable[[], object]) -> None:
        with self._lock:
            self._load = load

    def ensure_loaded(self) -> None:
        """Run the loader unless it has run.

        A look-up that the loader itself makes finds what is registered so far.
        """
        if self._load is None:
            return
        with self._lock:
            load = self._load
            if load is None or self._running:
                return
            self._running = True
            try:
                load()
                self._load = None
            finally:
                self._running = False


_LOADER = OperatorLoader()


def provide_operators(load: Callable[[], object]) -> None:
    """Have ``load`` called once, before the first look-up, to register the operators.

    Operators belong to a higher floor than the table, which therefore cannot import them itself.
    """
    _LOADER.provide(load)


def register(cls: OpClass) -> OpClass:
    """Check an operator class and put it, and its ``<type>_grad``, into the table."""
    _complete(cls)
    _add(cls)
    if cls.gradient is not None and "backward" in _functions(cls):
        _add(_derive_grad(cls, cls.gradient))
    return cls


def find(type: str) -> type[OpDef]:
    """Return the operator called ``type``; raise EnforceNotMet when there is none."""
    found = find_or_none(type)
    if found is None:
        raise EnforceNotMet(
            f"operator {type!r} is not known here",
            hint="a program that holds it can be printed, pruned, converted and saved, but not run",
        )
    return found


def find_or_none(type: str) -> type[OpDef] | None:
    """Return the operator called ``type``, or None."""
    _LOADER.ensure_loaded()
    return _OPS.get(type)


def all_ops() -> Mapping[str, type[OpDef]]:
    """Return every operator by type, gradients included (a copy)."""
    _LOADER.ensure_loaded()
    return dict(sorted(_OPS.items()))


def _add(cls: type[OpDef]) -> None:
    if cls.type in _OPS:
        raise GraphError(f"operator {cls.type!r} is registered twice: {_OPS[cls.type]}, {cls}")
    _OPS[cls.type] = cls


def _functions(cls: type) -> set[str]:
    return {n for n in ("infer", "forward", "backward") if callable(getattr(cls, n, None))}


def _complete(cls: type[OpDef]) -> None:
    cls.input_slots = tuple(Slot.parse(text) for text in cls.inputs)
    cls.output_slots = tuple(Slot.parse(text) for text in cls.outputs)
    have = _functions(cls)
    cls.infer_attrs, _ = _keywords(cls, cls.infer, cls.input_slots) if "infer" in have else ((), False)
    cls.forward_attrs, cls.takes_wanted = (
        _keywords(cls, cls.forward, cls.input_slots) if "forward" in have else ((), False)
    )


def _keywords(cls: type[OpDef], function: Kernel, slots: Iterable[Slot]) -> tuple[tuple[str, ...], bool]:
    """The attributes a function asks for; checks that it takes one array per slot."""
    # Read from the code object: inspect.signature takes 100 times as long.
    code: CodeType = inspect.unwrap(function).__code__
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    positional = code.co_argcount - isinstance(function, MethodType)  # without cls
    expected = len(list(slots)) + (cls.context and function.__name__ != "infer")
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    if not variadic and positional != expected:
        raise GraphError(
            f"operator {cls.type!r}: {function.__name__} takes {positional} positional "
            f"arguments, its slots ask for {expected}"
        )
    unknown = [name for name in keywords if name not in cls.attrs and name != "wanted"]
    if unknown:
        raise GraphError(f"operator {cls.type!r}: {function.__name__} asks for attributes {unknown}")
    return tuple(name for name in keywords if name != "wanted"), "wanted" in keywords


def _derive_grad(cls: type[OpDef], gradient: Gradient) -> type[OpDef]:
    """``<type>_grad``: its kernel is ``backward``; a gradient is shaped as what it is the gradient of."""
    marks = {slot.name: text for slot, text in zip(cls.input_slots, cls.inputs, strict=True)}
    marks |= {slot.name: text for slot, text in zip(cls.output_slots, cls.outputs, strict=True)}

    def marked(name: str) -> str:
        slot = name.rstrip("*?")
        base = slot.removesuffix(GRAD)
        return slot + (name[len(slot) :] or marks[base][len(base) :])

    outputs = gradient.outputs
    if outputs is None:
        outputs = tuple(grad_name(slot.name) for slot in cls.input_slots)
    grad = type(
        cls.__name__ + "Grad",
        (OpDef,),
        {
            "__doc__": f"Gradient of ``{cls.type}``.",
            "__module__": cls.__module__,
            "type": cls.type + "_grad",
            "inputs": tuple(marked(name) for name in gradient.inputs),
            "outputs": tuple(marked(name) for name in outputs),
            "attrs": cls.attrs,
            "context": cls.context,
            "views": cls.views if gradient.views is None else gradient.views,
            "forward": staticmethod(cls.backward),
            "forward_of": cls,
        },
    )
    _complete(grad)
    return grad
