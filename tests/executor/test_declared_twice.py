"""A persistable that a sub-block declares once more is still the one of its scope."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid


def test_a_sub_block_writes_the_persistable_around_it() -> None:
    value = fluid.layers.create_global_var([1], 1.0, "float32", persistable=True, name="value")
    yes = fluid.layers.fill_constant([1], "bool", True)
    with fluid.layers.control_flow.ConditionalBlock([yes], is_scalar_condition=True).block():
        fluid.layers.assign(value * 2.0, value)
    main = fluid.default_main_program()
    inner = main.blocks[1]
    inner._clone_variable(value)  # as programs of parameter servers have it
    after = value + 0.5
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    assert exe.run(main, fetch_list=[after], scope=scope) == [[2.5]]
    assert np.array(scope.find_var("value").get_tensor()) == [2.0]
