"""What a variable on a parameter server is to training: one list for placements and for the wire."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The kind of a variable on a server: it decides how the variable travels and who saves it.

    A placement has every kind but ``GRADIENT`` and ``COUNTER``; a server, which reads kinds off its own
    program, has all of them.
    """

    PARAMETER = "parameter"  # trainers receive it after every round
    REMOTE = "remote"  # a table in blocks of rows; trainers fetch the rows they look up
    TABLE = "table"  # a table sharded by id (SelectedRows); trainers fetch the rows they look up
    GROWING = "growing"  # a growing table, its counts or its state (SelectedRows), by id on all servers
    OPTIMIZER = "optimizer"  # state of an optimizer: stays on the servers
    AVERAGE = "average"  # means of parameters, updated beside them: stay on the servers
    SCHEDULE = "schedule"  # what a schedule computes with, such as its counter: the same on every server
    RATE = "rate"  # a learning rate that no operator changes: every server takes the script's
    COUNTER = "counter"  # the step counter of a schedule to which asynchronous trainers add
    GRADIENT = "gradient"  # trainers push it

    @property
    def is_trained(self) -> bool:
        """Whether trainers send gradients for it."""
        return self in (Kind.PARAMETER, Kind.REMOTE, Kind.TABLE, Kind.GROWING)

    @property
    def is_pushed(self) -> bool:
        """Whether trainers send it: gradients, and steps for the counter of a schedule."""
        return self in (Kind.GRADIENT, Kind.COUNTER)
