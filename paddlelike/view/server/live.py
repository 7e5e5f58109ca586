"""The routes of a page that follows a training."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from paddlelike.foundation.locks import Lock
from paddlelike.view.follow import Follower
from paddlelike.view.page.document import format_document, format_page
from paddlelike.view.server.loopback import Refusal, Reply, Request

_SCRIPTS: Final = ("base.js", "curves.js", "live.js")


def make_live_routes(follower: Follower) -> dict[tuple[str, str], Callable[[Request], Reply]]:
    """Return the routes of a server: the page, ``GET /state`` and, of a save that is listed, ``GET /save``.

    ``/state?version=3`` answers only the version as long as it is still 3.
    """
    title = os.path.basename(os.path.abspath(follower.directory))
    looking = Lock()  # a page reads every value: one at a time

    def show_page(_: Request) -> Reply:
        contents = {"name": title, "directory": follower.directory}
        return Reply(format_document(title, contents, scripts=_SCRIPTS, served=True), is_html=True)

    def get_state(request: Request) -> Reply:
        state = follower.look()
        if request.query.get("version") == str(state["version"]):
            return Reply({"version": state["version"], "now": state["now"]})
        return Reply(state)

    def show_save(request: Request) -> Reply:
        index = request.query.get("id", "")
        path = (
            follower.find_save(int(index)) if index.isascii() and index.isdigit() and len(index) < 9 else None
        )
        if path is None:
            raise Refusal(404, "there is no such save", "look at the list again")
        with looking.hold():
            return Reply(format_page(path), is_html=True)

    return {("GET", "/"): show_page, ("GET", "/state"): get_state, ("GET", "/save"): show_save}
