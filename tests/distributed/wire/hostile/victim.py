"""A server in a process of its own, so that a test can measure the memory that an attack takes.

Prints its port, then for every line on its standard input the peak of its resident memory in bytes; ends with
its input.
"""

from __future__ import annotations

import sys

from paddlelike.distributed.wire import Security, Server
from tests.distributed.wire.verbs import Source, Store, Verb


def say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    verbs = {"Echo": Verb(), "Store": Store(), "Source": Source()}
    with Server("127.0.0.1:0", verbs, security=Security(), workers=4, idle=2.0) as server:
        say(server.port)
        for _ in sys.stdin:
            with open("/proc/self/status") as status:
                peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            say(peak * 1024)
