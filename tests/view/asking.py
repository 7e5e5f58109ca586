"""Requests to a server on loopback, sent as they are."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from paddlelike.view.server import LoopbackServer

FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"
JSON = {"Content-Type": "application/json"}


def ask(
    server: LoopbackServer,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    *,
    token: bool = True,
) -> tuple[int, Any]:
    """Return the status and the answer; headers are sent as they are, Host included."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    given = {"Authorization": f"Bearer {server.token}"} if token else {}
    connection.request(method, path, body, {**given, **(headers or {})})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text
