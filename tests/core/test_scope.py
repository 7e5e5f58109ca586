"""Scopes: names, families, kinds of values, and who sees what."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.errors import EnforceNotMet


def test_scope_var_creates_names_and_find_var_searches_parents() -> None:
    scope = fluid.Scope()
    assert scope.find_var("x") is None
    made = scope.var("x")
    assert scope.var("x") is scope.find_var("x") is made
    child = scope.new_scope()
    assert child.find_var("x") is made
    assert child.var("x") is not made
    assert child.find_var("x") is not made
    assert (child.parent, scope.parent) == (scope, None)
    assert scope.local_var_names() == ["x"]
    scope.erase(["x", "nobody"])
    assert scope.find_var("x") is None


def test_dropped_child_scopes_are_freed() -> None:
    import gc
    import weakref

    scope = fluid.Scope()
    child = weakref.ref(scope.new_scope())
    gc.collect()
    assert child() is not None
    scope.drop_kids()
    gc.collect()
    assert child() is None


def test_a_guard_restores_the_global_scope_even_after_an_error() -> None:
    before, mine = fluid.global_scope(), fluid.Scope()
    with fluid.scope_guard(mine):
        assert fluid.global_scope() is mine
        with pytest.raises(KeyError), fluid.scope_guard(fluid.Scope()):
            raise KeyError
        assert fluid.global_scope() is mine
    assert fluid.global_scope() is before


def test_the_first_access_decides_the_kind_of_a_variable() -> None:
    scope = fluid.Scope()
    kinds = {
        "tensor": (LoDTensor, "get_tensor"),
        "rows": (SelectedRows, "get_selected_rows"),
        "array": (LoDTensorArray, "get_lod_tensor_array"),
    }
    for name, (kind, getter) in kinds.items():
        place = scope.var(name)
        assert place.value is None
        assert isinstance(getattr(place, getter)(), kind)
        others = {other for _, other in kinds.values()} - {getter}
        for other in others:
            with pytest.raises(EnforceNotMet, match=rf"{name!r} holds a {kind.__name__}, not a "):
                getattr(place, other)()


def test_a_variable_is_initialized_once_it_was_written() -> None:
    place = fluid.Scope().var("x")
    assert not place.is_initialized()
    place.get_tensor()
    assert not place.is_initialized()
    place.get_tensor().set(np.ones(2, "float32"))
    assert place.is_initialized()
    place.set_value(None)
    assert not place.is_initialized()


def test_versions_of_a_variable_never_decrease() -> None:
    place = fluid.Scope().var("x")
    seen = [place.version]
    place.get_tensor().set(np.ones(2, "float32"))
    seen.append(place.version)
    old = place.get_tensor()
    place.set_value(LoDTensor(np.ones(3, "float32")))
    seen.append(place.version)
    place.set_value(old)
    seen.append(place.version)
    place.set_value(None)
    seen.append(place.version)
    assert seen == sorted(set(seen))


def test_child_scopes_share_the_generator_of_their_parent() -> None:
    scope = fluid.Scope()
    child = scope.new_scope().new_scope()
    assert child.generator is scope.generator
    assert fluid.Scope().generator is not scope.generator
