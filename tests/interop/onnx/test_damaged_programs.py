"""Programs whose operators lack an input, an output or an attribute, on their way to ONNX and Paddle 3."""

from __future__ import annotations

from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from paddlelike.interop.onnx.exporter.export import export_onnx
from paddlelike.interop.paddle3.write import write_pir

pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")


def build(home: Path) -> str:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 8, 8])
        hidden = fluid.layers.conv2d(x, 4, 3, act="relu")
        hidden = fluid.layers.pool2d(fluid.layers.batch_norm(hidden, is_test=True), 2)
        hidden = fluid.layers.fc(hidden, 5) + fluid.layers.fill_constant([1], "float32", 2.0)
        out = fluid.layers.softmax(fluid.layers.concat([hidden, fluid.layers.scale(hidden, 2.0)], axis=1))
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(home / "m"), ["x"], [out], exe, main)
    return str(home / "m")


@pytest.mark.parametrize("kind", ["inputs", "outputs", "attrs"])
@pytest.mark.parametrize("target", ["onnx", "Paddle 3"])
def test_an_incomplete_operator_raises_a_package_error(tmp_path: Path, target: str, kind: str) -> None:
    program = fluid.io.load_inference_model(build(tmp_path), fluid.Executor())[0]

    def export() -> None:
        if target == "onnx":
            export_onnx(program, tmp_path / "y.onnx")
        else:
            write_pir(program)

    export()
    refused = 0
    for op in program.global_block().ops:
        whole = dict(getattr(op, kind))
        for key in whole if op.type not in ("feed", "fetch") else ():
            setattr(op, kind, {name: held for name, held in whole.items() if name != key})
            try:
                export()
            except PaddlelikeError:
                refused += 1
            setattr(op, kind, whole)
    assert refused
