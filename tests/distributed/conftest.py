"""The token file of these tests, so that they leave none in the user's home directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlelike.distributed.wire.token_file import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every process of the tests share a token file of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("token") / "job_token"))
        yield
