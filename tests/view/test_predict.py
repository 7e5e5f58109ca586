"""Models that are tried over HTTP, and the commands that serve."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from paddlelike.errors import FeedError, LoadError
from paddlelike.view.server import (
    LoopbackServer,
    Predictor,
    make_prediction_routes,
)
from paddlelike.view.server.loopback import Refusal
from tests.view.asking import FIT, JSON, ask


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(make_prediction_routes(Predictor(FIT / "inference")), most_bytes=100_000) as found:
        found.start()
        yield found


def predict(server: LoopbackServer, value: Any) -> tuple[int, Any]:
    return ask(server, "POST", "/predict", json.dumps(value).encode(), JSON)


def test_predictions_match_paddle(server: LoopbackServer) -> None:
    recorded = np.load(FIT / "io.npz")
    x = next(recorded[name] for name in recorded.files if recorded[name].shape[-1] == 13)
    status, answer = predict(server, {"inputs": {"x": x.tolist()}})
    assert status == 200
    (output,) = answer["outputs"].values()
    w = np.frombuffer((FIT / "inference" / "fc_0.w_0").read_bytes()[-52:], "<f4").reshape(13, 1)
    b = np.frombuffer((FIT / "inference" / "fc_0.b_0").read_bytes()[-4:], "<f4")
    # sums of 13 products of float32 in another order
    np.testing.assert_allclose(output["values"], x.astype("f8") @ w + b, rtol=1e-5, atol=1e-5)
    assert (output["dtype"], output["shape"]) == ("float32", [len(x), 1])


def test_the_model_is_described(server: LoopbackServer) -> None:
    _, found = ask(server, "GET", "/model")
    assert found["feeds"] == [{"name": "x", "dtype": "float32", "shape": [-1, 13], "lod": 0}]


def test_the_openapi_description_matches_the_interface(server: LoopbackServer) -> None:
    status, api = ask(server, "GET", "/openapi.json")
    assert (status, api["openapi"]) == (200, "3.1.0")
    body = api["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    x = body["schema"]["properties"]["inputs"]["properties"]["x"]
    assert (x["type"], "minItems" in x, x["items"]["minItems"], x["items"]["items"]["type"]) == (
        "array",
        False,
        13,
        "number",
    )
    status, answer = predict(server, body["example"])
    described = api["paths"]["/predict"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert status == 200
    assert answer.keys() == described["properties"].keys()
    assert answer["outputs"].keys() == described["properties"]["outputs"]["properties"].keys()
    assert predict(server, {})[0] == 400
    assert "400" in api["paths"]["/predict"]["post"]["responses"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"inputs": {"x": [[1, 2]]}}, r"x has shape \[1, 2\], expected \[-1, 13\]"),
        ({"inputs": {"x": [[1], [1, 2]]}}, "rows have different lengths"),
        ({"inputs": {"x": "a"}}, "not an array of numbers"),
        ({"inputs": {"x": None}}, "not an array of numbers"),
        ({"inputs": {"y": [1]}}, "x is missing; the model does not feed y"),
        ({"inputs": [1]}, "inputs are an object with x, got list"),
        ({"inputs": {"x": {"value": 1}}}, "must be a list, or have values and lengths"),
        (
            {"inputs": {"x": {"values": [[0] * 13], "lengths": [[5]]}}},
            "lengths of x do not match its 1 rows: .* ends level 0 at 5",
        ),
        ({"inputs": {"x": [[[10**400] * 13]]}}, "x"),
        ({"input": {}}, r'the body must be \{"inputs"'),
        ([], r'the body must be \{"inputs"'),
    ],
    ids=range(11),
)
def test_wrong_inputs_get_a_clear_message(server: LoopbackServer, value: Any, text: str) -> None:
    status, answer = predict(server, value)
    assert status == 400
    assert re.search(text, answer["error"])


def test_values_that_are_not_finite_are_sent_as_text(server: LoopbackServer) -> None:
    status, answer = predict(server, {"inputs": {"x": [[math.inf] + [0] * 12]}})
    (output,) = answer["outputs"].values()
    assert (status, output["values"][0][0] in ("inf", "-inf", "nan")) == (200, True)


def test_the_printed_address_opens_the_page(server: LoopbackServer) -> None:
    path = server.url.partition(str(server.port))[2]
    status, page = ask(server, "GET", path, token=False)
    assert status == 200
    assert b"Content-Security-Policy" in page
    assert server.token.encode() not in page


def test_the_names_of_combined_files_are_found(tmp_path: Path) -> None:
    answers = [Predictor(FIT / name).run({"x": [[1] * 13]}) for name in ("inference", "inference_combined")]
    one, other = (next(iter(answer["outputs"].values()))["values"] for answer in answers)
    assert one == other
    with pytest.raises(LoadError, match="other"):
        Predictor(FIT / "inference", "other")


def test_runs_of_a_model_are_serialised(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(FIT / "inference")
    real, inside, most = predictor._executor.run, [], []

    def run(*args: Any, **kwargs: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        try:
            return real(*args, **kwargs)
        finally:
            inside.pop()

    monkeypatch.setattr(predictor._executor, "run", run)
    threads = [threading.Thread(target=predictor.run, args=({"x": [[0] * 13]},)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert most == [1] * 8
    monkeypatch.setattr("paddlelike.view.server.predict._PATIENCE", 0.01)
    with predictor._lock.hold(), pytest.raises(Refusal, match="another run"):
        predictor.run({"x": [[0] * 13]})


def test_integers_and_sequences_are_checked(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        out = fluid.layers.sequence_pool(fluid.layers.cast(ids, "float32"), "sum")
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.save_inference_model(str(tmp_path), ["ids"], [out], exe, main)
    predictor = Predictor(tmp_path)
    answer = predictor.run({"ids": {"values": [[1], [2], [3]], "lengths": [[1, 2]]}})
    (output,) = answer["outputs"].values()
    assert output["values"] == [[1.0], [5.0]]
    with pytest.raises(FeedError, match="are not int64"):
        predictor.run({"ids": {"values": [[1.5]], "lengths": [[1]]}})


def test_a_model_that_does_more_than_compute_is_refused(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 1])
        out = fluid.layers.Print(x)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], fluid.Executor(), main)
    with pytest.raises(LoadError, match="print"):
        Predictor(tmp_path)


@pytest.mark.parametrize(
    "arguments", [["serve", str(FIT / "inference")], ["view", "--live", str(FIT)]], ids=["serve", "live"]
)
def test_the_commands_print_an_address_and_stop_on_control_c(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "paddlelike", *arguments, "--token", "a-token-of-this-test"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.endswith("/?token=a-token-of-this-test")
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["serve", "nowhere"], "no such file or directory: nowhere"),
        (["serve", str(FIT / "inference" / "fc_0.b_0")], "holds no program"),
        (["serve", str(FIT / "inference"), "--token", "short"], "16 or more"),
        (["view", "--live", "nowhere"], "there is no directory nowhere"),
    ],
    ids=["serve", "file", "token", "live"],
)
def test_the_commands_refuse_invalid_arguments_with_a_message(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert text in result.stderr
