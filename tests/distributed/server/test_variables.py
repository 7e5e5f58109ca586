"""What a server takes for the value of a variable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paddlelike.distributed.server.variables import Variables
from paddlelike.errors import EnforceNotMet


def value(held: Any, shape: tuple[int, ...]) -> Any:
    variables: Any = object.__new__(Variables)
    variables._find_value = lambda entry: held
    variables._served = SimpleNamespace(endpoint="127.0.0.1:6174")
    return variables.value(SimpleNamespace(name="learning_rate_0", shape=shape))


def test_a_number_without_dims_is_a_value_of_one_element() -> None:
    assert value(np.array(0.5, "float32"), (1,)).tolist() == [0.5]


@pytest.mark.parametrize("shape", [(2,), (1, 1)])
def test_any_other_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(EnforceNotMet, match="learning_rate_0"):
        value(np.array(0.5, "float32"), shape)
