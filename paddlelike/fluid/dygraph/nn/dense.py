"""Layers as objects: linear layers, products, embeddings, and dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.fluid.dygraph.nn.built import BuiltLayer
from paddlelike.framework import Variable, default_main_program
from paddlelike.initializer import Constant
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_type, check_variable, emit_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["BilinearTensorProduct", "Dropout", "Embedding", "Linear", "PRelu", "TreeConv"]


class Linear(BuiltLayer):
    """``act(input @ weight + bias)`` over the last dim of ``input``; the weight is (input_dim, output_dim)
    (operators ``matmul`` and ``elementwise_add``).

    Parameters
    ----------
    input_dim, output_dim
        The last dims of input and output.

    See Also
    --------
    fluid.layers.fc

    >>> import paddlelike as fluid
    >>> Linear(4, 3)(fluid.data("linear_x", [None, 5, 4])).shape
    (-1, 5, 3)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._act, self._dtype = act, dtype
        self.weight = self.create_parameter([input_dim, output_dim], param_attr, dtype)
        self.bias = self.create_parameter([output_dim], bias_attr, dtype, is_bias=True)

    def forward(self, input: Variable) -> Variable:  # noqa: A002  (Fluid's name)
        """Return the activation of ``input @ weight + bias``."""
        check_variable("Linear", "input", input, FLOATS)
        attrs = {"transpose_X": False, "transpose_Y": False, "alpha": 1}
        out = self._emit("matmul", {"X": input, "Y": self.weight}, attrs)
        return self._finish(out, self.bias, len(input.shape) - 1)


