"""The role of this process in a job, from environment variables in all spellings that scripts use.

Four generations of variables are in use (``GENERATIONS``). Each setting, such as the list of servers, is read
under every spelling. Contradicting values are an error that names both. Sources: Fluid's cluster guides from
0.14 to 1.5, ``PaddleCloudRoleMaker`` and ``GeneralRoleMaker`` of 1.8.5, the launcher of Paddle 2, and the
``env.py`` that training scripts bring along.
"""

from paddlelike.distributed.roles.facts import GENERATIONS, ProcessRole, Reading, Understanding
from paddlelike.distributed.roles.reader import describe, read_role

__all__ = ["GENERATIONS", "ProcessRole", "Reading", "Understanding", "describe", "read_role"]
