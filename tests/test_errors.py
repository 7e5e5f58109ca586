"""The tree of errors: drawn as it is, with hints, and caught by the built-in classes that Fluid raises."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from paddlelike import errors

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.PaddlelikeError)
}


def test_the_documented_error_tree_matches_the_classes() -> None:
    drawn = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([│├└─ ]*)(\w+(?:Error|NotMet|RolledBack|Exception))\b", line)
        if found and found[2] in CLASSES:
            depth = len(found[1]) // 4
            above[depth:] = [found[2]]
            drawn[found[2]] = above[depth - 1] if depth else None
    parents = {
        name: next((b.__name__ for b in value.__bases__ if b.__name__ in CLASSES), None)
        for name, value in CLASSES.items()
    }
    assert drawn == parents


def test_the_hint_is_the_second_line_of_a_message() -> None:
    error = errors.GraphError("3 names, 2 arrays", hint="pass one array per name")
    assert str(error) == "3 names, 2 arrays\n  hint: pass one array per name"
    assert (error.message, error.hint) == ("3 names, 2 arrays", "pass one array per name")
    assert str(errors.GraphError("no hint")) == "no hint"


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.GraphError, ValueError), (errors.ShapeError, ValueError), (errors.FeedError, ValueError),
        (errors.UnsupportedError, NotImplementedError), (errors.LoadError, RuntimeError),
        (errors.SaveError, RuntimeError), (errors.StorageError, OSError), (errors.MissingFileError, OSError),
        (errors.ExtraMissingError, ImportError),
    ],
)  # fmt: skip
def test_errors_are_subclasses_of_built_in_errors(error: type[Exception], builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise error("refused")


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(errors.FeedError("wrong shape", hint="reshape it")))
    assert str(error) == "wrong shape\n  hint: reshape it"
