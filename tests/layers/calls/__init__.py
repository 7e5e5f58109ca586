"""Calls of layers, each recorded from the real system: what the 252 networks of the zoo leave out.

Every entry takes the `fluid` module to build with, ours or the real one (these files keep to what
Python 3.7 understands), and returns the layer's result. An entry may also be a call that is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls import ends, functions, networks, sequence as sequences, shapes, tensors
from tests.layers.calls.net import Net

__all__ = ["CALLS"]


def _call(build: Callable[[Net], Any]) -> Callable[[Any], Any]:
    return lambda fluid: build(Net(fluid))


CALLS = {
    name: _call(build)
    for family in (functions, shapes, tensors, networks, sequences, ends)
    for name, build in family.TABLE.items()
}
