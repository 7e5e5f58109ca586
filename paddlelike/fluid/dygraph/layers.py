"""``Layer``: a callable object that owns parameters and other layers, and builds operators when called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.errors import LeftOutError
from paddlelike.fluid.dygraph.layer_object_helper import LayerObjectHelper
from paddlelike.framework import Parameter, Variable
from paddlelike.left_out import make_getattr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from paddlelike.core import DtypeLike
    from paddlelike.initializer import Initializer
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["Layer"]
__getattr__ = make_getattr(__name__, "dygraph.layers")

#: Two words in a class's name, ``MyNet``, and ``NetV`` where the first of them ends in a small letter.
_WORDS: Final = ((re.compile("(.)([A-Z][a-z]+)"), r"\1_\2"), (re.compile("([a-z])([A-Z])"), r"\1_\2"))


class Layer:
    """A part of a network: its parameters, the layers in it, and ``forward``, which builds its operators.

    A subclass creates parameters and layers in ``__init__`` and overrides ``forward``. Calling the object
    again builds the operators again, with the same parameters. ``name_scope``, by default the class's name
    such as ``my_net``, is the prefix of all names it creates.

    Parameters
    ----------
    name_scope
        The first part of all names; None for the class's name, as ``my_net``.
    dtype
        The element type of the parameters that it creates.

    See Also
    --------
    fluid.dygraph.LayerList, fluid.dygraph.ParameterList, fluid.dygraph.Sequential

    >>> import paddlelike as fluid
    >>> class Net(fluid.dygraph.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = fluid.dygraph.Linear(4, 3, act="relu")
    ...
    ...     def forward(self, x):
    ...         return self.hidden(x)
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
    ...     net = Net()
    ...     net(fluid.data("x", [None, 4])).shape, [p.name for p in net.parameters()]
    ((-1, 3), ['linear_0.w_0', 'linear_0.b_0'])
    """

    def __init__(self, name_scope: str | None = None, dtype: DtypeLike = VarType.FP32) -> None:
        self.training = True
        self._full_name = unique_name.generate(_name_class(type(self)) if name_scope is None else name_scope)
        self._helper = LayerObjectHelper(self._full_name)
        self._built = False
        self._dtype = dtype
        self._parameters: dict[str, Parameter | None] = {}
        self._sub_layers: dict[str, Layer | None] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_post_hooks: dict[int, Callable[..., Any]] = {}

    # Building operators

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the hooks and :meth:`forward`; return its result."""
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        if not self._built:
            self._build_once(*inputs, **kwargs)
            self._built = True
        outputs = self.forward(*inputs, **kwargs)
        for hook in list(self._forward_post_hooks.values()):
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def _build_once(self, *inputs: Any, **kwargs: Any) -> None:
        """Create parameters that depend on the inputs, before the first call of :meth:`forward`."""

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Build the operators of this layer. Raises NotImplementedError: a subclass overrides it."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def backward(self, *inputs: object) -> NoReturn:
        """Raise ValueError: gradients come from the operators that :meth:`forward` builds."""
        raise ValueError(
            f"{type(self).__name__}.backward: a layer has no backward pass of its own\n"
            "  hint: optimizer.minimize(loss) or fluid.gradients build the gradients"
        )

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> _Registered:
        """Call ``hook(layer, inputs)`` before each forward pass; its result replaces the inputs."""
        return _Registered(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> _Registered:
        """Call ``hook(layer, inputs, outputs)`` after each forward pass; its result replaces the outputs."""
        return _Registered(self._forward_post_hooks, hook)

    # What it creates

    def full_name(self) -> str:
        """Return the name, such as ``linear_0``, with which the names of the parameters begin."""
        return self._full_name

    def create_parameter(
        self,
        shape: Sequence[int],
        attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Any:
        """Return a new parameter; None when ``attr`` is False."""
        return self._helper.create_parameter(
            None if attr == "" else attr, shape, dtype, is_bias, default_initializer
        )

    def create_variable(
        self,
        name: str | None = None,
        persistable: bool | None = None,
        dtype: DtypeLike | None = None,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002  (Fluid's name)
    ) -> Variable:
        """Return a new variable of the current block, with a name that begins with the layer's name."""
        full = (
            unique_name.generate(f"{self._full_name}._generated_var")
            if name is None
            else f"{self._full_name}.{name}"
        )
        return self._helper.create_variable(name=full, persistable=persistable, dtype=dtype, type=type)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Add a parameter as the attribute ``name``, and return it. Raises TypeError for anything else."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"parameter {name!r} of {self._full_name}: got {parameter!r}, expected a Parameter"
            )
        self._parameters[name] = parameter
        return parameter

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Add a layer as the attribute ``name``, and return it. Raises TypeError for anything else."""
        if not isinstance(sublayer, Layer):
            raise TypeError(f"layer {name!r} of {self._full_name}: got {sublayer!r}, expected a Layer")
        self._sub_layers[name] = sublayer
        return sublayer

    # What it has

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """Return the parameters, including the inner layers'."""
        return [parameter for _, parameter in self.named_parameters(include_sublayers=include_sublayers)]

    def sublayers(self, include_sublayers: bool = True) -> list[Layer]:
        """Return the inner layers, including nested ones."""
        return [layer for _, layer in self.named_sublayers(include_sublayers=include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield each parameter once, with its path of attributes, such as ``hidden.weight``."""
        seen: set[str] = set()
        for path, layer in self.named_sublayers(prefix, include_sublayers, include_self=True):
            for name, parameter in layer._parameters.items():
                if parameter is not None and parameter.name not in seen:
                    seen.add(parameter.name)
                    yield (f"{path}.{name}" if path else name), parameter

    def named_sublayers(
        self,
        prefix: str = "",
        include_sublayers: bool = True,
        include_self: bool = False,
        layers_set: set[Layer] | None = None,
    ) -> Iterator[tuple[str, Layer]]:
        """Yield each layer once, with its path of attributes."""
        seen: set[Layer] = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items() if include_sublayers else ():
            if layer is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(path, include_self=True, layers_set=seen)

    def state_dict(
        self,
        destination: dict[str, Parameter] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Parameter]:
        """Return the parameters by path, in a copy of ``destination``."""
        found = {} if destination is None else destination
        for name, parameter in self._parameters.items():
            if parameter is not None:
                found[structured_name_prefix + name] = parameter
        for name, layer in self._sub_layers.items() if include_sublayers else ():
            if layer is not None:
                found = {**found, **layer.state_dict(None, True, f"{structured_name_prefix}{name}.")}
        return found

    # What needs values

    def train(self) -> NoReturn:
        """Raise LeftOutError: a program is built either for training or for testing."""
        self._raise_dynamic("train", "main.clone(for_test=True) is the program for evaluation")

    def eval(self) -> NoReturn:
        """Raise LeftOutError: a program is built either for training or for testing."""
        self._raise_dynamic("eval", "main.clone(for_test=True) is the program for evaluation")

    def clear_gradients(self) -> NoReturn:
        """Raise LeftOutError: every run computes new gradients."""
        self._raise_dynamic("clear_gradients", "leave the call out: no gradient outlives a run")

    def set_dict(
        self, stat_dict: Mapping[str, Any], include_sublayers: bool = True, use_structured_name: bool = True
    ) -> NoReturn:
        """Raise LeftOutError: a scope holds the values."""
        self._raise_dynamic("set_dict", "fluid.set_program_state(main, state) sets parameters by name")

    load_dict = set_dict

    def _raise_dynamic(self, method: str, hint: str) -> NoReturn:
        raise LeftOutError(
            f"{type(self).__name__}.{method} is not here: it belongs to the dynamic graph; in a static "
            "program a layer only builds operators",
            hint=hint,
        )

    # Attributes

    def __getattr__(self, name: str) -> Any:
        """Return the parameter or layer of that name."""
        for held in (self.__dict__.get("_parameters", {}), self.__dict__.get("_sub_layers", {})):
            if name in held:
                return held[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; parameters and layers are registered. Raises TypeError if one is replaced."""
        held = {
            kind: self.__dict__.get(own) for kind, own in ((Parameter, "_parameters"), (Layer, "_sub_layers"))
        }
        for kind, own in held.items():
            if isinstance(value, kind):
                if own is None:
                    raise ValueError(
                        f"call super().__init__() of {type(self).__name__} before you set {name!r}"
                    )
                for other in (self.__dict__, *(one for one in held.values() if one)):
                    other.pop(name, None)
                own[name] = value
                return
        for kind, own in held.items():
            if own is not None and name in own:
                if value is not None:
                    raise TypeError(
                        f"{type(self).__name__}.{name} is a {kind.__name__}; expected another one or None, "
                        f"got {value!r}"
                    )
                own[name] = None
                return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete a parameter, a layer or another attribute."""
        for held in (self._parameters, self._sub_layers):
            if name in held:
                del held[name]
                return
        object.__delattr__(self, name)


class _Registered:
    """A hook of a layer, which can be removed."""

    _count = 0

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook_id = hooks, _Registered._count
        _Registered._count += 1
        hooks[self._hook_id] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self._hook_id, None)


def _name_class(kind: type) -> str:
    """Return the name of a class in Fluid's form, such as ``conv2d_transpose``."""
    name = kind.__name__
    for pattern, written in _WORDS:
        name = pattern.sub(written, name)
    return name.lower()
