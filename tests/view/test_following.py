"""``paddlelike serve --follow`` by HTTP: while a training saves, each answer is that of one save."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

pytestmark = pytest.mark.slow

_TOKEN = "0123456789abcdef0"  # of this test
_USED = np.arange(0, 20_000, 40)


def test_no_response_mixes_two_saves(tmp_path: Path) -> None:
    main, startup, scope, exe = fluid.Program(), fluid.Program(), fluid.Scope(), fluid.Executor()
    zero, one = fluid.initializer.Constant(0.0), fluid.initializer.Constant(1.0)
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        attr = [fluid.ParamAttr(name=name, initializer=zero) for name in ("emb", "b")]
        rows = fluid.layers.embedding(ids, [20_000, 8], is_sparse=True, param_attr=attr[0])
        out = fluid.layers.fc(rows, 1, param_attr=one, bias_attr=attr[1])
    model, saves = str(tmp_path / "model"), str(tmp_path / "saves")
    with fluid.scope_guard(scope):
        exe.run(startup)
        fluid.io.save_inference_model(model, ["ids"], [out], exe, main)
        fluid.io.save_persistables(exe, saves, main, delta=True)
    command = [sys.executable, "-m", "paddlelike", "serve", model, "--follow", saves, "--token", _TOKEN]
    answers: list[list[float]] = [[], []]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = (re.search(r"127\.0\.0\.1:(\d+)", line) for line in server.stdout)
            port = next(found[1] for found in said if found)
            ended = threading.Event()
            clients = [
                threading.Thread(target=_ask, args=(port, which, answers[which], ended)) for which in (0, 1)
            ]
            for client in clients:
                client.start()
            for save in range(1, 19):
                for name, place in (("emb", _USED), ("b", slice(None))):
                    with scope.var(name).get_tensor().writing() as array:
                        array[place] = save
                with fluid.scope_guard(scope):
                    how: Any = "base" if save % 8 == 0 else True
                    fluid.io.save_persistables(exe, saves, main, delta=how, durability="process")
            ended.set()
            for client in clients:
                client.join()
        finally:
            server.terminate()
    for some in answers:
        assert len(some) > 1
        assert all(answer.is_integer() for answer in some)
        assert some == sorted(some)
        assert some[-1] == 18  # the last is asked for after the last save


def _ask(port: str, which: int, answers: list[float], ended: threading.Event) -> None:
    """Ask until the training has ended, and once more; note the save of each answer, -0.5 for a mix."""
    rng, last = np.random.default_rng(which), False
    while not last:
        last = ended.is_set()
        body = json.dumps({"inputs": {"ids": rng.choice(_USED, (16, 1)).tolist()}}).encode()
        header = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", body, header)
        with urllib.request.urlopen(request, timeout=60) as reply:
            (out,) = json.load(reply)["outputs"].values()
        numbers = np.unique(np.array(out["values"]) / 9)  # 8 numbers of a row, and the bias
        answers.append(float(numbers[0]) if len(numbers) == 1 else -0.5)
