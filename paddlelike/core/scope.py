"""Scopes: nested mappings from names to values.

Persistable variables are kept in the scope that a program runs in; temporaries are dropped after the run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar

from paddlelike.core.random import Generator
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.core.versioned import Versioned
from paddlelike.errors import EnforceNotMet
from paddlelike.foundation.current import Block, Current
from paddlelike.foundation.display import Displayed

_LISTED: Final = 8  # names in the repr of a scope

Value = TypeVar("Value")

#: Kinds of values that a pickle of a scope holds; others, such as queues of readers, belong to a run.
_PICKLED: Final = (LoDTensor, SelectedRows, LoDTensorArray, bool, int, float, str, bytes)


class ScopeVariable(Versioned, Displayed):
    """A named value in a scope. Its kind is decided by the first access."""

    __slots__ = ("__weakref__", "_past", "_value", "flat", "name", "origin")

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {"flat": lambda: None}

    def __init__(self, name: str) -> None:
        self.name = name
        self.origin: str | None = None  # the directory or file it was loaded from
        self.flat: Any = None  # for a parameter: the optimizer state that the executor keeps between runs
        self._value: Any = None
        self._past = 0

    @property
    def value(self) -> Any:
        """The value: LoDTensor, SelectedRows, LoDTensorArray, anything else, or None."""
        return self._value

    @property
    def version(self) -> int:
        """The number of writes; saving uses it to find what changed."""
        value = self._value
        return self._past + (value.version if type(value) is LoDTensor else int(getattr(value, "version", 0)))

    def set_value(self, value: Any) -> None:
        """Replace the value."""
        self._past = self.version + 1 - int(getattr(value, "version", 0))
        self._value = value

    def is_initialized(self) -> bool:
        """Return whether there is a value."""
        if isinstance(self._value, (LoDTensor, SelectedRows)):  # quicker than by a union
            return self._value.held_array is not None
        return self._value is not None

    def get_tensor(self) -> LoDTensor:
        """Return the value as a LoDTensor, a new one if there is none.

        Raises EnforceNotMet when it has another kind.
        """
        return self._get(LoDTensor)

    def get_selected_rows(self) -> SelectedRows:
        """Return the value as SelectedRows, new ones if there are none.

        Raises EnforceNotMet when it has another kind.
        """
        return self._get(SelectedRows)

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """Return the value as a LoDTensorArray, a new one if there is none.

        Raises EnforceNotMet when it has another kind.
        """
        return self._get(LoDTensorArray)

    def _get(self, kind: type[Value]) -> Value:
        if self._value is None:
            self._value = kind()
        value = self._value
        if not isinstance(value, kind):
            raise EnforceNotMet(
                f"variable {self.name!r} holds a {type(value).__name__}, not a {kind.__name__}"
            )
        return value

    def _get_attributes(self) -> dict[str, Any]:
        kept = isinstance(self._value, _PICKLED)
        return super()._get_attributes() | ({} if kept else {"_value": None, "_past": self.version})

    def __repr__(self) -> str:
        return f"ScopeVariable({self.name!r}, version={self.version}, value={self._value!r})"


class Scope(Versioned, Displayed):
    """A mapping from names to values; missing names are looked up in the parent scope.

    Parameters
    ----------
    parent
        The scope in which missing names are looked up; None for none.

    >>> scope = Scope()
    >>> scope.var("w").get_tensor().set([1.0, 2.0])
    >>> child = scope.new_scope()
    >>> child.find_var("w") is scope.find_var("w"), child.find_var("x")
    (True, None)
    """

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "erasures": lambda: 0,
        "found": weakref.WeakKeyDictionary,
    }

    def __init__(self, parent: Scope | None = None) -> None:
        self.erasures = 0  # the number of removals of variables
        #: Variables that plans found here; valid until ``erasures`` changes.
        self.found: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._vars: dict[str, ScopeVariable] = {}
        self._parent = parent
        self._kids: list[Scope] = []
        self._generator: Generator | None = None

    @property
    def parent(self) -> Scope | None:
        """The parent scope, or None."""
        return self._parent

    @property
    def generator(self) -> Generator:
        """The random generator of the outermost scope, for operators without a seed."""
        root = self
        while root._parent is not None:
            root = root._parent
        if root._generator is None:
            root._generator = Generator()
        return root._generator

    def var(self, name: str) -> ScopeVariable:
        """Return the variable of that name in this scope, not in outer ones; create it if there is none."""
        found = self._vars.get(name)
        if found is None:  # two threads that create it get the same one
            found = self._vars.setdefault(name, ScopeVariable(name))
        return found

    def find_var(self, name: str) -> ScopeVariable | None:
        """Return the variable of that name in this scope or the nearest outer one that has it, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._vars.get(name)
            if found is not None:
                return found
            scope = scope._parent
        return None

    def erase(self, names: list[str]) -> None:
        """Remove variables of this scope, not of outer ones; unknown names are ignored."""
        for name in names:
            self._vars.pop(name, None)
        self.erasures += 1

    def local_var_names(self) -> list[str]:
        """Return the names in this scope, not in outer ones, in order of creation."""
        return list(self._vars)

    def new_scope(self) -> Scope:
        """Create a child of this scope, kept until :meth:`drop_kids`."""
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        """Drop all children."""
        self._kids.clear()

    def __repr__(self) -> str:
        names = list(self._vars)
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"Scope({', '.join(names[:_LISTED])}{more})"


_global_scope: Final = Current(Scope())


def global_scope() -> Scope:
    """Return the scope that is used when none is passed.

    Returns
    -------
    Scope
        The scope of the innermost :func:`scope_guard` of this thread, else the scope of the process.

    >>> import paddlelike as fluid
    >>> fluid.global_scope().find_var("of no network") is None
    True
    """
    return _global_scope.get()


def scope_guard(scope: Scope) -> Block:
    """Use ``scope`` as the global scope inside the ``with`` block.

    A ``with`` block changes only its own thread; :class:`~paddlelike.foundation.current.Current` describes
    what other threads use.

    Parameters
    ----------
    scope
        The scope that becomes the global one.

    Returns
    -------
    Block
        A context manager; it also decorates functions.

    >>> import paddlelike as fluid
    >>> scope = fluid.Scope()
    >>> with fluid.scope_guard(scope):
    ...     print(fluid.global_scope() is scope)
    True
    """
    return _global_scope.replaced(scope)
