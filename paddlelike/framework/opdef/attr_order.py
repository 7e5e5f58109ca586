"""The order in which Fluid 1.8 declares the attributes of operators, where it is not that of the class here.

Classes list attributes by use: those that functions read, then those that they ignore. Fluid's order decides
in which order an operator of a saved program has its attributes, see ``paddlelike/framework/graph/order.py``.
Source: ``OpProtoHolder.get_op_proto(type).attrs`` of 1.8.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from paddlelike.foundation.text_tables import read_table

_ORDERS: Final = read_table("paddlelike.framework.opdef", "attr_order.txt").split(";")
_BY_TYPE: Final = {
    type_: attrs.split()
    for types, _, attrs in (order.partition(":") for order in _ORDERS)  # "types: their attributes"
    for type_ in types.split()
}


def order_attrs(type_: str, names: Iterable[str]) -> Sequence[str]:
    """Return ``names``, all attributes of an operator as its class lists them, in the order of Fluid."""
    return _BY_TYPE.get(type_) or list(names)
