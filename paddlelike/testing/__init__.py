"""Contract tests of formats and stores, for packages that add one; needs pytest.

>>> from paddlelike.testing import DirectoryContract, FormatContract, StoreContract
"""

from __future__ import annotations

from paddlelike.errors import ExtraMissingError

try:
    import pytest
except ImportError as error:
    raise ExtraMissingError(
        "paddlelike.testing needs pytest, which is not installed", extra="testing"
    ) from error

pytest.register_assert_rewrite(
    "paddlelike.testing.formats", "paddlelike.testing.stores"
)  # before they are imported

from paddlelike.testing.formats import FormatContract  # noqa: E402
from paddlelike.testing.stores import DirectoryContract, StoreContract  # noqa: E402

__all__ = ["DirectoryContract", "FormatContract", "StoreContract"]
