"""Expressions of a script: their values, as far as they are known."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from paddlelike.scan.names import Names
from paddlelike.scan.values import UNKNOWN, Const, Items, LocalFunction, Value, Variables

_COMPARE: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many, ast.NotIn: lambda one, many: one not in many,
}  # fmt: skip


class Expressions(Names):
    """Evaluates expressions."""

    @abstractmethod
    def _call_node(self, node: ast.Call, variables: Variables) -> Value:
        """Follow a call."""

    @abstractmethod
    def _make_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, variables: Variables
    ) -> LocalFunction:
        """Return the value of a function definition."""

    @abstractmethod
    def _bind(self, target: ast.expr, found: Value, variables: Variables) -> None:
        """Bind a name or another target of an assignment."""

    def _value(self, node: ast.expr, variables: Variables) -> Value:
        match node:
            case ast.Constant():
                return Const(node.value)
            case ast.Name():
                return self._name(node, variables)
            case ast.Attribute():
                return self._attribute(node, self._value(node.value, variables), node.attr)
            case ast.Call():
                return self._call_node(node, variables)
            case ast.Lambda():
                return self._make_function(node, variables)
            case ast.Tuple() | ast.List():
                return Items(tuple(self._value(one, variables) for one in node.elts))
            case ast.IfExp():
                return self._choose(node, variables)
            case ast.BoolOp():
                return self._combine(node, variables)
            case ast.UnaryOp(op=ast.Not()):
                found = self._value(node.operand, variables)
                return Const(not found.value, found.open) if isinstance(found, Const) else UNKNOWN
            case ast.Compare():
                return self._compare(node, variables)
            case ast.BinOp():
                return self._compute(node, variables)
            case ast.Subscript():
                return self._subscript(node, variables)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehend(node, variables)
                return UNKNOWN
            case ast.NamedExpr():
                named = self._value(node.value, variables)
                self._bind(node.target, named, variables)
                return named
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child, variables)
        return UNKNOWN

    def _choose(self, node: ast.IfExp, variables: Variables) -> Value:
        test = self._value(node.test, variables)
        if isinstance(test, Const):
            taken, other = (node.body, node.orelse) if test.value else (node.orelse, node.body)
            if test.open:
                with self._possible():
                    self._value(other, variables)
            return self._value(taken, variables)
        with self._possible():
            one, other_value = self._value(node.body, variables), self._value(node.orelse, variables)
        return one if one == other_value else UNKNOWN

    def _combine(self, node: ast.BoolOp, variables: Variables) -> Value:
        decides = isinstance(node.op, ast.Or)
        is_open = False
        for index, one in enumerate(node.values):
            found = self._value(one, variables)
            if not isinstance(found, Const):
                with self._possible():
                    for rest in node.values[index + 1 :]:
                        self._value(rest, variables)
                return UNKNOWN
            is_open |= found.open
            if bool(found.value) == decides:
                break
        return Const(found.value, is_open) if isinstance(found, Const) else UNKNOWN

    def _compare(self, node: ast.Compare, variables: Variables) -> Value:
        left, *rest = (self._value(one, variables) for one in (node.left, *node.comparators))
        if len(rest) != 1:
            return UNKNOWN
        return apply(_COMPARE[type(node.ops[0])], left, rest[0])

    def _compute(self, node: ast.BinOp, variables: Variables) -> Value:
        one, other = self._value(node.left, variables), self._value(node.right, variables)
        if isinstance(node.op, ast.Mod) and isinstance(one, Const) and _formats_numbers(one.value):
            if not isinstance(other, Const):
                self._note_format(node)
            return UNKNOWN
        return apply(operator.add, one, other) if isinstance(node.op, ast.Add) else UNKNOWN

    def _note_format(self, node: ast.AST) -> None:
        why = "% formats a number here: today's numpy refuses an array, and the value's type is not known"
        self._add(
            node, "%", "unseen", why, "write float(x), or x.item(), where x may be an array of one element"
        )

    def _subscript(self, node: ast.Subscript, variables: Variables) -> Value:
        owner = self._value(node.value, variables)
        index = self._value(node.slice, variables) if not isinstance(node.slice, ast.Slice) else UNKNOWN
        if isinstance(node.slice, ast.Slice):
            for one in (node.slice.lower, node.slice.upper, node.slice.step):
                if one is not None:
                    self._value(one, variables)
            return UNKNOWN
        if isinstance(owner, Items):
            owner = Const(owner.items)
            found = apply(operator.getitem, owner, index)
            return found.value if isinstance(found, Const) and isinstance(found.value, Value) else UNKNOWN
        return apply(operator.getitem, owner, index)

    def _comprehend(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, variables: Variables
    ) -> None:
        inner = Variables({}, variables)
        for each in node.generators:
            self._value(each.iter, inner)
            self._bind(each.target, UNKNOWN, inner)
            for test in each.ifs:
                self._value(test, inner)
        for one in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self._value(one, inner)


def apply(function: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    if not isinstance(one, Const) or not isinstance(other, Const):
        return UNKNOWN
    try:
        return Const(function(one.value, other.value), one.open or other.open)
    except Exception:  # the script would raise it
        return UNKNOWN


def _formats_numbers(text: object) -> bool:
    return isinstance(text, str) and any(f"%{middle}" in text for middle in ("f", ".", "d", "g", "e", "0"))
