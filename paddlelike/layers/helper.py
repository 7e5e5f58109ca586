"""The helper of every layer: it names the call, creates parameters and temporaries, and appends operators."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import (
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
)
from paddlelike.hooks import Hook
from paddlelike.initializer import Constant, Initializer, Xavier
from paddlelike.param_attr import ParamAttr, WeightNormParamAttr

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["LayerHelper", "LayerHelperBase"]

# A hook, since the layers that compute it import this module.
_create_weight_normalized: Final[Hook[[LayerHelper, WeightNormParamAttr, list[int], VarType], Variable]] = (
    Hook("create_weight_normalized")
)


class LayerHelper:
    """One call of a layer.

    ``layer_type`` names the layer (``fc``); ``name`` is taken literally, None becomes ``fc_0``. The other
    keywords are kept for the methods that need them: ``input``, ``act``, ``param_attr``, ``bias_attr``.
    Scripts may use it for their own layers, as in Fluid.

    Parameters
    ----------
    layer_type
        The operator's name, the prefix of the names of all variables that the layer creates.
    name
        The layer's own name; None for a generated one.

    Raises
    ------
    TypeError
        ``act`` is a function, not the name of an activation.

    See Also
    --------
    fluid.wrapped_decorator.wrap_decorator, fluid.wrapped_decorator.signature_safe_contextmanager

    >>> with unique_name.guard():
    ...     LayerHelper("fc").name
    'fc_0'
    """

    def __init__(self, layer_type: str, *, name: str | None = None, **kwargs: Any) -> None:
        act = kwargs.get("act")
        if act is not None and not isinstance(act, str | Mapping):  # before the layer makes parameters
            near = getattr(act, "__name__", "relu")
            raise TypeError(
                f"layer {layer_type!r}: act is a {type(act).__name__}, expected an activation's name\n"
                f"  hint: act={near!r}, or call the function on the layer's output"
            )
        self.layer_type = layer_type
        self.kwargs = kwargs
        self.name = unique_name.generate(layer_type) if name is None else name

    @property
    def main_program(self) -> Program:
        """The program being built."""
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        """The startup program being built."""
        return default_startup_program()

    # Inputs

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """Return the input as a list of variables. Raises TypeError when one is not a variable."""
        given = self.kwargs.get(input_param_name)
        many: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
        for one in many:
            if not isinstance(one, Variable):
                raise TypeError(
                    f"layer {self.layer_type!r}: {input_param_name} must be a variable, got {one!r}"
                )
        return many

    def input(self, input_param_name: str = "input") -> Variable:
        """Return the input. Raises GraphError unless it is one variable."""
        many = self.multiple_input(input_param_name)
        if len(many) != 1:
            raise GraphError(f"layer {self.layer_type!r} takes one {input_param_name}, got {len(many)}")
        return many[0]

    def input_dtype(self, input_param_name: str = "input") -> VarType:
        """Return the element type of the inputs. Raises GraphError when they differ."""
        many = self.multiple_input(input_param_name)
        dtypes = {one.dtype for one in many}
        if len(dtypes) > 1:
            kinds = ", ".join(f"{one.name}: {one.dtype.name}" for one in many)
            raise GraphError(f"layer {self.layer_type!r}: its inputs differ in dtype ({kinds})")
        return many[0].dtype

    # Parameters

    @property
    def param_attr(self) -> ParamAttr | Literal[False]:
        """The attribute of the weight (False: no weight)."""
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> ParamAttr | Literal[False]:
        """The attribute of the bias (False: no bias)."""
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length: int) -> list[ParamAttr | Literal[False]]:
        """Return one attribute per input; a single one is copied.

        Raises GraphError when there are several, but not one per input.
        """
        attr = ParamAttr._to_attr(self.kwargs.get("param_attr"))
        attrs = attr if isinstance(attr, list) else [attr]
        if len(attrs) not in (1, length):
            raise GraphError(
                f"layer {self.layer_type!r} has {length} inputs and {len(attrs)} param_attr; "
                "pass one for all or one for each"
            )
        return list(attrs) if len(attrs) == length else [attrs[0]] + [
            copy.deepcopy(attrs[0]) for _ in range(length - 1)
        ]  # fmt: skip

    def iter_inputs_and_params(
        self, input_param_name: str = "input"
    ) -> Iterator[tuple[Variable, ParamAttr | Literal[False]]]:
        """Yield every input with the attribute of its weight."""
        inputs = self.multiple_input(input_param_name)
        yield from zip(inputs, self.multiple_param_attr(len(inputs)), strict=True)

    def create_parameter(
        self,
        attr: ParamAttrLike,
        shape: Sequence[int],
        dtype: DtypeLike | None = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
        stop_gradient: bool = False,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002  (Fluid's name)
    ) -> Any:
        """Create a parameter in the main program, initialize it in the startup program, and return it.

        Return None when ``attr`` is False. An existing parameter of this name is shared. Raises GraphError
        when it has another shape or dtype.
        """
        attr = copy.copy(ParamAttr._to_attr(attr))
        if attr is False:
            return None
        if attr.initializer is None:
            default = Constant(0.0) if is_bias else Xavier()
            attr.initializer = default if default_initializer is None else default_initializer
        if attr.name is None:
            attr.name = unique_name.generate(f"{self.name}.{'b' if is_bias else 'w'}")
        dtype = VarType.FP32 if dtype is None else convert_dtype(dtype)
        if not isinstance(shape, Sequence):
            raise TypeError(
                f"layer {self.layer_type!r}: the shape of a parameter is {shape!r}, expected a list of ints\n"
                "  hint: an embedding has size=[rows, width]"
            )
        shape = [self._check_dim(dim, shape) for dim in shape]
        if isinstance(attr, WeightNormParamAttr):
            return _create_weight_normalized.function(self, attr, shape, dtype)
        return self._make_parameter(attr, shape, dtype, stop_gradient, type)

    def _check_dim(self, dim: object, shape: Sequence[object]) -> int:
        if isinstance(dim, int | float | np.number) and dim == int(dim):
            return int(dim)
        raise TypeError(
            f"layer {self.layer_type!r}: a parameter cannot have the shape {list(shape)}: {dim!r} "
            "is not a whole number"
        )

    def _make_parameter(
        self,
        attr: ParamAttr,
        shape: list[int],
        dtype: VarType,
        stop_gradient: bool = False,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002
    ) -> Parameter:
        keywords = {"shape": shape, "dtype": dtype, "type": type, **attr._to_kwargs()}
        startup = self.startup_program.global_block()
        first = attr.name not in startup.vars
        initial = startup.create_parameter(**keywords)
        if first:
            if not callable(attr.initializer):
                raise TypeError(
                    f"initializer of {attr.name!r} is {attr.initializer!r}, expected an initializer\n"
                    "  hint: fluid.initializer.Xavier(), Normal(0.0, 0.02), Constant(0.0) or the like"
                )
            attr.initializer(initial, startup)
        return self.main_program.global_block().create_parameter(stop_gradient=stop_gradient, **keywords)

    def get_parameter(self, name: str) -> Parameter:
        """Return the parameter of that name. Raises GraphError when the main program has none."""
        found = self.main_program.global_block().var(name)
        if not isinstance(found, Parameter):
            raise GraphError(f"variable {name!r} is not a parameter")
        return found

    # Variables

    def create_variable_for_type_inference(
        self, dtype: DtypeLike, stop_gradient: bool = False, shape: Sequence[int] | None = None
    ) -> Variable:
        """Return a new temporary variable, whose shape the operator that writes it infers."""
        return self.main_program.current_block().create_var(
            name=unique_name.generate(f"{self.name}.tmp"),
            dtype=dtype,
            shape=shape,
            persistable=False,
            stop_gradient=stop_gradient,
        )

    def create_variable(self, **kwargs: Any) -> Variable:
        """Return a new variable of the current block, with the arguments of :class:`Variable`."""
        return self.main_program.current_block().create_var(**kwargs)

    def create_global_variable(self, persistable: bool = False, **kwargs: Any) -> Variable:
        """Return a new variable of block 0 that gets no gradient."""
        return self.main_program.global_block().create_var(
            persistable=persistable, stop_gradient=True, **kwargs
        )

    def create_or_get_global_variable(self, name: str, **kwargs: Any) -> tuple[Variable, bool]:
        """Return the variable of that name in block 0, and whether it is new."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Initialize a variable in the startup program, and return it there."""
        block = self.startup_program.global_block()
        twin = block.create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape, persistable=True
        )
        initializer(twin, block)
        return twin

    # Operators

    def append_op(
        self,
        type: str,  # noqa: A002
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Append an operator to the current block."""
        return self.main_program.current_block().append_op(
            type=type, inputs=inputs, outputs=outputs, attrs=attrs, stop_gradient=stop_gradient
        )

    def append_bias_op(self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """Return ``input_var`` plus a bias over dims ``dim_start:dim_end``, unless ``bias_attr`` is False."""
        attr = self.bias_attr
        if attr is False:
            return input_var
        bias = self.create_parameter(attr, input_var.shape[dim_start:dim_end], input_var.dtype, is_bias=True)
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(
            type="elementwise_add",
            inputs={"X": [input_var], "Y": [bias]},
            outputs={"Out": [out]},
            attrs={"axis": dim_start},
        )
        return out

    def append_activation(self, input_var: Variable) -> Variable:
        """Return the activation of ``input_var``: ``act`` is a name, or a dict of ``type`` and attributes."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        attrs = {"type": act} if isinstance(act, str) else dict(act)
        kind = attrs.pop("type")
        for flag in ("use_cudnn", "use_mkldnn"):
            if self.kwargs.get(flag):
                attrs[flag] = self.kwargs[flag]
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(type=kind, inputs={"X": [input_var]}, outputs={"Out": [out]}, attrs=attrs)
        return out


#: Fluid has the class in two, and scripts import either: ``layer_helper_base.LayerHelperBase``.
LayerHelperBase = LayerHelper