class Embedding(BuiltLayer):
    """Looks up rows of a table by int64 ids: shape (...) gives (..., width); see
    :func:`paddlelike.embedding`.

    ``size`` is ``[rows, width]``.

    Parameters
    ----------
    size
        ``[rows, width]`` of the table.

    See Also
    --------
    fluid.embedding

    >>> import paddlelike as fluid
    >>> Embedding([100, 8])(fluid.data("embedding_ids", [None, 5], "int64")).shape
    (-1, 5, 8)
    """

    def __init__(
        self,
        size: Sequence[int],
        is_sparse: bool = False,
        is_distributed: bool = False,
        padding_idx: int | None = None,
        param_attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        if padding_idx is not None and padding_idx < 0:
            padding_idx += size[0]
        self._dtype = dtype
        self._attrs = {
            "is_sparse": is_sparse,
            "is_distributed": is_distributed,
            "remote_prefetch": is_sparse and not is_distributed,
            "padding_idx": -1 if padding_idx is None else padding_idx,
        }
        self.weight = self.create_parameter(size, param_attr, dtype)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the row of each id."""
        check_variable("Embedding", "input", input, (VarType.INT64,))
        return self._emit("lookup_table_v2", {"Ids": input, "W": self.weight}, self._attrs)


class Dropout(BuiltLayer):
    """Sets elements to zero with probability ``p``; see :func:`paddlelike.layers.dropout`.

    Parameters
    ----------
    p
        The probability of a zero.

    Raises
    ------
    GraphError
        ``p`` is not from 0 to 1, or ``dropout_implementation`` is another text.

    See Also
    --------
    fluid.layers.dropout

    >>> import paddlelike as fluid
    >>> Dropout(0.2)(fluid.data("dropout_x", [None, 4])).shape
    (-1, 4)
    """

    def __init__(
        self,
        p: float = 0.5,
        seed: int | None = None,
        dropout_implementation: str = "downgrade_in_infer",
        is_test: bool = False,
    ) -> None:
        super().__init__()
        check_type("Dropout", "p", p, float, int)
        if not 0 <= p <= 1:
            raise GraphError(f"Dropout: p is {p!r}, expected a probability, from 0 to 1")
        check_type("Dropout", "seed", seed, int, type(None))
        known = ("downgrade_in_infer", "upscale_in_train")
        check_choice("Dropout", "dropout_implementation", dropout_implementation, known)
        self._seed = seed
        self._attrs = {
            "dropout_prob": p,
            "is_test": is_test,
            "dropout_implementation": dropout_implementation,
        }

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return ``input`` with some elements set to zero."""
        check_variable("Dropout", "input", input)
        self._seed = self._seed or default_main_program().random_seed or self._seed
        seed = {"fix_seed": self._seed is not None, "seed": self._seed or 0}
        slots = {"Out": input.dtype, "Mask": VarType.UINT8}
        attrs = {**self._attrs, **seed}
        out, _ = emit_all("dropout", {"X": input}, slots, attrs, helper=self._helper, constant=("Mask",))
        return out


class PRelu(BuiltLayer):
    """``x`` if it is positive, otherwise ``weight * x``; see :func:`paddlelike.layers.prelu`.

    ``mode`` is "all" (one weight), "channel" (one per channel) or "element" (one per element of a sample).

    Parameters
    ----------
    channel
        The number of channels, for the mode "channel"; None otherwise.
    input_shape
        The shape of the input with its batch, for the mode "element"; None otherwise.

    Raises
    ------
    TypeError
        The mode requires ``channel`` or ``input_shape``, and it is missing.

    See Also
    --------
    fluid.layers.prelu

    >>> import paddlelike as fluid
    >>> PRelu("channel", channel=3)(fluid.data("prelu_x", [None, 3, 8, 8])).shape
    (-1, 3, 8, 8)
    """

    def __init__(
        self,
        mode: str,
        channel: int | None = None,
        input_shape: Sequence[int] | None = None,
        param_attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__("prelu")
        check_choice("PRelu", "mode", mode, ("all", "channel", "element"))
        self._mode, self._dtype = mode, dtype
        shape = [1]
        if mode == "channel":
            check_type("PRelu", "channel", channel, int)
            shape = [1, int(channel or 0), 1, 1]
        if mode == "element":
            check_type("PRelu", "input_shape", input_shape, list, tuple)
            shape = [1, *list(input_shape or ())[1:]]
        self.weight = self.create_parameter(shape, param_attr, "float32", default_initializer=Constant(1.0))

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of ``input``."""
        check_variable("PRelu", "input", input, (VarType.FP32,))
        return self._emit("prelu", {"X": input, "Alpha": self.weight}, {"mode": self._mode})


class BilinearTensorProduct(BuiltLayer):
    """``act(x weight[i] y + bias)`` for output i; see :func:`paddlelike.layers.bilinear_tensor_product`.

    Parameters
    ----------
    input1_dim, input2_dim, output_dim
        The widths of ``x``, ``y`` and the result.

    See Also
    --------
    fluid.layers.bilinear_tensor_product

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("bilinear_x", [None, 4]), fluid.data("bilinear_y", [None, 5])
    >>> BilinearTensorProduct(4, 5, 6)(x, y).shape
    (-1, 6)
    """

    def __init__(
        self,
        input1_dim: int,
        input2_dim: int,
        output_dim: int,
        name: str | None = None,
        act: str | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._name, self._act, self._dtype = name, act, dtype
        self.weight = self.create_parameter([output_dim, input1_dim, input2_dim], param_attr, dtype)
        self.bias = self.create_parameter([1, output_dim], bias_attr, dtype, is_bias=True)

    def forward(self, x: Variable, y: Variable) -> Variable:
        """Return the bilinear products of the rows of ``x`` and ``y``, (N, output_dim)."""
        for argument, value in (("x", x), ("y", y)):
            check_variable("BilinearTensorProduct", argument, value, WIDE_FLOATS)
        inputs = {"X": x, "Y": y, "Weight": self.weight}
        if self.bias is not None:
            inputs["Bias"] = self.bias
        named: dict[str, Any] = {} if self._name is None else {"name": f"{self._full_name}.{self._name}"}
        out = self._helper.create_variable(dtype=self._dtype, persistable=False, **named)
        self._helper.append_op(type="bilinear_tensor_product", inputs=inputs, outputs={"Out": out})
        return self._helper.append_activation(out, self._act)


class TreeConv(BuiltLayer):
    """A convolution over trees; see :func:`paddlelike.fluid.contrib.tree_conv`.

    As in Fluid, there is a bias only where ``bias_attr`` is given.

    Parameters
    ----------
    output_size
        The number of elements of each new feature.
    num_filters
        The number of new features of a node.
    max_depth
        The number of generations that a feature sees.
    feature_size
        The width of a node's features.

    See Also
    --------
    fluid.contrib.tree_conv

    >>> import paddlelike as fluid
    >>> nodes, edges = fluid.data("tree_x", [None, 10, 5]), fluid.data("tree_edges", [None, 9, 2], "int32")
    >>> TreeConv(feature_size=5, output_size=6)(nodes, edges).shape
    (-1, 10, 6, 1)
    """

    def __init__(
        self,
        feature_size: int,
        output_size: int,
        num_filters: int = 1,
        max_depth: int = 2,
        act: str | None = "tanh",
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        name: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._name, self._act, self._dtype, self._max_depth = name, act, dtype, max_depth
        self.bias = self.create_parameter([num_filters], bias_attr or False, dtype, is_bias=True)
        self.weight = self.create_parameter([feature_size, 3, output_size, num_filters], param_attr, dtype)

    def forward(self, nodes_vector: Variable, edge_set: Variable) -> Variable:
        """Return the features of each node, (N, nodes, output_size, num_filters)."""
        for argument, value in (("nodes_vector", nodes_vector), ("edge_set", edge_set)):
            check_variable("TreeConv", argument, value)
        out = (
            self.create_variable(self._name, persistable=False, dtype=self._dtype)
            if self._name
            else self._helper.create_variable_for_type_inference(self._dtype)
        )
        self._helper.append_op(
            type="tree_conv",
            inputs={"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": self.weight},
            outputs={"Out": out},
            attrs={"max_depth": self._max_depth},
        )
        return self._finish(out, self.bias)
