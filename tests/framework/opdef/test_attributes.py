"""Attributes declared as a class: its table, its instances, and the functions that take them."""

from __future__ import annotations

import pytest

from paddlelike.core import AttrType, VarType
from paddlelike.framework.opdef import (
    ABSENT,
    Attr,
    Attrs,
    Bool,
    Float,
    Ints,
    OpDef,
    Spec,
)
from paddlelike.framework.opdef.registry import complete


class WindowAttrs(Attrs):
    """Attributes of a window."""

    ksize: list[int] = Ints()
    strides: list[int] = Ints([1, 1])
    alpha: float | None = Float(ABSENT)


class DilatedAttrs(WindowAttrs):
    """Attributes of a window with holes."""

    dilations: list[int] = Ints([1, 1])


TABLE = WindowAttrs.table(strides=Ints([2, 2]), use_cudnn=Bool(False))


def test_the_attribute_table_lists_fields_and_attributes_that_are_never_read() -> None:
    assert list(TABLE) == ["ksize", "strides", "alpha", "use_cudnn"]
    assert TABLE["strides"] == Attr(AttrType.INTS, [2, 2])
    assert list(DilatedAttrs.table()) == ["ksize", "strides", "alpha", "dilations"]


def test_parsing_fills_in_defaults_and_drops_unread_attributes() -> None:
    attrs = TABLE.parse({"ksize": [3, 3], "use_cudnn": True, "op_role": 1})
    assert vars(attrs) == {"ksize": [3, 3], "strides": [2, 2], "alpha": None}


def test_attribute_classes_take_keywords_and_are_read_only() -> None:
    attrs = DilatedAttrs(ksize=[2, 2])
    assert (attrs.strides, attrs.dilations) == ([1, 1], [1, 1])
    assert attrs.replace(strides=[4, 4]).strides == [4, 4]
    with pytest.raises(AttributeError, match=r"DilatedAttrs\.ksize cannot be set"):
        attrs.ksize = [1, 1]  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"unknown fields \['kszie'\], missing \['ksize'\]"):
        DilatedAttrs(kszie=[2, 2])  # type: ignore[call-arg]


def test_all_functions_of_an_operator_get_the_same_attributes_object() -> None:
    class Window(OpDef):
        """Takes its attributes as a class."""

        type = "window"
        attrs = TABLE

        @staticmethod
        def infer(x: Spec, *, attrs: WindowAttrs) -> Spec:
            return Spec(tuple(attrs.ksize), x.dtype)

    complete(Window)
    keywords = Window.make_infer_keywords({"ksize": [3, 4]})
    assert Window.infer(Spec((1,), VarType.FP32), **keywords).shape == (3, 4)
