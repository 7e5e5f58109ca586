"""Settings come from the environment; a value that is not understood is refused by name."""

from __future__ import annotations

import pytest

from paddlelike.distributed.settings import Settings
from paddlelike.errors import RoleError


def test_the_defaults_are_those_of_fluid() -> None:
    settings = Settings.from_environment({})
    limits = settings.limits
    assert (limits.window, limits.barrier, limits.attempts) == (180.0, 900.0, 3)
    assert (settings.lease, settings.log_every, settings.rollback, settings.job) == (30.0, 60.0, False, "")


def test_flags_are_read_in_their_units() -> None:
    settings = Settings.from_environment(
        {
            "FLAGS_rpc_deadline": "3000",
            "FLAGS_rpc_retry_times": "7",
            "FLAGS_worker_update_interval_secs": "12",
            "PADDLELIKE_LEASE": "0.5",
            "PADDLELIKE_RESUME_POLICY": "rollback",
            "PADDLELIKE_JOB_ID": "clicks",
            "PADDLELIKE_CHECKPOINT_DIR": "models",
        }
    )
    limits = settings.limits
    assert (limits.window, limits.call, limits.barrier, limits.attempts) == (3.0, 3.0, 12.0, 7)
    assert limits.poll <= limits.window / 2
    assert (settings.lease, settings.rollback, settings.job) == (0.5, True, "clicks")
    assert settings.checkpoints == "models"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLAGS_rpc_deadline", "soon"),
        ("FLAGS_worker_update_interval_secs", "-1"),
        ("PADDLELIKE_LEASE", "inf"),
        ("PADDLELIKE_LEASE", "nan"),
        ("PADDLELIKE_RESUME_POLICY", "retry"),
    ],
)
def test_a_value_that_is_not_understood_is_named(name: str, value: str) -> None:
    with pytest.raises(RoleError, match=f"{name} is '{value}'"):
        Settings.from_environment({name: value})
