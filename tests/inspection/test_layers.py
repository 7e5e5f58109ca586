"""The layers of a program."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.inspection import list_layers


def build(optimizer: object = None) -> tuple[fluid.Program, fluid.Program]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        image = fluid.data("image", [None, 1, 8, 8])
        here = fluid.nets.simple_img_conv_pool(image, 3, 4, 2, 2, act="relu")
        here = fluid.layers.fc(fluid.layers.batch_norm(here), 10, act="softmax")
        loss = fluid.layers.mean(here)
        if optimizer is not None:
            optimizer.minimize(loss)
    return main, startup


def test_summary_layers_match_the_script() -> None:
    layers = list_layers(build()[0]).layers
    assert [(one.name, one.shape, one.parameters, one.reads) for one in layers] == [
        ("image", (-1, 1, 8, 8), 0, ()),
        ("conv2d_0", (-1, 3, 5, 5), 3 * 4 * 4 + 3, ("image",)),
        ("pool2d_0", (-1, 3, 2, 2), 0, ("conv2d_0",)),
        ("batch_norm_0", (-1, 3, 2, 2), 4 * 3, ("pool2d_0",)),
        ("fc_0", (-1, 10), 12 * 10 + 10, ("batch_norm_0",)),
        ("mean_0", (1,), 0, ("fc_0",)),
    ]


def test_parameter_totals_match_the_values_in_the_scope() -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor().run(startup)
    sizes = {name: np.asarray(scope.find_var(name).get_tensor()).size for name in scope.local_var_names()}
    trained = sum(sizes[one.name] for one in main.all_parameters() if one.trainable)
    table = list_layers(main)
    assert table.trained == trained
    assert table.trained + table.fixed == sum(sizes[one.name] for one in main.all_parameters())
    assert table.trained + table.fixed + table.optimizer == sum(sizes.values())
    assert sum(table.operators.values()) == len(main.global_block().ops)


def test_layers_whose_names_hold_dots_keep_them() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 5])
        for name in ("backbone.stage_0", "backbone.stage_1"):
            x = fluid.layers.fc(x, 5, name=name)
    assert [one.name for one in list_layers(main).layers] == ["x", "backbone.stage_0", "backbone.stage_1"]


def test_a_shared_parameter_counts_once() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 5])
        for _ in range(2):
            x = fluid.layers.fc(x, 5, param_attr="w", bias_attr=False)
    table = list_layers(main)
    assert [one.parameters for one in table.layers] == [0, 25, 25]
    assert table.trained == 25


def test_a_summary_lists_the_body_of_a_loop_after_it() -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        start = fluid.layers.fill_constant([1], "int64", 0)
        end = fluid.layers.fill_constant([1], "int64", 3)
        fluid.layers.while_loop(lambda i: fluid.layers.less_than(i, end), lambda i: [i + 1], [start])
    table = list_layers(main)
    types = [(one.operators, one.depth) for one in table.layers]
    loop = types.index((("while",), 0))
    assert next(depth for _, depth in types[loop + 1 :]) == 1


def test_summary_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main, startup = build()
    assert main.summary() is None
    printed = capsys.readouterr().out
    assert "batch_norm_0  batch_norm" in printed
    assert "parameters: 193 (772 bytes), 187 trained, 6 not trained" in printed
    startup.summary()
    assert "fill_constant*" in capsys.readouterr().out
    fluid.Program().summary()
    assert "operators: none" in capsys.readouterr().out


def test_control_characters_in_names_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fluid.layers.relu(fluid.data("x\x1b[2J" + "y" * 100, [None, 5]))
    main.summary()
    printed = capsys.readouterr().out
    assert "x?[2Jyyy" in printed
    assert "\x1b" not in printed
    assert max(map(len, printed.splitlines())) < 150
