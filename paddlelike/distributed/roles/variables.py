"""The spellings of the variables, and a reader of single variables that collects problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paddlelike.distributed.roles.facts import Reading

#: By variable with a list of servers, the generation that uses it.
GENERATIONS: Final[Mapping[str, str]] = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "3 (fleet of 1.6 and later, Paddle 2)",
    "PADDLE_PSERVER_ENDPOINTS": "2b (dist_train scripts)",
    "PADDLE_PSERVERS": "2 (cluster scripts)",
    "PADDLE_PSERVER_IPS": "1 (0.14 to 1.5)",
}

#: The generation of variables without servers.
COLLECTIVE: Final = "3 (collective training, without servers)"

#: The same variables, with the one that has the port of hosts without any.
SERVER_LISTS: Final[Mapping[str, str | None]] = {
    "PADDLE_PSERVERS_IP_PORT_LIST": None,
    "PADDLE_PSERVER_ENDPOINTS": None,
    "PADDLE_PSERVERS": "PADDLE_PORT",
    "PADDLE_PSERVER_IPS": "PADDLE_PSERVER_PORT",
}

#: By variable with the role, a remark on it.
ROLES: Final[Mapping[str, str]] = {
    "TRAINING_ROLE": "",
    "PADDLE_TRAINING_ROLE": "",
    "PADDLE_ROLE": "",
    "PADDLE_TRAINER_ROLE": "a slip of the guide to 1.5, for PADDLE_TRAINING_ROLE",
}
DEFAULT_PORT: Final = "6174"
FALSE: Final = {"", "0", "false", "no"}


class Variables:
    """Environment variables, the facts that were read from them, and the problems found.

    Parameters
    ----------
    environ
        The variables by name.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.readings: list[Reading] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []

    def record(self, what: str, value: str, variable: str) -> None:
        """Note a fact and the variable that it was read from."""
        self.readings.append(Reading(what, value, variable))

    def value(self, variable: str) -> str | None:
        """Return a variable without blanks around it; None if it is empty or not set."""
        return self.environ.get(variable, "").strip() or None

    def items(self, variable: str) -> tuple[str, ...]:
        """Return the items of a variable that has commas between them."""
        value = self.value(variable)
        return () if value is None else tuple(item.strip() for item in value.split(","))

    def integer(self, variable: str) -> int | None:
        """Return a variable as an integer; None if it is not set. Another text is a problem."""
        value = self.value(variable)
        if value is None:
            return None
        if not value.isdecimal():
            self.problems.append(f"{variable}={value} is not a whole number")
            return None
        return int(value)
