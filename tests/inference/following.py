"""The processes of a training and of its follower: ROLE says which, HOME where, FIRST whether it begins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import paddlelike as fluid
from paddlelike.cli.app import app
from tests.inference.test_follow import Training

TOKEN = "a-token-of-this-test"


def main() -> None:
    """Train and save without end, or serve the newest save."""
    home = Path(os.environ["HOME"])
    if os.environ["ROLE"] == "follower":
        sys.argv = [
            "paddlelike",
            "serve",
            str(home / "model"),
            "--follow",
            str(home / "saves"),
            "--token",
            TOKEN,
        ]
        app()
    training = Training(home)
    if training.saves.exists():
        with fluid.scope_guard(training.scope):
            fluid.io.load_persistables(training.exe, str(training.saves), training.main)
    while True:
        training.save(delta=True)
        os.write(1, b"saved\n")
        training.step()
