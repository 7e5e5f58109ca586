"""Operators whose outputs may share memory with the parameter ``fc_0.w_0`` of shape (4, 3)."""

from __future__ import annotations

import paddlelike as fluid

__all__ = ["VIEWS"]

VIEWS = {
    "reshape": lambda w: fluid.layers.reshape(w, [12]),
    "slice": lambda w: fluid.layers.slice(w, [0], [1], [3]),
    "transpose": lambda w: fluid.layers.transpose(w, [1, 0]),
    "unsqueeze": lambda w: fluid.layers.unsqueeze(w, [0]),
    "flatten": lambda w: fluid.layers.flatten(w),
    "assign": lambda w: fluid.layers.assign(w),
    "split": lambda w: fluid.layers.split(w, 2, dim=0)[1],
    "two views": lambda w: fluid.layers.reshape(fluid.layers.slice(w, [0], [1], [3]), [6]),
}
