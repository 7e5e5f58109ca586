"""The command ``python -m paddlelike.distributed.progress``."""

from __future__ import annotations

import argparse
import queue
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from paddlelike.distributed.option_parser import Parser
from paddlelike.distributed.progress.render import Messages, has_rich, last_lines, show_lines, show_table
from paddlelike.distributed.progress.watch import Watch
from paddlelike.errors import PaddlelikeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a job until an interrupt or the end of the launcher's messages; return the exit code."""
    parser = Parser(
        prog="python -m paddlelike.distributed.progress",
        description="Show rounds and throughput of every server of a running job, and its workers' logs.",
    )
    parser.add_argument("--servers", required=True, metavar="HOST:PORT,...", help="the servers of the job")
    parser.add_argument(
        "--log_dir", type=Path, metavar="DIR", help="the directory of the workers' logs; default: not shown"
    )
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="default: 1 in a terminal, otherwise 5"
    )
    parser.add_argument("--messages", action="store_true", help=argparse.SUPPRESS)  # by the launcher
    options = parser.parse_args(arguments)
    redraw = sys.stderr.isatty() and has_rich()
    every = options.every or (1.0 if redraw else 5.0)
    messages = Messages(sys.stdin if options.messages else None)
    try:
        with ExitStack() as stack:
            watch = stack.enter_context(Watch(options.servers.split(","), codes=messages.codes))
            show, write = stack.enter_context(show_table() if redraw else show_lines())
            while True:
                lines = {} if options.log_dir is None else last_lines(options.log_dir)
                show(watch.look(), lines)
                if not _show_messages(messages, write, time.monotonic() + every):
                    return 0
    except PaddlelikeError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return 0


def _show_messages(messages: Messages, write: Callable[[str], None], end: float) -> bool:
    """Show messages until ``end``; return False after the last one."""
    while (left := end - time.monotonic()) > 0:
        try:
            message = messages.get(left)
        except queue.Empty:
            break
        if message is None:
            return False
        write(message)
    return True
