"""``paddlelike serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paddlelike.cli.looking.serving import LOOPS, Loops, Port, Token, serve_until_interrupted
from paddlelike.cli.output import Json, end, exits


def command(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model for prediction: a directory, a program, or a prefix."),
    ],
    model_filename: Annotated[str | None, typer.Option(help="The program, if there are several.")] = None,
    params_filename: Annotated[
        str | None, typer.Option(help="The combined file of the parameters, if there are several.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the classes, a line each, for the page.")
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The directory that a training saves into: new values are loaded."),
    ] = None,
    port: Port = 0,
    token: Token = None,
    max_body: Annotated[int, typer.Option(min=1, max=1024, help="The largest request, in MiB.")] = 64,
    loops: Loops = LOOPS,
    json: bool = Json,
) -> None:
    """Try a model for prediction in a browser, or by HTTP.

    It is served to this machine alone, until Ctrl-C. Every request needs the token of the printed address, as
    ?token=... or as the header "Authorization: Bearer ...":

    GET / is a page to fill in inputs: drop images, or type rows into forms. GET /docs shows the interface,
    and GET /openapi.json describes it; GET /model lists the model's feeds and fetches; POST /predict takes
    {"inputs": {name: nested lists}} and answers {"outputs": {name: {"dtype", "shape", "values"}}}. Numbers
    that are not finite become the texts "nan", "inf" or "-inf". Requests run one at a time.

    The exit status is 2 if the model cannot be loaded, or if it does more than compute.
    """
    from paddlelike.view.server import Predictor, make_prediction_routes

    with exits():
        names = [] if labels is None else labels.read_text("utf-8").splitlines()
        predictor = Predictor(model, model_filename, params_filename, follow, loops or None)
        serve_until_interrupted(
            make_prediction_routes(predictor, names), port, token, json=json, most_mebibytes=max_body
        )
    end(0)
