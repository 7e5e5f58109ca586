"""Numbers without axes, as Paddle 2.6 and 3 write them, loaded for a variable that is declared with one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import paddlelike as fluid

# 3.5, as paddle.save(..., use_binary_format=True) of 2.6.2 and 3.3.1 writes it; 1.8.5 saves the same bytes.
STREAM = bytes.fromhex("0000000000000000000000000000000002000000080500006040")


def test_a_zero_dim_value_is_saved_with_its_original_bytes(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(STREAM)
    block = fluid.default_main_program().global_block()
    s = block.create_var(name="s", shape=[1], dtype="float32", persistable=True)
    exe = fluid.Executor()
    fluid.io.load_vars(exe, str(tmp_path), vars=[s])
    assert fluid.global_scope().find_var("s").get_tensor().shape() == []
    fluid.io.save_vars(exe, str(tmp_path / "out"), vars=[s])
    assert (tmp_path / "out" / "s").read_bytes() == STREAM
    (found,) = exe.run(fetch_list=[fluid.layers.scale(s, 2.0)])
    assert np.asarray(found).item() == 7.0
