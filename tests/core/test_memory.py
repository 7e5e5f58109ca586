"""Memory for arrays, and what is said when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import memory
from paddlelike.errors import OutOfMemoryError, PaddlelikeError


@pytest.mark.parametrize("shape", [(2**59, 8), (2**60, 8), (2**70,)], ids=str)
@pytest.mark.parametrize("make", [memory.empty, memory.Arena(2**62).empty], ids=["empty", "arena"])
def test_more_memory_than_there_is(make, shape):
    with pytest.raises(OutOfMemoryError, match="bytes of memory cannot be allocated") as caught:
        make(shape, np.dtype("uint8"))
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, PaddlelikeError)
