"""What tests of the graph share."""

from __future__ import annotations

import pytest

import paddlelike as fluid

L = fluid.layers


@pytest.fixture
def main() -> fluid.Program:
    """A small classifier with its optimizer."""
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    h = L.dropout(L.fc(x, 3, act="relu"), 0.5)
    prediction = L.fc(h, 2, act="softmax")
    loss = L.mean(L.cross_entropy(prediction, label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return fluid.default_main_program()
