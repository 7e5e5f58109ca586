"""Servers on loopback: who is let in, what is refused and how; models that are tried, trainings followed."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import select
import shutil
import signal
import socket
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
from paddlelike.errors import FeedError, LoadError, StorageError
from paddlelike.view.server import (
    Follower,
    LoopbackServer,
    Predictor,
    make_live_routes,
    make_prediction_routes,
)
from paddlelike.view.server.loopback import Refusal, Reply

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


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(make_prediction_routes(Predictor(FIT / "inference")), most_bytes=100_000) as found:
        found.start()
        yield found


def predict(server: LoopbackServer, value: Any) -> tuple[int, Any]:
    return ask(server, "POST", "/predict", json.dumps(value).encode(), JSON)


def test_an_answer_is_what_paddle_computed(server: LoopbackServer) -> None:
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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"inputs": {"x": [[1, 2]]}}, r"x has shape \[1, 2\], expected \[-1, 13\]"),
        ({"inputs": {"x": [[1], [1, 2]]}}, "rows have different lengths"),
        ({"inputs": {"x": "a"}}, "not an array of numbers"),
        ({"inputs": {"x": None}}, "not an array of numbers"),
        ({"inputs": {"y": [1]}}, "x is missing; the model does not feed y"),
        ({"inputs": [1]}, "inputs are an object with x, got list"),
        ({"inputs": {"x": {"value": 1}}}, "a list, or an object with values and lengths"),
        (
            {"inputs": {"x": {"values": [[0] * 13], "lengths": [[5]]}}},
            "lengths of x do not fit its 1 rows: .* ends level 0 at 5",
        ),
        ({"inputs": {"x": [[[10**400] * 13]]}}, "x"),
        ({"input": {}}, r'the body is \{"inputs"'),
        ([], r'the body is \{"inputs"'),
    ],
    ids=range(11),
)
def test_wrong_inputs_are_refused_in_words(server: LoopbackServer, value: Any, text: str) -> None:
    status, answer = predict(server, value)
    assert status == 400
    assert re.search(text, answer["error"])


def test_what_is_not_finite_is_text(server: LoopbackServer) -> None:
    status, answer = predict(server, {"inputs": {"x": [[math.inf] + [0] * 12]}})
    (output,) = answer["outputs"].values()
    assert (status, output["values"][0][0] in ("inf", "-inf", "nan")) == (200, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/model", None, {"Host": "evil.example:80"}, 403),
        ("GET", "/model", None, {"Host": "127.0.0.1"}, 403),
        ("POST", "/predict", b"{}", {**JSON, "Origin": "https://evil.example"}, 403),
        ("POST", "/predict", b"{}", {**JSON, "Origin": "null"}, 403),
        ("GET", "/nothing", None, {}, 404),
        ("GET", "/../model", None, {}, 404),
        ("GET", "/predict", None, {}, 405),
        ("POST", "/model", b"{}", JSON, 405),
        ("GET", "/model", b"{}", {}, 400),
        ("POST", "/predict", b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/predict", b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/predict", None, {**JSON, "Content-Length": "1e3"}, 411),
        ("POST", "/predict", None, {**JSON, "Content-Length": "-1"}, 411),
        ("POST", "/predict", None, {**JSON, "Content-Length": "100001"}, 413),
        ("POST", "/predict", None, {**JSON, "Content-Length": "9" * 4000}, 413),
        ("POST", "/predict", None, {**JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}, 411),
        ("POST", "/predict", b"{", JSON, 400),
        ("POST", "/predict", b"[" * 90_000, JSON, 400),
        ("POST", "/predict", b"\xff\xfe", JSON, 400),
        ("PUT", "/predict", b"{}", JSON, 501),
    ],
    ids=range(20),
)
def test_a_request_that_is_not_as_it_should_be_is_refused(
    server: LoopbackServer, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    found, answer = ask(server, method, path, body, headers)
    assert found == status
    assert answer["error"]


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", "Bearer \xe4", "Basic {}", "Bearer {}x", "{}"])
def test_without_its_token_nothing_is_answered(server: LoopbackServer, header: str) -> None:
    for method, path in [("GET", "/"), ("GET", "/model"), ("POST", "/predict"), ("GET", "/nothing")]:
        status, answer = ask(
            server, method, path, headers={"Authorization": header.format(server.token)}, token=False
        )
        assert (status, set(answer)) == (401, {"error", "hint"})
        assert server.token not in json.dumps(answer)


def test_the_printed_address_opens_the_page(server: LoopbackServer) -> None:
    path = server.url.partition(str(server.port))[2]
    status, page = ask(server, "GET", path, token=False)
    assert status == 200
    assert b"Content-Security-Policy" in page
    assert server.token.encode() not in page


def test_only_loopback_listens(server: LoopbackServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_and_a_short_token_are_refused(server: LoopbackServer) -> None:
    with pytest.raises(StorageError, match=f"127.0.0.1:{server.port}"):
        LoopbackServer({}, port=server.port)
    for token in ("short", "a" * 20 + "&x=", "ä" * 20):
        with pytest.raises(ValueError, match="16 or more"):
            LoopbackServer({}, token=token)


def test_more_connections_than_it_takes_are_closed() -> None:
    with LoopbackServer({}) as found:
        found.start()
        silent = [socket.create_connection(("127.0.0.1", found.port), timeout=30) for _ in range(40)]
        assert [one.recv(1) for one in silent[32:]] == [b""] * 8  # waits until each is closed
        assert select.select(silent[:32], [], [], 0)[0] == []
        for one in silent:
            one.close()


def test_what_a_route_raises_is_answered_in_words() -> None:
    raised: list[Exception] = [
        FeedError("a b", hint="c"),
        ZeroDivisionError("d"),
        MemoryError(),
        Refusal(418, "e"),
    ]

    def fail(_: Any) -> Reply:
        raise raised.pop(0)

    with LoopbackServer({("GET", "/"): fail}) as found:
        found.start()
        answers = [ask(found, "GET", "/") for _ in range(4)]
    assert [status for status, _ in answers] == [400, 500, 500, 418]
    assert answers[0][1] == {"error": "a b", "hint": "c"}


def test_runs_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
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
    with predictor._lock, pytest.raises(Refusal, match="another run"):
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
    with pytest.raises(FeedError, match="no int64"):
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


def save(path: Path, value: float) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(value))
        fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr=attr)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_persistables(exe, str(path), main)


def test_losses_and_saves_appear_as_they_land(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = fluid.io.TrainingLog(tmp_path / "logs" / "a.jsonl")
    follower = Follower(tmp_path)
    empty = follower.look()
    assert (empty["logs"], empty["saves"]) == ([], [])
    log.write(0, loss=4)
    log.write(1, loss=3)
    first = follower.look()
    assert first["version"] == empty["version"] + 1
    assert follower.look()["version"] == first["version"]
    fluid.io.TrainingLog(log.path).write(1, loss=math.nan)  # restarted
    save(tmp_path / "one", 1.0)
    state = follower.look()
    (found,) = state["logs"]
    assert found["restarts"] == [1]
    curve = found["curves"]["loss"]
    assert (curve["steps"], str(curve["values"]), curve["smallest"]) == ([0, 1], "[4.0, nan]", 4)
    (landed,) = state["saves"]
    assert (landed["name"], landed["files"]) == ("one", 2)
    assert follower.find_save(landed["id"]) == str(tmp_path / "one")
    assert follower.find_save(99) is None
    save(tmp_path / "one", 2.0)  # another save in the same place
    assert [one["name"] for one in follower.look()["saves"]] == ["one", "one"]


def test_a_half_written_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    line = b'{"run": 1, "step": 0, "values": {"loss": 1.5}}\n'
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(b"garbage\n" + line[:20])
    assert follower.look()["logs"][0]["curves"] == {}
    with path.open("ab") as file:
        file.write(line[20:])
    assert follower.look()["logs"][0]["curves"]["loss"]["values"] == [1.5]
    path.write_bytes(line.replace(b"1.5", b"2.5"))  # begun anew, shorter than before
    assert follower.look()["logs"][0]["curves"]["loss"]["values"] == [2.5]


def test_checkpoints_are_listed_with_step_and_metric(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=3)
        for step in (1, 2):
            checkpoints.save(exe, main, step, metric=0.5 * step)
    found = Follower(tmp_path).look()["saves"]
    assert [(one["name"], one["step"], one["metric"]) for one in found] == [
        ("step-00000001", 1, 0.5),
        ("step-00000002", 2, 1.0),
    ]


def test_a_long_curve_keeps_its_ends_and_its_peaks(tmp_path: Path) -> None:
    values = np.sin(np.arange(20_000) / 900.0)
    values[7_777] = 50.0
    lines = [
        f'{{"run": 1, "step": {step}, "values": {{"loss": {value}}}}}' for step, value in enumerate(values)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    curve = Follower(tmp_path).look()["logs"][0]["curves"]["loss"]
    assert curve["count"] == 20_000
    assert len(curve["steps"]) <= 1202
    assert (curve["steps"][0], curve["steps"][-1]) == (0, 19_999)
    assert curve["values"][curve["steps"].index(7_777)] == 50.0


def test_what_is_no_log_or_save_does_no_harm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")  # reading it would wait for ever
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "__manifest__").write_bytes(b"\0" * 100)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    state = Follower(tmp_path, [str(tmp_path / "missing.jsonl")]).look()
    assert (state["logs"], state["saves"]) == ([], [])


def test_a_save_is_looked_into_by_its_number_alone(tmp_path: Path) -> None:
    save(tmp_path / "one", 1.0)
    shutil.copytree(FIT / "persistables", tmp_path.parent / f"{tmp_path.name}-secret")
    with LoopbackServer(make_live_routes(Follower(tmp_path))) as found:
        found.start()
        _, state = ask(found, "GET", "/state")
        assert ask(found, "GET", f"/state?version={state['version']}")[1].keys() == {"version", "now"}
        status, page = ask(found, "GET", f"/save?id={state['saves'][0]['id']}")
        assert (status, b"fc_0.w_0" in page) == (200, True)
        for wrong in ("9", "-1", "../x", "", "0" * 50, "%00"):
            assert ask(found, "GET", f"/save?id={wrong}")[0] == 404


@pytest.mark.parametrize(
    "arguments", [["serve", str(FIT / "inference")], ["view", "--live", str(FIT)]], ids=["serve", "live"]
)
def test_the_commands_print_the_address_and_end_with_control_c(arguments: list[str]) -> None:
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
        (["serve", "nowhere"], "there is no directory nowhere"),
        (["serve", str(FIT / "inference"), "--token", "short"], "16 or more"),
        (["view", "--live", "nowhere"], "there is no directory nowhere"),
    ],
    ids=["serve", "token", "live"],
)
def test_the_commands_refuse_in_words(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert text in result.stderr
