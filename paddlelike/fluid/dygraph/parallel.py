"""The rank of this process in its job, from the variables that launchers set."""

from __future__ import annotations

import os

from paddlelike.left_out import make_getattr

__all__ = ["ParallelEnv"]
__getattr__ = make_getattr(__name__, "dygraph.parallel")


class ParallelEnv:
    """The rank of this process in its job, as in Fluid, read once; without a launcher it is the only process.

    See Also
    --------
    fluid.dygraph.no_grad, fluid.dygraph.enabled

    >>> ParallelEnv().nranks, ParallelEnv().local_rank
    (1, 0)
    """

    def __init__(self) -> None:
        read = os.environ.get
        self.nranks = int(read("PADDLE_TRAINERS_NUM", "1"))
        self.local_rank = int(read("PADDLE_TRAINER_ID", "0"))
        self.dev_id = int(read("FLAGS_selected_gpus", "0"))
        self.trainer_endpoints = read("PADDLE_TRAINER_ENDPOINTS", "").split(",")
        self.current_endpoint = read("PADDLE_CURRENT_ENDPOINT", "")


Env = ParallelEnv
