"""Messages from the launcher to the live view: lines to show, and which servers have started or ended."""

from __future__ import annotations

import json
import queue
from functools import partial
from typing import Final, TextIO

from paddlelike.foundation.threads import Thread

MARK: Final = "\x1e"  # begins a line of JSON: {"endpoint": "HOST:PORT", "code": exit code, or null: started}


class Messages:
    """Reads messages in a thread.

    Parameters
    ----------
    source
        Has a message on every line; None: there are none.

    Attributes
    ----------
    codes
        By endpoint of a server, its exit code, or None while its process runs.
    """

    def __init__(self, source: TextIO | None) -> None:
        self.codes: dict[str, int | None] = {}
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        if source is not None:
            Thread(partial(self._read, source), "paddlelike-messages").start()

    def get(self, timeout: float) -> str | None:
        """Return the next line to show, or None after the last one.

        Raises
        ------
        queue.Empty
            There is none within ``timeout`` seconds.
        """
        return self._lines.get(timeout=timeout)

    def _read(self, source: TextIO) -> None:
        for line in source:
            if line.startswith(MARK):
                message = json.loads(line.removeprefix(MARK))
                self.codes[message["endpoint"]] = message["code"]
            else:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)
