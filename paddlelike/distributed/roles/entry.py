"""The two entry points: read the role or raise, and describe what was read."""

from __future__ import annotations

import os
from collections.abc import Mapping

from paddlelike.distributed.roles.facts import ProcessRole, Understanding
from paddlelike.distributed.roles.reader import RoleReader
from paddlelike.errors import RoleError


def read_role(environ: Mapping[str, str] | None = None) -> ProcessRole:
    """Return the role of this process.

    Parameters
    ----------
    environ
        The variables to read; by default those of the process.

    Raises
    ------
    RoleError
        Something is missing or contradictory; the error lists everything at once.

    Examples
    --------
    >>> job = {"PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6174,10.0.0.2:6174", "PADDLE_TRAINERS_NUM": "4"}
    >>> role = read_role(job | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "3"})
    >>> role.kind, role.index, role.trainers
    ('trainer', 3, 4)
    >>> read_role(job | {"TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.2", "PADDLE_PORT": "6174"}).index
    1
    """
    understood = describe(environ)
    if understood.role is None:
        problems = "\n".join(f"  - {problem}" for problem in understood.problems)
        raise RoleError(
            f"the environment variables do not define the role of this process:\n{problems}",
            hint="paddlelike.distributed.roles.describe() shows every variable that was read; "
            "python -m paddlelike.distributed.launch sets all of them",
        )
    return understood.role


def describe(environ: Mapping[str, str] | None = None) -> Understanding:
    """Return everything that was read from the environment, without raising; print it to see it.

    >>> print(describe({"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": "ps0:6174"}))
    generation of variables: 3 (fleet of 1.6 and later, Paddle 2)
      role     TRAINER   from TRAINING_ROLE
      servers  ps0:6174  from PADDLE_PSERVERS_IP_PORT_LIST
    missing or wrong: PADDLE_TRAINERS_NUM, the count of trainers
    """
    return RoleReader(os.environ if environ is None else environ).read()
