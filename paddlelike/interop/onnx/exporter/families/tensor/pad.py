"""Borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.ops.kernels.nn.image.windows import is_channels_last


@converts("pad")
def _convert_pad(step: Step) -> None:
    paddings = step.attr("paddings")
    pads = step.ints(*paddings[::2], *paddings[1::2])
    step.give("Out", step.add("Pad", step.input(), pads, step.like(step.attr("pad_value"))))


_MOST: Final = (1 << 63) - 1  # stands for the end of a dim
_PAD_MODES: Final = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge"}


@converts("pad2d", "pad3d")
def _convert_pad_image(step: Step) -> None:
    """pad2d's paddings are top, bottom, left, right; those of pad3d begin with the last dim."""
    step.refuse_inputs("Paddings")
    circular = step.attr("mode") == "circular"
    if step.attr("mode") not in _PAD_MODES and not circular:
        step.refuse(f"mode is {step.attr('mode')!r}")
    given = step.attr("paddings")
    pairs = [tuple(given[i : i + 2]) for i in range(0, len(given), 2)]
    pairs = pairs if step.op.type == "pad2d" else pairs[::-1]
    last = is_channels_last(step.attr("data_format"))
    pairs = [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs]
    if circular:
        step.give("Out", _go_round(step, pairs))
        return
    pads = step.ints(*(before for before, _ in pairs), *(after for _, after in pairs))
    value = step.attr("pad_value" if step.op.type == "pad2d" else "value", 0.0)
    out = step.add("Pad", step.input(), pads, step.like(value), mode=_PAD_MODES[step.attr("mode")])
    step.give("Out", out)


def _go_round(step: Step, pairs: Sequence[tuple[int, ...]]) -> str:
    """Return X with its own last elements before each dim and its first ones behind it."""
    out = step.input()
    for axis, (before, after) in enumerate(pairs):
        ends = [step.add("Slice", out, *map(step.ints, (-before, _MOST, axis)))] if before else []
        starts = [step.add("Slice", out, *map(step.ints, (0, after, axis)))] if after else []
        if ends or starts:
            out = step.add("Concat", *ends, out, *starts, axis=axis)
    return out
