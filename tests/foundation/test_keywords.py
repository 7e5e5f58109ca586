"""A wrong keyword of anything that scripts build networks with is answered by the near one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest

import paddlelike as fluid


def _list_callables() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield what takes keywords: all layers, and the classes of networks."""
    for name in fluid.layers.__all__:
        if inspect.isfunction(function := getattr(fluid.layers, name)):
            yield name, function
    for module in (fluid.optimizer, fluid.initializer, fluid.regularizer, fluid.clip):
        for name in module.__all__:
            if inspect.isclass(cls := getattr(module, name)):
                yield name, cls
    yield "ParamAttr", fluid.ParamAttr


def _list_keywords(called: Callable[..., object]) -> list[str]:
    parameters = inspect.signature(called).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return []
    return [one.name for one in parameters if one.kind is not one.VAR_POSITIONAL and len(one.name) > 5]


CALLS = {name: called for name, called in _list_callables() if _list_keywords(called)}


def test_the_error_for_a_misspelt_keyword_suggests_the_near_one() -> None:
    assert len(CALLS) > 250
    for call in CALLS.values():
        keyword = max(_list_keywords(call), key=len)
        with pytest.raises(
            TypeError, match=f"unexpected keyword argument '{keyword}x'; did you mean .*'{keyword}'"
        ):
            call(**{keyword + "x": None})


@pytest.mark.parametrize(
    ("wrong", "near"), [("lr", "learning_rate"), ("reg", "regularization"), ("namex", "name")]
)
def test_a_shortened_keyword_gets_a_suggestion(wrong: str, near: str) -> None:
    with pytest.raises(TypeError, match=f"'{wrong}'; did you mean '{near}'"):
        fluid.optimizer.SGD(**{wrong: 0.1})


def test_errors_raised_inside_a_layer_are_unchanged() -> None:
    with pytest.raises(TypeError, match="input must be a variable"):
        fluid.layers.fc(input=3, size=4)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        fluid.layers.fc(fluid.data("x", [None, 4]))  # type: ignore[call-arg]
