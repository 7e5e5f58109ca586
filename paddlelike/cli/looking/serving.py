"""The options of commands that serve pages on this machine, and waiting for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from paddlelike.cli.output import print_json, say
from paddlelike.errors import UnsupportedError

if TYPE_CHECKING:
    from paddlelike.view.server import Reply, Request

_MEBIBYTE: Final = 1 << 20
LOOPS: Final = 60.0

Loops = Annotated[
    float,
    typer.Option(
        "--loops",
        min=0,
        metavar="SECONDS",
        help="The most seconds for the loops of a run; 0: no limit.",
    ),
]

Port = Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0: any free port.")]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="PADDLELIKE_TOKEN",
        show_envvar=True,
        metavar="TEXT",
        help="The secret that every request must contain, 16 characters or more; default: random. "
        "Other users of the machine see options, not the environment.",
    ),
]


def serve_until_interrupted(
    routes: Mapping[tuple[str, str], Callable[[Request], Reply]],
    port: int,
    token: str | None,
    *,
    json: bool,
    most_mebibytes: int = 64,
) -> None:
    """Print the address on standard output, with ``json`` as an object, and serve until Ctrl-C."""
    from paddlelike.view.server import LoopbackServer

    try:
        server = LoopbackServer(routes, port=port, token=token, most_bytes=most_mebibytes * _MEBIBYTE)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    with server:
        if json:
            print_json({"url": server.url, "port": server.port, "token": server.token})
        else:
            typer.echo(server.url)
        say("open the address in a browser of this machine; Ctrl-C ends")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
