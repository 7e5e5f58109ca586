"""The machines of a job step of Slurm, by its environment variables.

Host lists are those of ``scontrol show hostnames``: ``gpu[01-03,7],login``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddlelike.errors import RoleError

_RANGES = re.compile(r"\[(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\]")
_ITEM = re.compile(rf"((?:[^,\[\]]|{_RANGES.pattern})+)(?:,|$)")


def read_machines(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str] | None:
    """Return the machines of this job step, and this one's index; None for fewer than two.

    Raises RoleError for variables that contradict each other.
    """
    text, index = environ.get("SLURM_STEP_NODELIST", ""), environ.get("SLURM_NODEID", "")
    hosts = expand_hosts(text) if text else ()
    if len(hosts) < 2:
        return None
    if not index.isdecimal() or int(index) >= len(hosts):
        raise RoleError(
            f"SLURM_NODEID is {index!r}, but SLURM_STEP_NODELIST={text} has {len(hosts)} machines"
        )
    return hosts, hosts[int(index)]


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a list. Raises RoleError for one that is not understood.

    >>> expand_hosts("gpu[01-03,7],login")
    ('gpu01', 'gpu02', 'gpu03', 'gpu7', 'login')
    """
    items = [item[0] for item in _ITEM.findall(text)]
    parts = [_expand(item) for item in items]
    if ",".join(items) != text or not all(parts):
        raise RoleError(
            f"the host list {text!r} is not understood",
            hint="give --cluster_node_ips and --node_ip; `scontrol show hostnames` prints the hosts",
        )
    return tuple(host for part in parts for host in part)


def _expand(item: str) -> list[str]:
    match = _RANGES.search(item)
    if match is None:
        return [item]
    numbers: list[str] = []
    for part in match[1].split(","):
        first, _, last = part.partition("-")
        numbers += [f"{one:0{len(first)}d}" for one in range(int(first), int(last or first) + 1)]
    begin = item[: match.start()]
    return [begin + number + rest for number in numbers for rest in _expand(item[match.end() :])]
